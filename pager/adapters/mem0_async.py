"""mem0's `AsyncMemory` over a `Memory`: the calls of `pager.adapters.mem0` as coroutines.

from pager.adapters.mem0_async import PagerAsyncMem0

await PagerAsyncMem0(memory).add("I prefer window seats", user_id="dana", infer=False)
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pager import Memory
from pager.adapters import in_thread
from pager.adapters.mem0 import PagerMem0

P = ParamSpec("P")
R = TypeVar("R")


def _in_thread(
    call: Callable[Concatenate[PagerMem0, P], R],
) -> Callable[Concatenate["PagerAsyncMem0", P], Coroutine[Any, Any, R]]:
    @wraps(call)
    async def in_a_thread(self: "PagerAsyncMem0", *args: P.args, **kwargs: P.kwargs) -> R:
        return await in_thread(call, self.sync, *args, **kwargs)

    return in_a_thread


class PagerAsyncMem0:
    """The calls of `PagerMem0`, each in a thread. `sync` has them without one."""

    def __init__(self, memory: Memory) -> None:
        self.sync = PagerMem0(memory)

    add = _in_thread(PagerMem0.add)
    search = _in_thread(PagerMem0.search)
    get_all = _in_thread(PagerMem0.get_all)
    update = _in_thread(PagerMem0.update)
    delete = _in_thread(PagerMem0.delete)
    history = _in_thread(PagerMem0.history)
