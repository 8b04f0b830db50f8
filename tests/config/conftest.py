"""Agents' YAML files in a folder of their own, and what is wrong with them."""

from pathlib import Path
from textwrap import dedent

import pytest

from agents.config.agent_config import AgentConfig, load
from agents.config.errors import ConfigError


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
