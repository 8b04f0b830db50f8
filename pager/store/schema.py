"""The database of one agent: every table, and the numbered migrations that lead to it.

The file is the truth; Chroma and the full-text tables can be rebuilt from it. Moments are whole microseconds in
UTC. `step` columns name the newest step at that moment, so that every row can be placed in the conversation.
Migrations are never edited once released: a change is a new SQL script at the end of `MIGRATIONS`.
"""

TOKENIZER = "porter unicode61 remove_diacritics 2"

BASE = f"""
-- Single values: the embedder's fingerprint, whether a purge is under way, ...
CREATE TABLE meta (
  key TEXT PRIMARY KEY,                -- embedder, token_vectors, vectors_owed, purging, purges, note:...
  value TEXT NOT NULL                  -- of a key that is not set there is no row
) WITHOUT ROWID;

-- What must stay whole in the conversation, and messages recorded from elsewhere. s45 is the row 45.
CREATE TABLE steps (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('user', 'assistant', 'record')),  -- a record is never in the prompt by itself
  turn INTEGER NOT NULL,               -- the id of the user step that began the turn; a record's is its own
  role TEXT NOT NULL,                  -- who spoke: user, assistant, or what record() was told
  name TEXT,                           -- the speaker's name, where one is known
  session TEXT,                        -- which conversation a record belongs to
  at INTEGER NOT NULL,                 -- when it was said
  stop_reason TEXT,                    -- of an assistant step, as received
  continues INTEGER NOT NULL DEFAULT 0,  -- 1: goes on where a paused step stopped; the two are never parted
  ends_turn INTEGER NOT NULL DEFAULT 0,  -- 1: after this step the turn is answered
  done INTEGER NOT NULL DEFAULT 0,     -- 1: what this user step asked for is done, and is not to be done again
  purged INTEGER NOT NULL DEFAULT 0    -- 1: its place is kept, its text is gone
);
CREATE INDEX steps_turn ON steps (turn) WHERE kind <> 'record';

-- The pieces of a step. A part that was spilled is the page x<id>.
CREATE TABLE parts (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL REFERENCES steps (id),  -- the step that it is a piece of
  kind TEXT NOT NULL CHECK (kind IN ('said', 'recalled', 'notice', 'update')),  -- all but said is our own
  slot TEXT NOT NULL CHECK (slot IN ('user', 'reply', 'result')),  -- which message of the step it stands in
  searchable INTEGER NOT NULL,         -- 1: in said_words; results of memory tools are not
  at INTEGER NOT NULL,                 -- when it was said: what after and before ask for
  block TEXT NOT NULL                  -- the content block as JSON, exactly as it came
);
CREATE INDEX parts_step ON parts (step);
CREATE INDEX parts_at ON parts (at) WHERE searchable = 1;

-- How the prompt carries a part from an epoch on, where that is not as it came. The newest row up to an epoch holds.
CREATE TABLE forms (
  part INTEGER NOT NULL REFERENCES parts (id),
  epoch INTEGER NOT NULL,              -- from this one on
  block TEXT,                          -- JSON; NULL: left out
  PRIMARY KEY (part, epoch)
) WITHOUT ROWID;

-- Tokens of a part in its present form, by kind of text, so that nothing is counted twice.
CREATE TABLE sizes (
  part INTEGER PRIMARY KEY REFERENCES parts (id),  -- none: it was never in a prompt
  words INTEGER NOT NULL, digits INTEGER NOT NULL, other INTEGER NOT NULL,  -- the kinds of pager.tokens.Counts
  code INTEGER NOT NULL, media INTEGER NOT NULL  -- an image counts by its size, a document by its pages
);

-- Tool calls of the assistant.
CREATE TABLE calls (
  id TEXT PRIMARY KEY,                 -- unique in the agent's life, as the prompt carries it
  step INTEGER NOT NULL REFERENCES steps (id),  -- the assistant step that made it
  part INTEGER NOT NULL REFERENCES parts (id),  -- the tool_use block
  began_at INTEGER,                    -- the intent: from here on it may have run
  waiting INTEGER NOT NULL DEFAULT 0,  -- 1: waits for a person's approval and was not run
  result INTEGER REFERENCES parts (id)  -- its answer; NULL: the call is open
) WITHOUT ROWID;
CREATE INDEX calls_open ON calls (step) WHERE result IS NULL;

-- The life of one unchanged prompt prefix, as it was sent.
CREATE TABLE epochs (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,                 -- when it opened
  step INTEGER NOT NULL,               -- the newest step when it opened
  reason TEXT NOT NULL,                -- why the one before could not go on
  first_step INTEGER NOT NULL,         -- the conversation stands in the messages from this step on
  tools TEXT NOT NULL,                 -- JSON, as sent
  system TEXT NOT NULL,                -- JSON, as sent: the instructions
  preamble TEXT NOT NULL,              -- JSON list of blocks: core, digest, pinned pages, the request if it was evicted
  digest TEXT NOT NULL,                -- JSON list of the digest's lines as data
  settings TEXT NOT NULL,              -- JSON: what the epoch opened with (model, thinking, limits)
  sizes TEXT NOT NULL,                 -- JSON: tokens by kind of tools, system, core and preamble
  noticed_step INTEGER,                -- when the agent was told that the window fills
  through_step INTEGER                 -- the newest step when it ended; NULL while it lives
);

-- Every answered request: from this and the steps it can be rebuilt byte for byte.
CREATE TABLE requests (
  step INTEGER PRIMARY KEY REFERENCES steps (id),  -- the assistant step that answered it
  epoch INTEGER NOT NULL REFERENCES epochs (id),  -- whose prefix it began with
  through_part INTEGER NOT NULL,       -- the last part it held
  mark_part INTEGER,                   -- the last part of the request before, where a cache mark stands
  at INTEGER NOT NULL,                 -- when it was answered
  model TEXT NOT NULL,                 -- the one that answered
  estimate INTEGER NOT NULL,           -- what we thought its input was
  input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER  -- tokens, as the response said; input is all
);

-- Steps and pages in the prompt, as half-open intervals: in the requests that follow step from_step, up to until_step.
CREATE TABLE residency (
  page TEXT NOT NULL,                  -- s45, f12 or x3
  how TEXT NOT NULL,                   -- step, paged_in, pinned, request, recalled
  from_step INTEGER NOT NULL,          -- the newest step when it entered
  until_step INTEGER NOT NULL DEFAULT 1152921504606846976,  -- FOREVER: still there
  holder INTEGER,                      -- the step whose leaving takes the page with it
  reason TEXT NOT NULL DEFAULT ''      -- why it left
);
CREATE INDEX residency_span ON residency (until_step, from_step);
CREATE INDEX residency_page ON residency (page, until_step);

-- Every version of every core block; the newest of a name is what it reads now.
CREATE TABLE blocks (
  id INTEGER PRIMARY KEY,              -- the version
  name TEXT NOT NULL,                  -- how the agent calls it
  value TEXT NOT NULL,                 -- the text
  description TEXT NOT NULL,           -- what the block is for
  limit_tokens INTEGER NOT NULL,       -- that the value may have
  used_tokens INTEGER NOT NULL,        -- that it has
  read_only INTEGER NOT NULL,          -- 1: the agent cannot edit it
  file TEXT,                           -- where its value is read from, at the start of a run
  retired INTEGER NOT NULL DEFAULT 0,  -- 1: no longer configured; its versions stay
  place INTEGER NOT NULL,              -- order in the prompt
  actor TEXT NOT NULL,                 -- who made this version: agent, person or file
  step INTEGER NOT NULL,
  at INTEGER NOT NULL,
  unseen INTEGER NOT NULL              -- 1: the agent has not been told yet
);
CREATE INDEX blocks_name ON blocks (name, id);
CREATE INDEX blocks_unseen ON blocks (id) WHERE unseen = 1;

-- Facts with all their versions. f12 is the row 12.
CREATE TABLE facts (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL,                  -- never changes, but for a purge
  key TEXT,                            -- what it is about: all versions of a fact have the same key
  tags TEXT NOT NULL DEFAULT '[]',     -- JSON list, as given
  valid_from INTEGER NOT NULL,         -- true from here on
  stated INTEGER NOT NULL,             -- 1: valid_from was given, not just the moment of storing
  valid_until INTEGER,                 -- no longer at this moment; NULL: still true
  at INTEGER NOT NULL,                 -- when it was stored
  actor TEXT NOT NULL,                 -- who stored it
  step INTEGER NOT NULL,               -- its source: the newest step when it was stored
  supersedes INTEGER REFERENCES facts (id),  -- the version before it, of the same key
  superseded_by INTEGER REFERENCES facts (id),  -- NULL: the newest version of its key, unless it was forgotten
  forgotten TEXT,                      -- the reason
  purged INTEGER NOT NULL DEFAULT 0,   -- 1: its text, key and tags are gone
  uses INTEGER NOT NULL DEFAULT 0,     -- how often a search or a page_in brought it back
  used_at INTEGER                      -- the last time
);
CREATE UNIQUE INDEX facts_current ON facts (key)
  WHERE key IS NOT NULL AND superseded_by IS NULL AND forgotten IS NULL AND purged = 0;
CREATE INDEX facts_key ON facts (key, valid_until) WHERE key IS NOT NULL;
-- For an overview: what is counted is small, or is counted without a fact's text.
CREATE INDEX facts_ended ON facts (valid_until) WHERE valid_until IS NOT NULL;
CREATE INDEX facts_to_come ON facts (valid_from) WHERE valid_from > at;
CREATE INDEX facts_purged ON facts (valid_from) WHERE purged = 1;
CREATE INDEX facts_used ON facts (uses) WHERE uses > 0 AND purged = 0;
CREATE INDEX facts_never_used ON facts (id) WHERE uses = 0 AND valid_until IS NULL AND purged = 0;

-- The tags by which facts are found; `facts.tags` has them as given.
CREATE TABLE fact_tags (
  tag TEXT NOT NULL,                   -- case folded
  fact INTEGER NOT NULL REFERENCES facts (id),
  PRIMARY KEY (tag, fact)
) WITHOUT ROWID;

-- What Chroma's index is made from: float32, unit length.
CREATE TABLE vectors (
  fact INTEGER PRIMARY KEY REFERENCES facts (id),
  vector BLOB NOT NULL                 -- of the embedder that meta names
);
CREATE INDEX vectors_fact ON vectors (fact);  -- narrow: counting reads a few pages, not every vector

-- How near parts are in meaning, a byte a number. Of what was recorded or has left the prompt.
CREATE TABLE said_vectors (
  row INTEGER PRIMARY KEY,             -- they come late, and in any order: what is new has a higher one
  part INTEGER NOT NULL UNIQUE REFERENCES parts (id),
  vector BLOB NOT NULL                 -- of the embedder that meta names: a float32, then as many times it, -127 to 127
);

-- Parts that wait for one.
CREATE TABLE said_owed (
  part INTEGER PRIMARY KEY REFERENCES parts (id)
);

-- Pages that a person or the agent keeps in the prompt.
CREATE TABLE pins (
  page TEXT PRIMARY KEY,               -- s45, f12 or x3
  offset INTEGER NOT NULL,             -- in characters: which piece of a long page
  length INTEGER NOT NULL,             -- in characters
  tokens INTEGER NOT NULL,             -- what it takes of the share of all pins
  step INTEGER NOT NULL,               -- when it was pinned
  actor TEXT NOT NULL,                 -- who pinned it
  unseen INTEGER NOT NULL              -- 1: not in the prompt yet
) WITHOUT ROWID;

-- Every movement: what, when, why, who asked, how many tokens.
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  step INTEGER NOT NULL,
  event TEXT NOT NULL,                 -- one of those that pager.store.ledger names
  page TEXT,                           -- what was moved, where it was one page
  reason TEXT NOT NULL,                -- why
  actor TEXT NOT NULL,                 -- who asked: agent, person, pager or file
  tokens INTEGER NOT NULL DEFAULT 0,   -- how many were moved
  detail TEXT NOT NULL DEFAULT '{{}}'    -- JSON: whatever else explains it
);
CREATE INDEX ledger_page ON ledger (page) WHERE page IS NOT NULL;
CREATE INDEX ledger_event ON ledger (event, id);
CREATE TRIGGER ledger_keeps BEFORE DELETE ON ledger
  BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_grows BEFORE INSERT ON ledger  -- OR REPLACE deletes without asking the trigger above
  WHEN EXISTS (SELECT 1 FROM ledger WHERE id = NEW.id)
  BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger
  WHEN NOT EXISTS (SELECT 1 FROM meta WHERE key = 'purging')
  BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;

-- Commands that others left in the inbox and that have taken effect (or were refused).
CREATE TABLE commands (
  id TEXT PRIMARY KEY,                 -- the name of its file
  at INTEGER NOT NULL,                 -- when it was taken
  kind TEXT NOT NULL,                  -- message, archive, ...
  outcome TEXT NOT NULL                -- done, or why it was refused
) WITHOUT ROWID;

-- What was learned about a model's tokenizer.
CREATE TABLE tokenizers (
  model TEXT PRIMARY KEY,              -- as the program names it
  state TEXT NOT NULL                  -- JSON of pager.tokens.counter
) WITHOUT ROWID;

-- Full text. Contentless: the words only, made from parts and facts, rowid is theirs.
CREATE VIRTUAL TABLE said_words USING fts5 (text, content='', tokenize='{TOKENIZER}');
CREATE VIRTUAL TABLE fact_words USING fts5 (text, content='', tokenize='{TOKENIZER}');
"""

