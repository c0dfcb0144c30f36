"""The example configurations that come with the toolkit: their names, their files, and what their headers say.

They are the files of configs/ in the repository, which a wheel has as nmt/configs (pyproject.toml maps them). Of a
configuration it knows the comment at its head and nothing else.
"""

import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = (_PACKAGE / "configs", _PACKAGE.parent / "configs")  # installed; in a clone


def examples() -> dict[str, Path]:
    """The files of the examples by name: the starters, then those of research/; none if they were not installed."""
    folder = next((folder for folder in _FOLDERS if (folder / "schema.json").is_file()), None)
    if folder is None:
        return {}
    return {path.stem: path for pattern in ("*.yaml", "research/*.yaml") for path in sorted(folder.glob(pattern))}


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
