"""nmt-eval from its arguments to its output, exit code and messages; the model is a hand-written dictionary."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import sacrebleu
import torch

from nmt.cli.evaluate import main
from nmt.decoding.options import TranslationOptions
from nmt.decoding.translator import Translation, Translator
from tests.cli.conftest import refused
from tests.conftest import write_texts

HYPOTHESES = ["The cat sat on a mat.", "Dogs don't bark, they sing.", "Yes"]
REFERENCES = ["The cat sat on the mat.", "Dogs don't sing, they bark.", "No"]
SOURCE = ["Die Katze saß auf einer Matte.", "Hunde bellen nicht, sie singen.", "Ja"]


@pytest.fixture
def files(here: Path) -> Path:
    """A folder, also the working folder, with the files hyp, ref, src and m, which stands for a model."""
    return write_texts(here, {"hyp": HYPOTHESES, "ref": REFERENCES, "src": SOURCE, "m": [], "empty": []})


# ---------------------------------------------------------------------------------------------------- scoring a file


def test_a_file_is_scored_as_sacrebleu_scores_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--json", "scores.json"]) == 0

    captured = capsys.readouterr()
    scores = json.loads((files / "scores.json").read_text(encoding="utf-8"))
    assert scores["bleu"]["score"] == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert scores["chrf"]["score"] == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    assert scores["ter"]["score"] == pytest.approx(sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score)
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES])
    parts = ("precisions", "brevity_penalty", "length", "reference_length")
    expected = [pytest.approx(bleu.precisions), bleu.bp, bleu.sys_len, bleu.ref_len]
    assert [scores["bleu"][part] for part in parts] == expected
    sentences = [sacrebleu.sentence_chrf(*pair).score for pair in zip(HYPOTHESES, zip(REFERENCES), strict=True)]
    assert scores["chrf"]["lines"] == pytest.approx(sentences)
    assert (scores["sentences"], scores["tokenize"], scores["lowercase"]) == (3, "13a", False)
    for title, name in (("BLEU", "bleu"), ("chrF2", "chrf"), ("TER", "ter")):
        (line,) = [line for line in captured.out.splitlines() if line.startswith(title)]
        assert line.split()[1] == f"{scores[name]['score']:.2f}"
        assert line.endswith(scores[name]["signature"])
    assert captured.err == ""


@pytest.mark.usefixtures("files")
def test_chosen_metrics_alone_are_computed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sacrebleu.metrics.TER, "corpus_score", lambda *_: pytest.fail("TER was computed"))

    assert main(["--hypotheses", "hyp", "--reference", "ref", "--metrics", "chrf, BLEU", "--json", "-"]) == 0
    assert list(json.loads(capsys.readouterr().out))[:3] == ["chrf", "bleu", "sentences"]
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--metrics=bleu"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["metric", "BLEU", "3"]


def test_warnings_go_to_standard_error(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "hyp").write_text("The c@@ at .\n\nYes .\n", encoding="utf-8")

    assert main(["--hypotheses", "hyp", "--reference", "ref"]) == 0

    captured = capsys.readouterr()
    tokenized, segmented, empty = captured.err.splitlines()
    assert tokenized.startswith("nmt-eval: warning: hypotheses: 2 of 2 lines (100.0%) look tokenized")
    assert segmented.startswith("nmt-eval: warning: hypotheses: 1 of 2 lines (50.0%) look split into subwords")
    assert empty == "nmt-eval: warning: 1 of 3 hypotheses is empty"
    assert "warning" not in captured.out


# ----------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ("", ["nothing to score: give --hypotheses FILE, or --model", "--reference FILE is missing"]),
        ("--model n --reference ref", ["--model needs --source FILE", "n: no such model file or run folder"]),
        ("--hypotheses hyp --model m --source src --reference ref", ["--hypotheses and --model exclude each other"]),
        (
            "--hypotheses hyp --reference ref --metrics bleu,tre,bleu,",
            [
                "--metrics: bleu is given more than once",
                "--metrics: given 'tre'; nearest: ter; allowed: bleu, chrf, chrf++, ter",
                "--metrics: given ''; allowed: bleu, chrf, chrf++, ter",
            ],
        ),
        (
            "--hypotheses h --beam-size 3 --shortlist list --device cpu --source src --output out",
            [
                "--hypotheses: h: no such file",
                "--reference FILE is missing",
                "--source has an effect only with --model or --report",
                "--beam-size has an effect only with --model",
                "--shortlist has an effect only with --model",
                "--device has an effect only",
                "--output has an effect only with --model",
            ],
        ),
        (
            "--model m --source none --reference r --beam-size 0 --length-penalty nan",
            [
                "--source: none: no such file",
                "--reference: r: no such file",
                "--beam-size is 0; allowed: a whole number, at least 1",
                "--length-penalty is 'nan'; allowed: none, average, or a number, at least 0",
            ],
        ),
        (
            "--hypotheses hyp --reference ref --tokenize 13b --json missing/scores.json",
            [
                "tokenize: given '13b'; nearest: 13a; allowed: 13a, none",
                "--json missing/scores.json: there is no folder",
            ],
        ),
        (
            "--model m --source src --reference ref --output ./ref --json src",
            ["--output ./ref: would overwrite --reference ref", "--json src: would overwrite --source src"],
        ),
        ("--model m --source src --reference ref --json m", ["--json m: would overwrite --model m"]),
        ("--model m --source src --reference ref --output -", ["--output -: standard output has the scores"]),
        ("--hypotheses empty --reference .", ["--hypotheses empty: the file is empty", "--reference: .: is a folder"]),
    ],
)
def test_every_mistake_is_reported_at_once(
    arguments: str, messages: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, main, *arguments.split())
    assert [message for message in messages if message not in "\n".join(said)] == []
    assert len(said) == len(messages) + (len(messages) > 1)  # and a line that counts the problems


def test_scoring_a_file_does_not_wait_for_torch(files: Path) -> None:
    program = "import sys; from nmt.cli.evaluate import main; assert main() == 0; assert 'torch' not in sys.modules"
    command = [sys.executable, "-c", program, "--hypotheses", "hyp", "--reference", "ref"]
    assert subprocess.run(command, cwd=files, stdout=subprocess.DEVNULL).returncode == 0


# ------------------------------------------------------------------------------------------------ translate and score


class DictionaryTranslator:
    """Translates lines to those that it is given, and notes how it was asked to."""

    def __init__(self, translations: Iterable[str], sources: Iterable[str] = SOURCE) -> None:
        self.translations = dict(zip(sources, translations, strict=True))
        self.devices: list[str] = []
        self.precisions: list[str | None] = []
        self.options: TranslationOptions | None = None

    def check(self, options: TranslationOptions) -> None:
        """It can do all of them."""

    def translate(self, lines: Iterable[str], options: TranslationOptions, **_: object) -> Iterator[list[Translation]]:
        self.options = options
        for line in lines:
            text = self.translations[line]
            yield [Translation(text=text, score=-1.0, tokens=text.split())]


@pytest.fixture
def translator(monkeypatch: pytest.MonkeyPatch) -> DictionaryTranslator:
    fake = DictionaryTranslator(HYPOTHESES)

    def load(
        paths: list[Path], *, device: torch.device, precision: str | None, shortlist: Path | None, ensemble: str | None
    ) -> DictionaryTranslator:
        assert paths == [Path("m")]
        assert shortlist is None
        assert ensemble is None
        fake.devices.append(str(device))
        fake.precisions.append(precision)
        return fake

    monkeypatch.setattr(Translator, "load", load)
    return fake


MODEL = ["--model", "m", "--source", "src", "--reference", "ref"]


def test_a_model_translates_then_is_scored(
    files: Path, translator: DictionaryTranslator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MODEL, "--output", "out", "--json", "model.json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""  # no progress bar where nobody watches
    assert main(["--hypotheses", "out", "--reference", "ref", "--json", "file.json"]) == 0

    assert (files / "out").read_bytes() == (files / "hyp").read_bytes()
    assert (files / "model.json").read_text() == (files / "file.json").read_text()
    assert capsys.readouterr().out == captured.out


@pytest.mark.usefixtures("files")
def test_only_the_search_options_that_were_given_replace_the_models_own(translator: DictionaryTranslator) -> None:
    assert main(MODEL) == 0
    assert translator.options == TranslationOptions()
    options = "--beam-size 7 --length-penalty average --max-length-ratio 1.5 --batch-tokens 11 --device cpu"
    assert main([*MODEL, *options.split()]) == 0
    assert translator.options == TranslationOptions(
        beam_size=7, length_penalty="average", max_length_ratio=1.5, batch_tokens=11
    )
    assert translator.devices[1] == "cpu"
    assert main([*MODEL, "--length-penalty", "0.6", "--precision", "int8"]) == 0
    assert translator.precisions == [None, None, "int8"]
    assert translator.options == TranslationOptions(length_penalty=0.6)
