"""Write the conversation: user messages, replies, tool results. Each is stored exactly as it came.

What the prompt carries of a part (disarmed, spilled, without blank text) is decided here once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pager import blocks, markup
from pager.clock import Clock, to_micros
from pager.conversation import replies
from pager.conversation.content import checked_result
from pager.conversation.spill import PREVIEW_SHARE, spill
from pager.search.words import index_text
from pager.store import Store
from pager.store.rows import Answered, Part, PartKind, Slot, Step
from pager.tokens.counter import Window, count_block
from pager.types import ZERO, Counts, Json

Content = str | Sequence[Mapping[str, Any]]
_BROKEN_OFF = replies.CUT_STOPS | {"pause_turn"}


class Conversation:
    """Appends to the conversation. Every method belongs into a transaction of its caller."""

    def __init__(self, store: Store, clock: Clock, window: Window) -> None:
        self._store = store
        self._clock = clock
        self._window = window

    def append_user(
        self, content: Content, *, name: str | None, at: int, turn: int | None, epoch: int, recalled: Sequence[str],
        sources: frozenset[str],
    ) -> Step:  # fmt: skip
        """Append a user message; without `turn` it begins one. The `sources` are the untrusted ones of `recalled`."""
        number = self._store.conversation.append_step("user", "user", at, turn=turn, name=name, sources=sources)
        step = Step(number, "user", turn or number, at, [], [], name=name, sources=sources)
        said = blocks.as_blocks(content) or [blocks.text_block("")]
        for block, carried in zip(said, blocks.disarmed(said), strict=True):
            form = blocks.text_block(markup.NO_TEXT) if blocks.is_blank(block) else carried
            self._append(step, "said", "user", block, form, at, epoch, searchable=True)
        if recalled:
            block = blocks.text_block(markup.recalled(recalled))
            self._append(step, "recalled", "user", block, block, at, epoch, may_spill=False)  # it has its own budget
        self._store.prompt.enter(f"s{number}", "step", number)
        return step

    def replace_recalled(self, step: Step, lines: Sequence[str], epoch: int) -> None:
        """Put other recalled pages into a user message that was not sent yet."""
        for index, part in enumerate(step.parts):
            if part.kind == "recalled" and part.form is not None:
                self._store.conversation.reform(part.id, epoch, None)
                self._store.conversation.size(part.id, ZERO)
                step.parts[index] = replace(part, form=None, counts=ZERO)
        self.append_aside(step, "recalled", markup.recalled(lines), epoch)

    def append_aside(self, step: Step, kind: PartKind, text: str, epoch: int) -> None:
        """Append a notice, an update or recalled pages to a step that was not sent yet."""
        block = blocks.text_block(text)
        slot: Slot = "user" if step.kind == "user" else "result"
        self._append(step, kind, slot, block, block, to_micros(self._clock.now()), epoch, may_spill=False)

    def read_reply(self, reply: replies.Reply, after: Step) -> replies.Carried:
        """Decide what the prompt carries of a reply that follows the step `after`."""
        table, cuts = self._store.conversation, 0
        if reply.stop_reason in _BROKEN_OFF:
            # Broken-off replies in a row, also those that have left the prompt. A whole one ends the row.
            for row in table.newest_of_turn(after.turn, replies.CUT_REPLIES_END_TURN):
                if row["kind"] != "assistant" or row["stop_reason"] not in _BROKEN_OFF:
                    break
                cuts += 1
        return replies.carry(reply, is_used=table.call_exists, next_step=after.id + 1, cuts_before=cuts)

    def append_reply(
        self, reply: replies.Reply, carried: replies.Carried, after: Step, request: Answered, epoch: int
    ) -> tuple[Step, Answered]:
        """Append a reply with its calls. Return its step, and the request that it answers, completed and stored."""
        table, now = self._store.conversation, to_micros(self._clock.now())
        stop, ends, goes_on = reply.stop_reason, carried.ends_turn, after.paused
        number = table.append_step(
            "assistant", "assistant", now, turn=after.turn, stop_reason=stop, continues=goes_on, ends_turn=ends,
            sources=request.sources,
        )  # fmt: skip
        step = Step(
            number, "assistant", after.turn, now, [], [], goes_on, ends, stop, paused=carried.paused,
            sources=request.sources,
        )  # fmt: skip
        for index, (block, form) in enumerate(zip(reply.blocks, carried.forms, strict=True)):
            searchable = "text" in block and block.get("type") not in blocks.THINKING and not blocks.is_blank(block)
            part = self._append(step, "said", "reply", block, form, now, epoch, searchable=searchable, may_spill=False)
            if index in carried.call_ids:
                call = carried.call_ids[index]
                table.append_call(call, number, part.id)
                step.open_calls.append(call)
        answered = replace(request, step=number, usage=reply.usage)
        self._store.prompt.save_request(answered, now)
        if carried.cut_call:
            self.append_result(step, carried.cut_call, replies.CUT_CALL, epoch=epoch, is_error=True, searchable=False)
        if not carried.drop:
            self._store.prompt.enter(f"s{number}", "step", number)
        return step, answered

    def append_result(
        self, step: Step, call_id: str, content: Content, *, epoch: int, is_error: bool, searchable: bool
    ) -> None:
        """Append the result of an open call of `step`. One that is not searchable is a memory tool's, never spilled."""
        if not isinstance(content, str):
            content = checked_result(content)
        inner = blocks.as_blocks(content) if content else []
        visible = [item for item in inner if not blocks.is_blank(item)]
        block: Json = {"type": "tool_result", "tool_use_id": call_id}
        if inner:
            block["content"] = inner
        if is_error:
            block["is_error"] = True
        form = dict(block)  # in the same order: an equal form is stored once
        if visible or is_error:  # the API refuses an error without content
            form["content"] = visible or [blocks.text_block(markup.NO_TEXT)]
        else:
            form.pop("content", None)
        [form], now, found = blocks.disarmed([form]), to_micros(self._clock.now()), searchable
        part = self._append(step, "said", "result", block, form, now, epoch, searchable=found, may_spill=found)
        self._store.conversation.answer_call(call_id, part.id)
        step.open_calls.remove(call_id)

    def _append(
        self, step: Step, kind: PartKind, slot: Slot, block: Json, form: Json | None, at: int, epoch: int, *,
        searchable: bool = False, may_spill: bool = True,
    ) -> Part:  # fmt: skip
        """Append a part as it came (`block`) and as the prompt carries it (`form`), spilled if it is too large."""
        table, text = self._store.conversation, blocks.text_of(block) if searchable else ""
        counts: Counts | None = ZERO
        if form is not None:
            counts = self._window.count_part(form) if may_spill else count_block(form)
        words = index_text(text, step.name) if text else None
        number = table.append_part(step.id, kind, slot, block, at, words, counts)
        if counts is None:
            limit, counter = self._window.limits.max_part_tokens, self._window.counter
            form = spill(block, f"x{number}", int(limit * PREVIEW_SHARE), counter)
            counts = count_block(form)
            table.size(number, counts)
            shown, reason = counter.tokens(counts), f"larger than {limit} tokens"
            self._store.ledger.write("spill", f"x{number}", reason=reason, tokens=shown, step_id=f"s{step.id}")
        if form != block:
            table.reform(number, epoch, form)
        part = Part(number, kind, slot, form, counts)
        step.parts.append(part)
        return part
