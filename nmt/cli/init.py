"""nmt-init: files of somebody's text → a folder with training, validation, and test text, and a configuration."""

import argparse
import re
import shlex
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from nmt.cli.common import run
from nmt.cli.options import missing, without_effect
from nmt.cli.outputs import failing_as
from nmt.cli.parser import Parser, say
from nmt.errors import InputWarning, UserError, counted, nothing_at, refuse, shortened

if TYPE_CHECKING:
    from nmt.data.cleaning import Usual
    from nmt.data.pairs import Pair
    from nmt.data.splitting import Keys

PROGRAM = "nmt-init"
CONFIGURATION, REPORT = "my.yaml", "report.txt"
STARTER = "my_files"
TABLES, MEMORIES = (".csv", ".tsv"), (".tmx", ".xlf", ".xliff", ".po")
FEWEST = 200  # pairs; of fewer, no part would tell anything
SHARE, LEAST, MOST = 0.05, 50, 1000  # of the pairs, for validation and once more for a test
LOOKED_AT = 10_000  # pairs by which it is told what is usual
_COUNTED, _COMPARED = 100_000, 1000  # pairs whose different words are counted; words that tell swapped sides
KEPT = ("train", "valid", "test")
_EXAMPLES, _SHOWN = 3, 60  # of each rule; characters of a text in them

Inputs = Mapping[str, Iterable["Pair"]]  # by what messages call them
Words = tuple[set[str], set[str]]  # of source and target


class Read(NamedTuple):
    """What was read: how many pairs, what is usual in them, and those that were kept."""

    pairs: int
    usual: "Usual"
    keys: "Keys"
    words: int  # different ones
    tokenize: str  # what BLEU is to take for words


