"""A trained model in a user's hands: hostile text, pipes, one file taken elsewhere; in processes of their own, most of
them forked."""

import shutil
from pathlib import Path

import pytest
import yaml

from nmt.decoding.options import TranslationOptions
from nmt.decoding.translator import Translator
from tests.end_to_end import forked
from tests.end_to_end.conftest import make_short_corpus, settings
from tests.end_to_end.forked import run

pytestmark = pytest.mark.slow

# A model that is trained for seconds, and yet translates different sentences differently.
QUICK = {
    "training.max_epochs": 5,
    "training.validate_every": "5 epochs",
    "training.save_every": "null",
    "training.accumulate": 1,
    "training.average_best": 0,
    "training.label_smoothing": 0,
    "training.optimizer.learning_rate": 0.02,
    "subwords.sampling": "null",
    "model.initialization": "{name: xavier}",  # learns within seconds
    "model.encoder.dropout": 0,
    "model.decoder.dropout": 0,
}


def succeeds(command: str, *arguments: object, text: bytes = b"") -> bytes:
    """What a command writes that must succeed."""
    ended = run(command, *arguments, text=text)
    assert ended.code == 0, ended.errors
    return ended.output


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Longer sentences than others train on: a model of those with 5 words ends no long line with a period."""
    return make_short_corpus(tmp_path_factory.mktemp("corpus"), longest=7)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A folder with all that a training reads and writes: corpus, cache of subwords and ids, and the run folder."""
    home = tmp_path_factory.mktemp("home") / "home"
    shutil.copytree(corpus, home / "corpus", ignore=shutil.ignore_patterns("cache"))
    (home / "tiny.yaml").write_text(yaml.safe_dump(settings(home / "corpus")), encoding="utf-8")
    changes = [part for key, value in QUICK.items() for part in ("--set", f"{key}={value}")]
    succeeds("train", *forked.arguments(home / "tiny.yaml", home / "run"), *changes)
    return home


@pytest.fixture(scope="session")
def model(home: Path) -> Path:
    return home / "run" / "best.safetensors"


# -------------------------------------------------------------------------------------------------------- hostile text

PLAIN = "the old man buys bread ."
BLANK = ["", " ", "  \t ", "\u3000", "\r"]
ODD = [
    PLAIN,
    "🙂 🏳️‍🌈 👩🏽‍🚒",
    "a\x00b",
    "\x00",
    "\x01\x02\x07 the\x1b[31m man \x7f",
    "one\u2028two\u2029three",
    "next\x85line",
    "\x0b\x0c\x1c\x1d\x1e",
    "carriage\rreturn",
    "?!… — «»()[]{}",
    ".",
    "Привет the 世界 مرحبا ελληνικά हिन्दी 한국어 👋",
    "e\u0301\u0301\u0301 \u200b\u200d\ufeff \ufffd \U0010ffff",
    "▁ <pad> <unk> <s> </s> ▁▁",
    "w" * 300,
    "\ufeff",
]


@pytest.fixture(scope="module")
def hundreds() -> list[str]:
    """Three hundred lines: blank and odd ones in turn, one of 2,500 words, and the plain sentence first and last."""
    kinds = [*ODD, *BLANK]
    lines = [PLAIN, *(kinds[number % len(kinds)] for number in range(298)), PLAIN]
    lines[150] = "the old man buys bread . " * 416 + "the old man ."
    assert len(lines[150].split()) == 2_500
    return lines


def test_hundreds_of_hostile_lines_by_file_and_by_pipe(model: Path, hundreds: list[str], tmp_path: Path) -> None:
    ends = ("\n" if number % 3 else "\r\n" for number in range(299))  # the last line has none
    text = "\ufeff" + "".join(line + end for line, end in zip(hundreds, (*ends, ""), strict=True))
    (tmp_path / "in").write_bytes(text.encode())
    translate = ("translate", "--model", model, "--device", "cpu")

    piped = succeeds(*translate, text=text.encode())
    assert succeeds(*translate, "--input", tmp_path / "in", "--output", tmp_path / "out") == b""
    assert (tmp_path / "out").read_bytes() == piped

    assert piped.endswith(b"\n")
    translations = piped.decode().split("\n")[:-1]
    assert len(translations) == len(hundreds)
    assert all(len(line.splitlines()) <= 1 for line in translations)  # no line break of another kind
    # Equal lines have equal translations, wherever they stand: after the byte order mark, with Windows line ends, last.
    pairs = set(zip(hundreds, translations, strict=True))
    assert len(pairs) == len(set(hundreds)) == len(ODD) + len(BLANK) + 1
    assert {translation for line, translation in pairs if line in BLANK} == {""}
    assert dict(pairs)[PLAIN] != ""
    # All of the long line was translated, not only its beginning.
    _, (segments,) = next(Translator.load(model).read([hundreds[150]], TranslationOptions()))
    assert len(segments) > 10
    assert dict(pairs)[hundreds[150]].count(".") >= len(segments)


# ----------------------------------------------------------------------------------------------- the model is one file


def test_the_model_is_one_file(home: Path, model: Path, corpus: Path, tmp_path: Path) -> None:
    """Elsewhere, and with all that training left behind out of reach, the file alone translates the same."""
    text = (corpus / "test.en").read_bytes()
    expected = succeeds("translate", "--model", home / "run", text=text)
    assert len(set(expected.splitlines())) > 15  # of 30 lines: the translations depend on the source
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.copy(model, tmp_path / "elsewhere" / "german.bin")
    hidden = home.rename(home.with_name("hidden"))
    try:
        assert succeeds("translate", "--model", moved, text=text) == expected
    finally:
        hidden.rename(home)
