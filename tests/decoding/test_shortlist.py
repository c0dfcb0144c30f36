"""Shortlists: what they allow, that nothing else is written, and that a shortlist of everything changes nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import SamplingConfig, SubwordSampling, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.shortlist import (
    LONGEST,
    MULTIPLE,
    Shortlist,
    load_shortlist,
    save_shortlist,
    train_shortlist,
)
from nmt.decoding.translator import Translation, Translator
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq
from nmt.symbols import BEGIN, END, PAD, UNKNOWN
from nmt.tensor_file import write_tensors
from tests.batch_sizes import in_batches
from tests.decoding.conftest import DECODERS, TEXT, network
from tests.known_model import save_known_model
from tests.translating import translate

SIZE = 71
LINES = [*TEXT, "A dog.", "", "The boy sells the red ball!", "Two dogs", f"{TEXT[0]} {TEXT[1]}"]
GERMAN = ["Hund Feld gr\u00fcn", "zwei Bank", "Frau rot", "Ball?", "kaltes Wasser See", "alter Mann Markt"]
Pairs = Sequence[tuple[str, str]]

OPTIONS: dict[str, dict[str, object]] = {
    "greedy": {"beam_size": 1},
    "n-best": {"beam_size": 5, "n_best": 5},
    "rules": {
        "beam_size": 4,
        "minimum_length": 6,
        "minimum_length_ratio": 0.4,
        "no_repeat_ngram_size": 2,
        "suppress_unknown": True,
    },
    "coverage": {"beam_size": 3, "n_best": 2, "coverage_penalty": 0.3, "length_penalty": 0.6},
    "diverse": {"beam_size": 6, "n_best": 3, "diversity": 0.7},
    "sampling": {"n_best": 3, "sampling": SamplingConfig(seed=5, top_p=0.95, temperature=1.3)},
    "prefixes": {"beam_size": 3, "prefixes": ["Children j", "", "jump", *[""] * 8]},
    "constraints": {"beam_size": 8, "n_best": 2, "constraints": ["jump", "", "old\tj", *[""] * 8]},
}
OTHERS = [kind for kind in (*DECODERS, "ensemble") if kind != "luong"]
for settings in OPTIONS.values():
    settings |= {"max_length_ratio": 0.3, "max_length_extra": 4}  # random networks find no end


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return list(zip(TEXT, reversed(TEXT), strict=True))


@pytest.fixture(scope="module")
def small(vocabularies: Vocabularies, pairs: Pairs) -> Shortlist:
    """Some ten to thirty pieces for each line."""
    return train_shortlist(pairs, vocabularies, translations=2, most_frequent=3)[0]


@pytest.fixture(scope="module")
def everything(vocabularies: Vocabularies, pairs: Pairs) -> Shortlist:
    return train_shortlist(pairs, vocabularies, most_frequent=SIZE)[0]


def models(kind: str = "luong") -> list[Seq2Seq]:
    kinds = ["luong", "bahdanau"] if kind == "ensemble" else [kind]
    return [network(kind, source_size=SIZE, target_size=SIZE) for kind in kinds]


def allowed(shortlist: Shortlist, vocabularies: Vocabularies, line: str, *more: str) -> set[int]:
    """The ids that the translation of a line may have, from the tensors and the rules in plain Python."""
    source = vocabularies.source.encode(line)
    ids = {PAD, UNKNOWN, BEGIN, END, *shortlist.frequent.tolist()}
    for token in source:
        ids |= set(shortlist.translations[token].tolist())
    return ids.union(*(vocabularies.target.encode(text) for text in more))


def tokens(vocabularies: Vocabularies, translation: Translation) -> list[int]:
    ids = {piece: token for token, piece in enumerate(vocabularies.target.pieces(range(SIZE)))}
    return [ids[piece] for piece in translation.tokens]


def assert_equal(
    translations: Sequence[Sequence[Translation]], expected: Sequence[Sequence[Translation]], *, rel: float = 1e-9
) -> None:
    assert [[translation.tokens for translation in best] for best in translations] == [
        [translation.tokens for translation in best] for best in expected
    ]
    assert [[translation.text for translation in best] for best in translations] == [
        [translation.text for translation in best] for best in expected
    ]
    scores = [[translation.score for best in every for translation in best] for every in (translations, expected)]
    assert scores[0] == pytest.approx(scores[1], rel=rel)


# --------------------------------------------------------------------------------------------------- the search with it


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("luong", name) for name in OPTIONS), *((kind, "n-best") for kind in OTHERS)],
)
def test_a_shortlist_of_all_pieces_changes_nothing(
    kind: str, name: str, vocabularies: Vocabularies, everything: Shortlist
) -> None:
    together, options = models(kind), OPTIONS[name]
    expected = list(translate(Translator(together, vocabularies), LINES, **options))
    translations = list(translate(Translator(together, vocabularies, shortlist=everything), LINES, **options))
    assert_equal(translations, expected)
    assert len({best[0].text for best in translations}) > 5


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_only_the_pieces_of_a_line_are_written_whatever_its_batch(
    options: dict[str, object], vocabularies: Vocabularies, small: Shortlist
) -> None:
    together = models("ensemble")
    translator = Translator(together, vocabularies, shortlist=small)
    translations = list(translate(translator, LINES, **options))
    outside = 0
    for place, (line, best) in enumerate(zip(LINES, translations, strict=True)):
        more = [str(options[name][place]) for name in ("prefixes", "constraints") if name in options]  # type: ignore[index]
        more = [text for entry in more for text in entry.split("\t")]
        ids = allowed(small, vocabularies, line, *more)
        outside += len(ids) > len(allowed(small, vocabularies, line))
        assert len(ids) < 50
        for translation in best:
            assert {*tokens(vocabularies, translation)} <= ids
            if "prefixes" in options and more[0]:
                assert translation.text.startswith(more[0])
            if "constraints" in options:
                assert all(text in translation.text for text in more)
    assert outside or not {"prefixes", "constraints"} & options.keys()
    if outside:
        return
    free = translate(Translator(together, vocabularies), LINES, **options)
    assert [best[0].text for best in free] != [best[0].text for best in translations]


def test_phrases_do_not_ask_what_the_neighbors_may_write(vocabularies: Vocabularies, small: Shortlist) -> None:
    """One line may write beginnings of words only, another pieces inside words; the unknown piece may be in both."""
    pieces = vocabularies.target.pieces(range(SIZE))
    begin = [token for token in range(4, SIZE) if pieces[token].startswith("\u2581")]
    inside = [token for token in range(4, SIZE) if not pieces[token].startswith("\u2581")]
    words = [(word, {*vocabularies.source.encode(word)}) for line in TEXT for word in line.split()]
    lines = next([one, other] for one, ids in words for other, others in words if not ids & others)
    translations = np.full((len(small.translations), 8), PAD)
    for line, allowed_pieces in zip(lines, (begin, inside), strict=True):
        for token in vocabularies.source.encode(line):
            translations[token] = allowed_pieces[:8]
    by_hand = small._replace(translations=translations, frequent=small.frequent[:0])
    translator = Translator(models(), vocabularies, shortlist=by_hand)
    for token in begin[::3]:
        word = pieces[token].removeprefix("\u2581")
        options: dict[str, Any] = {"beam_size": 5, "n_best": 5, "max_length_ratio": 0.3}
        together = list(translate(translator, lines, constraints=[word, word], **options))
        assert_equal(together[:1], list(translate(translator, lines[:1], constraints=[word], **options)))


@pytest.mark.parametrize("name", ["n-best", "sampling", "prefixes", "constraints"])
def test_no_batch_changes_a_translation(name: str, vocabularies: Vocabularies, small: Shortlist) -> None:
    translator = Translator(models("bahdanau"), vocabularies, shortlist=small)
    options = OPTIONS[name]
    alone = in_batches(translator, LINES, 1, **options)
    assert_equal(in_batches(translator, LINES, 7, **options), alone)
    if name != "sampling":  # which draws by the line's place
        order = torch.randperm(len(LINES), generator=torch.Generator().manual_seed(1)).tolist()
        beside = {key: [value[place] for place in order] for key, value in options.items() if isinstance(value, list)}
        mixed = in_batches(translator, [LINES[place] for place in order], 64, **{**options, **beside})
        assert_equal(mixed, [alone[place] for place in order])


def test_alignments_remain_right(tmp_path: Path) -> None:
    source, target = ["Today", "our", "men", "dance"], ["Heute", "tanzen", "unsere", "M\u00e4nner"]
    links = [(0, 0), (3, 1), (1, 2), (2, 3)]
    save_known_model(tmp_path / "known", source, target, links)
    plain = Translator.load(tmp_path / "known")
    pairs = [(" ".join(source), " ".join(target)), ("Today", "Heute")]
    trained = train_shortlist(pairs, plain.vocabularies, most_frequent=0)[0]
    assert np.unique(trained.translations[plain.vocabularies.source.encode("Today")]).tolist() == [
        0,
        *sorted(plain.vocabularies.target.encode(" ".join(target))),
    ]
    save_shortlist(tmp_path / "list", trained)
    translator = Translator.load(tmp_path / "known", shortlist=tmp_path / "list")
    ((best,),) = translator.translate([" ".join(source)], alignments=True, beam_size=2)
    assert (best.text, best.alignment) == (" ".join(target), links)

    ((expected,),) = plain.translate([" ".join(source)], alignments=True, beam_size=2)
    assert best.soft_alignment is not None
    assert expected.soft_alignment is not None
    np.testing.assert_allclose(best.soft_alignment.weights, expected.soft_alignment.weights, atol=1e-6)


def test_columns_by_hand() -> None:
    translations = np.full((9, 2), PAD)
    translations[5] = [20, 11]
    translations[6] = [7, PAD]
    shortlist = Shortlist(translations, np.array([30]), 33, ("", ""))
    columns = shortlist.columns(np.array([[5, 6, END], [6, END, PAD]]), [[], [25]])
    assert columns.ids.tolist() == [0, 1, 2, 3, 7, 11, 20, 25, 30] + [PAD] * (MULTIPLE - 9)
    permitted = [columns.ids[~row].tolist() for row in columns.barred]
    assert permitted == [[0, 1, 2, 3, 7, 11, 20, 30], [0, 1, 2, 3, 7, 25, 30]]


# ----------------------------------------------------------------------------------------------- training and the file


@pytest.fixture(scope="module")
def apart() -> Vocabularies:
    """A vocabulary for each side."""
    sides = [Subwords.train(lines, settings=SubwordsConfig(size=60)) for lines in (TEXT, GERMAN)]
    return Vocabularies(*sides)


def test_what_is_learnt(vocabularies: Vocabularies, apart: Vocabularies, pairs: Pairs) -> None:
    trained, count = train_shortlist(pairs, vocabularies, translations=4, most_frequent=5)
    assert count == 6
    written = [token for _, target in pairs for token in vocabularies.target.encode(target)]
    best = sorted(range(SIZE), key=lambda token: (-written.count(token), token))[:5]
    assert trained.frequent.tolist() == best
    assert trained.translations[:, 4].tolist() == list(range(SIZE))  # of a joint vocabulary a piece itself
    assert set(trained.translations[:, :4].flatten().tolist()) <= {PAD, *written}
    other = train_shortlist(list(zip(TEXT, GERMAN, strict=True)), apart, translations=4)[0]
    assert other.translations.shape == (60, 4)


def test_pairs_that_are_left_out(vocabularies: Vocabularies, pairs: Pairs) -> None:
    more = [("", "A dog"), ("A dog", " "), ("", ""), ("A dog", "the " * (LONGEST + 1)), ("the " * 300, "A dog")]
    trained, count = train_shortlist([*pairs, *more], vocabularies)
    assert count == 6
    expected, _ = train_shortlist(pairs, vocabularies)
    assert np.array_equal(trained.translations, expected.translations)
    with pytest.raises(UserError, match=r"no sentence pair is left to learn from: all are blank or have more than"):
        train_shortlist(more, vocabularies)


def test_pieces_of_a_text_cut_at_random(vocabularies: Vocabularies, pairs: Pairs) -> None:
    """With the sampling of its training, a model writes pieces that no best segmentation has."""
    plain = train_shortlist(pairs, vocabularies, translations=SIZE)[0]
    sampled = train_shortlist(pairs, vocabularies, translations=SIZE, sampling=SubwordSampling(alpha=0.5))[0]
    again = train_shortlist(pairs, vocabularies, translations=SIZE, sampling=SubwordSampling(alpha=0.5))[0]
    assert np.array_equal(sampled.translations, again.translations)
    token = vocabularies.source.encode("dog")[0]
    assert {*plain.translations[token].tolist()} < {*sampled.translations[token].tolist()}


def test_the_file(tmp_path: Path, vocabularies: Vocabularies, small: Shortlist, pairs: Pairs) -> None:
    save_shortlist(tmp_path / "one", small)
    loaded = load_shortlist(tmp_path / "one").checked(vocabularies)
    assert np.array_equal(loaded.translations, small.translations)
    assert np.array_equal(loaded.frequent, small.frequent)
    assert loaded[2:4] == small[2:4]
    save_shortlist(tmp_path / "two", train_shortlist(pairs, vocabularies, translations=2, most_frequent=3)[0])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    save_shortlist(tmp_path / "none", small._replace(frequent=small.frequent[:0]))
    assert len(load_shortlist(tmp_path / "none").checked(vocabularies).frequent) == 0


def test_a_shortlist_of_another_model(tmp_path: Path, vocabularies: Vocabularies, small: Shortlist, apart) -> None:
    save_shortlist(tmp_path / "list", small)
    with pytest.raises(UserError, match="list was made for another model, with another source and target vocabulary"):
        load_shortlist(tmp_path / "list").checked(apart)
    half = Vocabularies(vocabularies.source, apart.target)
    with pytest.raises(UserError, match="the shortlist was made for another model, with another target vocabulary;"):
        Translator([network(source_size=SIZE, target_size=60)], half, shortlist=small)


def test_a_model_with_a_damaged_vocabulary_is_what_is_said(tmp_path: Path) -> None:
    """And not that the shortlist of somebody who has done nothing wrong is for other vocabularies."""
    save_known_model(tmp_path / "model", ["Today", "dance"], ["Heute", "tanzen"], [(0, 0), (1, 1)])
    vocabularies = Translator.load(tmp_path / "model").vocabularies
    save_shortlist(tmp_path / "list", train_shortlist([("Today", "Heute")], vocabularies)[0])
    (tmp_path / "model").write_bytes((tmp_path / "model").read_bytes().replace(b"dance", b"dancd"))
    with pytest.raises(UserError, match=r"model: damaged: its content is not what was written"):
        Translator.load(tmp_path / "model", shortlist=tmp_path / "list")


def test_a_missing_shortlist_is_said_without_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They need PyTorch, which may not be installed where graphs are kept."""
    save_known_model(tmp_path / "model", ["Today"], ["Heute"], [(0, 0)])
    monkeypatch.setattr("nmt.decoding.translator.load_model", None)
    with pytest.raises(UserError, match="nope: cannot be read"):
        Translator.load(tmp_path / "model", shortlist=tmp_path / "nope")


