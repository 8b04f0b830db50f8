"""The sections of an agent's YAML file but for its tools: every key, its default and its meaning. `AgentConfig` joins
them.

A key without a value (`tools:`) means its default, and so does an empty text where the default is to have none.
"""

from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from agents.config.cron import Cron
from agents.config.error_messages import UnknownKey, alternative
from agents.config.field_types import (
    BLOCK_NAME_PATTERN,
    UNITS,
    BlockName,
    Count,
    Duration,
    FactTag,
    Flag,
    Host,
    Name,
    Port,
    PositiveInt,
    PositiveNumber,
    Price,
    Share,
    SleepTime,
    Text,
    Times,
    Url,
)
from pager.limits import EVICT_AT, EVICT_TO, NOTIFY_AT


class Section(BaseModel):
    """A mapping in the file. A key's docstring is its description in the schema."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True,
        use_attribute_docstrings=True, serialize_by_alias=True,
    )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _prepare(cls, data: Any) -> Any:
        """Leave out keys without a value, and let an unknown key say which ones are known."""
        if not isinstance(data, dict):
            return data
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        prepared: dict[str, Any] = {}
        for key, value in cast("dict[str, Any]", data).items():
            if key not in fields:
                prepared[key] = UnknownKey(value, tuple(fields))
            elif value is not None and (value != "" or fields[key].default is not None):
                prepared[key] = value
        return prepared


_WORD, _MAPPING = Tag(alternative("word")), Tag(alternative("mapping"))
_WORD_OR_MAPPING = Discriminator(lambda value: (_MAPPING if isinstance(value, dict | Section) else _WORD).tag)
DEFAULT_MODEL = "claude-sonnet-5-5"
DEFAULT_IDS = {"scripted": "scripted", "openai": ""}


class ModelConfig(Section):
    """The model that answers, and its server."""

    provider: Literal["anthropic", "bedrock", "vertex", "foundry", "openai", "scripted"] = "anthropic"
    """The model's provider. openai: any server of Chat Completions, needs selfpager[openai]. scripted answers from a
    script: no model, no key, no network."""
    script: Text | None = None
    """Only for scripted: a YAML file of replies, or a function as 'package.module:function'. It is beside this
    file."""
    id: Text = Field(default_factory=lambda data: DEFAULT_IDS.get(str(data.get("provider")), DEFAULT_MODEL))
    """The model's id, as the provider names it. Default: claude-sonnet-5-5, or scripted; openai has none."""
    base_url: Url | None = Field(default=None, repr=False)
    """Another server that speaks the provider's API: the Messages API, or Chat Completions for openai, whose address
    usually ends in /v1 (Ollama, vLLM, LM Studio, llama.cpp, OpenRouter). Default: the provider's own."""
    api_key: str | None = Field(default=None, repr=False)
    """For servers with a key of their own; best written as ${VAR}. Default: the provider's environment variable."""
    max_output_tokens: PositiveInt | None = None
    """The longest reply. Default: a quarter of the window, at most 8000."""
    thinking: Literal["default", "adaptive", "off"] = "default"
    """default: what the model does by itself; adaptive: it decides how much (not with openai); off: none."""
    tools_in_text: Literal["auto", "on", "off"] = "auto"
    """Take a reply that is nothing but a JSON object with a tool's name and its arguments, bare or in a fence, as that
    call; of several objects, the first. auto: until the model has made a real one; on: always; off: it stays text."""
    cache_ttl: Literal["5m", "1h"] = "5m"
    """The time for which the provider keeps the prompt. 1h pays when people or tools take over 5 minutes. With openai
    the server decides."""

    @model_validator(mode="after")
    def _script_for_scripted(self) -> Self:
        if self.provider == "scripted" and not self.script:
            raise ValueError("needs a script for 'provider: scripted'; write 'script: replies.yaml'.")
        return self

    @model_validator(mode="after")
    def _of_openai(self) -> Self:
        if self.provider == "openai" and not self.id:
            raise ValueError("needs an id for 'provider: openai'; write 'id: ' and the model's name at that server.")
        if self.provider == "openai" and self.thinking == "adaptive":
            raise ValueError("has 'thinking: adaptive', which 'provider: openai' does not know; use default or off.")
        return self


class WindowConfig(Section):
    """The largest request, and when older steps leave it. Shares are of the window less the reply."""

    limit_tokens: PositiveInt | None = None
    """The largest request together with its reply. Default: the model's window, at most 200000."""
    notify_at: Share = NOTIFY_AT
    """At this share the agent is told how full the window is."""
    evict_at: Share = EVICT_AT
    """At this share the oldest steps leave the prompt."""
    evict_to: Share = EVICT_TO
    """The share that is left after an eviction."""
    max_part_tokens: PositiveInt | None = None
    """Longer results and messages are kept on disk, with their two ends in the prompt. Default: an eighth of the
    window, at most 8000."""


