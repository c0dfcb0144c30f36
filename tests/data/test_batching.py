"""Batches: every pair once per epoch, within limits, with little padding, and the same after an interruption."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.config.schema import SubwordSampling, SubwordsConfig
from nmt.data.batch import Batch, make_batch, pad_with_end
from nmt.data.batching import batches, read_batch
from nmt.data.planning import padding_share
from nmt.data.store import Filters, PairedIds
from nmt.data.subwords import Subwords, Vocabularies
from nmt.symbols import BEGIN, END, PAD
from tests.conftest import planned, written_ids


def lengths(pairs: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    source = random.integers(1, 41, pairs).astype(np.int32)
    return source, np.clip(source + random.integers(-4, 6, pairs), 1, 60).astype(np.int32)


def as_lists(plan: Sequence[np.ndarray]) -> list[list[int]]:
    return [rows.tolist() for rows in plan]


# ---------------------------------------------------------------------------------------------------------------- plan


@pytest.mark.parametrize(("batch_by", "batch_size"), [("sentences", 7), ("sentences", 5000), ("tokens", 300)])
def test_every_pair_once_an_epoch(batch_by: str, batch_size: int) -> None:
    source, target = lengths(1009)
    plan = planned(source, target, batch_size=batch_size, batch_by=batch_by, seed=1, epoch=2)
    assert sorted(np.concatenate(plan).tolist()) == list(range(1009))


def test_batches_of_tokens_never_exceed_the_limit_and_are_full() -> None:
    source, target = lengths(1009)
    widths = np.maximum(source, target) + 1
    plan = planned(source, target, batch_size=300, batch_by="tokens", seed=1, epoch=2)
    for rows in plan:
        assert len(rows) * widths[rows].max() <= 300
    full = sum((len(rows) + 1) * (widths[rows].max() + 3) > 300 for rows in plan)
    assert full >= len(plan) - 1  # only the last one of the sorted order may be short


def test_a_pair_longer_than_the_batch_is_alone() -> None:
    source, target = np.array([3, 50, 2, 4]), np.array([3, 2, 2, 60])
    plan = planned(source, target, batch_size=10, batch_by="tokens", seed=1, epoch=2)
    assert sorted(sorted(rows) for rows in as_lists(plan)) == [[0, 2], [1], [3]]


@pytest.mark.parametrize("batch_by", ["sentences", "tokens"])
def test_the_plan_is_a_pure_function_of_seed_and_epoch(batch_by: str) -> None:
    def plan(seed: int, epoch: int) -> list[list[int]]:
        source, target = lengths(503)
        return as_lists(planned(source, target, batch_size=90, batch_by=batch_by, seed=seed, epoch=epoch))

    np.random.seed(1)
    state = np.random.get_state()[1].tolist()
    expected = plan(1, 2)
    np.random.seed(5)
    torch.manual_seed(5)
    assert plan(1, 2) == expected
    assert len({str(plan(*numbers)) for numbers in ((1, 2), (2, 1), (1, 3), (2, 2), (0, 12))}) == 5
    np.random.seed(1)
    plan(1, 2)
    assert np.random.get_state()[1].tolist() == state  # global random numbers are neither read nor drawn


@pytest.mark.parametrize(
    ("sort_by", "expected"),
    [
        ("source", [[0, 1], [2, 3], [4, 5]]),  # (1, 9), (1, 2); (2, 1), (2, 8); (5, 5), (5, 3)
        ("target", [[1, 2], [4, 5], [0, 3]]),  # (2, 1), (1, 2); (5, 3), (5, 5); (2, 8), (1, 9)
        ("longer", [[1, 2], [4, 5], [0, 3]]),  # 2, 2; 5, 5; 8, 9
    ],
)
def test_what_pairs_are_sorted_by(sort_by: str, expected: list[list[int]]) -> None:
    source, target = np.array([1, 1, 2, 2, 5, 5]), np.array([9, 2, 1, 8, 5, 3])
    plan = planned(source, target, batch_size=2, batch_by="sentences", sort_by=sort_by, seed=1, epoch=2)
    assert sorted(sorted(rows.tolist()) for rows in plan) == sorted(expected)


@pytest.mark.parametrize(("batch_by", "batch_size"), [("sentences", 7), ("tokens", 300)])
def test_sorted_a_part_at_a_time(batch_by: str, batch_size: int) -> None:
    """1,009 pairs, 70 at a time: 14 random parts of 70 pairs and one of 29, each sorted and cut on its own."""
    source, target = lengths(1009)
    options = {"batch_size": batch_size, "batch_by": batch_by, "seed": 1, "epoch": 2}
    plan = planned(source, target, sort_pairs=70, **options)
    whole = planned(source, target, **options)
    assert sorted(np.concatenate(plan).tolist()) == list(range(1009))
    assert as_lists(planned(source, target, sort_pairs=1009, **options)) == as_lists(whole)
    loose, tight = padding_share(plan, source, target), padding_share(whole, source, target)
    assert 1.5 * tight < loose < 0.4
    if batch_by == "sentences":
        assert sorted(map(len, plan)) == [1] + [7] * 144
    widths = np.maximum(source, target) + 1
    assert batch_by == "sentences" or all(len(rows) * widths[rows].max() <= 300 for rows in plan)


@pytest.mark.parametrize(
    ("batch_order", "expected"),
    [("sorted", [[1, 3], [2, 0], [4, 6], [7, 5], [9, 8]]), ("shuffled_by_part", [{1, 3}, {2, 0}, {4, 6}, {7, 5}])],
)
def test_parts_follow_each_other(batch_order: str, expected: list[list[int]] | list[set[int]]) -> None:
    """Parts of 4 pairs in the order of the files: lengths 7 1 6 2, 3 9 4 8, 5 2."""
    same = np.array([7, 1, 6, 2, 3, 9, 4, 8, 5, 2])
    plan = as_lists(
        planned(
            same,
            same,
            batch_size=2,
            batch_by="sentences",
            sort_pairs=4,
            shuffle="never",
            batch_order=batch_order,
            seed=1,
            epoch=2,
        )
    )
    if batch_order == "sorted":
        assert plan == expected
    else:
        assert [set(rows) for rows in plan[:2]] in (expected[:2], expected[1::-1])
        assert [set(rows) for rows in plan[2:4]] in (expected[2:], expected[:1:-1])
        assert set(plan[4]) == {8, 9}


def test_batches_of_a_part_come_in_another_order_in_the_next_epoch() -> None:
    source, target = lengths(1009)
    options = {"batch_size": 7, "batch_by": "sentences", "sort_pairs": 70, "shuffle": "never", "seed": 1}
    plans = [
        as_lists(planned(source, target, batch_order="shuffled_by_part", epoch=epoch, **options)) for epoch in (1, 2)
    ]
    assert plans[0] != plans[1]
    for start in range(0, 145, 10):  # the same batches, part by part
        assert sorted(plans[0][start : start + 10]) == sorted(plans[1][start : start + 10])


def test_pairs_shuffled_once_make_the_same_batches_in_every_epoch() -> None:
    source, target = lengths(503)

    def plan(shuffle: str, epoch: int, seed: int = 1, batch_order: str = "sorted") -> list[list[int]]:
        options = {"batch_size": 7, "batch_by": "sentences", "sort_pairs": 70, "batch_order": batch_order}
        return as_lists(planned(source, target, shuffle=shuffle, seed=seed, epoch=epoch, **options))

    assert plan("once", 0) == plan("once", 5) != plan("once", 5, seed=2)
    assert plan("every_epoch", 0) == plan("once", 0)
    assert plan("never", 0) == plan("never", 5, seed=2) != plan("once", 0)
    assert plan("once", 0, batch_order="shuffled") != plan("once", 5, batch_order="shuffled")
    assert sorted(plan("once", 0, batch_order="shuffled")) == sorted(plan("once", 0))


def test_padding_share_by_hand() -> None:
    # sources 2 and 4 pieces, targets 1 and 3, END added: 3 + 5 of 10 and 2 + 4 of 8 positions are real
    assert padding_share([np.array([0, 1])], np.array([2, 4]), np.array([1, 3])) == pytest.approx(1 - 14 / 18)
    assert padding_share([np.array([0]), np.array([1])], np.array([2, 4]), np.array([1, 3])) == 0
    # of a plan with weights: the pair of 9 and 9 pieces is not read, the first pair is read twice
    share = padding_share([np.array([0, 1]), np.array([0])], np.array([2, 4, 9]), np.array([1, 3, 9]))
    assert share == pytest.approx(1 - 19 / 23)


# -------------------------------------------------------------------------------------------------------------- tensors


def test_a_batch_by_hand() -> None:
    batch = make_batch([[7, 8], [9]], [[5], [4, 5, 6]], np.array([11, 3]))
    assert batch.source.tolist() == [[7, 8, END], [9, END, PAD]]
    assert batch.source_lengths.tolist() == [3, 2]
    assert batch.target.tolist() == [[BEGIN, 5, END, PAD, PAD], [BEGIN, 4, 5, 6, END]]
    assert batch.target_lengths.tolist() == [2, 4]
    assert batch.target_input.tolist() == [[BEGIN, 5, END, PAD], [BEGIN, 4, 5, 6]]
    assert batch.target_output.tolist() == [[5, END, PAD, PAD], [4, 5, 6, END]]
    assert batch.target_tokens == 6
    assert batch.indices.tolist() == [11, 3]
    assert {tensor.dtype for tensor in batch[:4]} == {torch.int64}
    moved = batch.to("cpu")
    assert moved.source.tolist() == batch.source.tolist()
    assert moved.indices is batch.indices


def test_an_empty_source_is_its_end_alone() -> None:
    source, source_lengths = pad_with_end([[], [5, 6]])
    assert source.tolist() == [[END, PAD, PAD], [5, 6, END]]
    assert source_lengths.tolist() == [1, 3]
    assert pad_with_end([[]])[0].tolist() == [[END]]


# ------------------------------------------------------------------------------------------------------------ iteration

TEXT = [(" ".join("abcdefg"[: n % 7 + 1]), " ".join("gfedcba"[: (n * 3) % 7 + 1])) for n in range(60)]
TEXT = [(f"{source} abcd efg", f"{target} gfe dcba") for source, target in TEXT]


@pytest.fixture(scope="module")
def vocabularies() -> Vocabularies:
    lines = [line for pair in TEXT for line in pair]
    joint = Subwords.train(lines, settings=SubwordsConfig(type="bpe", size=24))
    return Vocabularies(joint, joint)


@pytest.fixture(scope="module")
def ids(vocabularies: Vocabularies, tmp_path_factory: pytest.TempPathFactory) -> PairedIds:
    folder = tmp_path_factory.mktemp("corpus") / "ids"
    return written_ids(TEXT, folder, vocabularies=vocabularies, filters=Filters(), with_text=True)


def equal(left: Batch, right: Batch) -> bool:
    return all(torch.equal(one, other) for one, other in zip(left[:4], right[:4], strict=True)) and (
        left.indices.tolist() == right.indices.tolist()
    )


@pytest.mark.parametrize("sampling", [None, SubwordSampling(alpha=0.4)])
def test_a_resumed_iteration_is_the_tail_of_the_uninterrupted_one(
    ids: PairedIds, vocabularies: Vocabularies, sampling: SubwordSampling | None
) -> None:
    plan = planned(ids.source_lengths, ids.target_lengths, batch_size=7, batch_by="sentences", seed=1, epoch=2)

    def run(start: int, epoch: int = 2) -> list[Batch]:
        options = {"sampling": sampling, "vocabularies": vocabularies, "seed": 1, "epoch": epoch}
        return list(batches(ids, plan, start=start, **options))

    whole = run(0)
    assert len(whole) == len(plan) == 9
    for start in (0, 1, 4, 8, 9):
        tail = run(start)
        assert len(tail) == len(plan) - start
        assert all(equal(one, other) for one, other in zip(tail, whole[start:], strict=True))
    if sampling is not None:
        assert not all(equal(one, other) for one, other in zip(run(0, epoch=3), whole, strict=True))


@pytest.mark.parametrize("sampling", [None, SubwordSampling(alpha=0.4)])
def test_batches_hold_the_text_of_their_rows(
    ids: PairedIds, vocabularies: Vocabularies, sampling: SubwordSampling | None
) -> None:
    plan = planned(ids.source_lengths, ids.target_lengths, batch_size=90, batch_by="tokens", seed=1, epoch=2)
    seen = []
    for batch in batches(ids, plan, sampling=sampling, vocabularies=vocabularies, seed=1, epoch=2):
        for row, source, target in zip(batch.indices, batch.source, batch.target, strict=True):
            assert (vocabularies.source.decode(source), vocabularies.target.decode(target)) == TEXT[row]
            seen.append(int(row))
    assert sorted(seen) == list(range(len(TEXT)))


@pytest.mark.parametrize("sampling", [None, SubwordSampling(alpha=0.4)])
@pytest.mark.parametrize("size", [2, 3, 90])
def test_processes_share_a_batch(
    ids: PairedIds, vocabularies: Vocabularies, sampling: SubwordSampling | None, size: int
) -> None:
    """Together they have its rows once, and each about as many tokens; of more processes than rows some have none."""
    plan = planned(ids.source_lengths, ids.target_lengths, batch_size=13, batch_by="sentences", seed=1, epoch=2)
    options = {"sampling": sampling, "vocabularies": vocabularies, "seed": 1}
    shares = [list(batches(ids, plan, share=(rank, size), **options)) for rank in range(size)]
    for whole, *parts in zip(batches(ids, plan, **options), *shares, strict=True):
        assert whole is not None
        present = [part for part in parts if part is not None]
        assert len(present) == min(size, len(whole.indices))
        assert sorted(row for part in present for row in part.indices) == sorted(whole.indices)
        tokens = [int(part.source_lengths.sum()) for part in present]
        assert max(tokens) - min(tokens) <= int(whole.source_lengths.max())


def test_sampled_pairs_are_dealt_out_by_their_new_lengths(ids: PairedIds, vocabularies: Vocabularies) -> None:
    """Batches have their planned numbers of rows, the shortest pairs where planned, and little padding."""
    plan = planned(ids.source_lengths, ids.target_lengths, batch_size=7, batch_by="sentences", seed=1, epoch=2)
    sampled = list(batches(ids, plan, sampling=SubwordSampling(alpha=0.4), vocabularies=vocabularies, seed=1))
    assert [len(batch.indices) for batch in sampled] == [len(rows) for rows in plan]
    usual = [float(ids.source_lengths[rows].mean()) for rows in plan]
    for short, long in zip(*(np.argsort(usual)[part] for part in (slice(0, -1), slice(1, None))), strict=True):
        assert sampled[short].source_lengths.max() <= sampled[long].source_lengths.min()


def test_sampled_sentences_are_at_most_twice_as_long_as_the_longest(tmp_path: Path) -> None:
    words = ["abcdefgh", "hgfedcba"]
    joint = Subwords.train(words * 9, settings=SubwordsConfig(type="bpe", size=27))
    both = Vocabularies(joint, joint)
    text = [(word, word) for word in words]
    ids = written_ids(text, tmp_path / "ids", vocabularies=both, filters=None, with_text=True)
    assert ids.source_lengths.tolist() == [2, 2]
    (batch,) = batches(ids, [np.arange(2)], sampling=SubwordSampling(alpha=1.0), vocabularies=both, seed=0)
    assert [len(sampled) for sampled in joint.sample(words, sampling=SubwordSampling(alpha=1.0), seed=1)] == [9, 9]
    assert batch.source_lengths.tolist() == [3, 3]  # not 9 letters and END, but the best segmentation and END


# ---------------------------------------------------------------------------------------------------------- alignments


@pytest.fixture
def aligned(tmp_path: Path) -> PairedIds:
    """Pieces are letters and ▁: "ab c" has 5. The links are of the words 0-0, 1-0 and 0-1, none, and 0-0."""
    subwords = Subwords.train(["a b c", "abc"], settings=SubwordsConfig(type="char", size=50))
    pairs = [("ab c", "b a"), ("c", "abc"), ("a", "c")]
    lines = ["0-0 1-0 0-1", "", "0-0"]
    both = Vocabularies(subwords, subwords)
    return written_ids(pairs, tmp_path / "ids", vocabularies=both, filters=None, alignments=lines)


def dense(batch: Batch) -> np.ndarray:
    """A (batch, target_length, source_length) of a batch."""
    assert batch.links is not None
    alignment = np.zeros((len(batch.indices), batch.target_output.size(1), batch.source.size(1)))
    alignment[batch.links.rows, batch.links.targets, batch.links.sources] = batch.links.shares
    return alignment


def test_links_of_a_batch(aligned: PairedIds) -> None:
    batch = read_batch(aligned, np.array([2, 0, 1]))
    expected = np.zeros((3, 5, 6))  # ▁abc and ▁ab▁c with END
    expected[0, :2, :2] = 1 / 2  # ▁c to ▁a
    expected[1, :2, :5] = [1 / 6, 1 / 6, 1 / 6, 1 / 4, 1 / 4]  # ▁b to ▁ab and ▁c
    expected[1, 2:4, :3] = 1 / 3  # ▁a to ▁ab
    np.testing.assert_allclose(dense(batch), expected, rtol=1e-6)
    assert dense(batch).sum(2).round(6).tolist() == [[1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [0] * 5]


def test_links_stay_with_the_rows_of_halves_and_shares(aligned: PairedIds) -> None:
    alone = {row: dense(read_batch(aligned, np.array([row])))[0] for row in range(3)}
    batch = read_batch(aligned, np.array([1, 0, 2]))
    plan = batch.indices
    shares = [read_batch(aligned, plan[rank::2]) for rank in (0, 1)]
    seen = []
    for part in (batch, *batch.halves(), *batch.halves()[1].halves(), *shares):
        for number, row in enumerate(part.indices):
            links = dense(part)[number]
            seen.append(int(row))
            expected = np.zeros_like(links)
            width, height = alone[row].shape
            expected[:width, :height] = alone[row]
            np.testing.assert_array_equal(links, expected)
    assert sorted(seen) == sorted([0, 1, 2] * 3 + [0, 2])


def test_links_are_of_words_however_they_are_cut(vocabularies: Vocabularies, tmp_path: Path) -> None:
    """Merged to words, those of a sampled segmentation are those of the best one."""
    lines = [f"0-{len(target.split()) - 1} {len(source.split()) - 1}-0 1-0" for source, target in TEXT]
    ids = written_ids(TEXT, tmp_path / "ids", vocabularies=vocabularies, filters=None, with_text=True, alignments=lines)
    (batch,) = batches(
        ids, [np.arange(len(TEXT))], sampling=SubwordSampling(alpha=0.5), vocabularies=vocabularies, seed=1
    )
    assert not equal(batch, read_batch(ids, batch.indices))
    for links, row, *pieces in zip(dense(batch), batch.indices, batch.source, batch.target_output, strict=True):
        source, target = (np.array(joint.words_of_pieces(one)) for joint, one in zip(vocabularies, pieces, strict=True))
        words = {(int(source[j]) - 1, int(target[t]) - 1) for t, j in zip(*links.nonzero(), strict=True)}
        expected = {(int(link[0]), int(link[1])) for link in (text.split("-") for text in set(lines[row].split()))}
        assert words == expected
        for piece in links.sum(1).nonzero()[0]:
            assert links[piece].sum() == pytest.approx(1.0)
