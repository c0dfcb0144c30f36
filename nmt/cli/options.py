"""The options that several commands have: how they are added to a parser, and how their values are read.

The options of the search are the keys of the configuration's section decoding, the only place where their meaning and
ranges are written. All mistakes are reported together, before any work begins. It knows no models, and imports nothing
that takes long before an option is read.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from nmt.cli.outputs import STANDARD, is_device
from nmt.cli.parser import option_name
from nmt.devices import DEVICES, PRECISIONS
from nmt.errors import collected, counted
from nmt.examples import schema_file

if TYPE_CHECKING:
    from nmt.decoding.options import TranslationOptions

END_LINKS: Final = "last"  # unless told otherwise
ENSEMBLES = ("log-probabilities", "probabilities", "logits")  # those of `config.schema.EnsembleName`
_VALUES = ("n_best", "diversity", "alignment_step", "end_links", "split_sentences")  # more of TranslationOptions
_NEEDED = {"dictionary": ("replace_unknown",), "glossary_case": ("glossary",)}  # without which they have no effect
OTHER_NAMES = {"sampling": "sample", "forbidden": "forbid"}  # here
_UNLIMITED = 10**17
_NUMBER = re.compile(r"-?([0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})([eE][-+]?[0-9]{1,3})?")

Item = TypeVar("Item")


def add_model_option(group: argparse._ActionsContainer, what: str) -> None:
    """Add --model and --ensemble; `what` the model does begins the help text."""
    group.add_argument(
        "--model",
        action="append",
        type=Path,
        metavar="PATH",
        help=f"{what}: a model file, or a run folder (its best model). Given several times, the models work together "
        "as an ensemble (see --ensemble); they need the same vocabularies, and the first one's configuration gives the "
        "defaults",
    )
    group.add_argument(
        "--ensemble",
        choices=ENSEMBLES,
        metavar="MEAN",
        help="with several models: the mean that they give each word: log-probabilities (geometric, not normalized), "
        "logits (the same, normalized), or probabilities (arithmetic) (default: log-probabilities)",
    )


def add_computing_options(
    group: argparse._ActionsContainer, *, precision: bool = False, shortlist: bool = False
) -> None:
    """Add --device, and --precision and --shortlist, which make translation faster and a little different."""
    group.add_argument("--device", metavar="NAME", help=f"where to compute: {', '.join(DEVICES)} (default: auto)")
    if precision:
        group.add_argument(
            "--precision",
            choices=PRECISIONS,
            metavar="NAME",
            help=f"what products are computed in: {', '.join(PRECISIONS)}; int8, on a CPU, or bfloat16, on a GPU, is "
            f"faster, and changes a translation here and there (default: that of an export, or {PRECISIONS[0]})",
        )
    if shortlist:
        group.add_argument(
            "--shortlist",
            type=Path,
            help="write only the pieces that may translate those of a sentence, as nmt-shortlist has learned them, and "
            "those of its prefix and constraints: fewer to choose among, and a little different (default: all pieces)",
        )


def add_search_options(group: argparse._ActionsContainer) -> None:
    """Add the options of the search, which are the keys of the configuration's section decoding."""
    _add_keys(group, "DecodingConfig", usual="from the model")


def add_sampling_options(group: argparse._ActionsContainer) -> None:
    """Add --sample, and the keys of `SamplingConfig`, which go with it."""
    group.add_argument(
        "--sample",
        action="store_true",
        help="draw translations at random instead of searching for the best; --n-best K draws K of each line, "
        "independently, and sorts them by score",
    )
    _add_keys(group, "SamplingConfig", begin="with --sample: ")


def _add_keys(group: argparse._ActionsContainer, section: str, *, begin: str = "", usual: str | None = None) -> None:
    """Add an option for each key of a section; `usual`: what it is without the option, if not the key's default."""
    for name, key in _sections()[section]["properties"].items():
        text = " ".join(key.get("description", name).split()).rstrip(".")
        is_boolean, is_list = (key.get("type") == kind for kind in ("boolean", "array"))
        group.add_argument(
            option_name(name),
            metavar="TRUE|FALSE" if is_boolean else name.rpartition("_")[2].upper(),
            nargs="?" if is_boolean else "*" if is_list else None,
            const="true" if is_boolean else None,
            help=f"{begin}{text[0].lower()}{text[1:]} (default: {usual or key['default'] or 'off'})",
        )


def search_keys(section: str = "DecodingConfig") -> list[str]:
    """The names under which argparse keeps the options of the search, or those of sampling: beam_size, …"""
    return list(_sections()[section]["properties"])


