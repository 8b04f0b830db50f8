import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.config import yaml_file
from agents.config.agent_config import AgentConfig, load
from agents.config.errors import ConfigError
from agents.config.render import render, render_json
from agents.config.sections import EmbedderConfig, FunctionTool
from pager import tokens
from pager.errors import RejectedError
from pager.home import Home
from pager.limits import Limits
from tests.support.places import paths, put

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "a.yaml") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def read(text: str, **environ: str) -> AgentConfig:
    return load(write(text), environ)


def formed(data: dict[str, Any]) -> AgentConfig:
    return AgentConfig.model_validate({"name": "x", **data})


def wrong(text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(text, **environ)
    return str(caught.value).splitlines()


# what is read


def test_a_name_is_enough(folder: Path) -> None:
    config = read("name: x\n")
    assert config.model_dump() == AgentConfig(name="x").model_dump()
    assert config.place("tools", 0).file.parent.absolute() == folder  # the schema's test pins the defaults


def test_everything_that_the_format_has(folder: Path) -> None:
    (folder / "CLAUDE.md").write_text("notes", encoding="utf-8")
    config = read(
        """\
        version: 1
        name: researcher
        model:
          provider: bedrock
          id: some-model
          base_url: http://localhost:1/x
          api_key: secret
          max_output_tokens: 8000
          thinking: off
          cache_ttl: 1h
        instructions: |
          Look.
          Then leap.
        window: {limit_tokens: 60000, notify_at: 0.70, evict_at: 0.85, evict_to: 0.50, max_part_tokens: 6500}
        core:
          limit_tokens: 4000
          blocks:
            persona: {description: who, value: me, limit_tokens: 500, read_only: true}
            project: {file: ./CLAUDE.md, read_only: true}
        recall: {digest: build}
        archival: {embedder: none, prefetch: {k: 4, budget_tokens: 400}}
        memory: {tools: none}
        tools:
          - {use: "mypackage.tools:fetch_order", idempotent: true, approve: always, timeout_seconds: 5}
        limits: {max_steps: 200, max_usd: 5, max_minutes: 240}
        prices: {input: 3, output: 15.0, cache_read: 0.3, cache_write: 3.75}
        """
    )
    assert config.model.thinking == "off"
    assert config.instructions == "Look.\nThen leap.\n"
    assert list(config.core.blocks) == ["persona", "project"]
    assert config.core.blocks["project"].file == str(folder / "CLAUDE.md")
    (function,) = config.tools
    assert isinstance(function, FunctionTool)
    assert (function.use, function.idempotent, function.approve) == ("mypackage.tools:fetch_order", True, "always")
    assert (config.limits.max_usd, config.prices and config.prices.input) == (5.0, 3.0)
    assert config.place("tools", 0, "use").file.parent.absolute() == folder


@pytest.mark.parametrize(
    ("digest", "summarizes", "model"),
    [
        ("build", False, None),
        ("summarize", True, None),
        ({"summarize": {}}, True, None),
        ({"summarize": {"model": "small"}}, True, "small"),
    ],
)
def test_the_digest_is_a_word_or_names_a_model(digest: Any, summarizes: bool, model: str | None) -> None:
    recall = formed({"recall": {"digest": digest}}).recall
    assert (recall.summarizes, recall.summary_model) == (summarizes, model)


def test_nothing_means_the_default(folder: Path) -> None:
    empty = """\
        name: x
        model: {base_url: "", api_key: ~, id: null, max_output_tokens: "${NONE:-}"}
        instructions:
        window:
        core: {blocks: }
        tools:
        limits: {max_usd: ""}
        prices:
        """
    assert read(empty).model_dump() == read("name: x\n").model_dump()


def test_texts_of_the_environment_are_numbers_where_numbers_are_wanted(folder: Path) -> None:
    config = read(
        """\
        version: ${ONE}
        name: ${WHO}
        model: {id: "${ONE}"}
        window: {limit_tokens: "${WINDOW}", evict_to: "${NONE:-0.25}"}
        core: {blocks: {b: {read_only: "${YES}", value: "${ONE}"}}}
        """,
        ONE="1",
        WHO="me",
        WINDOW="30000",
        YES="yes",
    )
    assert (config.version, config.name, config.model.id) == (1, "me", "1")
    assert (config.window.limit_tokens, config.window.evict_to) == (30000, 0.25)
    assert (config.core.blocks["b"].read_only, config.core.blocks["b"].value) == (True, "1")


def test_prices_of_the_cache_follow_from_that_of_the_input(folder: Path) -> None:
    prices = "prices: {input: 10, output: 20}\n"
    five_minutes, hour = read(f"name: x\n{prices}").prices, read(f"name: x\nmodel: {{cache_ttl: 1h}}\n{prices}").prices
    assert five_minutes
    assert hour
    assert five_minutes.model_dump() == {"input": 10, "output": 20, "cache_read": 1, "cache_write": 12.5}
    assert hour.model_dump() == {"input": 10, "output": 20, "cache_read": 1, "cache_write": 20}
    given_one = read("name: x\nmodel: {cache_ttl: 1h}\nprices: {input: 10, output: 20, cache_write: 7}\n").prices
    assert given_one
    assert given_one.cache_write == 7


def test_files_are_relative_to_the_file_that_names_them(folder: Path) -> None:
    for name in ("base/notes.md", "top/notes.md"):
        write("notes", name)
    write("core: {blocks: {below: {file: notes.md}, both: {file: notes.md}}}\n", "base/base.yaml")
    blocks = "core: {blocks: {both: {file: notes.md}}}\n"
    config = load(write(f"name: x\nextends: ../base/base.yaml\n{blocks}", "top/top.yaml"), {})
    files = {name: Path(block.file or "").resolve() for name, block in config.core.blocks.items()}
    assert files == {"below": folder / "base" / "notes.md", "both": folder / "top" / "notes.md"}
    assert all(Path(block.file or "").is_absolute() for block in config.core.blocks.values())


def test_nothing_of_it_can_be_changed(folder: Path) -> None:
    config = read("name: x\n")
    with pytest.raises(ValidationError):
        config.model.id = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_keys_are_not_in_its_repr() -> None:
    server = {"command": ["a"], "env": {"T": "s3cret"}}
    config = formed({"model": {"api_key": "s3cret"}, "tools": [{"mcp": server}]})
    assert "s3cret" not in repr(config)


def test_the_embedder_is_a_word_or_one_of_chroma_with_arguments(folder: Path) -> None:
    arguments = {"model_name": "m", "api_key": "s3cret", "api_key_env_var": "MY_KEY"}
    word, full = (
        formed({"archival": {"embedder": "ollama"}}),
        formed({"archival": {"embedder": {"name": "openai", "config": arguments}}}),
    )
    assert word.archival.of_chroma == EmbedderConfig(name="ollama")
    assert full.archival.of_chroma == EmbedderConfig(name="openai", config=arguments)
    assert formed({}).archival.of_chroma is None
    assert formed({"archival": {"embedder": "none"}}).archival.of_chroma is None
    assert "s3cret" not in repr(full)
    assert "s3cret" not in render(full) + render_json(full)
    assert json.loads(render_json(full))["archival"]["embedder"]["config"] == {**arguments, "api_key": "(hidden)"}
    assert load(write(render(word), "again.yaml"), {}).archival == word.archival


# what is refused


def test_a_wrong_embedder_is_told_at_its_place(folder: Path) -> None:
    assert wrong("name: x\narchival: {embedder: olama}\n") == [
        "a.yaml:2:22: archival.embedder: Chroma has no embedding function 'olama'; did you mean 'ollama'?"
    ]
    full = """\
        name: x
        archival:
          embedder:
            name: NAME
            config: {modelname: m}
        """
    assert wrong(full.replace("NAME", "opnai")) == [
        "a.yaml:4:11: archival.embedder: Chroma has no embedding function 'opnai'; did you mean 'openai'?"
    ]
    assert wrong(full.replace("NAME", "openai")) == [
        "a.yaml:5:14: archival.embedder: openai takes no argument 'modelname'; did you mean 'model_name'?"
    ]
    assert wrong(full.replace("NAME", "none")) == [
        "a.yaml:3:3: archival.embedder takes no config for 'none'; write 'embedder: none'."
    ]


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
    assert wrong(text, OUT="abc") == [
        f"a.yaml:{line}"
        for line in [
            "1:10: version has to be 1, not 2: this selfpager reads no other format.",
            "2:7: name '../x' cannot be an agent's name: use letters, digits, '.', '_' and '-', beginning with a "
            "letter or digit, at most 64.",
            "3:1: unknown key 'instrctions'; did you mean 'instructions'?",
            "4:1: unknown key 'zzz'; known are version, name, extends, model, instructions, window, core, recall, "
            "archival, memory, tools, limits, prices.",
            "6:13: model.provider has to be 'anthropic', 'bedrock', 'vertex', 'foundry' or 'scripted', not the text "
            "'anthropc'; did you mean 'anthropic'?",
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
            "26:20: tools[1].mcp.command needs a list (lines of '- ...' below it), not the text 'npx'.",
            "27:5: tools[2].mcp needs either 'command: [program, argument, ...]' or 'url: http://...'.",
            "28:5: tools[3].mcp needs either 'command: [program, argument, ...]' or 'url: http://...'.",
            f"29:5: tools[4] needs one of '{use}' and 'mcp: {{...}}'.",
            f"30:5: tools[5] needs one of '{use}' and 'mcp: {{...}}'.",
            "31:5: tools[6] needs a mapping (lines of 'key: value' below it), not the text 'text'.",
            '32:24: tools[7].mcp.command[1] needs text, not the number 5. Put it in quotes: "5".',
            "32:40: tools[7].mcp.env.PORT needs text, not a number. Put it in quotes.",
            "32:47: unknown key 'ur' in tools[7].mcp; did you mean 'url'?",
            "33:18: unknown key 'timeout_secs' in tools[8]; did you mean 'timeout_seconds'?",
            "34:21: limits.max_steps needs a whole number, not the number inf.",
            "34:36: limits.max_usd needs a finite number, not the number nan.",
            "34:42: limits.max_minutes needs a number, not a list.",
            "35:1: 'output' is missing; prices needs it.",
        ]
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\n", "1:1: 'name' is missing; every agent needs one, such as 'name: assistant'."),
        ("name:\n", "1:1: 'name' is missing; every agent needs one, such as 'name: assistant'."),
        ("name: x\nlimits: {max_usd: 5}\n",
         "2:10: limits.max_usd needs prices to count what is spent. Add 'prices:'."),
        ("name: x\nmodel: text\nlimits:\n  max_usd: 5\n", "4:3: limits.max_usd needs prices to count "
         "what is spent. Add 'prices:'."),
        ("name: x\ncore: {blocks: {b: {value: a, file: a.yaml}}}\n",
         "2:17: core.blocks.b has both a value and a file. Remove one of them."),
        ("name: x\nversion: true\n", "2:10: version needs a whole number, not true."),
        ("name: 4711\n", '1:7: name needs text, not the number 4711. Put it in quotes: "4711".'),
        ("name: true\n", '1:7: name needs text, not true. Put it in quotes: "true".'),
        (f"name: {'x' * 65}\n", "beginning with a letter or digit, at most 64."),
        (f"name: x\nversion: {'y' * 500}\n", f"2:10: version needs a whole number, not the text '{'y' * 60}...'."),
    ],
)  # fmt: skip
def test_what_else_is_wrong(folder: Path, text: str, message: str) -> None:
    assert any(line.endswith(message) for line in wrong(text))


