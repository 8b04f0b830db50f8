"""A rendered configuration can be read again, and shows no secret."""

import json

from agents.config.agent_config import AgentConfig, load
from agents.config.render import render, render_json
from tests.config.conftest import read, write


def test_what_is_rendered_is_complete_and_can_be_read() -> None:
    write("n", "notes.md")
    config = read(
        """\
        name: x
        model: {api_key: s3cret}
        instructions: "costs $${5}\\nor ${N}\\n"
        core: {blocks: {b: {file: notes.md}}}
        archival: {embedder: ollama}
        """,
        N="${six}",
    )
    rendered = render(config)
    assert "instructions: |\n  costs $${5}\n  or $${six}\n" in rendered
    again = load(write(rendered, "elsewhere/b.yaml"), {})
    assert again.instructions == config.instructions == "costs ${5}\nor ${six}\n"
    assert (again.core, again.archival, again.model.api_key) == (config.core, config.archival, "(hidden)")
    assert render(again) == rendered
    assert json.loads(render_json(config))["instructions"] == config.instructions


def test_secrets_are_hidden() -> None:
    config = AgentConfig.model_validate(
        {
            "name": "x",
            "model": {"api_key": "s3cret"},
            "archival": {"embedder": {"name": "openai", "config": {"model_name": "m", "api_key": "s3cret"}}},
            "tools": [
                {"mcp": {"command": ["a"], "env": {"T": "s3cret"}}},
                {"mcp": {"url": "http://h/mcp", "headers": {"Authorization": "s3cret"}}},
            ],
        }
    )
    assert "s3cret" not in repr(config) + render(config) + render_json(config)
    shown = json.loads(render_json(config))
    assert shown["archival"]["embedder"]["config"] == {"model_name": "m", "api_key": "(hidden)"}
    command, url = (tool["mcp"] for tool in shown["tools"])
    assert command == {"command": ["a"], "env": {"T": "(hidden)"}, "headers": {}}
    assert url == {"command": [], "env": {}, "url": "http://h/mcp", "headers": {"Authorization": "(hidden)"}}


def test_what_is_derived_from_the_window_is_shown_and_what_a_run_decides_is_named() -> None:
    config = read("name: x\nwindow: {limit_tokens: 20000}\nlimits: {max_steps: 7}\n")
    shown = json.loads(render_json(config))
    assert shown["model"]["max_output_tokens"] == config.limits_of(20_000).max_output_tokens == 5_000
    assert (shown["window"]["max_part_tokens"], shown["core"]["limit_tokens"]) == (1_875, 1_875)
    assert "# limits.max_usd: no limit\n" in render(config)
    assert "# limits.max_steps" not in render(config)
    assert "# window.limit_tokens: the model's own window" in render(read("name: x\n"))
