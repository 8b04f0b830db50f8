"""Agents of a home as they are served: each with the configuration that it was made from.

An agent remembers the name of its configuration. One that was made on the command line has that of its own name.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from agents.agent import Agent
from agents.config.agent_config import load
from agents.explain import AnyMemory
from agents.loop import Approve
from agents.models.patience import Patience
from agents.schedule import begin_due, next_due
from agents.serve.errors import ApiError
from agents.serve.models import Models
from pager.clock import Clock
from pager.errors import OlderFormatError, RejectedError
from pager.home import Home
from pager.reader import MemoryReader

MADE_FROM = "serve:config"  # the value in a memory
TASK_OUTAGE_SECONDS = 12 * 3600.0


class Instances:
    """Opens, makes and removes the agents of a home. `close` closes their models."""

    def __init__(self, home: Home, files: Sequence[Path], clock: Clock) -> None:
        self.home = home
        self._clock = clock
        self._files: dict[str, Path] = {}
        times: dict[str, list[str]] = {}
        self._making = Lock()  # two that make the same agent at once get the same answer
        self._models = Models()
        self.close = self._models.close
        for file in files:
            made = load(file, os.environ)  # a file that cannot be used is told of at the start
            name = made.name
            if name in self._files:
                text = f"{self._files[name]} and {file} have the same name {name!r}"
                raise RejectedError(f"{text}; give one of them another 'name'.")
            self._files[name] = file
            if made.schedule or made.sleep.when != "off":
                times[name] = [made.sleep.when, *(each.model_dump_json() for each in made.schedule)]
        # When agents of which configuration begin something by themselves.
        self.times = json.dumps(times, sort_keys=True)

    @property
    def configs(self) -> list[str]:
        """Return the names of the configurations."""
        return sorted(self._files)

    def config_of(self, name: str) -> str | None:
        """Return the name of the configuration of an agent; None if it has none here."""
        with self.read(name, embedder=None) as reader:
            return self.config_in(reader, name)

    def read(self, name: str, **options: Any) -> MemoryReader:
        """Open an agent for reading, after it was brought up to this format if that is newer."""
        try:
            return self.home.read(name, **options)
        except OlderFormatError:
            self.home.open(name, embedder=None).close()
            return self.home.read(name, **options)

    def config_in(self, memory: AnyMemory, name: str) -> str | None:
        """Return the same, from the agent's memory."""
        config = memory.load_value(MADE_FROM) or name
        return config if config in self._files else None

    def has_mounts(self, name: str) -> bool:
        """Return True if the agent's configuration is here and names shared memories."""
        config = self.config_of(name)
        return config is not None and bool(load(self._files[config], os.environ).mounts)

    def open(self, name: str, approve: Approve, *, task: bool) -> Agent:
        """Open an agent that exists. Raises ApiError (409) if its configuration is not here."""
        config = self.config_of(name)
        if config is None:
            text = "this agent has no configuration here, so it can be read but does not answer."
            advice = f"POST /v1/agents with its id and a config gives it one; there are: {', '.join(self.configs)}."
            raise ApiError(409, "no_configuration", text, advice)
        return self._load(config, name, approve, task=task)

    def _load(self, config: str, name: str, approve: Approve, *, task: bool) -> Agent:
        patience = Patience(total_seconds=TASK_OUTAGE_SECONDS) if task else None
        file = self._files[config]
        return Agent.load(
            file, home=self.home, as_name=name, approve=approve, patience=patience, clock=self._clock, task=task,
            model=self._models.of(file),
        )  # fmt: skip

    def make(self, name: str, config: str | None) -> bool:
        """Make an agent, or give one that has none a configuration. Return False if it was made so before."""
        if config is None and len(self._files) == 1:
            config = next(iter(self._files))
        if config not in self._files:
            text = f"there is no configuration {config!r}." if config else "give the name of a configuration."
            raise ApiError(400, "rejected", text, f"There are: {', '.join(self.configs) or 'none'}.")
        with self._making:
            return self._make(name, config)

    def _make(self, name: str, config: str) -> bool:
        if self.home.exists(name):
            has = self.config_of(name)
            if has == config:
                return False
            if has is not None:
                text = f"this agent exists, made from {has!r}."
                raise ApiError(409, "conflict", text, "Choose another id, or DELETE it first.")
        with self.home.remove_if_failed(name), self._load(config, name, lambda _: None, task=False) as agent:
            agent.memory.save_value(MADE_FROM, config)
            begin_due(agent)  # its schedule counts from now on
            due = next_due(agent)
        if due:
            self.home.set_due(name, due)
        return True
