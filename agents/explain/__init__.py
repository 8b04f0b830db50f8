"""Explains a memory to a person: its tiers at one moment, the life of a text, the costs of its requests.

Functions over a memory; only `costs.save_prices` writes. The terminal (`agents.cli`) and the web page (`agents.view`)
draw what they return; nothing is drawn here. `agents.assembly` calls `save_prices`.

- `snapshot`: the tiers now, or at an earlier request.
- `trace`: the life of a text, and why the agent does or does not see it. `trace_events` puts what happened
  into words, `trace_reasons` why a text is not in the prompt.
- `scores`: the score of a hit, rounded so that its parts add up.
- `costs`: tokens, dollars, and where the provider's cache was lost.
- `figures`: one agent in a few figures, for a list of all of them.
- `json_form`: all of this, and the types of pager, as JSON.
"""

from pager.memory import Memory
from pager.reader import MemoryReader

AnyMemory = Memory | MemoryReader
