"""What keeps an agent's directory sound: one writer at a time, commands of others, purging, checks, exports.

`lock` is the lock of the one writing process, `inbox` holds the commands that others send it, `purge` (with `eraser`)
destroys a page, `check` looks for broken laws and repairs what can be made again, `checksum` seals an exported file.
The facades call this room.
"""
