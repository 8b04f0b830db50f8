"""The log: an agent whose truth is in Postgres. Its pager.db is a cache of this process, gone when it is closed.

Promises that a commit is acknowledged after Postgres has committed it, and only by the owner (`fence`) and in order
(`seq`). After anything else (a time-out, a lost connection, another owner) the cache is dropped: every further
statement raises AgentLostError, and the agent has to be opened again, here or elsewhere.

wal.py       the pages of each commit, from SQLite's write-ahead log
pages.py     the packed form of pages
seal.py      rows in clear, or encrypted for their place
cipher.py    the only file that knows cryptography
keys.py      the keys of agents, and the master keys that wrap them
address.py   the options and the hosts in an address
failures.py  errors of Postgres, for a person
postgres.py  the only file that knows psycopg: connections, time limits, errors
pool.py      connections that are used again
tables.py    the tables in Postgres
claim.py     what a process holds of an agent that it owns
rows.py      who owns an agent, and its commits
states.py    folding the log into chunks, restoring an agent as it is or was
past.py      what is kept of its past, and commits packed together
copy.py      the copy of a reader, which follows the commits
copies.py    which copies there are, for a purge
commands.py  commands of other processes
leases.py    the leases of this process, renewed together
cache.py     the directories in which it works
log.py       `Log`, which `Database` calls at each commit, and which folds the log into chunks
place.py     `PostgresPlace` and `Agents`: where `Home` finds agents

`pager.home` calls it when a home is an address; nobody else does. Nothing of it is loaded before.
"""
