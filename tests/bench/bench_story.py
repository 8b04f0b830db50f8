"""Tell a real model a story and ask about it, with each kind of memory tools: `make bench-story URL=...`

Sessions with a restart between them. The first tells eight facts, a correction of one, and diary entries until
three epochs have gone by; the last asks ten questions, five of them in other words. `tests/bench/story.py` has the
texts and the patterns that score the answers. Ask the server for greedy sampling (temperature 0), or figures differ
from run to run. Last, a `run` is killed and resumed (`tests/bench/story_killed.py`). The exit code is 0, whatever the
model answers.
"""

import argparse
import json
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from agents import Agent
from agents.events import Event, Replied, Stopped, StreamLost, Text, ToolFinished, ToolStarted
from agents.models.model import FinishedReply, Model
from agents.models.patience import Patience
from pager import Usage
from pager.types import Json
from tests.bench.figures import grid
from tests.bench.story import CORRECTION, FACTS, QUESTIONS, diary
from tests.bench.story_killed import HEAD as HEAD_KILLED
from tests.bench.story_killed import run_killed

EPOCHS_GONE = 3
MOST_DIARY_ENTRIES = 40
YAML = """\
name: story
model: {{provider: {provider}, id: "{model}", base_url: "{url}", api_key: "{key}", max_output_tokens: 150,
  thinking: off}}
instructions: You are a helpful assistant. Answer in one short sentence.
window: {{limit_tokens: {window}}}
memory: {{tools: {tools}}}
core: {{blocks: {core}}}
archival: {{prefetch: {{k: {k}, budget_tokens: 250}}}}
limits: {{max_steps: 8}}
"""
CORE = "{human: {description: Who the person is., limit_tokens: 150}}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A configuration. The window has room for its tools and for about as much talk as the others have."""

    name: str
    tools: str
    window: int
    recalls: bool = True


KINDS = (
    Kind("none, recall unasked", "none", 1_500),
    Kind("few, recall unasked", "few", 2_000),
    Kind("pager, recall unasked", "pager", 3_300),
    Kind("none, no recall", "none", 1_500, recalls=False),
)


@dataclass(slots=True)
class Story:
    """What came of one telling."""

    answers: list[str] = field(default_factory=list[str])  # to the questions
    answer: str = ""  # the last one
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    failed: int = 0
    repeated: int = 0  # a call identical to one before it in its turn that had failed
    silent: int = 0  # turns without a text
    entries: int = 0
    epochs: int = 0
    at_evictions: list[int] = field(default_factory=list[int])  # tokens computed by the first request of a new epoch
    seconds: float = 0.0
    _failed_calls: set[str] = field(default_factory=set[str])
    _open: dict[str, str] = field(default_factory=dict[str, str])

    def tell(self, agent: Agent, text: str) -> Iterator[str]:
        """Say something, yield the lines of the transcript, and keep the answer."""
        yield f"\n> {text}"
        self._failed_calls.clear()
        said: list[str] = []
        with closing(agent.stream(text)) as events:
            for event in events:
                yield from self._take(agent, event, said)
        self.answer = "".join(said).strip()
        self.silent += not self.answer
        yield self.answer

    def _take(self, agent: Agent, event: Event, said: list[str]) -> Iterator[str]:
        match event:
            case Text(text):
                said.append(text)
            case Replied(usage=used):
                usage = used or Usage()
                self.usage += usage
                epochs = len(agent.memory.ledger(events=["epoch"]))
                if epochs > self.epochs > 0 and used:
                    self.at_evictions.append(usage.whole_input - usage.cache_read_input_tokens)
                    yield f"  ({epochs} epochs, {self.at_evictions[-1]} of {usage.whole_input} tokens computed)"
                self.epochs = epochs
            case ToolStarted(call_id, name, given):
                said.clear()  # what stands before a call is no answer
                call = json.dumps([name, given], sort_keys=True)
                self._open[call_id] = call
                self.calls += 1
                self.repeated += call in self._failed_calls
                yield f"  call {call}"
            case ToolFinished(call_id, _, text, is_error):
                self.failed += is_error
                if is_error and call_id in self._open:
                    self._failed_calls.add(self._open[call_id])
                yield f"  {'error' if is_error else 'result'} {text}"
            case StreamLost(reason):
                said.clear()
                yield f"  lost: {reason}"
            case Stopped(reason, text) if reason != "answered":
                yield f"  stopped: {reason}: {text}"
            case _:
                pass

    def cells(self, kind: Kind) -> list[str]:
        """Return the row of the table."""
        right = [question.is_answered(answer) for question, answer in zip(QUESTIONS, self.answers, strict=True)]
        other = sum(ok for ok, question in zip(right, QUESTIONS, strict=True) if question.in_other_words)
        computed = self.usage.input_tokens + self.usage.cache_creation_input_tokens
        whole = [sum(right), other, self.calls, self.failed, self.repeated, self.silent, self.epochs, computed]
        rest = [self.usage.cache_read_input_tokens, max(self.at_evictions, default=0), round(self.seconds)]
        return [kind.name, f"{kind.window:,}", *(f"{number:,}" for number in [*whole, *rest])]


