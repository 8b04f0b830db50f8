"""`tell`, `check`, `export`, `import`, `purge`: send an agent a message, and look after its files."""

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import click

from agents.cli.common import FAILED, INTERRUPTED, PATH, Shared, agent_name, command, config_option, json_option
from agents.cli.terminal import as_json
from agents.cli.visible import confirm, say
from agents.importing import are_notes, import_conversations, import_home, import_notes, kind_of
from agents.mirror import import_mirror, is_mirror, name_in, write_mirror
from pager import Memory, one_line, shortened
from pager.clock import format_minute
from pager.errors import NotFoundError, RejectedError


@command("tell")
@agent_name
@click.argument("text")
@click.option("--from", "speaker", metavar="WHO", help="The name of the speaker.")
@json_option("Print the id of the message as JSON.")
def tell_command(shared: Shared, name: str, text: str, speaker: str | None, as_line: bool) -> None:
    """Send TEXT to the agent NAME. It reads the message at its next step, or when it runs again."""
    if not text.strip():
        raise click.UsageError("the message is empty; write something.")
    name, _ = shared.existing(name)
    command = shared.home.send(name, "message", {"text": text, **({"name": speaker} if speaker else {})}).command
    done = f"sent to {name}; it reads the message at its next step, or when it runs again."
    _print({"command": command}, done, as_line=as_line)


@command("check")
@agent_name
@click.option("--fix", is_flag=True, help="Repair what can be rebuilt: word index, vectors, vector index.")
@config_option
@json_option("Print the problems as JSON.")
def check_command(shared: Shared, name: str, fix: bool, file: Path | None, as_line: bool) -> int | None:
    """Check the database and the vector index of the agent NAME. The agent must not be running."""
    from agents.config import embedders

    name, place = shared.existing(name)
    options, way = embedders.for_command(place, file), shared.or_over_http(name, "GET", "/check")
    with way, shared.home.open(name, **options) as memory:
        problems = memory.check()
        if fix:
            if pending := memory.count_unembedded():
                with click.progressbar(length=pending, label="embedding", file=sys.stderr) as bar:
                    while done := memory.embed_pending():
                        bar.update(done)
            left = memory.check(fix=True)
            repeated = {(problem.where, problem.text) for problem in left}
            gone = [problem for problem in problems if (problem.where, problem.text) not in repeated]
            problems = [replace(problem, fixed=True) for problem in gone] + left
    if as_line:
        say(as_json([asdict(problem) for problem in problems]))
    elif not problems:
        say(f"{name}: no problems found.")
    for problem in () if as_line else problems:
        say(one_line(f"{problem.where}: {problem.text}") + (" (repaired)" if problem.fixed else ""))
    return None if all(problem.fixed for problem in problems) else FAILED


@command("export")
@agent_name
@click.argument("target", metavar="FILE|DIR/", type=click.Path())
@json_option("Print the result as JSON.")
def export_command(shared: Shared, name: str, target: str, as_line: bool) -> None:
    """Write everything of the agent NAME into FILE. The agent may be running.

    The memories of its helpers are in it, too.

    With a slash at its end, or for a folder that exists, DIR/ becomes a mirror: Markdown files for people and for git.
    What you edit there, `import DIR/` takes back. FILE is the backup; a mirror has neither requests nor the ledger.
    """
    name, _ = shared.existing(name)
    file = Path(target)
    with shared.home.read(name) as reader:
        if target.endswith(("/", os.sep)) or file.is_dir():
            count = write_mirror(reader, name, file)
            _print({"exported": name, "folder": str(file), "files": count}, f"{file} mirrors {name}.", as_line=as_line)
            return
        reader.export(file)
    _print({"exported": name, "file": str(file)}, f"{name} was exported to {file}.", as_line=as_line)


@command("import", as_name="The name of the agent. Default: that of FILE up to the first dot.")
@click.argument("file", type=PATH)
@json_option("Print the result as JSON.")
def import_command(shared: Shared, file: Path, as_line: bool) -> None:
    """Import FILE into an agent, which is called like FILE up to the first dot; --as gives another name.

    \b
    FILE is one of
      an exported agent   whose name must not be taken yet; nothing that it was at is gone on with
      JSON, JSON lines    conversations: messages of OpenAI or Anthropic, of the Responses API, the exports of ChatGPT
                          and claude.ai (conversations.json), or messages with role and text
      .md, or a folder    of Markdown (CLAUDE.md, MEMORY.md): each section becomes a fact
      ~/.claude           the home of Claude Code, or ~/.hermes that of Hermes: sessions and memory files
      a mirror            a folder that `export` wrote: your edits become those of the agent

    Conversations and notes are added to the agent, which is created if it does not exist. What was imported before is
    not imported again. The agent must not be running.
    """
    if not file.exists():
        raise RejectedError(f"there is no file {file}.")
    home = shared.home
    if is_mirror(file):
        _import_mirror(shared, file, as_line=as_line)
        return
    own_name = file.name.strip(".") or file.resolve().name.strip(".")
    name = shared.as_name or own_name.split(".")[0]
    try:
        place = home.place(name)
    except RejectedError as error:
        raise RejectedError(f"{error} Choose a name with --as.") from None
    if not are_notes(file) and home.is_export(file):
        if home.exists(name):
            raise RejectedError(f"there is an agent {name!r} in {home.address} already; choose another name with --as.")
        home.import_file(file, name)
        _print({"imported": name, "file": str(file)}, f"{file} was imported as {name}.", as_line=as_line)
        return
    from agents.config import embedders

    # Facts get another embedder's vectors when the agent runs.
    options = embedders.for_command(place, None)
    if program := kind_of(file):
        with home.open(name, **options) as memory:  # what was imported before a failure stays
            imported = import_home(memory, file, program)
        text = f"imported {imported.messages:,} messages and {imported.facts:,} facts of {program.name} into {name}."
        _print({"imported": name, "file": str(file), **imported._asdict()}, text, as_line=as_line)
        return
    kind, import_into = ("facts", import_notes) if are_notes(file) else ("messages", import_conversations)
    with home.remove_if_failed(name), home.open(name, **options) as memory:
        count = import_into(memory, file)
    text = f"imported {count} {kind[:-1] if count == 1 else kind} from {file} into {name}."
    _print({"imported": name, "file": str(file), kind: count}, text, as_line=as_line)


