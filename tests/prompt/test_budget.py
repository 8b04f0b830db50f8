"""The plan, as properties: whatever the sizes are, what may leave leaves, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st

from pager import Limits
from pager.prompt import budget
from pager.prompt.budget import FLOOR_TOKENS, PartSize, Plan, Sizes, StepSize


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    notify_at, evict_to = draw(st.sampled_from([(0.70, 0.50), (0.85, 0.60), (0.40, 0.20)]))
    return Limits.for_window(draw(st.integers(2_000, 60_000)), notify_at=notify_at, evict_to=evict_to)


@st.composite
def steps(draw: st.DrawFn, usable: int) -> list[StepSize]:
    """A conversation: any step may be open, the first goes on from nothing, a few are requests."""
    number = st.integers(0, 12).map(lambda n: usable // 2**n)
    result: list[StepSize] = []
    part = 0
    for step in range(draw(st.integers(1, 9))):
        parts: list[PartSize] = []
        for size in draw(st.lists(number, min_size=1, max_size=3)):
            part += 1
            kind = draw(st.sampled_from(["text", "text", "text", "image", "fixed"]))
            parts.append(PartSize(part, size, spillable=kind != "fixed", divisible=kind != "image"))
        continues = step > 0 and draw(st.integers(0, 3)) == 0
        closed, stays = draw(st.integers(0, 4)) > 0, draw(st.integers(0, 4)) == 0
        result.append(StepSize(step + 1, parts, closed, continues, stays))
    return result


class Case(NamedTuple):
    sizes: Sizes
    bounds: Limits
    plan: Plan

    @property
    def kept(self) -> list[StepSize]:
        return [step for step in self.sizes.steps if step.stays or step.step not in self.plan.leaving]


@st.composite
def cases(draw: st.DrawFn, *, tight: bool = False, evict: bool = False) -> Case:
    bounds = draw(limits())
    usable = bounds.usable_tokens
    said = draw(steps(usable))
    fixed = draw(st.integers(usable - 300, usable) if tight else st.integers(0, usable // 2))
    fresh = fixed + sum(step.tokens for step in said)
    # What is sent now is about what a new epoch would be without eviction: thinking more, an old digest less.
    now = max(0, fresh + draw(st.integers(-usable // 10, usable // 3)))
    noticed, renew = draw(st.booleans()), draw(st.sampled_from(["", "", "the tools changed", budget.EVICT]))
    sizes = Sizes(now, fixed, said, noticed, budget.EVICT if evict else renew)
    return Case(sizes, bounds, budget.plan(sizes, bounds))


def carried_out(plan: Plan, sizes: Sizes) -> Sizes:
    """What the next plan is asked about, when nothing was said meanwhile."""
    if plan.action == "append":
        return sizes
    if plan.action == "notify":
        return replace(sizes, noticed=True)
    kept = [spilled(step, plan) for step in sizes.steps if step.stays or step.step not in plan.leaving]
    return Sizes(sizes.fixed + sum(step.tokens for step in kept), sizes.fixed, kept)


def spilled(step: StepSize, plan: Plan) -> StepSize:
    parts = [
        replace(part, tokens=part.at_most(plan.spill[part.part])) if part.part in plan.spill else part
        for part in step.parts
    ]
    return replace(step, parts=parts)


def groups(said: Sequence[StepSize]) -> list[list[StepSize]]:
    """Steps that stay or leave together: a paused one and those that go on."""
    result: list[list[StepSize]] = []
    for step in said:
        if step.continues and result:
            result[-1].append(step)
        else:
            result.append([step])
    return result


def may_leave(said: Sequence[StepSize]) -> list[list[StepSize]]:
    """The groups that may leave: all before the first with an open step, and never the last."""
    return list(takewhile(lambda group: all(step.closed for step in group), groups(said)[:-1]))


@given(cases())
def test_only_whole_and_closed_steps_leave_oldest_first_and_never_the_last(case: Case) -> None:
    sizes, _, plan = case
    order = [step.step for step in sizes.steps]
    assert list(plan.leaving) == order[: len(plan.leaving)]
    assert len(plan.leaving) < len(order)
    assert all(step.closed for step in sizes.steps[: len(plan.leaving)])
    assert not sizes.steps[len(plan.leaving)].continues
    if plan.action == "append":
        assert not plan.leaving
        assert not plan.spill


@given(cases(evict=True))
def test_what_leaves_is_what_has_to_until_the_target_is_met_or_nothing_more_may(case: Case) -> None:
    sizes, bounds, plan = case
    target = bounds.share_in_tokens(bounds.evict_to)
    total = sizes.fixed + sum(step.tokens for step in sizes.steps)
    left: list[int] = []
    for group in may_leave(sizes.steps):
        if total <= target:
            break
        left += [step.step for step in group]
        total -= sum(step.tokens for step in group if not step.stays)
    assert list(plan.leaving) == left


@given(cases())
def test_an_epoch_ends_only_for_a_reason_and_a_prompt_that_is_not_large_is_left_alone(case: Case) -> None:
    sizes, bounds, plan = case
    share = sizes.now / bounds.usable_tokens
    if plan.action == "renew":
        assert sizes.cause or sizes.now >= bounds.share_in_tokens(bounds.evict_at)
    if sizes.cause or sizes.now > bounds.usable_tokens:
        assert plan.action == "renew"
    if not sizes.cause and share < bounds.notify_at - 0.01:
        assert plan == Plan("append")
    calm = sizes.now < bounds.evict_tokens and (sizes.noticed or sizes.now < bounds.notify_tokens)
    if calm and not sizes.cause:
        assert plan == Plan("append")  # so a prompt below every threshold is not measured step by step


@given(cases())
def test_what_is_planned_fits_or_the_shortage_is_said(case: Case) -> None:
    sizes, bounds, plan = case
    if plan.action == "renew":
        assert max(0, carried_out(plan, sizes).now - bounds.usable_tokens) == plan.shortage
    else:
        assert sizes.now <= bounds.usable_tokens
        assert plan.shortage == 0


@given(cases(tight=True, evict=True))
def test_there_is_a_shortage_only_when_nothing_can_be_made_smaller(case: Case) -> None:
    sizes, bounds, plan = case
    event("short" if plan.shortage else "fits")
    smallest = sizes.fixed + sum(part.at_most(0) for step in case.kept for part in step.parts)
    if not plan.shortage:
        assert smallest <= bounds.usable_tokens
        return
    assert plan.shortage == smallest - bounds.usable_tokens
    gone = [step for step in sizes.steps if step.step in plan.leaving]
    assert gone == [step for group in may_leave(sizes.steps) for step in group]


@given(cases())
def test_the_largest_parts_are_spilled_to_one_level_and_smaller_ones_never_touched(case: Case) -> None:
    sizes, bounds, plan = case
    parts = {part.part: part for step in case.kept for part in step.parts}
    assert plan.spill.keys() <= parts.keys()
    assert len(set(plan.spill.values())) <= 1
    for number, level in plan.spill.items():
        assert parts[number].spillable
        assert parts[number].tokens > max(level, FLOOR_TOKENS)
        assert level <= bounds.max_part_tokens
        larger = [part for part in parts.values() if part.spillable and part.tokens > parts[number].tokens]
        assert all(part.part in plan.spill for part in larger), "a smaller part gave, and a larger one did not"
    if plan.action == "renew" and sizes.fixed + sum(step.tokens for step in case.kept) <= bounds.usable_tokens:
        assert not plan.spill


@given(cases())
def test_the_agent_is_told_once_and_before_its_steps_leave_if_a_reply_and_a_part_still_fit(case: Case) -> None:
    sizes, bounds, plan = case
    over = sizes.now >= bounds.share_in_tokens(bounds.evict_at)
    room = sizes.now + bounds.max_output_tokens + bounds.max_part_tokens <= bounds.usable_tokens
    if plan.action == "notify":
        assert not sizes.noticed
        assert not sizes.cause
        assert sizes.now >= bounds.share_in_tokens(bounds.notify_at)
        assert not over or room
        assert plan.leaving == budget.leaving(sizes, bounds.share_in_tokens(bounds.evict_to))
    if plan.unannounced:
        assert over
        assert not sizes.noticed
        assert not room
    if plan.action == "renew" and not sizes.cause and not sizes.noticed:
        assert plan.unannounced


@given(cases())
def test_planning_again_ends_no_second_epoch(case: Case) -> None:
    sizes, bounds, plan = case
    if plan.shortage:
        return  # nothing is carried out, and somebody is told
    sizes = carried_out(plan, sizes)
    for _ in range(3):
        again = budget.plan(sizes, bounds)
        if plan.action != "notify":
            assert again.action != "renew", f"{plan}, then {again}"
        sizes = carried_out(again, sizes)
        plan = again
