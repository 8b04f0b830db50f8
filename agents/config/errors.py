"""A place in a YAML file, a problem at that place, and the error that lists all problems of a configuration."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pager.errors import PagerError

NEAR = 0.75  # how alike a word has to be to a name to be guessed to mean it, from 0 to 1


@dataclass(frozen=True, slots=True, order=True)
class ConfigPlace:
    """A position in a file, counted from 1 as editors do. Line 0 means the file as a whole."""

    file: Path
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else str(self.file)


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """Something that a person has to correct, and where."""

    place: ConfigPlace
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class ConfigError(PagerError):
    """A configuration that cannot be used. The text lists every problem with its place, one per line."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.place))
        super().__init__("\n".join(map(str, self.problems)))
