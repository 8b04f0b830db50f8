"""Skills in folders: read strictly, every mistake with its place, and how the agent reads them."""

from pathlib import Path

import pytest

from agents.config import skills
from agents.config.agent_config import load
from agents.config.errors import ConfigError
from pager import SkillSpec
from tests.config.conftest import write

TRIP = """\
    ---
    name: trips
    description: >
      Plan a trip:
      dates, budget.
    license: MIT
    ---

    # Trips
    Ask for the dates first.
    """


def read(more: str = "") -> list[SkillSpec]:
    return skills.load(load(write(f"name: a\nskills: ./own\n{more}", "conf/a.yaml"), {}))


def problems() -> list[str]:
    with pytest.raises(ConfigError) as error:
        read()
    return str(error.value).splitlines()


def test_a_folder_is_a_skill(folder: Path) -> None:
    write(TRIP, "conf/own/z/SKILL.md")
    write('---\nname: b\ndescription: "of: b"\n---\nDo.\n---\nMore.', "conf/own/a/SKILL.md")
    write("no skill", "conf/own/README.md")
    write("no skill", "conf/own/.git/x")
    assert read() == [
        SkillSpec("b", "of: b", "Do.\n---\nMore."),
        SkillSpec("trips", "Plan a trip: dates, budget.", "# Trips\nAsk for the dates first."),
    ]


def test_its_page_says_where_its_other_files_are(folder: Path) -> None:
    write(TRIP, "conf/own/z/SKILL.md")
    write("x", "conf/own/z/prices.csv")
    assert read()[0].text.endswith(f"dates first.\n\nMore files of this skill are in {folder / 'conf/own/z'}.")
    more = "tools: [{builtin: files, root: .}]\n"
    assert read(more)[0].text.endswith("More files of this skill are in own/z.")


def test_there_are_none_without_a_directory() -> None:
    assert skills.load(load(write("name: a\n"), {})) == []
    assert problems() == ["conf/a.yaml:2:9: skills: there is no directory conf/own. Create it, with a folder for each "
                          "skill, or correct the path."]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("# Trips\n", "1:1: the file has no front matter. Begin the file with '---'"),
        ("---\nname: a\n", "1:1: the file has no front matter."),
        ("---\nname: [a\n---\nx", "3:1: a list or mapping in brackets is not closed"),
        ("---\n- a\n---\nx", "2:1: front matter is a mapping"),
        ("---\n---\nx", "1:1: the file is empty. It needs at least 'name: ...'."),
        ("---\ndescription: d\n---\nx", "2:1: the skill has no name."),
        ("---\nname: 12\ndescription: d\n---\nx", "2:7: the skill has the name 12, which is no text."),
        ("---\nname: a\nname: b\ndescription: d\n---\nx", "3:1: the key 'name' is in this mapping already"),
        ("---\nname: a\ndescription:\n---\nx", "3:13: the skill has no description."),
        ("---\nname: k3\ndescription: d\n---\nx", "2:7: 'k3' reads like the id of a page"),
        ("---\nname: a b\ndescription: d\n---\nx", "2:7: 'a b' is no name for a skill"),
        (f"---\nname: a\ndescription: {'d' * 1025}\n---\nx", "3:14: the description has 1,025 characters"),
        (f"---\nname: a\ndescription: d\n---\n{'x' * 100_001}", "the skill has 100,001 characters"),
        ("---\nname: a\ndescription: d\n---\n\n", "the skill says nothing."),
        (b"---\nname: a\ndescription: \xff\n---\nx", "3:14: this is not UTF-8."),
    ],
)
def test_every_mistake_has_its_place(text: str | bytes, wrong: str) -> None:
    write(text, "conf/own/a/SKILL.md")
    [problem] = problems()
    assert problem.startswith("conf/own/a/SKILL.md")
    assert wrong in problem


def test_all_mistakes_are_listed() -> None:
    write(TRIP, "conf/own/a/SKILL.md")
    write(TRIP, "conf/own/b/SKILL.md")
    write("x", "conf/own/c/skill.txt")
    write("x", "conf/own/d/SKILL.md")
    lines = problems()
    assert [line.split(": ")[0] for line in lines] == [
        "conf/own/b/SKILL.md:1:1", "conf/own/c/SKILL.md", "conf/own/d/SKILL.md:1:1",
    ]  # fmt: skip
    assert "the name 'trips' is that of conf/own/a/SKILL.md already" in lines[0]
    assert "there is no such file" in lines[1]


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    import os

    (folder / "conf/own/a").mkdir(parents=True)
    os.mkfifo(folder / "conf/own/a/SKILL.md")
    assert "it is a pipe" in problems()[0]
