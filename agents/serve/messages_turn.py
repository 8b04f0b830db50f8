"""A request of the Messages API, carried out by its agent: what is new is told, the rest of the turn runs, and the
answer is read from the steps.

What the memory keeps of it is stored with what it is about in one transaction, so that a request that comes again after
a kill goes on where it was: it never begins a second turn. A server goes on with it by itself, too (`rest`).
"""

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, replace
from hashlib import blake2b

from agents.agent import Agent
from agents.events import Event, Replied, Stopped
from agents.explain import AnyMemory
from agents.serve.messages_history import BEGINNING, Place, Plan, digests, extended, plan
from agents.serve.messages_records import (
    HEAD,
    KEY,
    OFFER,
    Answer,
    Record,
    at_work,
    calls_of,
    last_step,
    load_place,
    load_record,
    read_record,
    repeat_step,
    replies_of,
    store_place,
    store_record,
    usage_of,
    visible,
)
from agents.serve.messages_request import Asked, BadRequestError, Message
from pager.memory import Memory
from pager.types import Json

PASSED_OVER = "This call was not run: something else was said first. Make it again if it is still wanted."
PAUSES = frozenset({"approval", "usd", "minutes", "steps"})
REASONS: dict[str, str] = {
    "begun": "a client of the Messages API began another conversation",
    "branched": "a client of the Messages API went back in its conversation",
}


class KeyReusedError(Exception):
    """An Idempotency-Key was used for another request."""


