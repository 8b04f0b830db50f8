"""Keys of the HTTP API: who asks, for which tenant, and what they may do.

A key reads `sp_<id>_<secret>`. The home keeps its id, and of the secret a SHA-256: it has 256 random bits, so nothing
slower is needed. A tenant's agents have names of their own: `notes` of the tenant `acme` is `acme..notes` in the home,
and no request of one tenant can name an agent of another.
"""

import hashlib
import json
import re
import secrets
from base64 import b32encode, b64decode
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hmac import compare_digest
from threading import Lock
from time import monotonic
from typing import Literal, get_args

from agents.serve.errors import ApiError, no_agent, unauthorized
from pager.clock import Clock
from pager.errors import NotFoundError, RejectedError, StorageError, UnavailableError
from pager.home import Home
from pager.types import OF_TENANT

Scope = Literal["read", "write", "admin"]  # each may do what those before it may
SCOPES: tuple[Scope, ...] = get_args(Scope)
LONGEST_ID = 64
STORED_AS = "keys"  # the value of the home
CACHED_SECONDS = 1.0
_AGENT = re.compile(r"[A-Za-z0-9](?!.*\.\.)[A-Za-z0-9._-]*")
_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
_KEY = re.compile(r"sp_([a-z2-7]{10})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. The tenant "" is whoever runs the server: its agents are those that have no tenant."""

    name: str
    tenant: str
    scope: Scope
    key: str = ""  # its id

    def name_of(self, agent: str) -> str:
        """Return the name in the home of the agent that this caller calls `agent`. Raises ApiError (404)."""
        name = f"{self.tenant}{OF_TENANT}{agent}" if self.tenant else agent
        if not _AGENT.fullmatch(agent) or len(name) > LONGEST_ID:
            raise no_agent(agent[:LONGEST_ID])
        return name

    def own(self, name: str) -> str | None:
        """Return what this caller calls an agent of the home; None if it is not this caller's."""
        tenant, between, agent = name.partition(OF_TENANT)
        if not between:
            tenant, agent = "", name
        return agent if tenant == self.tenant else None

    def need(self, scope: Scope) -> None:
        """Raise ApiError (403) if this caller may not do what needs `scope`."""
        if SCOPES.index(self.scope) < SCOPES.index(scope):
            text = f"this needs a key with the scope {scope!r}; this one has {self.scope!r}."
            raise ApiError(403, "forbidden", text, f"`selfpager keys add NAME --scope {scope}` makes such a key.")


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the home keeps it: without its secret."""

    id: str
    name: str
    tenant: str
    scope: Scope
    sha256: str
    created: str
    expires: str | None = None
    revoked: str | None = None

    def ended(self, now: datetime) -> str:
        """Return why the key is not valid any more; "" while it is."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and datetime.fromisoformat(self.expires) <= now else ""


class Keys:
    """The keys of a home. What other processes change is seen within `CACHED_SECONDS`."""

    def __init__(self, home: Home, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self._lock = Lock()
        self._keys: Mapping[str, Key] = {}
        self._read_at: float | None = None
        self._failed_at = 0.0

    @property
    def are_fresh(self) -> bool:
        """Return True if the keys were read a moment ago, and are not read again by the next call."""
        return self._read_at is not None and monotonic() - self._read_at < CACHED_SECONDS / 2

    def all(self) -> Mapping[str, Key]:
        """Return all keys by their ids, those that are no longer valid included."""
        asked_at = monotonic()
        with self._lock:
            if self._failed_at > asked_at:  # or all who have waited here would try again, one after the other
                raise UnavailableError("the keys of this home could not be read a moment ago. Try again.")
            now = monotonic()
            if self._read_at is None or now - self._read_at > CACHED_SECONDS:
                try:
                    self._keys, self._read_at = _read(self._home.value(STORED_AS)), now
                except StorageError:
                    self._failed_at = monotonic()
                    raise
            return self._keys

    @property
    def is_any_valid(self) -> bool:
        """Return True if anybody has a valid key."""
        now = self._clock.now()
        return any(not key.ended(now) for key in self.all().values())

    def has_ended(self, caller: Caller) -> bool:
        """Return True if the key of a caller is not valid any more."""
        if not caller.key:
            return False
        key = self.all().get(caller.key)
        return key is None or bool(key.ended(self._clock.now()))

    def add(self, name: str, tenant: str, scope: Scope, expires_in: timedelta | None) -> tuple[Key, str]:
        """Make a key. Return it and its text, which is stored nowhere."""
        if tenant and not _TENANT.fullmatch(tenant):
            raise RejectedError(f"{tenant!r} cannot be a tenant: use a-z, 0-9 and '-', at most 24 characters.")
        if not name.strip() or len(name) > LONGEST_ID:
            raise RejectedError(f"a key has a name of 1 to {LONGEST_ID} characters, not {len(name)}.")
        now, secret = self._clock.now(), secrets.token_urlsafe(32)
        key_id = b32encode(secrets.token_bytes(7)).decode().lower()[:10]
        ends = (now + expires_in).isoformat() if expires_in else None
        key = Key(key_id, name, tenant, scope, _digest(secret), now.isoformat(), ends)
        self._change(lambda keys: {**keys, key.id: key})
        return key, f"sp_{key_id}_{secret}"

    def revoke(self, key_id: str) -> Key:
        """End a key at once. Raises NotFoundError if there is none."""

        def end(keys: Mapping[str, Key]) -> Mapping[str, Key]:
            if key_id not in keys:
                raise NotFoundError(f"there is no key {key_id!r}; there are: {', '.join(keys) or 'none'}.")
            ended = keys[key_id].revoked or self._clock.now().isoformat()
            return {**keys, key_id: replace(keys[key_id], revoked=ended)}

        return self._change(end)[key_id]

    def _change(self, change: Callable[[Mapping[str, Key]], Mapping[str, Key]]) -> Mapping[str, Key]:
        def changed(text: str | None) -> str:
            return json.dumps([asdict(key) for key in change(_read(text)).values()], indent=1)

        with self._lock:
            self._keys, self._read_at = _read(self._home.change_value(STORED_AS, changed)), monotonic()
            return self._keys


def _read(text: str | None) -> dict[str, Key]:
    try:
        return {row["id"]: Key(**row) for row in json.loads(text or "[]")}
    except (ValueError, TypeError, KeyError) as error:
        way = "Restore them, or delete them and make new ones"
        raise StorageError(f"the keys of this home cannot be read ({error}). {way}.") from None


class Door:
    """Lets in whoever has a valid key, or the `token` that a server without keys has printed."""

    def __init__(self, keys: Keys, clock: Clock, token: str | None = None) -> None:
        self._keys = keys
        self._clock = clock
        self._token = _digest(token) if token else None

    def caller(self, authorization: str, api_key: str, *, is_browser: bool = False) -> Caller:
        """Return who sent these headers. Raises ApiError (401), in the same time for every key that is not valid.

        A browser sends a password for every page that asks it to: take one only where the page was checked.
        """
        given = api_key or _credentials(authorization, is_browser=is_browser)
        if not given:
            raise unauthorized("this request has no key.")
        if self._token and compare_digest(_digest(given), self._token):
            if self._keys.is_any_valid:
                raise unauthorized("this token was for as long as there was no key, and there is one now.")
            return Caller("token", "", "admin")
        read = _KEY.fullmatch(given)
        key = self._keys.all().get(read[1]) if read else None
        fits = compare_digest(_digest(read[2] if read else given), key.sha256 if key else "0" * 64)
        if not (fits and key):
            raise unauthorized("this key is not known here.")
        if why := key.ended(self._clock.now()):
            raise unauthorized(f"this key is {why}.")
        return Caller(key.name, key.tenant, key.scope, key.id)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _credentials(authorization: str, *, is_browser: bool) -> str:
    """Return the key in a header: as Bearer, or as the password that a browser asks for."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() == "basic" and is_browser:
        try:
            return b64decode(value, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""