# Vectors are numbered in the order in which they came, also those that come long after their fact. Facts get their
# sources, and a number by which the same text is found again.
NUMBERED_VECTORS = """
CREATE TABLE numbered_vectors (
  row INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: what is behind a row has come after it
  fact INTEGER NOT NULL UNIQUE REFERENCES facts (id),  -- its index is narrow: counting reads a few pages
  vector BLOB NOT NULL                 -- float32, unit length, of the embedder that meta names
);
INSERT INTO numbered_vectors (fact, vector) SELECT fact, vector FROM vectors ORDER BY fact;
DROP TABLE vectors;
ALTER TABLE numbered_vectors RENAME TO vectors;
ALTER TABLE facts ADD COLUMN sources TEXT NOT NULL DEFAULT '["unknown"]';  -- JSON list: where it came from
ALTER TABLE facts ADD COLUMN digest INTEGER;  -- of its text; NULL once that was purged or rewritten
UPDATE facts SET digest = text_digest(text) WHERE purged = 0;
CREATE INDEX facts_digest ON facts (digest, valid_until) WHERE digest IS NOT NULL;
"""

# The last request of a turn that reached a limit asks for an answer without tools.
ANSWERS_WITHOUT_TOOLS = """
ALTER TABLE requests ADD COLUMN may_call INTEGER NOT NULL DEFAULT 1;  -- 0: with tool_choice none
"""

