"""nmt-align from its arguments to its output, exit code and messages."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.cli.align import main
from nmt.decoding import word_aligner
from nmt.ops.hidden_markov import Direction, agreeing
from nmt.ops.translation_table import Pair
from tests.conftest import make_synthetic_corpus, write_texts

# A = 0-0 1-2 2-2, S = 0-0 1-1, P = S and 1-2; then A = 0-0, S = 0-0; then both are empty:
# precision (2 + 1) / (3 + 1), recall (1 + 1) / (2 + 1), AER 1 - (2 + 3) / (4 + 3)
PREDICTED = ["0-0 1-2 2-2", "0-0", ""]
GOLD = ["0-0 1-1 1p2", "0-0", ""]
REVERSE = ["0-0 2-1", "1-0", ""]  # its sources are our targets: 0-0 1-2, 0-1
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def files(here: Path) -> Path:
    return write_texts(here, {"a": PREDICTED, "gold": GOLD, "rev": REVERSE})


def test_precision_recall_and_error_rate(capsys: Capture) -> None:
    assert main(["--alignments", "a", "--gold-alignments", "gold", "--json", "scores"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "measure    value   better",
        "precision  0.7500  higher",
        "recall     0.6667  higher",
        "AER        0.2857  lower",
        "3 sentences",
    ]
    scores = json.loads(Path("scores").read_text(encoding="utf-8"))
    assert scores == {"precision": 0.75, "recall": 0.666667, "alignment_error_rate": 0.285714, "sentences": 3}
    assert main(["--alignments", "a", "--gold-alignments", "gold", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == scores


def test_without_any_link_nothing_is_perfect(capsys: Capture) -> None:
    for name in ("a", "gold"):
        Path(name).write_text("\n\n\n", encoding="utf-8")
    assert main(["--alignments", "a", "--gold-alignments", "gold", "--json", "scores"]) == 0
    assert "AER        –       lower" in capsys.readouterr().out
    assert json.loads(Path("scores").read_text(encoding="utf-8"))["alignment_error_rate"] is None


@pytest.mark.parametrize(("options", "rate"), [((), 0.459), (("--first-word", "1"), 0.080)])
def test_gold_alignments_whose_words_are_counted_from_1(
    options: tuple[str, ...], rate: float, shared_data: Path, capsys: Capture
) -> None:
    folder = shared_data / "gold-align/enfr"
    files = [f"--alignments={folder}/baseline-giza.talp.gz", f"--gold-alignments={folder}/gold.gz"]
    assert main([*files, *options, "--json", "scores"]) == 0
    assert round(json.loads(Path("scores").read_text(encoding="utf-8"))["alignment_error_rate"], 3) == rate
    told = f"nmt-align: warning: --gold-alignments {folder}/gold.gz: no line links word 0, as if words were counted "
    assert capsys.readouterr().err.startswith(told) == (not options)


@pytest.mark.parametrize("name", ["xl-wa-en-it/dev", "xl-wa-en-ru/test"])
def test_gold_alignments_whose_words_are_counted_from_0(name: str, shared_data: Path, capsys: Capture) -> None:
    gold = shared_data / f"gold-align/{name}.gold.gz"
    assert main([f"--alignments={gold}", f"--gold-alignments={gold}", "--json", "-"]) == 0
    assert capsys.readouterr().err == ""
    assert main([f"--alignments={gold}", f"--gold-alignments={gold}", "--first-word", "1"]) == 2
    assert "has a link of word 0, so its words are not counted from 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("intersection", ["0-0 1-2", "", ""]),
        ("union", ["0-0 1-2 2-2", "0-0 0-1", ""]),
        ("grow-diag-final-and", ["0-0 1-2 2-2", "0-0", ""]),
    ],
)
def test_two_directions(how: str, expected: list[str], capsys: Capture) -> None:
    """2-2 is beside 1-2 and source 2 has no other link, so it is grown; 0-1 and 0-0 share a word: the first stays."""
    arguments = ["--alignments", "a", "--reverse-alignments", "rev", "--symmetrize", how, "--output"]
    assert main([*arguments, "both"]) == 0
    assert Path("both").read_text(encoding="utf-8").split("\n")[:-1] == expected
    assert capsys.readouterr().out == ""
    assert main([*arguments, "-"]) == 0
    assert capsys.readouterr().out.split("\n")[:-1] == expected
    assert main([*arguments, "both", "--gold-alignments", "gold", "--json", "combined"]) == 0
    assert main(["--alignments", "both", "--gold-alignments", "gold", "--json", "again"]) == 0
    assert Path("combined").read_text() == Path("again").read_text()


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ("--gold-alignments gold", ["give either --alignments FILE, to score or to combine, or --source FILE and --t"]),
        ("--source a --output x", ["give either --alignments FILE"]),
        ("--source a --target rev --alignments a --output x", ["give either --alignments FILE"]),
        (
            "--source a --target rev --reverse-alignments rev --output x",
            ["--reverse-alignments FILE goes with --alignments FILE: both directions are learned here"],
        ),
        ("--source a gold --target rev --output x", ["--source has 2 files and --target 1: file i of the one must go"]),
        ("--source a --target two --output x", ["a has 3 lines, but two has 2"]),
        ("--source a --target rev --output a", ["--output a: would overwrite --source a"]),
        ("--source a --target rev", ["nothing to do: give --gold-alignments FILE to score, or --output FILE to save"]),
        ("--alignments a", ["nothing to do: give --gold-alignments FILE to score"]),
        ("--alignments a --reverse-alignments rev --output o", ["--symmetrize HOW go together"]),
        ("--alignments a --reverse-alignments rev --symmetrize onion --output o", ["--symmetrize onion: unknown"]),
        (
            "--alignments a --symmetrize union --json o",
            ["go together", "nothing to do", "--json has an effect only with --gold-alignments"],
        ),
        (
            "--alignments a --reverse-alignments rev --symmetrize union --gold-alignments gold --output -",
            ["--output -: standard output has the scores"],
        ),
        ("--alignments a --first-word 0 --output b", ["--first-word has an effect only with --gold-alignments"]),
        (
            "--alignments a --first-word 2 --gold-alignments gold",
            ["--first-word 2: allowed: a whole number"],
        ),
        ("--alignments none --gold-alignments gold", ["--alignments: none: no such file"]),
        ("--alignments gold --gold-alignments gold", ["gold, line 1: '1p2' is not a link; expected source-target"]),
        ("--alignments a --gold-alignments two", ["--alignments a has 3 lines and --gold-alignments two has 2"]),
        ("--alignments a --gold-alignments empty", ["--gold-alignments empty: the file is empty"]),
        ("--alignments a --gold-alignments gold --json a", ["--json a: would overwrite --alignments a"]),
    ],
)
def test_mistakes(arguments: str, messages: list[str], files: Path, capsys: Capture) -> None:
    (files / "two").write_text("0-0\n1-1\n", encoding="utf-8")
    (files / "empty").touch()
    assert main(arguments.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == (1 if len(messages) == 1 else len(messages) + 1)
    for message in messages:
        assert message in captured.err
    assert not (files / "o").exists()


def test_no_pytorch_is_imported() -> None:
    program = (
        "import sys; from nmt.cli.align import main; "
        "main(['--alignments', 'a', '--gold-alignments', 'gold']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def test_learned_from_the_text_itself(files: Path) -> None:
    """The corpus that the demo learns from has gold alignments; further text is learned from, in any capitals."""
    make_synthetic_corpus(files / "data", train=1000, valid=1, test=100)
    loud = Path("data/train.en").read_text(encoding="utf-8").upper()
    Path("data/train.en").write_text(loud, encoding="utf-8")
    learned = ["--source", "data/test.en", "data/train.en", "--target", "data/test.de", "data/train.de"]
    scoring = ["--gold-alignments", "data/test.align", "--json", "scores"]
    for how in ([], ["--symmetrize", "intersection"]):
        assert main([*learned, *how, *scoring]) == 0
        assert json.loads(Path("scores").read_text(encoding="utf-8"))["alignment_error_rate"] < 0.05
    few = ["--source", "data/test.en", "--target", "data/test.de"]
    assert main([*few, "--output", "links"]) == 0
    assert main([*few, "--output", "grown", "--symmetrize", "grow-diag-final-and"]) == 0
    assert Path("links").read_text(encoding="utf-8") == Path("grown").read_text(encoding="utf-8")


def test_of_much_text_a_part_is_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 words × words, where 8 are too many, every third pair; and none that is too long."""
    learned: list[Sequence[Pair]] = []

    def noted(pairs: Sequence[Pair], **sizes: int) -> tuple[Direction, Direction]:
        learned.append(pairs)
        return agreeing(pairs, **sizes)

    monkeypatch.setattr(word_aligner, "agreeing", noted)
    monkeypatch.setattr(word_aligner, "MOST_CELLS", 8)
    long = " ".join(["a"] * (word_aligner.LONGEST + 1))
    lines = [("a b", "c d"), (long, "c"), ("e f", "g h"), ("i j", "k l"), ("m n", "o p"), ("q r", "s t")]
    forward, _ = word_aligner.aligned(lines, count=len(lines))
    assert len(list(forward)) == len(lines)
    assert [source.tolist() for source, _ in learned[0]] == [[0, 1], [6, 7]]


