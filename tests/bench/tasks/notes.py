"""The notes of the worker beside the truth; and of what is wrong, each request and what the worker made of it."""

from collections.abc import Iterator
from pathlib import Path

from pager import MemoryReader
from tests.bench.tasks import policy
from tests.bench.tasks.world import Site

STEPS = 100_000


def wrong(directory: Path, sites: list[Site]) -> list[str]:
    """Return the notes that are wrong or missing, each with its trace."""
    found = list[str]()
    with MemoryReader.open(directory) as reader:
        for site in sites:
            for name in ("gate", "pallets", "foreman"):
                fact, truth = reader.inspect.current_fact(f"{site.name}/{name}"), str(getattr(site, name))
                if fact is None or truth not in fact.text:
                    told = f"{fact.id} says: {fact.text}" if fact else "there is no note"
                    found += [f"{site.name}/{name} is {truth}, and {told}", *_trace(reader, site)]
    return found


def _trace(reader: MemoryReader, site: Site) -> Iterator[str]:
    """Yield each reply to a task or question about a site: the line of work in its prompt, the results that the worker
    had before it, and its calls."""
    for row in reversed(reader.inspect.requests(0, STEPS).rows):
        seen = policy.Seen.of(reader.history.rebuild(row.step))
        if site.name not in seen.task:
            continue
        yield f"{row.step} (epoch {row.epoch}): {policy.Work.read(seen.everything) or 'no line of work'}"
        yield from (f"    had {made['input']}" for made in seen.calls)
        yield from (f"    read {text!r:.300}" for text in seen.results)
        made = [block for block in reader.history.blocks_of(row.step) if block["type"] == "tool_use"]
        yield from (f"    called {block['name']} {block['input']}" for block in made)
