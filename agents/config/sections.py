"""The sections of an agent's YAML file: every key, its default and its meaning. `agents.config.agent_config` joins them.

A key without a value (`tools:`) means its default, and so does an empty text where the default is to have none.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from agents.config.fields import (
    BLOCK_NAME_PATTERN,
    BlockName,
    Count,
    Flag,
    Function,
    Number,
    Price,
    Share,
    Text,
    Url,
    Whole,
)
from agents.config.problems import NEITHER_OR_BOTH


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _without_unset(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        members = cast("dict[str, Any]", data)
        return {key: value for key, value in members.items() if not cls._is_unset(key, value)}

    @classmethod
    def _is_unset(cls, key: str, value: Any) -> bool:
        field = cls.model_fields.get(key)
        if field is None:
            return False
        return value is None or (isinstance(value, str) and not value and field.default is None)


class ModelConfig(Section):
    """Which model answers, and where."""

    provider: Literal["anthropic", "bedrock", "vertex", "foundry", "rehearsal"] = Field(
        default="anthropic", description="Who serves the model. rehearsal is a rule-based stand-in that needs no key."
    )
    id: Text = Field(default="claude-sonnet-5-5", description="The model's id, as the provider names it.")
    base_url: Url | None = Field(
        default=None, description="Another server that speaks the Messages API. Default: the provider's own."
    )
    api_key: str | None = Field(
        default=None,
        repr=False,
        description="For servers with a key of their own; best written as ${VAR}. Default: the provider's environment "
        "variable.",
    )
    max_output_tokens: Whole | None = Field(
        default=None, description="The longest reply. Default: a quarter of the window, at most 8000."
    )
    thinking: Literal["default", "adaptive", "off"] = Field(
        default="default",
        description="default: what the model does by itself; adaptive: it decides how much; off: none.",
    )
    cache_ttl: Literal["5m", "1h"] = Field(
        default="5m",
        description="How long the provider keeps the prompt. 1h pays when people or tools take over 5 minutes.",
    )


class WindowConfig(Section):
    """How large a request may become, and when older steps leave it. Shares are of what the reply does not need."""

    limit_tokens: Whole | None = Field(
        default=None,
        description="The largest request together with its reply. Default: the model's window, at most 200000.",
    )
    notify_at: Share = Field(default=0.70, description="At this share the agent is told how full the window is.")
    evict_at: Share = Field(default=0.85, description="At this share the oldest steps leave the prompt.")
    evict_to: Share = Field(default=0.50, description="So full is the window after an eviction.")
    max_part_tokens: Whole | None = Field(
        default=None, description="Longer results and messages are kept on disk, with their two ends in the prompt. "
        "Default: an eighth of the window, at most 8000."
    )  # fmt: skip


class BlockConfig(Section):
    """A block of core. A writable one keeps what the agent has made of it."""

    description: str = Field(default="", description="What belongs in it; the agent reads this.")
    value: str = Field(default="", description="What it holds at first, or always if it is read-only.")
    limit_tokens: Whole = Field(default=1000, description="How much it can hold.")
    read_only: Flag = Field(default=False, description="Only this file changes it, not the agent.")
    file: Text | None = Field(
        default=None, description="Read the value from this text file (relative to this YAML file) when a run starts."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.file and self.value:
            raise ValueError("has both a value and a file. Remove one of them.")
        return self


class CoreConfig(Section):
    """The core tier: named texts that are in every request."""

    limit_tokens: Whole | None = Field(
        default=None,
        description="How much all blocks can hold together. Default: an eighth of the window, at most 4000.",
    )
    blocks: dict[BlockName, BlockConfig] = Field(
        default={},
        description="The blocks by name, in the order of the prompt.",
        json_schema_extra={"propertyNames": {"pattern": BLOCK_NAME_PATTERN}},
    )


class SummaryConfig(Section):
    """Who summarizes."""

    model: Text | None = Field(
        default=None, description="The id of the model that writes the summary. Default: the agent's."
    )


class SummarizeConfig(Section):
    """A digest that a model writes."""

    summarize: SummaryConfig = Field(description="A digest that a model writes, here with the model that does it.")


def _digest_kind(value: Any) -> str:
    return "by" if isinstance(value, dict | SummarizeConfig) else "word"


Digest = Annotated[
    Annotated[Literal["build", "summarize"], Tag("word")] | Annotated[SummarizeConfig, Tag("by")],
    Discriminator(_digest_kind),
]


class RecallConfig(Section):
    """The recall tier: the conversation's steps."""

    digest: Digest = Field(
        default="build",
        description="What stands in the prompt for the steps that left it. build: a line per turn, without a model; "
        "summarize: the model writes a summary; {summarize: {model: ...}}: another model does. When it fails, is slow "
        "or cannot take what leaves, the built one stands.",
    )

    @property
    def summarizes(self) -> bool:
        return self.digest != "build"

    @property
    def summary_model(self) -> str | None:
        """The model that summarizes, if it is not the agent's own."""
        return self.digest.summarize.model if isinstance(self.digest, SummarizeConfig) else None


class PrefetchConfig(Section):
    """Facts that are put behind a message before the agent asks for them."""

    k: Count = Field(default=4, description="At most so many facts. 0: none.")
    budget_tokens: Count = Field(default=400, description="At most so many tokens of them.")


