"""nmt-init: files of somebody's text → a folder with training, validation, and test text, and a configuration."""

import argparse
import re
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from nmt.cli.options import missing, unequal_counts, without_effect
from nmt.cli.outputs import failing_as
from nmt.cli.parser import Parser, command, say
from nmt.errors import collected, nothing_at, refuse

if TYPE_CHECKING:
    from nmt.cli.init_folder import Inputs

PROGRAM = "nmt-init"
CONFIGURATION, REPORT = "my.yaml", "report.txt"
TABLES, MEMORIES = (".csv", ".tsv"), (".tmx", ".xlf", ".xliff", ".po")
_HEADERS = (("source", "src"), ("target", "tgt", "trg"))  # of columns that are not named as the languages


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Make a folder from which nmt-train trains: clean text, split it into training, validation, and "
        "test text without leaks, and write a configuration that suits its size.",
        epilog=f"The folder gets {CONFIGURATION}, {REPORT}, and train, valid, and test text of both languages, in "
        "Unicode's form NFC; for fewer than 10,000 pairs of sentences, also the links between their words, from "
        "which attention learns sooner. Text is UTF-8, and files may end in .gz. All that is left out is counted in "
        "the report, with examples. Train with "
        f"nmt-train --config FOLDER/{CONFIGURATION}; a few updates are computed to say how long that takes.",
    )
    made.add_argument("--source", nargs="+", type=Path, help="text with one sentence per line")
    made.add_argument("--target", nargs="+", type=Path, help="its translation: line i translates line i of --source")
    made.add_argument(
        "--input",
        nargs="+",
        type=Path,
        help="files with both languages: tables (.csv, .tsv) or memories of translators (.tmx, .xlf, .xliff, .po)",
    )
    made.add_argument(
        "--columns",
        nargs="+",
        metavar="COLUMN",
        help="the columns of tables, by name or by number from 1, that of the target last (default: those named as the "
        "languages, such as en or English, or source and target, or both of two). Several of the source are a "
        "lemma and the tags of its form: the rows of a lemma are in one part, and a tag is a piece by itself",
    )
    made.add_argument("--source-language", metavar="CODE", help="language to translate from, such as en, required")
    made.add_argument("--target-language", metavar="CODE", help="language to translate to, such as de, required")
    made.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="the folder to make, required; it may exist if it is empty and not the current one. The model gets its "
        "name: runs/FOLDER",
    )
    return made


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    inputs = _inputs(options, problems)
    from nmt.cli.init_folder import run_name, write_folder

    training = f"nmt-train --config {shlex.quote(str(options.output / CONFIGURATION))}"
    languages = (options.source_language, options.target_language)
    report = write_folder(options.output, inputs, languages, training)
    say("".join(f"{line}\n" for line in report if not line.startswith(" ")))
    say(f"report: {options.output / REPORT}\nnext: {training}\n")
    say(f"then: nmt-translate --model {Path('runs', run_name(options.output))} --input FILE --output FILE\n")
    from nmt.experiment.request import read_request
    from nmt.experiment.training import dry_run

    tried = ["", "nmt-train --dry-run says:"]

    def log(line: str) -> None:
        tried.append(line)
        is_warning = line.startswith("warning: ")
        if is_warning or sys.stderr.isatty():
            print(f"{PROGRAM}: {line}" if is_warning else line, file=sys.stderr)

    # What is wrong, such as too little memory, leaves the folder whole, and its configuration may be changed.
    with collected(problems), TemporaryDirectory(ignore_cleanup_errors=True) as cache:  # for what is prepared
        settings = [f"data.cache_folder={cache}"]
        for line in dry_run(read_request(options.output / CONFIGURATION, settings=settings), log=log):
            tried.append(line)  # one by one, for in between it logs
    tried += (f"nmt-train fails here: {problem}" for problem in problems)
    path = options.output / REPORT
    with failing_as(str(path)), open(path, "a", encoding="utf-8", newline="\n") as file:  # leaves nothing beside it
        file.write("".join(f"{line}\n" for line in tried))
    say(f"{tried[-1]}\n")


def _inputs(options: argparse.Namespace, problems: list[str]) -> "Inputs":
    """What was given. Raises UserError with all that is wrong."""
    from nmt.data.pairs import pairs_of_files, pairs_of_table
    from nmt.decoding.text.languages import code_of, name_of
    from nmt.documents.formats import extension
    from nmt.documents.memories import pairs_of_memory

    sources, targets, others = (options.source or [], options.target or [], options.input or [])
    languages, folder = (options.source_language, options.target_language), options.output
    problems += missing(
        {
            "--source FILE and --target FILE, or --input FILE": (sources or targets or others or None, "the text"),
            "--source-language CODE": (languages[0], "the language to translate from, such as en"),
            "--target-language CODE": (languages[1], "the language to translate to, such as de"),
            "--output FOLDER": (folder, "the folder to make"),
        }
    )
    problems += without_effect(vars(options), {"columns": ("input",)})
    if len(options.columns or "12") < 2:
        problems.append("--columns: name those of the source, and last that of the target")
    for side, code in zip(("source", "target"), languages, strict=True):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,30}", code or "a"):
            problems.append(f"--{side}-language {code}: allowed: letters, digits, - and _, such as en or pt-BR")
    if folder is not None and folder.exists():
        if not (folder.is_dir() and next(folder.iterdir(), None) is None):
            problems.append(f"--output {folder}: is there already, and not an empty folder; give the name of a new one")
        elif folder.samefile(Path()):  # which would be gone for the shell that is there
            problems.append(f"--output {folder}: is the current folder; give the name of a new one")
    problems += unequal_counts(sources, targets)
    problems += filter(None, map(nothing_at, (*sources, *targets, *others)))
    names = [(code, name_of(code_of(code)), *more) for code, more in zip(languages, _HEADERS, strict=True) if code]
    inputs = {}
    for source, target in zip(sources, targets, strict=False):
        inputs[f"{source} and {target}"] = pairs_of_files(source, target)
        if extension(source) == f".{languages[1]}" != f".{languages[0]}":
            problems.append(f"--source {source}: has the ending of --target-language {languages[1]}; swapped?")
    for path in others:
        if extension(path) in TABLES:
            inputs[str(path)] = pairs_of_table(path, names, options.columns)
        elif extension(path) in MEMORIES:
            with collected(problems):
                inputs[str(path)] = pairs_of_memory(path, languages)
        else:
            known = ", ".join((*TABLES, *MEMORIES))
            problems.append(f"--input {path}: allowed endings: {known}; parallel text is --source and --target")
    refuse(problems)
    return inputs