class Turn:
    """One request in its agent. `tell` is called when no other turn runs, `finish` when this one has stopped."""

    def __init__(self, asked: Asked, body: str, *, retried: bool = False, key: str = "") -> None:
        self.asked = asked
        self.history = digests(asked.messages)
        self.plan = Plan("continued", 0)
        self.answer: Answer | None = None
        self.said_before: tuple[Json, ...] = ()  # of the answer, when the request came before and was interrupted
        self._body = body
        self._retried = retried
        self._key = KEY + blake2b(key.encode(), digest_size=16).hexdigest() if key else ""
        self._of_key: Record | None = None
        self.message_id = ""  # the same for a request that comes again
        self._sequence: str | None = None
        self.is_repeated = self._has_note = False  # the answer was given before

    @property
    def digest(self) -> str:
        """Return the digest of the history that the request ends with."""
        return self.history[-1]

    # before the model is asked

    def tell(self, memory: Memory) -> bool:
        """Tell the agent what is new. Return False if the request was answered before."""
        self._check_key(memory)
        record = self._of_key or load_record(memory, self.digest)
        is_same = record is not None and record.body == self._body
        if record and record.last and is_same and (self._retried or not record.sent):
            self._name(record)
            self.plan, self.answer = Plan("repeated", len(self.history)), self._read(memory, record)
            self.is_repeated = True
            return False
        self._check_end(memory)
        with memory.transaction():
            begun = replies_of(memory, replace(record, last=last_step(memory))) if record and not record.last else []
            self._place(memory)
            told = last_step(memory)
            if self.plan.kind == "repeated":
                told = record.told if record else told
            else:
                for step in begun:  # its turn was left for another conversation: what has run is not run again
                    repeat_step(memory, step, self.asked.tool_names)
            record = Record(self._body, told)
            store_record(memory, self.digest, record)
            self._name(record)
            if told != last_step(memory):
                self.said_before = self._read(memory, replace(record, last=last_step(memory))).content
            memory.save_value(HEAD, self.digest)
            self._store_offer(memory)
            self._store_key(memory, None)
        return True

    def _store_key(self, memory: Memory, record: Record | None) -> None:
        """Store the request of an Idempotency-Key, and its answer: the same history may be asked with another key."""
        if self._key:
            answer = asdict(record) if record else None
            memory.save_value(self._key, json.dumps([self._body, self.digest, answer]))

    def _store_offer(self, memory: Memory) -> None:
        """Store what the request brings, for who has to go on without it. It rarely changes."""
        offer = json.dumps([self.asked.system, self.asked.tools, self.asked.options])
        if memory.load_value(OFFER) != offer:
            memory.save_value(OFFER, offer)

    def place(self, memory: Memory) -> None:
        """Tell what is new as `tell` does, for a request that is only counted: the caller undoes it."""
        self._check_end(memory)
        self._place(memory)

    def _name(self, record: Record) -> None:
        stamp = blake2b(f"{self.digest} {record.told}".encode(), digest_size=12).hexdigest()
        self.message_id = f"msg_{stamp}"

    def _check_key(self, memory: Memory) -> None:
        found = memory.load_value(self._key) if self._key else None
        if found is None:
            return
        body, history, answer = json.loads(found)
        if body != self._body or history != self.digest:
            raise KeyReusedError
        self._retried = True
        self._of_key = read_record(answer) if answer else None

    def _place(self, memory: Memory) -> None:
        """Bring the agent to the end of the history: to a branch, if it has to be, and with what is new."""
        memory.offer(instructions=self.asked.system, tools=self.asked.tools, options=self.asked.options)
        head, newest = memory.load_value(HEAD) or "", last_step(memory)

        def is_here(index: int) -> bool:
            place = load_place(memory, self.history[index])
            if place is None or (self.history[index] != head and place.step != newest):
                return False
            return self._can_go_on(memory, place, newest, index)

        anew = not (memory.turn_is_open or self._was_answered(memory))
        self.plan = plan(self.history, lambda each: load_place(memory, each), is_here, anew=anew)
        if self.plan.kind in REASONS and newest != "s0":
            memory.branch(self.plan.after, REASONS[self.plan.kind])
        places = [load_place(memory, each) for each in self.history[self.plan.told :]]
        for index, place in enumerate(places, self.plan.told):
            self._say(memory, index, place)

    def _can_go_on(self, memory: Memory, place: Place, newest: str, index: int) -> bool:
        """Return True if the agent's turn has ended at a place, or is the open one and waits for what comes there."""
        if place.ends_turn:
            return True
        is_last = index == len(self.history) - 1
        if not is_last and (place.step != newest or not memory.turn_is_open):
            return False  # the turn has gone on, with what the client's next message does not know of
        if newest == "s0" or memory.inspect.step(newest).turn != memory.inspect.step(place.step).turn:
            return False
        calls = {call["id"] for call in self.asked.messages[index].calls}
        return calls <= {call.id for call in memory.open_calls}

    def _was_answered(self, memory: AnyMemory) -> bool:
        """Return True if the turn ended before that could be noted: the process was killed in between."""
        record = load_record(memory, self.digest)
        return bool(record and not record.last and replies_of(memory, replace(record, last=last_step(memory))))

    def _check_end(self, memory: Memory) -> None:
        """Refuse a history that ends with a reply, unless that is the paused answer of the open turn."""
        if self.asked.messages[-1].role == "user":
            return
        place = load_place(memory, self.digest)
        if place and place.step == last_step(memory) and memory.turn_is_open:
            return
        why = "this agent does not go on from a text of a client"
        if place and not place.ends_turn:
            why = "its paused turn was left when something else was said, and what waited for approval was not run"
        raise BadRequestError(f"messages: The conversation must end with a user message: {why}.")

    def _say(self, memory: Memory, index: int, place: Place | None) -> None:
        """Tell one message of the history. An answer of this agent, which has a `place`, is told with the steps between
        it and what it answers: what the agent's own tools did stands in no history of a client."""
        message, before = self.asked.messages[index], last_step(memory)
        if message.role == "user":
            self._say_as_user(memory, index, message)
        elif place is not None and place.told:
            for step in replies_of(memory, Record("", place.told, place.step)):
                repeat_step(memory, step, {call["name"] for call in message.calls})
        else:
            self._repeat_reply(memory, message)
        told = before if message.role == "assistant" else ""
        store_place(memory, self.history[index], Place(last_step(memory), not memory.turn_is_open, told))

    def _say_as_user(self, memory: Memory, index: int, message: Message) -> None:
        calls = [call["id"] for call in self.asked.messages[index - 1].calls] if index else []
        waiting = [call.id for call in memory.open_calls]
        for block in message.results:
            call = block["tool_use_id"]
            if call not in waiting:  # a call of a history from elsewhere may have got another id here
                call = waiting[calls.index(call)]
            content = block.get("content") or ""
            memory.append_result(call, content, is_error=bool(block.get("is_error")))
        said = [block for block in message.blocks if block["type"] != "tool_result"]
        if said:
            if not memory.accepts_message:
                memory.answer_interrupted()  # what would have run again has run, perhaps
                memory.leave_turn(PASSED_OVER)
            memory.append_user(said, recall=index == len(self.history) - 1)

    def _repeat_reply(self, memory: Memory, message: Message) -> None:
        """Store a reply of the history that this agent did not give in this branch, as if it had."""
        content = [block for block in message.blocks if block["type"] != "text" or block["text"].strip()]
        stop = "tool_use" if message.calls else "end_turn"
        memory.append_assistant({"role": "assistant", "content": content, "stop_reason": stop, "model": "client"})

    # when it has stopped

    def take(self, event: Replied) -> None:
        """Note what only the event of a reply tells."""
        self._sequence = event.stop_sequence

    def replied(self, memory: Memory) -> None:
        """Store the answer in the transaction of the reply that ends it. A stop sequence is only known behind that."""
        if not memory.turn_is_open and memory.history.stop_reason(last_step(memory)) != "stop_sequence":
            self.finish(memory, Stopped("answered"))

    def finish(self, memory: Memory, stopped: Stopped) -> Answer:
        """Store how the turn has stopped, and return its answer."""
        if self.answer is not None:
            return self.answer
        record = load_record(memory, self.digest)
        assert record is not None
        is_open, last = memory.turn_is_open, last_step(memory)
        waiting = {call.id: call.name for call in memory.open_calls} if is_open else {}
        calls = tuple((call, name) for call, name in waiting.items() if name in self.asked.tool_names)
        stop = memory.history.stop_reason(last)
        note = stopped.text if is_open and stopped.reason in PAUSES else ""
        if stopped.reason == "calls":
            stop = "tool_use"
        elif is_open:
            stop = "pause_turn"
        elif stop in ("tool_use", "pause_turn", ""):
            stop = "end_turn"
        self._has_note = bool(note)
        calls = calls if stop == "tool_use" else ()
        record = replace(record, last=last, stop=stop, sequence=self._stopped_by(stop), note=note, calls=calls)
        answer = self._read(memory, record)
        head, paused = self._with_answer(answer), load_place(memory, self.digest)
        told = paused.told if paused and self.asked.messages[-1].role == "assistant" else record.told
        with memory.transaction():
            store_place(memory, head, Place(last, not is_open, told))
            memory.save_value(HEAD, head)
            store_record(memory, self.digest, record)
            self._store_key(memory, record)
        self.answer = answer
        return answer

    @property
    def unsent(self) -> tuple[Json, ...]:
        """Return the blocks of the answer that no event of the turn has told: all, if it was answered before."""
        assert self.answer is not None
        if self.is_repeated:
            return self.answer.content
        calls = [block for block in self.answer.content if block["type"] == "tool_use"]
        return (*calls, *([self.answer.content[-1]] if self._has_note else []))

    def _stopped_by(self, stop: str) -> str | None:
        sequences = self.asked.options.get("stop_sequences", [])
        if stop != "stop_sequence":
            return None
        return self._sequence or (sequences[0] if len(sequences) == 1 else None)

    def _with_answer(self, answer: Answer) -> str:
        """Return the digest of the history with the answer behind it, as the client will send it."""
        message = self.asked.messages[-1]
        if message.role == "user":
            return extended(self.digest, Message("assistant", answer.content))
        before = self.history[-2] if len(self.history) > 1 else BEGINNING
        return extended(before, Message("assistant", (*message.blocks, *answer.content)))

    def _read(self, memory: AnyMemory, record: Record) -> Answer:
        """Read the answer from the steps: what the model said, and its calls of the client's tools."""
        replies = replies_of(memory, record)
        content = [block for step in replies for block in visible(memory, step, thinking=self.asked.shows_thinking)]
        content += calls_of(memory, record) if record.calls else []
        if record.note:
            content.append({"type": "text", "text": record.note})
        usage, model = usage_of(memory, replies)
        return Answer(self.message_id, model, tuple(content), record.stop, record.sequence, usage)


def rest(agent: Agent) -> Generator[Event]:
    """Go on with the open turn. That of a request whose process was killed gets what its client brought, and the client
    gets the answer when it sends the request again."""
    memory = agent.memory
    record = at_work(memory)
    if record is None:
        yield from agent.resume_stream()
        return
    head, (system, tools, options) = memory.load_value(HEAD) or "", json.loads(memory.load_value(OFFER) or "")

    def offer() -> bool:
        memory.offer(instructions=system, tools=tools, options=options)
        return True

    with closing(agent.stream_told(offer, elsewhere=[tool["name"] for tool in tools])) as events:
        for event in events:
            if isinstance(event, Stopped) and event.reason != "cancelled" and memory.turn_is_open:
                store_record(memory, head, replace(record, pauses=True))
            yield event
