"""--alignments and --soft-alignments of nmt-translate and nmt-score, with a model whose alignment is known."""

import json
import sys
from pathlib import Path

import pytest

from nmt.cli import score, translate
from nmt.evaluation import alignment_plot
from tests.cli.conftest import lines
from tests.conftest import write_texts
from tests.known_model import save_known_model
from tests.random_model import save_random_model

SOURCE = ["today", "she", "reads", "the", "old", "book", "."]
TARGET = ["heute", "liest", "sie", "alte", "Bücher", "."]
LINKS = [(0, 0), (2, 1), (1, 2), (4, 3), (5, 4), (6, 5)]
PHARAOH = "0-0 2-1 1-2 4-3 5-4 6-5"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(here: Path) -> Path:
    """The working folder, with a model m, the text src and its translation tgt; the second line is blank."""
    save_known_model(here / "m", SOURCE, TARGET, LINKS)
    source, target = " ".join(SOURCE), " ".join(TARGET)
    return write_texts(here, {"src": [source, "", source], "tgt": [target, "", target]})


PROGRAMS = {
    "translate": (translate.main, ["--model", "m", "--input", "src", "--device", "cpu"]),
    "score": (score.main, ["--model", "m", "--source", "src", "--target", "tgt", "--device", "cpu"]),
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_line_for_each_line(name: str, capsys: Capture) -> None:
    program, arguments = PROGRAMS[name]
    assert program([*arguments, "--output", "plain"]) == 0
    assert program([*arguments, "--output", "out", "--alignments", "hard", "--soft-alignments", "soft"]) == 0
    assert lines("out") == lines("plain")
    assert lines("hard") == [PHARAOH, "", PHARAOH]
    first, blank, _ = (json.loads(line) for line in lines("soft"))
    assert blank == {"source": ["</s>"], "target": [], "attention": []}
    assert (first["source"], first["target"]) == ([*SOURCE, "</s>"], TARGET)
    assert [len(row) for row in first["attention"]] == [len(SOURCE) + 1] * len(TARGET)
    for place, word in LINKS:
        assert first["attention"][word][place] > 0.99
        assert sum(first["attention"][word]) == pytest.approx(1.0, abs=0.001)  # of rounded numbers
    weights = [weight for row in first["attention"] for weight in row]
    assert weights == [round(weight, 4) for weight in weights]
    assert "Bücher" in lines("soft")[0]
    capsys.readouterr()


@pytest.mark.usefixtures("files")
def test_n_best_lists_have_a_line_for_each_translation() -> None:
    program, arguments = PROGRAMS["translate"]
    assert program([*arguments, "--output", "out", "--n-best", "3", "--beam-size", "3", "--alignments", "hard"]) == 0
    rows = [line.split(" ||| ") for line in lines("out")]
    links = lines("hard")
    assert len(rows) == len(links) == 7
    for (_, text, _), line in zip(rows, links, strict=True):
        assert [int(link.partition("-")[2]) for link in line.split()] == list(range(len(text.split())))
    assert links[0] == PHARAOH


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", PROGRAMS)
def test_which_step_and_which_word_is_linked(name: str) -> None:
    """The step after the last word writes the end, and attends to the end."""
    program, arguments = PROGRAMS[name]
    arguments = [*arguments, "--output", "out", "--alignments", "hard", "--alignment-step", "next"]
    assert program(arguments) == 0
    assert lines("hard")[0] == "2-0 1-1 4-2 5-3 6-4 6-5"
    assert program([*arguments, "--end-links", "none"]) == 0
    assert lines("hard")[0] == "2-0 1-1 4-2 5-3 6-4"


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", PROGRAMS)
def test_mistakes(name: str, capsys: Capture) -> None:
    program, arguments = PROGRAMS[name]
    output = ["--output", "out", "--alignments", "m", "--soft-alignments", "-"]
    assert program([*arguments, *output]) == 2
    messages = capsys.readouterr().err
    assert "2 problems" in messages
    assert "--alignments m: would overwrite --model m" in messages
    assert "--soft-alignments -: standard output has the other lines; give a file" in messages
    assert program([*arguments, "--output", "out", "--alignments", "x", "--soft-alignments", "x"]) == 2
    assert "--soft-alignments x: would overwrite --alignments x" in capsys.readouterr().err
    assert program([*arguments, "--output", "out", "--alignments", "out"]) == 2
    assert "--alignments out: would overwrite --output out" in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == ["m", "src", "tgt"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_model_without_attention(name: str, files: Path, capsys: Capture) -> None:
    save_random_model(files / "plain", score="none")
    program, arguments = PROGRAMS[name]
    arguments = ["--model", "plain", *arguments[2:]]
    assert program([*arguments, "--output", "out", "--alignments", "hard"]) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith(f"nmt-{name}: error: there are no alignments: the model has no attention")
    assert not (files / "out").exists()
    assert not (files / "hard").exists()
    assert program([*arguments, "--output", "out"]) == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_pictures(name: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment_plot, "FONTS", ("DejaVu Sans",))
    program, arguments = PROGRAMS[name]
    (files / "src").write_text("today 猫 she\n\ntoday she 猫\n", encoding="utf-8")
    arguments = [*arguments, "--output", "out", "--plot-alignments", "pictures"]
    assert program([*arguments, *(["--n-best", "2", "--beam-size", "2"] if name == "translate" else [])]) == 0
    pictures = sorted((files / "pictures").iterdir())
    assert [path.name for path in pictures] == ["000001.png", "000003.png"]  # the second line is blank
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert program(arguments) == 0  # into a folder that is there


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", PROGRAMS)
def test_pictures_that_cannot_be_drawn(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    program, arguments = PROGRAMS[name]
    assert program([*arguments, "--output", "out", "--plot-alignments", "src"]) == 2
    assert "--plot-alignments src: is a file, not a folder" in capsys.readouterr().err
    for option in ("--output", "--alignments"):  # files that are not there yet, and would be folders when all is done
        others = [] if option == "--output" else ["--output", "out"]
        assert program([*arguments, *others, option, "both", "--plot-alignments", "./both"]) == 2
        message = f"--plot-alignments both: would overwrite {option} both; give another name"
        assert message in capsys.readouterr().err
    assert program([*arguments, "--output", "out", "--plot-alignments", "no/such"]) == 2
    assert "--plot-alignments no/such: there is no folder no" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert program([*arguments, "--output", "out", "--plot-alignments", "pictures"]) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith(f"nmt-{name}: error: pictures need matplotlib")
    assert not Path("pictures").exists()
    assert not Path("out").exists()
