"""Words as the gold alignments of the Hansards have them, by sentences of that set."""

import io
import sys

import pytest

from scripts.hansards_words import main, words


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("en", "Mr. Speaker, it's the Hon. Member's $100...", "mr. speaker , it 's the hon. member 's $ 100 ..."),
        ("en", "They were in St. John at 2.30 p.m., at last.", "they were in st. john at 2.30 p.m. , at last ."),
        ("en", "Non-compliance: 98,355 cases.", "non - compliance : 98,355 cases ."),
        ("fr", "Aujourd'hui, M. Forrestall n'a rien dit.", "aujourd' hui , m. forrestall ne a rien dit ."),
        ("fr", "L'appui du député aux élèves", "le appui de le depute a les eleves"),
        ("fr", "Qu'est-ce que ça fait ?", "que est - ce que ca fait ?"),
        ("fr", "", ""),
    ],
)
def test_words(language: str, line: str, expected: str) -> None:
    assert " ".join(words(line, language)) == expected


def test_lines_stay_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Yes.\n\nNo.\n"))
    assert main(["en"]) == 0
    assert capsys.readouterr().out == "yes .\n\nno .\n"


@pytest.mark.parametrize("arguments", [[], ["de"], ["en", "fr"]])
def test_mistakes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "give the language, en or fr" in capsys.readouterr().err
