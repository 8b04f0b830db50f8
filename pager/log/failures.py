"""Errors of Postgres, for a person: what is wrong in a few words, and what to do. Pure."""

# By the codes of the appendix "PostgreSQL Error Codes".
_BY_STATE = {
    "53100": ("its disk is full", "Free some space there, then try again; it need not be restarted"),
    "53300": ("it takes no more connections", "Raise its max_connections, or run fewer processes: each has up to 8"),
    "25006": ("it takes no writes", "Promote it if it is a standby that is to take over, then try again"),
    "57P03": ("it is starting", "Try again in a moment"),
    "42501": (
        "its user may not do this",
        "Give its user the right to create a schema there (GRANT CREATE ON DATABASE ...). If another user has made the "
        "schema selfpager, give it that one's rights (GRANT other TO user)",
    ),
    "40001": ("others changed the same", "Try again"),
    "40P01": ("two changes waited for each other", "Try again"),
}
# By their words: an error while connecting has no code. So has none of ours.
_NOBODY = ("it cannot be reached", "Check that it runs there: the address has its host and port")
_LOGIN = ("it does not let this user in", "Check user and password: they are in the address, ~/.pgpass or PGPASSWORD")
_NO_POSTGRES = ("what answers there is no Postgres", "Correct the host or the port")
_MISTYPED = ("its address has a mistake", "Correct it: postgresql://USER@HOST:PORT/DATABASE?SETTING=VALUE")
_BY_WORDS = {
    "invalid URI": _MISTYPED,
    "invalid port": _MISTYPED,
    "invalid integer": _MISTYPED,
    "password authentication failed": _LOGIN,
    "no password supplied": _LOGIN,
    'FATAL: role "': ("there is no such user", "Make it with createuser, or correct its name in the address"),
    'FATAL: database "': ("there is no such database", "Make it with createdb, or correct its name in the address"),
    "pg_hba.conf": ("it lets nobody in from here", "Add this user and this host to its pg_hba.conf"),
    "received invalid response": _NO_POSTGRES,
    "expected authentication request": _NO_POSTGRES,
    "SSL was required": ("it has no TLS", "Give it a certificate, or change sslmode in the address"),
    "Connection refused": _NOBODY,
    "No such file": _NOBODY,
    "resolve host": _NOBODY,
    "are in use": ("all connections of this process are in use", "Try again"),
    "read-only": _BY_STATE["25006"],
    "too many clients": _BY_STATE["53300"],
    "database system is": _BY_STATE["57P03"],
    "synchronous standby": (
        "its standby has not confirmed a commit",
        "Start the standby, or take it out of synchronous_standby_names. Nobody may cancel commits that wait for it",
    ),
}


def explain(state: str | None, said: str, limit_seconds: float) -> tuple[str, str]:
    """Return what is wrong, and what to do. `said` is the text of the error, and `state` its code, if it has one."""
    if state in _BY_STATE:
        return _BY_STATE[state]
    if "wait timeout expired" in said:
        return (
            f"it has not answered for {limit_seconds:g} seconds",
            "If it has a synchronous standby, see in pg_stat_replication that this one runs: commits wait for it. Else "
            "look for its load, and what lies between",
        )
    found = next((failure for words, failure in _BY_WORDS.items() if words in said), None)
    reason = "it refuses" if state else "it cannot be reached"
    return found or (reason, "Check that it runs and takes this user, then try again; what was acknowledged is there")
