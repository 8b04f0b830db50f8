"""The result of a task: a JSON schema, or a pydantic class, and what of a result does not fit it.

>>> report = ResultSchema.of(Report)
>>> report.fault_of({"pages": "many"})
'pages: Input should be a valid integer, ...'
>>> report.read({"pages": 3})
Report(pages=3)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from agents.tools.functions import Json, ToolConfigError
from pager.errors import brief
from pager.safety import foreign_files

MOST_FAULTS = 5
FAULT_CHARS = 300
_NOT_IN_A_TOOL = ("$schema", "$id", "id")


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """What a result has to fit. `kind` is the class, if it was given as one: it may check more than its schema says."""

    schema: Json
    kind: Any = None

    @classmethod
    def of(cls, kind: Any) -> Self:
        """Return the schema of a class: pydantic's, a dataclass, a TypedDict. Raise ToolConfigError."""
        try:
            return cls(TypeAdapter[Any](kind).json_schema(), kind)
        except (PydanticUserError, PydanticSchemaGenerationError, TypeError, NameError) as error:
            what = f"{brief(kind)} does not describe a result ({str(error).splitlines()[0]})"
            raise ToolConfigError(f"{what}. Give a pydantic class, a dataclass or a TypedDict.") from None

    @classmethod
    def read_file(cls, file: Path) -> Self:
        """Return the JSON schema in a file. Raise ToolConfigError."""
        try:
            schema = json.loads(foreign_files.read_text(file))
        except FileNotFoundError:
            raise ToolConfigError(f"there is no file {file}. Create it, or correct the path.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise ToolConfigError(f"{file} cannot be read as JSON: {error}.") from None
        if not isinstance(schema, dict):
            raise ToolConfigError(f'{file} is no JSON schema: it has to be an object, such as {{"type": "object"}}.')
        made = cls(cast("Json", schema))
        if fault := made._own_fault():
            raise ToolConfigError(f"{file} is no JSON schema that can be used: {fault}")
        return made

    def fault_of(self, result: Any) -> str:
        """Return what of a result does not fit, place by place; "" if it fits."""
        if self.kind is not None:
            try:
                self.read(result)
            except ValidationError as error:
                return _listed((".".join(map(str, each["loc"])), each["msg"]) for each in error.errors())
            return ""
        try:
            errors = sorted(_validator(self.schema).iter_errors(result), key=lambda each: list(map(str, each.path)))
        except RecursionError:
            return "the result: it is nested too deeply to be compared with the schema."
        return _listed((".".join(map(str, each.path)), str(each.message)) for each in errors)

    def read(self, result: Any) -> Any:
        """Return a result that fits as an object of the class; without a class as it is."""
        return result if self.kind is None else TypeAdapter[Any](self.kind).validate_json(json.dumps(result))

    def within(self, definition: Json, argument: str) -> Json:
        """Return the definition of a tool in which an argument has this schema."""
        schema = {key: value for key, value in self.schema.items() if key not in _NOT_IN_A_TOOL}
        own: Json = definition["input_schema"]
        about = own["properties"][argument].get("description", "")
        schema = cast("Json", _moved(schema, f"#/properties/{argument}"))
        properties = {**own["properties"], argument: {"description": about, **schema}}
        return {**definition, "input_schema": {**own, "properties": properties}}

    def _own_fault(self) -> str:
        import jsonschema
        from referencing import Registry, Resource
        from referencing.exceptions import Unresolvable
        from referencing.jsonschema import DRAFT202012

        if not isinstance(self.schema.get("$schema", ""), str):
            return f"$schema is {brief(self.schema['$schema'])}, not the address of a version of JSON schema."
        try:
            _validator(self.schema).check_schema(self.schema)
        except jsonschema.SchemaError as error:
            return _listed([(".".join(map(str, error.path)), str(error.message))])
        whole = Resource[Any].from_contents(self.schema, default_specification=cast("Any", DRAFT202012))
        resolver = cast("Any", Registry)().with_resource("", whole).resolver()
        for reference in _references(self.schema):
            try:
                resolver.lookup(reference)
            except Unresolvable:
                return f"{brief(reference, 200)} refers to nothing in it. Other files and addresses are not read."
        return ""


def _validator(schema: Json) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    # A registry of ours: without one, addresses in a schema would be fetched.
    kind = cast("Any", validator_for)(schema, Draft202012Validator)
    return kind(schema, registry=cast("Any", Registry)())


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in cast("Json", value).items():
            if key in ("$ref", "$dynamicRef") and isinstance(item, str):
                yield item
            else:
                yield from _references(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _references(item)


def _moved(value: Any, place: str) -> Any:
    """Return a schema whose references within itself hold where it stands inside of another one."""
    if isinstance(value, Mapping):
        return {
            key: f"{place}{item[1:]}"
            if key == "$ref" and isinstance(item, str) and item[:2] in ("#", "#/")
            else _moved(item, place)
            for key, item in cast("Json", value).items()
        }
    return [_moved(item, place) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _listed(faults: Iterable[tuple[str, str]]) -> str:
    found = [f"{place or 'the result'}: {' '.join(message.split())[:FAULT_CHARS]}" for place, message in faults]
    more = f"; and {len(found) - MOST_FAULTS} more" if len(found) > MOST_FAULTS else ""
    return "; ".join(found[:MOST_FAULTS]) + more
