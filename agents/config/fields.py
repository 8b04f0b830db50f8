"""The kinds of values that a configuration holds: what each accepts, and what it says otherwise.

Strict: a number is not read out of a text, unless the text came out of the environment (`${STEPS}`), where all is text.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from agents.config.nodes import Expanded
from pager.errors import RejectedError
from pager.home import Home

NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
BLOCK_NAME_PATTERN = "^[A-Za-z][A-Za-z0-9_-]{0,63}$"
USE_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
URL_PATTERN = r"^https?://[^/\s]"


def _name(text: str) -> str:
    try:
        Home(".").files(text)
    except RejectedError as refused:
        raise ValueError(str(refused)) from None
    return text


def _version(number: int) -> int:
    if number != 1:
        raise ValueError(f"has to be 1, not {number}: this selfpager knows no other.")
    return number


def _matching(pattern: str, message: str) -> AfterValidator:
    rule = TypeAdapter(Annotated[str, Field(pattern=pattern)])

    def check(text: str) -> str:
        try:
            return rule.validate_python(text)
        except ValidationError:
            raise ValueError(message.format(text=repr(text[:80]))) from None

    return AfterValidator(check)


def _as(kind: type) -> BeforeValidator:
    """`${STEPS}` is text wherever it comes from; a field that wants a number may read it as one."""
    reader = TypeAdapter[Any](kind)

    def read(value: Any) -> Any:
        if not isinstance(value, Expanded):
            return value
        try:
            return reader.validate_python(str(value))
        except ValidationError:
            return value  # the strict field says what is wrong

    return BeforeValidator(read)


Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": NAME_PATTERN})]
BlockName = Annotated[
    str,
    _matching(
        BLOCK_NAME_PATTERN,
        "{text} is no name for a core block; use letters, digits, _ and -, beginning with a letter, at most 64.",
    ),
]
Function = Annotated[
    str,
    _matching(USE_PATTERN, "{text} names no function; write 'package.module:function'."),
    Field(json_schema_extra={"pattern": USE_PATTERN}),
]
Url = Annotated[
    str,
    _matching(URL_PATTERN, "{text} is no address; it has to begin with http:// or https://."),
    Field(json_schema_extra={"pattern": URL_PATTERN}),
]
Text = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(gt=0), _as(int)]
Count = Annotated[int, Field(ge=0), _as(int)]
Number = Annotated[float, Field(gt=0), _as(float)]
Price = Annotated[float, Field(ge=0), _as(float)]
Share = Annotated[float, Field(gt=0, le=1), _as(float)]
Version = Annotated[int, AfterValidator(_version), _as(int), Field(json_schema_extra={"const": 1})]
Flag = Annotated[bool, _as(bool)]
