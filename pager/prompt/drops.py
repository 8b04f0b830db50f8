"""Drop from the prompt what may not go to the model: refused, empty and cut replies, and files that the provider
refused. They stay on disk."""

from collections.abc import Sequence

from pager import blocks, markup
from pager.conversation.replies import Carried
from pager.prompt.state import PromptState
from pager.store import Store
from pager.store.rows import Part, Step
from pager.tokens.counter import Window, count_block
from pager.types import Counts, number_of


class Drops:
    """Called in the transaction that commits the reply, or that opens a new epoch."""

    def __init__(self, store: Store, window: Window) -> None:
        self._store = store
        self._window = window

    def drop_reply(self, state: PromptState, step: Step, after: Step, carried: Carried) -> None:
        """Leave a reply out of the prompt; it stays on disk. A refused one takes its whole turn along."""
        self._log_drop(step, carried.drop)
        if carried.ends_turn:
            self._store.conversation.end_turn(after.id)
        if carried.drop_request:
            dropped = [resident for resident in state.steps if resident.turn == step.turn]
            for resident in dropped:
                self._leave(resident, step.id, carried.drop)
            if self._needs_new_epoch(step.turn, dropped):
                self._store.prompt.end_epoch(step.id)
                state.epoch_lives = False
            state.replace_steps([resident for resident in state.steps if resident.turn != step.turn])
        elif step.continues:
            self.drop_pause(state, carried.drop)  # only the reply that goes on may stand behind a paused one
            if carried.ends_turn:
                self._store.conversation.end_turn(state.steps[-1].id)
        if carried.ends_turn and state.steps:
            state.steps[-1].ends_turn = True

    def drop_pause(self, state: PromptState, reason: str) -> None:
        """Drop a paused reply that cannot be sent back as it came: the model answers anew."""
        step = self._store.conversation.last_step()
        staying = list(state.steps)
        with self._store.transaction():
            while staying and staying[-1].paused:
                self._leave(staying.pop(), step, reason)
        state.replace_steps(staying)
        state.reset_base()

    def drop_media(self, state: PromptState, requests: Sequence[Step], place: tuple[int, int] | None) -> str | None:
        """Put its id in the place of the file at a place of the last request, else of the newest. The next epoch has to
        be opened then. Return the id; None if neither the steps nor the `requests` of the preamble have a file."""
        resident = {part.id: part for step in state.steps for part in step.parts}
        parts = {part.id: part for step in requests for part in step.parts} | resident
        held = {number: part for number, part in parts.items() if part.form and any(blocks.media_in(part.form))}
        number = next((each for each in state.parts_at(place) if each in held), max(held, default=None))
        if number is None:
            return None
        # A request that was answered is made again as it was sent: what it carried changes in the next epoch.
        # What only the preamble carries, which the epoch holds itself, is read anew from this one on.
        page_id = self._replace_media(held[number], state.epoch_id + (number in resident))
        state.replace_steps(list(state.steps))
        state.reset_base()
        if state.steps and state.steps[-1].paused:
            self.drop_pause(state, f"{page_id} was refused")
        return page_id

    def _replace_media(self, part: Part, epoch: int) -> str:
        assert part.form is not None
        page_id, size = f"x{part.id}", self._window.counter.tokens(part.counts)
        what = " and ".join(sorted({str(item["type"]) for item in blocks.media_in(part.form)}))
        part.form = blocks.without_media(part.form, markup.REFUSED_MEDIA.format(what=what, page_id=page_id))
        part.counts = count_block(part.form)
        self._store.conversation.reform(part.id, epoch, part.form)
        self._store.conversation.size(part.id, part.counts)
        self._store.ledger.write("drop", page_id, reason=f"the provider refused the {what}", tokens=size)
        return page_id

    def _leave(self, leaving: Step, step: int, reason: str) -> None:
        self._store.prompt.end_residency(f"s{leaving.id}", "step", step, reason)
        self._store.said.enqueue([leaving.id])
        self._store.prompt.release([leaving.id], step, reason)
        self._log_drop(leaving, reason)

    def _log_drop(self, step: Step, reason: str) -> None:
        size = self._window.counter.tokens(Counts.sum(part.counts for part in step.parts if part.form))
        self._store.ledger.write("drop", f"s{step.id}", reason=reason, tokens=size)

    def _needs_new_epoch(self, turn: int, dropped: Sequence[Step]) -> bool:
        """Return True if the turn's request is in the preamble, or core or pins changed in these steps."""
        stays = self._store.prompt.resident()
        in_preamble = any(stay.page_id == f"s{turn}" and stay.how == "request" for stay in stays)
        has_asides = any(part.kind in ("notice", "update") for step in dropped for part in step.parts)
        moved = self._store.ledger.movements(events=("core", "pin"), limit=1)
        return in_preamble or has_asides or any(number_of(movement.step) >= turn for movement in moved)
