"""What became of it all: each agent, as it is restored, against what its client was told and what its tools have done.

    judge(home, talks, witness)

Of each message that was acknowledged there is one, in the order in which they were sent. Of one that was not there is
at most one. An answer that was given is in the memory. A call of `charge` ran at most once; what the memory says of a
call fits what happened. The file is whole, and Postgres' log has no gap.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pager import Home, Memory
from pager.memory import INTERRUPTED
from tests.chaos.clients import Promise, Talk
from tests.chaos.script import TAG
from tests.support.postgres import rows_of
from tests.support.talk import database_of

ONCE, REPEATABLE = "charge", "look"
_PARTS = "SELECT step, slot, block FROM parts WHERE kind = 'said' ORDER BY step, id"
_GAPS = """
    SELECT a.name, 'log: ' || count(c) || ' commits ' || min(c.seq) || ' to ' || max(c.seq) || ', the last is ' || a.seq
    FROM selfpager.agents a JOIN selfpager.commits c ON c.agent = a.id AND c.part = 0 GROUP BY a.id
    HAVING max(c.seq) <> a.seq OR max(c.seq) - min(c.seq) + 1 <> count(c)
        OR (min(c.seq) > (SELECT max(b.seq) FROM selfpager.bases b WHERE b.agent = a.id) + 1)"""


@dataclass
class Verdict:
    """What is wrong. All lists are empty, or the fleet has broken a promise."""

    messages: int = 0
    calls: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    reordered: list[str] = field(default_factory=list[str])
    broken: list[str] = field(default_factory=list[str])

    @property
    def faults(self) -> list[str]:
        names = ("lost", "doubled", "reordered", "broken")
        return [f"{name}: {each}" for name in names for each in getattr(self, name)]


@dataclass(frozen=True)
class Ran:
    """How often each call ran, by its mark: the witness outside of all workers."""

    counts: Counter[str]

    @classmethod
    def of(cls, witness: Path) -> Ran:
        return cls(Counter(line.split()[1] for line in witness.read_text().splitlines()))

    def by_agent(self) -> Mapping[str, Ran]:
        found = defaultdict[str, Counter[str]](Counter)
        for mark, count in self.counts.items():
            found[mark.partition(".")[0]][mark] = count
        return {agent: Ran(counts) for agent, counts in found.items()}


def judge(home: Home, address: str, talks: Iterable[Talk], ran: Ran) -> Verdict:
    """Judge all agents, which nobody has open."""
    verdict, by_agent = Verdict(), ran.by_agent()
    for talk in talks:
        if talk.exists:
            try:
                with home.open(talk.agent, embedder=None) as memory:
                    judge_agent(memory, talk.promises, by_agent.get(talk.agent, Ran(Counter())), verdict)
            except Exception as error:  # noqa: BLE001 - the others are judged, too
                verdict.broken.append(f"{talk.agent} cannot be judged: {error!r}")
    verdict.broken += [f"{name}: {what}" for name, what in rows_of(address).server.ask(_GAPS)]
    return verdict


def judge_agent(memory: Memory, promises: list[Promise], ran: Ran, verdict: Verdict) -> None:
    """Judge one agent."""
    name = promises[0].message.agent if promises else "an agent"
    verdict.broken += [f"{name}: {each}" for each in memory.check()]
    whole = [row[0] for row in database_of(memory).rows("PRAGMA integrity_check")]
    verdict.broken += [f"{name}: {each}" for each in whole if each != "ok"]
    if memory.open_calls or memory.turn_is_open:
        verdict.broken.append(f"{name}: its turn is open")
    said, answers, calls, results = _content(memory)
    _judge_messages(promises, said, answers, verdict)
    _judge_calls(calls, results, ran, verdict)


def _content(memory: Memory) -> tuple[list[str], set[str], dict[str, Any], dict[str, str]]:
    """Return the tags that were said, the texts of replies, the calls by their marks, and the results."""
    said, answers = list[str](), defaultdict[int, list[str]](list)
    calls, results = dict[str, Any](), dict[str, str]()
    for row in database_of(memory).rows(_PARTS):
        block = json.loads(row["block"])
        if row["slot"] == "user" and block["type"] == "text":
            said += [found["tag"] for found in TAG.finditer(block["text"])]
        elif block["type"] == "text":
            answers[row["step"]].append(block["text"])
        elif block["type"] == "tool_use" and "mark" in block["input"]:
            calls[block["input"]["mark"]] = block
        elif block["type"] == "tool_result":
            content = block.get("content", "")
            text = content if isinstance(content, str) else "".join(each.get("text", "") for each in content)
            results[block["tool_use_id"]] = text
    return said, {"".join(texts) for texts in answers.values()}, calls, results


def _judge_messages(promises: list[Promise], said: list[str], answers: set[str], verdict: Verdict) -> None:
    counts = Counter(said)
    newest, newest_tag = -1, ""
    for promise in promises:
        verdict.messages += 1
        for tag in promise.tried:
            found = counts.pop(tag, 0)
            if found > 1:
                verdict.doubled.append(f"{tag}: {found} times")
            if tag == promise.kept and found == 0:
                verdict.lost.append(f"{tag} ({promise.message.way})")
        if not promise.acknowledged or promise.kept not in said:
            continue
        place = said.index(promise.kept)
        if place < newest:
            verdict.reordered.append(f"{promise.kept} stands before {newest_tag}")
        if promise.message.way != "tell":  # which is read when there is time for it
            newest, newest_tag = place, promise.kept
        if promise.answer and promise.message.way != "task" and promise.answer not in answers:
            verdict.lost.append(f"{promise.kept}: its answer {promise.answer[:100]!r}")
    verdict.broken += [f"{tag} was said by nobody" for tag in counts]


def _judge_calls(calls: dict[str, Any], results: dict[str, str], ran: Ran, verdict: Verdict) -> None:
    verdict.calls += len(calls)
    verdict.lost += [f"the call {mark}, which has run" for mark in ran.counts.keys() - calls.keys()]
    for mark, call in calls.items():
        times, name, text = ran.counts[mark], call["name"], results.get(call["id"])
        if name == ONCE and times > 1:
            verdict.doubled.append(f"the call {mark} of {name}: {times} times")
        if text is None:
            verdict.broken.append(f"the call {mark} has no result")
        elif text.startswith({ONCE: "charged", REPEATABLE: "looked"}[name]):
            if mark not in text or not times:
                verdict.broken.append(f"the call {mark} ran {times} times; its result is {text[:100]!r}")
        elif text != INTERRUPTED and not (times == 0 and text.startswith("This call was not run")):
            verdict.broken.append(f"the call {mark} ran {times} times; its result is {text[:100]!r}")
