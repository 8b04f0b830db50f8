"""The types of the values in a configuration.

They are strict: a number is not read out of a text, unless the text is a variable (`${STEPS}`), which is always text.
"""

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from agents.config.cron import Cron
from agents.config.variables import Expanded
from pager.clock import read_duration
from pager.errors import RejectedError
from pager.home import check_name
from pager.safety.redaction import redacted

NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
BLOCK_NAME_PATTERN = "^[A-Za-z][A-Za-z0-9_-]{0,63}$"
FUNCTION_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
HOST_PATTERN = r"[^\s/@]+"
URL_PATTERN = r"^https?://[^/\s]\S*$"


def _check_name(text: str) -> str:
    try:
        check_name(text)
    except RejectedError as error:
        raise ValueError(str(error)) from None
    return text


def _check_version(number: int) -> int:
    if number != 1:
        raise ValueError(f"has to be 1, not {number}: this selfpager reads no other format.")
    return number


def _matching(pattern: str, advice: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{redacted(text)[:80]!r} is not allowed: {advice}")
        return text

    return AfterValidator(check)


def _from_variable(kind: type) -> BeforeValidator:
    """Let a variable stand where a number or a truth value is wanted."""

    def read(value: Any) -> Any:
        try:
            return TypeAdapter[Any](kind).validate_python(str(value)) if isinstance(value, Expanded) else value
        except ValidationError:
            return value  # the strict field says what is wrong

    return BeforeValidator(read)


def _pattern(pattern: str) -> Any:
    return Field(json_schema_extra={"pattern": pattern})


def _check_times(text: str) -> str:
    try:
        Cron.read(text)
    except RejectedError as error:
        raise ValueError(str(error)) from None
    return text


def _check_sleep_time(text: str) -> str:
    if re.fullmatch(IDLE_PATTERN, text):
        return text
    if not text[:1].isdigit() and text[:1] != "*":
        raise ValueError(f"{text[:80]!r} is not allowed: write off, 'idle 30m', or a time as in '0 3 * * * UTC'.")
    return _check_times(text)


def _check_duration(text: str) -> str:
    try:
        read_duration(text)
    except RejectedError as error:
        raise ValueError(str(error)) from None
    return text


def _check_address(text: str) -> str:
    try:
        is_whole = bool(urlsplit(text).hostname) and urlsplit(text).port != 0
    except ValueError:  # half of an IPv6 address, or a port that is none
        is_whole = False
    if not is_whole:
        advice = "an address is http:// or https://, a host and, after a colon, a port of 1 to 65535."
        raise ValueError(f"{redacted(text)[:80]!r} is not allowed: {advice}")
    return text


DURATION_PATTERN = r"^\s*[0-9]{1,6}[hdw]\s*$"
Duration = Annotated[str, AfterValidator(_check_duration), _pattern(DURATION_PATTERN)]
FactTag = Annotated[str, _matching(r"(?s)\s*\S.*", "a tag has letters."), Field(json_schema_extra={"pattern": r"\S"})]
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}  # seconds
IDLE_PATTERN = "^(off|idle [1-9][0-9]{0,5}[smhd])$"
Times = Annotated[str, AfterValidator(_check_times)]
Name = Annotated[str, AfterValidator(_check_name), _pattern(NAME_PATTERN)]
BlockName = Annotated[
    str, _matching(BLOCK_NAME_PATTERN, "use letters, digits, _ and -, beginning with a letter, at most 64.")
]
SleepTime = Annotated[str, AfterValidator(_check_sleep_time)]
Function = Annotated[
    str, _matching(FUNCTION_PATTERN, "name a function as 'package.module:function'."), _pattern(FUNCTION_PATTERN)
]
Url = Annotated[
    str, _matching(URL_PATTERN, "an address begins with http:// or https://."), AfterValidator(_check_address),
    _pattern(URL_PATTERN),
]  # fmt: skip
Host = Annotated[str, _matching(HOST_PATTERN, "give a name or an address alone, without http:// and port.")]
HostAndPort = Annotated[str, _matching(HOST_PATTERN, "give a host, or host:port, without http://.")]
Port = Annotated[int, Field(gt=0, le=65535), _from_variable(int)]
Text = Annotated[str, Field(min_length=1)]
PositiveInt = Annotated[int, Field(gt=0), _from_variable(int)]
Count = Annotated[int, Field(ge=0), _from_variable(int)]
PositiveNumber = Annotated[float, Field(gt=0), _from_variable(float)]
Price = Annotated[float, Field(ge=0), _from_variable(float)]
Share = Annotated[float, Field(gt=0, le=1), _from_variable(float)]
Version = Annotated[int, AfterValidator(_check_version), _from_variable(int), Field(json_schema_extra={"const": 1})]
Flag = Annotated[bool, _from_variable(bool)]