# What is untrusted carries the names of its sources, in JSON lists such as ["mcp:github", "web:example.org"]. The list
# of a fact holds trusted ones, too: [{"source": "agent", "step": 45, "at": 1789..., "via": ["web:example.org"]}].
TRUST = """
ALTER TABLE steps ADD COLUMN sources TEXT NOT NULL DEFAULT '[]';  -- the untrusted ones of all that the step holds
ALTER TABLE requests ADD COLUMN sources TEXT NOT NULL DEFAULT '[]';  -- of all that stood in the request
ALTER TABLE epochs ADD COLUMN sources TEXT NOT NULL DEFAULT '[]';  -- of core, digest, pinned pages and request
ALTER TABLE blocks ADD COLUMN sources TEXT NOT NULL DEFAULT '[]';  -- of the value
ALTER TABLE blocks ADD COLUMN untrusted_writes TEXT NOT NULL DEFAULT 'label';  -- label, ask or refuse
ALTER TABLE facts ADD COLUMN trusted INTEGER NOT NULL DEFAULT 1;  -- 1: one of its sources is trusted
UPDATE facts SET sources = json_array(json_object('source', 'unknown', 'step', step, 'at', at)) WHERE purged = 0;
UPDATE facts SET sources = '[]' WHERE purged = 1;
"""

