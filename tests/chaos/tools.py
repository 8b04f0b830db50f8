"""Tools of the agents. Each call leaves a line in a file that belongs to no worker."""

import os
import time

WITNESS = "CHAOS_WITNESS"
SECONDS = 0.02  # a call takes a while: a worker may die in it


def charge(mark: str) -> str:
    """Charge once."""
    _note("charge", mark)
    return f"charged {mark}"


def look(mark: str) -> str:
    """Look, as often as you like."""
    _note("look", mark)
    return f"looked {mark} " + "and saw a train " * 50


def _note(tool: str, mark: str) -> None:
    file = os.open(os.environ[WITNESS], os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, f"{tool} {mark} {os.getpid()}\n".encode())
    finally:
        os.close(file)
    time.sleep(SECONDS)
