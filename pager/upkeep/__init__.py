"""Looking after an agent's directory: who may write it, what others send to it, and its repair, copies and erasure.

lock.py    one writing process per agent, and who it is
inbox.py   commands from other processes: left as files, applied exactly once
check.py   are the files consistent? With `fix`, what can be rebuilt is rebuilt
purge.py   destroy a page and every copy of its text; eraser.py takes a text out of texts and JSON
withdrawal.py  take the last turn back, with the facts and core edits that were made in it
export.py  a copy of a running agent in one file, with a checksum

Promises that a command is applied once, and that a purge leaves no copy.
Called by the facades (`Memory`, `MemoryReader`, `Home`); programs may send commands with `pager.send_command`.
"""