# Late interaction: the vectors of word pieces, which go with the vector of their text.
TOKEN_VECTORS = """
CREATE TABLE said_token_vectors (
  part INTEGER PRIMARY KEY REFERENCES said_vectors (part) ON DELETE CASCADE,
  vectors BLOB NOT NULL                -- 32 bytes a word piece (pager.vectors.quantized); meta names what made them
);
CREATE TABLE fact_token_vectors (
  fact INTEGER PRIMARY KEY REFERENCES vectors (fact) ON DELETE CASCADE,
  vectors BLOB NOT NULL                -- as above
);
"""

# Instructions that the agent reads when it needs them. k3 is the row 3.
SKILLS = """
CREATE TABLE skills (
  id INTEGER PRIMARY KEY,              -- a name keeps it, also when the skill comes back after it was removed
  name TEXT NOT NULL UNIQUE,           -- how its file calls it
  description TEXT NOT NULL,           -- what it is for: a line in every prompt
  text TEXT NOT NULL,                  -- the page, as it was when the agent was last opened
  active INTEGER NOT NULL              -- 1: the agent has it; 0: it had it once
);
"""

# Searches of the provider's own tool have a price beside that of the tokens.
SEARCHES = """
ALTER TABLE requests ADD COLUMN searches INTEGER NOT NULL DEFAULT 0;  -- as the response counted them
"""

