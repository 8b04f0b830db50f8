"""The program's part of every prompt: instructions, how memory works, tools, and the settings of requests."""

from collections.abc import Sequence

from pager import blocks, markup, tokens
from pager.limits import Limits
from pager.types import ZERO, Counts, Json, Skill

TOOLS_OVERHEAD = Counts(code=200)
MEMORY_TOOL = Counts(words=600, code=600)  # what the provider tells a model about its memory tool
NO_TOOL: Json = {
    "name": "no_tool",
    "description": "There are no tools any more. This one does nothing.",
    "input_schema": {"type": "object", "properties": {}},
}


class Setup:
    """The program's part of the prompt, with its counts. `extend` puts what a client brings behind it."""

    def __init__(
        self, instructions: str, tools: Sequence[Json], model: str, thinking: str, cache_ttl: str | None,
        memory_tools: str = "pager", skills: Sequence[Skill] = (),
    ) -> None:  # fmt: skip
        self.model = model
        self.thinking = thinking
        self.cache_ttl = cache_ttl
        self.tools = [blocks.map_strings(tool, markup.disarm, keys=True) for tool in tools]  # MCP servers wrote some
        head = str(blocks.clean(instructions)).strip()
        kind = "anthropic" if any(map(blocks.is_memory_tool, self.tools)) else memory_tools
        words = markup.HOW_IT_WORKS[kind]
        self.save_with = markup.SAVE_WITH.get(kind)  # None: the model cannot save anything, so no notice is given
        self.system_text = "\n\n".join(filter(None, (head, words, markup.skills(skills, kind))))
        self.options: Json = {}  # parameters of each request from now on, which belong to no epoch
        self.more: tuple[str, Sequence[Json], Json] = ("", (), {})
        self._count()
        self._own = self._extended = self._parts

    @property
    def _parts(self) -> tuple[str, list[Json], Counts, Counts]:
        return self.system_text, self.tools, self.system_counts, self._tool_counts

    def _count(self) -> None:
        self.system_counts = tokens.count(self.system_text)
        of_provider = [MEMORY_TOOL for tool in self.tools if blocks.is_memory_tool(tool)]
        definitions = tokens.count(blocks.dump(self.tools or [NO_TOOL]))
        self._tool_counts = Counts.sum([definitions, TOOLS_OVERHEAD, *of_provider])

    def extend(self, instructions: str, tools: Sequence[Json], options: Json) -> None:
        """Put instructions and tools behind the program's own, in the place of what was put there before."""
        self.options, self.more = options, (instructions, tools, options)
        more = markup.disarm(str(blocks.clean(instructions)).strip())
        system = "\n\n".join(filter(None, (self._own[0], more)))
        every = [*self._own[1], *(blocks.map_strings(tool, markup.disarm, keys=True) for tool in tools)]
        for known in (self._own, self._extended):  # a client brings the same each time, and counting is slow
            if known[:2] == (system, every):
                self.system_text, self.tools, self.system_counts, self._tool_counts = known
                return
        self.system_text, self.tools = system, every
        self._count()
        self._extended = self._parts

    def tools_after(self, *, calls: bool) -> list[Json]:
        """Return the tools. Without any, calls of earlier days still need a definition to be valid."""
        return self.tools or ([NO_TOOL] if calls else [])

    def tool_counts(self, *, calls: bool) -> Counts:
        """Return the counts of the tools."""
        return self._tool_counts if self.tools_after(calls=calls) else ZERO

    def fixed_counts(self, *, calls: bool) -> Counts:
        """Return the counts of tools and instructions, which no eviction makes smaller."""
        return self.system_counts + self.tool_counts(calls=calls)

    def settings(self, limits: Limits) -> Json:
        """Return the settings that hold for a whole epoch."""
        given = {"model": self.model, "thinking": self.thinking, "cache_ttl": self.cache_ttl}
        return {**given, "max_output_tokens": limits.max_output_tokens}
