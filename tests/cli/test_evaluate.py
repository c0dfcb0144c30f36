"""nmt-eval from its arguments to its output, exit code and messages; the model is a hand-written dictionary."""

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import sacrebleu
import torch
from sacrebleu.metrics import ter

from nmt.cli.evaluate import main
from nmt.cli.slow_sentences import sentences_watched
from nmt.config.schema import Config, SubwordsConfig
from nmt.data.subwords import Subwords
from nmt.decoding.options import TranslationOptions
from nmt.decoding.translator import Translation, Translator
from nmt.models.model_file import ModelFile, save_model
from nmt.models.seq2seq import build_model

HYPOTHESES = ["The cat sat on a mat.", "Dogs don't bark, they sing.", "Yes"]
REFERENCES = ["The cat sat on the mat.", "Dogs don't sing, they bark.", "No"]
SOURCE = ["Die Katze saß auf einer Matte.", "Hunde bellen nicht, sie singen.", "Ja"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, also the working folder, with the files hyp, ref, src and m, which stands for a model."""
    (tmp_path / "m").touch()
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES), ("src", SOURCE)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fails(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must fail; returns what it says to the user."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


# ---------------------------------------------------------------------------------------------------- scoring a file


def test_scores_as_json_beside_the_table_on_a_redirected_standard_output(files: Path) -> None:
    command = [sys.executable, "-m", "nmt.cli.evaluate", "--hypotheses", "hyp", "--reference", "ref", "--metrics=chrf"]
    with open("both", "wb") as both:
        assert subprocess.run([*command, "--json", "/dev/stdout"], stdout=both).returncode == 0
    table, _, numbers = (files / "both").read_text(encoding="utf-8").partition("{")
    assert "3 sentences" in table
    assert json.loads("{" + numbers)["sentences"] == 3


def test_a_file_is_scored_as_sacrebleu_scores_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--json", "scores.json"]) == 0

    captured = capsys.readouterr()
    scores = json.loads((files / "scores.json").read_text(encoding="utf-8"))
    assert scores["bleu"]["score"] == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert scores["chrf"]["score"] == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    assert scores["ter"]["score"] == pytest.approx(sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score)
    assert (scores["sentences"], scores["tokenize"], scores["lowercase"]) == (3, "13a", False)
    for title, name in (("BLEU", "bleu"), ("chrF2", "chrf"), ("TER", "ter")):
        (line,) = [line for line in captured.out.splitlines() if line.startswith(title)]
        assert line.split()[1] == f"{scores[name]['score']:.2f}"
        assert line.endswith(scores[name]["signature"])
    assert captured.err == ""


def test_json_goes_to_standard_output_instead_of_the_table(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--hypotheses", "ref", "--reference", "ref", "--json", "-"]) == 0

    scores = json.loads(capsys.readouterr().out)
    assert (scores["bleu"]["score"], scores["chrf"]["score"], scores["ter"]["score"]) == (100, 100, 0)
    assert not (files / "-").exists()


@pytest.mark.usefixtures("files")
def test_tokenize_and_lowercase_reach_the_signatures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--tokenize", "char", "--lowercase", "--json", "-"]) == 0

    scores = json.loads(capsys.readouterr().out)
    assert "|case:lc|eff:no|tok:char|" in scores["bleu"]["signature"]
    assert "|case:lc|" in scores["chrf"]["signature"]


@pytest.mark.usefixtures("files")
def test_chosen_metrics_alone_are_computed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sacrebleu.metrics.TER, "corpus_score", lambda *_: pytest.fail("TER was computed"))

    assert main(["--hypotheses", "hyp", "--reference", "ref", "--metrics", "chrf, BLEU", "--json", "-"]) == 0
    assert list(json.loads(capsys.readouterr().out))[:3] == ["chrf", "bleu", "sentences"]
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--metrics=bleu"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["metric", "BLEU", "3"]


def test_long_lines_and_ter(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "hyp").write_text("Yes. " * 1000, encoding="utf-8")
    (files / "ref").write_text("Yes. " * 1000, encoding="utf-8")

    assert main(["--hypotheses", "hyp", "--reference", "ref"]) == 0  # equal lines need no shift, and take no time
    assert "line 1 has 1,000 words: TER" in capsys.readouterr().err
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--metrics", "bleu,chrf"]) == 0
    assert capsys.readouterr().err == ""


def test_gzip_and_odd_separators_inside_a_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "One\u2028line.\nTwo\x0c lines.\r\n"
    (files / "hyp.gz").write_bytes(gzip.compress(text.encode()))
    (files / "ref").write_bytes(text.encode())

    assert main(["--hypotheses", "hyp.gz", "--reference", "ref"]) == 0
    assert "2 sentences" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "more", "told"),
    [
        ("Two dogs.\nYes.\n", "", True),  # three tokens and two
        ("Two dogs.\nYes.\n", "--metrics chrf", False),
        ("Two dogs.\nYes, yes.\n", "", False),  # four
        ("Two dogs.\nYes.\n", "--tokenize char", False),
    ],
)
def test_lines_that_are_too_short_for_bleu(
    files: Path, text: str, more: str, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which is 0 then even if the hypotheses are the references."""
    for name in ("hyp", "ref"):
        (files / name).write_text(text, encoding="utf-8")
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--json", "-", *more.split()]) == 0
    captured = capsys.readouterr()
    warning = "nmt-eval: warning: no line of the hypotheses or the references has four words: BLEU is 0 by definition"
    assert captured.err == (f"{warning}; chrF and TER tell more\n" if told else "")
    if "chrf" not in more:
        assert json.loads(captured.out)["bleu"]["score"] == pytest.approx(0 if told else 100)


def test_warnings_go_to_standard_error(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "hyp").write_text("The c@@ at .\n\nYes .\n", encoding="utf-8")

    assert main(["--hypotheses", "hyp", "--reference", "ref"]) == 0

    captured = capsys.readouterr()
    segmented, tokenised, empty = captured.err.splitlines()
    assert segmented.startswith("nmt-eval: warning: 33% of the hypotheses look split into subwords")
    assert tokenised.startswith("nmt-eval: warning: 67% of the hypotheses look tokenized")
    assert empty == "nmt-eval: warning: 1 of 3 hypotheses is empty"
    assert "warning" not in captured.out


# ----------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ("", ["nothing to score: give --hypotheses FILE, or --model", "--reference FILE is missing"]),
        ("--reference ref", ["nothing to score"]),
        ("--hypotheses hyp", ["--reference FILE is missing"]),
        ("--model m --reference ref", ["--model needs --source FILE"]),
        ("--model n --reference ref", ["--model needs --source FILE", "n: no such model file or run folder"]),
        ("--hypotheses hyp --model m --source src --reference ref", ["--hypotheses and --model exclude each other"]),
        ("--hypotheses hyp --source src --reference ref", ["--source has an effect only with --model"]),
        (
            "--hypotheses hyp --reference ref --metrics comet",
            ["--metrics: given 'comet'; allowed: bleu, chrf, chrf++, ter; the scores of COMET are read with --comet F"],
        ),
        (
            "--hypotheses hyp --reference ref --metrics bleu,tre,bleu,",
            [
                "--metrics: bleu is given more than once",
                "--metrics: given 'tre'; nearest: ter; allowed: bleu, chrf, chrf++, ter",
                "--metrics: given ''; allowed: bleu, chrf, chrf++, ter",
            ],
        ),
        (
            "--hypotheses hyp --reference ref --metrics ter --tokenize char --lowercase",
            [
                "--tokenize has an effect only on BLEU, which --metrics ter leaves out",
                "--lowercase has no effect on TER, which ignores case always",
            ],
        ),
        ("--hypotheses hyp --reference ref --output out", ["--output has an effect only with --model"]),
        (
            "--hypotheses h --beam-size 3 --length-penalty 1 --max-length-ratio 2 --batch-tokens 7 --device cpu",
            [
                "--hypotheses: h: no such file",
                "--reference FILE is missing",
                "--beam-size has an effect only",
                "--length-penalty has an effect only",
                "--max-length-ratio has an effect only",
                "--batch-tokens has an effect only",
                "--device has an effect only",
            ],
        ),
        (
            "--model m --source s --reference r --beam-size 0 --length-penalty -1 --batch-tokens 1.5 --device gpu",
            [
                "--source: s: no such file",
                "--reference: r: no such file",
                "--beam-size 0: allowed: a whole number, at least 1",
                "--length-penalty -1: allowed: none, average, or a number, at least 0",
                "--batch-tokens 1.5: allowed: a whole number, at least 1",
                "--device gpu: unknown; choose one of auto, cpu, cuda",
            ],
        ),
        (
            "--model m --source src --reference ref --beam-size x --length-penalty Avarage --max-length-ratio inf",
            [
                "--beam-size x: allowed: a whole number, at least 1",
                "--length-penalty Avarage: nearest: average; allowed: none, average, or a number, at least 0",
                "--max-length-ratio inf: allowed: a number, at least 0 and at most 100",
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
        ("--model m --source src --reference ref --output o --json o", ["--json o: would overwrite --output o"]),
        ("--model m --source src --reference ref --json m", ["--json m: would overwrite --model m"]),
        ("--model m --source src --reference ref --output -", ["--output -: standard output has the scores"]),
        ("--hypotheses hyp --reference ref --json .", ["--json .: is a folder, not a file"]),
        (
            "--hypotheses hpy --reference rfe",
            ["--hypotheses: hpy: no such file", "--reference: rfe: no such file"],
        ),
        ("--hypotheses . --reference ref", ["--hypotheses: .: is a folder"]),
    ],
)
def test_every_mistake_is_reported_at_once(
    arguments: str, messages: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = fails(arguments.split(), capsys)

    assert [message for message in messages if message not in said] == []
    assert len(said.splitlines()) == len(messages) + (len(messages) > 1)  # and a line that counts the problems


def test_unequal_line_counts_are_both_named(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "hyp").write_text("one\ntwo\n", encoding="utf-8")

    assert "--hypotheses hyp has 2 lines and --reference ref has 3" in fails(
        ["--hypotheses", "hyp", "--reference", "ref"], capsys
    )


@pytest.mark.usefixtures("files")
def test_a_sentence_that_takes_ter_long_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = ter.translation_edit_rate

    def slow(hypothesis: list[str], reference: list[str]) -> tuple[int, int]:
        if len(hypothesis) == 5:  # the second line
            time.sleep(0.4)
        return before(hypothesis, reference)

    monkeypatch.setattr(ter, "translation_edit_rate", slow)
    monkeypatch.setattr("nmt.cli.slow_sentences.PATIENCE", 0.1)
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--metrics", "ter"]) == 0
    captured = capsys.readouterr()
    (warning,) = captured.err.splitlines()
    assert warning.startswith("nmt-eval: warning: TER is still at hyp, line 2 (5 words, and 5 in the reference)")
    assert warning.endswith("--metrics bleu,chrf leaves TER out")
    expected = sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert captured.out.splitlines()[1].split()[1] == f"{expected:.2f}"


def test_what_follows_the_sentences_is_not_blamed_on_the_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nmt.cli.slow_sentences.PATIENCE", 0.1)
    with sentences_watched(1, tell="line {}".format) as sentence:
        with sentence():
            pass
        time.sleep(0.3)  # as the bootstrap may take
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("files")
def test_a_terminal_sees_how_far_ter_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    before = ter.translation_edit_rate
    monkeypatch.setattr(ter, "translation_edit_rate", lambda *both: (time.sleep(0.6), before(*both))[1])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["--hypotheses", "hyp", "--reference", "ref", "--metrics", "ter"]) == 0
    assert "TER:  67%" in capsys.readouterr().err


def test_empty_files_are_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "hyp").write_bytes(b"")
    (files / "ref").write_bytes(b"")

    said = fails(["--hypotheses", "hyp", "--reference", "ref"], capsys)
    assert "--hypotheses hyp: the file is empty" in said
    assert "--reference ref: the file is empty" in said


