"""Agents among the tools: read with the agent that they help, each mistake at its place, and never in a circle."""

import pytest

from agents.assembly import own_tools, try_out
from agents.config.agent_config import load
from agents.config.errors import ConfigError
from agents.tools.helper_calls import AgentTool
from tests.config.conftest import problems, write
from tests.support.clock import HandClock


def lead(file: str, more: str = "") -> str:
    return f"name: lead\narchival: {{embedder: none}}\ntools:\n  - agent: {file}\n{more}"


def test_a_helper_is_relative_to_the_file_that_names_it_and_has_its_own_name_and_words() -> None:
    write("name: reader\ninstructions: |\n  You read.\n\n  And more.\n", "helpers/reader.yaml")
    write("name: base\ntools:\n  - {agent: reader.yaml, archive: read}\n", "helpers/base.yaml")
    write("name: lead\nextends: helpers/base.yaml\n")
    [tool] = own_tools(load(write("name: lead\nextends: helpers/base.yaml\n"), {}))
    assert isinstance(tool, AgentTool)
    assert tool.name == "reader"
    assert tool.description.endswith("It can search your archive. Its instructions begin: You read.")
    assert tool.definition["input_schema"]["required"] == ["task"]
    write("name: base\ntools:\n  - {agent: reader.yaml, description: It reads.}\n", "helpers/base.yaml")
    assert own_tools(load(write("name: lead\nextends: helpers/base.yaml\n"), {}))[0].description.endswith(" It reads.")


def test_an_agent_that_helps_itself_directly_or_in_a_circle() -> None:
    assert problems(write(lead("a.yaml"))) == [
        "a.yaml:4:12: tools[0].agent: an agent helps itself: a.yaml -> a.yaml. Take one of them out."
    ]
    write("name: b\ntools: [{agent: c.yaml}]\n", "b.yaml")
    write("name: c\ntools: [{agent: ./b.yaml}]\n", "c.yaml")
    [problem] = problems(write(lead("b.yaml")))
    assert problem.startswith(
        "c.yaml:2:17: tools[0].agent: an agent helps itself: a.yaml -> b.yaml -> c.yaml -> b.yaml"
    )


def test_helpers_of_helpers_have_an_end() -> None:
    for number in range(1, 5):
        more = f"tools: [{{agent: h{number + 1}.yaml}}]\n" if number < 4 else ""
        write(f"name: h{number}\n{more}", f"h{number}.yaml")
    [problem] = problems(write(lead("h1.yaml")))
    assert problem.startswith(
        "h3.yaml:2:17: tools[0].agent: helpers of helpers go 4 deep, at most 3 are allowed: a.yaml ->"
    )
    assert load(write(lead("h2.yaml")), {}).helpers[0].helpers[0].helpers[0].name == "h4"


def test_one_that_is_missing_or_wrong_is_named_at_its_place() -> None:
    assert problems(write(lead("b.yaml"))) == [
        "a.yaml:4:12: tools[0].agent: there is no file b.yaml. Create it, or correct the path."
    ]
    write("name: b\nwindow: {limit_tokens: many}\nmodell: {}\n", "b.yaml")
    assert [line.partition(" ")[0] for line in problems(write(lead("b.yaml")))] == ["b.yaml:2:24:", "b.yaml:3:1:"]


@pytest.mark.parametrize(
    ("more", "helper", "message"),
    [
        (
            "prices: {input: 1, output: 1}\nlimits: {max_usd: 1}\n",
            "",
            "b has no prices, and limits.max_usd of this agent",
        ),
        ("", "archival: {index: {host: chroma.example}}\n", "b has its index on a server, where a purge would not"),
    ],
)
def test_what_a_helper_has_to_be_for_who_asks_it(more: str, helper: str, message: str) -> None:
    write(f"name: b\n{helper}", "b.yaml")
    [problem] = problems(write(lead("b.yaml", more)))
    assert problem.startswith("a.yaml:4:12: ")
    assert message in problem


def test_a_name_that_no_tool_can_have_and_tools_of_a_helper_that_are_wrong() -> None:
    write("name: b.c\n", "b.yaml")
    with pytest.raises(ConfigError, match=r"a.yaml:4:12: an agent called 'b.c' cannot be a tool"):
        own_tools(load(write(lead("b.yaml")), {}))
    write("name: b\ntools: [{use: 'nowhere:at_all'}]\n", "b.yaml")
    with pytest.raises(ConfigError, match=r"b.yaml:2:\d+: the tool 'nowhere:at_all' cannot be imported"):
        try_out(load(write(lead("b.yaml")), {}), HandClock(), task=False)


def test_a_helper_and_who_it_helps_are_one_team() -> None:
    """So none of their built-in tools writes what another one is."""
    write("name: c\n", "c.yaml")
    write("name: b\ntools: [{agent: c.yaml}]\n", "b.yaml")
    first = load(write(lead("b.yaml")), {})
    helper = first.helpers[0].helpers[0]
    assert [file.name for file in helper.files] == ["c.yaml"]
    assert [each.files[0].name for each in helper.team] == ["a.yaml", "b.yaml", "c.yaml"]
    assert helper.team == first.team == first.helpers[0].team
