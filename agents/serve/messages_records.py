"""What the memory keeps of requests of the Messages API, and the answers that are read from it.

Values of the memory: the digest of the history at which the agent is (`HEAD`), where each known history ends (`PLACE`),
what became of each request (`ANSWER`), the request of each Idempotency-Key (`KEY`), and the instructions, tools and
options of the newest request (`OFFER`). The others hold digests and ids; what was said is in the steps.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, astuple, dataclass, replace

from agents.explain import AnyMemory
from agents.serve.messages_history import Place
from pager.memory import Memory
from pager.types import Json, Usage, number_of

HEAD, OFFER = "messages:head", "messages:offer"
PLACE, ANSWER, KEY = "messages:place:", "messages:answer:", "messages:key:"
SIGNATURE = "selfpager"  # of thinking that is shown: the agent keeps the provider's own


@dataclass(frozen=True, slots=True)
class Record:
    """What became of a request. `body` is its digest; what was told ends with the step `told`, the answer with `last`,
    or is still to come. `sent`: the client has it. `pauses`: its turn stands still, and the client was not there."""

    body: str
    told: str
    last: str = ""
    stop: str = ""
    sequence: str | None = None
    note: str = ""  # what stands behind the model's words: why the turn paused
    calls: tuple[tuple[str, str], ...] = ()  # of the client's tools: id and name
    sent: bool = False
    pauses: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, without what only one of its two forms has."""

    id: str
    model: str
    content: tuple[Json, ...]
    stop_reason: str
    stop_sequence: str | None
    usage: Usage

    @property
    def message(self) -> Json:
        """Return it as the API answers without streaming."""
        return {
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": list(self.content),
            "stop_reason": self.stop_reason, "stop_sequence": self.stop_sequence, "usage": usage_json(self.usage),
        }  # fmt: skip


def usage_json(usage: Usage) -> Json:
    """Return the usage as the API has it."""
    found = {name: value for name, value in asdict(usage).items() if name != "web_search_requests"}
    searches = usage.web_search_requests
    return {**found, **({"server_tool_use": {"web_search_requests": searches}} if searches else {})}


def mark_sent(memory: Memory, digest: str) -> None:
    """Note that the client has the answer: the same words again are another turn. No commit waits for the disk for
    that: what is lost makes the same request get the same answer."""
    record = load_record(memory, digest)
    if record is not None and record.last and not record.sent:
        store_record(memory, digest, replace(record, sent=True), durable=False)


# what the memory keeps


def load_place(memory: AnyMemory, digest: str) -> Place | None:
    """Return where a history ends; None if it was never told."""
    text = memory.load_value(PLACE + digest) if digest else None
    return Place(*json.loads(text)) if text else None


def store_place(memory: Memory, digest: str, place: Place) -> None:
    """Store where a history ends."""
    memory.save_value(PLACE + digest, json.dumps(astuple(place)))


def load_record(memory: AnyMemory, digest: str) -> Record | None:
    """Return what became of the newest request with this history."""
    text = memory.load_value(ANSWER + digest)
    return read_record(json.loads(text)) if text else None


def read_record(stored: Json) -> Record:
    """Return a record as it was stored."""
    record = Record(**stored)
    return replace(record, calls=tuple((call, name) for call, name in record.calls))


def store_record(memory: Memory, digest: str, record: Record, *, durable: bool = True) -> None:
    """Store what became of a request."""
    memory.save_value(ANSWER + digest, json.dumps(asdict(record)), durable=durable)


def at_work(memory: Memory) -> Record | None:
    """Return the record of the newest request while its turn is open and has not stopped yet; it may wait for whoever
    goes on with it after a kill."""
    record = load_record(memory, memory.load_value(HEAD) or "")
    if record is None or record.last or not memory.turn_is_open:
        return None
    turns = {memory.inspect.step(step).turn for step in (record.told, last_step(memory))}
    return record if len(turns) == 1 else None


def waits(memory: Memory) -> bool:
    """Return True if the open turn waits for a client: for results of its calls, or because it has paused."""
    record = at_work(memory)
    if record is not None:
        return record.pauses
    place = load_place(memory, memory.load_value(HEAD) or "")
    return place is not None and not place.ends_turn and place.step == last_step(memory)