class BlockConfig(Section):
    """A block of core. A writable one keeps what the agent has made of it."""

    description: str = ""
    """The purpose of the block; the agent reads this."""
    value: str = ""
    """The text at first, or always if the block is read-only."""
    limit_tokens: PositiveInt = 1000
    """The most that it can hold."""
    read_only: Flag = False
    """Only this file changes it, not the agent."""
    file: Text | None = None
    """Read the value from this text file (relative to this YAML file) when a run starts."""
    untrusted_writes: Literal["label", "ask", "refuse"] = "label"
    """What happens when the agent writes to the block after it has read something untrusted. label: the block names the
    sources; ask: a person is asked; refuse: it is not written."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.file and self.value:
            raise ValueError("has both a value and a file. Remove one of them.")
        return self


class CoreConfig(Section):
    """The core tier: named texts that are in every request."""

    limit_tokens: PositiveInt | None = None
    """The most that all blocks can hold together. Default: an eighth of the window, at most 4000."""
    blocks: dict[BlockName, BlockConfig] = Field(
        default={}, json_schema_extra={"propertyNames": {"pattern": BLOCK_NAME_PATTERN}}
    )
    """The blocks by name, in the order of the prompt."""


class SummaryConfig(Section):
    """The model that summarizes."""

    model: Text | None = None
    """The id of the model that writes the summary. Default: the agent's."""


class SummarizeConfig(Section):
    """A digest that a model writes."""

    summarize: SummaryConfig
    """The model that writes it."""


Digest = Annotated[
    Annotated[Literal["build", "summarize"], _WORD] | Annotated[SummarizeConfig, _MAPPING], _WORD_OR_MAPPING
]


class RecallConfig(Section):
    """The recall tier: the conversation's steps."""

    digest: Digest = "build"
    """The text in the prompt for the steps that left it. build: a line per turn, without a model; summarize: the
    model writes a summary; {summarize: {model: ...}}: another model does. When it fails, is slow or cannot take what
    leaves, the built one is used."""

    @property
    def summarizes(self) -> bool:
        """Return True if a model writes the digest."""
        return self.digest != "build"

    @property
    def summary_model(self) -> str | None:
        """Return the model that summarizes, if it is not the agent's own."""
        return self.digest.summarize.model if isinstance(self.digest, SummarizeConfig) else None


class PrefetchConfig(Section):
    """Put in front of a message before the agent asks for it: facts, and turns that have left the window."""

    k: Count = 12
    """At most so many facts and turns. 0: none."""
    budget_tokens: Count = 400
    """At most so many tokens of them."""
    trust: Literal["any", "trusted"] = "any"
    """any: all of them; trusted: none that has only untrusted sources."""
    kinds: list[Literal["facts", "turns"]] = Field(default=["facts", "turns"], alias="from")
    """What is put in: facts get a third of the budget, turns the rest."""


OWN_EMBEDDERS = ("default", "none")


class EmbedderConfig(Section):
    """One of Chroma's embedding functions, with arguments."""

    name: Text
    """The function's name, as Chroma knows it, such as openai or ollama."""
    config: dict[str, Any] = Field(default={}, repr=False)
    """The arguments of its constructor, such as model_name or api_key_env_var."""

    @model_validator(mode="after")
    def _of_chroma(self) -> Self:
        if self.name in OWN_EMBEDDERS:
            raise ValueError(f"takes no config for {self.name!r}; write 'embedder: {self.name}'.")
        return self


EmbedderChosen = Annotated[Annotated[Text, _WORD] | Annotated[EmbedderConfig, _MAPPING], _WORD_OR_MAPPING]


class IndexServerConfig(Section):
    """A Chroma server that holds the vector index."""

    host: Host
    """The server's name or address; api.trychroma.com is Chroma Cloud, with port 443 and ssl."""
    port: Port = 8000
    """The port at which it listens."""
    ssl: Flag = False
    """True for https."""
    headers: dict[str, str] = Field(default={}, repr=False)
    """Headers of each request, such as {x-chroma-token: ${CHROMA_API_KEY}}."""
    tenant: Text = "default_tenant"
    """Whose databases these are; of Chroma Cloud the id of the account."""
    database: Text = "default_database"
    """Which of them holds the index."""


IndexChosen = Annotated[Annotated[Literal["local"], _WORD] | Annotated[IndexServerConfig, _MAPPING], _WORD_OR_MAPPING]