WINDOWS = [
    ("window: {limit_tokens: 100}\n", "2:10", "max_part_tokens is 9"),
    ("window: {limit_tokens: 20000, max_part_tokens: 20}\n", "2:31", "max_part_tokens is 20"),
    ("window: {limit_tokens: 5000}\nmodel: {max_output_tokens: 5000}\n", "3:9", "a window of 5000 tokens with 5000"),
    ("model: {max_output_tokens: 300000}\n", "2:9", "a window of 200000 tokens with 300000"),
    ("window: {evict_at: 0.6}\n", "2:10", "evict_to 0.5, notify_at 0.7, evict_at 0.6"),
    ("window: {evict_at: 0.75, notify_at: 0.8}\n", "2:26", "evict_to 0.5, notify_at 0.8, evict_at 0.75"),
    ("window: {evict_to: 0.9}\n", "2:10", "evict_to 0.9, notify_at 0.7, evict_at 0.85"),
    ("window: {notify_at: 0.99, evict_to: 0.9}\n", "2:1", "evict_to 0.9, notify_at 0.99, evict_at 0.85"),
]


@pytest.mark.parametrize(("text", "place", "beginning"), WINDOWS)
def test_numbers_of_a_window_that_do_not_fit_are_found_where_they_stand(
    folder: Path, text: str, place: str, beginning: str
) -> None:
    [line] = wrong("name: x\n" + text)
    assert line.startswith(f"a.yaml:{place}: ")
    assert f" does not fit: {beginning}" in line


