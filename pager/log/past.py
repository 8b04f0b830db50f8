"""The past of an agent: which of its bases and commits are kept, and commits that are folded as packs of many.

What has to be kept for `keep_days` is: the newest base from before that time, those since then that are far apart, and
every commit after the oldest of them. Commits that are folded are only read to restore an earlier state. So they are
packed: the same pages change again and again, and together they take a third of the bytes.

Whoever packs or drops takes rows of `commits` first, then those of `packs`: what one has moved the other finds.
"""

import lzma
import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pager.errors import AgentLostError, NoAgentError, RejectedError
from pager.log.claim import Claim
from pager.log.pages import CHUNK_BYTES, begin_of_words, damaged, unpack
from pager.log.postgres import Row, Server, Transaction
from pager.log.seal import Box, place

COMMITS_AT_ONCE, PACKS_AT_ONCE = 256, 16  # read: some megabytes
PACK_BYTES = 1 << 20  # of commits in one pack, as they are in their rows
PRESET = 2  # of xz: with the higher ones a tenth smaller, and several times as slow

# From the newest base that is old enough on, every moment can be restored.
_DROP_OLD = """
    DELETE FROM selfpager.bases b WHERE agent = %(agent)s AND EXISTS (
        SELECT FROM selfpager.bases later WHERE later.agent = b.agent AND later.seq > b.seq
        AND later.at <= clock_timestamp() - %(keep)s)"""
# The last base but one, if those beside it are close to each other: the log between them is short enough.
_DROP_BETWEEN = """
    WITH last AS (SELECT seq, at FROM selfpager.bases WHERE agent = %(agent)s ORDER BY seq DESC LIMIT 3),
    numbered AS (SELECT seq, at, row_number() OVER (ORDER BY seq DESC) AS n FROM last)
    DELETE FROM selfpager.bases b USING numbered newest, numbered middle, numbered oldest
    WHERE (newest.n, middle.n, oldest.n) = (1, 2, 3) AND newest.at - oldest.at < %(keep)s
    AND b.agent = %(agent)s AND b.seq = middle.seq"""
_DROP_COMMITS = """
    WITH dropped AS (
        DELETE FROM selfpager.commits WHERE agent = %(agent)s
        AND seq <= (SELECT min(seq) FROM selfpager.bases WHERE agent = %(agent)s) RETURNING 1)
    SELECT count(*) FROM dropped"""
_DROP_PACKS = """
    DELETE FROM selfpager.packs WHERE agent = %(agent)s
    AND last_seq <= (SELECT min(seq) FROM selfpager.bases WHERE agent = %(agent)s)"""
_DROP_CHUNKS = f"""
    WITH dropped AS (
        DELETE FROM selfpager.chunks c WHERE agent = %(agent)s AND NOT EXISTS (
            SELECT FROM selfpager.bases b WHERE b.agent = c.agent AND b.seq >= c.seq
            AND b.size_bytes > c.number::bigint * {CHUNK_BYTES} AND NOT EXISTS (
                SELECT FROM selfpager.chunks newer WHERE newer.agent = c.agent AND newer.number = c.number
                AND newer.seq > c.seq AND newer.seq <= b.seq)) RETURNING 1)
    SELECT count(*) FROM dropped"""
_IS_MUCH = "SELECT 1 FROM pg_class WHERE oid = %s::regclass AND reltuples < 5 * %s"
_TAKE = """
    DELETE FROM selfpager.commits c USING (
        SELECT seq, part, sum(length(data)) OVER (ORDER BY seq, part) - length(data) AS before_it
        FROM selfpager.commits WHERE agent = %(agent)s AND seq <= %(folded)s) AS found
    WHERE c.agent = %(agent)s AND (c.seq, c.part) = (found.seq, found.part) AND found.before_it < %(limit)s
    RETURNING c.seq, c.part, c.at, c.data"""
