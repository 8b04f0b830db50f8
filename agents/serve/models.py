"""The models of configurations. Agents of one configuration share its model, and so its connections to the provider:
a connection for each open agent would be a file descriptor, a certificate store and a handshake each."""

import os
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Lock

from agents.assembly import make_model
from agents.config.agent_config import load
from agents.models.model import Model


class Models:
    """The models of files. `close` closes all of them."""

    def __init__(self) -> None:
        self._made: dict[Path, tuple[int, Model | None]] = {}  # of each file as it was at a time
        self._opened = ExitStack()
        self._lock = Lock()

    def of(self, file: Path) -> Model | None:
        """Return the model of a file, another one after the file has changed. None for a script: each agent begins it
        anew."""
        with self._lock:
            changed = file.stat().st_mtime_ns
            known = self._made.get(file)
            if known is None or known[0] != changed:
                config, model = load(file, os.environ), None
                if config.model.provider != "scripted":
                    model = self._opened.enter_context(closing(make_model(config)))
                known = self._made[file] = changed, model  # agents that are open go on with the one before
            return known[1]

    def close(self) -> None:
        """Close them, after the agents."""
        self._opened.close()
