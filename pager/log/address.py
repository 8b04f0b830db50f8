"""The address of a home in Postgres: our own options in it, and its hosts. Pure.

>>> split_options("postgresql://ann@db/app?lease_seconds=3&sslmode=require")[0]
'postgresql://ann@db/app?sslmode=require'
>>> split_options("postgresql://?options=-c%20jit%3Doff&keep_days=1")[0]
'postgresql://?options=-c%20jit%3Doff'
>>> hosts("postgresql://ann@one,two:5433/app")
[('one', 5432), ('two', 5433)]
>>> hosts("postgresql://ann@/app?host=/run/one,/run/two&port=5433")
[('/run/one', 5433), ('/run/two', 5433)]
"""

from difflib import get_close_matches
from urllib.parse import unquote, urlsplit

from pager.errors import RejectedError

OPTIONS = {  # in the query of an address: default, least, most
    "lease_seconds": (10.0, 0.1, 3600.0),
    "limit_seconds": (10.0, 0.1, 3600.0),
    "keep_days": (7.0, 0.0, 3650.0),  # of the past of each agent
}
PORT = 5432
UNREADABLE = (
    "the address of the home cannot be read. In a password, / is written as %2F, ? as %3F, # as %23, @ as %40 and % as "
    "%25; better, leave it out and put it into ~/.pgpass or PGPASSWORD."
)


def split_options(address: str) -> tuple[str, dict[str, float]]:
    """Return an address without our own options in its query, and these. What is libpq's stays as it is written. Raises
    RejectedError."""
    parts = urlsplit(address)
    if "@" in parts.path + parts.fragment:
        raise RejectedError(UNREADABLE)
    options, rest = {name: default for name, (default, _, _) in OPTIONS.items()}, list[str]()
    place, _, query = address.partition("?")
    for piece in filter(None, query.split("&")):
        name, _, value = piece.partition("=")
        if name not in options:
            _check(name)
            rest.append(piece)
            continue
        try:
            options[name] = float(value)
        except ValueError:
            options[name] = -1
        _, least, most = OPTIONS[name]
        if not least <= options[name] <= most:
            wrong, unit = f"{name} in the address of the home is {value!r:.40}", name.rpartition("_")[2]
            raise RejectedError(f"{wrong}; give {unit}, {least:g} to {most:g}.")
    return "?".join((place, *(["&".join(rest)] if rest else []))), options


def _check(name: str) -> None:
    """Raise RejectedError for a setting that is no other's, but one of ours mistyped, or a piece of a password."""
    if not name.isidentifier():
        raise RejectedError(UNREADABLE)
    if meant := get_close_matches(name, OPTIONS, n=1, cutoff=0.8):
        raise RejectedError(f"the address of the home has a setting {name!r:.40}; {meant[0]} is meant. Correct it.")


def given(address: str) -> dict[str, str]:
    """Return the options of libpq in the query of an address."""
    pieces = (piece.partition("=") for piece in address.partition("?")[2].split("&"))
    return {name: unquote(value) for name, _, value in pieces if name}


def hosts(address: str) -> list[tuple[str, int]]:
    """Return the hosts of an address that names several, with their ports; nothing for any other."""
    options = given(address)
    places = [place.rpartition(":") for place in urlsplit(address).netloc.rpartition("@")[2].split(",")]
    names = [unquote(name if colon and port.isdigit() else name + colon + port) for name, colon, port in places]
    ports = [port if colon and port.isdigit() else "" for _, colon, port in places]
    if "host" in options:
        names, ports = options["host"].split(","), options.get("port", "").split(",")
    ports = ports * len(names) if len(ports) == 1 else ports
    if len(names) == 1 or len(names) != len(ports) or "hostaddr" in options:
        return []
    return [(name.strip("[]"), int(port or PORT)) for name, port in zip(names, ports, strict=True)]