def test_the_window_is_looked_at_even_if_another_section_is_wrong(folder: Path) -> None:
    lines = wrong("name: x\nwindow: {evict_at: 0.6}\nmemory: {tool: none}\n")
    assert [line[:11] for line in lines] == ["a.yaml:2:10", "a.yaml:3:10"]
    assert len(wrong("name: x\nwindow: {evict_at: 0.6}\nmodel: {id: 5}\n")) == 1


def test_a_problem_in_a_base_is_placed_in_the_base(folder: Path) -> None:
    write("window: {limt_tokens: 5}\nlimits: {max_usd: 5}\n", "sub/base.yaml")
    assert wrong("name: x\nextends: sub/base.yaml\nwindow: {evict_at: 7}\n") == [
        "a.yaml:3:20: window.evict_at has to be at most 1, not the number 7.",
        "sub/base.yaml:1:10: unknown key 'limt_tokens' in window; did you mean 'limit_tokens'?",
        "sub/base.yaml:2:10: limits.max_usd needs prices to count what is spent. Add 'prices:'.",
    ]


def test_no_secret_is_shown(folder: Path) -> None:
    text = """\
        name: x
        model: {api_key: [s3cret]}
        tools: [{mcp: {command: [a], env: {T: [s3cret]}}}]
        """
    assert not [line for line in wrong(text) if "s3cret" in line]


