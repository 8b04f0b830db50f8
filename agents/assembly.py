"""From a configuration to the parts of an agent: memory, model, tools, meter. What is not needed is not loaded."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents import tasks
from agents.background import Background
from agents.config import embedders
from agents.config.agent_config import AgentConfig
from agents.config.errors import ConfigError, Place, Problem
from agents.config.sections import FunctionTool, ModelConfig, ServerTools
from agents.events import Text, Thinking
from agents.explain import costs
from agents.meter import Meter, Prices, RunLimits
from agents.models import summaries
from agents.models.anthropic import AnthropicModel
from agents.models.model import FinishedReply, Json, Model, ModelError
from agents.models.summaries import Summarizer
from agents.tasks import TaskTools
from agents.tools import functions as tools
from agents.tools import memory_file_tool, memory_tools
from agents.tools.functions import Tool, ToolConfigError
from agents.tools.memory_file_tool import MemoryFileTool, NoMemoryTools
from agents.tools.memory_tools import MemoryTools
from pager.clock import Clock
from pager.errors import RejectedError, WindowTooSmallError
from pager.limits import Limits
from pager.memory import Memory
from pager.tiers.prefetch import Prefetch
from pager.types import BlockSpec

WINDOW_WITHOUT_RECORD = 100_000
LARGEST_DEFAULT_WINDOW = 200_000  # nobody is billed for a million by default
OF_MEMORY = {"pager": memory_tools.NAMES, "anthropic": memory_file_tool.NAMES, "none": ()}
ANOTHER_NAME = {
    FunctionTool: "give your function another name.",
    ServerTools: "name those that the agent is to get with 'only'.",
}


@dataclass(slots=True)
class Parts:
    """What an agent is made of. `remarks` are things its person should hear once."""

    memory: Memory
    model: Model
    tools: list[Tool]
    meter: Meter
    opened: ExitStack
    background: Background
    remarks: list[str] = field(default_factory=list[str])

    def close(self) -> None:
        self.opened.close()


def assemble(
    config: AgentConfig, directory: Path, clock: Clock, *, task: bool = False, model: Model | None = None
) -> Parts:
    """Open an agent in `directory`. With `task` it gets what a long task needs: a plan block, task_done.

    A model that is handed in answers instead of the configured one, and stays its owner's to close.
    """
    with ExitStack() as opened:
        model = model or opened.enter_context(closing(make_model(config.model)))
        remarks: list[str] = []
        limits = window_limits(config, model, remarks)
        meter = Meter(clock, RunLimits(**config.limits.model_dump()), prices(config))
        of_memory, of_task = make_memory_tools(config, clock), TaskTools()
        all_tools = [
            *of_memory.tools(),
            *own_tools(config, opened),
            *(of_task.tools() if task else ()),
        ]
        try:
            memory = Memory.open(
                directory,
                limits=limits,
                instructions=config.instructions + (f"\n\n{tasks.INSTRUCTIONS}" if task else ""),
                tools=[tool.definition for tool in all_tools],
                core=_blocks(config, task=task),
                model=config.model.id,
                thinking=config.model.thinking,
                cache_ttl=config.model.cache_ttl,
                embedder=embedders.from_config(config),
                count_tokens=model.count_tokens,
                prefetch=Prefetch(config.archival.prefetch.k, config.archival.prefetch.budget_tokens),
                summarize=summarizer(config, limits, meter, opened) if config.recall.summarizes else None,
                clock=clock,
            )
        except WindowTooSmallError as error:
            raise ConfigError([Problem(config.place("window"), str(error))]) from error
        opened.enter_context(memory)
        background = opened.enter_context(closing(Background(memory)))
        embedders.store(memory, config)
        costs.note(memory, prices(config))
        of_memory.bind(memory)
        of_task.bind(memory)
        return Parts(memory, model, all_tools, meter, opened.pop_all(), background, remarks)


def make_memory_tools(config: AgentConfig, clock: Clock) -> MemoryTools | MemoryFileTool | NoMemoryTools:
    """How the agent moves its own memory."""
    match config.memory.tools:
        case "pager":
            return MemoryTools(clock)
        case "anthropic":
            return MemoryFileTool()
        case "none":
            return NoMemoryTools()


class _NoModel:
    """Stands where a model would, in an agent that is only opened."""

    name = ""

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        raise ModelError("there is no model here.")
        yield

    def count_tokens(self, params: Json) -> int | None:
        return None

    def max_input_tokens(self) -> int | None:
        return None

    def close(self) -> None:
        """There is nothing to close."""


def try_out(config: AgentConfig, clock: Clock, *, task: bool) -> None:
    """Open the agent in a directory that is thrown away: what could never load is an error of its file."""
    with TemporaryDirectory(prefix="selfpager-") as place:
        try:
            assemble(config, Path(place) / config.name, clock, task=task, model=_NoModel()).close()
        except RejectedError as error:
            raise ConfigError([Problem(Place(config.place().file), str(error))]) from error


def own_tools(config: AgentConfig, opened: ExitStack | None = None) -> list[Tool]:
    """The tools that the configuration names, in its order: functions, imported from beside the file that names them or
    from what is installed, and those of MCP servers, which stay connected until `opened` is closed; without it they are
    left out."""
    found, taken = dict[str, Tool](), {*OF_MEMORY[config.memory.tools], TaskTools.task_done.__name__}
    problems: list[Problem] = []
    for number, item in enumerate(config.tools):
        place = config.place("tools", number, "use" if isinstance(item, FunctionTool) else "mcp")
        try:
            tools = _tools_of(item, place, opened)
        except ToolConfigError as error:
            problems.append(Problem(place, str(error)))
            continue
        for tool in tools:
            if tool.name in found or tool.name in taken:
                problems.append(Problem(place, f"there is a tool {tool.name!r} already; {ANOTHER_NAME[type(item)]}"))
            found[tool.name] = tool
    if problems:
        raise ConfigError(problems)
    return list(found.values())


def _tools_of(item: FunctionTool | ServerTools, place: Place, opened: ExitStack | None) -> list[Tool]:
    options: dict[str, Any] = {"approve": item.approve, "timeout_seconds": item.timeout_seconds}
    if isinstance(item, FunctionTool):
        return [tools.load(item.use, place.file.parent.absolute(), idempotent=item.idempotent, **options)]
    if opened is None:
        return []
    from agents.mcp import client as mcp_client

    where = mcp_client.Server(item.mcp.command, item.mcp.env, item.mcp.url, item.mcp.headers)
    return opened.enter_context(mcp_client.connected(where)).tools(item.only, **options)


def summarizer(config: AgentConfig, limits: Limits, meter: Meter, opened: ExitStack) -> Summarizer:
    """Another client than the agent's: it is asked once, and not waited for long."""
    by = config.model.model_copy(update={"id": config.recall.summary_model or config.model.id})
    model = opened.enter_context(closing(make_model(by, read_seconds=summaries.SECONDS)))
    return Summarizer(model, meter, limits.usable_tokens)


