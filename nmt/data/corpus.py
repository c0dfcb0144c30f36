"""Parallel text files, plain or gzip, as streams of lines and of pairs of lines.

It knows bytes, lines and files; it knows no subwords, no ids and no configuration. A line ends at the byte 0x0A and
nowhere else, whatever characters it holds: U+2028, a form feed or a lone carriage return are text. Python's
`splitlines` and universal newlines would see more lines than `wc -l`, and the two sides of a corpus would drift apart.

A line has at most LONGEST_LINE bytes, so a file that is not text, or a gzip file with one endless line, cannot use up
memory. A corpus is read several times; passing the `expected` hash of the first time reveals changes in between.
"""

import codecs
import gzip
import hashlib
import io
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

from nmt.errors import UserError, collected, counted, first_of, nothing_at, refuse

LONGEST_LINE = 1 << 22  # bytes without the line end: a million characters of any kind
LARGEST_TEXT = 1 << 26  # bytes of a document, which is read at once

GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NUL = 4  # of so many bytes, more than one is 0: in UTF-16, every second one of Latin letters
_HIGHEST = 8  # of the larger bytes in UTF-16 of Latin, Greek, Cyrillic, Hebrew, Arabic: no text has such characters
_FEWEST, _LOOKED_AT = 4, 1000  # characters and bytes at the beginning of a text, to tell UTF-16
_RETURNS = "if they are line ends, as on old Macs, tr '\\r' '\\n' < FILE > NEW converts them"
_MOST_MESSAGES = 100  # a file of another kind has a mistake in every line
_EXCERPT = 40  # characters
_CHUNK = 1 << 20  # bytes read at once when not reading by lines
assert _CHUNK <= LONGEST_LINE  # `_count_lines` detects long lines chunk by chunk