# Facts that end by themselves, and what of them was never used.
RETENTION = """
ALTER TABLE facts ADD COLUMN expires INTEGER;  -- the end that was given when it was stored; valid_until is no later
CREATE INDEX facts_expires ON facts (expires) WHERE expires IS NOT NULL;
DROP INDEX facts_never_used;
CREATE INDEX facts_never_used ON facts (valid_until, id) WHERE uses = 0 AND purged = 0;
"""

# The messages of a session are listed for the program that recorded them.
SESSIONS = """
CREATE INDEX steps_session ON steps (session) WHERE session IS NOT NULL;
"""

# What a sleep proposes, and what applying it did. No text of a fact or a step is copied: a purge finds it where it is.
SLEEPS = """
CREATE TABLE sleeps (
  id INTEGER PRIMARY KEY,              -- sleep 3 is the row 3
  at INTEGER NOT NULL,                 -- when it began
  step INTEGER NOT NULL,               -- the newest step then
  through_fact INTEGER NOT NULL,       -- facts up to this one were compared with each other
  finished_at INTEGER,                 -- NULL: it was interrupted, and the next one goes on with it
  detail TEXT NOT NULL DEFAULT '{}'    -- JSON: requests, tokens, dollars, what was dropped and why
);
CREATE TABLE sleep_edits (
  id INTEGER PRIMARY KEY,
  sleep INTEGER NOT NULL REFERENCES sleeps (id),
  kind TEXT NOT NULL,                  -- new, merge, supersede, end, key or core
  state TEXT NOT NULL DEFAULT 'open',  -- open, applied, refused, stale (what it is about has changed) or undone
  why TEXT NOT NULL DEFAULT '',        -- it is stale, or was not undone
  reason TEXT NOT NULL,                -- why it is proposed
  asks TEXT NOT NULL,                  -- why a person has to decide; empty: `apply: auto` may apply it
  pages TEXT NOT NULL,                 -- JSON list of the facts that it ends
  keeps TEXT NOT NULL,                 -- JSON list of facts without which it makes no sense
  after TEXT NOT NULL,                 -- JSON list of facts that it stores: text, key, tags, valid_from
  block TEXT,                          -- of core: which block it rewrites
  version INTEGER,                     -- of that block, as it reads before
  value TEXT,                          -- of that block, as it reads afterwards
  sources TEXT NOT NULL,               -- JSON list as in facts: of all that it writes
  quotes TEXT NOT NULL,                -- JSON list of [step, begin, end]: characters of a step that show it
  done TEXT NOT NULL DEFAULT '{}'      -- JSON: the facts it made, those it ended, before and after; the block's version
);
CREATE INDEX sleep_edits_sleep ON sleep_edits (sleep, id);

-- Turns that a model has read in a sleep: none is read twice.
CREATE TABLE sleep_turns (
  turn INTEGER PRIMARY KEY,            -- the step that begins it
  sleep INTEGER NOT NULL REFERENCES sleeps (id)
);
"""

# What a program wanted of one request alone, such as a temperature.
REQUEST_OPTIONS = """
ALTER TABLE requests ADD COLUMN options TEXT NOT NULL DEFAULT '{}';  -- JSON: parameters as they were sent
"""

MIGRATIONS: tuple[str, ...] = (
    BASE, NUMBERED_VECTORS, ANSWERS_WITHOUT_TOOLS, TRUST, TOKEN_VECTORS, SKILLS, SEARCHES, RETENTION,
    SESSIONS, SLEEPS, REQUEST_OPTIONS,
)  # fmt: skip
VERSION = len(MIGRATIONS)
APPLICATION_ID = 0x73706167  # "spag": this file is ours
