"""`provider: scripted`: which entry answers, what it quotes, what is wrong in a script, as an agent shows it."""

import re
import sys
from pathlib import Path

import pytest

from agents import Agent
from agents.config.agent_config import ConfigError
from agents.events import ToolFinished
from agents.models.model import ModelRefusedError, PromptTooLongError
from agents.models.scripted import Entries, Entry, OpenTurn, ScriptedModel
from agents.testing import call
from pager.home import Home
from pager.types import Json
from tests.support.cli import command_line
from tests.support.stage import leave_at

TOOLS = '''
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is <blue>"


async def later(params: object) -> str:
    return ""
'''


class Place:
    """A folder with an agent, its script and a tool."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "skies_of_script.py").write_text(TOOLS, encoding="utf-8")
        self.file = folder / "x.yaml"
        self.file.write_text(
            "name: x\nmodel: {provider: scripted, script: replies.yaml}\narchival: {embedder: none}\n"
            "tools: [{use: 'skies_of_script:look'}]\n",
            encoding="utf-8",
        )

    def agent(self, script: str) -> Agent:
        (self.folder / "replies.yaml").write_text(script, encoding="utf-8")
        return Agent.load(self.file, home=self.folder / "home", environ={})

    def answers(self, script: str, *texts: str) -> list[str]:
        with self.agent(script) as agent:
            return [agent.turn(text).text for text in texts]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delitem(sys.modules, "skies_of_script", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("script", "answers"),
    [
        ("- say: one\n- say: two\n- say: three\n", ["one", "two", "three"]),
        ("- {when: b, say: for b}\n- say: in order\n- say: then\n", ["in order", "for b", "then"]),
        ("- {when: '^[ab]$', say: once}\n- {otherwise: true, say: 'you said {{said}}'}\n",
         ["once", "you said b", "you said a"]),
        ("- {when: c, say: no}\n- {when: a, otherwise: true, say: always a}\n- {otherwise: true, say: else}\n",
         ["always a", "else", "always a"]),
    ],
)  # fmt: skip
def test_the_first_unused_entry_that_fits_answers(place: Place, script: str, answers: list[str]) -> None:
    assert place.answers(script, "a", "b", "a") == answers


def test_an_entry_that_quotes_a_result_waits_for_it(place: Place) -> None:
    script = """\
- say: "2 of 2: {{result.2}}; all: {{ result }}"
- when: Look
  say: Let me see.
  call: {look: {at: "{{said}}"}, search_archive: {query: hats, limit: 3}}
- say: Hello.
- otherwise: true
  call: [{look: {at: sea}}, {look: {at: sky}}]
- otherwise: true
  say: "{{result.1}}, {{result.2}}"