def last_step(memory: AnyMemory) -> str:
    """Return the newest step of the conversation; "s0" before the first."""
    offset = 0
    while rows := memory.inspect.steps(offset, max(1, min(50, offset))).rows:  # nearly always the first one
        for row in rows:
            if row.kind != "record":
                return row.page_id
        offset += len(rows)
    return "s0"


def replies_of(memory: AnyMemory, record: Record) -> list[str]:
    """Return the steps in which the model answered the request."""
    turn, found = memory.inspect.step(record.told).turn, list[str]()
    for number in range(number_of(record.told) + 1, number_of(record.last) + 1):
        row = memory.inspect.step(f"s{number}")
        if row.kind == "assistant" and row.turn == turn:
            found.append(row.page_id)
        elif row.kind != "record" and row.turn != turn:  # of another branch, perhaps
            break
    return found


def repeat_step(memory: Memory, step: str, leaves: Collection[str]) -> None:
    """Append a reply of another branch once more, with the results of its calls. Those of the tools in `leaves` stay
    open."""
    parts, sources = memory.inspect.said_parts(step), memory.inspect.step(step).via
    content = [part.block for part in parts if part.slot == "reply" and part.block["type"] in ("text", "tool_use")]
    stop = memory.history.stop_reason(step)
    memory.append_assistant({"role": "assistant", "content": content, "stop_reason": stop, "model": "client"})
    results = {part.block["tool_use_id"]: part for part in parts if part.slot == "result"}
    calls = [block["id"] for block in content if block["type"] == "tool_use"]
    others = iter([part for call, part in results.items() if call not in calls])  # an id that a model gave twice
    for given, call in zip(calls, memory.open_calls, strict=False):
        part = results.get(given) or next(others, None)
        if part is None or call.name in leaves:
            continue
        memory.append_result(
            call.id, part.block.get("content", ""), is_error=bool(part.block.get("is_error")),
            memory_tool=not part.searchable, source=sources,
        )  # fmt: skip


def usage_of(memory: AnyMemory, replies: list[str]) -> tuple[Usage, str]:
    """Return what replies have used together, as the provider said, and the model that gave them."""
    total, model = Usage(), ""
    for request in memory.inspect.requests(0, len(replies), through=replies[-1]).rows if replies else ():
        if request.step in replies:
            total = total + request.usage if request.usage else total
            model = model or request.model
    return total, model


def visible(memory: AnyMemory, step: str, *, thinking: bool) -> Iterator[Json]:
    """Yield what a client sees of a reply, but for calls of its tools."""
    for block in memory.history.blocks_of(step):
        if block["type"] == "text" and block["text"]:
            yield {"type": "text", "text": block["text"]}
        elif block["type"] == "thinking" and thinking:
            yield {"type": "thinking", "thinking": block["thinking"], "signature": SIGNATURE}


def calls_of(memory: AnyMemory, record: Record) -> list[Json]:
    """Return the calls of the client's tools that an answer ends with."""
    blocks = memory.history.blocks_of(record.last)
    ids = _ids(blocks, record.calls)
    return [
        {"type": "tool_use", "id": call, "name": blocks[index]["name"], "input": blocks[index]["input"]}
        for index, call in ids.items()
    ]


def _ids(blocks: list[Json], calls: tuple[tuple[str, str], ...]) -> dict[int, str]:
    """Return under which ids the calls that wait are known, by the place of their blocks: a model may give an id twice,
    and then the memory gives another one."""
    names = {name for _, name in calls}
    own = {i: block for i, block in enumerate(blocks) if block["type"] == "tool_use" and block["name"] in names}
    waiting = [call for call, _ in calls]
    renamed = [call for call in waiting if call not in {block.get("id") for block in own.values()}]
    found: dict[int, str] = {}
    for index, block in own.items():
        if block.get("id") in waiting:
            found[index] = block["id"]
        elif renamed:
            found[index] = renamed.pop(0)
    return found
