"""Which embedder an agent has: as its YAML says, and, for commands that know only its name, as it ran last."""

from __future__ import annotations

import json
from pathlib import Path

from agents.config.agent_config import AgentConfig
from agents.config.nodes import ConfigError, Problem
from pager import EmbedderChoice
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.vectors.chroma_embedder import ChromaEmbedder, is_secret
from pager.vectors.embedder import EmbedderUnavailableError

NOTE = "embedder"


def chosen(config: AgentConfig) -> EmbedderChoice:
    """What finds facts by meaning. One that the file names has to work; an error says what to install or to set."""
    function = config.archival.of_chroma
    if function:
        try:
            return ChromaEmbedder(function.name, function.config)
        except EmbedderUnavailableError as error:
            raise ConfigError([Problem(config.place("archival", "embedder"), str(error))]) from error
    return None if config.archival.embedder == "none" else "default"


def note(memory: Memory, config: AgentConfig) -> None:
    """Write down, without secrets, which one it is."""
    function = config.archival.of_chroma
    told = None
    if function:
        shown = {name: value for name, value in function.config.items() if not is_secret(name)}
        told = json.dumps({"name": function.name, "config": shown})
    elif config.archival.embedder == "none":
        told = json.dumps(None)
    if memory.load_value(NOTE) != told:
        memory.save_value(NOTE, told)


def noted(directory: Path) -> EmbedderChoice:
    """The one with which the agent in `directory` ran last."""
    with MemoryReader.open(directory) as reading:
        told = reading.load_value(NOTE)
    if told is None:
        return "default"
    function = json.loads(told)
    return ChromaEmbedder(function["name"], function["config"]) if function else None