"""
    hello, quoted, *rest = place.answers(script, "Hello", "Look", "And?", "And?")
    assert hello == "Hello."
    assert re.fullmatch(r"2 of 2: (.*); all: Look is <blue>\n\1", quoted)
    assert rest == ["sea is <blue>, sky is <blue>"] * 2


@pytest.mark.parametrize("when", ["", "when: also, "])
def test_a_message_that_a_killed_turn_is_told_does_not_start_its_script_over(place: Place, when: str) -> None:
    script = f"- call: {{look: {{at: one}}}}\n- call: {{look: {{at: two}}}}\n- {{{when}say: 'done, {{{{said}}}}'}}\n"
    with place.agent("- say: yes\n- {otherwise: true, say: no}\n") as agent:
        agent.turn("an earlier turn")
    with place.agent(script) as agent:
        leave_at(agent.stream("go"), ToolFinished)
    Home(place.folder / "home").send("x", "message", {"text": "also this"})
    with place.agent(script) as agent:
        agent.memory.process_inbox()
        assert agent.resume().text == "done, also this"
        steps = [agent.memory.history.blocks_of(row.page_id) for row in agent.memory.inspect.steps(0, 50).rows[::-1]]
    looks = [block["input"]["at"] for step in steps for block in step if block["type"] == "tool_use"]
    assert looks == ["one", "two"]


def test_a_script_that_runs_out_says_where_and_what_to_do(place: Place) -> None:
    with (
        place.agent("- call: {look: {at: sea}}\n- {when: never, say: x}\n") as agent,
        pytest.raises(ModelRefusedError) as error,
    ):
        agent.turn("hello")
    for words in (
        "replies.yaml:2:3: the script has no reply for step 3 of the turn 'hello': 1 of 2 entries used",
        "'otherwise: true'",
        "replies.yaml:2:3: unused, because it waits for a message with 'never'.",
    ):
        assert words in str(error.value)


MISTAKES = [
    ("say: x\n", "1:1: a script is a list of entries"),
    ("# later\n", "1:1: the file is empty. It needs at least one entry, such as '- say: hello'."),
    ("- hello\n", "1:3: [0] needs a mapping (lines of 'key: value' below it), not the text 'hello'."),
    ("- {wen: a, say: x}\n", "1:4: unknown key 'wen' in [0]; did you mean 'when'?"),
    ("- {when: (, say: x}\n", "1:10: [0].when is not a regular expression: missing )"),
    ("- {when: 5, say: x}\n", '1:10: [0].when needs text, not the number 5. Put it in quotes: "5".'),
    ("- when: a\n", "1:3: [0] has no reply."),
    ("- {say: 5}\n", "1:9: [0].say needs text, not the number 5."),
    ("- {say: x, otherwise: yes}\n", "1:23: [0].otherwise needs true or false, not the text 'yes'."),
    ("- {call: look}\n", "1:10: [0].call[0] needs a mapping"),
    (
        "- {call: {look: 5}}\n",
        "1:10: [0].call[0].look needs a mapping (lines of 'key: value' below it), not the number 5.",
    ),
    ("- {say: '{{answer}}'}\n", "1:9: [0].say has {{answer}}. There are only {{said}}, {{result}} and {{result.2}}."),
    ("- {otherwise: true, call: {look: {at: x}}}\n", "1:27: the last 'otherwise' entry ends with a call"),
    ("- say: x\n- call: {lok: {at: x}}\n", "2:3: the agent has no tool 'lok'; did you mean 'look'?"),
    ("- say: x: y\n", "1:9: ':' is not expected here."),
]


@pytest.mark.parametrize(("script", "problem"), MISTAKES)
def test_a_mistake_has_its_place_and_a_way_out(place: Place, script: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        place.agent(script)
    assert f"replies.yaml:{problem}" in str(error.value)
    valid = command_line("validate", place.file)
    assert (valid.code, problem in valid.err) == (2, True)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("provider: scripted, script: replis.yaml", "x.yaml:2:37: there is no file"),
        ("provider: scripted, script: 'nowhere:f'", "x.yaml:2:37: the script 'nowhere:f' cannot be imported"),
        ("provider: rehearsal", "x.yaml:2:19: model.provider has to be 'anthropic', 'bedrock',"),
        (
            "provider: scripted, script: 'skies_of_script:later'",
            "x.yaml:2:37: the script 'skies_of_script:later' is async",
        ),
        ("provider: scripted", "model needs a script for 'provider: scripted'; write 'script: replies.yaml'."),
    ],
)
def test_the_agents_file_has_to_name_its_script(place: Place, model: str, problem: str) -> None:
    place.file.write_text(f"name: x\nmodel: {{{model}}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(problem)):
        place.agent("- say: x\n")


def test_a_function_that_gives_no_reply_is_named(place: Place) -> None:
    """One that does answers in tests/config/test_embedders.py."""
    place.file.write_text("name: x\nmodel: {provider: scripted, script: 'builtins:len'}\n", encoding="utf-8")
    with (
        place.agent("") as agent,
        pytest.raises(ModelRefusedError, match=r"builtins:len failed: TypeError: \d is not"),
    ):
        agent.turn("hello")


def test_what_the_memory_put_beside_a_message_was_not_said() -> None:
    def texts(*lines: str) -> list[Json]:
        return [{"type": "text", "text": line} for line in lines]

    result: Json = {"type": "tool_result", "tool_use_id": "1"}
    messages = [
        {"role": "user", "content": texts("<recalled>\nf1 hats\n</recalled>", "What of &lt;core>?")},
        {"role": "assistant", "content": [{**call("look"), "id": "1"}]},
        {"role": "user", "content": [{**result, "content": texts("blue", "<notice>The window is full.</notice>")}]},
    ]
    assert OpenTurn.of({"messages": messages}) == OpenTurn("What of <core>?", ("blue",), (("What of <core>?", ()),), 3)


def test_a_request_that_does_not_fit_is_refused_and_uses_no_entry() -> None:
    model = ScriptedModel("m", Entries("r.yaml", [Entry("r.yaml:1", say="yes")]))
    params: Json = {"max_tokens": 100, "messages": [{"role": "user", "content": "word " * 210_000}]}
    with pytest.raises(PromptTooLongError, match="prompt is too long"):
        list(model.stream(params))
    assert [str(event) for event in model.stream({**params, "messages": [{"role": "user", "content": "word"}]})]
