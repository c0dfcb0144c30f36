"""The request that the options of nmt-translate make: what to translate, how, and where the output goes.

All mistakes are found before a model is loaded, and reported at once.
"""

import argparse
import math
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from nmt.cli.alignment_outputs import ALIGNMENTS, AlignmentOutputs
from nmt.cli.cutting import MAIN, Cutting, Options, read_cutting
from nmt.cli.models import Models, read_models
from nmt.cli.options import (
    missing,
    number_in,
    read_alignment_step,
    read_decoding_value,
    read_end_links,
    read_how,
    read_sampling,
)
from nmt.cli.outputs import STANDARD, check_outputs, is_device, is_in_place
from nmt.cli.parsers.parser import option_name
from nmt.cli.parsers.translate import PROGRAM
from nmt.cli.standard_input import is_standard_input
from nmt.data.corpus import old_line_ends, read_lines, returns_inside
from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.glossary import Glossary, read_glossary
from nmt.decoding.text.languages import UNKNOWN_RULES, is_known
from nmt.decoding.text.sentences import checked_language
from nmt.documents.formats import FORMATS, Format, is_markdown, likely_format
from nmt.errors import Checking, caught, checked, counted, nothing_at
from nmt.processes import Processes

_FIRST_LINES = 10  # of a text, by which a document is told
BESIDE = {"prefix": "prefixes", "constraints": "constraints"}  # options whose files have one line per input line


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to translate, how, and where the output goes."""

    models: Models
    options: TranslationOptions
    source: Path | None  # None: standard input
    format: Format
    beside: Mapping[str, Path]  # files with one line per source line, by the translator's names
    lines: int | None  # of the source, if they can be counted
    output: str
    alignments: AlignmentOutputs
    scores: bool
    flush: bool
    cutting: Cutting | None  # None: translate in one piece
    command: Options  # what the command was given

    @property
    def files(self) -> dict[str, str]:
        """The files to write, by kind."""
        return {MAIN: self.output, **self.alignments.files}


def read_request(options: argparse.Namespace, team: Processes) -> Checking[Request]:
    """Check the arguments of one process of the team, and count the lines."""
    values = vars(options)
    checked(_read_twice(values))
    how = yield from read_how(values)
    form: Format = "text" if options.format is None else options.format
    aligns = form != "text"  # to put tags where they belong
    users = ("replace_unknown", *ALIGNMENTS)
    how["alignment_step"] = yield from read_alignment_step(values, users=users, aligns=aligns)
    how["end_links"] = yield from read_end_links(values, aligns=aligns)
    sampling = yield from read_sampling(values)
    n_best = (yield from read_decoding_value("--n-best", options.n_best, key="beam_size")) or 1
    beam_size = how.get("beam_size")
    if beam_size is not None and n_best > beam_size and not options.sample:
        yield f"--n-best {n_best}: must be at most the beam size, --beam-size {beam_size}"
    diversity = 0.0
    if options.diversity is not None:
        diversity = yield from _read_diversity(options.diversity, n_best)
        if options.sample:
            yield "--diversity has no effect with --sample, which draws instead of searching"
        if options.constraints is not None:
            yield "--diversity does not go with --constraints, which share out the beam otherwise; choose one"
    glossary = yield from _read_glossary(options, team)
    warn = _warn if team.is_first else _nowhere
    split_sentences = yield from _read_split_sentences(options.split_sentences, warn)
    models = yield from read_models(values, team.own_device)
    yield from missing({"--model PATH": (options.model, "a model file, or the folder of a run")})

    if form not in FORMATS:
        yield f"--format {shlex.quote(form)}: unknown; choose one of {', '.join(FORMATS)}"
    elif form != "text":
        yield from _of_lines_alone(options, team)
    source = None if options.input == STANDARD else Path(options.input)
    others = [*models.files, ("--input", source), ("--dictionary", options.dictionary)]
    others.append(("--glossary", options.glossary))
    others += [(f"--{name}", values[name]) for name in BESIDE]
    alignments = AlignmentOutputs(options.alignments, options.soft_alignments, options.plot_alignments)
    yield from alignments.check(others=(yield from check_outputs({"--output": options.output}, others=others)))
    lines = None
    if form == "text":
        lines = yield from caught(partial(_count, source, warn=warn), None)
    elif source is not None and (missing_file := nothing_at(source)):
        yield missing_file
    for name in BESIDE:
        count = yield from caught(partial(_count, values[name], warn=warn), None)
        if count is not None and lines is not None and count != lines:
            yield (
                f"--{name} {values[name]} has {counted(count, 'line')} and --input {source} has {lines:,}: line i of "
                f"the one must go with line i of the other; a line of {BESIDE[name]} may be empty"
            )
    if options.constraints is not None and options.sample:
        yield "--constraints has no effect with --sample, which draws instead of searching"
    if options.flush and not is_in_place(options.output):
        yield (
            f"--flush has no effect with --output {options.output}, a file that appears when all is translated; leave "
            "one of them out"
        )
    if source is None and sys.stdin is None:
        yield "standard input is closed; give --input FILE, or a text on standard input"
    problems: list[str] = []
    cutting = read_cutting(values, problems, processes=team.size)
    yield from problems
    if options.format is None and lines and source is not None:
        _warn_of_document(source, warn)
    return Request(
        models=models,
        options=TranslationOptions(
            **how,
            n_best=n_best,
            diversity=diversity,
            sampling=sampling,
            split_sentences=split_sentences,
            glossary=glossary,
            alignments=bool(alignments),
        ),
        source=source,
        format=form,
        beside={keyword: values[name] for name, keyword in BESIDE.items() if values[name] is not None},
        lines=lines,
        output=options.output,
        alignments=alignments,
        scores=options.scores,
        flush=options.flush,
        cutting=cutting,
        command=values,
    )


def _read_twice(values: Options) -> Checking[None]:
    """Which files are standard input that another option reads to its end."""
    first = "input" if values["input"] == STANDARD else None
    for name in ("input", *BESIDE, "glossary", "dictionary"):
        path = values[name]
        if path is not None and path != STANDARD and is_standard_input(Path(path)):
            if first is not None:
                yield f"--{name} {path}: is standard input, which --{first} already reads; give a file"
            first = first or name


def _of_lines_alone(options: argparse.Namespace, team: Processes) -> Checking[None]:
    """Yield which of the options do not go with a document that is read as a whole."""
    if team.size > 1:
        yield f"--format {options.format} is one whole document, for one process; start it without torchrun"
    yield from caught(partial(checked_language, "en"), None)  # whether there is what cuts texts into sentences
    used = {name for name, value in vars(options).items() if value not in (None, False)}
    for name in (*BESIDE, "n_best", "scores", "flush", "resume", "chunk_lines", "shard", *ALIGNMENTS):
        if name in used:
            yield f"{option_name(name)} goes with --format text alone; --format {options.format} is one whole document"


def _read_glossary(options: argparse.Namespace, team: Processes) -> Checking[Glossary | None]:
    if options.glossary is None:
        if options.glossary_case:
            yield "--glossary-case has an effect only with --glossary FILE"
        return None
    for name, why in (("sample", "which draws instead of searching"), ("diversity", "which shares out the beam too")):
        if getattr(options, name):
            yield f"--glossary does not go with --{name}, {why}; choose one"
    path, as_written, is_news = options.glossary, options.glossary_case, team.is_first_to
    return (yield from caught(partial(read_glossary, path, as_written=as_written, warn=_warn, is_news=is_news), None))


def _warn(message: str) -> None:
    print(f"{PROGRAM}: warning: {message}", file=sys.stderr)


def _nowhere(message: str) -> None:
    """Another process says it."""


def _warn_of_document(source: Path, warn: Callable[[str], None]) -> None:
    """Say which --format a file seems to have that is about to be translated line by line."""
    form = likely_format(source, islice(read_lines(source), _FIRST_LINES))
    if form != "text":
        warn(
            f"--input {source} looks like {form}, and all that is in it is translated as plain text; give --format "
            f"{form}, or --format text if that is meant"
        )
    elif is_markdown(source):
        warn(
            f"--input {source} looks like Markdown, for which there is no format, and its marks are translated as "
            "words, too; give --format text if that is meant"
        )


def _read_diversity(text: str, n_best: int) -> Checking[float]:
    if n_best < 2:
        yield "--diversity has an effect only with --n-best K, K at least 2"
    strength = number_in(text)
    if strength is not None and 0 < strength < math.inf:
        return strength
    yield f"--diversity {shlex.quote(text)}: allowed: a number, more than 0"
    return 0.0


def _read_split_sentences(language: bool | str | None, warn: Callable[[str], None]) -> Checking[bool | str]:
    if language is None:
        return False
    code = yield from caught(partial(checked_language, language if isinstance(language, str) else "en"), None)
    if code is not None and not is_known(code):
        warn(f"--split-sentences {language}: {UNKNOWN_RULES}")
    return language


def _count(path: Path | None, *, warn: Callable[[str], None]) -> int | None:
    """The number of lines of a file, which is checked to its end; None if it can be read only once.

    `warn` is told if lines seem to end at carriage returns.
    """
    if path is None or is_device(path):
        return None
    lines = returns = 0
    for line in read_lines(path):
        lines += 1
        returns += returns_inside(line)
    if (warning := old_line_ends(str(path), returns, lines=lines)) is not None:
        warn(warning)
    return lines