def _import_mirror(shared: Shared, folder: Path, *, as_line: bool) -> None:
    from agents.config import embedders

    name, place = shared.existing(shared.as_name or name_in(folder))
    with shared.home.open(name, **embedders.for_command(place, None)) as memory:
        count = import_mirror(memory, folder)
    text = f"{count} edit{'s' * (count != 1)} of {folder} taken over into {name}."
    _print({"imported": name, "folder": str(folder), "edits": count}, text, as_line=as_line)


@command("purge")
@agent_name
@click.argument("page_id", metavar="[ID]", required=False)
@click.option("--expired", is_flag=True, help="Purge facts whose given end has passed, instead of a page.")
@click.option("--older-than", metavar="SPAN", help="With --expired: that ended longer ago than this, such as 400d.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@config_option
@json_option("Print the result as JSON; needs --yes.")
def purge_command(
    shared: Shared, name: str, page_id: str | None, expired: bool, older_than: str | None, yes: bool,
    file: Path | None, as_line: bool,
) -> int | None:  # fmt: skip
    """Destroy the page ID (f12, s45, x3) of the agent NAME, or expired facts, and every copy of their text.

    The agent must not be running.
    """
    if as_line and not yes:
        raise click.UsageError("--json cannot ask for confirmation; add --yes.")
    if bool(page_id) == expired or expired != bool(older_than):
        raise click.UsageError("name a page, such as f12, or give --expired --older-than 400d.")
    from agents.config import embedders

    name, place = shared.existing(name)
    # Without an embedder: facts that quoted the text get their vectors, and the index is built, when the agent runs.
    index = embedders.for_command(place, file)["index"]
    way = shared.or_over_http(name, "DELETE", f"/pages/{page_id}") if page_id else nullcontext()
    with way, shared.home.open(name, embedder=None, index=index) as memory:
        if page_id is None:
            return _purge_expired(memory, older_than or "", yes=yes, as_line=as_line)
        text = _text_to_purge(shared, memory, name, page_id)
        if code := _refused(f"Destroy {page_id} for good: {shortened(text, 200)!r}?", yes=yes):
            return code
        places = memory.purge(page_id)
    message = f"{page_id} was purged from {places} place{'s' * (places != 1)}; the ledger still says that it existed."
    _print({"purged": page_id, "places": places}, message, as_line=as_line)
    return None


def _purge_expired(memory: Memory, older_than: str, *, yes: bool, as_line: bool) -> int | None:
    gone, held = memory.purge_expired(older_than, dry_run=True)
    for fact in () if as_line else gone:
        say(one_line(f"{fact.id} until {format_minute(fact.expires or fact.at)}: {fact.text[:200]}"))
    for fact in () if as_line else held:
        say(one_line(f"{fact.id} stays, for a fact that is kept has its words. To destroy both: purge {fact.id}"))
    facts = f"{len(gone)} fact{'s' * (len(gone) != 1)}"
    if gone:
        if code := _refused(f"Destroy {facts} for good, with every copy of what they say?", yes=yes):
            return code
        memory.purge_expired(older_than)
    result = {"purged": [fact.id for fact in gone], "kept": [fact.id for fact in held]}
    _print(result, f"{facts} that expired more than {older_than} ago: purged." if gone else
           f"no{' other' * bool(held)} fact expired more than {older_than} ago.", as_line=as_line)  # fmt: skip
    return None


def _text_to_purge(shared: Shared, memory: Memory, name: str, page_id: str) -> str:
    """Return the text of a page. Raise NotFoundError, which says what shows the ids of pages, if there is none."""
    try:
        return memory.page_text(page_id)
    except NotFoundError as error:
        if "was purged" in str(error):
            raise
        ways = f"  {shared.command('facts', name)}\n  {shared.command('search', name, 'words of it')}"
        raise NotFoundError(f"{name} has nothing with the id {page_id}. These show ids:\n{ways}") from None


def _refused(question: str, *, yes: bool) -> int | None:
    """Ask unless `yes`. Return the exit code of a refusal; None for a consent."""
    try:
        if yes or confirm(question):
            return None
    except click.Abort:  # Ctrl-C, or the end of the input
        say("\nnothing was purged; --yes purges without asking.", err=True)
        return INTERRUPTED
    say("nothing was purged.", err=True)
    return FAILED


def _print(result: Mapping[str, object], text: str, *, as_line: bool) -> None:
    say(as_json(result) if as_line else text)
