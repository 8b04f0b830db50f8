"""Long lists, histories and past requests, for programs that show or explain a memory. Everything here only reads.

A facade has `inspect`, an `Inspection`, and `history`, a `History`. The parts:

- `inspection`: the lists of requests, steps, facts and movements.
- `history`: earlier versions, prompts and requests.
- `window`: the parts of a request and their tokens, and the same for many requests in a row.
- `pieces`: a request taken apart block by block, and why two requests differ.
- `places`: the places that hold a text, and how texts are compared.

The facades and programs may call this room. It takes a store, the facade's lock and the archive,
never a facade. What it returns is exported here or, like `Fact`, `Movement` and `Usage`, by `pager`.
"""

from pager.inspect.history import History
from pager.inspect.inspection import Inspection
from pager.inspect.pieces import Change, ChangedPiece, MovedPiece, PromptPiece
from pager.inspect.places import Places, compose_accents, contains_text, normalize_text
from pager.inspect.window import MOST_COLUMNS, PARTS, Column, ResidentStep, Thresholds, WindowPart, WindowUse
from pager.store.rows import AnsweredRequest, CoreVersion, Epoch, FactSize, Pin, RequestSpan, Rows, SaidPart, StepRow

__all__ = [
    "MOST_COLUMNS", "PARTS", "AnsweredRequest", "Change", "ChangedPiece", "Column", "CoreVersion", "Epoch", "FactSize",
    "History", "Inspection", "MovedPiece", "Pin", "Places", "PromptPiece", "RequestSpan", "ResidentStep", "Rows",
    "SaidPart", "StepRow", "Thresholds", "WindowPart", "WindowUse", "compose_accents", "contains_text",
    "normalize_text",
]  # fmt: skip