class Dropped:
    """How many pairs were left out by which rule, and the first of them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, dict[str, None]] = defaultdict(dict)  # no two alike

    def add(self, rule: str, source: str, target: str, place: str = "") -> None:
        """Count a pair."""
        self.counts[rule] += 1
        if len(self._examples[rule]) < _EXAMPLES:
            texts = " | ".join(shortened(text, _SHOWN) for text in (source, target))
            self._examples[rule][f"    {place}: {texts}" if place else f"    {texts}"] = None

    def lines(self) -> Iterator[str]:
        """A line for each rule, and, indented, its examples."""
        from nmt.data.cleaning import RULES

        for rule in filter(self.counts.get, RULES):
            yield f"left out: {self.counts[rule]:,} {RULES[rule]}"
            yield from self._examples[rule]


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Make a folder from which nmt-train trains: clean text, split it into training, validation, and "
        "test text without leaks, and write a configuration that suits its size.",
        epilog=f"The folder gets {CONFIGURATION}, {REPORT}, and train, valid, and test text of both languages. Text is "
        "UTF-8, and files may end in .gz. All that is left out is counted in the report, with examples. Train with "
        f"nmt-train --config FOLDER/{CONFIGURATION}.",
    )
    made.add_argument("--source", nargs="+", type=Path, metavar="FILE", help="text with one sentence per line")
    made.add_argument(
        "--target", nargs="+", type=Path, metavar="FILE", help="its translation: line i translates line i of --source"
    )
    made.add_argument(
        "--input",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="files with both languages: tables (.csv, .tsv) or memories of translators (.tmx, .xlf, .xliff, .po)",
    )
    made.add_argument(
        "--columns",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="the columns of tables, by name or by number from 1 (default: those named as the languages, or both)",
    )
    made.add_argument("--source-language", metavar="CODE", help="language to translate from, such as en, required")
    made.add_argument("--target-language", metavar="CODE", help="language to translate to, such as de, required")
    made.add_argument("--output", type=Path, metavar="FOLDER", help="the folder to make, required; it may be empty")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-init; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _init(parser().parse_args(arguments)))


def _init(options: argparse.Namespace) -> None:
    inputs = _inputs(options)
    from nmt.files import rename

    output = options.output.resolve()
    languages = (options.source_language, options.target_language)
    endings = languages if languages[0] != languages[1] else ("source", "target")
    with failing_as(str(options.output)):
        output.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as work:
            every = Path(work) / "source", Path(work) / "target"
            made = Path(work) / "made"
            made.mkdir()
            dropped = Dropped()
            read = _read(inputs, every, languages[1], dropped)
            size = _held_out(read, dropped)
            parts, by_documents = read.keys.split(size)
            counts = _distribute(every, parts.tolist(), made, endings, dropped)
            if min(counts["test"], counts["valid"]) < size / 2:
                raise UserError(
                    f"only {counts['test'] + counts['valid']:,} pairs can be held out, of {2 * size:,}, as all others "
                    "have a sentence that is in several pairs; give other text as well"
                )
            configuration = _configuration(options, read, counts["train"], endings)
            (made / CONFIGURATION).write_text(configuration, encoding="utf-8")
            report = [*_report(options, read, counts, dropped, by_documents=by_documents)]
            (made / REPORT).write_text("".join(f"{line}\n" for line in report), encoding="utf-8")
            rename(made, output)
    shown = [line for line in report if not line.startswith(" ")]
    say("\n".join([*shown, f"report: {options.output / REPORT}", f"next: {_command(options)}", ""]))


def _configuration(options: argparse.Namespace, read: Read, pairs: int, endings: Sequence[str]) -> str:
    """The starter with the languages, the files, and what suits them."""
    from nmt.config.suited import filled_in, suited_settings
    from nmt.examples import starters

    starter = starters()[STARTER].read_text(encoding="utf-8")
    values = {
        "name": re.sub(r"[^A-Za-z0-9._-]", "_", options.output.resolve().name).lstrip("._-") or STARTER,
        "data.source_language": options.source_language,
        "data.target_language": options.target_language,
    }
    for side, ending in zip(("source", "target"), endings, strict=True):
        values |= {f"data.train.0.{side}": f"train.{ending}", f"data.valid.{side}": f"valid.{ending}"}
    values |= suited_settings(pairs, units=read.usual.units, words=read.words, tokenize=read.tokenize)
    return filled_in(starter, values, f"{counted(pairs, 'training pair')}: {_command(options)}")


def _command(options: argparse.Namespace) -> str:
    return f"nmt-train --config {shlex.quote(str(options.output / CONFIGURATION))}"


def _inputs(options: argparse.Namespace) -> Inputs:
    """What was given. Raises UserError with all that is wrong."""
    from nmt.data.pairs import pairs_of_files, pairs_of_table
    from nmt.documents.formats import extension
    from nmt.documents.memories import pairs_of_memory

    sources, targets, others = (options.source or [], options.target or [], options.input or [])
    languages, folder = (options.source_language, options.target_language), options.output
    problems = missing(
        {
            "--source FILE and --target FILE, or --input FILE": (sources or targets or others or None, "the text"),
            "--source-language CODE": (languages[0], "the language to translate from, such as en"),
            "--target-language CODE": (languages[1], "the language to translate to, such as de"),
            "--output FOLDER": (folder, "the folder to make"),
        }
    )
    problems += without_effect(vars(options), {"columns": ("input",)})
    for side, code in zip(("source", "target"), languages, strict=True):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,30}", code or "a"):
            problems.append(f"--{side}-language {code}: allowed: letters, digits, - and _, such as en or pt-BR")
    if folder is not None and folder.exists() and not (folder.is_dir() and next(folder.iterdir(), None) is None):
        problems.append(f"--output {folder}: is there already, and no empty folder; give the name of a new one")
    if len(sources) != len(targets):
        problems.append(
            f"--source has {counted(len(sources), 'file')} and --target {len(targets)}: file i of the one must go with "
            "file i of the other"
        )
    problems += filter(None, map(nothing_at, (*sources, *targets, *others)))
    inputs = {}
    for source, target in zip(sources, targets, strict=False):
        inputs[f"{source} and {target}"] = pairs_of_files(source, target)
        if extension(source) == f".{languages[1]}" != f".{languages[0]}":
            problems.append(f"--source {source}: has the ending of --target-language {languages[1]}; swapped?")
    for path in others:
        if extension(path) in TABLES:
            inputs[str(path)] = pairs_of_table(path, languages, options.columns)
        elif extension(path) in MEMORIES:
            inputs[str(path)] = pairs_of_memory(path, languages)
        else:
            known = ", ".join((*TABLES, *MEMORIES))
            problems.append(f"--input {path}: allowed endings: {known}; parallel text is --source and --target")
    refuse(problems)
    return inputs


def _read(inputs: Inputs, every: Sequence[Path], target_language: str, dropped: Dropped) -> Read:
    """Write the pairs that no rule leaves out to both files of `every`."""
    from tqdm import tqdm

    from nmt.data.cleaning import usual
    from nmt.data.splitting import Keys

    pairs = ((name, pair) for name, stream in inputs.items() for pair in stream)
    first = list(islice(pairs, LOOKED_AT))
    expected, keys, words, count = usual(pair for _, pair in first), Keys(), set[str](), 0
    begun: dict[str, Words] = defaultdict(lambda: (set(), set()))  # words of the first pairs of each input
    with open(every[0], "wb") as sources, open(every[1], "wb") as targets:
        watched = tqdm(chain(first, pairs), unit=" pairs", disable=not sys.stderr.isatty())
        for count, (name, pair) in enumerate(watched, start=1):  # noqa: B007
            if rule := expected.fault(pair):
                dropped.add(rule, pair.source, pair.target, pair.place)
                continue
            source, target = pair.source.strip(), pair.target.strip()
            sources.write(f"{source}\n".encode())
            targets.write(f"{target}\n".encode())
            keys.add(source, target, pair.document)
            if len(keys) <= _COUNTED:
                words.update(source.split(), target.split())
            if len(begun[name][0]) < _COMPARED:
                begun[name][0].update(source.lower().split())
                begun[name][1].update(target.lower().split())
    _warn_of_swapped(begun)
    tokenize = _tokenizer(expected.units, [pair.target for _, pair in first], target_language)
    return Read(count, expected, keys, len(words), tokenize)


def _warn_of_swapped(begun: Mapping[str, Words]) -> None:
    """Warn of inputs whose sides have rather the words of the other side of the first one."""
    from nmt.data.lint import are_swapped

    first = next(iter(begun), "")
    for name, words in begun.items():
        if are_swapped(words, begun[first]):
            warnings.warn(f"{name}: its sides look swapped, compared with {first}", InputWarning, stacklevel=1)


def _tokenizer(units: str, targets: Sequence[str], language: str) -> str:
    """What BLEU is to take for words, so that nothing warns of it."""
    from nmt.evaluation.text_warnings import format_warnings
    from nmt.text_form import form_of

    form = form_of(targets, name="targets")
    of_lines = {"words": ("char",), "characters": ("none",)}
    possible = of_lines.get(units, ("13a", "none", "zh" if language.startswith("zh") else "char"))
    return next((name for name in possible if not format_warnings(form, name)), possible[0])


def _held_out(read: Read, dropped: Dropped) -> int:
    """How many pairs each of validation and test gets. Raises UserError where there are too few."""
    distinct = len(read.keys.distinct)
    if distinct < FEWEST:
        dropped.counts["repeated"] = len(read.keys) - distinct
        few = f"only {counted(distinct, 'pair')} of {read.pairs:,} can be used, and at least {FEWEST} are needed"
        raise UserError("\n".join([few, *dropped.lines()]))
    return min(MOST, max(LEAST, round(SHARE * distinct)))


def _distribute(
    every: Sequence[Path], parts: Sequence[int], folder: Path, endings: Sequence[str], dropped: Dropped
) -> Counter[str]:
    """Write the pairs of each part to files in the folder; returns how many there are."""
    from nmt.data.corpus import read_pairs
    from nmt.data.splitting import PARTS

    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        names = {part: [f"{part}.{ending}" for ending in endings] for part in KEPT}
        files = {part: [stack.enter_context(open(folder / name, "wb")) for name in names[part]] for part in KEPT}
        for number, pair in zip(parts, read_pairs(*every), strict=True):
            part = PARTS[number]
            counts[part] += 1
            if part not in files:
                dropped.add(part, *pair)
                continue
            for file, text in zip(files[part], pair, strict=True):
                file.write(f"{text}\n".encode())
    return counts


def _report(
    options: argparse.Namespace, read: Read, counts: Counter[str], dropped: Dropped, *, by_documents: bool
) -> Iterator[str]:
    """The lines of the report; those that begin with a space are not printed."""
    parts = ", ".join(f"{part} {counts[part]:,}" for part in KEPT)
    yield f"{options.output}: {counted(read.pairs, 'pair')} read; {parts}"
    yield from dropped.lines()
    if by_documents:
        yield "validation and test text are whole documents"
    if read.usual.units != "sentences":
        yield f"the lines are {read.usual.units}, not sentences: the model reads and writes characters"