class EmbedderConfig(Section):
    """One of Chroma's embedding functions, with arguments."""

    name: Text = Field(description="The function's name, as Chroma knows it, such as openai or ollama.")
    config: dict[str, Any] = Field(
        default={}, repr=False, description="The arguments of its constructor, such as model_name or api_key_env_var."
    )

    @model_validator(mode="after")
    def _of_chroma(self) -> Self:
        if self.name in OWN_EMBEDDERS:
            raise ValueError(f"takes no config for {self.name!r}; write 'embedder: {self.name}'.")
        return self


def _embedder_kind(value: Any) -> str:
    return "with" if isinstance(value, dict | EmbedderConfig) else "word"


OWN_EMBEDDERS = ("default", "none")
EmbedderChosen = Annotated[
    Annotated[Text, Tag("word")] | Annotated[EmbedderConfig, Tag("with")],
    Discriminator(_embedder_kind),
]


class ArchivalConfig(Section):
    """The archival tier: facts on disk."""

    embedder: EmbedderChosen = Field(
        default="default",
        description="What finds facts and turns by meaning. default: a small model for English that comes with "
        "selfpager; none: by words only; otherwise the name of one of Chroma's embedding functions, or "
        "{name: ..., config: {...}}. After a change all is embedded anew in the background.",
    )
    prefetch: PrefetchConfig = Field(
        default=PrefetchConfig(), description="Facts that are put behind a message before the agent asks for them."
    )

    @property
    def of_chroma(self) -> EmbedderConfig | None:
        """The embedding function of Chroma's that is wanted, if it is one."""
        if isinstance(self.embedder, EmbedderConfig):
            return self.embedder
        return None if self.embedder in OWN_EMBEDDERS else EmbedderConfig(name=self.embedder)


class MemoryConfig(Section):
    """How the agent reaches its memory."""

    tools: Literal["pager", "anthropic", "none"] = Field(
        default="pager",
        description="pager: core_append, archive, search_recall and so on; anthropic: the provider's own memory tool "
        "over the same tiers (memory_20250818: files under /memories); none: the agent cannot change its memory.",
    )


class ToolConfig(Section):
    approve: Literal["never", "always"] = Field(
        default="never", description="always: a person is asked before each call."
    )
    timeout_seconds: Number = Field(default=120.0, description="A call that takes longer is answered with an error.")


class FunctionTool(ToolConfig):
    """A Python function. Its type hints and docstring tell the agent how to call it."""

    use: Function = Field(description="The function, as 'package.module:function'.")
    idempotent: Flag = Field(
        default=False, description="Running it twice does no harm, so a call that a crash cut off is run again."
    )


class ServerConfig(Section):
    """Where an MCP server is: a command to start, or an address."""

    command: Annotated[tuple[Text, ...], Field(strict=False)] = Field(
        default=(), description="The program and its arguments."
    )
    env: dict[str, str] = Field(default={}, repr=False, description="Environment variables for the command.")
    url: Url | None = Field(default=None, description="The address of a server that runs already.")
    headers: dict[str, str] = Field(
        default={}, repr=False, description="Sent with every request to the url; secrets best as ${VAR}."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either 'command: [program, argument, ...]' or 'url: http://...'.")
        if self.env and self.url:
            raise ValueError("has an env for a server at a url; env belongs to a command.")
        if self.headers and self.command:
            raise ValueError("has headers for a command; headers belong to a url.")
        return self


class ServerTools(ToolConfig):
    """The tools of an MCP server."""

    mcp: ServerConfig = Field(
        description="The MCP server: {command: [...], env: {...}} or {url: ...}. Needs selfpager[mcp]."
    )
    only: Annotated[tuple[Text, ...], Field(strict=False)] = Field(
        default=(), description="The names of those of its tools that the agent gets. Default: all."
    )


def _tool_kind(value: Any) -> str | None:
    if isinstance(value, ServerTools):
        return "mcp"
    if not isinstance(value, dict):
        return "use"
    kinds = [kind for kind in ("use", "mcp") if kind in value]
    return kinds[0] if len(kinds) == 1 else None


Tool = Annotated[
    Annotated[FunctionTool, Tag("use")] | Annotated[ServerTools, Tag("mcp")],
    Discriminator(
        _tool_kind,
        custom_error_type=NEITHER_OR_BOTH,
        custom_error_message="needs one of 'use: package.module:function' and 'mcp: {...}'.",
    ),
]


class LimitsConfig(Section):
    """Where a turn or a run stops. It says so, and can be resumed."""

    max_steps: Whole | None = Field(default=None, description="Replies of the model. Default: no limit.")
    max_usd: Number | None = Field(default=None, description="Dollars, counted with prices. Default: no limit.")
    max_minutes: Number | None = Field(default=None, description="Minutes. Default: no limit.")


class PricesConfig(Section):
    """Dollars per million tokens."""

    input: Price = Field(description="Tokens sent.")
    output: Price = Field(description="Tokens received.")
    cache_read: Price = Field(
        default_factory=lambda known: known.get("input", 0) * 0.1,
        description="Tokens read from the cache. Default: 0.1 of input.",
    )
    cache_write: Price = Field(
        default_factory=lambda known: known.get("input", 0) * 1.25,
        description="Tokens written to the cache. Default: 1.25 of input, with cache_ttl 1h twice the input.",
    )
