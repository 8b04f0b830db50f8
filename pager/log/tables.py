"""The tables in Postgres, column by column. They are in a schema of their own, `selfpager`."""

LAYOUT = 1  # of these tables: who knows another one leaves them alone

CREATE = (
    "CREATE SCHEMA IF NOT EXISTS selfpager",
    "CREATE TABLE IF NOT EXISTS selfpager.about (layout integer NOT NULL UNIQUE)",
    """CREATE TABLE IF NOT EXISTS selfpager.agents (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE,  -- a helper's is that of its agent, a slash, and its call
        format integer NOT NULL DEFAULT 0,      -- of pager.db: who does not know it does not claim the agent
        fence bigint NOT NULL DEFAULT 0,        -- the number of the newest claim
        claim uuid,                             -- its id: a claim whose answer was lost is found again
        owner text,                             -- JSON: who claimed it; null while nobody has
        lease_until timestamptz,                -- from then on others may claim it
        at_work boolean NOT NULL DEFAULT false, -- at the last renewal: who takes over begins with these
        due timestamptz,                        -- when it wants to be visited by whoever works for it; null if never
        seq bigint NOT NULL DEFAULT 0,          -- the number of the last commit
        folded bigint NOT NULL DEFAULT 0        -- commits up to this one are in the newest base
    ) WITH (fillfactor = 50)""",  # half of each page is for new versions of its rows: no index is written then
    # A commit has changed the row of its agent. A foreign key would look it up again, and lock it once more.
    """CREATE TABLE IF NOT EXISTS selfpager.commits (
        agent bigint NOT NULL,
        seq bigint NOT NULL,
        part integer NOT NULL,                  -- a commit of many pages has several rows
        at timestamptz NOT NULL,                -- on the clock of this Postgres
        data bytea NOT NULL,                    -- what it changed, see pages.py and seal.py
        PRIMARY KEY (agent, seq, part)
    ) WITH (toast_tuple_target = 8160)""",  # most are a row of one page, without a second table and its index
    """CREATE TABLE IF NOT EXISTS selfpager.packs (
        agent bigint NOT NULL REFERENCES selfpager.agents ON DELETE CASCADE,
        seq bigint NOT NULL,                    -- of the first row of commits that was moved into this one
        part integer NOT NULL,
        last_seq bigint NOT NULL,
        at timestamptz NOT NULL,                -- of the earliest of them
        data bytea NOT NULL,                    -- all of them, see past.py and seal.py
        PRIMARY KEY (agent, seq, part)
    )""",
    """CREATE TABLE IF NOT EXISTS selfpager.bases (
        agent bigint NOT NULL REFERENCES selfpager.agents ON DELETE CASCADE,
        seq bigint NOT NULL,                    -- pager.db as it was after this commit is in the chunks
        at timestamptz NOT NULL,                -- of that commit
        size_bytes bigint NOT NULL,             -- of pager.db
        versions bytea NOT NULL,                -- the `seq` of each chunk, see states.py and seal.py
        PRIMARY KEY (agent, seq)
    )""",
    """CREATE TABLE IF NOT EXISTS selfpager.chunks (
        agent bigint NOT NULL REFERENCES selfpager.agents ON DELETE CASCADE,
        number integer NOT NULL,
        seq bigint NOT NULL,
        data bytea NOT NULL,                    -- this piece of pager.db as it was after that commit
        PRIMARY KEY (agent, number, seq)
    )""",
    """CREATE TABLE IF NOT EXISTS selfpager.commands (
        agent bigint NOT NULL REFERENCES selfpager.agents ON DELETE CASCADE,
        id text COLLATE "C" NOT NULL,           -- in the order in which they were sent
        command bytea NOT NULL,                 -- JSON, as in a file of an inbox, see seal.py
        PRIMARY KEY (agent, id)
    )""",
    """CREATE TABLE IF NOT EXISTS selfpager.copies (
        id uuid PRIMARY KEY,
        agent bigint NOT NULL,                  -- a reader has a copy of it, in a file of its own
        holder text NOT NULL,                   -- its process, for people
        awaited bigint,                         -- a purge waits until the copy has this commit; null if none does
        lease_until timestamptz NOT NULL        -- from then on its process counts as dead
    )""",
    "CREATE INDEX IF NOT EXISTS copies_of ON selfpager.copies (agent)",
    # Without its row here an encrypted agent cannot be read by anybody.
    """CREATE TABLE IF NOT EXISTS selfpager.keys (
        agent bigint PRIMARY KEY REFERENCES selfpager.agents ON DELETE CASCADE,  -- its helpers have the same key
        id uuid NOT NULL,
        master text NOT NULL,                   -- the id of the master key
        wrapped bytea NOT NULL                  -- the key, encrypted with that one
    )""",
    "CREATE INDEX IF NOT EXISTS agents_due ON selfpager.agents (due) WHERE due IS NOT NULL",
    # Not on `lease_until`: every commit and every renewal changes that, and would write all indexes anew.
    "CREATE INDEX IF NOT EXISTS agents_owned ON selfpager.agents (id) WHERE owner IS NOT NULL",
    """CREATE TABLE IF NOT EXISTS selfpager.home (
        key text PRIMARY KEY,                   -- such as keys: those of the HTTP API
        value text
    )""",
    # What is in there is packed already.
    "ALTER TABLE selfpager.commits ALTER data SET STORAGE EXTERNAL",
    "ALTER TABLE selfpager.packs ALTER data SET STORAGE EXTERNAL",
    "ALTER TABLE selfpager.chunks ALTER data SET STORAGE EXTERNAL",
    # Rows of commits live until the next fold: what they leave is to be used again soon.
    *(
        f"ALTER TABLE selfpager.{table} SET (autovacuum_vacuum_scale_factor = 0.05, "
        "toast.autovacuum_vacuum_scale_factor = 0.05)"
        for table in ("commits", "chunks")
    ),
    f"INSERT INTO selfpager.about VALUES ({LAYOUT}) ON CONFLICT DO NOTHING",
)
