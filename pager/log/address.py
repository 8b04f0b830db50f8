"""The address of a home in Postgres: our own options in it, and its hosts. Pure.

>>> split_options("postgresql://ann@db/app?lease_seconds=3&sslmode=require")[0]
'postgresql://ann@db/app?sslmode=require'
>>> hosts("postgresql://ann@one,two:5433/app")
[('one', 5432), ('two', 5433)]
>>> hosts("postgresql://ann@/app?host=/run/one,/run/two&port=5433")
[('/run/one', 5433), ('/run/two', 5433)]
"""

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from pager.errors import RejectedError

OPTIONS = {  # in the query of an address: default, least, most
    "lease_seconds": (10.0, 0.1, 3600.0),
    "limit_seconds": (10.0, 0.1, 3600.0),
    "keep_days": (7.0, 0.0, 3650.0),  # of the past of each agent
}
PORT = 5432


def split_options(address: str) -> tuple[str, dict[str, float]]:
    """Return an address without our own options in its query, and these. Raises RejectedError."""
    parts = urlsplit(address)
    options, rest = {name: default for name, (default, _, _) in OPTIONS.items()}, list[tuple[str, str]]()
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in options:
            rest.append((name, value))
            continue
        try:
            options[name] = float(value)
        except ValueError:
            options[name] = -1
        _, least, most = OPTIONS[name]
        if not least <= options[name] <= most:
            wrong, unit = f"{name} in the address of the home is {value!r:.40}", name.rpartition("_")[2]
            raise RejectedError(f"{wrong}; give {unit}, {least:g} to {most:g}.")
    return urlunsplit(parts._replace(query=urlencode(rest))), options


def given(address: str) -> dict[str, str]:
    """Return the options of libpq in the query of an address."""
    return dict(parse_qsl(urlsplit(address).query))


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
