"""Which lines are read together, with what stands beside them. It knows lines, no subwords."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, repeat
from unicodedata import normalize

from nmt.data.corpus import excerpt
from nmt.errors import UserError, refuse


def check_text(value: object, name: str) -> None:
    """Raise UserError for what is no text, as a missing value of a table or the lines of a binary file are none, or has
    half of a surrogate pair, which UTF-8 does not have, and so no subword model reads."""
    if not isinstance(value, str):
        raise UserError(f"{name} is of type {type(value).__name__}; it must be a text (str)")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"half of a surrogate pair, U+{ord(value[error.start]):04X}"
        raise UserError(f"{name}: character {error.start + 1:,} is {half}, which is no character") from None


def chunks(lines: Iterable[str], characters: int, waiting: Callable[[], bool] | None) -> Iterator[list[str]]:
    """Lines together, until they have `characters` characters, line ends counted, or the next is `waiting`.

    The end of a line is no part of it: an open file has it. Accents are composed, as `read_lines` does it. Raises
    UserError for what is no text.
    """
    chunk: list[str] = []
    size = 0
    for number, line in enumerate(lines, 1):
        check_text(line, f"line {number}")
        line = normalize("NFC", line.removesuffix("\n").removesuffix("\r"))
        chunk.append(line)
        size += len(line) + 1
        if size >= characters or (waiting is not None and waiting()):
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def chunks_with(
    lines: Iterable[str],
    beside: Mapping[str, Iterable[str] | None],
    *,
    characters: int,
    waiting: Callable[[], bool] | None = None,
) -> Iterator[list[list[str]]]:
    """`chunks` of lines, and after each as many lines of each text `beside` it; of None as many empty ones.

    The texts have names in the plural. Raises UserError at once for arguments that are one text, which would be read as
    one text for each of its characters, and, where the line is read, for a text that has fewer lines, or more.
    """
    single = {name: texts for name, texts in {"lines": lines, **beside}.items() if isinstance(texts, str)}
    what = "is one text, and must be a list of texts, one for each line"
    refuse([f"{name} {what}: [{excerpt(text)}]" for name, text in single.items()])
    return _alongside(chunks(lines, characters, waiting), beside)


def _alongside(chunks: Iterable[list[str]], beside: Mapping[str, Iterable[str] | None]) -> Iterator[list[list[str]]]:
    texts: dict[str, Iterator[str]] = {
        name: repeat("") if text is None else iter(text) for name, text in beside.items()
    }
    lines = 0
    for chunk in chunks:
        parts = {name: list(islice(text, len(chunk))) for name, text in texts.items()}
        for name, part in parts.items():
            for number, line in enumerate(part, lines + 1):
                check_text(line, f"line {number} of the {name}")
            if len(part) < len(chunk):
                raise UserError(
                    f"there are fewer {name} than lines of text: line {lines + len(part) + 1} has none; every line "
                    "needs one, which may be empty"
                )
        yield [chunk, *([normalize("NFC", line) for line in part] for part in parts.values())]
        lines += len(chunk)
    for name, text in texts.items():
        if beside[name] is not None and next(text, None) is not None:
            raise UserError(f"there are more {name} than lines: line {lines + 1} of the {name} has no line of text")
