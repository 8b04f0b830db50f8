"""From a configuration to the parts of an agent: memory, model, tools, meter. What is not needed is not loaded.

The memory has to know the definitions of all tools when it is opened, because its prompt begins with them. So first
come the definitions, then the memory, then the tools that move it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents import helpers, tasks
from agents.builtin.protected import Protected, protected_by
from agents.config import embedders, script, skills
from agents.config.agent_config import LARGEST_WINDOW, AgentConfig
from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
from agents.config.field_types import FUNCTION_PATTERN
from agents.config.tool_sections import (
    FilesTool,
    FunctionTool,
    HelperTool,
    ProviderTool,
    ServerTools,
    ShellTool,
    ToolSection,
    WebTool,
)
from agents.explain import costs
from agents.meter import Meter, Prices, RunLimits
from agents.models import summaries
from agents.models.anthropic import AnthropicModel
from agents.models.calls_in_text import CallsInText
from agents.models.model import Json, Model
from agents.models.openai import MISSING, OpenAIModel
from agents.models.scripted import Entries, ScriptedModel
from agents.models.summaries import Summarizer
from agents.sleep.sleeper import Sleeper
from agents.tasks import TaskTools
from agents.tools import functions
from agents.tools.functions import Tool, ToolConfigError
from agents.tools.memory_tools import FewTools, MemoryTools, SharedTools, SkillTools, for_blocks, memory_file_tool
from agents.tools.results import ResultSchema
from pager import (
    BlockSpec,
    Clock,
    Embedder,
    Limits,
    Memory,
    Mount,
    Prefetch,
    RejectedError,
    SkillSpec,
    WindowTooSmallError,
)
from pager.home import Home, Place
from pager.memory_tool.files import DEFINITION

WINDOW_WITHOUT_RECORD = 100_000
# The kinds of tools for the memory: their definitions, and what makes them over a memory.
MEMORY_TOOLS: dict[str, tuple[Callable[[], list[Json]], Callable[[Memory, Clock], list[Tool]]]] = {
    "pager": (MemoryTools.definitions, lambda memory, clock: MemoryTools(memory, clock).tools()),
    "few": (FewTools.definitions, lambda memory, clock: FewTools(memory, clock).tools()),
    "anthropic": (lambda: [DEFINITION], lambda memory, _: [memory_file_tool(memory)]),
    "none": (list, lambda _, __: []),
}
ANOTHER_NAME = {
    "use": "give your function another name.",
    "mcp": "name those that the agent is to get with 'only'.",
    "files": "an agent has one 'builtin: files'. Name as its root the directory above both, or give the other one to a"
    " helper ('agent: other.yaml').",
    "shell": "an agent has one 'builtin: shell'. Name as its directory the one above both; commands may cd from it.",
    "web": "an agent has one 'builtin: web'; leave the other out.",
    "agent": "give the other agent another name.",
}


@dataclass(slots=True)
class Parts:
    """The parts of an agent. `remarks` are things its person should read once."""

    memory: Memory
    model: Model
    tools: list[Tool]
    task_tools: TaskTools | None  # with `task`
    output: ResultSchema | None  # what the results of tasks have to fit
    meter: Meter
    sleeper: Sleeper
    opened: ExitStack  # closes them
    remarks: list[str] = field(default_factory=list[str])


def assemble(
    config: AgentConfig, place: Place, clock: Clock, *, task: bool = False, model: Model | None = None,
    tools: Sequence[Callable[..., Any] | Tool] = (), embedder: Embedder | None = None, output: Any = None,
    open_helper: helpers.OpenAgent | None = None, within: Meter | None = None,
) -> Parts:  # fmt: skip
    """Open an agent at `place`. With `task` it gets what a long task needs: a plan block, task_done. A model or an
    embedder that is handed in works instead of the configured one, and its owner closes it. `tools` are added. The
    results of tasks have to fit `output`, a class, or what is configured. `open_helper` opens the agents among its
    tools; it is one itself if its run is `within` another one."""
    with ExitStack() as opened:
        model = model or opened.enter_context(closing(make_model(config)))
        remarks: list[str] = []
        limits = window_limits(config, model, remarks)
        prices = Prices(**config.prices.model_dump()) if config.prices else None
        meter = Meter(clock, RunLimits(**config.limits.model_dump()), prices, within=within)
        blocks = {name: BlockSpec(**block.model_dump()) for name, block in config.core.blocks.items()}
        kind, mounts = config.memory.tools, mounts_of(config, place)
        if task and kind in tasks.PLANS:
            blocks.setdefault(tasks.PLAN, tasks.PLAN_BLOCK)
        own_skills, result = skills.load(config), result_schema(config, output)
        summarize = None
        if config.recall.summarizes:  # with a client of its own, which tries once and does not wait long
            other = make_model(config, model_id=config.recall.summary_model, read_seconds=summaries.READ_SECONDS)
            summarize = Summarizer(opened.enter_context(closing(other)), meter, limits.usable_tokens)
        found_by = embedders.from_config(config)
        if embedder is not None:
            found_by["embedder"] = embedder
        helped = helpers.Helped(place, kind, found_by, clock, meter, open_helper) if open_helper else None
        own = own_tools(
            config, opened, tools, directory=place.directory, part_tokens=limits.max_part_tokens,
            helped=helped,
        )  # fmt: skip
        definitions = _definitions_for_memory(kind, blocks, own_skills, mounts) + [tool.definition for tool in own]
        definitions += TaskTools.definitions(result) if task else []
        if isinstance(model, ScriptedModel):
            names = [str(definition["name"]) for definition in [*definitions, *TaskTools.definitions()]]
            script.check_tools(model.script, names)
        if config.model.tools_in_text != "off":
            model = CallsInText(model, config.model.tools_in_text)
        try:
            memory = Memory.open(
                place, limits=limits, tools=definitions, core=blocks, summarize=summarize, clock=clock,
                instructions=config.instructions + (f"\n\n{tasks.INSTRUCTIONS[kind]}" if task else ""),
                model=config.model.id, thinking=config.model.thinking, cache_ttl=config.model.cache_ttl,
                count_tokens=model.count_tokens, prefetch=prefetch_of(config),
                memory_tools=kind, skills=own_skills, retention=config.archival.retention, mounts=mounts,
                **found_by,
            )  # fmt: skip
        except WindowTooSmallError as error:
            raise ConfigError([ConfigProblem(config.place("window"), str(error))]) from error
        opened.enter_context(memory)
        embedders.store(memory, config)
        costs.save_prices(memory, prices)
        offered = {definition["name"] for definition in definitions}
        of_memory = [*MEMORY_TOOLS[kind][1](memory, clock), *SkillTools(memory).tools(), *SharedTools(memory).tools()]
        of_task = TaskTools(memory, result) if task else None
        all_tools = [*(tool for tool in of_memory if tool.name in offered), *own, *(of_task.tools() if of_task else ())]
        sleeper = Sleeper(memory, _sleeping_model(config, model, opened), prices=prices, max_usd=config.sleep.max_usd)
        return Parts(memory, model, all_tools, of_task, result, meter, sleeper, opened.pop_all(), remarks)


def _sleeping_model(config: AgentConfig, own: Model, opened: ExitStack) -> Model | None:
    """Return the model that reads in a sleep."""
    if config.sleep.model in ("default", "none"):
        return own if config.sleep.model == "default" else None
    return opened.enter_context(closing(make_model(config, model_id=config.sleep.model)))


def mounts_of(config: AgentConfig, place: Place) -> list[Mount]:
    """Return the memories that an agent shares with others, which are beside its own."""
    return [Mount(place.beside(each.memory), each.core, each.archive, each.access == "write") for each in config.mounts]


def _definitions_for_memory(
    kind: str, blocks: Mapping[str, BlockSpec], own_skills: Sequence[SkillSpec], mounts: Sequence[Mount] = ()
) -> list[Json]:
    """Return the definitions of the tools for the memory. Where none of them reads a page, one reads skills."""
    writable = [name for name, block in blocks.items() if not (block.read_only or block.file)]
    writable += [name for mount in mounts if mount.writable for name in mount.core]
    definitions = for_blocks(MEMORY_TOOLS[kind][0](), writable)
    if kind != "none":
        definitions += SharedTools.definitions([each.name for each in mounts if each.writable and each.archive])
    return definitions + (SkillTools.definitions(own_skills) if own_skills and kind != "pager" else [])


def try_out(config: AgentConfig, clock: Clock, *, task: bool) -> None:
    """Open the agent in a temporary directory. Raise ConfigError if its file describes what can never be opened."""
    with TemporaryDirectory(prefix="selfpager-") as place:
        try:
            # A script has no server to ask; another model is made, but not asked either.
            made = make_model(config)
            model = made if isinstance(made, ScriptedModel) else ScriptedModel("", Entries("", []))
            assemble(config, Home(place).place(config.name), clock, task=task, model=model).opened.close()
        except RejectedError as error:
            raise ConfigError([ConfigProblem(ConfigPlace(config.place().file), str(error))]) from error


def result_schema(config: AgentConfig, kind: Any = None) -> ResultSchema | None:
    """Return what the results of tasks have to fit: a class, or what is configured. Raise ConfigError."""
    place = config.place("output")
    folder = place.file.parent.absolute()
    try:
        if kind is not None:
            return ResultSchema.of(kind)
        if config.output is None:
            return None
        if re.fullmatch(FUNCTION_PATTERN, config.output):
            return ResultSchema.of(functions.find(config.output, folder, "class"))
        return ResultSchema.read_file(folder / config.output)
    except ToolConfigError as error:
        raise ConfigError([ConfigProblem(place, f"output: {error}")]) from None


def prefetch_of(config: AgentConfig) -> Prefetch:
    """Return what is put in front of a message unasked."""
    given = config.archival.prefetch
    return Prefetch(given.k, given.budget_tokens, tuple(given.kinds), given.trust)


def own_tools(
    config: AgentConfig, opened: ExitStack | None = None, more: Sequence[Callable[..., Any] | Tool] = (), *,
    directory: Path | None = None, part_tokens: int = WINDOW_WITHOUT_RECORD, helped: helpers.Helped | None = None,
) -> list[Tool]:  # fmt: skip
    """Return the tools that the configuration names, in its order, and `more`. MCP servers stay connected until
    `opened` is closed; without it their tools are left out. `directory` is where the memory is, and a part of a
    result that is not spilled has at most `part_tokens`. Helpers work for the agent that is `helped`. Raise ConfigError
    with all tools that cannot be used, those of helpers too."""
    found = dict[str, Tool]()
    taken = {*tasks.TOOL_NAMES, *(each["name"] for each in MEMORY_TOOLS[config.memory.tools][0]())}
    taken |= set(SkillTools.NAMES) if config.skills else set()
    taken |= set(SharedTools.NAMES) if config.mounts else set()
    problems: list[ConfigProblem] = []
    for number, item in enumerate([*config.tools, *more]):
        place = config.place("tools", number, *((item.kind,) if isinstance(item, ToolSection) else ()))
        try:
            if isinstance(item, HelperTool):
                own_tools(config.helpers[number])
                tools = [helpers.tool_of(item, config.helpers[number], helped)]
            elif isinstance(item, ToolSection):
                tools = _tools_of(item, place, opened, partial(protected_by, config, directory), part_tokens)
            else:
                tools = [item if isinstance(item, Tool) else Tool.of(item)]
        except ToolConfigError as error:
            problems.append(ConfigProblem(place, str(error)))
            continue
        except ConfigError as error:
            problems += error.problems
            continue
        if twice := [repr(tool.name) for tool in tools if tool.name in found or tool.name in taken]:
            kind = getattr(item, "builtin", getattr(item, "kind", "use"))
            advice = ANOTHER_NAME.get(kind, "leave one of the two out.")
            problems.append(ConfigProblem(place, f"there is a tool {' and '.join(twice)} already; {advice}"))
        found |= {tool.name: tool for tool in tools}
    if problems:
        raise ConfigError(problems)
    return list(found.values())


def _tools_of(
    item: ToolSection,
    place: ConfigPlace,
    opened: ExitStack | None,
    protected: Callable[[], Protected],
    part_tokens: int,
) -> list[Tool]:
    """Return the tools of an entry under `tools`; of an MCP server none without `opened`."""
    options: dict[str, Any] = item.model_dump(include={"approve", "timeout_seconds"})
    folder = place.file.parent.absolute()
    if isinstance(item, FunctionTool):
        function = functions.find(item.use, folder, "tool")
        return [Tool.of(function, idempotent=item.idempotent, trust=item.trust, **options)]
    if isinstance(item, ServerTools):
        if opened is None:
            return []
        from agents.mcp import client as mcp_client

        source = item.mcp.source if item.trust == "untrusted" else None
        server = opened.enter_context(mcp_client.connected(item.mcp))
        return server.tools(item.only, source=source, **options)
    if isinstance(item, FilesTool):
        from agents.builtin.files import file_tools

        return file_tools(item, folder, protected(), part_tokens // 2)
    if isinstance(item, ShellTool):
        from agents.builtin.shell import shell_tool

        return [shell_tool(item, folder, protected(), opened)]
    if isinstance(item, WebTool):
        from agents.builtin.web import Web

        return Web(item.allow_private, seconds=item.timeout_seconds).tools(approve=item.approve)
    if isinstance(item, ProviderTool):
        return [functions.run_by_provider(item.definition)]
    raise ToolConfigError(f"{item.kind}: this tool is not built yet.")


def make_model(config: AgentConfig, *, model_id: str | None = None, read_seconds: float | None = None) -> Model:
    """Return the configured model, or another one (`model_id`) of the same provider. It connects when it is used."""
    chosen = config.model
    model_id = model_id or chosen.id
    if chosen.provider == "scripted":
        return ScriptedModel(model_id, script.load(chosen.script or "", config.place("model", "script")))
    options = chosen.model_dump(include={"base_url", "api_key", "thinking"})
    if chosen.provider == "openai":
        if find_spec("openai") is None:
            raise ConfigError([ConfigProblem(config.place("model", "provider"), MISSING)])
        return OpenAIModel(model_id, read_seconds=read_seconds, **options)
    return AnthropicModel(model_id, provider=chosen.provider, read_seconds=read_seconds, **options)


def window_limits(config: AgentConfig, model: Model, remarks: list[str]) -> Limits:
    """Return the limits of the file. If it names no window, take the model's own, up to `LARGEST_WINDOW`: larger ones
    have to be asked for, because they cost more."""
    limit = config.window.limit_tokens
    if limit is None:
        known = model.max_input_tokens()
        limit = min(known, LARGEST_WINDOW) if known else WINDOW_WITHOUT_RECORD
        if not known:
            used = f"{limit:,} tokens are used. Set window.limit_tokens to change it"
            remarks.append(f"the window of {config.model.id} is not known; {used}.")
    return config.limits_of(limit)