def test_a_shape_that_numpy_does_not_take(tmp_path: Path, vocabularies: Vocabularies) -> None:
    odd = {name: torch.empty((2**62, 0), dtype=torch.int64) for name in ("translations", "frequent")}
    write_tensors(tmp_path / "list", odd, kind="shortlist", texts={"target_size": "1", "source": "", "target": ""})
    with pytest.raises(UserError, match="list: damaged: its parts do not fit together"):
        load_shortlist(tmp_path / "list").checked(vocabularies)


def test_damaged_files(tmp_path: Path, vocabularies: Vocabularies, small: Shortlist) -> None:
    path = tmp_path / "list"
    save_shortlist(path, small)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:-1] + bytes([content[-1] ^ 1]), b"", b"text\n" * 99):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="list: damaged"):
            load_shortlist(path).checked(vocabularies)
    save_shortlist(path, small._replace(frequent=np.array([SIZE])))
    with pytest.raises(UserError, match="list: damaged: its parts do not fit the vocabularies"):
        load_shortlist(path).checked(vocabularies)
    write_tensors(path, {"frequent": torch.from_numpy(small.frequent)}, kind="shortlist", texts={})
    with pytest.raises(UserError, match="list: damaged: its parts do not fit together"):
        load_shortlist(path).checked(vocabularies)
    write_tensors(path, {}, kind="model", texts={})
    with pytest.raises(UserError, match="list: not a shortlist of this toolkit, but a model"):
        load_shortlist(path).checked(vocabularies)
    with pytest.raises(UserError, match=r"missing: cannot be read \(No such file"):
        load_shortlist(tmp_path / "missing").checked(vocabularies)
