"""Parallel text files, plain or gzip, as streams of lines and of pairs of lines.

It knows bytes, lines and files; it knows no subwords, no ids and no configuration. A line ends at the byte 0x0A and
nowhere else, whatever characters it holds: U+2028, a form feed or a lone carriage return are text. Python's
`splitlines` and universal newlines would see more lines than `wc -l`, and the two sides of a corpus would drift apart.
Its characters are in Unicode's form NFC, however accents were typed.

A line has at most LONGEST_LINE bytes, so a file that is not text, or a gzip file with one endless line, cannot use up
memory. A corpus is read several times: `unchanged` refuses what was made of files that changed meanwhile.
"""

import codecs
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import IO
from unicodedata import normalize

from nmt.errors import UserError, collected, counted, nothing_at, refuse, shortened
from nmt.files import file_digest

LONGEST_LINE = 1 << 22  # bytes without the line end: a million characters of any kind
LARGEST_TEXT = 1 << 26  # bytes of a document, which is read at once

GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
RETURNS = "carriage returns, the line ends of old Macs, are converted by tr '\\r' '\\n' < FILE > NEW"
_EXCERPT = 40  # characters
_CHUNK = 1 << 20  # bytes read at once


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or gzip (recognized by its first bytes), without their line ends.

    One carriage return before the line end and a byte order mark at the start of the file are dropped. A last line
    without a line end counts.

    Raises:
        UserError: the file cannot be read or is a damaged gzip file, or a line is too long or not valid UTF-8.
    """
    with opened(path) as file:
        yield from lines_of(iter(partial(file.readline, LONGEST_LINE + 1), b""), name=str(path))


def lines_of(stream: Iterable[bytes], *, name: str) -> Iterator[str]:
    """Yield the lines of an open binary stream by the rules of `read_lines`, each as soon as it arrives.

    The stream must cut lines off soon after LONGEST_LINE bytes, or they fill memory before they are refused.

    Raises:
        UserError: a line is too long or not valid UTF-8, or they look like UTF-16 or ZIP; messages call them `name`.
    """
    for number, line in enumerate(stream, start=1):
        if len(line) > LONGEST_LINE and len(line.removesuffix(b"\n")) > LONGEST_LINE:
            raise UserError(
                f"{name}, line {number}: has more than {LONGEST_LINE:,} bytes, the most that a line may have; give "
                f"text with one sentence per line; {RETURNS}"
            )
        if number == 1:
            _check_form(name, line)
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = normalize("NFC", line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise UserError(_invalid_utf8(name, number, line, error.start)) from None
        yield text.removesuffix("\n").removesuffix("\r")


def read_text(path: Path, *, encoding: str = "utf-8") -> str:
    """The whole of a file, plain or gzip, as it is: line ends and a byte order mark are part of it.

    Raises:
        UserError: as in `read_lines`, or it has more than LARGEST_TEXT bytes.
    """
    with opened(path) as file:
        return text_of(file, name=str(path), encoding=encoding)


def text_of(stream: IO[bytes], *, name: str, encoding: str = "utf-8") -> str:
    """The whole of an open binary stream, by the rules of `read_text`; messages call it `name`."""
    content = stream.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise UserError(f"{name}: has more than {LARGEST_TEXT:,} bytes, the most that a document may have")
    _check_form(name, content, is_utf8=encoding == "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeError as error:
        if encoding != "utf-8" or not isinstance(error, UnicodeDecodeError):
            raise UserError(f"{name}: not valid {encoding} ({error})") from None
        number = content.count(b"\n", 0, error.start) + 1
        start = content.rfind(b"\n", 0, error.start) + 1
        raise UserError(_invalid_utf8(name, number, content[start:], error.start - start)) from None


def read_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield line i of `source` with line i of `target`.

    Raises:
        UserError: like `read_lines`, or at the end if one file has more lines than the other.
    """
    source_lines, target_lines = read_lines(source), read_lines(target)
    for pairs, (source_line, target_line) in enumerate(zip_longest(source_lines, target_lines)):
        if target_line is None:
            raise UserError(_unequal(source, pairs + 1 + sum(1 for _ in source_lines), target, pairs))
        if source_line is None:
            raise UserError(_unequal(source, pairs, target, pairs + 1 + sum(1 for _ in target_lines)))
        yield source_line, target_line


def read_weights(path: Path) -> Iterator[float]:
    """Yield the number of each line, from 0 to 1000. Raises UserError like `read_lines`, or for a line without one."""
    for number, line in enumerate(read_lines(path), start=1):
        try:
            weight = float(line)
        except ValueError:
            weight = -1.0
        if not 0.0 <= weight <= 1000.0:
            raise UserError(f"{path}, line {number}: {excerpt(line)} is no weight of a pair: a number from 0 to 1000")
        yield weight