def read_lines(path: Path, *, expected: str | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or gzip (recognized by its first bytes), without their line ends.

    One carriage return before the line end and a byte order mark at the start of the file are dropped. A last line
    without a line end counts. `expected` is the hash that the bytes of the file must have; see `digests`.

    Raises:
        UserError: the file cannot be read or is a damaged gzip file, a line is too long or not valid UTF-8, or, at the
            end, its bytes turn out not to be the expected ones.
    """
    with _opened(path, expected) as file:
        yield from lines_of(iter(partial(file.readline, LONGEST_LINE + 1), b""), name=str(path))


def lines_of(stream: Iterable[bytes], *, name: str) -> Iterator[str]:
    """Yield the lines of an open binary stream by the rules of `read_lines`, each as soon as it arrives.

    The stream must cut lines off soon after LONGEST_LINE bytes, or they fill memory before they are refused.

    Raises:
        UserError: a line is too long or not valid UTF-8, or the first looks like UTF-16; messages call it `name`.
    """
    plain = True  # only ASCII so far
    beginning = b""
    for number, line in enumerate(stream, start=1):
        if len(line) > LONGEST_LINE and len(line.removesuffix(b"\n")) > LONGEST_LINE:
            raise UserError(_too_long(name, number, line))
        if len(beginning) < _LOOKED_AT:
            beginning += line[:_LOOKED_AT]
            _check_utf16(name, beginning)
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(_invalid_utf8(name, number, line, error, plain=plain)) from None
        plain = plain and text.isascii()
        yield text.removesuffix("\n").removesuffix("\r")


def read_text(path: Path) -> str:
    """The whole of a UTF-8 file, plain or gzip, as it is: line ends and a byte order mark are part of it.

    Raises:
        UserError: as in `read_lines`, or it has more than LARGEST_TEXT bytes.
    """
    with _opened(path, None) as file:
        return text_of(file, name=str(path))


def text_of(stream: IO[bytes], *, name: str) -> str:
    """The whole of an open binary stream, by the rules of `read_text`; messages call it `name`."""
    content = stream.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise UserError(f"{name}: has more than {LARGEST_TEXT:,} bytes, the most that a document may have")
    _check_utf16(name, content)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        start = content.rfind(b"\n", 0, error.start) + 1
        within = UnicodeDecodeError("utf-8", content[start:], error.start - start, error.end - start, error.reason)
        plain = content[:start].isascii()
        raise UserError(_invalid_utf8(name, number, content[start:], within, plain=plain)) from None


def read_pairs(
    source: Path, target: Path, *, expected: tuple[str | None, str | None] = (None, None)
) -> Iterator[tuple[str, str]]:
    """Yield line i of `source` with line i of `target`; `expected` are their hashes, as in `read_lines`.

    Raises:
        UserError: like `read_lines`, or at the end if one file has more lines than the other.
    """
    source_lines, target_lines = read_lines(source, expected=expected[0]), read_lines(target, expected=expected[1])
    for pairs, (source_line, target_line) in enumerate(zip_longest(source_lines, target_lines)):
        if target_line is None:
            raise UserError(_unequal(source, pairs + 1 + sum(1 for _ in source_lines), target, pairs))
        if source_line is None:
            raise UserError(_unequal(source, pairs, target, pairs + 1 + sum(1 for _ in target_lines)))
        yield source_line, target_line


def check_corpora(pairs: Iterable[tuple[Path, Path]], *, expected: Mapping[Path, str] | None = None) -> list[int]:
    """Read every file once and return the number of lines of each pair of files; `expected` are the files' hashes.

    Raises:
        UserError: with one message for each file that is missing, not a regular file, unreadable, damaged, empty, not
            as expected, or has a line that is too long or not valid UTF-8 (only the first one), and for each pair of
            files with different numbers of lines.
    """
    files = list(pairs)
    counts: dict[Path, int] = {}
    problems: list[str] = []
    for path in dict.fromkeys(path for pair in files for path in pair):
        with collected(problems):
            counts[path] = _count_lines(path, expected[path] if expected else None)
            if counts[path] == 0:
                problems.append(f"{path}: the file is empty; a corpus needs at least one line")
    for source, target in files:
        source_count, target_count = counts.get(source), counts.get(target)
        if source_count and target_count and source_count != target_count:
            problems.append(_unequal(source, source_count, target, target_count))
    refuse(problems)
    return [counts[source] for source, _ in files]


def digests(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a hash of the bytes of each file, for cache keys and for `read_lines` to expect.

    It takes about a second per gigabyte, and reads files in parallel.

    Raises:
        UserError: with one message for each file that cannot be read, or can be read only once, such as a pipe.
    """
    every = list(dict.fromkeys(paths))
    hashes: dict[Path, str] = {}
    problems: list[str] = []
    with ThreadPoolExecutor(min(len(every), os.cpu_count() or 1) or 1) as pool:
        for path, future in [(path, pool.submit(_digest, path)) for path in every]:
            with collected(problems):
                hashes[path] = future.result()
    refuse(problems)
    return hashes


def _digest(path: Path) -> str:
    _check_regular(path)
    try:
        with open(path, "rb", buffering=0) as file:
            return _Hashing(file).digest()
    except OSError as error:
        raise UserError(_unreadable(path, error)) from None


class _Hashing(io.RawIOBase):
    """An unbuffered file that hashes what is read from it, and the rest at the end."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._hash = hashlib.blake2b(digest_size=20)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._hash.update(memoryview(buffer)[:count])
        return count

    def digest(self) -> str:
        """The hash of all bytes, including those not read yet."""
        rest = bytearray(_CHUNK)
        while self.readinto(rest):
            pass
        return self._hash.hexdigest()


def _check_regular(path: Path) -> None:
    """Raise UserError for a pipe or a device, which can be read only once or has no end."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # opening it will give the reason
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(f"{path}: is not a regular file, and a corpus is read several times; write the text to a file")


@contextmanager
def _opened(path: Path, expected: str | None) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file for reading bytes; reading problems inside the block become UserErrors.

    If the block ends without an exception, the bytes of the whole file must have the `expected` hash.
    """
    try:
        with open(path, "rb", buffering=0) as raw:
            hashing = None if expected is None else _Hashing(raw)
            file = io.BufferedReader(hashing or raw, _CHUNK)
            # peek, not a second open: a pipe can be read only once
            if file.peek(2)[:2] == GZIP_MAGIC:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield io.BufferedReader(unpacked, _CHUNK)
            else:
                yield file
            if hashing is not None and hashing.digest() != expected:
                raise UserError(f"{path}: was changed while it was being read; leave it as it is, and start again")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: damaged gzip file ({error})") from None
    except OSError as error:
        raise UserError(_unreadable(path, error)) from None


def _count_lines(path: Path, expected: str | None) -> int:
    """Count the lines of a file and check that all of it is UTF-8 with no line too long, faster than by lines."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    _check_regular(path)
    lines = begun = 0  # begun: bytes of the line that has not ended yet
    try:
        with _opened(path, expected) as file:
            while chunk := file.read(_CHUNK):
                first = chunk.find(b"\n")
                if not begun and not lines:
                    _check_utf16(str(path), chunk)
                decoder.decode(chunk)
                if begun + (len(chunk) if first < 0 else first) > LONGEST_LINE:
                    raise UserError(_too_long(str(path), lines + 1, chunk))
                lines += chunk.count(b"\n")
                begun = begun + len(chunk) if first < 0 else len(chunk) - chunk.rfind(b"\n") - 1
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return sum(1 for _ in read_lines(path))  # raises, with the number of the line
    return lines + (begun > 0)


def _too_long(name: str, number: int, part: bytes) -> str:
    """The message about a line that is too long, of which this is a `part`."""
    hint = f"; {_RETURNS}" if _has_old_ends(part) else ""
    return (
        f"{name}, line {number}: has more than {LONGEST_LINE:,} bytes, the most that a line may have; give text with "
        f"one sentence per line{hint}"
    )


def _invalid_utf8(name: str, number: int, line: bytes, error: UnicodeDecodeError, *, plain: bool) -> str:
    """The message about a line that is not UTF-8, with a way out; `plain`: the lines before it are all ASCII."""
    column = len(line[: error.start].decode("utf-8")) + 1
    message = f"{name}, line {number}: not valid UTF-8 (byte 0x{line[error.start]:02x} at column {column})"
    if number == 1 and line.startswith(_UTF16_MARKS):
        return f"{message}; the file looks like UTF-16, which is converted by {_iconv('UTF-16')}"
    if line.count(0) > len(line) // _NUL:  # of Latin letters, the first or the second byte
        first, second = line[::2].count(0), line[1::2].count(0)  # the larger bytes are those that are mostly 0
        hint = _iconv(f"UTF-16{'BE' if number == 1 and first > second else 'LE'}")
        if number > 1 or first == second:  # other lines look alike in both orders
            hint += " or with UTF-16BE, whichever gives words"
        return f"{message}; the file looks like UTF-16, which is converted by {hint}"
    if plain and _is_windows(line, error):
        return (
            f"{message}; if it is Windows-1252, as old Western European text is, {_iconv('WINDOWS-1252')} converts it"
        )
    return message


def _check_utf16(name: str, beginning: bytes) -> None:
    """Raise UserError if a text that begins so is UTF-16 without a mark, which may be valid UTF-8, too."""
    if beginning.startswith((*_UTF16_MARKS, codecs.BOM_UTF8)):
        return
    first, second = (_is_high(beginning[start:_LOOKED_AT:2]) for start in (0, 1))
    if first != second:
        raise UserError(
            f"{name}, line 1: every second byte is {_HIGHEST} or less; the file looks like UTF-16, which is converted "
            f"by {_iconv('UTF-16BE' if first else 'UTF-16LE')}"
        )


def _is_high(half: bytes) -> bool:
    """Whether every second byte of a text may be the larger one of a character of UTF-16."""
    return len(half) >= _FEWEST and sum(byte <= _HIGHEST for byte in half) > 0.9 * len(half)


def _is_windows(line: bytes, error: UnicodeDecodeError) -> bool:
    """Whether a line may be Windows-1252; not if it has other characters in UTF-8, or was cut off inside of one, or if
    most of its letters are none of ASCII, as in other languages."""
    if error.reason == "unexpected end of data" or not line.decode("utf-8", "ignore").isascii():
        return False
    if sum(byte >= 0x80 for byte in line) > sum(byte < 0x80 and chr(byte).isalpha() for byte in line):
        return False
    try:
        line.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True


def _iconv(encoding: str) -> str:
    return f"iconv -f {encoding} -t UTF-8 FILE > NEW"


def returns_inside(line: str) -> int:
    """The carriage returns inside of a line; those at its end are left from other line ends."""
    return line.rstrip("\r").count("\r") if "\r" in line else 0


def old_line_ends(name: str, returns: int, *, lines: int) -> str | None:
    """A warning about text with so many carriage returns inside of its `lines` that they must be line ends."""
    if not 0 < lines <= returns:
        return None
    return (
        f"{name}: has {counted(returns, 'carriage return')} inside of {counted(lines, 'line')}, and a line ends at a "
        f"line feed alone; {_RETURNS}"
    )


def _has_old_ends(part: bytes) -> bool:
    """Whether a part of a text has no fewer carriage returns without a line feed than line feeds."""
    feeds, alone = part.count(b"\n"), part.count(b"\r") - part.count(b"\r\n")
    return 0 < alone >= feeds


def _unequal(source: Path, source_count: int, target: Path, target_count: int) -> str:
    message = (
        f"{source} has {counted(source_count, 'line')}, but {target} has {target_count:,}; "
        "line i of one file must be the translation of line i of the other"
    )
    for path in (source, target):
        if path.is_file():  # a pipe cannot be read again
            with _opened(path, None) as file:
                if _has_old_ends(file.read(_CHUNK)):
                    message += f"; {path} has carriage returns inside of lines: {_RETURNS}"
    return message


def _unreadable(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return nothing_at(path) or f"{path}: no such file"
    if isinstance(error, IsADirectoryError):
        return f"{path}: is a folder, not a file"
    return f"{path}: cannot be read ({error.strerror or error})"


def no_character(half: str) -> str:
    """What a message says about a text with this half of a surrogate pair."""
    return f"has half of a surrogate pair, U+{ord(half):04X}, which is no character"


def half_of_a_pair(text: str) -> int | None:
    """The place of half of a surrogate pair, which is no character, and which UTF-8 does not have."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return error.start
    return None


def excerpt(text: str) -> str:
    """A word or a line as a message quotes it: its first characters."""
    return repr(text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}...")


def refuse_malformed(path: Path | str, problems: Sequence[str]) -> None:
    """Raise UserError with the problems of a file's lines, or the first of many, if there are any."""
    refuse(first_of(problems, _MOST_MESSAGES, before=f"{path}: ", after=" lines are malformed"))