def test_rules_hold_without_a_file_too() -> None:
    with pytest.raises(ValidationError, match=r"limits\.max_usd needs prices"):
        AgentConfig.model_validate({"name": "x", "limits": {"max_usd": 5.0}})


# laws

KEYS = ["name", "model", "id", "window", "evict_at", "core", "blocks", "human", "file", "recall", "digest", "summarize"]
KEYS += ["tools", "use", "mcp", "command", "env", "url", "limits", "max_usd", "prices", "input", "version", "[key]"]
values = st.sampled_from([None, "", "x", "build", "a:b", "http://x", "${A}", "${B:-}", 0, 1, -1, 0.5, 1e9, True, []])
broken = st.recursive(
    values | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
SHAPE: dict[str, Any] = {
    "name": "x",
    "model": {"id": "m", "max_output_tokens": 100, "base_url": "http://x", "thinking": "off"},
    "window": {"limit_tokens": 6000, "evict_at": 0.8},
    "core": {"blocks": {"human": {"value": "v", "read_only": True}}},
    "recall": {"digest": "build"},
    "tools": [{"use": "a:b", "idempotent": True}],
    "limits": {"max_steps": 5, "max_usd": 1.0},
    "prices": {"input": 1.0, "output": 2},
}
WITH_SERVERS: dict[str, Any] = {
    **SHAPE,
    "recall": {"digest": {"summarize": {"model": "m"}}},
    "tools": [{"mcp": {"command": ["a"], "env": {"A": "b"}}}, {"mcp": {"url": "http://x"}}],
}


mutants = st.sampled_from([SHAPE, WITH_SERVERS]).flatmap(
    lambda shape: st.builds(put, st.just(shape), st.sampled_from(paths(shape)[1:]), broken)
)
JARGON = ("pydantic", "validat", "Input should", "union", "tuple", "dict", "NoneType", "cannot be ", "field", "tag ")


@given(st.dictionaries(st.sampled_from(KEYS), broken, max_size=6) | mutants)
@example(put(SHAPE, ("core", "blocks"), {"[key]": {"value": 5}}))
@example({"core": {"name": {"file": "x"}}})
def test_whatever_it_says_a_file_is_read_or_refused_in_plain_words(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.yaml"
    path.write_text(yaml_file.dump(data), encoding="utf-8", newline="")
    problems = ()
    try:
        config = load(path, {"A": "5"})
    except ConfigError as error:
        problems = error.problems
    else:
        again = load_text(render(config), path)
        assert render(again) == render(config)
    for problem in problems:
        assert problem.place.line >= 1
        assert not [word for word in JARGON if word in problem.message.replace("cannot be an agent's", "")]


def load_text(text: str, path: Path) -> AgentConfig:
    path.write_text(text, encoding="utf-8", newline="")
    return load(path, {})


odd_names = st.sampled_from(["", ".", "..", "...", ".x", "a/b", "a\\b", "-a", "a b", "a\n", "é", "a..b", "A_9.b-c"])


@given(odd_names | st.text(max_size=70) | st.text("aZ9._-", max_size=66))
def test_names_are_those_of_directories_in_the_home(name: str) -> None:
    try:
        fine = Home("home").files(name).directory == Path("home") / name
    except RejectedError:
        fine = False
    try:
        accepted = AgentConfig(name=name).name == name
    except ValidationError:
        accepted = False
    assert accepted == fine
    assert not accepted or (Path("home") / name).resolve().parent == Path("home").resolve()


numbers = st.sampled_from([None, 1, 64, 100, 600, 5000, 200_000, 300_000])
shares = st.sampled_from([0.01, 0.3, 0.5, 0.7, 0.85, 1.0])


@given(numbers, numbers, numbers, shares, shares, shares)
def test_a_window_is_accepted_exactly_when_the_memory_accepts_it(
    limit: int | None, output: int | None, part: int | None, notify: float, at: float, to: float
) -> None:
    share: dict[str, Any] = {"notify_at": notify, "evict_at": at, "evict_to": to}
    try:
        Limits.for_window(limit or 200_000, max_output_tokens=output, max_part_tokens=part, **share)
        fits = True
    except RejectedError:
        fits = False
    window = {"limit_tokens": limit, "max_part_tokens": part, **share}
    try:
        AgentConfig.model_validate({"name": "x", "model": {"max_output_tokens": output}, "window": window})
        accepted = True
    except ValidationError:
        accepted = False
    assert accepted == fits


# render


def test_what_is_rendered_is_complete_hides_secrets_and_can_be_read(folder: Path) -> None:
    (folder / "notes.md").write_text("n", encoding="utf-8")
    config = read(
        """\
        name: x
        model: {api_key: s3cret}
        instructions: "costs $${5}\\nor ${N}\\n"
        core: {blocks: {b: {file: notes.md}}}
        """,
        N="${six}",
    )
    rendered = render(config)
    assert "s3cret" not in rendered
    assert "instructions: |\n  costs $${5}\n  or $${six}\n" in rendered
    again = load(write(rendered, "elsewhere/b.yaml"), {})
    assert again.instructions == config.instructions == "costs ${5}\nor ${six}\n"
    assert again.core == config.core
    assert again.model.api_key == "(hidden)"
    assert render(again) == rendered
    as_json = render_json(config)
    assert "s3cret" not in as_json
    assert json.loads(as_json)["instructions"] == config.instructions


def test_the_environment_of_a_server_is_hidden() -> None:
    server = {"command": ["a"], "env": {"T": "s3cret"}}
    remote = {"url": "http://h/mcp", "headers": {"Authorization": "s3cret"}}
    config = formed({"tools": [{"mcp": server}, {"mcp": remote}]})
    assert "s3cret" not in render(config)
    command, url = (tool["mcp"] for tool in json.loads(render_json(config))["tools"])
    assert command == {"command": ["a"], "env": {"T": "(hidden)"}, "headers": {}}
    assert url == {"command": [], "env": {}, "url": "http://h/mcp", "headers": {"Authorization": "(hidden)"}}


# configs/


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_the_agents_that_come_along_are_fine(path: Path) -> None:
    config = load(path, {})
    assert config.name == path.stem
    assert path.read_text(encoding="utf-8").startswith("# yaml-language-server: $schema=agent.schema.json\n")
    used = sum(tokens.total(block.value) for block in config.core.blocks.values())
    assert used < Limits.for_window(config.window.limit_tokens or 100_000).core_tokens
    fixed = config.instructions + json.dumps({name: block.description for name, block in config.core.blocks.items()})
    assert tokens.total(fixed) < 300


def test_the_agents_that_come_along_are_these() -> None:
    assert [path.stem for path in CONFIGS] == ["assistant", "local", "researcher", "support"]


def test_local_takes_its_server_from_the_environment() -> None:
    path = next(path for path in CONFIGS if path.stem == "local")
    assert load(path, {}).model.base_url == "http://127.0.0.1:8080"
    told = load(path, {"LOCAL_BASE_URL": "http://10.0.0.5:80", "LOCAL_WINDOW": "8192", "LOCAL_API_KEY": "k"})
    assert (told.model.base_url, told.window.limit_tokens, told.model.api_key) == ("http://10.0.0.5:80", 8192, "k")


def test_importing_it_is_cheap() -> None:
    heavy = ("anthropic", "chromadb", "tiktoken", "onnxruntime", "numpy", "yaml")
    code = f"import sys, agents.config.agent_config; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