def test_a_line_that_is_too_long_has_no_links(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(word_aligner, "LONGEST_LINKED", 3)
    Path("some.en").write_text("one two three\nfour five six seven\none\nsix\n", encoding="utf-8")
    Path("some.de").write_text("eins zwei drei\nvier\neins\na b c d\n", encoding="utf-8")
    assert main(["--source", "some.en", "--target", "some.de", "--output", "links"]) == 0
    links = Path("links").read_text(encoding="utf-8").split("\n")
    assert links[0]
    assert links[1:] == ["", "0-0", "", ""]
    assert capsys.readouterr().err == "nmt-align: warning: lines of over 3 words get no links: 2, 4\n"


def test_lines_of_which_nothing_can_be_learned(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(word_aligner, "LONGEST", 3)
    Path("some.en").write_text("one two three four\n\n", encoding="utf-8")
    Path("some.de").write_text("eins\nzwei\n", encoding="utf-8")
    assert main(["--source", "some.en", "--target", "some.de", "--output", "links"]) == 0
    warning = "nothing to learn from, and so no links: no line has 1 to 3 words on both sides"
    assert capsys.readouterr().err == f"nmt-align: warning: {warning}\n"
    assert Path("links").read_text(encoding="utf-8") == "\n\n"


@pytest.mark.parametrize(
    ("gold", "options", "message"),
    [
        (
            ["0-0", "2-0"],
            [],
            "the target; expected source-target, counted from 0 (from 1: --first-word 1); swapped sides?\n",
        ),
        (["0-0", "2-0"], [], "line 2: 2-0 is beyond the words of the pair, 1 of the source and 3 of the target; exp"),
        (["0-0", "0p3"], [], "line 2: 0-3 is beyond"),
        (["1-1", "1-4 1-3"], ["--first-word", "1"], "line 2: 1-4 is beyond"),
        (["1-1", "1-3"], ["--first-word", "1"], ""),
        (["0-0", "0-2"], [], ""),
    ],
)
def test_gold_alignments_of_another_text(gold: list[str], options: list[str], message: str, capsys: Capture) -> None:
    """Or with the sides the other way round, or with other words: a score of such alignments says nothing."""
    write_texts(Path(), {"some.en": ["one", "two"], "some.de": ["eins", "a b c"], "people": gold})
    arguments = ["--source", "some.en", "--target", "some.de", "--gold-alignments", "people", *options]
    code = main(arguments)
    assert (code, message in capsys.readouterr().err) == (2 if message else 0, True)


def test_words_that_other_aligners_would_count_otherwise(capsys: Capture) -> None:
    """Training refuses such links, so they are not made."""
    Path("a.fr").write_text("Bonjour\u00a0!\nOui\n", encoding="utf-8")
    Path("a.en").write_text("Hello !\nYes\n", encoding="utf-8")
    assert main(["--source", "a.fr", "--target", "a.en", "--output", "links"]) == 2
    message = "a.fr, line 1: U+00A0 (NO-BREAK SPACE) ends a word to some aligners, but not to others; put a space in"
    assert message in capsys.readouterr().err
    assert not Path("links").exists()


def test_text_without_spaces_between_words(capsys: Capture) -> None:
    """Each line is one word, and all links lead to it. Where some lines are cut, the others may be single words."""
    Path("a.ja").write_text("これは小さな家です。\n" * 3, encoding="utf-8")
    Path("cut.ja").write_text("これ は 小さな 家 です 。\n" * 2 + "ありがとう\n", encoding="utf-8")
    Path("a.en").write_text("This is a small house .\n" * 3, encoding="utf-8")
    assert main(["--source", "a.ja", "--target", "a.en", "--output", "links"]) == 0
    warning = "a.ja: 100% of the lines have no spaces between words, so that all of one may count as a word"
    assert capsys.readouterr().err == f"nmt-align: warning: {warning}; cut the text into words first\n"
    assert main(["--source", "cut.ja", "--target", "a.en", "--output", "links"]) == 0
    assert capsys.readouterr().err == ""
