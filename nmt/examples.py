"""The example configurations that come with the toolkit: their names, their files, and what their headers say.

They are the files of configs/ in the repository, which a wheel has as nmt/configs (pyproject.toml maps them). Of a
configuration it knows the comment at its head and nothing else.
"""

import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = (_PACKAGE / "configs", _PACKAGE.parent / "configs")  # installed; in a clone


def schema_file() -> Path | None:
    """The JSON schema of configurations; None if it was not installed."""
    return next((file for folder in _FOLDERS if (file := folder / "schema.json").is_file()), None)


def starters() -> dict[str, Path]:
    """The files of the examples to start from, one per kind of user, by name; none if they were not installed."""
    return _found("*.yaml")


def examples() -> dict[str, Path]:
    """The files of all examples by name: the starters, then the recipes of research/."""
    return starters() | _found("research/*.yaml")


def _found(pattern: str) -> dict[str, Path]:
    schema = schema_file()
    return {} if schema is None else {path.stem: path for path in sorted(schema.parent.glob(pattern))}


def description(path: Path) -> str:
    """The first sentence of the header."""
    (paragraph,) = re.findall(r"\A(?:# .*\n)*", path.read_text(encoding="utf-8"))
    return re.split(r"(?<=\.) (?=[A-Z])", _joined(paragraph), maxsplit=1)[0]


def data(path: Path) -> str:
    """What the header says about the data, in a line."""
    paragraphs = re.findall(r"^# Data:( .*\n(?:# {3,}.*\n)*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return _joined("".join(paragraphs))


def _joined(comment: str) -> str:
    return " ".join(re.sub(r"^#", "", comment, flags=re.MULTILINE).split())