@cache
def _sections() -> Mapping[str, Any]:
    """The JSON schema of each, from its file, as importing pydantic would take longer than all else of --help."""
    if (file := schema_file()) is not None:
        return cast(Mapping[str, Any], json.loads(file.read_text(encoding="utf-8"))["$defs"])
    from nmt.config.schema import DecodingConfig, SamplingConfig

    return {section.__name__: section.model_json_schema() for section in (DecodingConfig, SamplingConfig)}


def add_sentence_option(group: argparse._ActionsContainer, default: str) -> None:
    """Add --split-sentences; what happens without it is its `default`."""
    group.add_argument(
        "--split-sentences",
        nargs="?",
        const="true",
        metavar="LANGUAGE",
        help="cut each line into sentences, translate these one by one, and join them with the line's own white space. "
        "LANGUAGE, such as en, has the rules for where sentences end; true: the model's source language; false: leave "
        f"lines whole (default: {default}). It needs sentencex: pip install 'nmt-toolkit[text]'",
    )


def add_unknown_word_options(group: argparse._ActionsContainer) -> None:
    """Add --replace-unknown and --dictionary."""
    group.add_argument(
        "--replace-unknown",
        action="store_true",
        default=None,
        help="replace each unknown word by the source word that it attends to most: its entry in --dictionary, or "
        "the word as it stands in the source; not for a model without attention",
    )
    group.add_argument(
        "--dictionary",
        type=Path,
        help="for --replace-unknown: lines of a word, a tab or a space, and its translation; of several for a word the "
        "first counts",
    )


def add_alignment_step_option(group: argparse._ActionsContainer) -> None:
    """Add --alignment-step."""
    group.add_argument(
        "--alignment-step",
        metavar="STEP",
        help="whose attention says which source word a word stands for: this, the step that writes the word, or next, "
        "the step after it, which reads the word (default: this)",
    )


def read_parallel(
    sources: Sequence[Path] | None, targets: Sequence[Path] | None, problems: list[str]
) -> tuple[list[tuple[Path, Path]], list[int]]:
    """The pairs of files of --source and --target, which may be missing, and the lines of each; all that is wrong is
    appended to `problems`."""
    from nmt.data.corpus import check_corpora

    pairs, counts = list(zip(sources or (), targets or (), strict=False)), [0]
    if Path(STANDARD) in (*(sources or ()), *(targets or ())):
        problems.append(f"{STANDARD}: standard input is not read here; give files")
    elif sources and targets and (unequal := unequal_counts(sources, targets)):
        problems += unequal
    elif pairs:
        with collected(problems):
            counts = check_corpora(pairs)
    return pairs, counts


def unequal_counts(sources: Sequence[Path], targets: Sequence[Path]) -> list[str]:
    """The problem that --source and --target have different numbers of files, if they have."""
    if len(sources) == len(targets):
        return []
    files = f"--source has {counted(len(sources), 'file')} and --target {len(targets)}"
    return [f"{files}: file i of the one must go with file i of the other"]


def parallel_inputs(pairs: Sequence[tuple[Path, Path]]) -> list[tuple[str, Path]]:
    """The files, with their options."""
    return [named for source, target in pairs for named in (("--source", source), ("--target", target))]


def add_alignment_options(group: argparse._ActionsContainer) -> None:
    """Add the options whose values become `alignment_outputs.AlignmentOutputs`."""
    group.add_argument(
        "--alignments",
        metavar="FILE",
        help="write word alignments in Pharaoh format, a line for each line of the output: for each word of the "
        "translation the source word it attends to most, as source-target, counted from 0. Words are what stands "
        "between spaces",
    )
    group.add_argument(
        "--end-links",
        metavar="RULE",
        help="for --alignments: where a word attends to the end of the source more than to any word, link it to the "
        "last source word (last), to none (none), or to the word it attends to most all the same (best) (default: "
        f"{END_LINKS})",
    )
    group.add_argument(
        "--soft-alignments",
        metavar="FILE",
        help="write the attention between words, a line of JSON for each line of the output: source, target (lists of "
        "words, the source's with </s> for its end) and attention (a row for each target word, a column for each "
        "source word and the end)",
    )
    group.add_argument(
        "--plot-alignments",
        type=Path,
        metavar="FOLDER",
        help="draw the attention between words: 000001.png for the first line (with its best translation, where there "
        "are several), and so on; none for a blank line. Needs matplotlib",
    )
    add_alignment_step_option(group)


def missing(needed: Mapping[str, tuple[object, str]]) -> list[str]:
    """Which of the needed options are missing; `needed` has their values and what they mean."""
    return [f"{option} is missing: {meaning}" for option, (value, meaning) in needed.items() if value is None]


