"""What nmt-init makes of pairs: a folder with training, validation, and test text, and a configuration for them."""

import os
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from sentencepiece import SentencePieceNormalizer

from nmt.cli.align import DEFAULT
from nmt.cli.common import watched
from nmt.cli.init import CONFIGURATION, REPORT
from nmt.cli.outputs import failing_as
from nmt.config.schema import SubwordsConfig
from nmt.config.suited import compared, filled_in, suited_settings
from nmt.data.alignments import disputed
from nmt.data.cache import unfinished
from nmt.data.cleaning import RULES, Usual, lacking, usual
from nmt.data.corpus import read_pairs
from nmt.data.lint import Words, are_swapped
from nmt.data.pairs import Pair
from nmt.data.splitting import PARTS, Keys
from nmt.decoding.word_aligner import aligned
from nmt.errors import InputWarning, UserError, counted, shortened
from nmt.evaluation.alignments import symmetrized
from nmt.evaluation.text_warnings import format_warnings, normalized_warning
from nmt.examples import starters
from nmt.files import rename, written_atomically
from nmt.pharaoh import pharaoh
from nmt.text_form import form_of

STARTER = "my_files"
FEWEST = 200  # pairs; of fewer, no part would tell anything
SHARE, LEAST, MOST = 0.05, 50, 1000  # of the pairs, for validation and once more for a test
LOOKED_AT = 10_000  # pairs by which it is told what is usual
_COMPARED = 1000  # words that tell swapped sides
KEPT = ("train", "valid", "test")
LINKS = "train.align"
_EXAMPLES, _SHOWN = 3, 60  # of each rule; characters of a text in them
_MOST_TAGS, _TAG = 300, re.compile("[^\N{LOWER ONE EIGHTH BLOCK}]{2,40}")  # that a vocabulary can have

Inputs = Mapping[str, Iterable[Pair]]  # by what messages call them


class Read(NamedTuple):
    """What was read: how many pairs, what is usual in them, and those that were kept."""

    pairs: int
    usual: Usual
    keys: Keys
    tokenize: str  # what BLEU is to take for words
    normalization: str  # of characters, with which a model can write the targets, and read words
    tags: Sequence[str]  # of forms


class Dropped:
    """How many pairs were left out by which rule, and the first of them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, dict[str, None]] = defaultdict(dict)  # no two alike

    def add(self, rule: str, pair: Pair) -> bool:
        """Count a pair, if a rule leaves it out; returns whether one does."""
        self.counts[rule] += bool(rule)
        if rule and len(self._examples[rule]) < _EXAMPLES:
            texts = " | ".join(shortened(text, _SHOWN) for text in (pair.source, pair.target) if text)
            self._examples[rule][f"    {pair.place}: {texts}" if pair.place else f"    {texts}"] = None
        return bool(rule)

    def lines(self) -> Iterator[str]:
        """A line for each rule, and, indented, its examples."""
        for rule in filter(self.counts.get, RULES):
            yield f"left out: {self.counts[rule]:,} {RULES[rule]}"
            yield from self._examples[rule]


def write_folder(folder: Path, inputs: Inputs, languages: Sequence[str], training: str) -> list[str]:
    """Write the folder, which appears whole or not at all; returns the lines of its report.

    The lines that begin with a space need not be printed. `training`: the command that trains.
    """
    output = Path(os.path.realpath(folder))  # resolve() raises RuntimeError for a link to itself
    endings = languages if languages[0] != languages[1] else ("source", "target")
    with failing_as(str(folder)), unfinished(output) as work:
        every, made = (work / "source", work / "target"), work / "made"
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
        values = _settings(run_name(folder), languages, endings) | suited_settings(
            counts["train"], units=read.usual.units, tokenize=read.tokenize
        )
        values |= {"subwords.normalization": read.normalization, "subwords.symbols": read.tags}
        if values.get("training.guided_alignment"):
            if write_links([made / f"train.{ending}" for ending in endings], made / LINKS):
                values["data.train.0.alignments"] = LINKS
            else:
                values["training.guided_alignment"] = None
        text = filled_in(
            starters()[STARTER].read_text(encoding="utf-8"),
            values,
            f"{counted(counts['train'], 'training pair')}: {training}",
        )
        (made / CONFIGURATION).write_text(text, encoding="utf-8", newline="\n")
        report = [*_report(folder, read, counts, dropped, by_documents=by_documents)]
        (made / REPORT).write_text("".join(f"{line}\n" for line in report), encoding="utf-8", newline="\n")
        with suppress(OSError):
            output.rmdir()  # an empty folder, which Windows does not replace
        rename(made, output)
    return report


def run_name(folder: Path) -> str:
    """The name of the model that is trained from a folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", Path(os.path.realpath(folder)).name).lstrip("._-") or STARTER


def _settings(name: str, languages: Sequence[str], endings: Sequence[str]) -> dict[str, str]:
    """The keys of the configuration that name things."""
    values = {"name": name, "data.source_language": languages[0], "data.target_language": languages[1]}
    for side, ending in zip(("source", "target"), endings, strict=True):
        values |= {f"data.train.0.{side}": f"train.{ending}", f"data.valid.{side}": f"valid.{ending}"}
    return values


