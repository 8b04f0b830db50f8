"""`memory.tools`: the prompt speaks of what the model can do with its memory, and of nothing else."""

import json
import re

import pytest

from agents.assembly import MEMORY_TOOLS
from pager.types import Json
from tests.support.stage import Stage

WINDOW = 3_000
SEVERAL = "many words about the weather in Porto and a long walk there, " * 12
EIGHT = {definition["name"] for definition in MEMORY_TOOLS["pager"][0]()}
NOT_SPOKEN_OF = {
    "none": r"\barchiv|\btiers?\b|\btools?\b|\bsave\b|\bstore|\bsearch|\bremember\b|\bpage_in\b|\bcall\b|<notice>",
    "few": rf"\b(?:{'|'.join(EIGHT)}|tiers?|archive)\b",
}


def written_by_us(request: Json) -> str:
    """What the program put into a request: all but what was said."""
    texts = [request["system"][0]["text"], json.dumps(request.get("tools", []))]
    for message in request["messages"]:
        texts += [block["text"] for block in message["content"] if block["type"] == "text"]
    return "\n".join(text for text in texts if "many words about" not in text or text.startswith("<")).lower()


@pytest.mark.parametrize("task", [False, True])
@pytest.mark.parametrize("kind", ["none", "few"])
def test_the_prompt_speaks_of_no_tool_that_is_not_there(stage: Stage, kind: str, task: bool) -> None:
    more = f"memory: {{tools: {kind}}}\ncore: {{blocks: {{human: {{value: Dana}}}}}}\n"
    with stage.load(more, window=WINDOW, task=task) as agent:
        for number in range(12):
            agent.turn(f"{number} {SEVERAL}")
        assert len(agent.memory.ledger(events=["evict"])) > 4
        notices = agent.memory.ledger(events=["notice"])
        assert bool(notices) == (kind == "few")
    forbidden = NOT_SPOKEN_OF[kind]
    if task:  # task_done is a tool
        forbidden = forbidden.replace(r"|\btools?\b", "").replace(r"|\bcall\b", "")
    for request in stage.requests:
        text = written_by_us({**request, "tools": [] if kind == "none" else request["tools"]})
        assert not re.findall(forbidden, text), text
    assert any("<digest>" in str(request) for request in stage.requests)
    assert any("<recalled>" in str(request) for request in stage.requests)


@pytest.mark.parametrize("kind", ["few", "pager"])
def test_a_notice_never_stands_behind_a_question(stage: Stage, kind: str) -> None:
    more = f"memory: {{tools: {kind}}}\n"
    with stage.load(more, window=6_000) as agent:
        while not agent.memory.ledger(events=["notice"]):
            agent.turn(SEVERAL)
    notice, *rest = stage.last
    assert notice["text"].startswith("<notice>")
    assert rest[0]["text"] == SEVERAL


def test_in_a_small_window_what_is_recalled_is_shown_and_not_only_its_id(stage: Stage) -> None:
    with stage.load("memory: {tools: none}\n", window=1_500) as agent:
        agent.turn("The code of the bicycle shed is 5823.")
        while not agent.memory.ledger(events=["evict"]):
            agent.turn("My diary: it rained, and I read a long tale of a lighthouse and the sea. " * 5)
        agent.turn("What is the code of the bicycle shed?")
    recalled, said = (block["text"] for block in stage.last)
    assert said == "What is the code of the bicycle shed?"
    assert recalled.startswith("<recalled>")
    assert "5823" in recalled
