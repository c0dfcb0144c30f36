"""From a configuration to open corpora: what is made once, what is reused, and what makes it anew."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.config.schema import Config
from nmt.data import prepare as preparation
from nmt.data.prepare import Prepared, prepare
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import UserError
from nmt.files import new_digest
from tests.conftest import data_section, write_lines, write_texts

SOURCE = ["a small dog runs", "two men walk along the river", "the dogs run", "", "snow", "men and dogs " * 20]
TARGET = [
    "ein Hund läuft",
    "zwei Männer gehen am Fluss",
    "die Hunde laufen",
    "leer",
    "Schnee",
    "Männer und Hunde " * 20,
]
VALID = (["the men run", "", "a river"], ["die Männer laufen", "nichts", ""])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_texts(tmp_path, {"train.en": SOURCE, "train.de": TARGET, "valid.en": VALID[0], "valid.de": VALID[1]})


def config(folder: Path, **changes: Any) -> Config:
    """A configuration for the files of the folder; changes are given as section__key."""
    sections: dict[str, Any] = {
        "name": "test",
        "data": data_section(folder),
        "subwords": {"size": 60},
        "training": {},
    }
    for name, value in changes.items():
        section, key = name.split("__")
        sections[section][key] = value
    return Config.model_validate(sections)


def run(folder: Path, log: list[str] | None = None, **changes: Any) -> Prepared:
    return prepare(config(folder, **changes), cache=folder / "cache", log=(log if log is not None else []).append)


def written(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (folder / "cache").rglob("*") if path.is_file()}


def test_train_is_filtered_and_valid_is_not(folder: Path) -> None:
    log: list[str] = []
    prepared = run(folder, log, data__max_length=50)
    joint = prepared.vocabularies.source
    assert prepared.vocabularies.target is joint
    assert joint.size == 60
    kept = [joint.decode(prepared.train.source(row)) for row in range(len(prepared.train))]
    assert kept == [SOURCE[row] for row in (0, 1, 2, 4)]
    assert [joint.decode(prepared.valid.target(row)) for row in range(len(prepared.valid))] == VALID[1]
    assert len(log) == 3
    said = re.fullmatch(r"subwords: joint bpe, 60 pieces, trained on every line in (\d+\.\d) s", log[0])
    assert said is not None
    assert float(said[1]) < 60
    assert log[1].startswith(
        "training corpus: 6 pairs read, 4 kept "
        "(66.67%; left out: 1 empty on one side, 1 longer than data.max_length = 50 pieces); source: "
    )
    assert log[2].startswith("validation corpus: 3 pairs read, 3 kept; source: ")


def test_a_second_preparation_reuses_everything(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(folder)
    before = written(folder)
    for name in ("write_ids", "check_corpora", "checked"):  # none may be called
        monkeypatch.delattr(preparation, name)
    monkeypatch.delattr(Subwords, "train")
    log: list[str] = []
    second = run(folder, log)
    assert written(folder) == before
    assert [line.rsplit(" ", 1)[1] for line in log] == ["reused"] * 3
    assert second.vocabularies.source.model == first.vocabularies.source.model
    assert second.train.report == first.train.report
    assert [second.train.target(row).tolist() for row in range(len(second.train))] == [
        first.train.target(row).tolist() for row in range(len(first.train))
    ]


def test_what_the_training_text_translates_is_found_again(folder: Path) -> None:
    """And only that: the validation text is not learned from."""
    for name, source in (("train.en", "<es> "), ("valid.en", "<fr> ")):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        write_lines(folder / name, [f"{source}{line}" for line in 3 * lines])
    for name in ("train.de", "valid.de"):
        (folder / name).write_text(3 * (folder / name).read_text(encoding="utf-8"), encoding="utf-8")
    assert run(folder).learned == run(folder).learned == {"<es>": False}


def test_ids_are_found_by_the_names_of_released_runs(folder: Path) -> None:
    """A run knows its data by these names when it is resumed: another name refuses every run that has begun."""
    prepared = run(folder, data__max_length=50)
    model = new_digest(prepared.vocabularies.source.model).hexdigest()
    hashes = [new_digest((folder / name).read_bytes()).hexdigest() for name in ("train.en", "train.de")]
    made_from = [6, [hashes], [None], [model, model], [50, None], False]
    assert prepared.train.folder.name == new_digest(json.dumps(made_from).encode()).hexdigest()


@pytest.mark.parametrize("blank", ["valid", "watch"])
def test_nothing_to_measure(folder: Path, blank: str) -> None:
    """Refused before a model is trained, and from the cache as well."""
    write_texts(folder, {f"{blank}.en": ["a dog", " ", ""], f"{blank}.de": ["\t", "leer", ""]})
    files = {"source": str(folder / "watch.en"), "target": str(folder / "watch.de"), "name": "w"}
    key, changes = ("data.valid", {}) if blank == "valid" else ("data.watch.0", {"data__watch": [files]})
    for _ in range(2):
        with pytest.raises(UserError) as error:
            run(folder, **changes)
        assert str(error.value) == (
            f"{key}: {folder / blank}.en and {folder / blank}.de have no pair with text on both sides, of 3 pairs, so "
            "that there is nothing to measure; give sentences with their translations"
        )
    assert not (folder / "cache" / "subwords").exists()


@pytest.mark.parametrize(
    ("changes", "trained", "encoded"),
    [
        ({"data__max_length": 50}, False, (True, False)),
        ({"data__max_length_ratio": 4.0}, False, (True, False)),
        ({"subwords__sampling": {"alpha": 0.1}}, False, (True, False)),
        ({"subwords__size": 61}, True, (True, True)),
        ({"subwords__type": "char"}, True, (True, True)),
        ({"subwords__lowercase": True}, True, (True, True)),
        ({"subwords__joint": False, "subwords__size": 40}, True, (True, True)),
    ],
)
def test_only_what_depends_on_a_change_is_made_anew(
    folder: Path, changes: dict[str, Any], trained: bool, encoded: tuple[bool, bool]
) -> None:
    run(folder)
    log: list[str] = []
    run(folder, log, **changes)
    assert ["trained" in line for line in log[:-2]] == [trained] * (len(log) - 2)
    assert tuple("encoded" in line for line in log[-2:]) == encoded


def test_a_changed_line_makes_everything_anew_and_a_new_name_does_not(folder: Path) -> None:
    run(folder)
    for name in ("train.en", "train.de", "valid.en", "valid.de"):
        shutil.move(folder / name, folder / f"moved.{name}")
    files = {
        "data__train": [{"source": str(folder / "moved.train.en"), "target": str(folder / "moved.train.de")}],
        "data__valid": {"source": str(folder / "moved.valid.en"), "target": str(folder / "moved.valid.de")},
    }
    log: list[str] = []
    run(folder, log, **files)
    assert all(line.endswith("reused") for line in log)
    (folder / "moved.train.en").write_text("\n".join([*SOURCE[:-1], "one more dog"]), encoding="utf-8")
    log.clear()
    run(folder, log, **files)
    assert [line.endswith("reused") for line in log] == [False, False, False]


def test_several_pairs_of_files_are_read_one_after_the_other(folder: Path) -> None:
    pair = {"source": str(folder / "train.en"), "target": str(folder / "train.de")}
    valid = {"source": str(folder / "valid.en"), "target": str(folder / "valid.de")}
    prepared = run(folder, data__train=[pair, valid, pair])
    assert prepared.train.report.read == 2 * len(SOURCE) + len(VALID[0])
    sources = [prepared.vocabularies.source.decode(prepared.train.source(row)) for row in range(len(prepared.train))]
    kept = [" ".join(SOURCE[row].split()) for row in (0, 1, 2, 4, 5)]
    assert sources == [*kept, "the men run", *kept]
    assert len(prepared.valid) == len(VALID[0])


def test_large_corpora_train_subwords_on_evenly_spread_pairs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "_TRAINING_LINES", 6)  # of the 12 lines: every second pair
    log: list[str] = []
    joint = run(folder, log, subwords__size=40).vocabularies.source
    assert "trained on one line in 2" in log[0]
    spread = [line for row in (0, 2, 4) for line in (SOURCE[row], TARGET[row])]
    assert joint.model == Subwords.train(spread, settings=config(folder, subwords__size=40).subwords).model


def test_given_vocabularies_are_used_as_they_are(folder: Path) -> None:
    vocabularies = run(folder).vocabularies
    shutil.rmtree(folder / "cache")
    log: list[str] = []
    again = prepare(
        config(folder, subwords__size=8000), cache=folder / "cache", log=log.append, vocabularies=vocabularies
    )
    assert again.vocabularies == vocabularies
    assert not (folder / "cache" / "subwords").exists()
    assert len(log) == 2


def test_existing_models(folder: Path) -> None:
    trained = run(folder, subwords__joint=False, subwords__size=40).vocabularies
    for side, subwords in zip(("source", "target"), trained, strict=True):
        (folder / f"{side}.model").write_bytes(subwords.model)
    both = {f"subwords__{side}_model": str(folder / f"{side}.model") for side in ("source", "target")}
    log: list[str] = []
    loaded = run(folder, log, subwords__joint=False, **both).vocabularies
    assert [subwords.model for subwords in loaded] == [subwords.model for subwords in trained]
    assert log[0] == f"subwords: 40 pieces, source_model {folder / 'source.model'}"
    log.clear()
    joint = run(folder, log, subwords__model=str(folder / "target.model")).vocabularies
    assert log[0] == f"subwords: 40 pieces, model {folder / 'target.model'}"
    assert joint.source is joint.target
    assert joint.source.model == trained.target.model


def test_existing_models_that_cannot_be_used_are_named_by_key(folder: Path) -> None:
    (folder / "damaged.model").write_bytes(b"no model")
    with pytest.raises(UserError) as error:
        run(
            folder,
            subwords__joint=False,
            subwords__source_model=str(folder / "missing.model"),
            subwords__target_model=str(folder / "damaged.model"),
        )
    first, second = error.value.messages
    assert first.startswith(f"subwords.source_model: {folder / 'missing.model'}: no such file")
    assert second == f"subwords.target_model: {folder / 'damaged.model'}: not a sentencepiece model, or damaged"


def write_vocabularies(folder: Path, *, more: str = "") -> dict[str, str]:
    """Files with the words of both sides but "snow" and "Schnee", and the keys that name them."""
    for side, lines in (("source", SOURCE), ("target", TARGET)):
        words = {word for line in lines for word in line.split()} - {"snow", "Schnee"}
        (folder / f"{side}.vocab").write_text("\n".join(["<unk>", "<s>", "</s>", *sorted(words)]) + more, "utf-8")
    return {f"subwords__{side}_vocabulary": str(folder / f"{side}.vocab") for side in ("source", "target")}


def test_vocabularies(folder: Path) -> None:
    log: list[str] = []
    both = write_vocabularies(folder)
    prepared = run(folder, log, subwords__joint=False, **both)
    source, target = prepared.vocabularies
    sizes = [4 + len({word for line in side for word in line.split()}) - 1 for side in (SOURCE, TARGET)]
    assert [source.size, target.size] == sizes
    assert log[0] == f"subwords: {sizes[0]} pieces, source_vocabulary {folder / 'source.vocab'}"
    assert [source.decode(prepared.train.source(row)) for row in range(4)] == [*SOURCE[:3], "⁇"]
    assert not (folder / "cache" / "subwords").exists()
    log.clear()
    run(folder, log, subwords__joint=False, **both)
    assert [line.rsplit(" ", 1)[1] for line in log[2:] if "lacks" not in line] == ["reused"] * 2
    write_vocabularies(folder, more="\nzebra\n")
    log.clear()
    run(folder, log, subwords__joint=False, **both)
    assert not any("reused" in line for line in log)
    words = {word for line in (*SOURCE, *TARGET) for word in line.split()}
    (folder / "joint.vocab").write_text("\n".join(words), encoding="utf-8")
    joint = run(folder, log, subwords__vocabulary=str(folder / "joint.vocab")).vocabularies
    assert joint.source is joint.target
    assert joint.source.size == 4 + len(words)


def test_sampling_needs_a_model_that_can(folder: Path) -> None:
    with pytest.raises(UserError, match=r"subwords\.sampling: a subword model of this type cannot sample"):
        run(folder, subwords__type="char", subwords__sampling={"alpha": 0.1})
    prepared = run(folder, subwords__sampling={"alpha": 0.1})
    assert prepared.train.text(0) == (SOURCE[0], TARGET[0])


# ---------------------------------------------------------------------------------------------------------- alignments

LINKS = ["0-0 1-0 2-1 3-2", "0-0 1-1 5-4", "0-0 1-1", "", "0-0", "2-2"]


def with_alignments(folder: Path, lines: list[str]) -> dict[str, Any]:
    """Changes of the configuration that name a file with these lines."""
    write_lines(folder / "train.align", lines)
    files = {"source": str(folder / "train.en"), "target": str(folder / "train.de")}
    return {"data__train": [{**files, "alignments": str(folder / "train.align")}]}


def word_links(prepared: Prepared, row: int) -> set[tuple[str, str]]:
    """The pieces that are linked, as texts."""
    corpus, (source, target) = prepared.train, prepared.vocabularies
    pieces = source.pieces(corpus.source(row)), target.pieces(corpus.target(row))
    return {(pieces[0][int(s)], pieces[1][int(t)]) for t, s, _ in corpus.links(row)}


@pytest.mark.parametrize("tag", [None, "<BT>"])
def test_alignments_are_kept_with_their_pairs(folder: Path, tag: str | None) -> None:
    """Also behind a tag, which comes first in every source."""
    changes = with_alignments(folder, LINKS)
    changes["data__train"][0]["tag"] = tag
    prepared = run(folder, **changes, subwords__type="word", subwords__size=60, data__max_length=50)
    assert prepared.train.has_alignments
    assert not prepared.valid.has_alignments
    assert len(prepared.train) == 4
    assert word_links(prepared, 0) == {("▁a", "▁ein"), ("▁small", "▁ein"), ("▁dog", "▁Hund"), ("▁runs", "▁läuft")}
    assert word_links(prepared, 3) == {("▁snow", "▁Schnee")}


def test_alignments_are_part_of_the_name(folder: Path) -> None:
    """So a run that began with others does not resume; and without any, the names are those of ever."""
    without = run(folder)
    changes = with_alignments(folder, LINKS)
    log: list[str] = []
    first = run(folder, log, **changes)
    assert ["reused" in line for line in log] == [True, False, True]
    assert "; alignments: " in log[1]
    log.clear()
    again = run(folder, log, **changes)
    assert all(line.endswith("reused") for line in log)
    assert again.train.folder == first.train.folder != without.train.folder
    other = run(folder, **with_alignments(folder, [*LINKS[:-1], "1-1"]))
    assert other.train.folder not in (first.train.folder, without.train.folder)
    assert other.valid.folder == without.valid.folder


def test_a_corpus_of_several_files_may_have_alignments_of_some(folder: Path) -> None:
    aligned = with_alignments(folder, LINKS)["data__train"][0]
    plain = {key: aligned[key] for key in ("source", "target")}
    prepared = run(folder, data__train=[plain, aligned])
    assert [len(prepared.train.links(row)) > 0 for row in range(len(prepared.train))] == [False] * 5 + [True] * 5


def test_mistakes_in_alignments_are_found_before_anything_is_trained(folder: Path) -> None:
    changes = with_alignments(folder, [*LINKS[:-2], "0-1", "x"])
    (folder / "valid.de").write_text("nur eine\n", encoding="utf-8")
    with pytest.raises(UserError) as error:
        run(folder, **changes)
    unequal, beyond, malformed = error.value.messages
    assert unequal.startswith(f"{folder / 'valid.en'} has 3 lines")
    assert beyond.startswith(f"{folder / 'train.align'}, line 5: 0-1 is beyond the words of the pair, 1 of the source")
    assert malformed.startswith(f"{folder / 'train.align'}, line 6: 'x' is not a link")
    assert not (folder / "cache").exists()


# -------------------------------------------------------------------------------------------------- weights of pairs


def with_weights(folder: Path, lines: list[str]) -> dict[str, Any]:
    """Changes of the configuration: the corpus twice, the second with weights."""
    write_lines(folder / "weights", lines)
    files = {"source": str(folder / "train.en"), "target": str(folder / "train.de")}
    return {"data__train": [files, {**files, "pair_weights": str(folder / "weights")}]}


def test_weights_are_kept_with_their_pairs(folder: Path) -> None:
    prepared = run(folder, **with_weights(folder, ["0.5", "2", "1e-1", "3", "0", "7"]))
    assert prepared.train.weights is not None
    assert prepared.train.report.kept == 10
    assert prepared.train.weights.tolist() == pytest.approx([1.0] * 5 + [0.5, 2.0, 0.1, 0.0, 7.0])
    other = run(folder, **with_weights(folder, ["0.5", "2", "1e-1", "3", "0", "8"]))
    assert other.train.folder != prepared.train.folder


def test_mistakes_in_weights(folder: Path) -> None:
    with pytest.raises(UserError, match=r"weights, line 2: '-1' is no weight of a pair: a number from 0 to 1000"):
        run(folder, **with_weights(folder, ["0.5", "-1", "nan"]))
    with pytest.raises(UserError, match=r"weights has 2 lines, but .*train\.en has 6; line i must have the weight of"):
        run(folder, **with_weights(folder, ["0.5", "1"]))


def test_alignments_that_are_given_as_weights(folder: Path) -> None:
    """They are refused, though the cache has the same files with alignments."""
    changes = with_alignments(folder, LINKS)
    run(folder, **changes)
    files = changes["data__train"][0]
    with pytest.raises(UserError, match=r"train\.align, line 1: '0-0 1-0 2-1 3-2' is no weight of a pair"):
        run(folder, data__train=[{**files, "alignments": None, "pair_weights": files["alignments"]}])


def two_corpora(folder: Path, **second: Any) -> dict[str, Any]:
    """The training files twice, the second time with these keys."""
    files = {"source": str(folder / "train.en"), "target": str(folder / "train.de")}
    return {"data__train": [files, {**files, **second}]}


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "word"])
@pytest.mark.parametrize("joint", [True, False])
def test_tagged_sources(folder: Path, kind: str, joint: bool) -> None:
    """The tag is the first piece of every source of its corpus, and the last one of the vocabulary."""
    size = 30 if kind == "unigram" else 48
    settings = {"subwords__type": kind, "subwords__size": size, "subwords__joint": joint, "data__max_length": 1000}
    plain = run(folder, **two_corpora(folder), **settings)
    prepared = run(folder, **two_corpora(folder, tag="<BT>"), **settings)
    source, target = prepared.vocabularies
    assert source.size == plain.vocabularies.source.size + 1
    assert target.size == plain.vocabularies.target.size + joint
    assert source.pieces([source.size - 1]) == ["▁<BT>"]
    assert prepared.train.sizes == (5, 5)
    for row in range(10):
        tag = [source.size - 1] if row >= 5 else []
        assert prepared.train.source(row).tolist() == [*tag, *plain.train.source(row).tolist()]
        assert prepared.train.target(row).tolist() == plain.train.target(row).tolist()
    assert prepared.train.folder != plain.train.folder
    assert run(folder, **two_corpora(folder, tag="<BT>"), **settings).train.folder == prepared.train.folder


def test_a_tagged_source_that_normalization_empties(folder: Path) -> None:
    """It is left out like an untagged one, and like one of white space: a zero-width space is what NFKC takes away."""
    (folder / "train.en").write_text("\u200b\n \na dog\n\u200b \u200b\n", encoding="utf-8")
    (folder / "train.de").write_text("ein Hund\nein Hund\nein Hund\nein Hund\n", encoding="utf-8")
    prepared = run(folder, **two_corpora(folder, tag="<BT>"), subwords__size=24)
    assert prepared.train.sizes == (1, 1)


def test_a_tag_in_a_vocabulary_file(folder: Path) -> None:
    """It is added, unless it is one of the words."""
    words = sorted({word for line in [*SOURCE, *TARGET] for word in line.split()})
    sizes = []
    for listed in (words, [*words, "<BT>"]):
        write_lines(folder / "words", listed)
        prepared = run(folder, **two_corpora(folder, tag="<BT>"), subwords__vocabulary=folder / "words")
        sizes.append(prepared.vocabularies.source.size)
        assert prepared.vocabularies.source.pieces(prepared.train.source(5))[:2] == ["▁<BT>", "▁a"]
    assert sizes == [4 + len(words) + 1] * 2


def test_symbols_are_pieces_of_both_sides(folder: Path) -> None:
    settings = {"subwords__size": 40, "subwords__joint": False}
    source, target = run(folder, **settings, subwords__symbols=["<x>", "%s"]).vocabularies
    for side in (source, target):
        assert side.pieces(range(side.size))[-2:] == ["▁<x>", "▁%s"]
    plain = run(folder, **settings).vocabularies
    lacking = r"^subwords\.symbols\.0: %s is no symbol of the source vocabulary of the model"
    with pytest.raises(UserError, match=lacking):
        prepare(config(folder, subwords__symbols=["%s"]), cache=folder / "cache", log=[].append, vocabularies=plain)


def test_symbols_that_normalization_makes_one(folder: Path) -> None:
    """As NFKC does with letters of full width: the model could not tell them apart."""
    message = r"^data\.train\.1\.tag: normalization makes <ＢＴ> the same as <BT>; choose another symbol$"
    with pytest.raises(UserError, match=message):
        run(folder, **two_corpora(folder, tag="<ＢＴ>"), subwords__symbols=["<BT>"])


def test_a_tag_that_the_given_vocabulary_lacks(folder: Path) -> None:
    plain = run(folder).vocabularies
    tagged = config(folder, **two_corpora(folder, tag="<BT>"))
    with pytest.raises(
        UserError, match=r"^data\.train\.1\.tag: <BT> is no symbol of the joint vocabulary of the model"
    ):
        prepare(tagged, cache=folder / "cache", log=[].append, vocabularies=plain)
    grown = prepare(
        config(folder, **two_corpora(folder, tag="<BT>"), training__vocabulary="extended"),
        cache=folder / "cache",
        log=[].append,
        vocabularies=plain,
    )
    assert grown.vocabularies.source.size == plain.source.size + 1
    joint = plain.source.with_symbols(["<BT>"])
    prepared = prepare(tagged, cache=folder / "cache", log=[].append, vocabularies=Vocabularies(joint, joint))
    assert prepared.vocabularies.source is joint


FORM = {"train": ["two dogs run ,", "a dog runs .", "dogs , a man ."], "valid": ["Two dogs run, a man.", "A dog runs."]}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["en: cased", "en: tokenized", "de: cased", "de: tokenized"]),
        ({"subwords__lowercase": True}, ["en: tokenized", "de: cased", "de: tokenized"]),
        (
            {"subwords__lowercase": True, "training__validation": {"lowercase": True}},
            ["en: tokenized", "de: tokenized"],
        ),
        ({"training__validation": {"lowercase": True}}, ["en: cased", "en: tokenized", "de: tokenized"]),
    ],
)
def test_validation_text_of_another_form(folder: Path, settings: dict[str, Any], expected: list[str]) -> None:
    """Both sides are compared; case only where the subwords or the scores do not ignore it."""
    for name, lines in FORM.items():
        for side in ("en", "de"):
            every = (f"{line} {side} {number}" for number in range(20) for line in lines)
            write_lines(folder / f"{name}.{side}", every)
    for _ in ("new", "reused"):
        log: list[str] = []
        prepared = run(folder, log, **settings)
        told = [
            re.search(r"warning: .*?\.(en|de)(?: in lower case)?: .* (have capital|look tokenized)", line)
            for line in log
        ]
        names = {"have capital": "cased", "look tokenized": "tokenized"}
        assert [f"{found[1]}: {names[found[2]]}" for found in told if found] == expected
        assert [form.counts["lines"] for form in prepared.forms] == [60, 60]
        assert [form.counts["tokenized"] for form in prepared.forms] == [60, 60]


def test_what_the_vocabulary_lacks(folder: Path) -> None:
    """Characters by the lines that have them; a corpus that is mostly unknown is refused, and cached all the same."""
    letters = sorted({letter for line in (*SOURCE, *TARGET) for letter in line.lower()} - {" ", "k"})
    known = Subwords.train(["".join(letters)] * 3, settings=config(folder).subwords.model_copy(update={"type": "char"}))
    log: list[str] = []
    for _ in range(2):
        prepare(config(folder), cache=folder / "cache", log=log.append, vocabularies=Vocabularies(known, known))
    warnings = [line for line in log if line.startswith("warning: training corpus")]
    source, target, *again = warnings
    assert again == [source, target]
    assert re.search(r"lacks \d\.\d% of the source pieces, in 25\.0% of the lines: 'k' in 1 line; use", source)
    assert re.search(r"of the target pieces, in 100\.0% of the lines: 'H' in 2 lines, 'F' in 1 line, ", target)
    assert target.endswith("use subwords.byte_fallback, or with --init-from training.vocabulary: new")
    fresh: list[str] = []
    prepare(config(folder), cache=folder / "cache", log=fresh.append)  # as with `new`
    assert not any("lacks" in line for line in fresh)
    other = Subwords.train(["абвгд"], settings=config(folder).subwords.model_copy(update={"type": "char"}))
    with pytest.raises(UserError, match=r"training corpus: the vocabulary lacks 100\.0% of the source pieces, in 100"):
        prepare(config(folder), cache=folder / "cache", log=log.append, vocabularies=Vocabularies(other, known))
