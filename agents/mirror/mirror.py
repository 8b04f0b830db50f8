"""Write a mirror, and take the edits of one back.

>>> with home.read("desk") as reader:
...     write_mirror(reader, "desk", Path("notes"))
>>> with home.open("desk") as memory:
...     import_mirror(memory, Path("notes"))
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agents.mirror import edits, folder, forms
from agents.mirror.edits import AnyMemory, BlockEdit, FactEdit
from pager import Memory, NotFoundError
from pager.errors import RejectedError
from pager.inspect import StepRow

REMOVED = "its file was removed from the mirror"
CHANGED = "edited in the mirror"
name_in = edits.name_in


def is_mirror(path: Path) -> bool:
    """Return True for a folder that `write_mirror` wrote."""
    if not (path.is_dir() and (path / folder.ABOUT).is_file()):
        return False
    return folder.read_file(path / folder.ABOUT).startswith(f"{forms.MARK}\nmirror:")


def write_mirror(memory: AnyMemory, name: str, base: Path) -> int:
    """Write all of a memory into a folder, which is new, empty or a mirror without edits. Return how many files it has.
    Raises RejectedError."""
    if base.exists() and not base.is_dir():
        raise RejectedError(f"{base} is neither an empty folder nor a mirror; export to another one.")
    folder.make(base)
    with folder.locked(base):
        with memory.read_snapshot():
            files = _files_to_write(memory, name, base)
        folder.write_all(base, files)
    return len(files)


def _files_to_write(memory: AnyMemory, name: str, base: Path) -> dict[str, str]:
    days = _days(memory)
    if is_mirror(base):
        waiting = edits.find(memory, base, {**days, **_recall_as_it_is(base)})
        waiting.refuse_errors("Nothing was exported: correct this, or export to another folder.")
        if len(waiting):
            why = f"{base} has {len(waiting)} edits that were not imported, which this would overwrite"
            raise RejectedError(f"{why}. Import them first, or export to another folder.")
    elif any(base.iterdir()):
        raise RejectedError(f"{base} is neither an empty folder nor a mirror; export to another one.")
    return {**_files(memory, name), **days}


def _files(memory: AnyMemory, name: str) -> dict[str, str]:
    facts = edits.facts_of(memory)
    files = {folder.ABOUT: forms.about_file(name, max((int(page[1:]) for page in facts), default=0))}
    for block in memory.core():
        version = memory.history.core_version_number(block)
        files[f"{folder.CORE}/{block.name}.md"] = forms.block_file(block, version)
    for page, fact in facts.items():
        if not fact.purged:
            files[folder.fact_path(int(page[1:]))] = forms.fact_file(fact)
    return files


def _days(memory: AnyMemory) -> dict[str, str]:
    return {f"{folder.RECALL}/{day}.md": forms.day_file(day, _said(memory, day)) for day in memory.history.days()}


def _said(memory: AnyMemory, day: str) -> Iterator[tuple[StepRow, str]]:
    for row in memory.history.steps_on(day):
        with suppress(NotFoundError):  # purged
            yield row, memory.page_text(row.page_id)


def _recall_as_it_is(base: Path) -> dict[str, str]:
    """Return the days of a mirror, which an export writes anew whatever they say."""
    return {name: text for name, text in folder.read_all(base).items() if name.startswith(f"{folder.RECALL}/")}


def import_mirror(memory: Memory, base: Path) -> int:
    """Take over the edits of a mirror, all or none. Return how many there were. Raises RejectedError with their places.

    Their source is `import:<folder>`. A text that was edited keeps the untrusted sources of what it was before.
    """
    with folder.locked(base):
        found = edits.find(memory, base, _days(memory))
    found.refuse_errors("Nothing was imported.")
    source = f"import:{base.resolve().name}"
    with memory.transaction(approved=True):  # a person runs the import
        for edit in (*found.blocks, *found.facts):
            try:
                _apply(memory, edit, source)
            except RejectedError as error:
                raise RejectedError(f"{edit.where}: {error} Nothing was imported.") from None
    return len(found)


def _apply(memory: Memory, edit: BlockEdit | FactEdit, source: str) -> None:
    if isinstance(edit, BlockEdit):
        memory.core_write(edit.block.name, edit.text, source=source, via=edit.block.via)
        return
    old, is_same = edit.old, False
    if old is not None:
        is_same = (edit.text, edit.key, edit.tags) == (old.text, old.key, old.tags)
        if not is_same and (edit.text is None or old.key is None or old.key != edit.key):
            memory.forget(old.id, REMOVED if edit.text is None else CHANGED, source=source)
    if edit.text is not None:
        memory.archive(
            edit.text, key=edit.key, tags=edit.tags, valid_from=edit.valid_from, valid_until=edit.valid_until,
            source=source, via=old.via if old and not is_same else (),
        )  # fmt: skip
