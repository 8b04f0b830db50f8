"""The configuration of an agent that has no YAML file: from the arguments of `Agent(...)`, by the rules of the file.

A value that cannot be used is a ConfigError. Its place is the argument, as `Agent(window=...)`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import NoneType
from typing import Any

from pydantic import ValidationError

from agents.config.agent_config import AgentConfig
from agents.config.error_messages import explain
from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
from agents.config.yaml_file import Document, KeyPath, Written
from agents.meter import Prices, RunLimits
from agents.models.model import Model
from agents.tools.functions import Tool
from pager import BlockSpec, EmbedderChoice, Limits, Prefetch
from pager.errors import brief

OF_MODEL = ("name", *(name for name in vars(Model) if not name.startswith("_")))
_WANTED: dict[str, tuple[Any, str]] = {
    "name": (str, "a text"),
    "instructions": (str, "a text"),
    "core": ((Mapping, NoneType), "a dict of texts, or BlockSpecs, by the names of their blocks"),
    "window": (int | Limits | None, "a number of tokens, or Limits"),
    "memory_tools": (str, "'pager', 'few', 'anthropic' or 'none'"),
    "prefetch": (Prefetch | None, "a Prefetch, such as Prefetch(k=4), or Prefetch(k=0) for none"),
    "skills": (str | Path | None, "the path of a directory"),
    "limits": (RunLimits | None, "RunLimits, such as RunLimits(max_steps=50)"),
    "prices": (Prices | None, "Prices"),
}
# The arguments that give parts of the configuration, by their places in it.
_PLACES: dict[KeyPath, str] = {
    **{(name,): name for name in ("name", "model", "instructions", "core", "window", "tools", "limits", "prices")},
    ("skills",): "skills",
    ("model", "max_output_tokens"): "window", ("core", "limit_tokens"): "window", ("memory",): "memory_tools",
    ("archival", "embedder"): "embedder", ("archival", "prefetch"): "prefetch",
}  # fmt: skip


def from_arguments(
    model: str | Model, tools: Sequence[Callable[..., Any] | Tool], core: Mapping[str, str | BlockSpec] | None,
    window: int | Limits | None, memory_tools: str, embedder: EmbedderChoice, prefetch: Prefetch | None,
    **others: Any,
) -> AgentConfig:  # fmt: skip
    """Return the configuration of an agent with these arguments. Raise ConfigError with all problems.

    `others` are sections as they are. A model object, tools and an embedder object are no data: they are not in it.
    """
    given = {"core": core, "window": window, "memory_tools": memory_tools, "prefetch": prefetch, **others}
    problems = [
        _problem(name, f"give {wanted}, not {brief(given[name])}.")
        for name, (kind, wanted) in _WANTED.items()
        if not isinstance(given[name], kind)
    ]
    if fault := _fault_of(model):
        problems.append(_problem("model", fault))
    if not isinstance(tools, list | tuple):
        problems.append(_problem("tools", f"give a list of functions, not {brief(tools)}."))
    if isinstance(core, Mapping):
        problems += [
            _problem("core", f"give a text or a BlockSpec for the block {brief(name)}, not {brief(block)}.")
            for name, block in core.items()
            if not isinstance(block, str | BlockSpec)  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
        ]
    if problems:
        raise ConfigError(problems)
    sizes = window.given() if isinstance(window, Limits) else {"limit_tokens": window}
    recalled = {} if prefetch is None else {**asdict(prefetch), "from": list(prefetch.kinds)}
    recalled.pop("kinds", None)
    data = {
        **{name: asdict(value) if isinstance(value, RunLimits | Prices) else value for name, value in others.items()},
        "model": {
            "id": model if isinstance(model, str) else model.name,
            "max_output_tokens": sizes.pop("max_output_tokens", None),
        },
        "core": {
            "limit_tokens": sizes.pop("core_tokens", None),
            "blocks": {
                name: {"value": block} if isinstance(block, str) else asdict(block)
                for name, block in (core or {}).items()
            },
        },
        "window": sizes,
        "skills": None if others["skills"] is None else str(others["skills"]),
        "memory": {"tools": memory_tools},
        "archival": {"embedder": "default" if embedder == "default" else "none", "prefetch": recalled},
    }
    document = Document(data, {path: _written(f"Agent({name}=...)") for path, name in _PLACES.items()})
    document.written[()] = _written("Agent(...)")
    try:
        return AgentConfig.model_validate(data, context=document)
    except ValidationError as error:
        raise ConfigError(explain(error, document)) from None


def _fault_of(model: Any) -> str:
    """Return why this cannot be an agent's model; "" if it can."""
    if isinstance(model, str):
        return ""
    wanted = "the id of a model of Anthropic's, or an object with the methods of agents.Model"
    if isinstance(model, type):
        return f"{model.__name__} is a class; give an object of it, such as {model.__name__}()."
    missing = [name for name in OF_MODEL if not hasattr(model, name)]
    if len(missing) == len(OF_MODEL):
        return f"give {wanted}, not {brief(model)}."
    return f"{type(model).__name__} has no {', '.join(missing)}; let it inherit from agents.Model." if missing else ""


def _problem(argument: str, text: str) -> ConfigProblem:
    return ConfigProblem(_written(f"Agent({argument}=...)").value, text)


def _written(place: str) -> Written:
    return Written(ConfigPlace(Path(place)), ConfigPlace(Path(place)))
