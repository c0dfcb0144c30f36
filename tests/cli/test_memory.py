"""Batches beyond the memory: halved, with the same output; or one message, where not even one sentence fits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.cli import evaluate, score, translate
from nmt.models.seq2seq import Seq2Seq
from tests.conftest import write_texts
from tests.random_model import save_random_model, text

LINES = 40


@pytest.fixture
def files(here: Path) -> Path:
    """The working folder, with a model, a text and its translation."""
    save_random_model(here / "model")
    lines = text(LINES).splitlines()
    return write_texts(here, {"text": lines, "other": lines[::-1]})


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """A function that limits the sentences that models read at once; it returns the numbers that they are given."""
    seen: list[int] = []
    limit = 1 << 30

    def limited(before: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Seq2Seq, source: torch.Tensor, *more: Any) -> Any:
            seen.append(len(source))
            if len(source) > limit:
                torch.empty(1 << 60)
            return before(self, source, *more)

        return call

    monkeypatch.setattr(Seq2Seq, "start", limited(Seq2Seq.start))
    monkeypatch.setattr(Seq2Seq, "forward", limited(Seq2Seq.forward))

    def set_limit(sentences: int) -> list[int]:
        nonlocal limit
        limit = sentences
        seen.clear()
        return seen

    return set_limit


MODEL, LARGE = ["--model", "model"], ["--batch-tokens", "1000000000"]
COMMANDS: dict[str, tuple[Callable[[list[str]], int], list[str]]] = {
    "nmt-translate": (
        translate.main,
        [*LARGE, "--input", "text", "--output", "out", "--scores", "--alignments", "links", "--replace-unknown"],
    ),
    "nmt-score": (score.main, ["--source", "text", "--target", "other", "--output", "out"]),
    "nmt-eval": (evaluate.main, [*LARGE, "--source", "text", "--reference", "other", "--output", "out"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_batches_are_halved_until_the_memory_holds_them(
    files: Path, most: Callable[[int], list[int]], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main, options = COMMANDS[name]
    assert main([*MODEL, *options]) == 0
    whole = (files / "out").read_bytes()
    seen = most(5)
    assert main([*MODEL, *options]) == 0
    assert (files / "out").read_bytes() == whole
    assert max(seen) > 30
    assert {3, 4, 5} & set(seen)  # 1 is the trial of a model that is loaded
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("files")
def test_not_even_one_sentence(most: Callable[[int], list[int]], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main, options = COMMANDS[name]
    most(0)
    assert main([*MODEL, *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{name}: error: not enough memory, even for one sentence by itself: ")