def _read(inputs: Inputs, every: Sequence[Path], target_language: str, dropped: Dropped) -> Read:
    """Write the pairs that no rule leaves out to both files of `every`."""
    every_pair = watched(((name, pair) for name, stream in inputs.items() for pair in stream), "pairs")
    pairs = (named for named in every_pair if not dropped.add(lacking(named[1]), named[1]))
    first = list(islice(pairs, LOOKED_AT))
    expected, keys, tags = usual([pair for _, pair in first]), Keys(), set[str]()
    begun: dict[str, Words] = defaultdict(lambda: (set(), set()))  # words of the first pairs of each input
    with open(every[0], "wb") as sources, open(every[1], "wb") as targets:
        for name, pair in chain(first, pairs):
            if dropped.add(expected.fault(pair), pair):
                continue
            source, target = pair.source.strip(), pair.target.strip()
            sources.write(f"{source}\n".encode())
            targets.write(f"{target}\n".encode())
            keys.add(source, target, pair.document)
            tags.update(filter(_TAG.fullmatch, pair.tags))
            if len(begun[name][0]) < _COMPARED:
                begun[name][0].update(source.lower().split())
                begun[name][1].update(target.lower().split())
    compared_with = next(iter(begun), "")
    for name, words in begun.items():
        if are_swapped(words, begun[compared_with]):
            warnings.warn(f"{name}: its sides look swapped, compared with {compared_with}", InputWarning, stacklevel=1)
    are_tags = expected.units == "words" and len(tags) <= _MOST_TAGS  # and not other words
    suited = _suited(expected.units, [pair for _, pair in first], tags if are_tags else (), target_language)
    return Read(len(keys) + dropped.counts.total(), expected, keys, *suited)


def _suited(units: str, pairs: Sequence[Pair], tags: Iterable[str], language: str) -> tuple[str, str, list[str]]:
    """What BLEU is to take for words, the normalization of characters, and the tags that it leaves as they are.

    With these, nothing warns of the targets, and words lose no letter of a source either, such as the aspiration of kʰ.
    """
    texts = [pair.target if units == "sentences" else f"{pair.source} {pair.target}" for pair in pairs]
    form = form_of(texts, name="texts")
    of_lines = {"words": ("char",), "characters": ("none",)}
    possible = of_lines.get(units, ("13a", "none", "zh" if language.startswith("zh") else "char"))
    tokenize = next((name for name in possible if not format_warnings(form, name)), possible[0])
    normalization = SubwordsConfig().normalization
    normalizer = SentencePieceNormalizer(rule_name=normalization, add_dummy_prefix=False, escape_whitespaces=False)
    changes = normalized_warning("texts", texts, [*map(normalizer.normalize, texts)])
    symbols = sorted(tag for tag in tags if normalizer.normalize(tag) == tag)  # others may be the same as one of these
    return tokenize, "identity" if changes else normalization, symbols


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
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        names = {part: [f"{part}.{ending}" for ending in endings] for part in KEPT}
        files = {part: [stack.enter_context(open(folder / name, "wb")) for name in names[part]] for part in KEPT}
        for number, pair in zip(parts, read_pairs(*every), strict=True):
            part = PARTS[number]
            counts[part] += 1
            if part not in files:
                dropped.add(part, Pair(*pair, place=""))
                continue
            for file, text in zip(files[part], pair, strict=True):
                file.write(f"{text}\n".encode())
    return counts


def write_links(paths: Sequence[Path], output: Path) -> bool:
    """Write the links of the words of parallel text, if spaces part these; returns whether they do.

    A line with white space about which aligners differ gets none, as nmt-train would refuse them.
    """
    pairs = [*read_pairs(*paths)]
    if any(form_of(texts, name="").has_no_spaces for texts in zip(*pairs, strict=True)):
        return False
    if sys.stderr.isatty():  # it may take a minute
        print(f"aligning the words of {counted(len(pairs), 'pair')}", file=sys.stderr)
    every = symmetrized(DEFAULT, *aligned(pairs, count=len(pairs)))
    with written_atomically(output) as file:
        for pair, links in zip(pairs, every, strict=True):
            file.write(f"{pharaoh([] if any(map(disputed, pair)) else links)}\n")
    return True


def _report(folder: Path, read: Read, counts: Counter[str], dropped: Dropped, *, by_documents: bool) -> Iterator[str]:
    """The lines of the report; those that begin with a space are not printed."""
    parts = ", ".join(f"{part} {counts[part]:,}" for part in KEPT)
    yield f"{folder}: {counted(read.pairs, 'pair')} read; {parts}"
    yield from dropped.lines()
    if by_documents:
        yield "validation and test text are whole documents, or all rows of a lemma"
    if read.usual.units == "sentences":
        yield compared(counts["train"])
    else:
        tags = f", and reads {counted(len(read.tags), 'tag')}, with spaces between them" if read.tags else ""
        yield f"the lines are {read.usual.units}, not sentences: the model reads and writes characters{tags}"
