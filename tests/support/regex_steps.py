"""Counts the steps of a regular expression: a small backtracking matcher that does what Python's own does.

Python's engine cannot be counted, and times vary. This one walks the same parsed pattern in the same order, without the
engine's shortcuts, so that it never takes fewer steps.

    >>> grows = [steps(re.compile("a+b"), "a" * size, anchored=False) for size in (100, 200)]
    >>> grows[1] / grows[0] > 3
    True
"""

import re
import sys
from collections.abc import Callable
from re import _compiler as compiler  # pyright: ignore[reportAttributeAccessIssue]
from re import _constants as ops  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

Then = Callable[[int], bool]
Node = Callable[[int, Then], bool]
WIDEST = 30_000  # calls that nest, for a group that repeats


def steps(pattern: re.Pattern[Any], text: str | bytes, *, anchored: bool) -> int:
    """Return the steps of finding all matches in a text; `anchored`: of one match at its beginning."""
    matcher = _Matcher(pattern, text)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(WIDEST)
    try:
        start = 0
        while start <= len(text):
            ends: list[int] = []
            found = matcher.node(start, lambda end, ends=ends: ends.append(end) is None)
            if anchored:
                break
            start = max(start + 1, ends[-1]) if found else start + 1
        return matcher.count
    finally:
        sys.setrecursionlimit(before)


class _Matcher:
    def __init__(self, pattern: re.Pattern[Any], text: str | bytes) -> None:
        self.count = 0
        self._text = text
        self._flags = pattern.flags
        self._groups: dict[int, str | bytes] = {}
        self._atoms: dict[tuple[Any, ...], re.Pattern[Any]] = {}
        self.node = self._sequence(list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)))

    def _sequence(self, items: list[tuple[Any, Any]]) -> Node:
        nodes = [self._item(op, value) for op, value in items]

        def run(at: int, then: Then, index: int = 0) -> bool:
            if index == len(nodes):
                return then(at)
            return nodes[index](at, lambda end: run(end, then, index + 1))

        return run

    def _item(self, op: Any, value: Any) -> Node:
        if op in (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN):
            fits = self._one(op, value)
            return lambda at, then: fits(at) and then(at + 1)
        if op is ops.AT:
            return lambda at, then: self._is_at(value, at) and then(at)
        if op is ops.BRANCH:
            ways = [self._sequence(list(way)) for way in value[1]]
            return lambda at, then: any(way(at, then) for way in ways)
        if op is ops.SUBPATTERN:
            return self._group(value[0], self._sequence(list(value[3])))
        if op is ops.ATOMIC_GROUP:
            return self._atomic(self._sequence(list(value)))
        if op in (ops.ASSERT, ops.ASSERT_NOT):
            return self._look(op is ops.ASSERT, value[0], value[1])
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            return self._repeat(op, *value)
        if op is ops.GROUPREF:
            return lambda at, then: self._again(value, at, then)
        raise NotImplementedError(op)

    def _one(self, op: Any, value: Any) -> Callable[[int], bool]:
        """Return a test of the one character that an item takes."""
        tree = parser.SubPattern(parser.State(), [(op, value)])
        tree.state.str = ""
        tree.state.flags = self._flags
        single = compiler.compile(tree, self._flags)

        def fits(at: int) -> bool:
            self.count += 1
            return at < len(self._text) and single.match(self._text, at, at + 1) is not None

        return fits

    def _is_at(self, where: Any, at: int) -> bool:
        self.count += 1
        text = self._text
        if where in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return at == 0
        if where is ops.AT_END_STRING:
            return at == len(text)
        if where is ops.AT_END:
            return at == len(text) or text[at:] in ("\n", b"\n")
        around = (text[at - 1 : at], text[at : at + 1]) if at else (text[:0], text[:1])
        before, after = (bool(each) and (each.isalnum() or each in ("_", b"_")) for each in around)
        return (before != after) == (where is ops.AT_BOUNDARY)

    def _group(self, number: int | None, inner: Node) -> Node:
        def run(at: int, then: Then) -> bool:
            def done(end: int) -> bool:
                before = self._groups.get(number or 0)
                self._groups[number or 0] = self._text[at:end]
                return then(end) or (self._groups.update({number or 0: before or ""}) or False)

            return inner(at, done)

        return run

    def _atomic(self, inner: Node) -> Node:
        def run(at: int, then: Then) -> bool:
            ends: list[int] = []
            return inner(at, lambda end: ends.append(end) is None) and then(ends[0])

        return run

    def _look(self, wanted: bool, direction: int, items: Any) -> Node:
        inner = self._sequence(list(items))
        width = items.getwidth()[0]

        def run(at: int, then: Then) -> bool:
            start = at if direction > 0 else at - width
            found = start >= 0 and inner(start, lambda _: True)
            return found == wanted and then(at)

        return run

    def _again(self, number: int, at: int, then: Then) -> bool:
        said = self._groups.get(number, "")
        self.count += len(said)
        return self._text[at : at + len(said)] == said and then(at + len(said))

    def _repeat(self, op: Any, least: int, most: Any, items: Any) -> Node:
        [*inner] = items
        simple = len(inner) == 1 and inner[0][0] in (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)
        if simple:
            return self._repeat_one(op, least, int(most), self._one(*inner[0]))
        node = self._sequence(inner)

        def run(at: int, then: Then, times: int = 0) -> bool:
            def more() -> bool:
                return times < int(most) and node(
                    at, lambda end: (end > at or times < least) and run(end, then, times + 1)
                )

            if times < least:
                return more()
            return more() or then(at) if op is not ops.MIN_REPEAT else then(at) or more()

        return self._atomic(run) if op is ops.POSSESSIVE_REPEAT else run

    def _repeat_one(self, op: Any, least: int, most: int, fits: Callable[[int], bool]) -> Node:
        def run(at: int, then: Then) -> bool:
            times = 0
            if op is ops.MIN_REPEAT:
                while True:
                    if times >= least and then(at + times):
                        return True
                    if times == most or not fits(at + times):
                        return False
                    times += 1
            while times < most and fits(at + times):
                times += 1
            if op is ops.POSSESSIVE_REPEAT:
                return times >= least and then(at + times)
            return any(then(at + taken) for taken in range(times, least - 1, -1))

        return run


def literals(pattern: re.Pattern[Any]) -> list[str]:
    """Return the pieces of plain text in a pattern, longest first, and a character of each of its classes."""
    found: set[str] = set()

    def walk(items: Any) -> None:
        run = ""
        for op, value in items:
            if op is ops.LITERAL:
                run += chr(value)
                continue
            found.add(run)
            run = ""
            if op is ops.IN:
                found.update(chr(each[1] if each[0] is ops.LITERAL else each[1][0])
                             for each in value if each[0] in (ops.LITERAL, ops.RANGE))  # fmt: skip
            for inner in _inside(op, value):
                walk(inner)
        found.add(run)

    walk(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    return sorted(filter(None, found), key=lambda text: (-len(text), text))


def _inside(op: Any, value: Any) -> list[Any]:
    if op is ops.BRANCH:
        return list(value[1])
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return [value[2]]
    if op is ops.SUBPATTERN:
        return [value[3]]
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return [value[1]]
    return [value] if op is ops.ATOMIC_GROUP else []