def test_invalid_utf8_is_named_with_its_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "ref").write_bytes(b"one\nd\xe9j\xe0 vu\nthree\n")

    assert "--reference: ref, line 2: not valid UTF-8 (byte 0xe9 at column 2)" in fails(
        ["--hypotheses", "hyp", "--reference", "ref"], capsys
    )


@pytest.mark.parametrize(
    ("option", "text"), [("length-penalty", "nan"), ("length-penalty", ""), ("max-length-ratio", "nan"), ("device", "")]
)
@pytest.mark.usefixtures("files")
def test_what_is_no_number_and_no_name(option: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = fails([*MODEL, f"--{option}={text}"], capsys)
    assert len(said.splitlines()) == 1
    assert said.startswith(f"nmt-eval: error: --{option} ")


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--beam", "3"])
    assert stop.value.code == 2
    assert "--beam" in capsys.readouterr().err


def test_scoring_a_file_does_not_wait_for_torch(files: Path) -> None:
    program = "import sys; from nmt.cli.evaluate import main; assert main() == 0; assert 'torch' not in sys.modules"
    command = [sys.executable, "-c", program, "--hypotheses", "hyp", "--reference", "ref"]
    assert subprocess.run(command, cwd=files, stdout=subprocess.DEVNULL).returncode == 0


def test_a_closed_standard_output(files: Path) -> None:
    command = f"'{sys.executable}' -m nmt.cli.evaluate --hypotheses hyp --reference ref --json - >&-"
    done = subprocess.run(["sh", "-c", command], cwd=files, capture_output=True)
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("nmt-eval: error: standard output is closed")


# ------------------------------------------------------------------------------------------------ translate and score


class DictionaryTranslator:
    """Translates SOURCE to HYPOTHESES and notes how it was asked to."""

    def __init__(self) -> None:
        self.devices: list[str] = []
        self.precisions: list[str] = []
        self.options: TranslationOptions | None = None

    def check(self, options: TranslationOptions) -> None:
        """It can do all of them."""

    def translate(self, lines: Iterable[str], options: TranslationOptions) -> Iterator[list[Translation]]:
        self.options = options
        for line in lines:
            text = dict(zip(SOURCE, HYPOTHESES, strict=True))[line]
            yield [Translation(text=text, score=-1.0, tokens=text.split())]


@pytest.fixture
def translator(monkeypatch: pytest.MonkeyPatch) -> DictionaryTranslator:
    fake = DictionaryTranslator()

    def load(
        paths: list[Path], *, device: torch.device, precision: str, shortlist: Path | None, ensemble: str | None
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
    assert translator.precisions == ["float32", "float32", "int8"]
    assert translator.options == TranslationOptions(length_penalty=0.6)


@pytest.mark.usefixtures("files")
def test_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    assert "--device cuda: no CUDA device" in fails([*MODEL, "--device", "cuda"], capsys)


@pytest.mark.parametrize("options", ["--tokenize 13b", "--output missing/out", "--reference missing"])
def test_mistakes_are_reported_before_the_model_is_loaded(
    options: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Translator, "load", lambda *_, **__: pytest.fail("the model was loaded"))

    fails([*MODEL, *options.split()], capsys)


def test_source_and_reference_of_different_length(
    files: Path, translator: DictionaryTranslator, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "src").write_text("Ja\n", encoding="utf-8")

    assert "--source src has 1 line and --reference ref has 3" in fails(MODEL, capsys)
    assert translator.options is None


def test_a_model_file_is_loaded_and_scored(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subwords = Subwords.train(SOURCE + REFERENCES, settings=SubwordsConfig(size=61))
    corpus = {"source": files / "src", "target": files / "ref"}
    config = Config.model_validate(
        {
            "name": "untrained",
            "data": {"source_language": "de", "target_language": "en", "train": [corpus], "valid": corpus},
            "model": {"embedding_size": 3, "encoder": {"hidden_size": 5}, "decoder": {"hidden_size": 7}},
        }
    )
    model = build_model(config.model, source_size=61, target_size=61)
    save_model(
        files / "m",
        ModelFile(
            config=config,
            weights=model.state_dict(),
            source_subwords=subwords.model,
            target_subwords=subwords.model,
            sizes=(61, 61),
            training={},
        ),
    )

    assert main([*MODEL, "--device", "cpu", "--beam-size", "2", "--output", "out"]) == 0

    assert len((files / "out").read_text(encoding="utf-8").split("\n")) == 3 + 1
    assert "3 sentences" in capsys.readouterr().out
