"""Hide secrets in texts that others wrote: errors of libraries, the output of programs, addresses. Pure.

A secret is hidden whole and in its pieces, for who refuses a login names the password and not the address around it;
and in the forms in which programs write it. What is no secret by itself stays, so that an error can be understood.

>>> redacted("401 for https://ann:pw@example.org/mcp?key=k3y and t0ken", ["t0ken"])
'401 for https://example.org/mcp?(hidden) and (hidden)'
>>> redacted("the password hunter2pw is wrong", ["postgresql://ann:hunter2pw@db/app"])
'the password (hidden) is wrong'
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from urllib.parse import quote, unquote

HIDDEN = "(hidden)"
SHORTEST = 4  # a shorter value would be found in half of all words
SHORTEST_PIECE = 6
SHORTEST_BASE64 = 8
LONG_PART_CHARS = 16  # a part of a path from here on may be a key
_ADDRESS = re.compile(r"(?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s'\"<>`]+")
_BETWEEN_PIECES = re.compile(r"[\s:=&@/;,\"'{}()\[\]]")
_BASE64 = re.compile(r"[a-zA-Z0-9+/_-]+={0,2}")
_QUOTED_INPUT = re.compile(r"(?<=input_value=)[^\n]++")  # pydantic cuts it in its middle: no secret is found in it
_PERCENT = re.compile("%[0-9A-F]{2}")
_WORDS = """
    accept access account api apikey app application auth authorization basic bearer bin client config connection
    content cookie data database db debug default development digest disable encoding error export false header headers
    host hostname http https id import info json key level local localhost log login mcp mode name node none null
    password path port postgres postgresql prefer production proxy public pwd python read redis require root secret
    server service session sqlite ssl sslmode stdio string system tcp test text timeout token transport true type uid
    url user username utf value verify version warning write www x
"""
_COMMON = frozenset(_WORDS.split())


def redacted(text: str, secrets: Iterable[str] = (), keep: Iterable[str] = ()) -> str:
    """Return `text` without these secrets, and without logins and queries in its addresses.

    The pieces of `keep`, such as the name of a program, are not hidden as pieces of a secret.
    """
    kept = {piece for word in keep for piece in _BETWEEN_PIECES.split(word)}
    parts = {part for secret in secrets for value in (secret, *_decoded(secret)) for part in _parts(value, kept)}
    forms = {form for part in parts for form in _forms(part) if len(form) >= SHORTEST}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return _ADDRESS.sub(lambda found: public_address(found[0]), _QUOTED_INPUT.sub(HIDDEN, text))


def public_address(address: str) -> str:
    """Return an address without its login, and without the values of its query."""
    scheme, _, rest = address.partition("://")
    place = re.split("[?#]", rest, maxsplit=1)
    host_and_path = place[0].rpartition("@")[2]
    return f"{scheme}://{host_and_path}" + (f"?{HIDDEN}" if len(place) > 1 and place[1] else "")


def _parts(value: str, kept: set[str]) -> Iterator[str]:
    """Yield a value, its lines and its pieces. Of an address the host and short names in the path are no secrets."""
    yield from (line for line in (value.strip(), *map(str.strip, value.splitlines())) if not _ADDRESS.fullmatch(line))
    for address in _ADDRESS.findall(value):
        place, *query = re.split("[?#]", address.partition("://")[2], maxsplit=1)
        login, _, rest = place.rpartition("@")
        found = [
            login,
            *login.split(":"),
            *(each.partition("=")[2] or each for each in re.split("[&;#]", "".join(query))),
        ]
        yield from (each for each in found if not _is_common(each))
        yield from (part for part in rest.split("/")[1:] if len(part) >= LONG_PART_CHARS)
        value = value.replace(address, f" {' '.join((login, *query))} ")
    words = value.split()
    for before, word in pairwise(("", *(word.strip("\"'") for word in words))):
        in_sentence = len(words) > 2 and word.isalpha() and (before.isalnum() or not before)
        if not in_sentence or before.lower() in _COMMON:
            pieces = [piece for piece in _BETWEEN_PIECES.split(word) if len(piece) >= SHORTEST_PIECE]
            yield from (piece for piece in pieces if piece not in kept and not _is_common(piece))


def _is_common(word: str) -> bool:
    return _COMMON.issuperset(re.split("[-_.]", word.lower().strip("-_.")))


def _decoded(secret: str) -> Iterator[str]:
    """Yield what stands in base64 in a secret."""
    for word in secret.split():
        if len(word) >= SHORTEST_BASE64 and _BASE64.fullmatch(word):
            try:
                text = base64.b64decode(word.replace("-", "+").replace("_", "/") + "=" * (-len(word) % 4)).decode()
            except ValueError:
                continue
            if text.isprintable():
                yield text


def _forms(part: str) -> Iterator[str]:
    """Yield the ways in which programs write a text."""
    for text in {part, unquote(part)}:
        quoted = quote(text, safe="")
        yield from (text, quoted, _PERCENT.sub(lambda found: found[0].lower(), quoted))
        yield from (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])
        yield base64.b64encode(text.encode(errors="replace")).decode()