def make_model(chosen: ModelConfig, *, read_seconds: float | None = None) -> AnthropicModel:
    base_url = chosen.base_url
    provider = chosen.provider
    if provider == "rehearsal":
        from agents.rehearsal import server

        base_url, provider = server.shared().base_url, "anthropic"
    return AnthropicModel(
        chosen.id,
        provider=provider,
        base_url=base_url,
        api_key=chosen.api_key,
        thinking=chosen.thinking,
        read_seconds=read_seconds,
    )


def window_limits(config: AgentConfig, model: Model, remarks: list[str]) -> Limits:
    """The limits of the file; its window, where it names none, is the model's, within reason."""
    window = config.window
    limit = window.limit_tokens
    if limit is None:
        known = model.max_input_tokens()
        limit = min(known, LARGEST_DEFAULT_WINDOW) if known else WINDOW_WITHOUT_RECORD
        if not known:
            remarks.append(
                f"the window of {config.model.id} is not known; {limit:,} tokens are used. Set window.limit_tokens to "
                "change it."
            )
    return Limits.for_window(
        limit,
        max_output_tokens=config.model.max_output_tokens,
        max_part_tokens=window.max_part_tokens,
        core_tokens=config.core.limit_tokens,
        notify_at=window.notify_at,
        evict_at=window.evict_at,
        evict_to=window.evict_to,
    )


def prices(config: AgentConfig) -> Prices | None:
    return Prices(**config.prices.model_dump()) if config.prices else None


def _blocks(config: AgentConfig, *, task: bool) -> dict[str, BlockSpec]:
    blocks = {name: BlockSpec(**block.model_dump()) for name, block in config.core.blocks.items()}
    if task:
        blocks.setdefault("plan", tasks.PLAN_BLOCK)
    return blocks
