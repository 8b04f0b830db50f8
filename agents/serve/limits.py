"""What the server takes, and how long it keeps it. `selfpager serve --help` names the defaults."""

import resource
from contextlib import suppress
from dataclasses import dataclass

from pager.errors import RejectedError

FILES_EACH = 5  # of an open agent four, and more if it mounts a memory
OTHER_FILES = 256  # of clients, models, Postgres and the view


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """The limits of one server."""

    open_agents: int = 100  # an open one has four file descriptors and 0.6 MB
    threads: int = 16  # turns at once
    line: int = 8  # requests that wait for one agent
    whole_line: int = 256  # and for all agents
    body_bytes: int = 1 << 20
    body_seconds: float = 30.0  # in which a body has to be here
    answer_seconds: float = 600.0  # after which a request is told that its turn goes on without it
    grace_seconds: float = 20.0  # in which running turns may end when the server stops
    keep_seconds: float = 3600.0  # for which the events of a turn are kept
    keep_bytes: int = 64 << 20  # of all of them


def allow_files(open_agents: int) -> None:
    """Let this process have as many files open as its agents need. Raises RejectedError if the system does not."""
    needed = open_agents * FILES_EACH + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with suppress(ValueError, OSError):  # some systems have a limit below the hard one
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        fitting = (soft - OTHER_FILES) // FILES_EACH
        way = f"Give --open {fitting}, or raise" if fitting > 0 else "Raise"
        text = f"{open_agents} open agents need {needed} file descriptors, and this process may have {soft}"
        raise RejectedError(f"{text}. {way} the limit (ulimit -n; LimitNOFILE of systemd).")
