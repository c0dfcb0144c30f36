"""nmt-eval: score a file of translations, or translate with a model and score.

Wiring only: files → sentences → (translator) → metrics → table or JSON. Everything that can be wrong with what was
given is reported before a model is loaded, and all of it at once.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from tqdm import tqdm

from nmt.cli.common import choose_device, run
from nmt.config.schema import DecodingConfig
from nmt.data.corpus import read_lines
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.evaluation.metrics import TOKENIZERS, check_tokenizer, corpus_scores
from nmt.evaluation.report import json_object, table, text_warnings
from nmt.files import written_atomically
from nmt.models.model_file import model_path

DECODING = ("beam_size", "length_penalty", "max_length_ratio", "batch_tokens")
MODEL_ONLY = ("source", *DECODING, "device", "output")  # options that say how to translate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-eval; returns the exit code: 0, or 2 when something given was wrong."""
    given = _parser().parse_args(arguments)
    return run("nmt-eval", lambda: _evaluate(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nmt-eval",
        allow_abbrev=False,
        description="Score translations with BLEU, chrF2 and TER by sacreBLEU, on the 0 to 100 scale, with signatures.",
        epilog="Files are UTF-8 text, one detokenised sentence a line, plain or .gz.",
    )
    scored = parser.add_argument_group("what is scored: --hypotheses, or --model with --source")
    scored.add_argument("--hypotheses", type=Path, metavar="FILE", help="translations to score")
    scored.add_argument("--model", type=Path, metavar="PATH", help="model file or run folder that translates --source")
    scored.add_argument("--source", type=Path, metavar="FILE", help="text to translate")
    scored.add_argument("--reference", type=Path, metavar="FILE", help="the right translations, line by line")

    scoring = parser.add_argument_group("scoring")
    scoring.add_argument(
        "--tokenize", default="13a", metavar="NAME", help=f"BLEU's tokeniser: {', '.join(TOKENIZERS)} (default: 13a)"
    )
    scoring.add_argument("--lowercase", action="store_true", help="ignore case in BLEU and chrF; TER always does")
    scoring.add_argument(
        "--json", type=Path, metavar="FILE", help="write the scores as JSON too; -: instead of the table"
    )

    decoding = parser.add_argument_group("translation, with --model (default: as the model's configuration says)")
    decoding.add_argument("--beam-size", type=int, metavar="N", help="hypotheses kept a sentence; 1 is greedy search")
    decoding.add_argument(
        "--length-penalty", type=_length_penalty, metavar="P", help="none, average, or a number: Wu et al.'s alpha"
    )
    decoding.add_argument(
        "--max-length-ratio", type=_number, metavar="R", help="at most R times the source's pieces, plus 10"
    )
    decoding.add_argument("--batch-tokens", type=int, metavar="N", help="source pieces translated together")
    decoding.add_argument("--device", choices=("auto", "cpu", "cuda"), help="where to translate (default: auto)")
    decoding.add_argument("--output", type=Path, metavar="FILE", help="save the translations")
    return parser


def _number(text: str) -> float:
    """Read a finite number; argparse reports the ValueError's text."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return number


def _length_penalty(text: str) -> str | float:
    """Read "none", "average" or a number."""
    if text in ("none", "average"):
        return text
    try:
        return _number(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither none, average nor a number") from None


def _evaluate(given: argparse.Namespace) -> None:
    """Check, read, translate if asked to, score and report."""
    problems = [*_contradictions(given), *_range_problems(given)]
    problems += [*_output_problems("--json", given.json), *_output_problems("--output", given.output)]
    problems += _problems_of(lambda: check_tokenizer(given.tokenize))
    if given.model:
        problems += _problems_of(lambda: model_path(given.model))
    if given.device:
        problems += _problems_of(lambda: choose_device(given.device))
    if problems:
        raise UserError(*problems)

    text_option = "--hypotheses" if given.hypotheses else "--source"
    text, references = _read_both(text_option, given.hypotheses or given.source, given.reference)
    hypotheses = text if given.hypotheses else _translate(given, text)
    if given.output:
        _write(given.output, "".join(f"{line}\n" for line in hypotheses))

    scoring = {"tokenize": given.tokenize, "lowercase": given.lowercase}
    for warning in text_warnings(hypotheses, references, **scoring):
        print(f"nmt-eval: warning: {warning}", file=sys.stderr)
    scores = corpus_scores(hypotheses, references, **scoring)
    as_json = json.dumps(json_object(scores, sentences=len(references), **scoring), indent=2)
    if given.json != Path("-"):
        print(table(scores, sentences=len(references)))
    if given.json == Path("-"):
        print(as_json)
    elif given.json:
        _write(given.json, f"{as_json}\n")


def _contradictions(given: argparse.Namespace) -> Iterator[str]:
    """Find options that are missing, or that do not go together."""
    if given.hypotheses and given.model:
        yield "--hypotheses and --model exclude each other: score a file, or translate with a model and score"
    if not given.hypotheses and not given.model:
        yield "nothing to score: give --hypotheses FILE, or --model PATH with --source FILE"
    if not given.reference:
        yield "--reference FILE is missing"
    if given.model and not given.hypotheses and not given.source:
        yield "--model needs --source FILE, the text to translate"
    if not given.model:
        for name in MODEL_ONLY:
            if getattr(given, name) is not None:
                yield f"--{name.replace('_', '-')} has an effect only with --model"
    files: dict[Path, str] = {}
    for name in ("model", "source", "hypotheses", "reference", "output", "json"):
        path = getattr(given, name)
        if name in ("output", "json") and path and path.resolve() in files:
            yield f"--{name} {path} would overwrite --{files[path.resolve()]}"
        elif path:
            files[path.resolve()] = name


def _decoding(given: argparse.Namespace) -> dict[str, Any]:
    """Collect the options of the search that were given."""
    return {name: getattr(given, name) for name in DECODING if getattr(given, name) is not None}


def _range_problems(given: argparse.Namespace) -> Iterator[str]:
    """Check the search's options against the configuration's ranges."""
    try:
        DecodingConfig.model_validate(_decoding(given))
    except ValidationError as error:
        # The last of an option's errors: for length_penalty, which is text or a number, the one about the number.
        for name, problem in {str(problem["loc"][0]): problem for problem in error.errors()}.items():
            yield f"--{name.replace('_', '-')} {problem['input']}: {problem['msg']}"


def _problems_of(check: Callable[[], object]) -> Sequence[str]:
    """Run a check now, not after the translation; returns the messages of its UserError, if it raises one."""
    try:
        check()
    except UserError as error:
        return error.messages
    return ()


def _output_problems(option: str, path: Path | None) -> Iterator[str]:
    """Find out now, not after the translation, whether a file can be written."""
    if path is None or (option == "--json" and path == Path("-")):
        return
    if path.exists() and not path.is_file():
        yield f"{option} {path}: exists and is not a file"
    elif not path.parent.is_dir():
        yield f"{option} {path}: there is no folder {path.parent}"
    elif not os.access(path.parent, os.W_OK):
        yield f"{option} {path}: the folder {path.parent} cannot be written to"


def _read_both(option: str, path: Path, reference: Path) -> tuple[list[str], list[str]]:
    """Read the hypotheses or the source, and the references; they must have equally many lines, at least one."""
    problems: list[str] = []
    lines, references = _read(option, path, problems), _read("--reference", reference, problems)
    if not problems and len(lines) != len(references):
        problems.append(
            f"{option} {path} has {len(lines)} lines and --reference {reference} has {len(references)}: line i of the "
            "one must go with line i of the other"
        )
    if problems:
        raise UserError(*problems)
    return lines, references


def _read(option: str, path: Path, problems: list[str]) -> list[str]:
    """Read a file's lines; what is wrong with it is added to `problems`."""
    try:
        lines = list(read_lines(path))
    except UserError as error:
        problems.extend(f"{option}: {message}" for message in error.messages)
    else:
        if not lines:
            problems.append(f"{option} {path}: the file is empty")
        return lines
    return []


def _translate(given: argparse.Namespace, source: list[str]) -> list[str]:
    """Translate each line to the text of its best hypothesis, with a progress bar where a person watches."""
    translator = Translator.load(given.model, device=choose_device(given.device or "auto"))
    translations = translator.translate(source, **_decoding(given))
    return [best[0].text for best in tqdm(translations, total=len(source), unit=" sentences", disable=None)]


def _write(path: Path, text: str) -> None:
    """Write a whole file or nothing; a link's target is written, not the link replaced."""
    with written_atomically(path.resolve()) as file:
        file.write(text)
