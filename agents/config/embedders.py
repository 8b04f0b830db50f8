"""How an agent finds facts: as its YAML says. A command that is given only the agent's name trusts no other word."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

from agents.config.agent_config import AgentConfig, load
from agents.config.errors import ConfigError, ConfigProblem
from pager import (
    ChromaEmbedder,
    ChromaServer,
    EmbedderChoice,
    EmbedderUnavailableError,
    Memory,
    MemoryReader,
    NotFoundError,
)
from pager.home import Place
from pager.safety.redaction import HIDDEN, redacted

EMBEDDER = "embedder"  # the value under which it is stored


class Options(TypedDict):
    """What `Memory.open` is told."""

    embedder: EmbedderChoice
    index: ChromaServer | None


def from_config(config: AgentConfig) -> Options:
    """Return what the file names. Raise ConfigError, with what to install or set, if the embedder cannot work."""
    function, index = config.archival.of_chroma, config.archival.index
    embedder: EmbedderChoice = None if config.archival.embedder == "none" else "default"
    if function:
        try:
            embedder = ChromaEmbedder(function.name, function.config)
        except EmbedderUnavailableError as error:
            raise ConfigError([ConfigProblem(config.place("archival", "embedder"), str(error))]) from error
    return {"embedder": embedder, "index": None if index == "local" else ChromaServer(**index.model_dump())}


def public_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return an embedder's arguments with its secrets hidden."""
    shown = {name: redacted(value) if isinstance(value, str) else value for name, value in arguments.items()}
    return {name: HIDDEN if ChromaEmbedder.is_secret(name) else value for name, value in shown.items()}


def store(memory: Memory, config: AgentConfig) -> None:
    """Store in the memory whether it has our own embedder, none, or the name of another."""
    function, embedder = config.archival.of_chroma, None
    if function or config.archival.embedder == "none":
        embedder = json.dumps(function and function.name)
    if memory.load_value(EMBEDDER) != embedder:
        memory.save_value(EMBEDDER, embedder)


def for_command(place: Place, file: Path | None) -> Options:
    """Return what an agent's YAML names; without it our own embedder, or none if the agent ran with another one.

    What a database names is not made: it may come from anybody, and an embedder is sent every text and a key.
    """
    if file is not None:
        return from_config(load(file, os.environ))
    is_ours = True
    with suppress(NotFoundError), MemoryReader.open(place) as reader:  # not made yet, or a kill interrupted that
        is_ours = reader.load_value(EMBEDDER) is None
    return {"embedder": "default" if is_ours else None, "index": None}
