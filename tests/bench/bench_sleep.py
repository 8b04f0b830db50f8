"""What a sleep finds, what it gets wrong, and what it costs: `make bench-sleep`.

- answers: bfcl_memory and the talks as conversations only, nothing archived. An extractor of known quality plays the
  model: all facts, 60 % of them, 60 % with 20 % invented ones. The share of questions whose answer is recalled unasked
  before and after, and the invented facts that get through.
- repeats: repeats and contradictions made by program of sentences of three kinds of texts: merged, missed, merged
  wrongly. Beside it the rules of others that need no model: the digest of the text (mem0), a cosine alone.
- speed: a sleep without a model over 1,000 turns and 1,000 facts, and what a message waits meanwhile.
- cost: tokens and dollars of a sleep with a model over 1,000 turns.
- story: with --url: the story of `make bench-story` told to the model there under `tools: none`: the facts that its
  sleep finds, if the correction is the current fact, and its answers before and after.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from hashlib import md5
from pathlib import Path
from random import Random
from statistics import fmean
from threading import Thread
from typing import Any

import numpy as np

from agents.meter import Prices
from agents.sleep.sleeper import Sleeper
from pager import Memory, Prefetch
from pager.sleep import tidying
from pager.sleep.signs import Reader
from pager.tiers import default_embedder
from pager.tiers.prefetch import PageChooser
from tests.bench import question_sets, story
from tests.bench.figures import Figure, grid, run
from tests.bench.finders import record_texts
from tests.bench.grown import embed_all
from tests.bench.question_sets import QuestionSet
from tests.bench.sleep import made, told
from tests.bench.sleep.played import PlayedExtractor
from tests.bench.sleep.told import Server

DATA = Path(__file__).parents[3] / "shared/data"
PREFETCH = Prefetch(k=12, budget_tokens=400)
PRICES = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)
QUALITIES = {"all facts": (1.0, 0.0), "60 %": (0.6, 0.0), "60 %, 20 % wrong": (0.6, 0.2)}
SENTENCES = 250  # of each kind of texts
TURNS = 1000
SLOW_S = 2.0


def answers(work: Path, *, data: Path) -> list[Figure]:
    by_sentence = question_sets.by_sentence(data)
    people = [(each, parts) for each, parts in zip(question_sets.by_message(data), by_sentence, strict=True)]
    talks = [(each, each) for each in question_sets.talks()]
    sentences = {
        "bfcl_memory": made.sentences([text for each, _ in people for text in each.texts]),
        "talks": made.sentences([text for each, _ in talks for text in each.texts]),
    }
    rows, figures = [["", "before", *QUALITIES, "right kept", "wrong kept"]], list[Figure]()
    for name, sets in (("bfcl_memory", people), ("talks", talks)):
        others = sentences["talks" if name == "bfcl_memory" else "bfcl_memory"]
        before, after, kept = list[float](), dict[str, list[float]](), Counter[str]()
        kinds = Counter[str]()
        for place, (asked, gold) in enumerate(sets):
            for quality, (share, wrong) in QUALITIES.items():
                with Memory.open(work / f"{name}-{place}-{quality}") as memory:
                    record_texts(memory, asked)
                    if quality == "all facts":
                        before.append(_answered(memory, gold))
                    model = PlayedExtractor(share, wrong, others, whole=name == "talks")
                    proposal = Sleeper(memory, model).run()
                    assert proposal is not None
                    new = {fact.text for edit in proposal.edits for fact in edit.after}
                    known = {" ".join(text.split()) for text in model.right}
                    invented = {" ".join(text.split()): kind for text, kind in model.invented.items()}
                    kept.update(right=len(known), right_kept=len(known & new), wrong=len(invented))
                    kept.update(wrong_kept=len(invented.keys() & new))
                    kinds.update(invented[text] for text in invented.keys() & new)
                    memory.sleeps.apply(proposal.number)
                    after.setdefault(quality, []).append(_answered(memory, gold))
                    shown = f"{before[-1]:.3f} -> {after[quality][-1]:.3f}, {dict(kept)}, {dict(kinds)}"
                    print(f"  {name} {place}, {quality}: {shown}", file=sys.stderr, flush=True)
        shares = {quality: fmean(each) for quality, each in after.items()}
        right, wrong_kept = kept["right_kept"] / kept["right"], kept["wrong_kept"] / max(1, kept["wrong"])
        rows.append([name, f"{fmean(before):.3f}", *(f"{shares[each]:.3f}" for each in QUALITIES), f"{right:.3f}",
                     f"{wrong_kept:.4f} ({kept['wrong_kept']} of {kept['wrong']}: {dict(kinds)})"])  # fmt: skip
        gain = shares["all facts"] - fmean(before)
        worst = min(after_one - one for one, after_one in zip(before, after["all facts"], strict=True))
        figures += [
            Figure(f"{name}: lost by a perfect sleep (bar: gains .05)", f"from {fmean(before):.3f}", -gain, -0.05, ""),
            Figure(f"{name}: the worst single memory loses", f"{worst:+.3f}", -worst, 0.0, ""),
            Figure(f"{name}: invented facts that get through", f"of {kept['wrong']}", wrong_kept, 0.02, ""),
        ]  # fmt: skip
    print("\nquestions whose answer is recalled unasked, within 400 tokens, before and after a sleep\n")
    print(grid(rows), flush=True)
    return figures


def _answered(memory: Memory, gold: QuestionSet) -> float:
    """The share of questions for which a line is put in that holds a gold text, or its facts in other words."""
    while memory.embed_pending():
        pass
    chooser = PageChooser(PREFETCH, memory._tiers.archive, memory._tiers.recall, memory._store)

    def is_right(question: question_sets.Question) -> bool:
        lines = [_words(each.line) for each in chooser.choose(question.text, ())]
        wanted = [_words(gold.texts[place]) for place in question.gold]
        return any(len(want & line) >= 0.8 * len(want) for want in wanted for line in lines)

    return fmean(map(is_right, gold.questions))


def _words(text: str) -> set[str]:
    return {
        word
        for word in "".join(c if c.isalnum() else " " for c in text.lower()).split()
        if word not in ("i", "my", "me")
    }


def repeats(work: Path, *, data: Path) -> list[Figure]:
    kinds = {
        "bfcl_memory (chosen on)": [text for each in question_sets.by_message(data) for text in each.texts],
        "talks (judged on)": [text for each in question_sets.talks() for text in each.texts],
        "tau2_banking (judged on)": [text for each in question_sets.documents(data) for text in each.texts],
    }
    rows, figures = (
        [["", "repeats", "merged", "mem0's digest", "cosine .9", "different", "merged wrongly", "cosine .9"]],
        list[Figure](),
    )
    with Memory.open(work / "words", embedder=None) as memory:
        reader = Reader(memory._store.conversation.all_terms)
        for name, texts in kinds.items():
            chosen = Random(1).sample(found := made.sentences(texts), min(SENTENCES, len(found)))
            same = _judged(reader, made.changed(made.REPEATS, chosen, chosen))
            different = _judged(reader, made.changed(made.CONTRADICTIONS, chosen, chosen))
            between = _between(reader, chosen)
            merged, wrong = fmean(row[0] for row in same), sum(row[0] for row in different) + between
            count = len(different) + len(chosen) * (len(chosen) - 1) // 2
            made_wrong = fmean(row[0] for row in different)
            rows.append(
                [name, str(len(same)), f"{merged:.4f}", f"{fmean(row[1] for row in same):.4f}",
                 f"{fmean(row[2] for row in same):.4f}", f"{len(different)} made, {count} pairs",
                 f"{made_wrong:.4f} of the made, {wrong} in all", f"{fmean(row[2] for row in different):.4f}"]
            )  # fmt: skip
            missed = Figure(f"{name}: near repeats missed", f"{merged:.4f} merged", 1 - merged, 0.05, "")
            figures += [missed, Figure(f"{name}: made contradictions merged", "", made_wrong, 0.005, "")]
    print("\nrepeats and contradictions made by program\n")
    print(grid(rows), flush=True)
    return figures


def _judged(reader: Reader, rows: Sequence[tuple[str, str, str]]) -> list[tuple[bool, bool, bool]]:
    """For each pair: merged by us, by a digest of the text, by a cosine of .9."""
    texts = list(dict.fromkeys(text for row in rows for text in row[1:]))
    place, vectors, signs = {text: at for at, text in enumerate(texts)}, _unit(texts), reader.read(texts)
    judged = list[tuple[bool, bool, bool]]()
    for _, one, other in rows:
        cosine = float(vectors[place[one]] @ vectors[place[other]])
        ours = tidying.says_the_same(signs[place[one]], signs[place[other]], cosine)
        judged.append((ours, md5(one.encode()).digest() == md5(other.encode()).digest(), cosine >= 0.9))
    return judged


def _between(reader: Reader, texts: Sequence[str]) -> int:
    """How many pairs of different sentences are merged."""
    vectors, signs = _unit(texts), reader.read(texts)
    near = np.argwhere(np.triu(vectors @ vectors.T, 1) >= tidying.REPEAT)
    return sum(tidying.says_the_same(signs[one], signs[other], 1.0) for one, other in near.tolist())


def _unit(texts: Sequence[str]) -> Any:
    rows = embed_all(default_embedder(), texts)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def speed(work: Path, *, data: Path) -> list[Figure]:
    texts = made.sentences([text for each in question_sets.by_message(data) for text in each.texts])
    with Memory.open(work / "speed") as memory:
        memory.record_many([{"role": "user", "text": story.diary(day)} for day in range(TURNS)], embed=False)
        for text in (texts * 5)[:TURNS]:
            memory.archive(f"{text}" if len(text) % 7 else f"Note: {text}")
        waits = list[float]()
        thread = Thread(target=memory.sleeps.propose)
        begun = time.perf_counter()
        thread.start()
        while thread.is_alive():
            start = time.perf_counter()
            memory.core()
            waits.append(time.perf_counter() - start)
        seconds = time.perf_counter() - begun
        start = time.perf_counter()
        memory.sleeps.apply(1)
        applied = time.perf_counter() - start
        edits = len(memory.sleeps.proposal(1).edits)
    measured = f"{edits} edits; applied in {applied:.2f} s; a call waited {max(waits):.2f} s"
    return [Figure(f"a sleep over {TURNS:,} turns and facts without a model", measured, seconds, SLOW_S, " s")]


def cost(work: Path, *, data: Path) -> list[Figure]:
    sets = [*question_sets.by_message(data), *question_sets.talks()]
    texts = [text for each in sets for text in each.texts]
    texts = (texts * (1 + TURNS // len(texts)))[:TURNS]
    with Memory.open(work / "cost", embedder="default") as memory:
        memory.record_many([{"role": "user", "text": text} for text in texts], embed=False)
        sleeper = Sleeper(memory, PlayedExtractor(0.3, 0.0, texts), prices=PRICES)
        proposal = sleeper.run()
        assert proposal is not None
        detail, left = proposal.detail, len(memory.sleeps.unread_turns(TURNS))
    measured = (
        f"{detail['requests']} requests, {detail['tokens']:,} tokens, {left} turns unread, {len(proposal.edits)} edits"
    )
    return [Figure(f"dollars for {TURNS:,} turns at $3 and $15 a million tokens", measured, detail["usd"], None, " $")]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("parts", nargs="*", help="answers, repeats, speed, cost, story")
    asked.add_argument("--data", type=Path, default=DATA)
    for name, default in (("url", ""), ("model", "local"), ("provider", "anthropic"), ("key", "none")):
        asked.add_argument(f"--{name}", default=default)
    given = asked.parse_args()
    if missing := question_sets.missing(given.data):
        print(f"{given.data} lacks {', '.join(missing)}; name the directory with --data", file=sys.stderr)
        return 2
    parts = {"repeats": repeats, "speed": speed, "cost": cost, "answers": answers}
    chosen: dict[str, Any] = {name: partial(part, data=given.data) for name, part in parts.items()}
    if given.url:
        server = Server(given.url, given.model, given.provider, given.key)
        chosen["story"] = partial(told.story, server=server)
    return run(chosen, given.parts)


if __name__ == "__main__":
    sys.exit(main())