_PACK = "INSERT INTO selfpager.packs VALUES (%s, %s, %s, %s, %s, %b)"
_OURS = "SELECT 1 FROM selfpager.agents WHERE id = %s AND claim = %s"
_PACKS = f"""
    SELECT seq, part, at, data FROM selfpager.packs WHERE agent = %s AND (seq, part) > (%s, %s)
    AND last_seq > %s AND seq <= %s ORDER BY seq, part LIMIT {PACKS_AT_ONCE}"""
_PACK_AT = """
    SELECT seq, part, at, data FROM selfpager.packs WHERE agent = %s AND at <= %s
    ORDER BY seq DESC, part DESC LIMIT 1"""
# Whole commits, each with all of its parts.
_COMMITS = f"""
    SELECT seq, part, data FROM selfpager.commits WHERE agent = %s AND seq > %s AND seq <= %s
    ORDER BY seq, part FETCH FIRST {COMMITS_AT_ONCE} ROWS WITH TIES"""
_LAST_AT = """
    SELECT coalesce(max(seq), 0) FROM (
        SELECT seq FROM selfpager.commits WHERE agent = %s AND at <= %s UNION ALL
        SELECT seq FROM selfpager.bases WHERE agent = %s AND at <= %s) AS found"""
# Of each row of `commits` in a pack: its `seq`, microseconds since the pack's `at`, bytes before its words, of them.
_ENTRY = struct.Struct("<QqII")


Commit = tuple[int, int, bytes]  # its number, bytes in Postgres, content


class Packed(NamedTuple):
    """A row of `commits`, as it is in a pack."""

    seq: int
    at: datetime
    content: bytes  # unpacked


def drop(server: Server, agent: int, keep_days: float) -> None:
    """Delete the rows that are only needed to restore what was before that many days."""
    values = {"agent": agent, "keep": timedelta(days=keep_days)}
    with server.transaction() as transaction:
        for sql in (_DROP_OLD, _DROP_BETWEEN):
            transaction.rows(sql, values)
        [(commits,)] = transaction.rows(_DROP_COMMITS, values)
        transaction.rows(_DROP_PACKS, values)
        [(chunks,)] = transaction.rows(_DROP_CHUNKS, values)
    _vacuum(server, "commits", commits)
    _vacuum(server, "chunks", chunks)


def pack(server: Server, claim: Claim, box: Box, folded: int) -> None:
    """Pack the commits up to the one that is folded. Raises AgentLostError if another owns the agent."""
    count = 0
    while taken := _pack_some(server, claim, box, folded):
        count += taken
    _vacuum(server, "commits", count)


def _pack_some(server: Server, claim: Claim, box: Box, folded: int) -> int:
    agent = claim.agent
    with server.transaction() as transaction:
        rows = sorted(transaction.rows(_TAKE, {"agent": agent, "folded": folded, "limit": PACK_BYTES}))
        if rows:
            (seq, part, *_), at = rows[0], min(row[2] for row in rows)
            contents = [unpack(box.open(data, place("commit", agent, seq, part))) for seq, part, _, data in rows]
            entries = zip(rows, contents, strict=True)
            data = box.seal(
                _packed([Packed(row[0], row[2], each) for row, each in entries], at), _place(agent, seq, part)
            )
            transaction.rows(_PACK, (agent, seq, part, rows[-1][0], at, data))
            if not transaction.rows(_OURS, (agent, claim.id)):
                raise AgentLostError("another worker owns the agent; nothing was packed.")
        return len(rows)


def _vacuum(server: Server, table: str, dropped: int) -> None:
    """Make room at once where much was dropped. Postgres does it by itself, once a minute: a few busy agents fill their
    tables several times by then."""
    if dropped and server.ask(_IS_MUCH, (f"selfpager.{table}", dropped)):
        server.ask(f"VACUUM (SKIP_LOCKED) selfpager.{table}")


def _place(agent: int, seq: int, part: int) -> bytes:
    return place("pack", agent, seq, part)


