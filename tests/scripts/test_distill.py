"""Which translations of an n-best list a student is given, and what is refused."""

from pathlib import Path

import pytest

from scripts import distill
from tests.conftest import write_lines

LISTS = [  # a source with three translations, one with one, an empty one, and one whose text has the separator
    "0 ||| the dog sees a cat . ||| -0.1000",
    "0 ||| the dog sees the cat . ||| -0.2000",
    "0 ||| dogs ||| -0.3000",
    "1 ||| nothing like it ||| -0.5000",
    "2 |||  ||| 0.0000",
    "3 ||| a ||| b c d ||| -0.1000",
    "3 ||| a ||| b c d e ||| -0.2000",
    "4 ||| same ||| -0.1000",
    "4 ||| Same ||| -0.2000",
]
REFERENCES = ["the dog sees the cat .", "a house .", "", "a ||| b c d e f", "other"]
NEAREST = ["the dog sees the cat .", "nothing like it", "", "a ||| b c d e", "same"]


def run(folder: Path, lists: list[str], references: list[str], *more: str, code: int = 0) -> Path:
    """The output, where the script ended with this exit code."""
    files = write_lines(folder / "n-best", lists), write_lines(folder / "reference", references)
    output = folder / "nearest"
    arguments = ["--n-best", str(files[0]), "--reference", str(files[1]), "--output", str(output), *more]
    assert distill.main(arguments) == code
    return output


@pytest.mark.parametrize("more", [(), ("--metric", "chrf"), ("--tokenize", "none")])
def test_the_nearest_of_each_list(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Of equally near ones the first."""
    output = run(tmp_path, LISTS, REFERENCES, *more)
    assert output.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in NEAREST)


def test_case_may_be_ignored(tmp_path: Path) -> None:
    lists = ["0 ||| a Dog . ||| -0.1", "0 ||| A dog ||| -0.2"]
    assert run(tmp_path, lists, ["A dog ."]).read_text() == "A dog\n"
    assert run(tmp_path, lists, ["A dog ."], "--lowercase").read_text() == "a Dog .\n"


@pytest.mark.parametrize(
    ("lists", "references", "expected"),
    [
        (["a dog"], ["x"], "n-best, line 1: is not of the form NUMBER ||| TRANSLATION ||| SCORE"),
        (["0 ||| a dog"], ["x"], "n-best, line 1: is not of the form"),
        (["0 ||| a dog ||| LM0= -3"], ["x"], "n-best, line 1: is not of the form"),
        (
            ["0 ||| ein Hund ||| -1", "0 ||| ein ||| Hund ||| LM0= -3 TM0= -1 -2 ||| -0.4"],
            ["x"],
            "n-best, line 2: 'LM0= -3 TM0= -1 -2' looks like the features of Moses; leave only NUMBER ||| TRANSLATION",
        ),
        (["0 ||| a ||| -1", "x ||| a ||| -1"], ["x", "y"], "n-best, line 2: is not of the form"),
        ([f"{'9' * 5000} ||| a ||| -1"], ["x"], "n-best, line 1: is not of the form"),
        (
            ["0 ||| a ||| -1", "2 ||| a ||| -1"],
            ["x", "y"],
            "n-best, line 2: is of source 2, where those of 1",
        ),
        (["0 ||| a ||| -1"], ["x", "y"], "n-best: ends after line or list 1, where"),
        (["0 ||| a ||| -1", "1 ||| b ||| -1"], ["x"], "reference: ends after line or list 1, where"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lists: list[str],
    references: list[str],
    expected: str,
) -> None:
    output = run(tmp_path, lists, references, code=2)
    assert expected in capsys.readouterr().err
    assert not output.exists()


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    """What is said to these arguments."""
    assert distill.main([*map(str, arguments)]) == 2
    first, *others = capsys.readouterr().err.splitlines()
    if not others:
        return [first.removeprefix("distill.py: error: ")]
    assert first == f"distill.py: {len(others)} problems:"
    return [line.removeprefix("  - ") for line in others]


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever name an input has: a link to it, or a path that leads through another folder."""
    lists, references = write_lines(tmp_path / "lists", ["0 ||| a ||| -1"]), write_lines(tmp_path / "references", ["b"])
    link = tmp_path / "link"
    link.symlink_to(references)
    (tmp_path / "folder").mkdir()
    arguments = ["--n-best", lists, "--reference", references, "--output"]
    for output, option, taken in (
        (tmp_path / "folder" / ".." / "lists", "--n-best", lists),
        (link, "--reference", references),
    ):
        assert refused(capsys, *arguments, output) == [
            f"--output {output}: would overwrite {option} {taken}; give another name"
        ]
    same = ["--n-best", references, "--reference", link, "--output", tmp_path / "out"]
    assert refused(capsys, *same) == [f"--reference {link}: is the same file as --n-best {references}"]
    assert (lists.read_text(), references.read_text()) == ("0 ||| a ||| -1\n", "b\n")
