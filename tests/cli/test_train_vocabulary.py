"""nmt-train with vocabulary files, of whole words and of words that were cut: the model file has all it needs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.cli import score
from nmt.cli.translate import main as translate
from nmt.data.corpus import read_lines
from nmt.evaluation.metrics import corpus_scores
from nmt.models.model_file import load_model
from tests.cli.conftest import Train, records, settings, write_corpus
from tests.conftest import data_section, write_lines, write_texts

Capture = pytest.CaptureFixture[str]
FILES = ("train.en", "train.de", "valid.en", "valid.de")


def cut(line: str) -> str:
    """The line with all words of more than three letters cut behind the second, as subword-nmt writes it."""
    return " ".join(word if len(word) < 4 else f"{word[:2]}@@ {word[2:]}" for word in line.split())


def config_of(folder: Path, **subwords: Any) -> Path:
    """A configuration with the vocabularies of the folder's corpus."""
    for side, language in (("source", "en"), ("target", "de")):
        words = sorted({word for line in read_lines(folder / f"train.{language}") for word in line.split()})
        write_lines(folder / f"{side}.vocab", ["<unk>", "<s>", "</s>", *words])
    files = {f"{side}_vocabulary": str(folder / f"{side}.vocab") for side in ("source", "target")}
    values = {**settings(folder), "data": data_section(folder), "subwords": {"joint": False, **files, **subwords}}
    values["training"]["validation"] = {"metric": "bleu", "tokenize": "none"}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def test_one_file_is_enough(tmp_path: Path, train: Train, capsys: Capture) -> None:
    """Without the vocabularies the model translates, scores and is fine-tuned; its run needs them to be resumed."""
    write_corpus(tmp_path)
    config, output = config_of(tmp_path), tmp_path / "run"
    assert train(config, output, "training.max_updates=2") == 0
    model = load_model(output)
    vocabularies = [tmp_path / f"{side}.vocab" for side in ("source", "target")]
    assert model.sizes == tuple(len(list(read_lines(path))) + 1 for path in vocabularies)  # <pad>
    for path in vocabularies:
        path.unlink()
    source = tmp_path / "input"
    source.write_text("the  dog sees\tthe cat .\n\nthe zebra hears the zebra .\n", encoding="utf-8")
    written = tmp_path / "output"
    assert translate(["--model", str(output), "--input", str(source), "--output", str(written), "--device", "cpu"]) == 0
    first, blank, _ = written.read_text(encoding="utf-8").splitlines()
    assert blank == ""
    assert set(first.split()) <= {word for line in read_lines(tmp_path / "train.de") for word in line.split()}
    replacing = ["--replace-unknown", "--beam-size", "2"]
    assert translate(["--model", str(output), "--input", str(source), "--output", str(written), *replacing]) == 0
    target = tmp_path / "target"
    target.write_text("der Hund sieht den Kater .\n\nder Hund hört .\n", encoding="utf-8")
    files = ["--source", str(source), "--target", str(target)]
    assert score.main(["--model", str(output), *files, "--device", "cpu"]) == 0
    assert train(config, output, "training.max_updates=2", "--resume") == 2
    assert "subwords.source_vocabulary" in capsys.readouterr().err
    tuned = tmp_path / "tuned.yaml"
    values = {
        key: value
        for key, value in yaml.safe_load(config.read_text(encoding="utf-8")).items()
        if key not in ("subwords", "model")
    }
    tuned.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert train(tuned, tmp_path / "tuned", "training.max_updates=2", "--init-from", output) == 0
    assert load_model(tmp_path / "tuned").source_subwords == model.source_subwords


def test_references_that_are_cut_are_told_without_a_joiner(tmp_path: Path, train: Train, capsys: Capture) -> None:
    write_corpus(tmp_path)
    write_texts(tmp_path, {name: [*map(cut, read_lines(tmp_path / name))] for name in FILES})
    for joiner, is_told in (("@@", False), (None, True)):
        assert train(config_of(tmp_path, joiner=joiner), tmp_path / "run", "--dry-run") == 0
        told = "warning: 100% of the validation references look split into subwords" in capsys.readouterr().err
        assert told == is_told


@pytest.mark.slow
def test_scores_and_translations_of_cut_text_are_of_whole_words(tmp_path: Path, train: Train, capsys: Capture) -> None:
    write_corpus(tmp_path)
    references = list(read_lines(tmp_path / "valid.de"))
    write_texts(tmp_path, {name: [*map(cut, read_lines(tmp_path / name))] for name in FILES})
    config, output = config_of(tmp_path, joiner="@@"), tmp_path / "run"
    assert train(config, output, "training.max_epochs=12", "training.validate_every=6 epochs") == 0
    assert "validation references" not in capsys.readouterr().err
    written = tmp_path / "output"
    options = ["--beam-size", "1", "--output", str(written), "--device", "cpu", "--alignments", str(tmp_path / "links")]
    assert translate(["--model", str(output), "--input", str(tmp_path / "valid.en"), *options]) == 0
    hypotheses = written.read_text(encoding="utf-8").splitlines()
    assert "@@" not in "".join(hypotheses)
    bleu = corpus_scores(hypotheses, references, tokenize="none", metrics=["bleu"])["bleu"].score
    assert max(record["bleu"] for record in records(output) if record["split"] == "valid") == pytest.approx(bleu)
    assert bleu > 0
    links = (tmp_path / "links").read_text(encoding="utf-8").splitlines()
    for line, source, hypothesis in zip(links, read_lines(tmp_path / "valid.en"), hypotheses, strict=True):
        pairs = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert [target for _, target in pairs] == list(range(len(hypothesis.split())))
        assert max(place for place, _ in pairs) < len([word for word in source.split() if not word.endswith("@@")])
    capsys.readouterr()
    arguments = [
        "--model",
        str(output),
        "--input",
        str(tmp_path / "valid.en"),
        "--constraints",
        str(tmp_path / "valid.de"),
    ]
    assert translate([*arguments, "--output", str(tmp_path / "never")]) == 2
    assert "do not go with a vocabulary of cut words" in capsys.readouterr().err
