"""Binarised corpora: the same ids as before writing, the filters and their counts, and builds that are cut short."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.config.schema import SubwordsConfig
from nmt.data import binarised, binarising
from nmt.data.binarised import CorpusReport, Filters, PairedIds, _Mapped, _mapped, _Rows
from nmt.data.binarising import binarise
from nmt.data.sealed import read_sealed, write_sealed
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
# A piece of a char model is a letter, and "▁" stands before every word: "ab c" has the 5 pieces ▁ a b ▁ c.
PAIRS = [("ab c", "ba"), ("", "ab"), ("c", "  "), ("abcabc", "a"), ("aaaaaaaaa", "b"), ("a\u2028b", "a\x00c")]
PIECES = [(5, 3), (0, 3), (2, 0), (7, 2), (10, 2), (4, 4)]


@pytest.fixture(scope="module")
def vocabularies() -> Vocabularies:
    lines = ["a b c", "abc", "cab"]
    source = Subwords.train(lines, settings=SubwordsConfig(type="char", size=50))
    target = Subwords.train([*lines, "dd"], settings=SubwordsConfig(type="char", size=50))
    return Vocabularies(source, target)


def test_what_was_written_is_read(tmp_path: Path, vocabularies: Vocabularies) -> None:
    ids = binarise(iter(PAIRS), tmp_path / "ids", vocabularies=vocabularies, filters=None, with_text=True)
    for opened in (ids, PairedIds(tmp_path / "ids")):
        assert opened.folder == tmp_path / "ids"
        assert opened.source_lengths.dtype == np.int32
        assert len(opened) == len(PAIRS)  # without filters the empty ones are kept
        for row, (source, target) in enumerate(PAIRS):
            assert opened.source(row).tolist() == vocabularies.source.encode(source)
            assert opened.target(row).tolist() == vocabularies.target.encode(target)
            assert opened.text(row) == (source, target)
        assert opened.source_lengths.tolist() == [source for source, _ in PIECES]
        assert opened.target_lengths.tolist() == [target for _, target in PIECES]


def test_all_of_a_corpus_is_on_the_disk(
    tmp_path: Path, vocabularies: Vocabularies, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[int, int] = {}

    def sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size

    monkeypatch.setattr(os, "fsync", sync)
    folder = binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None, with_text=True).folder
    files = [path.stat() for path in folder.iterdir()]
    assert len(files) == 10
    assert [synced.get(status.st_ino) for status in files] == [status.st_size for status in files]


DESCRIPTIONS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another format": (lambda meta: meta.update(format=3), r"meta\.json is of format 3, not 2"),
    "no report": (lambda meta: meta.pop("report"), r"meta\.json is not as it was written"),
    "a report of more": (lambda meta: meta["report"].update(more=1), r"meta\.json is not as it was written"),
    "another number of pairs": (lambda meta: meta["report"].update(kept=5), "the rows do not fill their files"),
    "fewer pieces": (lambda meta: meta.update(pieces=[7, 9]), r"source\.ids has the piece 7 of a vocabulary of 7"),
    "another size": (lambda meta: meta["files"]["target.text"].__setitem__(0, 1), r"target\.text has \d+ bytes"),
}


@pytest.mark.parametrize(("change", "message"), DESCRIPTIONS.values(), ids=DESCRIPTIONS)
def test_a_description_of_another_corpus(
    tmp_path: Path, vocabularies: Vocabularies, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    """Its seal is right."""
    folder = binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None, with_text=True).folder
    meta = json.loads(read_sealed(folder / "meta.json"))
    assert meta["format"] == 2
    change(meta)
    write_sealed(folder / "meta.json", json.dumps(meta).encode())
    with pytest.raises(ValueError, match=message):
        PairedIds(folder)


def test_files_that_cannot_be_read(tmp_path: Path, vocabularies: Vocabularies, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is damaged is told as that, but not what the process lacks."""
    folder = binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None).folder
    content = (folder / "source.ids").read_bytes()
    (folder / "source.ids").write_bytes(bytes(len(content)))
    with pytest.raises(ValueError, match=r"^source\.ids is not as it was written"):
        PairedIds(folder)
    (folder / "source.ids").unlink()
    with pytest.raises(ValueError, match=r"^there is no source\.ids$"):
        PairedIds(folder)

    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(binarised, "opened", refused)
    with pytest.raises(PermissionError):
        PairedIds(folder)


