"""An agent's configuration, from its YAML file: strict, complete, and with a place for everything that is wrong.

    >>> config = load(Path("configs/assistant.yaml"), os.environ)
    >>> config.model.id, config.core.blocks["human"].limit_tokens
    ('claude-sonnet-5-5', 800)

`load` raises a ConfigError that lists every problem with file, line and column. Everything has a default but `name`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, field_validator

from agents.config import sections, tool_sections
from agents.config.error_messages import explain, rule_error
from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
from agents.config.field_types import Name, Text, Version
from agents.config.sections import PricesConfig, Section, WindowConfig
from agents.config.yaml_file import Document, Written, read
from pager import ChromaEmbedder, EmbedderConfigError, Limits, RejectedError

# Without window.limit_tokens the model's own window counts, at most this. What fits no such window fits none.
LARGEST_WINDOW = 200_000
MAX_HELPERS_DEEP = 3  # an agent's helpers, their helpers, and theirs
# The arguments of Limits.for_window, by their places in the file. The first that does not fit is blamed.
_WINDOW_ARGUMENTS = (
    *(("window", key) for key in ("max_part_tokens", "notify_at", "evict_at", "evict_to")),
    ("model", "max_output_tokens"),
    ("window", "limit_tokens"),
)


class AgentConfig(Section):
    """An agent: its name, its model, the size of its window, its memory and its tools."""

    version: Version = 1
    """The version of this format."""
    name: Name
    """The agent's name, and that of the directory with its memory."""
    extends: str | None = Field(default=None, exclude=True)
    """A YAML file that this one is laid over: mappings are joined, lists replaced."""
    model: sections.ModelConfig = sections.ModelConfig()
    instructions: str = ""
    """The agent's task and manner: the beginning of every request."""
    window: WindowConfig = Field(default=WindowConfig(), validate_default=True)
    core: sections.CoreConfig = sections.CoreConfig()
    recall: sections.RecallConfig = sections.RecallConfig()
    archival: sections.ArchivalConfig = sections.ArchivalConfig()
    memory: sections.MemoryConfig = sections.MemoryConfig()
    mounts: Annotated[tuple[sections.MountConfig, ...], Field(strict=False)] = ()
    """Memories that this agent shares with others."""
    sleep: sections.SleepConfig = sections.SleepConfig()
    schedule: Annotated[tuple[sections.ScheduleConfig, ...], Field(strict=False)] = ()
    """What the agent begins by itself, and when. `selfpager serve` does it."""
    tools: Annotated[tuple[tool_sections.Tool, ...], Field(strict=False)] = ()
    """The agent's other tools."""
    skills: Text | None = None
    """A directory of skills, relative to this file: folders with a SKILL.md, which begins with its name and description
    between two lines '---'. The agent reads a skill when it needs it."""
    output: Text | None = None
    """What the result of a task has to fit: a file with a JSON schema, relative to this file, or a pydantic class as
    'package.module:Class'."""
    limits: sections.LimitsConfig = sections.LimitsConfig()
    prices: PricesConfig | None = Field(default=None, validate_default=True)
    """Dollars per million tokens, to count what is spent."""

    _helpers: dict[int, "AgentConfig"] = PrivateAttr({})
    _helps: "AgentConfig | None" = PrivateAttr(None)
    _document: Document = PrivateAttr(
        Document({}, {(): Written(ConfigPlace(Path("agent.yaml")), ConfigPlace(Path("agent.yaml")))})
    )

    def model_post_init(self, context: Any, /) -> None:
        """Keep the file's document, from which `place` is read."""
        if context is not None:
            self._document = context

    def place(self, *path: str | int) -> ConfigPlace:
        """Return where this is written, or the nearest part above it that exists. A file that is named without a full
        path is looked for beside that file, which `extends` may have brought."""
        return self._document.at(*path).value

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the YAML files that describe this agent: its own and those that it extends."""
        return self._document.files

    @property
    def helpers(self) -> Mapping[int, "AgentConfig"]:
        """Return the agents that help this one, by the numbers of their tools."""
        return self._helpers

    def add_helper(self, number: int, helper: "AgentConfig") -> None:
        """Give the agent a helper, as the tool with this number."""
        self._helpers[number] = helper
        helper._helps = self

    @property
    def team(self) -> list["AgentConfig"]:
        """Return all agents that work together with this one: whom it helps, itself, and the helpers of all of them."""
        first = self
        while first._helps:
            first = first._helps
        found = [first]
        for each in found:
            found += each._helpers.values()
        return found

    def limits_of(self, limit_tokens: int) -> Limits:
        """Return the limits with a window of this size, which a model may have told."""
        given: dict[str, Any] = {**self.window.model_dump(), "limit_tokens": limit_tokens}
        core, reply = self.core.limit_tokens, self.model.max_output_tokens
        return Limits.for_window(**given, core_tokens=core, max_output_tokens=reply)

    # Rules between sections: a validator sees the sections above its own, as far as they are right themselves.

    @field_validator("window")
    @classmethod
    def _window_fits(cls, window: WindowConfig, info: ValidationInfo) -> WindowConfig:
        """Accept what `Limits` accepts; otherwise blame the first number without which it would."""
        if "model" not in info.data:
            return window
        above: dict[str, Section] = {"window": window, "model": info.data["model"]}
        given = {key: getattr(above[section], key) for section, key in _WINDOW_ARGUMENTS}
        if reason := _reason_not_to_fit(given):
            for section, key in _WINDOW_ARGUMENTS:
                default = type(above[section]).model_fields[key].default
                if given[key] != default and not _reason_not_to_fit({**given, key: default}):
                    raise rule_error((section, key), f"does not fit: {reason}")
            raise rule_error(("window",), f"does not fit: {reason}")
        return window

    @field_validator("memory")
    @classmethod
    def _tools_of_provider(cls, memory: sections.MemoryConfig, info: ValidationInfo) -> sections.MemoryConfig:
        model = info.data.get("model")
        if memory.tools == "anthropic" and model and model.provider == "openai":
            why = "is a tool of the Messages API, which 'provider: openai' does not have; use pager or none."
            raise rule_error(("memory", "tools"), f"anthropic {why}")
        return memory

    @field_validator("mounts")
    @classmethod
    def _mounts_are_others(cls, mounts: tuple[sections.MountConfig, ...], info: ValidationInfo) -> Any:
        """Refuse a memory that is the agent's own, or mounted twice, and a block that is there already."""
        core = info.data.get("core")
        taken, blocks = {info.data.get("name")}, {*core.blocks} if core else set[str]()
        for number, mount in enumerate(mounts):
            if mount.memory in taken:
                raise rule_error(
                    ("mounts", number, "memory"), f"{mount.memory} is the agent's own, or mounted already."
                )
            if twice := blocks.intersection(mount.core):
                raise rule_error(("mounts", number, "core"), f"there is a core block {min(twice)} already.")
            taken.add(mount.memory)
            blocks |= {*mount.core}
        return mounts

    @field_validator("tools")
    @classmethod
    def _servers_run_them(cls, tools: tuple[Any, ...], info: ValidationInfo) -> tuple[Any, ...]:
        model = info.data.get("model")
        for number, tool in enumerate(tools):
            if isinstance(tool, tool_sections.ProviderTool) and model and model.provider in ("openai", "scripted"):
                why = f"is run by the servers of the Messages API, which 'provider: {model.provider}' does not have"
                where = ("tools", number, "server")
                raise rule_error(where, f"{tool.server} {why}; use 'builtin: web' or leave it out.")
        return tools

    @field_validator("prices")
    @classmethod
    def _prices_suffice(cls, prices: PricesConfig | None, info: ValidationInfo) -> PricesConfig | None:
        model, limits = info.data.get("model"), info.data.get("limits")
        if prices is None and limits and limits.max_usd is not None:
            raise rule_error(("limits", "max_usd"), "needs prices to count what is spent. Add 'prices:'.")
        if prices and model and model.cache_ttl == "1h" and "cache_write" not in prices.model_fields_set:
            return prices.model_copy(update={"cache_write": prices.input * 2})
        return prices


