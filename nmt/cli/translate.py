"""nmt-translate: text in, detokenised translations out, one line for each line, in order.

Wiring only: file or standard input → lines → translator → file or standard output. What was given is checked before a
model is loaded, and every mistake is reported at once.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm

from nmt.cli.common import choose_device, run
from nmt.data.corpus import lines_of, read_lines
from nmt.decoding.translator import Translation, Translator
from nmt.errors import UserError
from nmt.files import written_atomically
from nmt.models.model_file import model_path

STANDARD = "-"  # standard input or output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-translate; returns the exit code: 0, or 2 when something given was wrong."""
    given = _parser().parse_args(arguments)
    return run("nmt-translate", lambda: _translate(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nmt-translate",
        allow_abbrev=False,
        description="Translate text: one line out for each line in, in order; a blank line stays blank.",
        epilog="Text is UTF-8, one sentence a line; input files may be .gz. Nothing is written to --output FILE before "
        "all of it is translated.",
    )
    # Numbers are taken as text and read below, so that all mistakes are reported together.
    parser.add_argument("--model", metavar="PATH", help="model file, or run folder (its best model); required")
    parser.add_argument(
        "--input", default=STANDARD, metavar="FILE", help="text to translate; -: standard input (default)"
    )
    parser.add_argument(
        "--output", default=STANDARD, metavar="FILE", help="where translations go; -: standard output (default)"
    )
    parser.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu or cuda (default: auto)")
    search = parser.add_argument_group("search")
    search.add_argument(
        "--beam-size", metavar="N", help="hypotheses kept a sentence; 1 is greedy (default: from the model)"
    )
    search.add_argument(
        "--length-penalty",
        metavar="A",
        help="none: sum of log-probabilities; average: divided by the length; a number from 0: Wu et al.'s alpha "
        "(default: from the model)",
    )
    search.add_argument(
        "--max-length-ratio",
        metavar="R",
        help="a translation has at most R times the source's pieces, plus 10 (default: from the model)",
    )
    search.add_argument(
        "--batch-tokens",
        metavar="N",
        help="source pieces translated together, padding included; changes speed and memory, not results "
        "(default: from the model)",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--n-best",
        metavar="K",
        help="the K best translations of line i, counted from 0, as K lines: i ||| text ||| score; fewer where fewer "
        "exist; K is at most the beam size (default: 1, text only)",
    )
    output.add_argument(
        "--scores", action="store_true", help="append a tab and the score: log-probability / length penalty"
    )
    return parser


def _translate(given: argparse.Namespace) -> None:
    """Check, load, translate."""
    problems: list[str] = []
    search = _search_options(given, problems)
    n_best = search.setdefault("n_best", 1)
    if n_best > search.get("beam_size", n_best):
        problems.append(f"--n-best {n_best}: must be at most the beam size, --beam-size {search['beam_size']}")
    if n_best > 1 and given.scores:
        problems.append(f"--scores has no effect with --n-best {n_best}, whose lines hold the scores; leave it out")
    if given.model is None:
        problems.append("--model PATH is missing: a model file, or the folder of a run")
    else:
        _collect(problems, lambda: model_path(Path(given.model)))
    device = _collect(problems, lambda: _device(given.device))
    _check_output(given, problems)
    total = _collect(problems, lambda: _count(given.input))
    if problems:
        raise UserError(*problems)

    translator = Translator.load(given.model, device=device)
    if n_best > translator.decoding.beam_size and "beam_size" not in search:
        raise UserError(
            f"--n-best {n_best}: must be at most the beam size, {translator.decoding.beam_size} from the model; "
            f"give --beam-size {n_best} or more"
        )
    interactive = given.input == STANDARD and sys.stdin.isatty()
    lines = (
        lines_of(sys.stdin.buffer, name="standard input") if given.input == STANDARD else read_lines(Path(given.input))
    )
    translations = translator.translate(lines, interactive=interactive, **search)
    watched = sys.stderr.isatty() and not interactive
    with _opened(given.output) as file:
        for index, best in enumerate(tqdm(translations, total=total, unit=" lines", disable=not watched)):
            file.write(_written(index, best, n_best=n_best, scores=given.scores).encode("utf-8"))
            file.flush()


def _written(index: int, translations: Sequence[Translation], *, n_best: int, scores: bool) -> str:
    """What stands in the output for line `index` of the input."""
    if n_best > 1:
        return "".join(f"{index} ||| {text} ||| {score:.4f}\n" for text, score, _ in translations)
    best = translations[0]
    return f"{best.text}\t{best.score:.4f}\n" if scores else f"{best.text}\n"


def _search_options(given: argparse.Namespace, problems: list[str]) -> dict[str, Any]:
    """The options of the search that were given, read and within their ranges."""
    options: dict[str, Any] = {}
    for name, read, allowed in (
        ("beam_size", _count_of, "a whole number of at least 1"),
        ("length_penalty", _length_penalty, "none, average, or a number of at least 0"),
        ("max_length_ratio", _ratio, "a number greater than 0"),
        ("batch_tokens", _count_of, "a whole number of at least 1"),
        ("n_best", _count_of, "a whole number of at least 1"),
    ):
        text = getattr(given, name)
        if text is None:
            continue
        try:
            options[name] = read(text)
        except ValueError:
            problems.append(f"--{name.replace('_', '-')} {text}: must be {allowed}")
    return options


def _count_of(text: str) -> int:
    return _at_least(1, int(text))


def _ratio(text: str) -> float:
    ratio = _at_least(0.0, float(text))
    if ratio == 0.0:
        raise ValueError
    return ratio


def _length_penalty(text: str) -> str | float:
    return text if text in ("none", "average") else _at_least(0.0, float(text))


def _at_least(least: Any, number: Any) -> Any:
    if not (math.isfinite(number) and number >= least):
        raise ValueError
    return number


def _device(name: str) -> Any:
    if name not in ("auto", "cpu", "cuda"):
        raise UserError(f"--device {name}: must be auto, cpu or cuda")
    return choose_device(name)


def _count(name: str) -> int | None:
    """The number of lines of a file, which is thereby checked to its end; None for what can be read only once."""
    path = Path(name)
    if name == STANDARD or (path.exists() and not path.is_file() and not path.is_dir()):
        return None
    return sum(1 for _ in read_lines(path))


def _check_output(given: argparse.Namespace, problems: list[str]) -> None:
    """Find out now, not after the translation, whether the output can be written."""
    if given.output == STANDARD:
        return
    path = Path(given.output)
    if path.is_dir():
        problems.append(f"--output {path}: is a folder, not a file")
    elif not path.parent.is_dir():
        problems.append(f"--output {path}: there is no folder {path.parent}")
    elif not os.access(path.parent, os.W_OK) and not path.exists():
        problems.append(f"--output {path}: the folder {path.parent} cannot be written to")
    elif given.input != STANDARD and path.is_file() and Path(given.input).exists() and path.samefile(given.input):
        problems.append(f"--output {path}: is the input file; give another name")


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """Standard output, a device or named pipe as it is, or a file that appears complete or not at all."""
    path = Path(name)
    if name == STANDARD:
        yield sys.stdout.buffer
    elif path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
    else:
        with written_atomically(path.resolve(), "wb") as file:  # of a link, the file it points to
            yield file


def _collect(problems: list[str], check: Callable[[], Any]) -> Any:
    """The result of `check`, or None and its messages added to `problems`."""
    try:
        return check()
    except UserError as error:
        problems.extend(error.messages)
        return None
