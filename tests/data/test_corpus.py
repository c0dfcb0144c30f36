"""Reading parallel files: which bytes make a line, and the messages about files that cannot be a corpus."""

import errno
import gzip
import os
import re
import select
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import pytest

from nmt.cli.standard_input import Lines
from nmt.data.corpus import (
    LONGEST_LINE,
    check_corpora,
    digests,
    lines_of,
    read_lines,
    read_pairs,
    read_text,
    unchanged,
)
from nmt.errors import UserError

STRANGE = [
    "a\u2028b",
    "nul\x00nul",
    "tab\x0bfeed\x0c",
    "next\x85line",
    "lone\rreturn",
    "😀 🇩🇪",
    "",
    "  two  ",
    "\ufeffinside",
]


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("\n".join(STRANGE) + "\n", STRANGE),  # only the newline byte ends a line
        ("one\ntwo", ["one", "two"]),
        (b"\xef\xbb\xbfone\r\ntwo\r\r\n\r\n", ["one", "two\r", ""]),  # without the byte order mark
        (
            gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two\n", mtime=0),
            ["one", "two"],
        ),  # told by the content, not by the name
        ("e\u0301t\u00e9 \u0958\n", ["\u00e9t\u00e9 \u0915\u093c"]),  # NFC, as a file from a Mac often is not
        ("word " * 10_000 + "\nnext\n", ["word " * 10_000, "next"]),
    ],
)
def test_which_bytes_make_a_line(folder: Path, content: bytes | str, lines: list[str]) -> None:
    file = write(folder / "text", content)
    assert list(read_lines(file)) == lines
    assert check_corpora([(file, file)]) == [len(lines)]


def test_a_pipe_can_be_read(folder: Path) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(b"one\ntwo\n"),))
    writer.start()
    assert list(read_lines(pipe)) == ["one", "two"]
    writer.join()


def test_reading_streams(folder: Path) -> None:
    file = write(folder / "text", b"good\n" + b"x\n" * 200_000 + b"\xff\n")
    lines = read_lines(file)
    assert next(lines) == "good"  # before the invalid end is seen


@pytest.mark.parametrize("packed", [False, True])
def test_invalid_utf8_names_line_byte_and_column(folder: Path, packed: bool) -> None:
    content = "gut\nschön\n".encode() + b"sch\xf6n\nend\n"
    file = write(folder / "latin1", gzip.compress(content) if packed else content)
    message = refusal(file)
    assert message.startswith(f"{file}, line 3: not valid UTF-8 (byte 0xf6 at column 4); correct it if only this line ")
    assert "if all of them are, iconv -f ENCODING -t UTF-8 FILE > NEW converts them, and nmt-translate has" in message
    with pytest.raises(UserError) as caught:
        read_text(file)  # as a document
    assert str(caught.value) == message


def test_a_document_is_named(folder: Path) -> None:
    """Such as a table of Excel, renamed or given as text."""
    with ZipFile(folder / "table.csv", "w") as file:
        file.writestr("[Content_Types].xml", "<Types/>")
    message = f"{folder / 'table.csv'}: is a ZIP archive, such as .xlsx or .docx; save it as CSV or as text, in UTF-8"
    assert refusal(folder / "table.csv") == message


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("äöü".encode() + b"\x80\n", "line 1: not valid UTF-8 (byte 0x80 at column 4)"),
        (b"one\ntwo \xc3", "line 2: not valid UTF-8 (byte 0xc3 at column 5)"),  # cut off at the end of the file
    ],
)
def test_the_column_counts_characters(folder: Path, content: bytes, place: str) -> None:
    file = write(folder / "text", content)
    assert refusal(file).startswith(f"{file}, {place}")
    with pytest.raises(UserError, match=re.escape(place)):
        read_text(file)


def refusal(path: Path) -> str:
    """What is said about a file that is no corpus, however it is read."""
    said = set()
    for read in READERS.values():
        with pytest.raises(UserError) as error:
            read(path)
        said.add(str(error.value))
    (message,) = said
    return message