def _reason_not_to_fit(arguments: dict[str, Any]) -> str:
    try:
        Limits.for_window(**{**arguments, "limit_tokens": arguments["limit_tokens"] or LARGEST_WINDOW})
    except RejectedError as error:
        return str(error)
    return ""


def load(path: Path, environ: Mapping[str, str], *, above: tuple[Path, ...] = ()) -> AgentConfig:
    """Return the agent that `path` describes, `${VAR}` taken from `environ`, with its helpers. If it is a helper, the
    files of those that it helps are `above`. Raise ConfigError with all problems, those of helpers too.
    """
    document = read(path, environ)
    problems = [ConfigProblem(each.value, mistake) for each in document.written.values() for mistake in each.mistakes]
    problems += _resolve_block_files(document)
    try:
        config = AgentConfig.model_validate(document.data, context=document)
    except ValidationError as error:
        reported = {problem.place for problem in problems}  # a variable that is not set is wrong in one way only
        more = [problem for problem in explain(error, document) if problem.place not in reported]
        raise ConfigError([*problems, *more]) from None
    if chosen := config.archival.of_chroma:
        try:  # Chroma alone knows the names and arguments of its embedding functions
            ChromaEmbedder.check(chosen.name, chosen.config)
        except EmbedderConfigError as error:
            named = ("config", error.argument) if error.argument else ("name",)
            written = document.at("archival", "embedder", *named)
            place = written.key if error.argument else written.value
            problems.append(ConfigProblem(place, f"archival.embedder: {error}"))
    problems += _load_helpers(config, environ, (*above, path))
    if problems:
        raise ConfigError(problems)
    return config