def check_corpora(pairs: Iterable[tuple[Path, Path]]) -> list[int]:
    """Read every file once and return the number of lines of each pair of files.

    Raises:
        UserError: with one message for each file that is missing, not a regular file, unreadable, damaged, empty, or
            has a line that is too long or not valid UTF-8 (only the first one), and for each pair of files with
            different numbers of lines.
    """
    files = list(pairs)
    counts: dict[Path, int] = {}
    problems: list[str] = []
    for path in dict.fromkeys(path for pair in files for path in pair):
        with collected(problems):
            check_regular(path)
            counts[path] = sum(1 for _ in read_lines(path))
            if counts[path] == 0:
                problems.append(f"{path}: the file is empty; a corpus needs at least one line")
    for source, target in files:
        source_count, target_count = counts.get(source), counts.get(target)
        if source_count and target_count and source_count != target_count:
            problems.append(_unequal(source, source_count, target, target_count))
    refuse(problems)
    return [counts[source] for source, _ in files]


def digests(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a hash of the bytes of each file, for cache keys and for `unchanged`.

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
    check_regular(path)
    try:
        return file_digest(path)
    except OSError as error:
        raise UserError(unreadable(path, error)) from None


@contextmanager
def unchanged(hashes: Mapping[Path, str]) -> Iterator[None]:
    """Raise UserError after the block, whatever it made of the files, if one has not the hash that it had before."""
    try:
        yield
    except Exception:
        _check_unchanged(hashes)
        raise
    _check_unchanged(hashes)


def _check_unchanged(hashes: Mapping[Path, str]) -> None:
    for path, digest in digests(hashes).items():
        if digest != hashes[path]:
            raise UserError(f"{path}: was changed while it was being read; leave it as it is, and start again")


def check_regular(path: Path) -> None:
    """Raise UserError for a pipe or a device, which can be read only once or has no end."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # opening it will give the reason
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(f"{path}: is not a regular file, and is read several times; write the text to a file")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file for reading bytes; reading problems inside the block become UserErrors."""
    try:
        with open(path, "rb", buffering=0) as raw:
            file = io.BufferedReader(raw, _CHUNK)
            # peek, not a second open: a pipe can be read only once
            if file.peek(2)[:2] == GZIP_MAGIC:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield io.BufferedReader(unpacked, _CHUNK)
            else:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: damaged gzip file ({error})") from None
    except OSError as error:
        raise UserError(unreadable(path, error)) from None


def _invalid_utf8(name: str, number: int, line: bytes, at: int) -> str:
    """The message about a line that is not UTF-8 from the byte `at` on, with the ways out."""
    column = len(line[:at].decode("utf-8")) + 1
    return (
        f"{name}, line {number}: not valid UTF-8 (byte 0x{line[at]:02x} at column {column}); correct it if only this "
        "line is in another encoding; if all of them are, iconv -f ENCODING -t UTF-8 FILE > NEW converts them, and "
        "nmt-translate has --encoding; old texts are in WINDOWS-1252 (Western European), -1250 (Central European), "
        "-1251 (Cyrillic), or another one"
    )


def _check_form(name: str, beginning: bytes, *, is_utf8: bool = True) -> None:
    """Raise UserError for text with this beginning if it is compressed, as a document in a ZIP archive is, or UTF-16
    where UTF-8 is expected. Either may happen to be valid UTF-8."""
    if beginning.startswith(GZIP_MAGIC):
        raise UserError(
            f"{name} is gzip, and only files are unpacked: give its name with --input FILE.gz, or unpack it with "
            "gunzip < FILE.gz | …"
        )
    if beginning.startswith(b"PK\x03\x04"):
        raise UserError(f"{name}: is a ZIP archive, such as .xlsx or .docx; save it as CSV or as text, in UTF-8")
    is_marked = beginning.startswith(_UTF16_MARKS)
    if is_utf8 and (is_marked or b"\0" in beginning[:2]):  # half of an ASCII character
        order = "" if is_marked else "BE" if beginning.startswith(b"\0") else "LE"
        raise UserError(f"{name}: looks like UTF-16, which iconv -f UTF-16{order} -t UTF-8 FILE > NEW converts")


def _unequal(source: Path, source_count: int, target: Path, target_count: int) -> str:
    return (
        f"{source} has {counted(source_count, 'line')}, but {target} has {target_count:,}; line i of one file must be "
        f"the translation of line i of the other, and a line ends at a line feed; {RETURNS}"
    )


def unreadable(path: Path, error: OSError) -> str:
    """The message about a file that cannot be opened or read, with the nearest name where there is none."""
    if isinstance(error, FileNotFoundError):
        return nothing_at(path) or f"{path}: no such file"
    if isinstance(error, IsADirectoryError):
        return f"{path}: is a folder, not a file"
    return f"{path}: cannot be read ({error.strerror or error})"


def excerpt(text: str) -> str:
    """A word or a line as a message quotes it: its first characters."""
    return repr(shortened(text, _EXCERPT))