@pytest.mark.parametrize(
    "text",
    ["zwölf\neins\n", "two dogs\nrun\n", "Привет мир\nпривет\n", "שלום עולם\n", "\n\nHi!\nA dog.\n"],
)
@pytest.mark.parametrize("order", ["LE", "BE"])
def test_utf16_is_named(folder: Path, order: str, text: str) -> None:
    """By the byte order mark with which it begins, or by the other half of an ASCII character."""
    file = write(folder / "text", f"\ufeff{text}".encode(f"UTF-16{order}"))
    message = f"{file}: looks like UTF-16, which iconv -f UTF-16 -t UTF-8 FILE > NEW converts"
    assert refusal(file) == message
    with pytest.raises(UserError, match=re.escape(message)):
        read_text(file)
    if text[0].isascii() and text[0] != "\n":
        assert refusal(write(folder / "text", text.encode(f"UTF-16{order}"))) == message.replace(
            "UTF-16 -t", f"UTF-16{order} -t"
        )


def test_text_may_have_null_characters(folder: Path) -> None:
    file = write(folder / "text", b"two\0dogs\n\0\n")
    assert list(read_lines(file)) == read_text(file).splitlines() == ["two\0dogs", "\0"]


def test_a_damaged_gzip_file_is_named(folder: Path) -> None:
    cut = write(folder / "cut.gz", gzip.compress(b"one\ntwo\n" * 1000)[:-10])
    flipped = bytearray(gzip.compress(os.urandom(1000)))
    flipped[200] ^= 255
    changed = write(folder / "changed.gz", bytes(flipped))
    with pytest.raises(UserError, match=r"cut\.gz: damaged gzip file"):
        check_corpora([(cut, cut)])
    with pytest.raises(UserError, match=r"changed\.gz: (damaged gzip file|.*not valid UTF-8)"):
        check_corpora([(changed, changed)])


@pytest.mark.parametrize(("source_lines", "target_lines"), [(5, 3), (2, 7)])
def test_unequal_files_are_refused_with_both_counts(folder: Path, source_lines: int, target_lines: int) -> None:
    source = write(folder / "source", "s\n" * source_lines)
    target = write(folder / "target", "t\n" * target_lines)
    expected = f"{source} has {source_lines} lines, but {target} has {target_lines}"
    with pytest.raises(UserError) as error:
        list(read_pairs(source, target))
    assert error.value.messages[0].startswith(expected)
    with pytest.raises(UserError) as error:
        check_corpora([(source, target)])
    assert error.value.messages[0].startswith(expected)


def test_pairs_come_in_order(folder: Path) -> None:
    source, target = write(folder / "source", "a\nb\n\n"), write(folder / "target", "c\n\nd")
    assert list(read_pairs(source, target)) == [("a", "c"), ("b", ""), ("", "d")]


def test_every_problem_of_every_file_is_reported_at_once(folder: Path) -> None:
    good = write(folder / "good", "one\ntwo\n")
    empty = write(folder / "empty", "")
    latin1 = write(folder / "latin1", b"\xe9ta\n\n")
    short = write(folder / "short", "one\n")
    (folder / "sub").mkdir()
    missing = folder / "missing"
    with pytest.raises(UserError) as error:
        check_corpora([(good, missing), (folder / "sub", empty), (latin1, good), (good, short), (good, missing)])
    expected = [
        f"{missing}: no such file",
        f"{folder / 'sub'}: is a folder, not a file",
        f"{empty}: the file is empty; a corpus needs at least one line",
        f"{latin1}, line 1: not valid UTF-8 (byte 0xe9 at column 1)",
        f"{good} has 2 lines, but {short} has 1; line i of one file must be the translation of line i of the other",
    ]
    assert [message[: len(start)] for message, start in zip(error.value.messages, expected, strict=True)] == expected


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_named(folder: Path) -> None:
    file = write(folder / "text", "one\n")
    file.chmod(0)
    with pytest.raises(UserError, match=r"text: cannot be read \(Permission denied\)"):
        check_corpora([(file, file)])


def test_digests_follow_the_bytes(folder: Path) -> None:
    one, same, other = (write(folder / name, text) for name, text in (("a", "x\n"), ("b", "x\n"), ("c", "y\n")))
    hashes = digests([one, same, other])
    assert hashes[one] == hashes[same] != hashes[other]
    with pytest.raises(UserError) as error:
        digests([folder / "no", one, folder / "nor"])
    assert len(error.value.messages) == 2


