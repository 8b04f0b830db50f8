"""The database of one agent: every table, and the numbered migrations that lead to it.

The file is the truth; Chroma and the full-text tables can be made again from it. Moments are whole microseconds in
UTC. `step` columns name the newest step at that moment, so that every row can be placed in the conversation.
Migrations are never edited once released: a change is a new function's worth of SQL at the end of `MIGRATIONS`.
"""

from __future__ import annotations

BASE = """
-- Single values: the embedder's fingerprint, whether a purge is under way, ...
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- What must stay whole in the conversation, and turns recorded from elsewhere. s45 is the row 45.
CREATE TABLE steps (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('user', 'assistant', 'record')),
  turn INTEGER NOT NULL,               -- the id of the user step that began the turn; a record's is its own
  role TEXT NOT NULL,                  -- who spoke: user, assistant, or what record() was told
  name TEXT,                           -- the speaker's name, where one is known
  session TEXT,                        -- which conversation a record belongs to
  at INTEGER NOT NULL,
  stop_reason TEXT,                    -- of an assistant step, as received
  continues INTEGER NOT NULL DEFAULT 0,  -- 1: goes on where a paused step stopped; the two are never parted
  ends_turn INTEGER NOT NULL DEFAULT 0,  -- 1: after this step the turn is answered
  done INTEGER NOT NULL DEFAULT 0,     -- 1: what this user step asked for is done, and is not to be done again
  purged INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX steps_turn ON steps (turn) WHERE kind <> 'record';

-- The pieces of a step. A part that was spilled is the page x<id>.
CREATE TABLE parts (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL REFERENCES steps (id),
  kind TEXT NOT NULL CHECK (kind IN ('said', 'recalled', 'notice', 'update')),
  slot TEXT NOT NULL CHECK (slot IN ('user', 'reply', 'result')),  -- which message of the step it stands in
  searchable INTEGER NOT NULL,         -- 1: in said_words; results of memory tools are not
  at INTEGER NOT NULL,
  block TEXT NOT NULL                  -- the content block as JSON, exactly as it came
);
CREATE INDEX parts_step ON parts (step);
CREATE INDEX parts_at ON parts (at) WHERE searchable = 1;

-- How the prompt carries a part from an epoch on, where that is not as it came. The newest row up to an epoch holds.
CREATE TABLE forms (
  part INTEGER NOT NULL REFERENCES parts (id),
  epoch INTEGER NOT NULL,
  block TEXT,                          -- NULL: left out
  PRIMARY KEY (part, epoch)
) WITHOUT ROWID;

-- Tokens of a part in its present form, by kind of text, so that nothing is counted twice.
CREATE TABLE sizes (
  part INTEGER PRIMARY KEY REFERENCES parts (id),
  words INTEGER NOT NULL, digits INTEGER NOT NULL, other INTEGER NOT NULL,
  code INTEGER NOT NULL, media INTEGER NOT NULL
);

-- Tool calls of the assistant.
CREATE TABLE calls (
  id TEXT PRIMARY KEY,                 -- unique in the agent's life, as the prompt carries it
  step INTEGER NOT NULL REFERENCES steps (id),
  part INTEGER NOT NULL REFERENCES parts (id),
  began_at INTEGER,                    -- the intent: from here on it may have run
  waiting INTEGER NOT NULL DEFAULT 0,  -- 1: waits for a person's approval and was not run
  result INTEGER REFERENCES parts (id)
) WITHOUT ROWID;
CREATE INDEX calls_open ON calls (step) WHERE result IS NULL;

-- The life of one unchanged prompt prefix, as it was sent.
CREATE TABLE epochs (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  step INTEGER NOT NULL,
  reason TEXT NOT NULL,
  first_step INTEGER NOT NULL,         -- the conversation stands in the messages from this step on
  tools TEXT NOT NULL,                 -- JSON, as sent
  system TEXT NOT NULL,
  preamble TEXT NOT NULL,              -- JSON list of blocks: digest, pinned pages, the request if it was evicted
  digest TEXT NOT NULL,                -- JSON list of the digest's lines as data
  settings TEXT NOT NULL,              -- JSON: what the epoch opened with (model, thinking, limits)
  sizes TEXT NOT NULL,                 -- JSON: tokens by kind of tools, system, core and preamble
  noticed_step INTEGER,                -- when the agent was told that the window fills
  through_step INTEGER                 -- the newest step when it ended; NULL while it lives
);

-- Every answered request: from this and the steps it can be made again byte for byte.
CREATE TABLE requests (
  step INTEGER PRIMARY KEY REFERENCES steps (id),  -- the assistant step that answered it
  epoch INTEGER NOT NULL REFERENCES epochs (id),
  through_part INTEGER NOT NULL,       -- the last part it held
  mark_part INTEGER,                   -- the last part of the request before, where a cache mark stands
  at INTEGER NOT NULL,
  model TEXT NOT NULL,
  estimate INTEGER NOT NULL,           -- what we thought its input was
  input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER  -- what the response said
);

-- Steps and pages in the prompt, as half-open intervals: in the requests that follow step from_step, up to until_step.
CREATE TABLE residency (
  page TEXT NOT NULL,
  how TEXT NOT NULL,                   -- step, paged_in, pinned, request, recalled
  from_step INTEGER NOT NULL,
  until_step INTEGER NOT NULL DEFAULT 1152921504606846976,  -- FOREVER: still there
  holder INTEGER,                      -- the step whose leaving takes the page with it
  reason TEXT NOT NULL DEFAULT ''      -- why it left
);
CREATE INDEX residency_span ON residency (until_step, from_step);
CREATE INDEX residency_page ON residency (page, until_step);

-- Every version of every core block; the newest of a name is what it reads now.
CREATE TABLE blocks (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  description TEXT NOT NULL,
  limit_tokens INTEGER NOT NULL,
  used_tokens INTEGER NOT NULL,
  read_only INTEGER NOT NULL,
  file TEXT,
  retired INTEGER NOT NULL DEFAULT 0,
  place INTEGER NOT NULL,              -- order in the prompt
  actor TEXT NOT NULL,
  step INTEGER NOT NULL,
  at INTEGER NOT NULL,
  unseen INTEGER NOT NULL              -- 1: the agent has not been told yet
);
CREATE INDEX blocks_name ON blocks (name, id);
CREATE INDEX blocks_unseen ON blocks (id) WHERE unseen = 1;

-- Facts with all their versions. f12 is the row 12.
CREATE TABLE facts (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL,
  key TEXT,
  tags TEXT NOT NULL DEFAULT '[]',     -- JSON list, as given
  valid_from INTEGER NOT NULL,
  stated INTEGER NOT NULL,             -- 1: valid_from was given, not just the moment of storing
  valid_until INTEGER,                 -- NULL: still true
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  step INTEGER NOT NULL,
  supersedes INTEGER REFERENCES facts (id),
  superseded_by INTEGER REFERENCES facts (id),
  forgotten TEXT,                      -- the reason
  purged INTEGER NOT NULL DEFAULT 0,
  uses INTEGER NOT NULL DEFAULT 0,     -- how often a search or a page_in brought it back
  used_at INTEGER
);
CREATE UNIQUE INDEX facts_current ON facts (key)
  WHERE key IS NOT NULL AND superseded_by IS NULL AND forgotten IS NULL AND purged = 0;
CREATE INDEX facts_key ON facts (key) WHERE key IS NOT NULL;

CREATE TABLE fact_tags (
  tag TEXT NOT NULL,
  fact INTEGER NOT NULL REFERENCES facts (id),
  PRIMARY KEY (tag, fact)
) WITHOUT ROWID;

-- What Chroma's index is made from: float32, unit length.
CREATE TABLE vectors (
  fact INTEGER PRIMARY KEY REFERENCES facts (id),
  vector BLOB NOT NULL
);
CREATE INDEX vectors_fact ON vectors (fact);  -- narrow: counting reads a few pages, not every vector

-- Pages that a person or the agent keeps in the prompt.
CREATE TABLE pins (
  page TEXT PRIMARY KEY,
  offset INTEGER NOT NULL,             -- in characters: which piece of a long page
  length INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  step INTEGER NOT NULL,
  actor TEXT NOT NULL,
  unseen INTEGER NOT NULL              -- 1: not in the prompt yet
) WITHOUT ROWID;

-- Every movement: what, when, why, who asked, how many tokens.
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  step INTEGER NOT NULL,
  event TEXT NOT NULL,
  page TEXT,
  reason TEXT NOT NULL,
  actor TEXT NOT NULL,
  tokens INTEGER NOT NULL DEFAULT 0,
  detail TEXT NOT NULL DEFAULT '{}'    -- JSON
);
CREATE INDEX ledger_page ON ledger (page) WHERE page IS NOT NULL;
CREATE INDEX ledger_event ON ledger (event, id);
CREATE TRIGGER ledger_keeps BEFORE DELETE ON ledger
  BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger
  WHEN NOT EXISTS (SELECT 1 FROM meta WHERE key = 'purging')
  BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;

-- Commands that others left in the inbox and that have taken effect (or were refused).
CREATE TABLE commands (
  id TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  outcome TEXT NOT NULL
) WITHOUT ROWID;

-- What was learned about a model's tokenizer.
CREATE TABLE tokenizers (
  model TEXT PRIMARY KEY,
  state TEXT NOT NULL
) WITHOUT ROWID;

-- Full text. Contentless: the words only, made from parts and facts, rowid is theirs.
CREATE VIRTUAL TABLE said_words USING fts5 (text, content='', tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE fact_words USING fts5 (text, content='', tokenize='porter unicode61 remove_diacritics 2');
"""

MIGRATIONS: tuple[str, ...] = (BASE,)
VERSION = len(MIGRATIONS)
APPLICATION_ID = 0x73706167  # "spag": this file is ours