def number_within(
    least: float, most: float = _UNLIMITED, *, kind: type[int] | type[float] = float
) -> Callable[[str], float]:
    """The type of an option that is a number of this kind."""

    def read(text: str) -> float:
        number = number_in(text)
        if number is not None and least <= number <= most and (kind is float or isinstance(number, int)):
            return kind(number)
        what = "a number" if kind is float else "a whole number"
        limit = "" if most == _UNLIMITED else f" and at most {most:,.15g}"
        raise argparse.ArgumentTypeError(f"allowed: {what}, at least {least:,.15g}{limit}")

    return read


whole_number = partial(number_within, kind=int)  # likewise, of a whole number


def filled_lines(lines: Iterable[str], **_: str) -> list[str]:
    """The lines that are not blank, for `read_whole`."""
    return [line.strip() for line in lines if line.strip()]


def read_whole(option: str, path: Path | None, read: Callable[..., list[Item]], problems: list[str]) -> list[Item]:
    """What a file holds, which must not be empty; nothing if there is no `path`. `read` takes the lines and a name."""
    if path is None:
        return []
    if path == Path(STANDARD):
        problems.append(f"{option} {STANDARD}: standard input is not read here; give a file, such as /dev/stdin")
        return []
    from nmt.data.corpus import read_lines

    items: list[Item] = []
    with collected(problems, of=option):
        items = read(read_lines(path), name=str(path))
        if not items:
            problems.append(f"{option} {path}: the file is empty")
    return items


def line_count(path: Path | None) -> int | None:
    """The number of lines of a file, which is checked to its end; None if it can be read only once."""
    from nmt.data.corpus import read_lines

    return None if path is None or is_device(path) else sum(1 for _ in read_lines(path))


def number_in(text: str) -> int | float | None:
    """The number that the text is, in plain digits; None for another text, though Python may read 1_0, ٣ or nan."""
    if _NUMBER.fullmatch(text) is None:
        return None
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def without_effect(
    options: Mapping[str, Any], needed: Mapping[str, Sequence[str]], uses: Mapping[str, object] | None = None
) -> list[str]:
    """Which options are given though nothing uses them.

    `needed` has, by the name of an option, those of which one must be given, too, or what `uses` says of it must hold.
    """
    problems = []
    for name, users in needed.items():
        used = any((uses or {}).get(user, options.get(user)) for user in users)
        is_given = options.get(name) is not None and options[name] is not False  # also 0
        if is_given and not used:
            names = " or ".join(map(option_name, users))
            problems.append(f"{option_name(name)} has an effect only with {names}")
    return problems


def translation_names() -> list[str]:
    """The names of the options of a translation, here and in `TranslationOptions`."""
    others = ("replace_unknown", "glossary", "constraints", "alignments", *OTHER_NAMES)
    return [*search_keys(), *_VALUES, *search_keys("SamplingConfig"), *others]


def translation_options(
    options: Mapping[str, Any], problems: list[str], *, constraints: bool = False, **more: Any
) -> "TranslationOptions":
    """How to translate, by what was given and `more`, perhaps with `constraints` for the lines."""
    from nmt.decoding.options import TranslationOptions  # only here: scoring needs no PyTorch

    how = TranslationOptions()
    with collected(problems):
        how = TranslationOptions(**translation_values(options, problems), **more)
        problems += how.contradictions(constraints=constraints)
    return how


def translation_values(options: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """What was given of the options of a translation, as keywords of `TranslationOptions`, which checks them."""
    drawing = search_keys("SamplingConfig")
    problems += without_effect(options, {**dict.fromkeys(drawing, ("sample",)), **_NEEDED})
    texts = {name: options.get(name) for name in (*search_keys(), *_VALUES)}
    values: dict[str, Any] = {name: _value(text) for name, text in texts.items() if text is not None}
    if (split := values.get("split_sentences")) not in (None, False):
        from nmt.decoding.text.sentences import checked_language

        with collected(problems):
            checked_language("en" if split is True else str(texts["split_sentences"]))
    if options.get("sample"):
        values["sampling"] = {name: _value(options[name]) for name in drawing if options.get(name) is not None}
    if options.get("forbid") is not None:
        values["forbidden"] = read_whole("--forbid", options["forbid"], filled_lines, problems)
    if options.get("replace_unknown"):
        values["replace_unknown"] = {}
    if (dictionary := options.get("dictionary")) is not None:
        from nmt.decoding.text.glossary import read_dictionary

        with collected(problems):
            values["replace_unknown"] = read_dictionary(dictionary)
    return values


def _value(text: str | list[str]) -> bool | int | float | str | list[str]:
    """A number, true or false, if the text is one."""
    if isinstance(text, list):
        return text
    if text in ("true", "false"):
        return text == "true"
    number = number_in(text)
    return text if number is None else number