def test_pairs_without_pieces(tmp_path: Path, vocabularies: Vocabularies) -> None:
    ids = binarise([("", ""), ("", "")], tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert (len(ids), ids.source_lengths.tolist(), ids.target_lengths.tolist()) == (2, [0, 0], [0, 0])


@pytest.mark.parametrize(
    ("offsets", "problem"),
    [
        ([0, 2, 2, 3], None),
        ([0, 2, 3], "fill"),
        ([0, 1, 2, 3, 3], "fill"),
        ([1, 2, 2, 3], "fill"),
        ([0, 2, 2, 2], "fill"),
        ([0, 2, 1, 3], "order"),
        ([0, -1, 2, 3], "order"),
    ],
)
def test_rows_lie_one_after_the_other(offsets: list[int], problem: str | None) -> None:
    """Three rows of three values."""
    rows = _Rows(_Mapped(np.array([7, 8, 9]), None), _Mapped(np.array(offsets), None))
    if problem is None:
        rows.check(3)
        assert [rows[row].tolist() for row in range(3)] == [[7, 8], [], [9]]
    else:
        with pytest.raises(ValueError, match=problem):
            rows.check(3)


def test_of_huge_lines_only_a_few_are_encoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binarising, "_CHUNK", 3)
    monkeypatch.setattr(binarising, "_CHUNK_CHARACTERS", 10)
    pairs = iter([("a", "b"), ("aaaaa", "bbb"), ("a", "b"), ("aaaa", "bbb"), ("a", "b"), ("a" * 20, ""), ("a", "b")])
    chunks = []
    while chunk := binarising._chunk(pairs):
        chunks.append([len(source) for source, _ in chunk])
    assert chunks == [[1, 5], [1, 4, 1], [20], [1]]  # of 10, 11, 20 and 2 characters


def test_a_place_that_is_taken_by_a_file_stays_it(tmp_path: Path, vocabularies: Vocabularies) -> None:
    (tmp_path / "ids").write_text("somebody's")
    with pytest.raises(OSError, match="ids"):
        binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["ids"]
    assert (tmp_path / "ids").read_text() == "somebody's"