class ArchivalConfig(Section):
    """The archival tier: facts on disk."""

    embedder: EmbedderChosen = "default"
    """Finds facts and messages by meaning. default: a small model for English that comes with selfpager; none: by
    words only; otherwise the name of one of Chroma's embedding functions, or {name: ..., config: {...}}. After a change
    all is embedded anew in the background."""
    index: IndexChosen = "local"
    """Where Chroma's index of the facts is. local: in the agent's directory; or a Chroma server: {host: ...,
    port: 8000, ssl: true, headers: {...}, tenant: ..., database: ...}. The facts are always in the agent's directory,
    too."""
    prefetch: PrefetchConfig = PrefetchConfig()
    retention: dict[FactTag, Duration] = {}
    """How long facts of a tag are true that are stored without an end: hours, days or weeks, such as {note: 90d}. Of
    several tags the shortest counts. Facts that are there already keep theirs."""

    @property
    def of_chroma(self) -> EmbedderConfig | None:
        """Return Chroma's embedding function that is wanted, if it is one."""
        if isinstance(self.embedder, EmbedderConfig):
            return self.embedder
        return None if self.embedder in OWN_EMBEDDERS else EmbedderConfig(name=self.embedder)


class MemoryConfig(Section):
    """The tools for the agent's memory."""

    tools: Literal["pager", "few", "anthropic", "none"] = "pager"
    """pager: core_append, archive, search_recall and so on; few: remember and search_memory, for small models;
    anthropic: the provider's own memory tool over the same tiers (memory_20250818: files under /memories); none: the
    agent cannot change its memory, and what fits a message is recalled all the same (archival.prefetch)."""


class MountConfig(Section):
    """A memory that this agent shares with others: a team's, or a person's."""

    memory: Name
    """The name of the shared memory, which is in the same home. It is made if it is missing and may be written."""
    access: Literal["read", "write"] = "read"
    """write: the agent gets a tool with which it stores facts there, and may edit the core blocks below."""
    core: Annotated[tuple[BlockName, ...], Field(strict=False)] = ()
    """Core blocks of it that stand in this agent's prompt. They follow what others write."""
    archive: Flag = True
    """Whether its facts are found by this agent's searches and recalled unasked."""


class SleepConfig(Section):
    """Done with the memory while nobody talks: repeats are merged, corrections supersede, what was said becomes
    facts. Each sleep proposes edits, which can be seen and undone (`selfpager sleep`)."""

    when: SleepTime = "off"
    """off: only when it is asked for; idle 30m: as soon as nobody has talked for so long (s, m, h or d); or a time that
    repeats, as in `schedule`: `0 3 * * * Europe/Berlin`."""
    apply: Literal["propose", "auto"] = "propose"
    """propose: a person applies what is proposed; auto: what asks for nobody's decision is applied at once. Guarded
    blocks, and whatever would end a trusted fact for an untrusted one, always wait for a person."""
    model: Text = "default"
    """The model that reads what was said: default is the agent's own; none is no model; else the id of another one of
    the same provider."""
    max_usd: PositiveNumber = 0.20
    """Dollars that one sleep may cost, counted with prices. Without prices 300,000 tokens are the limit."""

    @property
    def after_seconds(self) -> float | None:
        """Return after how long without a word a sleep begins; None: it does not depend on that."""
        return float(self.when[5:-1]) * UNITS[self.when[-1]] if self.when.startswith("idle") else None

    @property
    def times(self) -> Cron | None:
        """Return the times at which a sleep begins; None: it has none."""
        return None if self.when == "off" or self.when.startswith("idle") else Cron.read(self.when)


class ScheduleConfig(Section):
    """Something that the agent begins by itself. `selfpager serve` does it. Missed runs are made up for once."""

    at: Times
    """When: minute, hour, day of the month, month and day of the week as in cron, and a time zone, as in `0 8 * *
    mon-fri Europe/Berlin`. Without a zone it is UTC."""
    say: Text | None = None
    """A message that is said to the agent then."""
    task: Text | None = None
    """A task that it works on then, until it says that it is done."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.say is None) == (self.task is None):
            raise ValueError("gives the agent one thing to do: say or task.")
        return self


class LimitsConfig(Section):
    """The limits at which a turn or a run stops. It says so, and can be resumed."""

    max_steps: PositiveInt | None = None
    """Replies of the model. Default: 200 for a turn of a conversation, no limit for a task."""
    max_usd: PositiveNumber | None = None
    """Dollars, counted with prices. Default: no limit."""
    max_minutes: PositiveNumber | None = None
    """Minutes. Default: no limit."""


class PricesConfig(Section):
    """Dollars per million tokens, and per thousand searches."""

    input: Price
    """Tokens sent."""
    output: Price
    """Tokens received."""
    cache_read: Price = Field(default_factory=lambda others: others.get("input", 0) * 0.1)
    """Tokens read from the cache. Default: 0.1 of input."""
    cache_write: Price = Field(default_factory=lambda others: others.get("input", 0) * 1.25)
    """Tokens written to the cache. Default: 1.25 of input, with cache_ttl 1h twice the input."""
    web_search: Price = 10.0
    """A thousand searches of the provider's own tool (`server: web_search_...`). What other tools of a provider cost
    beside their tokens, such as the time of a code execution, is not counted."""
