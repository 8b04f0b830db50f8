"""`check`, `export`, `import`, `purge`: looking after an agent's directory."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path

import click

from agents.cli.common import DONE, FAILED, INTERRUPTED, Shared, common
from agents.cli.completion import AgentName
from agents.cli.terminal import as_json
from agents.cli.visible import harmless
from agents.importing import copies, notes
from agents.importing import importer as history
from pager.errors import RejectedError
from pager.memory import Memory
from pager.reader import MemoryReader


@click.command("check", short_help="Look over laws and files, both stores; --fix mends.")
@click.argument("name", type=AgentName())
@click.option("--fix", is_flag=True, help="Mend what can be made again: word index, vectors, vector index.")
@click.option("--json", "as_line", is_flag=True, help="Print the problems as JSON.")
@common
@click.pass_obj
def check_command(shared: Shared, name: str, fix: bool, as_line: bool) -> int:
    """Look over the laws and both stores of the agent NAME. It must not be running."""
    from agents.config import embedders

    name, directory = shared.existing(name)
    with Memory.open(directory, embedder=embedders.stored(directory)) as memory:
        problems = memory.check()
        if fix:
            _embed_all(memory)
            left = memory.check(fix=True)
            again = {(problem.where, problem.text) for problem in left}
            gone = [problem for problem in problems if (problem.where, problem.text) not in again]
            problems = [replace(problem, fixed=True) for problem in gone] + left
    if as_line:
        click.echo(as_json([asdict(problem) for problem in problems]))
    elif not problems:
        click.echo(f"{name}: everything holds.")
    for problem in () if as_line else problems:
        click.echo(harmless(f"{problem.where}: {problem.text}") + (" (mended)" if problem.fixed else ""))
    return DONE if all(problem.fixed for problem in problems) else FAILED


@click.command("export", short_help="Copy an agent, also a running one, into a file.")
@click.argument("name", type=AgentName())
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_line", is_flag=True, help="Print the result as JSON.")
@common
@click.pass_obj
def export_command(shared: Shared, name: str, file: Path, as_line: bool) -> int:
    """Write everything of the agent NAME into FILE; the agent may be running."""
    name, directory = shared.existing(name)
    with MemoryReader.open(directory) as reader:
        reader.export(file)
    _say({"exported": name, "file": str(file)}, f"{name} was exported to {file}.", as_line=as_line)
    return DONE


@click.command("import", short_help="Bring back an exported agent, or take conversations and notes.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_line", is_flag=True, help="Print the result as JSON.")
@common
@click.pass_obj
def import_command(shared: Shared, file: Path, as_line: bool) -> int:
    """Bring FILE into an agent: with FILE's name up to the first dot, or the one that --as says.

    \b
    FILE is one of
      an exported agent   whose name must be free
      JSON, JSON lines    conversations: messages of OpenAI or Anthropic, of the Responses API, the exports of ChatGPT
                          and claude.ai (conversations.json), or turns with role and text
      .md, or a folder    of Markdown (CLAUDE.md, MEMORY.md): each section becomes a fact

    Conversations and notes are added to the agent, which is made if there is none; what was taken before is not
    taken again. The agent must not be running.
    """
    if not file.exists():
        raise RejectedError(f"there is no file {file}.")
    name = shared.as_name or (file.name or file.resolve().name).split(".")[0]
    try:
        directory = shared.home.files(name).directory
    except RejectedError as error:
        raise RejectedError(f"{error} Say another one with --as.") from None
    if not notes.are_notes(file) and copies.is_exported(file):
        shared.home.import_file(file, name)
        _say({"imported": name, "file": str(file)}, f"{file} was imported as {name}.", as_line=as_line)
        return DONE
    from agents.config import embedders

    known = embedders.stored(directory) if directory.exists() else "default"
    what = "facts" if notes.are_notes(file) else "turns"
    with copies.whole_or_none(directory), Memory.open(directory, embedder=known) as memory:
        taken = notes.take(memory, file) if what == "facts" else history.take(memory, file)
    told = f"{taken} {what} were taken from {file} into {name}."
    _say({"imported": name, "file": str(file), what: taken}, told, as_line=as_line)
    return DONE


@click.command("purge", short_help="Destroy a fact or a step: no file keeps its text.")
@click.argument("name", type=AgentName())
@click.argument("page_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_line", is_flag=True, help="Print the result as JSON; needs --yes.")
@common
@click.pass_obj
def purge_command(shared: Shared, name: str, page_id: str, yes: bool, as_line: bool) -> int:
    """Destroy the page ID (f12, s45, x3) of the agent NAME and every copy of its text. It must not be running."""
    # Without an embedder: facts that quoted the text get their vectors, and the index is built, when the agent runs.
    if as_line and not yes:
        raise click.UsageError("--json answers no question; add --yes.")
    name, directory = shared.existing(name)
    with Memory.open(directory, embedder=None) as memory:
        text = memory.page(page_id)
        try:
            destroy = yes or click.confirm(f"Destroy {page_id} for good: {text[:200]!r}?")
        except click.Abort:  # Ctrl-C, or nobody is there to answer
            click.echo("\nnothing was purged; --yes does it without asking.", err=True)
            return INTERRUPTED
        if not destroy:
            click.echo("nothing was purged.", err=True)
            return FAILED
        places = memory.purge(page_id)
    told = f"{page_id} was purged from {places} places; a tombstone in the ledger says that it was there."
    _say({"purged": page_id, "places": places}, told, as_line=as_line)
    return DONE


def _embed_all(memory: Memory) -> None:
    """What waits for a vector gets one, with a bar for whoever sees it."""
    waiting = memory.count_unembedded()
    if not waiting:
        return
    with click.progressbar(length=waiting, label="embedding", file=sys.stderr) as bar:
        while done := memory.embed_pending():
            bar.update(done)


def _say(result: dict[str, object], told: str, *, as_line: bool) -> None:
    click.echo(as_json(result) if as_line else told)
