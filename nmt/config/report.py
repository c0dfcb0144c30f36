"""Where a problem was written: in a line of the file or in an override, and so the message that the user reads."""

from collections.abc import Iterable
from typing import NamedTuple

from nmt.config.allowed import dotted
from nmt.config.overrides import Override
from nmt.config.problems import Problem
from nmt.config.yaml_text import Document, KeyPath


class Sources(NamedTuple):
    """What a configuration was put together from."""

    name: str  # of the file
    document: Document
    overrides: list[Override]

    def messages(self, problems: Iterable[Problem]) -> list[str]:
        """One message a problem, in the order of the file and then of the overrides, each message once."""
        found = [(*self._where(problem.path), problem) for problem in problems]
        found += [((0, line), f"{self.name}, line {line}", Problem((), text)) for line, text in self.document.repeated]
        lines = [_line(place, problem) for _, place, problem in sorted(found, key=lambda entry: entry[0])]
        return list(dict.fromkeys(lines))

    def _where(self, path: KeyPath) -> tuple[tuple[int, int], str | Override]:
        """(order, place) of what decided about the key at `path`, or about its being absent."""
        for number, override in reversed(list(enumerate(self.overrides))):
            if path[: len(override.path)] == override.path:
                return (1, number), override
        line, _ = self.document.line(path)
        for depth in range(len(path), 0, -1):
            if self.document.line(path[:depth])[1]:
                break
            for number, override in enumerate(self.overrides):
                if override.path[:depth] == path[:depth]:  # a section that only this override made
                    return (1, number), override
        return (0, line or 0), f"{self.name}, line {line}" if line else self.name


def _line(place: str | Override, problem: Problem) -> str:
    named = isinstance(place, Override) and place.path == problem.path
    return ": ".join(filter(None, [str(place), "" if named else dotted(problem.path), problem.message]))
