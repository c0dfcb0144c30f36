"""Parallel text files, plain or gzip, as streams of lines and of pairs of lines.

It knows bytes, lines and files; it knows no subwords, no ids and no configuration. A line ends at the byte 0x0A and
nowhere else, so that a line of the file is a line here whatever characters it holds: U+2028, a form feed or a lone
carriage return are text. Python's `splitlines` and universal newlines would see more lines than `wc -l`, and the two
sides of a corpus would drift apart.
"""

import codecs
import gzip
import hashlib
import io
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO

from nmt.errors import UserError

_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CHUNK = 1 << 20  # bytes read at once where lines do not matter


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or gzip (told by its first bytes), without their line ends.

    One carriage return before the line end and a byte order mark at the start of the file are dropped. A last line
    without a line end counts.

    Raises:
        UserError: the file cannot be read, is a damaged gzip file, or a line is not valid UTF-8.
    """
    with _opened(path) as file:
        yield from lines_of(file, name=str(path))


def lines_of(stream: Iterable[bytes], *, name: str) -> Iterator[str]:
    """Yield the lines of an open binary stream, by the rules of `read_lines`, each as soon as it is there.

    Raises:
        UserError: a line is not valid UTF-8; the message calls the stream `name`.
    """
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(_invalid_utf8(name, number, line, error)) from None
        yield text.removesuffix("\n").removesuffix("\r")


def read_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield line i of `source` with line i of `target`.

    Raises:
        UserError: as `read_lines`; or one file has more lines than the other, which is known at the end.
    """
    source_lines, target_lines = read_lines(source), read_lines(target)
    for pairs, (source_line, target_line) in enumerate(zip_longest(source_lines, target_lines)):
        if target_line is None:
            raise UserError(_unequal(source, pairs + 1 + sum(1 for _ in source_lines), target, pairs))
        if source_line is None:
            raise UserError(_unequal(source, pairs, target, pairs + 1 + sum(1 for _ in target_lines)))
        yield source_line, target_line


def check_corpora(pairs: Iterable[tuple[Path, Path]]) -> list[int]:
    """Read every file once and return the number of lines of each pair of files.

    Raises:
        UserError: with one message for each file that is missing, no regular file, unreadable, damaged, empty or not
            valid UTF-8 (its first such line), and for each pair whose files differ in length.
    """
    pairs = list(pairs)
    counts: dict[Path, int | None] = {}
    problems: list[str] = []
    for path in dict.fromkeys(path for pair in pairs for path in pair):
        try:
            _check_regular(path)
            counts[path] = _count_lines(path)
        except UserError as error:
            counts[path] = None
            problems.extend(error.messages)
        if counts[path] == 0:
            problems.append(f"{path}: the file is empty; a corpus needs at least one line")
    lines = []
    for source, target in pairs:
        source_count, target_count = counts[source], counts[target]
        if source_count and target_count and source_count != target_count:
            problems.append(_unequal(source, source_count, target, target_count))
        lines.append(source_count or 0)
    if problems:
        raise UserError(*problems)
    return lines


def digests(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a hash of the bytes of each file, for cache keys; about a second for a gigabyte, files side by side.

    Raises:
        UserError: with one message for each file that cannot be read, or only once, such as a pipe.
    """
    distinct = list(dict.fromkeys(paths))
    problems: list[str] = []
    result: dict[Path, str] = {}
    with ThreadPoolExecutor(min(len(distinct), os.cpu_count() or 1) or 1) as pool:
        for path, future in [(path, pool.submit(_digest, path)) for path in distinct]:
            try:
                result[path] = future.result()
            except UserError as error:
                problems.extend(error.messages)
    if problems:
        raise UserError(*problems)
    return result


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=20)
    _check_regular(path)
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise UserError(_unreadable(path, error)) from None
    return digest.hexdigest()


def _check_regular(path: Path) -> None:
    """Raise UserError for a pipe or a device, which can be read only once or without end."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # opening it gives the reason
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(f"{path}: is not a regular file; a corpus is read several times")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file for reading bytes; problems of reading inside the block become UserErrors."""
    try:
        with open(path, "rb") as file:
            # peek, not a second open: a pipe can be read only once
            if file.peek(2)[:2] == _GZIP_MAGIC:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield io.BufferedReader(unpacked, _CHUNK)
            else:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: damaged gzip file ({error})") from None
    except OSError as error:
        raise UserError(_unreadable(path, error)) from None


def _count_lines(path: Path) -> int:
    """Count the lines of a file and check that all of it is UTF-8, faster than line by line."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines, last = 0, b"\n"
    try:
        with _opened(path) as file:
            while chunk := file.read(_CHUNK):
                decoder.decode(chunk)
                lines += chunk.count(b"\n")
                last = chunk[-1:]
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return sum(1 for _ in read_lines(path))  # raises, with the number of the line
    return lines + (last != b"\n")


def _invalid_utf8(name: str, number: int, line: bytes, error: UnicodeDecodeError) -> str:
    column = len(line[: error.start].decode("utf-8")) + 1
    message = f"{name}, line {number}: not valid UTF-8 (byte 0x{line[error.start]:02x} at column {column})"
    if number == 1 and line.startswith(_UTF16_MARKS):
        return f"{message}; the file looks like UTF-16, convert it to UTF-8"
    return message


def _unequal(source: Path, source_count: int, target: Path, target_count: int) -> str:
    return (
        f"{source} has {source_count} lines, but {target} has {target_count}; "
        "line i of one file must be the translation of line i of the other"
    )


def _unreadable(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path}: no such file"
    if isinstance(error, IsADirectoryError):
        return f"{path}: is a folder, not a file"
    return f"{path}: cannot be read ({error.strerror or error})"
