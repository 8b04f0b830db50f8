"""What is wrong with a file is told in plain words, each problem at its place."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.config import yaml_file
from agents.config.agent_config import load
from agents.config.errors import ConfigError
from agents.config.render import render
from tests.config.conftest import EVERYTHING, problems, write
from tests.support.places import paths, put

NO_NAME = "a.yaml:1:1: 'name' is missing; every agent needs one, such as 'name: assistant'."
NO_PRICES = "limits.max_usd needs prices to count what is spent. Add 'prices:'."
EMBEDDER = "name: x\narchival:\n  embedder:\n    name: {}\n    config: {{modelname: m}}\n"
WRONG = [  # a file, and how its one problem begins
    ("version: 1\n", NO_NAME),
    ("name:\n", NO_NAME),
    ("name: x\nlimits: {max_usd: 5}\n", f"a.yaml:2:10: {NO_PRICES}"),
    ("name: x\ncore: {blocks: {b: {value: a, file: a.yaml}}}\n",
     "a.yaml:2:17: core.blocks.b has both a value and a file. Remove one of them."),
    ("name: x\nversion: true\n", "a.yaml:2:10: version needs a whole number, not true."),
    ("name: 4711\n", 'a.yaml:1:7: name needs text, not the number 4711. Put it in quotes: "4711".'),
    ("name: true\n", 'a.yaml:1:7: name needs text, not true. Put it in quotes: "true".'),
    (f"name: {'x' * 65}\n", f"a.yaml:1:7: name '{'x' * 60}"),
    (f"name: x\nversion: {'y' * 500}\n", f"a.yaml:2:10: version needs a whole number, not the text '{'y' * 60}…'."),
    ("name: x\narchival: {embedder: olama}\n",
     "a.yaml:2:22: archival.embedder: Chroma has no embedding function 'olama'; did you mean 'ollama'?"),
    (EMBEDDER.format("opnai"),
     "a.yaml:4:11: archival.embedder: Chroma has no embedding function 'opnai'; did you mean 'openai'?"),
    (EMBEDDER.format("openai"),
     "a.yaml:5:14: archival.embedder: openai takes no argument 'modelname'; did you mean 'model_name'?"),
    (EMBEDDER.format("none"), "a.yaml:3:3: archival.embedder takes no config for 'none'; write 'embedder: none'."),
]  # fmt: skip
# Numbers that do not fit each other: the place of the problem is that of the number that is given.
WINDOWS = [
    ("window: {limit_tokens: 100}", "2:10", "max_part_tokens is 9"),
    ("window: {limit_tokens: 20000, max_part_tokens: 20}", "2:31", "max_part_tokens is 20"),
    ("window: {limit_tokens: 5000}\nmodel: {max_output_tokens: 5000}", "3:9", "a window of 5000 tokens with 5000"),
    ("model: {max_output_tokens: 300000}", "2:9", "a window of 200000 tokens with 300000"),
    ("window: {evict_at: 0.6}", "2:10", "evict_to 0.5, notify_at 0.7, evict_at 0.6"),
    ("window: {evict_at: 0.75, notify_at: 0.8}", "2:26", "evict_to 0.5, notify_at 0.8, evict_at 0.75"),
    ("window: {evict_to: 0.9}", "2:10", "evict_to 0.9, notify_at 0.7, evict_at 0.85"),
    ("window: {notify_at: 0.99, evict_to: 0.9}", "2:1", "evict_to 0.9, notify_at 0.99, evict_at 0.85"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong(text: str, message: str) -> None:
    [problem] = problems(write(text))
    assert problem.startswith(message)


@pytest.mark.parametrize(("text", "place", "beginning"), WINDOWS)
def test_numbers_of_a_window_that_do_not_fit_are_found_where_they_stand(text: str, place: str, beginning: str) -> None:
    [problem] = problems(write(f"name: x\n{text}\n"))
    assert problem.startswith(f"a.yaml:{place}: ")
    assert f" does not fit: {beginning}" in problem


@pytest.mark.parametrize("address", ["http://[::1", "http://a:b", "http://a:99999", "http://:80", "http://a:0"])
def test_an_address_is_checked_to_its_port(folder: Path, address: str) -> None:
    [problem] = problems(write(f"name: x\nmodel: {{base_url: '{address}'}}\n"))
    assert problem.startswith(f"a.yaml:2:19: model.base_url '{address}' is not allowed: an address is http://")


def test_every_problem_is_listed_with_its_place_in_plain_words(folder: Path) -> None:
    text = """\
        version: 2
        name: ../x
        instrctions: hi
        zzz: 1
        model:
          provider: anthropc
          id: 5
          api_key: 12345
          base_url: ftp://x
          max_output_tokens: ${OUT}
          cache_ttl: ${NONE}
          thinking: maximal
        window: {limit_tokens: 60.5, notify_at: high, evct_at: 0.5, evict_at: 1.5, evict_to: 0}
        core:
          blocks:
            9x: {value: a}
            human: text
            none:
            both: {value: a, file: ./nope.md, read_only: yes}
        recall: {digest: {summarise: x}}
        archival: {prefetch: {k: -1}, embedder: ""}
        memory: pager
        tools:
          - use: foo
            approve: true
          - mcp: {command: npx}
          - mcp: {}
          - mcp: {command: [a], url: "http://x"}
          - {us: a}
          - {use: "a:b", mcp: {command: [a]}}
          - text
          - mcp: {command: [a, 5], env: {PORT: 8080}, ur: x}
          - {use: "a:b", timeout_secs: 5}
        limits: {max_steps: .inf, max_usd: .nan, max_minutes: [1]}
        prices: {input: 1}
        """
    use = "use: package.module:function"
    others = "'mcp: {...}', 'builtin: files' (or web, or shell), 'server: web_search_20250305' and 'agent: other.yaml'."
    assert problems(write(text), OUT="abc") == [
        f"a.yaml:{line}"
        for line in [
            "1:10: version has to be 1, not 2: this selfpager reads no other format.",
            "2:7: name '../x' cannot be an agent's name: use letters, digits, '.', '_' and '-', beginning with a "
            "letter or digit, at most 64.",
            "3:1: unknown key 'instrctions'; did you mean 'instructions'?",
            "4:1: unknown key 'zzz'; known are version, name, extends, model, instructions, window, core, recall, "
            "archival, memory, mounts, sleep, schedule, tools, skills, output, limits, prices.",
            "6:13: model.provider has to be 'anthropic', 'bedrock', 'vertex', 'foundry', 'openai' or "
            "'scripted', not the text 'anthropc'; did you mean 'anthropic'?",
            '7:7: model.id needs text, not the number 5. Put it in quotes: "5".',
            "8:12: model.api_key needs text, not a number. Put it in quotes.",
            "9:13: model.base_url 'ftp://x' is not allowed: an address begins with http:// or https://.",
            "10:22: model.max_output_tokens needs a whole number, not the text 'abc' (from ${OUT}).",
            "11:14: the environment variable NONE is not set. Set it, or give a default: ${NONE:-...}.",
            "12:13: model.thinking has to be 'default', 'adaptive' or 'off', not the text 'maximal'.",
            "13:24: window.limit_tokens needs a whole number, not the number 60.5.",
            "13:41: window.notify_at needs a number, not the text 'high'.",
            "13:47: unknown key 'evct_at' in window; did you mean 'evict_at'?",
            "13:71: window.evict_at has to be at most 1, not the number 1.5.",
            "13:86: window.evict_to has to be more than 0, not the number 0.",
            "16:5: core.blocks.9x '9x' is not allowed: use letters, digits, _ and -, beginning with a letter, at "
            "most 64.",
            "17:12: core.blocks.human needs a mapping (lines of 'key: value' below it), not the text 'text'.",
            "18:10: core.blocks.none needs a mapping (lines of 'key: value' below it), not nothing.",
            "19:28: core.blocks.both.file: there is no file " + str(folder / "nope.md") + ". Create it, or correct the "
            "path.",
            "19:50: core.blocks.both.read_only needs true or false, not the text 'yes'.",
            "20:10: 'summarize' is missing; recall.digest needs it.",
            "20:19: unknown key 'summarise' in recall.digest; did you mean 'summarize'?",
            "21:26: archival.prefetch.k has to be at least 0, not the number -1.",
            "21:41: archival.embedder must not be empty.",
            "22:9: memory needs a mapping (lines of 'key: value' below it), not the text 'pager'.",
            "24:10: tools[0].use 'foo' is not allowed: name a function as 'package.module:function'.",
            "25:14: tools[0].approve has to be 'never' or 'always', not true.",
            "26:20: tools[1].mcp.command needs a list (lines of '- ...' below it), not a text.",
            "27:5: tools[2].mcp needs either 'command: [program, argument, ...]' or 'url: http://...'.",
            "28:5: tools[3].mcp needs either 'command: [program, argument, ...]' or 'url: http://...'.",
            f"29:5: tools[4] needs one of '{use}', {others}",
            f"30:5: tools[5] needs one of '{use}', {others}",
            "31:5: tools[6] needs a mapping (lines of 'key: value' below it), not the text 'text'.",
            "32:24: tools[7].mcp.command[1] needs text, not a number. Put it in quotes.",
            "32:40: tools[7].mcp.env.PORT needs text, not a number. Put it in quotes.",
            "32:47: unknown key 'ur' in tools[7].mcp; did you mean 'url'?",
            "33:18: unknown key 'timeout_secs' in tools[8]; did you mean 'timeout_seconds'?",
            "34:21: limits.max_steps needs a whole number, not the number inf.",
            "34:36: limits.max_usd needs a finite number, not the number nan.",
            "34:42: limits.max_minutes needs a number, not a list.",
            "35:1: 'output' is missing; prices needs it.",
        ]
    ]


def test_the_window_is_looked_at_even_if_another_section_is_wrong() -> None:
    found = problems(write("name: x\nwindow: {evict_at: 0.6}\nmemory: {tool: none}\n"))
    assert [problem[:11] for problem in found] == ["a.yaml:2:10", "a.yaml:3:10"]
    assert len(problems(write("name: x\nwindow: {evict_at: 0.6}\nmodel: {id: 5}\n"))) == 1


def test_a_problem_in_a_base_is_placed_in_the_base() -> None:
    write("window: {limt_tokens: 5}\nlimits: {max_usd: 5}\n", "sub/base.yaml")
    assert problems(write("name: x\nextends: sub/base.yaml\nwindow: {evict_at: 7}\n")) == [
        "a.yaml:3:20: window.evict_at has to be at most 1, not the number 7.",
        "sub/base.yaml:1:10: unknown key 'limt_tokens' in window; did you mean 'limit_tokens'?",
        f"sub/base.yaml:2:10: {NO_PRICES}",
    ]


@pytest.mark.parametrize(
    ("model", "rest", "problem"),
    [
        ("{provider: openai}", "", "2:1: model needs an id for 'provider: openai'"),
        ("{provider: openai, id: m, thinking: adaptive}", "", "2:1: model has 'thinking: adaptive', which"),
        (
            "{provider: openai, id: m}",
            "memory: {tools: anthropic}",
            "3:10: memory.tools anthropic is a tool of the Mes",
        ),
    ],
)
def test_what_chat_completions_has_not_is_refused_at_load(model: str, rest: str, problem: str) -> None:
    [found] = problems(write(f"name: x\nmodel: {model}\n{rest}\n"))
    assert found.startswith(f"a.yaml:{problem}")


def test_no_secret_is_shown() -> None:
    text = "name: x\nmodel: {api_key: [s3cret]}\ntools: [{mcp: {command: [a], env: {T: [s3cret]}}}]\n"
    assert "s3cret" not in str(problems(write(text)))


KEYS = ["name", "model", "id", "window", "evict_at", "core", "blocks", "human", "file", "recall", "digest", "summarize"]
KEYS += ["tools", "use", "mcp", "command", "env", "url", "limits", "max_usd", "prices", "input", "version", "[key]"]
values = st.sampled_from([None, "", "x", "build", "a:b", "http://x", "${A}", "${B:-}", 0, 1, -1, 0.5, 1e9, True, []])


broken = st.recursive(
    values | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


mutants = st.builds(put, st.just(EVERYTHING), st.sampled_from(paths(EVERYTHING)[1:]), broken)
JARGON = ("pydantic", "validat", "Input should", "union", "tuple", "dict", "NoneType", "cannot be ", "field", "tag ")


@given(st.dictionaries(st.sampled_from(KEYS), broken, max_size=6) | mutants)
@example(put(EVERYTHING, ("core", "blocks"), {"[key]": {"value": 5}}))
@example({"core": {"name": {"file": "x"}}})
def test_whatever_it_says_a_file_is_read_or_refused_in_plain_words(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.yaml"
    path.write_text(yaml_file.dump(data), encoding="utf-8", newline="")
    try:
        config = load(path, {"A": "5"})
    except ConfigError as error:
        for problem in error.problems:
            assert problem.place.line >= 1
            assert not [word for word in JARGON if word in problem.message.replace("cannot be an agent's", "")]
    else:
        path.write_text(render(config), encoding="utf-8", newline="")
        assert render(load(path, {})) == render(config)