HEAD = [
    "memory.tools", "window", "right of 10", "in other words of 5", "calls", "failed", "repeated", "silent turns",
    "epochs", "tokens computed", "from cache", "most computed at an eviction", "seconds",
]  # fmt: skip


class Listener(Model):
    """Answers diary entries in the model's place (--quick): they only fill the window, and take most of the time."""

    name = "listener"

    def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
        yield Text("Thank you for telling me.")
        content = [{"type": "text", "text": "Thank you for telling me."}]
        return FinishedReply({"content": content, "stop_reason": "end_turn"})


def tell(kind: Kind, folder: Path, *, quick: bool = False, **model: str) -> Story:
    """Tell the story to an agent of one kind, and write the transcript into `folder` as it goes."""
    folder.mkdir(parents=True)
    file = folder / "story.yaml"
    core, k = CORE if kind.tools == "pager" else "{}", 8 if kind.recalls else 0
    file.write_text(YAML.format(window=kind.window, tools=kind.tools, core=core, k=k, **model), encoding="utf-8")
    story, begun = Story(), time.monotonic()
    for session, other in ((tell_facts, None), (tell_diary, Listener() if quick else None), (ask_questions, None)):
        with (
            (folder / "transcript.txt").open("a", encoding="utf-8") as log,
            Agent.load(
                file, home=folder / "home", environ={}, patience=Patience(total_seconds=60), model=other
            ) as agent,
        ):
            for line in session(agent, story):
                print(line, file=log, flush=True)
    story.seconds = time.monotonic() - begun
    return story


def tell_facts(agent: Agent, story: Story) -> Iterator[str]:
    for text in (*FACTS, CORRECTION):
        yield from story.tell(agent, text)


def tell_diary(agent: Agent, story: Story) -> Iterator[str]:
    while story.epochs <= EPOCHS_GONE and story.entries < MOST_DIARY_ENTRIES:
        yield from story.tell(agent, diary(story.entries))
        story.entries += 1


def ask_questions(agent: Agent, story: Story) -> Iterator[str]:
    yield "\n--- questions"
    for question in QUESTIONS:
        yield from story.tell(agent, question.text)
        story.answers.append(story.answer)
        yield f"  {'RIGHT' if question.is_answered(story.answer) else 'WRONG'}"


def main(arguments: list[str]) -> int:
    """Run all kinds, or those whose name holds --only; print one table, and each wrong answer below it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    for name, default in (("model", "local"), ("provider", "anthropic"), ("key", "none"), ("only", "")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--quick", action="store_true", help="answer the diary by a script")
    options: Any = parser.parse_args(arguments)
    work = Path(mkdtemp(prefix="bench-story-"))
    model = {name: getattr(options, name) for name in ("url", "model", "provider", "key")}
    rows, wrong = [HEAD], list[str]()
    for number, kind in enumerate(kind for kind in KINDS if options.only in kind.name):
        print(f"{kind.name} ...", file=sys.stderr, flush=True)
        story = tell(kind, work / str(number), quick=options.quick, **model)
        rows.append(story.cells(kind))
        asked = zip(QUESTIONS, story.answers, strict=True)
        wrong += [f"{kind.name}: {q.text} -> {answer!r}" for q, answer in asked if not q.is_answered(answer)]
    killed = [HEAD_KILLED]
    if options.only in "killed":
        killed.append(run_killed(work / "killed", **model))
    diary_by = ", the diary answered by a script" if options.quick else ""
    print(f"model {options.model} at {options.url} ({options.provider}){diary_by}\n")
    for table in (rows, killed):
        if len(table) > 1:
            print(grid(table), "\n")
    print(*wrong, f"The transcripts are in {work}.", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
