"""How much memory native libraries can still map. Where there is too little, they end the process instead of failing.

Without a limit (`ulimit -v`, RLIMIT_AS), which is the rule, nothing is measured.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

TOKEN_TABLE_MB = 96
ARRAYS_MB = 96 + 40 * (os.cpu_count() or 1)  # numpy, whose linear algebra takes a buffer for each core
DEFAULT_EMBEDDER_MB = 448
INDEX_MB = 512 + 64 * (os.cpu_count() or 1)  # its threads reserve most of it


def lacking(what: str, needed_mb: int) -> str:
    """Return why there is too little address space for `what`, and what to do; empty if there is enough."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return ""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    used = 0
    with suppress(OSError):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    if limit - used >= needed_mb << 20:
        return ""
    sizes = f"it is limited to {limit >> 20} MB, of which {used >> 20} MB are taken, and {needed_mb} MB more are needed"
    return f"there is too little address space for {what}: {sizes}. Raise the limit (ulimit -v)."


def lacking_to_open() -> str:
    """Return why no memory can be opened, and what to do; empty if there is enough."""
    needed = TOKEN_TABLE_MB * ("tiktoken" not in sys.modules) + ARRAYS_MB * ("numpy" not in sys.modules)
    return lacking("a memory", needed)
