"""The worker of `make bench-tasks` takes nothing for read that it has not read.

One of its sums was too small once, on a machine on which other tests let commands fork without end. A search that fails
there looked to it like a month without a report.
"""

from typing import Any

import pytest

from tests.bench.tasks.policy import Work, reply
from tests.bench.tasks.world import MONTHS, Site

SITE = Site("Farford", "pallets", "29", "1234", 29, "Elif")
TOOLS = ("core_append", "core_replace", "archive", "search_archive", "search_files", "read_file", "task_done")
HIT = "1 hits in 1 files (30 files searched):\nreports/{0}/r0841.md:1: Report r0841 of {0}-02, site Farford."


def answered(calls: list[dict[str, Any]], results: list[str], failed: int | None = None) -> list[str]:
    """What the worker calls when its last calls were answered like this."""
    made = [{"type": "tool_use", "id": f"t{number}", **each} for number, each in enumerate(calls)]
    blocks = [
        {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": number == failed}
        for number, text in enumerate(results)
    ]
    work = f"{Work(7, 'Farford', (), 29)}\n" if calls[0]["name"] == "archive" else ""
    messages = [
        {"role": "user", "content": f"{work}{SITE.task}"},
        {"role": "assistant", "content": made},
        {"role": "user", "content": blocks},
    ]
    said = reply({"messages": messages, "tools": [{"name": name} for name in TOOLS]})
    return [each["name"] for each in said.blocks if each["type"] == "tool_use"]


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ("search_files failed: RuntimeError: can't start new thread", 4),
        ("Nothing matches (12 files searched; left out: 18 not readable or too large).", None),
        ("Nothing matches (12 files searched). It stopped after its time was over; name a narrower path.", None),
    ],
)
def test_a_search_that_failed_or_has_not_seen_all_is_made_again(result: str, failed: int | None) -> None:
    calls = [{"name": "search_files", "input": {"pattern": "x", "path": f"reports/{month}"}} for month in MONTHS]
    results = [HIT.format(month) for month in MONTHS]
    assert answered(calls, results)[0] == "core_append"
    results[4] = result
    assert answered(calls, results, failed) == ["search_files"] * len(MONTHS)


def test_a_fact_that_was_not_stored_is_stored_again() -> None:
    calls = [{"name": "archive", "input": {"text": "t", "key": f"Farford/{name}"}} for name in ("gate", "pallets")]
    assert answered(calls, ["Stored as f1.", "Stored as f2."]) == ["task_done"]
    assert answered(calls, ["Stored as f1.", "archive failed"], 1) == ["search_archive"]
