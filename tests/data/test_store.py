"""Stored corpora: the same ids as before writing, the filters and their counts, and memory that is given back."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nmt.config.schema import SubwordsConfig
from nmt.data import store
from nmt.data.store import Filters, PairedIds, _Rows, write_ids
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import UserError
from tests.conftest import written_ids

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
    facts = write_ids(tmp_path, iter(PAIRS), vocabularies=vocabularies, filters=None, with_text=True)
    ids = PairedIds(tmp_path, json.loads(json.dumps(facts)))
    assert ids.source_lengths.dtype == np.int32
    assert len(ids) == len(PAIRS)  # without filters the empty ones are kept
    for row, (source, target) in enumerate(PAIRS):
        assert ids.source(row).tolist() == vocabularies.source.encode(source)
        assert ids.target(row).tolist() == vocabularies.target.encode(target)
        assert ids.text(row) == (source, target)
    assert ids.source_lengths.tolist() == [source for source, _ in PIECES]
    assert ids.target_lengths.tolist() == [target for _, target in PIECES]


def test_pairs_without_pieces(tmp_path: Path, vocabularies: Vocabularies) -> None:
    ids = written_ids([("", ""), ("", "")], tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert (len(ids), ids.source_lengths.tolist(), ids.target_lengths.tolist()) == (2, [0, 0], [0, 0])


def test_text_is_kept_only_when_asked_for(tmp_path: Path, vocabularies: Vocabularies) -> None:
    ids = written_ids(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=None)
    assert sorted(path.name for path in ids.folder.iterdir()) == [
        *("source.offsets", "source.values", "target.offsets", "target.values")
    ]


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
    ids = written_ids(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=filters, with_text=True)
    assert [ids.text(row) for row in range(len(ids))] == [PAIRS[row] for row in kept]
    report = ids.report
    assert (report.read, report.kept) == (len(PAIRS), len(kept))
    assert (report.empty, report.overlong, report.unbalanced) == counts
    assert report.source_pieces == sum(PIECES[row][0] for row in kept)
    assert report.target_pieces == sum(PIECES[row][1] for row in kept)


def test_chunks_leave_no_trace(tmp_path: Path, vocabularies: Vocabularies, monkeypatch: pytest.MonkeyPatch) -> None:
    filters = Filters(max_length=7)
    whole = written_ids(PAIRS, tmp_path / "whole", vocabularies=vocabularies, filters=filters)
    monkeypatch.setattr(store, "_CHUNK", 2)
    parts = written_ids(PAIRS, tmp_path / "parts", vocabularies=vocabularies, filters=filters)
    assert parts.report == whole.report
    for name in ("source.values", "source.offsets", "target.values", "target.offsets"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_unknown_pieces_are_counted_a_side(tmp_path: Path, vocabularies: Vocabularies) -> None:
    # "d" is known to the target model alone, "x" to neither
    report = written_ids([("abd", "xd x")], tmp_path / "ids", vocabularies=vocabularies, filters=Filters()).report
    assert (report.source_unknown, report.target_unknown) == (1, 2)
    assert report.lines() == [
        "1 pair read, 1 kept",
        "source: 4 pieces, 4.0 a sentence, 1 unknown (25.00%)",
        "target: 5 pieces, 5.0 a sentence, 2 unknown (40.00%)",
    ]


def test_everything_filtered_away_says_by_which_filter(tmp_path: Path, vocabularies: Vocabularies) -> None:
    with pytest.raises(UserError) as error:
        written_ids(PAIRS, tmp_path / "ids", vocabularies=vocabularies, filters=Filters(3, 1.2))
    assert error.value.messages[0] == (
        "no training pair is left of 6: 2 empty on one side, 4 longer than data.max_length = 3 pieces"
    )
    with pytest.raises(UserError, match="no training pair is left of 0"):
        written_ids([], tmp_path / "none", vocabularies=vocabularies, filters=None)


def test_two_bytes_an_id_while_the_vocabulary_allows(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(65_560)]
    large = Subwords.train(words, settings=SubwordsConfig(type="word", size=65_537))
    small = Subwords.train(words, settings=SubwordsConfig(type="word", size=65_536))
    for target, item_type in ((large, np.uint32), (small, np.uint16)):
        last, folder = target.size - 1, tmp_path / str(target.size)
        pairs = [("w1", target.decode([last]))]
        ids = written_ids(pairs, folder, vocabularies=Vocabularies(small, target), filters=None)
        assert ids.target(0).dtype == item_type
        assert ids.target(0).tolist() == [last]


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
        monkeypatch.setattr(store, "_CHUNK", chunk)
        folder = tmp_path / str(chunk)
        ids = written_ids(pairs, folder, vocabularies=vocabularies, filters=filters, alignments=iter(lines))
        assert ids.has_alignments
        assert len(ids) == 3
        for row, links in enumerate(expected):
            np.testing.assert_allclose(ids.links(row), np.array(links), rtol=1e-7)
        assert ids.report.aligned == 3 + 2 + 2
        assert ids.report.lines()[-1] == "alignments: 77.78% of the target pieces have a link"  # 7 of 9


def test_alignments_of_text_that_was_cut_are_between_its_pieces(tmp_path: Path) -> None:
    """As they are in the files, whole words or not."""
    (tmp_path / "vocabulary").write_text("low@@\ner\nund\n", encoding="utf-8")
    words = Subwords.of_vocabulary(tmp_path / "vocabulary", joiner="@@")
    both = Vocabularies(words, words)
    ids = written_ids([("low@@ er und", "und low@@ er")], tmp_path / "ids", vocabularies=both, filters=None)
    assert (ids.source_lengths.tolist(), ids.target_lengths.tolist()) == ([3], [3])
    pairs = [("low@@ er und", "und low@@ er")]
    aligned = written_ids(pairs, tmp_path / "aligned", vocabularies=both, filters=None, alignments=["0-1 1-2 2-0"])
    assert aligned.links(0).tolist() == [[0, 2, 1], [1, 0, 1], [2, 1, 1]]


def kept_of_files() -> float:
    """MiB of files that count as memory of this process."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("this system does not tell what a process keeps of its files")
    return int(re.search(r"RssFile:\s+(\d+)", status.read_text())[1]) / 1024  # type: ignore[index]


def test_reading_a_corpus_to_its_end_keeps_little_of_it(tmp_path: Path) -> None:
    """What was read of the files does not stay with the process, as it would with a mapping never given back."""
    rows, length = 30_011, 1021
    values = np.arange(rows * length, dtype="<u4")
    values.tofile(tmp_path / "name.values")
    np.arange(0, (rows + 1) * length, length, dtype="<i8").tofile(tmp_path / "name.offsets")
    corpus = _Rows(tmp_path, "name", "<u4")
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
