"""An agent's configuration, from its YAML file: strict, complete, and with a place for everything that is wrong.

    >>> config = load(Path("configs/assistant.yaml"), os.environ)
    >>> config.model.id, config.core.blocks["human"].limit_tokens
    ('claude-sonnet-5-5', 1000)

`load` raises a ConfigError that lists every problem with file, line and column. Everything has a default but `name`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from agents.config import yaml_file
from agents.config.fields import Name, Version
from agents.config.nodes import ConfigError, Node, Place, Problem, escape, expand, plain
from agents.config.problems import RULES_BROKEN, explain
from agents.config.sections import (
    ArchivalConfig,
    CoreConfig,
    LimitsConfig,
    MemoryConfig,
    ModelConfig,
    PricesConfig,
    RecallConfig,
    Section,
    Tool,
    WindowConfig,
)
from pager.errors import RejectedError
from pager.limits import Limits
from pager.vectors import chroma_embedder

__all__ = ["AgentConfig", "ConfigError", "load", "render", "render_json"]

# Without window.limit_tokens the model's own window counts, at most this. What fits no such window fits none.
LARGEST_ASSUMED_WINDOW = 200_000
HIDDEN = "(hidden)"
SECRETS_OF_SERVERS = ("env", "headers")
# Where the arguments of Limits.for_window stand in the file, and what goes in when one is not given.
_WINDOW_NUMBERS: dict[str, tuple[tuple[str, str], Any]] = {
    "max_part_tokens": (("window", "max_part_tokens"), None),
    "notify_at": (("window", "notify_at"), 0.70),
    "evict_at": (("window", "evict_at"), 0.85),
    "evict_to": (("window", "evict_to"), 0.50),
    "max_output_tokens": (("model", "max_output_tokens"), None),
    "limit_tokens": (("window", "limit_tokens"), LARGEST_ASSUMED_WINDOW),
}
# Sections that a rule looks at together: when one of them has an error of its own, the rule has to wait.
_RULED_TOGETHER = (("window", "model"), ("limits", "prices"))


class AgentConfig(Section):
    """Who the agent is, which model answers, how large its window is, what it remembers and what it can do."""

    version: Version = Field(default=1, description="The version of this format.")
    name: Name = Field(description="The agent's name, and that of the directory with its memory.")
    extends: str | None = Field(
        default=None,
        exclude=True,
        description="A YAML file that this one is laid over: mappings are joined, lists replaced.",
    )
    model: ModelConfig = Field(default=ModelConfig(), description="Which model answers, and where.")
    instructions: str = Field(
        default="", description="What the agent is to do and how: the beginning of every request."
    )
    window: WindowConfig = Field(default=WindowConfig(), description="How large a request may become.")
    core: CoreConfig = Field(default=CoreConfig(), description="Texts that are in every request.")
    recall: RecallConfig = Field(default=RecallConfig(), description="The conversation's steps.")
    archival: ArchivalConfig = Field(default=ArchivalConfig(), description="Facts on disk.")
    memory: MemoryConfig = Field(default=MemoryConfig(), description="How the agent reaches its memory.")
    tools: Annotated[tuple[Tool, ...], Field(strict=False)] = Field(
        default=(), description="What else the agent can do."
    )
    limits: LimitsConfig = Field(default=LimitsConfig(), description="Where a turn or a run stops.")
    prices: PricesConfig | None = Field(default=None, description="Dollars per million tokens, to count what is spent.")

    _written: Node = PrivateAttr(Node({}, Place(Path("agent.yaml"))))

    def model_post_init(self, context: Any, /) -> None:
        if context is not None:
            self._written = context["written"]

    def place(self, *path: str | int) -> Place:
        """Where this is written, or what it would stand in: what cannot be used is told there. A file that is named
        without a full path is looked for beside that file, which `extends` may have brought."""
        return self._written.at(path).place

    @field_validator("prices")
    @classmethod
    def _price_of_an_hour(cls, prices: PricesConfig | None, info: ValidationInfo) -> PricesConfig | None:
        model = info.data.get("model")
        if prices is None or "cache_write" in prices.model_fields_set or model is None or model.cache_ttl != "1h":
            return prices
        return prices.model_copy(update={"cache_write": prices.input * 2})

    @model_validator(mode="after")
    def _sections_agree(self) -> Self:
        broken = [rule for rule in (self._spending(), self._window()) if rule]
        if broken:
            text = " ".join(f"{'.'.join(path)} {message}" for path, message in broken)
            raise PydanticCustomError(RULES_BROKEN, "{text}", {"text": text, "broken": broken})
        return self

    def _spending(self) -> tuple[tuple[str, ...], str] | None:
        if self.limits.max_usd is None or self.prices is not None:
            return None
        return ("limits", "max_usd"), "needs prices: without them nobody knows what is spent. Add 'prices:'."

    def _window(self) -> tuple[tuple[str, ...], str] | None:
        """What `Limits` says, at the first number without which it would be content."""
        given = {name: getattr(getattr(self, section), key) for name, ((section, key), _) in _WINDOW_NUMBERS.items()}
        given["limit_tokens"] = given["limit_tokens"] or LARGEST_ASSUMED_WINDOW
        said = _refusal(given)
        if said is None:
            return None
        for name, (path, default) in _WINDOW_NUMBERS.items():
            if given[name] != default and _refusal({**given, name: default}) is None:
                return path, f"does not fit: {said}"
        return ("window",), f"does not fit: {said}"


def _refusal(window_numbers: dict[str, Any]) -> str | None:
    try:
        Limits.for_window(**window_numbers)
    except RejectedError as refused:
        return str(refused)
    return None


def load(path: Path, environ: Mapping[str, str]) -> AgentConfig:
    """The agent that `path` describes, its `${VAR}` taken from `environ`. Raises ConfigError with all that is wrong."""
    root, problems = expand(yaml_file.read(path, environ), environ)
    root = _with_files(root, problems)
    data = plain(root)
    try:
        config = AgentConfig.model_validate(data, context={"written": root})
    except ValidationError as error:
        known = {problem.place for problem in problems}  # what could not be expanded is wrong in one way only
        found = [*explain(error, root, AgentConfig), *_rules_broken(data, error, root)]
        raise ConfigError([*problems, *(problem for problem in found if problem.place not in known)]) from None
    if problems := [*problems, *_embedder(config, root)]:
        raise ConfigError(problems)
    return config


def _embedder(config: AgentConfig, root: Node) -> list[Problem]:
    """Only Chroma knows the names and arguments of its embedding functions; it is asked when one is named."""
    chosen = config.archival.of_chroma
    try:
        if chosen:
            chroma_embedder.check(chosen.name, chosen.config)
    except chroma_embedder.EmbedderConfigError as error:
        path = ["archival", "embedder", *(("config", error.argument) if error.argument else ("name",))]
        node = root.at(path)
        return [Problem((node.key_place if error.argument else None) or node.place, f"archival.embedder: {error}")]
    return []


def _rules_broken(data: dict[str, Any], error: ValidationError, root: Node) -> list[Problem]:
    """The rules between sections that are broken; an error within some other section keeps pydantic from looking."""
    wrong = {str(each["loc"][0]) for each in error.errors() if each["loc"]}
    if not wrong:
        return []
    fine = [name for group in _RULED_TOGETHER if not wrong.intersection(group) for name in group]
    try:
        AgentConfig.model_validate({"name": "any", **{name: data[name] for name in fine if name in data}})
    except ValidationError as broken:
        return explain(broken, root, AgentConfig)
    return []


def _with_files(root: Node, problems: list[Problem]) -> Node:
    """The files of core blocks as absolute paths: each is relative to the YAML file in which it is written."""
    blocks = root.find(["core", "blocks"])
    if blocks is None or not isinstance(blocks.value, dict):
        return root
    for name, block in blocks.value.items():
        node = block.find(["file"])
        if node is None or not isinstance(node.value, str) or not node.value:
            continue
        file = (node.place.file.parent / node.value).absolute()
        if not file.is_file():
            path = f"core.blocks.{name}.file"
            problems.append(Problem(node.place, f"{path}: there is no file {file}. Create it, or correct the path."))
        root = root.with_value(["core", "blocks", name, "file"], str(file))
    return root


def render(config: AgentConfig) -> str:
    """The configuration with every default, as YAML that `load` reads again. Keys and a server's env are hidden."""
    return yaml_file.dump(_escaped(_shown(config)))


def render_json(config: AgentConfig) -> str:
    """The same for programs, which expand nothing: `$${` is `${` here."""
    return json.dumps(_shown(config), ensure_ascii=False) + "\n"


def _shown(config: AgentConfig) -> dict[str, Any]:
    data = config.model_dump(mode="json", exclude_none=True)
    if config.model.api_key:
        data["model"]["api_key"] = HIDDEN
    for tool in data["tools"]:
        for name in SECRETS_OF_SERVERS:
            held = tool.get("mcp", {}).get(name, {})
            held.update(dict.fromkeys(held, HIDDEN))
    if isinstance(data["archival"]["embedder"], dict):
        arguments = cast("dict[str, Any]", data["archival"]["embedder"]["config"])
        arguments.update({name: HIDDEN for name in arguments if chroma_embedder.is_secret(name)})
    return data


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_escaped(item) for item in cast("list[Any]", value)]
    return escape(value) if isinstance(value, str) else value