def _packed(entries: list[Packed], at: datetime) -> bytes:
    """Return a pack. The words of all rows are together, behind what says where they belong: so it is a bit smaller."""
    index, heads, words = list[bytes](), list[bytes](), list[bytes]()
    for seq, when, content in entries:
        begin = begin_of_words(content)
        index.append(_ENTRY.pack(seq, (when - at) // timedelta(microseconds=1), begin, len(content) - begin))
        heads.append(content[:begin])
        words.append(content[begin:])
    return lzma.compress(b"".join((struct.pack("<I", len(entries)), *index, *heads, *words)), preset=PRESET)


def _unpacked(row: Row, agent: int, box: Box) -> Iterator[Packed]:
    """Yield what is in a pack, in its order."""
    seq, part, at, data = row
    try:
        raw = lzma.decompress(box.open(data, _place(agent, seq, part)))
    except lzma.LZMAError as error:
        raise damaged(f"pack {seq}: {error}") from None
    (count,) = struct.unpack_from("<I", raw)
    index = [_ENTRY.unpack_from(raw, 4 + number * _ENTRY.size) for number in range(count)]
    head = 4 + count * _ENTRY.size
    words = head + sum(head_bytes for _, _, head_bytes, _ in index)
    for number, microseconds, head_bytes, words_bytes in index:
        content = raw[head : head + head_bytes] + raw[words : words + words_bytes]
        yield Packed(number, at + timedelta(microseconds=microseconds), content)
        head, words = head + head_bytes, words + words_bytes


def commits(reading: Transaction, agent: int, box: Box, after: int, last: int) -> Iterator[Commit]:
    """Yield the commits behind one, up to another, in their order. A large one comes in several parts."""
    at = 0, 0
    while packs := reading.rows(_PACKS, (agent, *at, after, last)):
        for row in packs:
            for seq, _, content in _unpacked(row, agent, box):
                if after < seq <= last:
                    yield seq, len(content), content
        at = packs[-1][:2]
    yield from unpacked(reading.rows, agent, box, after, last)


def unpacked(
    ask: Callable[[str, Sequence[Any]], list[Row]], agent: int, box: Box, after: int, last: int
) -> Iterator[Commit]:
    """Yield these commits as far as they are not packed, in their order."""
    while after < last and (rows := ask(_COMMITS, (agent, after, last))):
        for seq, part, data in rows:
            yield seq, len(data), unpack(box.open(data, place("commit", agent, seq, part)))
        after = rows[-1][0]


def last_commit(reading: Transaction, agent: int, box: Box, at: datetime) -> int:
    """Return the number of the last commit until a moment; 0 if nothing is kept from then."""
    [(found,)] = reading.rows(_LAST_AT, (agent, at, agent, at))
    packed = (
        each.seq for row in reading.rows(_PACK_AT, (agent, at)) for each in _unpacked(row, agent, box) if each.at <= at
    )
    return max(found, *packed, 0)


def too_early(reading: Transaction, agent: int) -> RejectedError:
    """Return the error for a moment of which nothing is kept. It names a whole second of which something is."""
    [(first,)] = reading.rows(
        """SELECT date_trunc('second', min(at)) + interval '1 second' FROM (
               SELECT seq, at FROM selfpager.bases WHERE agent = %(agent)s
               UNION ALL SELECT seq, at FROM selfpager.packs WHERE agent = %(agent)s
               UNION ALL SELECT seq, at FROM selfpager.commits WHERE agent = %(agent)s) AS kept
           WHERE seq > 0 AND seq >= (SELECT min(seq) FROM selfpager.bases WHERE agent = %(agent)s)""",
        {"agent": agent},
    )
    if first is None:
        return NoAgentError("the agent was removed a moment ago.")
    return RejectedError(
        f"nothing of it is kept from then. Its past begins at {first.astimezone():%Y-%m-%d %H:%M:%S%z}."
    )
