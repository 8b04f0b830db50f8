"""The embedder of an agent: as its YAML names it, and, for commands that know only the agent's name, as it ran last."""

import json
from pathlib import Path

from agents.config.agent_config import AgentConfig
from agents.config.errors import ConfigError, ConfigProblem
from pager import ChromaEmbedder, EmbedderChoice, EmbedderUnavailableError, Memory, MemoryReader

STORED_AS = "embedder"


def from_config(config: AgentConfig) -> EmbedderChoice:
    """Return the embedder that the file names. Raise ConfigError, with what to install or set, if it cannot work."""
    function = config.archival.of_chroma
    if function:
        try:
            return ChromaEmbedder(function.name, function.config)
        except EmbedderUnavailableError as error:
            raise ConfigError([ConfigProblem(config.place("archival", "embedder"), str(error))]) from error
    return None if config.archival.embedder == "none" else "default"


def store(memory: Memory, config: AgentConfig) -> None:
    """Store in the memory, without secrets, which embedder it has."""
    function, text = config.archival.of_chroma, None
    if function:
        shown = {name: value for name, value in function.config.items() if not ChromaEmbedder.is_secret(name)}
        text = json.dumps({"name": function.name, "config": shown})
    elif config.archival.embedder == "none":
        text = json.dumps(None)
    if memory.load_value(STORED_AS) != text:
        memory.save_value(STORED_AS, text)


def stored(directory: Path) -> EmbedderChoice:
    """Return the embedder with which the agent in `directory` ran last."""
    with MemoryReader.open(directory) as reader:
        text = reader.load_value(STORED_AS)
    if text is None:
        return "default"
    function = json.loads(text)
    return ChromaEmbedder(function["name"], function["config"]) if function else None
