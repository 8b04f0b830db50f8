"""How an agent finds facts: as its YAML says, and, for commands that know only the agent's name, as it ran last."""

import json
from pathlib import Path
from typing import Any, TypedDict

from agents.config.agent_config import AgentConfig
from agents.config.errors import ConfigError, ConfigProblem
from pager import ChromaEmbedder, ChromaServer, EmbedderChoice, EmbedderUnavailableError, Memory, MemoryReader

EMBEDDER, INDEX = "embedder", "index"  # the values under which they are stored


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


def store(memory: Memory, config: AgentConfig) -> None:
    """Store in the memory, without secrets, which embedder and which index it has."""
    function, index, embedder = config.archival.of_chroma, config.archival.index, None
    if function:
        shown = {name: value for name, value in function.config.items() if not ChromaEmbedder.is_secret(name)}
        embedder = json.dumps({"name": function.name, "config": shown})
    elif config.archival.embedder == "none":
        embedder = json.dumps(None)
    server = None if index == "local" else index.model_dump_json(exclude={"headers"})
    for name, text in ((EMBEDDER, embedder), (INDEX, server)):
        if memory.load_value(name) != text:
            memory.save_value(name, text)


def stored(directory: Path) -> Options:
    """Return what the agent in `directory` had when it ran last."""
    with MemoryReader.open(directory) as reader:
        embedder = reader.load_value(EMBEDDER)
    function: dict[str, Any] | None = json.loads(embedder or "null")
    chosen = ChromaEmbedder(function["name"], function["config"]) if function else None
    return {"embedder": "default" if embedder is None else chosen, "index": stored_index(directory)}


def stored_index(directory: Path) -> ChromaServer | None:
    """Return the server that held its index then, if there was one."""
    with MemoryReader.open(directory) as reader:
        server = reader.load_value(INDEX)
    return ChromaServer(**json.loads(server)) if server else None