def test_a_pipe_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    """Opening it would wait for a writer, and a corpus is read several times."""
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("a\n", encoding="utf-8")
    message = f"{pipe}: is not a regular file, and is read several times; write the text to a file"
    for refuse in (lambda: digests([pipe, file]), lambda: check_corpora([(pipe, file)])):
        with pytest.raises(UserError) as error:
            refuse()
        assert error.value.messages == (message,)


# ---------------------------------------------------------------------------------------------- lines without an end

READERS: dict[str, Callable[[Path], object]] = {
    "lines": lambda path: list(read_lines(path)),
    "pairs": lambda path: list(read_pairs(path, path)),
    "check": lambda path: check_corpora([(path, path)]),
}


@pytest.mark.parametrize(
    ("read", "end"),
    list(zip(READERS.values(), [b"", b"\n", b"\nmore\n"], strict=True)),
    ids=["no end", "an end", "a line after"],
)
def test_a_line_has_so_many_bytes_and_no_more(folder: Path, read: Callable[[Path], object], end: bytes) -> None:
    read(write(folder / "longest", b"one\n" + b"a" * LONGEST_LINE + end))
    longer = write(folder / "longer", b"one\n" + b"a" * (LONGEST_LINE + 1) + end)
    with pytest.raises(UserError) as error:
        read(longer)
    assert str(error.value).startswith(
        f"{longer}, line 2: has more than 4,194,304 bytes, the most that a line may have"
    )


def test_a_gzip_file_of_one_endless_line_takes_no_memory(folder: Path) -> None:
    """300 kB that decompress to 300 MB are refused once a line's worth has been read."""
    packed = folder / "bomb.gz"
    with gzip.open(packed, "wb", compresslevel=1) as file:
        for _ in range(20):
            file.write(bytes(3 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"bomb\.gz, line 1: has more than 4,194,304 bytes"):
            check_corpora([(packed, packed)])
        assert tracemalloc.get_traced_memory()[1] < 8 * LONGEST_LINE
    finally:
        tracemalloc.stop()


def test_standard_input_without_a_line_end_is_refused(folder: Path) -> None:
    """The descriptor stays open: nothing waits for the end of the stream."""
    reading, writing = os.pipe()

    def feed() -> None:
        with suppress(BrokenPipeError):
            os.write(writing, b"one\n" + bytes(LONGEST_LINE + (1 << 20)))

    writer = threading.Thread(target=feed)
    writer.start()
    lines = lines_of(Lines(reading), name="standard input")
    try:
        assert next(lines) == "one"
        with pytest.raises(UserError, match="standard input, line 2: has more than 4,194,304 bytes"):
            next(lines)
    finally:
        os.close(reading)
        writer.join()
        os.close(writing)


def test_where_pipes_cannot_be_asked_what_has_not_arrived_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: whoever writes a line and waits for its answer gets it."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))

    monkeypatch.setattr(select, "select", refused)
    reading, writing = os.pipe()
    try:
        lines = Lines(reading)
        assert lines.waiting()
        os.write(writing, b"one\ntwo\n")
        assert next(iter(lines)) == b"one\n"
        assert not lines.waiting()
        assert next(iter(lines)) == b"two\n"
        assert lines.waiting()
    finally:
        os.close(reading)
        os.close(writing)


# ------------------------------------------------------------------------------------- files that change meanwhile


@pytest.mark.parametrize("packed", [False, True])
def test_what_was_made_of_files_that_changed_meanwhile_is_refused(folder: Path, packed: bool) -> None:
    """Whatever came of it; a file that is as before is no reason."""
    content = b"some words\n" * 500
    file = write(folder / "text", gzip.compress(content) if packed else content)
    other = write(folder / "other", b"a\n" * 500)
    hashes = digests([file, other])
    with unchanged(hashes):
        assert check_corpora([(file, other)]) == [500]
    with pytest.raises(UserError, match="has 500 lines, but"), unchanged(hashes):
        check_corpora([(file, write(folder / "short", b"a\n"))])
    message = f"{file}: was changed while it was being read; leave it as it is, and start again"
    for changed in (b"some words\n" * 501, b"some cords\n" * 500):
        with pytest.raises(UserError, match=re.escape(message)), unchanged(hashes):
            check_corpora([(write(file, changed), other)])