def test_only_folders_of_ours_that_are_abandoned_are_removed(
    tmp_path: Path, vocabularies: Vocabularies, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = [f"old{number}.{'0123456789abcdef' * 2}.partial" for number in range(5)]
    theirs = [f"their{number}.partial" for number in range(5)]
    for name in (*ours, *theirs):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    file, link = tmp_path / f"file.{'0' * 32}.partial", tmp_path / f"link.{'0' * 32}.partial"
    file.write_text("a file")
    os.utime(file, (0, 0))
    link.symlink_to(tmp_path / theirs[0])
    recent = tmp_path / f"recent.{'0' * 32}.partial"
    recent.mkdir()
    (recent / "source.ids").touch()
    os.utime(recent / "source.ids", (0, 0))
    remove = shutil.rmtree

    def remove_twice(path: Path, ignore_errors: bool = False) -> None:
        remove(path)  # as another process does at the same time
        remove(path, ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", remove_twice)
    binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert {entry.name for entry in tmp_path.iterdir()} == {*theirs, file.name, link.name, recent.name, "ids"}


def test_text_is_kept_only_when_asked_for(tmp_path: Path, vocabularies: Vocabularies) -> None:
    ids = binarise(PAIRS, tmp_path / "new" / "cache" / "ids", vocabularies=vocabularies, filters=None)
    assert sorted(path.name for path in ids.folder.iterdir()) == [
        *("meta.json", "meta.json.seal", "source.ids", "source.offsets", "target.ids", "target.offsets")
    ]
    with pytest.raises(ValueError, match="without its text"):
        ids.text(0)


@pytest.mark.parametrize(
    ("filters", "kept", "counts"),
    [
        (Filters(), [0, 3, 4, 5], (2, 0, 0)),
        (Filters(max_length=7), [0, 3, 5], (2, 1, 0)),
        (Filters(max_length=6), [0, 5], (2, 2, 0)),
        (Filters(max_length_ratio=3.5), [0, 3, 5], (2, 0, 1)),
        (Filters(max_length_ratio=1.5), [5], (2, 0, 3)),
        (Filters(max_length=7, max_length_ratio=3.0), [0, 5], (2, 1, 1)),
    ],
)
def test_filters(
    tmp_path: Path, vocabularies: Vocabularies, filters: Filters, kept: list[int], counts: tuple[int, int, int]
) -> None:
    ids = binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=filters, with_text=True)
    assert [ids.text(row) for row in range(len(ids))] == [PAIRS[row] for row in kept]
    report = ids.report
    assert (report.read, report.kept) == (len(PAIRS), len(kept))
    assert (report.empty, report.overlong, report.unbalanced) == counts
    assert report.source_pieces == sum(PIECES[row][0] for row in kept)
    assert report.target_pieces == sum(PIECES[row][1] for row in kept)


def test_chunks_leave_no_trace(tmp_path: Path, vocabularies: Vocabularies, monkeypatch: pytest.MonkeyPatch) -> None:
    filters = Filters(max_length=7)
    whole = binarise(PAIRS, tmp_path / "whole", vocabularies=vocabularies, filters=filters)
    monkeypatch.setattr(binarising, "_CHUNK", 2)
    parts = binarise(PAIRS, tmp_path / "parts", vocabularies=vocabularies, filters=filters)
    assert parts.report == whole.report
    for name in ("source.ids", "source.offsets", "target.ids", "target.offsets"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_unknown_pieces_are_counted_a_side(tmp_path: Path, vocabularies: Vocabularies) -> None:
    # "d" is known to the target model alone, "x" to neither
    report = binarise([("abd", "xd x")], tmp_path / "ids", vocabularies=vocabularies, filters=Filters()).report
    assert (report.source_unknown, report.target_unknown) == (1, 2)
    assert report.lines() == [
        "1 pair read, 1 kept",
        "source: 4 pieces, 4.0 a sentence, 1 unknown (25.00%)",
        "target: 5 pieces, 5.0 a sentence, 2 unknown (40.00%)",
    ]


def test_what_a_report_does_not_count_is_none() -> None:
    assert set(CorpusReport()) == {0, None}
    assert CorpusReport().left_out == ""


def test_the_report_names_each_filter() -> None:
    report = CorpusReport(1010, 1000, empty=1, overlong=2, unbalanced=7, max_length=50, max_length_ratio=2.5)
    assert report.lines()[0] == (
        "1,010 pairs read, 1,000 kept (99.01%; left out: 1 empty on one side, 2 longer than data.max_length = 50 "
        "pieces, 7 over data.max_length_ratio = 2.5)"
    )


def test_everything_filtered_away_says_by_which_filter(tmp_path: Path, vocabularies: Vocabularies) -> None:
    with pytest.raises(UserError) as error:
        binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=Filters(3, 1.2))
    assert error.value.messages[0] == (
        "no training pair is left of 6: 2 empty on one side, 4 longer than data.max_length = 3 pieces"
    )
    with pytest.raises(UserError, match="no training pair is left of 0"):
        binarise([], tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert not list(tmp_path.iterdir())


def test_a_corpus_of_blank_lines_can_be_opened(tmp_path: Path, vocabularies: Vocabularies) -> None:
    ids = binarise([("", ""), (" ", "")], tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert ids.source(1).tolist() == []
    assert ids.source(1).dtype == np.uint16
    assert ids.target_lengths.tolist() == [0, 0]


def test_two_bytes_an_id_while_the_vocabulary_allows(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(65_560)]
    large = Subwords.train(words, settings=SubwordsConfig(type="word", size=65_537))
    small = Subwords.train(words, settings=SubwordsConfig(type="word", size=65_536))
    for target, item_type in ((large, np.uint32), (small, np.uint16)):
        last, folder = target.size - 1, tmp_path / str(target.size)
        pairs = [("w1", target.decode([last]))]
        ids = binarise(pairs, folder, vocabularies=Vocabularies(small, target), filters=None)
        assert ids.target(0).dtype == item_type
        assert ids.target(0).tolist() == [last]


# ------------------------------------------------------------------------------------------------------- interruptions

KILLED = """
import os, signal, sys
from pathlib import Path
from nmt.data.binarising import binarise
from nmt.data.subwords import Subwords, Vocabularies

def pairs():
    for number in range(20_000):
        yield "a b", "c"
    os.kill(os.getpid(), signal.SIGKILL)

model = Subwords.from_file(Path(sys.argv[1]))
binarise(pairs(), Path(sys.argv[2]), vocabularies=Vocabularies(model, model), filters=None)
"""


def test_a_killed_build_leaves_nothing_that_counts(tmp_path: Path, vocabularies: Vocabularies) -> None:
    model, cache = tmp_path / "model", tmp_path / "cache"
    model.write_bytes(vocabularies.source.model)
    killed = subprocess.run([sys.executable, "-c", KILLED, model, cache / "ids"], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = cache.iterdir()  # half a corpus was written, but not where it would be looked for
    assert left != cache / "ids"
    assert (left / "source.ids").stat().st_size > 0
    with pytest.raises(ValueError, match=r"there is no meta\.json\.seal"):
        PairedIds(cache / "ids")

    assert len(binarise(PAIRS, cache / "ids", vocabularies=vocabularies, filters=None)) == len(PAIRS)
    assert left.exists()  # its process could still be alive
    yesterday = time.time() - 25 * 3600
    for path in (*left.iterdir(), left):
        os.utime(path, (yesterday, yesterday))
    binarise(PAIRS, cache / "others", vocabularies=vocabularies, filters=None)
    assert sorted(path.name for path in cache.iterdir()) == ["ids", "others"]


def test_an_exception_leaves_nothing(tmp_path: Path, vocabularies: Vocabularies) -> None:
    def pairs() -> Iterator[tuple[str, str]]:
        yield "a", "b"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        binarise(pairs(), tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert not list(tmp_path.iterdir())


def test_an_exception_is_told_although_the_folder_is_gone(tmp_path: Path, vocabularies: Vocabularies) -> None:
    def pairs() -> Iterator[tuple[str, str]]:
        yield "a", "b"
        (partial,) = tmp_path.iterdir()
        shutil.rmtree(partial)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        binarise(pairs(), tmp_path / "ids", vocabularies=vocabularies, filters=None)


def test_two_builders_of_one_corpus(tmp_path: Path, vocabularies: Vocabularies) -> None:
    def pairs() -> Iterator[tuple[str, str]]:
        yield from PAIRS[:3]
        binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None)  # the other one is faster
        yield from PAIRS[3:]

    ids = binarise(pairs(), tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert ids.source_lengths.tolist() == [source for source, _ in PIECES]
    assert [path.name for path in tmp_path.iterdir()] == ["ids"]


@pytest.mark.parametrize("name", ["source.ids", "target.offsets", "meta.json"])
def test_a_damaged_folder_is_refused(tmp_path: Path, vocabularies: Vocabularies, name: str) -> None:
    folder = binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None).folder
    (folder / name).write_bytes((folder / name).read_bytes()[:-3])
    with pytest.raises(ValueError, match=rf"{name} has \d+ bytes instead of \d+"):
        PairedIds(folder)


def kept_of_files() -> float:
    """MiB of files that count as memory of this process."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("this system does not tell what a process keeps of its files")
    return int(re.search(r"RssFile:\s+(\d+)", status.read_text())[1]) / 1024  # type: ignore[index]


def test_looking_at_all_offsets_keeps_little_of_them(tmp_path: Path) -> None:
    rows = 3_000_000
    np.zeros(rows + 1, dtype="<i8").tofile(tmp_path / "offsets")
    with (tmp_path / "offsets").open("rb") as file:
        corpus = _Rows(_Mapped(np.empty(0, dtype="<u2"), None), _mapped(file, "<i8"))
    before = kept_of_files()
    corpus.check(rows)
    assert kept_of_files() - before < 5
    assert corpus.lengths().sum() == 0
    assert kept_of_files() - before < 5


def test_reading_a_corpus_to_its_end_keeps_little_of_it(tmp_path: Path) -> None:
    """What was read of the files does not stay with the process, as it would with a mapping never given back."""
    rows, length = 30_011, 1021
    values = np.arange(rows * length, dtype="<u4")
    values.tofile(tmp_path / "values")
    np.arange(0, (rows + 1) * length, length, dtype="<i8").tofile(tmp_path / "offsets")
    with (tmp_path / "values").open("rb") as file, (tmp_path / "offsets").open("rb") as offsets:
        corpus = _Rows(_mapped(file, "<u4"), _mapped(offsets, "<i8"))
    assert (corpus.lengths() == length).all()
    before, size = kept_of_files(), values.nbytes / 2**20
    order = np.random.default_rng(1).permutation(rows)
    first = corpus[int(order[0])]
    most = 0.0
    for count, row in enumerate(order):
        assert corpus[row][-1] == (int(row) + 1) * length - 1
        if count % 100 == 0:
            most = max(most, kept_of_files() - before)
    assert (first == values[order[0] * length :][:length]).all()  # an array read long ago is still good
    assert size > 110
    assert most < 60


ALIGNED = [("ab c", "ba", "1-0 0-0"), ("", "ab", ""), ("c", "b a", "0-1"), ("abcabc", "a", ""), ("a c", "d", "0-0")]


def test_alignments_stay_with_the_pairs_that_are_kept(
    tmp_path: Path, vocabularies: Vocabularies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the chunks: by hand ▁ab▁c has words of 3 and 2 pieces, and both are linked to all 3 pieces of ▁ba."""
    expected = [
        [(target, source, share) for target in range(3) for source, share in enumerate([1 / 6] * 3 + [1 / 4] * 2)],
        [(2, 0, 1 / 2), (2, 1, 1 / 2), (3, 0, 1 / 2), (3, 1, 1 / 2)],
        [(target, source, 1 / 2) for target in range(2) for source in range(2)],
    ]
    pairs, lines = [row[:2] for row in ALIGNED], [row[2] for row in ALIGNED]
    filters = Filters(max_length=6)
    for chunk in (1, 2, 100):
        monkeypatch.setattr(binarising, "_CHUNK", chunk)
        folder = tmp_path / str(chunk)
        ids = binarise(pairs, folder, vocabularies=vocabularies, filters=filters, alignments=iter(lines))
        for opened in (ids, PairedIds(folder)):
            assert opened.has_alignments
            assert len(opened) == 3
            for row, links in enumerate(expected):
                np.testing.assert_allclose(opened.links(row), np.array(links), rtol=1e-7)
        assert ids.report.aligned == 3 + 2 + 2
        assert ids.report.lines()[-1] == "alignments: 77.78% of the target pieces have a link"  # 7 of 9


def test_a_corpus_without_alignments_says_nothing_of_them(tmp_path: Path, vocabularies: Vocabularies) -> None:
    ids = binarise(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert not ids.has_alignments
    assert ids.report.aligned is None
    assert len(ids.report.lines()) == 3


def test_damaged_alignments_are_found(tmp_path: Path, vocabularies: Vocabularies) -> None:
    pairs, lines = [row[:2] for row in ALIGNED], [row[2] for row in ALIGNED]
    folder = binarise(pairs, tmp_path / "ids", vocabularies=vocabularies, filters=None, alignments=lines).folder
    content = bytearray((folder / "alignment.links").read_bytes())
    content[-1] ^= 1
    (folder / "alignment.links").write_bytes(content)
    with pytest.raises(ValueError, match=r"^alignment\.links is not as it was written"):
        PairedIds(folder)


def test_alignments_are_read_to_their_end(tmp_path: Path, vocabularies: Vocabularies) -> None:
    """Where a file that was changed meanwhile is found out; nothing of the corpus stays."""

    def changed() -> Iterator[str]:
        yield from (row[2] for row in ALIGNED)
        raise UserError("changed")

    pairs = [row[:2] for row in ALIGNED]
    with pytest.raises(UserError, match="changed"):
        binarise(pairs, tmp_path / "ids", vocabularies=vocabularies, filters=None, alignments=changed())
    assert not list(tmp_path.iterdir())


def test_alignments_of_text_that_was_cut_are_between_its_pieces(tmp_path: Path) -> None:
    """As they are in the files, whole words or not."""
    (tmp_path / "vocabulary").write_text("low@@\ner\nund\n", encoding="utf-8")
    words = Subwords.of_vocabulary(tmp_path / "vocabulary", joiner="@@")
    both = Vocabularies(words, words)
    ids = binarise([("low@@ er und", "und low@@ er")], tmp_path / "ids", vocabularies=both, filters=None)
    assert (ids.source_lengths.tolist(), ids.target_lengths.tolist()) == ([3], [3])
    pairs = [("low@@ er und", "und low@@ er")]
    aligned = binarise(pairs, tmp_path / "aligned", vocabularies=both, filters=None, alignments=["0-1 1-2 2-0"])
    assert aligned.links(0).tolist() == [[0, 2, 1], [1, 0, 1], [2, 1, 1]]
