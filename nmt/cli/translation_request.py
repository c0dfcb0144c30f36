"""The request that the options of nmt-translate make: what to translate, how, and where the output goes.

All mistakes are found before a model is loaded, and reported at once.
"""

import argparse
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

from nmt.cli.alignment_outputs import ALIGNMENTS, AlignmentOutputs
from nmt.cli.cutting import MAIN, files_read, is_cut
from nmt.cli.models import Models, languages_of, read_models
from nmt.cli.options import line_count, missing, translation_options
from nmt.cli.outputs import STANDARD, check_outputs, is_in_place
from nmt.cli.parser import option_name
from nmt.cli.standard_input import is_standard_input
from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.glossary import read_glossary
from nmt.documents.formats import FORMATS, OTHERS, extension, format_by_extension
from nmt.errors import collected, counted, nothing_at, refuse
from nmt.processes import Processes

BESIDE = {"prefix": "prefixes", "constraints": "constraints"}  # options whose files have one line per input line


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to translate, how, and where the output goes."""

    models: Models
    options: TranslationOptions
    source: Path | None  # None: standard input
    format: str
    beside: Mapping[str, Path]  # files with one line per source line, by the translator's names
    lines: int | None  # of the source, if they can be counted
    alignments: AlignmentOutputs
    is_cut: bool  # into chunks
    command: argparse.Namespace  # what else it was given

    @property
    def files(self) -> dict[str, str]:
        """The files to write, by kind."""
        return {MAIN: self.command.output, **self.alignments.files}


def read_request(options: argparse.Namespace, problems: list[str], processes: Processes) -> Request:
    """Check the arguments of one process of the team, and count the lines. Raises UserError with all problems."""
    problems += missing({"--model PATH": (options.model, "a model file, or the folder of a run")})
    form = _read_format(options, problems)
    if form != "text" and options.split_sentences is None:
        options.split_sentences = "true"  # which is usual for documents, and needs what cuts texts into sentences
    is_whole = form != "text" or options.encoding is not None
    if is_whole:
        problems += _of_lines_alone(options, form, processes)
    if twice := _read_twice(options):
        refuse([*problems, *twice])
    source = None if options.input == STANDARD else Path(options.input)
    if source is None and sys.stdin is None:
        problems.append("standard input is closed; give --input FILE, or a text on standard input")
    beside = {keyword: path for name, keyword in BESIDE.items() if (path := getattr(options, name)) is not None}
    alignments = AlignmentOutputs(**{name: getattr(options, name) for name in ALIGNMENTS})
    models = read_models(vars(options), problems, processes.own_device)
    how = _read_how(options, models, problems, alignments=bool(alignments))
    _check_outputs(options, models, alignments, problems)
    lines = None if is_whole else _counted_lines(options, source, problems)
    if is_whole and source is not None and (missing_file := nothing_at(source)):
        problems.append(missing_file)
    in_chunks = is_cut(vars(options), problems, processes=processes.size)
    refuse(problems)
    return Request(
        models=models,
        options=how,
        source=source,
        format=form,
        beside=beside,
        lines=lines,
        alignments=alignments,
        is_cut=in_chunks,
        command=options,
    )


def _read_format(options: argparse.Namespace, problems: list[str]) -> str:
    """The format that is given, or that of files with the extension of the input."""
    form: str | None = options.format
    if form is not None and form not in FORMATS:
        problems.append(f"--format {shlex.quote(form)}: unknown; choose one of {', '.join(FORMATS)}")
    path = Path(options.input)
    if form is None and (what_to_do := OTHERS.get(extension(path))):
        problems.append(f"--input {path}: {extension(path)} is not read; {what_to_do}, or give --format")
    if options.encoding is not None:
        try:
            TextIOWrapper(BytesIO(), encoding=options.encoding)
        except LookupError:
            problems.append(f"--encoding {options.encoding}: unknown; give a name such as cp1250, latin-1, or utf-16")
    return form or format_by_extension(path) or "text"


def _read_twice(options: argparse.Namespace) -> list[str]:
    """Which files are standard input that another option reads to its end."""
    read = files_read(vars(options))
    twice = [f"{option} {path}" for option, path in read if str(path) == STANDARD or is_standard_input(path)]
    return [f"{option}: is standard input, which {twice[0]} already reads; give a file" for option in twice[1:]]


def _read_how(
    options: argparse.Namespace, models: Models, problems: list[str], *, alignments: bool
) -> TranslationOptions:
    """Read how to translate."""
    glossary = None
    if options.glossary is not None and (missing_file := nothing_at(options.glossary)):
        problems.append(missing_file)
    elif options.glossary is not None and models.paths:
        with collected(problems):
            languages = languages_of(models.paths[0])
            glossary = read_glossary(options.glossary, languages, as_written=options.glossary_case)
    more = {"alignments": alignments, "word_scores": options.word_scores is not None, "glossary": glossary}
    return translation_options(vars(options), problems, constraints=options.constraints is not None, **more)


def _check_outputs(
    options: argparse.Namespace, models: Models, alignments: AlignmentOutputs, problems: list[str]
) -> None:
    """Find out whether the outputs can be written, and overwrite nothing that is read."""
    read = [(option, path) for option, path in files_read(vars(options)) if str(path) != STANDARD]
    taken = check_outputs({"--output": options.output}, problems, others=[*models.files, *read])
    alignments.check(problems, others=taken)
    if options.flush and not is_in_place(options.output):
        problems.append(
            f"--flush has no effect with --output {options.output}, a file that appears when all is translated; leave "
            "one of them out"
        )


def _counted_lines(options: argparse.Namespace, source: Path | None, problems: list[str]) -> int | None:
    """The number of lines of the source, which those of the files beside it must have; None for what is read once."""
    lines = None
    with collected(problems):
        lines = line_count(source)
    for name, keyword in BESIDE.items():
        with collected(problems):
            count = line_count(path := getattr(options, name))
            if count is not None and lines is not None and count != lines:
                problems.append(
                    f"--{name} {path} has {counted(count, 'line')} and --input {source} has {lines:,}: line i of "
                    f"the one must go with line i of the other; a line of {keyword} may be empty"
                )
    return lines


def _of_lines_alone(options: argparse.Namespace, form: str, processes: Processes) -> list[str]:
    """Which of the options do not go with a document that is read as a whole."""
    problems = []
    named = f"--format {form}" if options.format else f"--input {options.input} ({form}, by its ending)"
    whole = f"--encoding {options.encoding}" if form == "text" else named
    if processes.size > 1:
        problems.append(f"{whole} is one whole document, for one process; start it without torchrun")
    used = {name for name, value in vars(options).items() if value not in (None, False)}
    for name in (*BESIDE, "n_best", "scores", "flush", "resume", "chunk_lines", "shard", *ALIGNMENTS):
        if name in used:
            problems.append(
                f"{option_name(name)} goes with --format text in UTF-8 alone; {whole} is one whole document"
            )
    return problems
