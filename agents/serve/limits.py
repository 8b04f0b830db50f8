"""What the server takes, and how long it keeps it. `selfpager serve --help` names the defaults."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """The limits of one server."""

    open_agents: int = 100  # an open one has four file descriptors and 0.8 MB
    threads: int = 16  # turns at once
    line: int = 8  # requests that wait for one agent
    whole_line: int = 256  # and for all agents
    body_bytes: int = 1 << 20
    body_seconds: float = 30.0  # in which a body has to be here
    answer_seconds: float = 600.0  # after which a request is told that its turn goes on without it
    grace_seconds: float = 20.0  # in which running turns may end when the server stops
    keep_seconds: float = 3600.0  # for which the events of a turn are kept
    keep_bytes: int = 64 << 20  # of all of them
