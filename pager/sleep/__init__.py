"""Sleep: what is done with notes at night. Repeats are merged, corrections supersede, what was said becomes facts.

Promises that a proposal changes nothing, that applying and undoing are one transaction each, and that no text is lost.
It knows no model: what one claims or judges is handed in and checked here.

`edits` are the public types, `sleeps` the calls that a facade has as `sleeps`, `tidying` what is proposed without a
model, `grounding` what is believed of a model's claims, `signs` when two texts say the same, `changes` applies and
undoes. The facades and programs may call this room.
"""

from pager.sleep.edits import (
    Claim,
    Edit,
    EditKind,
    EditState,
    FactPair,
    NewFact,
    Proposal,
    Quote,
    SaidStep,
    SaidTurn,
    SleepUndone,
    Verdict,
)
from pager.sleep.sleeps import SleepHistory, Sleeps

__all__ = [
    "Claim", "Edit", "EditKind", "EditState", "FactPair", "NewFact", "Proposal", "Quote", "SaidStep", "SaidTurn",
    "SleepHistory", "SleepUndone", "Sleeps", "Verdict",
]  # fmt: skip
