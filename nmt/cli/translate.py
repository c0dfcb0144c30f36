"""nmt-translate: text in, detokenised translations out, one line for each line, in order.

Wiring only: file or standard input → lines → translator → file or standard output. What was given is checked before a
model is loaded, and every mistake is reported at once.
"""

import sys

if __name__ == "__main__":  # before what takes seconds to import, so that Ctrl-C is answered meanwhile
    from nmt.cli import start

    sys.exit(start.translate())

import argparse
import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.cli.alignments import (
    add_alignment_options,
    alignments_written,
    check_alignment_outputs,
    wants_alignments,
)
from nmt.cli.common import run
from nmt.cli.memory import enough_memory, within_memory
from nmt.cli.models import add_model_option, model_files, named
from nmt.cli.options import (
    STANDARD,
    add_device_option,
    add_precision_option,
    add_sampling_options,
    add_search_options,
    add_shortlist_option,
    add_unknown_word_options,
    check_output,
    check_shortlist,
    collect,
    decoding_value,
    device_option,
    is_device,
    opened_for_writing,
    precision_option,
    sampling_options,
    search_options,
    unknown_word_options,
)
from nmt.cli.sharding import BESIDE, Translate, add_parts_options, check_parts, in_parts, translate_in_parts
from nmt.cli.standard_input import standard_input
from nmt.data.corpus import lines_of, read_lines
from nmt.decoding.translator import Translation, Translator
from nmt.errors import UserError
from nmt.jobs.team import Team, silently, told_by_the_first

