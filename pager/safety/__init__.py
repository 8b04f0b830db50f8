"""What keeps others from doing harm. Every room may call it; it calls none.

- `foreign_files`: read files that anybody may have put in place, within limits, never through a device or a queue.
- `forks`: what a forked child may not use of its parent.
- `address_space`: if there is room for a native library, which would end the process without.
- `redaction`: hide secrets in texts of others.
- `sources`: where a text came from, and if it is trusted.
"""
