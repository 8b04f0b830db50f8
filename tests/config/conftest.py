"""Agents' YAML files in a folder of their own, and what is wrong with them."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agents.config.agent_config import AgentConfig, load
from agents.config.errors import ConfigError

EVERYTHING: dict[str, Any] = {
    "version": 1,
    "name": "x",
    "model": {"provider": "vertex", "id": "m", "base_url": "http://x", "max_output_tokens": 100, "thinking": "off"},
    "window": {"limit_tokens": 6000, "notify_at": 0.5, "evict_at": 0.8, "evict_to": 0.4, "max_part_tokens": 500},
    "core": {"limit_tokens": 500, "blocks": {"human": {"value": "v", "limit_tokens": 5, "read_only": True}}},
    "recall": {"digest": {"summarize": {"model": "m"}}},
    "archival": {"embedder": "none", "prefetch": {"k": 0, "budget_tokens": 5, "from": ["turns"]}},
    "memory": {"tools": "none"},
    "tools": [
        {"use": "a.b:c", "idempotent": True, "approve": "always", "timeout_seconds": 5},
        {"mcp": {"command": ["a"], "env": {"A": "b"}}, "only": ["c"]},
        {"mcp": {"url": "http://x"}, "approve": "never"},
    ],
    "limits": {"max_steps": 5, "max_usd": 1.0, "max_minutes": 0.5},
    "prices": {"input": 1.0, "output": 2, "cache_read": 0, "cache_write": 0.5},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str | bytes, name: str = "a.yaml") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
    return path


def read(text: str, **environ: str) -> AgentConfig:
    return load(write(text), environ)


def problems(path: Path, **environ: str) -> list[str]:
    """The lines of the error with which a file is refused."""
    with pytest.raises(ConfigError) as error:
        load(path, environ)
    return str(error.value).splitlines()