def _load_helpers(config: AgentConfig, environ: Mapping[str, str], above: tuple[Path, ...]) -> Iterator[ConfigProblem]:
    """Load the other agents among the tools into their configuration. Each is relative to the file that names it."""
    for number, tool in enumerate(config.tools):
        if not isinstance(tool, tool_sections.HelperTool):
            continue
        place = config.place("tools", number, "agent")
        path = place.file.parent / tool.agent
        agents = [*above, path]
        if path.resolve() in [each.resolve() for each in agents[:-1]]:
            circle = " -> ".join(map(str, agents))
            yield ConfigProblem(place, f"tools[{number}].agent: an agent helps itself: {circle}. Take one of them out.")
        elif len(above) > MAX_HELPERS_DEEP:
            deep = " -> ".join(map(str, agents))
            what = f"tools[{number}].agent: helpers of helpers go {len(above)} deep"
            yield ConfigProblem(place, f"{what}, at most {MAX_HELPERS_DEEP} are allowed: {deep}.")
        elif not path.is_file():
            yield ConfigProblem(
                place, f"tools[{number}].agent: there is no file {path}. Create it, or correct the path."
            )
        else:
            try:
                helper = load(path, environ, above=above)
            except ConfigError as error:
                yield from error.problems
                continue
            config.add_helper(number, helper)
            if config.limits.max_usd is not None and helper.prices is None:
                why = "has no prices, and limits.max_usd of this agent counts what its helpers spend"
                yield ConfigProblem(place, f"tools[{number}].agent: {helper.name} {why}. Add 'prices:' to {path}.")
            if helper.archival.index != "local":
                why = "has its index on a server, where a purge would not find it"
                yield ConfigProblem(place, f"tools[{number}].agent: {helper.name} {why}. Leave out 'archival.index'.")


def _resolve_block_files(document: Document) -> Iterator[ConfigProblem]:
    """Make the files of core blocks absolute: each is relative to the YAML file in which it is written."""
    for path, written in document.written.items():
        if len(path) != 4 or path[:2] != ("core", "blocks") or path[3] != "file":
            continue
        block = document.data["core"]["blocks"][path[2]]
        if isinstance(block["file"], str) and block["file"]:
            file = (written.value.file.parent / block["file"]).absolute()
            block["file"] = str(file)
            if not file.is_file():
                missing = f"core.blocks.{path[2]}.file: there is no file {file}. Create it, or correct the path."
                yield ConfigProblem(written.value, missing)
