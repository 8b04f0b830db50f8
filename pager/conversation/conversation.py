"""The recall tier's writing side: user messages, replies and tool results.

Every append is committed when the call returns, exactly as it came; what the prompt carries of it (disarmed, spilled,
without blank text) is decided here once. `view` is the prompt in memory and follows each commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pager import blocks, markup
from pager.arguments import text_of_person, text_or_none
from pager.blocks import clean
from pager.clock import Clock, Moment, moment_of, to_micros
from pager.conversation import replies
from pager.conversation import sizes as sizing
from pager.conversation.content import check_result, check_user
from pager.errors import NotFoundError, OpenCallsError, RejectedError
from pager.limits import Limits
from pager.prompt.state import PromptState
from pager.search.words import index_text
from pager.store import Store
from pager.store.ledger import Ledger
from pager.tokens.counter import Counter
from pager.types import Answered, Json, Part, PartKind, Slot, Step, read_page_id

Content = str | Sequence[Mapping[str, Any]]
_BROKEN_OFF = replies.CUT_STOPS | {"pause_turn"}


class Present(Protocol):
    """What the conversation has to know of the prompt: its view, its limits, and the counter of its model."""

    @property
    def view(self) -> PromptState: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def counter(self) -> Counter: ...


class Conversation:
    def __init__(self, store: Store, clock: Clock, ledger: Ledger, present: Present) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._present = present

    # user messages

    def append_user(self, content: Content, *, name: str | None, at: Moment | None, recalled: Sequence[str]) -> int:
        check_user(content)
        self.refuse_if_open()
        name = clean(text_or_none(name, "name"))
        view, moment = self._present.view, moment_of(at, self._clock)
        turn = view.last.turn if view.last and not view.last.ends_turn else None
        with self._store.transaction():
            number = self._store.conversation.append_step("user", "user", moment, turn=turn, name=name)
            step = Step(number, "user", turn or number, moment, [], [])
            for block in blocks.as_blocks(content) or [blocks.text_block("")]:
                form = blocks.text_block(markup.NO_TEXT) if blocks.is_blank(block) else blocks.disarmed(block)
                step.parts.append(self._append(number, "said", "user", block, form, moment, searchable=True, name=name))
            if recalled:
                block = blocks.text_block(markup.recalled(recalled))
                step.parts.append(self._append(number, "recalled", "user", block, block, moment))
            self._store.prompt.enter(f"s{number}", "step", number)
        view.steps.append(step)
        return number

    def refuse_if_open(self) -> None:
        """A user message may not come between a call and its result, nor into a paused reply."""
        last = self._present.view.last
        if last is None or last.closed:
            return
        if last.open_calls:
            raise OpenCallsError(
                f"the tool calls {', '.join(last.open_calls)} wait for their results; give them first, with "
                "append_result."
            )
        raise OpenCallsError(
            "the last reply paused; send request() again and append the reply that goes on before anything else."
        )

    def _append(
        self, step: int, kind: PartKind, slot: Slot, block: Json, form: Json | None, at: int, *,
        searchable: bool = False, name: str | None = None, may_spill: bool = True,
    ) -> Part:  # fmt: skip
        """A part as it came and as it is carried; too large a one is spilled."""
        table = self._store.conversation
        text = blocks.text_of(block) if searchable else ""
        number = table.append_part(step, kind, slot, block, at, searchable=bool(text))
        limit, counter = self._present.limits.max_part_tokens, self._present.counter
        if form is not None and may_spill and sizing.too_large(form, limit, counter):
            form = sizing.spill(block, f"x{number}", int(limit * sizing.PREVIEW_SHARE), counter)
            shown, why = counter.tokens(sizing.count(form)), f"larger than {limit} tokens"
            self._ledger.write("spill", f"x{number}", reason=why, tokens=shown, step_id=f"s{step}")
        if form != block:
            view = self._present.view
            table.reform(number, view.epoch.id if view.epoch else 0, form)
        counts = sizing.count(form) if form is not None else sizing.Counts()
        table.size(number, counts)
        if text:
            # Last: before a statement that it may have to undo alone, SQLite writes out the words that wait.
            self._store.said.index_words(number, index_text(text, name))
        return Part(number, kind, slot, form, counts)

    def append_aside(self, kind: PartKind, text: str) -> None:
        """A notice, an update: behind what was said in the last step, which was not sent yet."""
        view, block = self._present.view, blocks.text_block(text)
        step = view.steps[-1]
        slot: Slot = "user" if step.kind == "user" else "result"
        with self._store.transaction():
            part = self._append(step.id, kind, slot, block, block, to_micros(self._clock.now()), may_spill=False)
        step.parts.append(part)

    # replies

    def append_reply(self, reply: replies.Reply, request: Answered) -> Step:
        """The model's reply, raw and carried, with the request that it answered. `request.step` is not known yet."""
        view, now = self._present.view, to_micros(self._clock.now())
        last = self._replied_to(request)
        table = self._store.conversation
        cuts = self._cuts_before(reply, last.turn)
        carried = replies.carry(reply, taken=table.call_exists, step_hint=last.id + 1, cuts_before=cuts)
        with self._store.transaction():
            number = table.append_step(
                "assistant", "assistant", now, turn=last.turn, stop_reason=reply.stop_reason,
                continues=last.paused, ends_turn=carried.ends_turn,
            )  # fmt: skip
            step = Step(
                number, "assistant", last.turn, now, [], list(carried.call_ids.values()),
                last.paused, carried.ends_turn,
                "pause_turn" if carried.paused else reply.stop_reason,
            )  # fmt: skip
            self._append_reply_parts(step, reply, carried)
            answered = replace(request, step=number, usage=reply.usage)
            self._store.prompt.answered(answered, now)
            if carried.cut_call:
                step.open_calls.remove(carried.cut_call)
                step.parts.append(
                    self._append_result(number, carried.cut_call, replies.CUT_CALL, is_error=True, searchable=False)
                )
            if not carried.drop:
                self._store.prompt.enter(f"s{number}", "step", number)
            else:
                if carried.ends_turn:
                    table.end_turn(last.id)
                self._drop(step, carried)
        self._show(step, carried)
        view.rest_on(answered)
        return step

    def _replied_to(self, request: Answered) -> Step:
        """The last step of the prompt, which the reply to `request` follows."""
        view = self._present.view
        last = view.last
        if last is None or last.open_calls or last.ends_turn:
            raise RejectedError("there is nothing to reply to: append a user message or the open tool results first.")
        if view.last_part > request.through_part:
            raise RejectedError(
                "a message was appended after the request that this reply answers, so the reply belongs nowhere; send "
                "request() again."
            )
        return last

    def _show(self, step: Step, carried: replies.Carried) -> None:
        """The prompt in memory, after the commit."""
        view = self._present.view
        if not carried.drop:
            view.steps.append(step)
        elif carried.drop_request:
            view.replace_steps([kept for kept in view.steps if kept.turn != step.turn])
        if carried.drop and carried.ends_turn and view.steps:
            view.steps[-1].ends_turn = True

    def _append_reply_parts(self, step: Step, reply: replies.Reply, carried: replies.Carried) -> None:
        for index, (block, form) in enumerate(zip(reply.blocks, carried.forms, strict=True)):
            spoken = block.get("type") not in blocks.THINKING and not blocks.is_blank(block)
            part = self._append(
                step.id, "said", "reply", block, form, step.at, searchable=spoken and "text" in block, may_spill=False
            )
            step.parts.append(part)
            if index in carried.call_ids:
                self._store.conversation.append_call(carried.call_ids[index], step.id, part.id)

    def _drop(self, step: Step, carried: replies.Carried) -> None:
        """The reply stays on disk and out of the prompt; a refused one takes its whole turn along."""
        self._note_drop(step, carried.drop)
        if not carried.drop_request:
            if step.continues:
                self.abandon_pause(carried.drop)  # nothing but what goes on may stand behind a paused reply
                if carried.ends_turn:
                    self._store.conversation.end_turn(self._present.view.steps[-1].id)
            return
        dropped = [resident for resident in self._present.view.steps if resident.turn == step.turn]
        for resident in dropped:
            self._leave(resident, step.id, carried.drop)
        if self._only_new_epoch_shows(step.turn, dropped):
            self._store.prompt.end_epoch(step.id)
            self._present.view.epoch_lives = False

    def _leave(self, gone: Step, step: int, why: str) -> None:
        self._store.prompt.leave(f"s{gone.id}", "step", step, why)
        self._store.said.owe([gone.id])
        self._store.prompt.release([gone.id], step, why)
        self._note_drop(gone, why)

    def _note_drop(self, gone: Step, why: str) -> None:
        size = self._present.counter.tokens(sum((part.counts for part in gone.parts if part.form), sizing.Counts()))
        self._ledger.write("drop", f"s{gone.id}", reason=why, tokens=size)

    def abandon_pause(self, why: str) -> None:
        """A paused reply that cannot be sent back as it came leaves the prompt: the model answers anew."""
        view, step = self._present.view, self._store.conversation.last_step()
        kept = list(view.steps)
        with self._store.transaction():
            while kept and kept[-1].paused:
                self._leave(kept.pop(), step, why)
        view.replace_steps(kept)
        view.forget_base()

    def _only_new_epoch_shows(self, turn: int, dropped: Sequence[Step]) -> bool:
        """Whether the prompt is wrong without these steps of a turn: its request stands in the preamble, or what is now
        in core or pinned was told or done in them."""
        stays = self._store.prompt.resident()
        in_preamble = any(stay.page_id == f"s{turn}" and stay.how == "request" for stay in stays)
        told = any(part.kind in ("notice", "update") for step in dropped for part in step.parts)
        moved = self._ledger.movements(events=("core", "pin"), limit=1)
        return in_preamble or told or any(movement.step >= turn for movement in moved)

    def _cuts_before(self, reply: replies.Reply, turn: int) -> int:
        """How many replies in a row were cut or paused before this one, also those that have left the prompt
        meanwhile. A whole one ends the row."""
        count = 0
        if reply.stop_reason not in _BROKEN_OFF:
            return count
        for row in self._store.conversation.newest_of_turn(turn, replies.CUT_REPLIES_END_TURN):
            if row["kind"] != "assistant" or row["stop_reason"] not in _BROKEN_OFF:
                break
            count += 1
        return count

    def mark_done(self, page_id: str) -> None:
        kind, number = read_page_id(page_id)
        row = self._store.conversation.step(number) if kind == "s" else None
        if row is None or row["kind"] != "user":
            raise NotFoundError(f"{page_id} is no user message; give the step (s12) that asked for what is done.")
        with self._store.transaction():
            self._store.conversation.mark_done(number)
            self._ledger.write("done", page_id, reason="what it asked for is done", actor="agent")

    # tool calls

    def begin_call(self, call_id: str) -> None:
        self._step_of(call_id)
        with self._store.transaction():
            self._store.conversation.begin_call(call_id, to_micros(self._clock.now()))

    def hold_call(self, call_id: str) -> None:
        self._step_of(call_id)
        with self._store.transaction():
            self._store.conversation.hold_call(call_id)

    def _step_of(self, call_id: str) -> Step:
        """The step in which a call is open: the last one, or none."""
        text_of_person(call_id, "the call's id")
        last = self._present.view.last
        if last is not None and call_id in last.open_calls:
            return last
        waiting = ", ".join(last.open_calls) if last else ""
        state = "was answered already" if self._store.conversation.call_exists(call_id) else "was never made"
        raise NotFoundError(
            f"the call {call_id!r} {state}; " + (f"open are {waiting}." if waiting else "no call is open.")
        )

    def append_result(self, call_id: str, content: Content, *, is_error: bool, memory_tool: bool) -> None:
        last = self._step_of(call_id)
        check_result(content)
        with self._store.transaction():
            part = self._append_result(last.id, call_id, content, is_error=is_error, searchable=not memory_tool)
        last.open_calls.remove(call_id)
        last.parts.append(part)

    def _append_result(self, step: int, call_id: str, content: Content, *, is_error: bool, searchable: bool) -> Part:
        block: Json = {"type": "tool_result", "tool_use_id": call_id}
        inner = blocks.as_blocks(content) if content else []
        spoken = [item for item in inner if not blocks.is_blank(item)]
        if inner:
            block["content"] = inner
        if is_error:
            block["is_error"] = True
        form = dict(block)  # in the same order: a form that is equal is read back from the block
        if spoken or is_error:  # an error without content is refused
            form["content"] = spoken or [blocks.text_block(markup.NO_TEXT)]
        else:
            form.pop("content", None)
        now = to_micros(self._clock.now())
        # What a memory tool answers is bounded by the tool itself, and is never spilled again.
        part = self._append(
            step, "said", "result", block, blocks.disarmed(form), now, searchable=searchable, may_spill=searchable
        )
        self._store.conversation.answer_call(call_id, part.id)
        return part