MEMORY = "lower --beam-size or --n-best, or shorten the longest lines of the input"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-translate; returns the exit code: 0, or 2 when something given was wrong."""
    with told_by_the_first():
        given = _parser().parse_args(arguments)
    return run("nmt-translate", lambda: silently(lambda: _translate(given)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nmt-translate",
        allow_abbrev=False,
        description="Translate text: one line out for each line in, in order; a blank line stays blank.",
        epilog="Text is UTF-8, one sentence a line; input files may be .gz. On a pipe a line is answered as soon as "
        "the next one is not there yet. Nothing is written to --output FILE before all of it is translated. A terminal "
        "as standard error shows the progress, with lines a second. Several processes, which share one input file: "
        "torchrun --nproc-per-node N -m nmt.cli.translate and these options.",
    )
    add_model_option(parser, "what translates, required")
    parser.add_argument(
        "--input", default=STANDARD, metavar="FILE", help="text to translate; -: standard input (default)"
    )
    parser.add_argument(
        "--output", default=STANDARD, metavar="FILE", help="where translations go; -: standard output (default)"
    )
    add_device_option(parser)
    add_precision_option(parser)
    add_shortlist_option(parser)
    add_search_options(parser.add_argument_group("search"))
    add_sampling_options(parser.add_argument_group("sampling"))
    parser.add_argument(
        "--prefix",
        type=Path,
        metavar="FILE",
        help="for each line of the input a line with what its translation begins with, which may be empty. Its last "
        "word is complete, unless it ends with something else than a letter or digit",
    )
    parser.add_argument(
        "--constraints",
        type=Path,
        metavar="FILE",
        help="for each line of the input a line with the phrases that its translations must contain, separated by "
        "tabs; it may be empty. The beam is shared out among hypotheses with more and fewer of their pieces, so it "
        "should be larger than the number of those",
    )
    add_unknown_word_options(parser.add_argument_group("unknown words"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--n-best",
        metavar="K",
        help="the K best translations of line i, counted from 0, as K lines: i ||| text ||| score; fewer where fewer "
        "exist; K is at most the beam size, but for --sample. Texts of a list may be equal where their pieces differ "
        "(default: 1, without i and score)",
    )
    output.add_argument(
        "--diversity",
        metavar="STRENGTH",
        help="with --n-best K: translations that differ from each other. The beam is divided into K groups, each gives "
        "its best, and a token loses STRENGTH (such as 0.5) of its log-probability for each hypothesis of an earlier "
        "group that has it at the same place. Fewer than K where groups find the same",
    )
    output.add_argument(
        "--scores",
        action="store_true",
        help="append a tab and the score: log-probability / length penalty + coverage penalty; n-best lists have it "
        "anyway",
    )
    output.add_argument(
        "--flush",
        action="store_true",
        help="translate each line by itself and write it before the next one is read (default: lines that are there "
        "already are translated together, which is faster)",
    )
    add_parts_options(parser.add_argument_group("long translations"))
    add_alignment_options(parser.add_argument_group("alignments, from the attention of the model"))
    return parser


def _translate(given: argparse.Namespace) -> int:
    """Check, load, translate; returns the exit code."""
    team = Team.of_torchrun()
    problems: list[str] = []
    search = search_options(given, problems)
    unknown_words = unknown_word_options(given, problems)
    sampling = sampling_options(given, problems)
    n_best = _n_best(given, search.get("beam_size"), problems)
    diversity = _diversity(given, n_best, problems)
    models = model_files(given, problems)
    if not given.model:
        problems.append("--model PATH is missing: a model file, or the folder of a run")
    device = device_option(given, problems)
    precision = precision_option(given, problems)
    check_shortlist(given, problems)
    source = None if given.input == STANDARD else Path(given.input)
    others = {**named(models), "--input": source, "--dictionary": given.dictionary, "--prefix": given.prefix}
    others |= {"--constraints": given.constraints, "--shortlist": given.shortlist}
    collect(problems, partial(check_output, "--output", given.output, others=others))
    check_alignment_outputs(given, problems, others={**others, "--output": Path(given.output)})
    total = collect(problems, partial(_count, source))
    for name in BESIDE:
        _check_beside(given, name, total, problems)
    if given.constraints is not None and given.sample:
        problems.append("--constraints has no effect with --sample, which draws instead of searching")
    if given.flush and given.output != STANDARD and not is_device(Path(given.output)):
        problems.append(
            f"--flush has no effect with --output {given.output}, a file that appears when all is translated; leave "
            "one of them out"
        )
    if source is None and sys.stdin is None:
        problems.append("standard input is closed; give --input FILE, or a text on standard input")
    check_parts(given, team, problems)
    own_device = None if device is None else collect(problems, partial(team.device, device))
    team.agree("options", problems)

    def load() -> Translate:
        with enough_memory(MEMORY):
            translator = Translator.load(
                models, device=own_device or "cpu", precision=precision, shortlist=given.shortlist
            )
        if sampling is None and n_best > translator.decoding.beam_size and "beam_size" not in search:
            raise UserError(
                f"--n-best {n_best}: must be at most the beam size, {translator.decoding.beam_size} from the model; "
                f"give --beam-size {n_best} or more"
            )
        translate = partial(
            translator.translate,
            n_best=n_best,
            diversity=diversity,
            sampling=sampling,
            alignments=wants_alignments(given),
            **search,
            **unknown_words,
        )

        def within(lines: Iterable[str], **more: Any) -> Iterator[list[Translation]]:
            return within_memory(translate(lines=lines, **more), advice=MEMORY)

        return within

    write = partial(_write, n_best=n_best)
    if in_parts(given, team):
        return translate_in_parts(given, team, models=models, lines=total or 0, load=load, write=write)
    translate = load()
    if source is None:
        stream = standard_input()
        lines, waiting = lines_of(stream, name="standard input"), stream.waiting
    else:
        lines, waiting = read_lines(source), None
    translations = translate(
        lines,
        prefixes=None if given.prefix is None else read_lines(given.prefix),
        constraints=None if given.constraints is None else read_lines(given.constraints),
        waiting=(lambda: True) if given.flush else waiting,
    )
    watched = sys.stderr.isatty() and not (source is None and sys.stdin.isatty())
    write(tqdm(translations, total=total, unit=" lines", disable=not watched), given, 0)
    return 0


def _write(translations: Iterable[list[Translation]], given: argparse.Namespace, first: int, *, n_best: int) -> None:
    """Write the translations of the lines from line `first` on to the outputs that are `given`."""
    with (
        opened_for_writing(given.output) as file,
        alignments_written(given, program="nmt-translate", first=first) as write_alignments,
    ):
        for index, best in enumerate(translations, first):
            file.write(_written(index, best, n_best=n_best, scores=given.scores).encode("utf-8"))
            file.flush()
            write_alignments([each.soft_alignment for each in best if each.soft_alignment is not None])


def _n_best(given: argparse.Namespace, beam_size: int | None, problems: list[str]) -> int:
    """How many translations of a line are wanted; what does not go with it is added to `problems`."""
    if given.n_best is None:
        return 1
    n_best = collect(problems, partial(decoding_value, "--n-best", given.n_best, key="beam_size")) or 1
    if beam_size is not None and n_best > beam_size and not given.sample:
        problems.append(f"--n-best {n_best}: must be at most the beam size, --beam-size {beam_size}")
    return n_best


def _diversity(given: argparse.Namespace, n_best: int, problems: list[str]) -> float:
    """What --diversity says, or 0; what is wrong with it, or does not go with it, is added to `problems`."""
    if given.diversity is None:
        return 0.0
    if n_best < 2:
        problems.append("--diversity has an effect only with --n-best K, K at least 2")
    if given.sample:
        problems.append("--diversity has no effect with --sample, which draws instead of searching")
    if given.constraints is not None:
        problems.append("--diversity does not go with --constraints, which share out the beam otherwise; choose one")
    with suppress(ValueError):
        strength = float(given.diversity)
        if 0 < strength < math.inf:
            return strength
    problems.append(f"--diversity {shlex.quote(given.diversity)}: allowed: a number, more than 0")
    return 0.0


def _check_beside(given: argparse.Namespace, name: str, lines: int | None, problems: list[str]) -> None:
    """Add to `problems` a file of prefixes or constraints that cannot be read, or has not as many lines as the input.

    Those of standard input are counted as they come, by the translator.
    """
    path = getattr(given, name)
    if path is None:
        return
    count = collect(problems, partial(_count, path))
    if count is not None and lines is not None and count != lines:
        problems.append(
            f"--{name} {path} has {count} lines and --input {given.input} has {lines}: line i of the one must go with "
            f"line i of the other; a line of {BESIDE[name]} may be empty"
        )


def _written(index: int, translations: Sequence[Translation], *, n_best: int, scores: bool) -> str:
    """What stands in the output for line `index` of the input."""
    if n_best > 1:
        return "".join(f"{index} ||| {each.text} ||| {each.score:.4f}\n" for each in translations)
    best = translations[0]
    return f"{best.text}\t{best.score:.4f}\n" if scores else f"{best.text}\n"


def _count(source: Path | None) -> int | None:
    """The number of lines of a file, which is thereby checked to its end; None for what can be read only once."""
    if source is None or is_device(source):
        return None
    return sum(1 for _ in read_lines(source))
