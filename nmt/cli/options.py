"""What nmt-translate and nmt-eval are told alike: how to translate, on which device, and where output goes.

The search's options are the keys of the configuration's decoding section; their meaning and ranges are written only
there. Values are read from text and mistakes are collected, so that all of them are reported together and before any
work begins. It knows no model, and imports no PyTorch unless a device is asked for.
"""

import argparse
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from pydantic import ValidationError

from nmt.cli.common import DEVICES, Output, choose_device, failing_as
from nmt.config import checked_value
from nmt.config.allowed import allowed
from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.data.dictionary import read_dictionary
from nmt.errors import UserError, caught, checked
from nmt.files import written_atomically

if TYPE_CHECKING:
    import torch

STANDARD = "-"  # standard input or output
PRECISIONS = ("float32", "bfloat16", "int8")
SEARCH = tuple(DecodingConfig.model_fields)  # beam_size, …: the names under which argparse keeps the options

SAMPLING = tuple(SamplingConfig.model_fields)  # temperature, …

Result = TypeVar("Result")


def add_search_options(group: argparse._ActionsContainer) -> None:
    """Add the options of the search; what they may be is checked by `search_options`, not by argparse."""
    for name, field in DecodingConfig.model_fields.items():
        described = str(field.description).rstrip(".")
        whether = field.annotation is bool
        group.add_argument(
            *_names(name),
            dest=name,
            metavar="TRUE|FALSE" if whether else name.rpartition("_")[2].upper(),
            nargs="?" if whether else None,
            const="true" if whether else None,
            help=f"{described[0].lower()}{described[1:]} (default: from the model)",
        )


def add_sampling_options(group: argparse._ActionsContainer) -> None:
    """Add --sample and the options that go with it, which `sampling_options` reads."""
    group.add_argument(
        "--sample",
        action="store_true",
        help="draw translations at random instead of searching for the best; --n-best K draws K of each line, "
        "independently, and sorts them by score",
    )
    for name, field in SamplingConfig.model_fields.items():
        described = str(field.description).rstrip(".")
        default = "off" if field.default is None else field.default
        group.add_argument(
            *_names(name),
            metavar=name.rpartition("_")[2].upper(),
            help=f"with --sample: {described[0].lower()}{described[1:]} (default: {default})",
        )


def sampling_options(given: argparse.Namespace, problems: list[str]) -> SamplingConfig | None:
    """How to draw translations, if they are to be drawn; what is wrong with it is added to `problems`."""
    texts = {name: getattr(given, name) for name in SAMPLING if getattr(given, name) is not None}
    if not given.sample:
        problems.extend(f"{_names(name)[0]} has an effect only with --sample" for name in texts)
        return None
    for name in ("beam_size", "coverage_penalty"):
        if getattr(given, name, None) is not None:
            problems.append(f"{_names(name)[0]} has no effect with --sample, which draws instead of searching")
    values = {name: collect(problems, partial(_sampling_value, name, text)) for name, text in texts.items()}
    return SamplingConfig(**{name: value for name, value in values.items() if value is not None})


def _sampling_value(name: str, text: str) -> Any:
    """What was given to an option of the sampling. Raises UserError with what is allowed."""
    try:
        return getattr(SamplingConfig.model_validate({name: _read(text)}), name)
    except ValidationError:
        rule = allowed(SamplingConfig.model_json_schema()["properties"][name]).removesuffix(", or null")
        raise UserError(f"{_names(name)[0]} {shlex.quote(text)}: allowed: {rule}") from None


def add_device_option(group: argparse._ActionsContainer) -> None:
    """Add --device; its value is checked by `device_option`."""
    group.add_argument("--device", metavar="NAME", help=f"where to compute: {', '.join(DEVICES)} (default: auto)")


def add_precision_option(group: argparse._ActionsContainer) -> None:
    """Add --precision; its value is checked by `precision_option`."""
    group.add_argument(
        "--precision",
        metavar="NAME",
        help=f"what weights are rounded to: {', '.join(PRECISIONS)}; int8, for the output layer (decoder: bfloat16), "
        "is the fastest on a CPU, and changes a translation here and there (default: float32)",
    )


def precision_option(given: argparse.Namespace, problems: list[str]) -> str:
    """The precision to translate in; what is wrong is added to `problems`."""
    if given.precision is not None and given.precision not in PRECISIONS:
        problems.append(f"--precision {given.precision}: unknown; choose one of {', '.join(PRECISIONS)}")
    return given.precision or "float32"


def add_shortlist_option(group: argparse._ActionsContainer) -> None:
    """Add --shortlist, which `check_shortlist` checks."""
    group.add_argument(
        "--shortlist",
        type=Path,
        metavar="FILE",
        help="write only the pieces that may translate those of a sentence, as nmt-shortlist has learnt them, and "
        "those of its prefix and constraints: fewer to choose among, and a little different (default: all pieces)",
    )


def check_shortlist(given: argparse.Namespace, problems: list[str]) -> None:
    """Add to `problems` that there is no such file; what is in it is for the translator to say."""
    if given.shortlist is not None and not given.shortlist.is_file():
        missing = "is no file" if given.shortlist.exists() else "no such file"
        problems.append(f"--shortlist {given.shortlist}: {missing}; make one with nmt-shortlist")


def add_unknown_word_options(group: argparse._ActionsContainer) -> None:
    """Add --replace-unknown and --dictionary, which `unknown_word_options` reads."""
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
        metavar="FILE",
        help="for --replace-unknown: lines of source word, translation and, if wanted, a weight, separated by tabs or "
        "spaces; of several entries for a word the one of the largest weight counts, of equal ones the first",
    )


def unknown_word_options(given: argparse.Namespace, problems: list[str]) -> dict[str, Any]:
    """What `Translator.translate` is told about unknown words; what is wrong with it is added to `problems`."""
    if given.dictionary is None:
        return {"replace_unknown": {}} if given.replace_unknown else {}
    if not given.replace_unknown:
        problems.append("--dictionary has an effect only with --replace-unknown")
    try:
        return {"replace_unknown": read_dictionary(given.dictionary)}
    except UserError as error:
        problems.extend(f"--dictionary: {message}" for message in error.messages)
        return {}


def search_options(given: argparse.Namespace, problems: list[str]) -> dict[str, Any]:
    """The options of the search that were given; those that are wrong are left out and added to `problems`."""
    options = {}
    for name in SEARCH:
        text = getattr(given, name)
        if text is not None:
            value = collect(problems, partial(decoding_value, _names(name)[0], text, key=name))
            if value is not None:
                options[name] = value
    return options


def device_option(given: argparse.Namespace, problems: list[str]) -> "torch.device | None":
    """The device to translate on; None, with what is wrong added to `problems`, where there is no such device."""
    return collect(problems, partial(choose_device, "auto" if given.device is None else given.device))


def decoding_value(option: str, text: str, *, key: str) -> Any:
    """What was given to `option`, under the rules of the configuration's key decoding.`key`. Raises UserError."""
    try:
        return checked_value(("decoding", key), _read(text))
    except UserError as error:
        raise UserError(f"{option} {shlex.quote(text)}: {error}") from None


def option_name(name: str) -> str:
    """The option whose value argparse calls `name`."""
    return f"--{name.replace('_', '-')}"


def _names(name: str) -> list[str]:
    """The option of a key of the decoding section: its name; for --minimum-length also the shorter --min-length."""
    option = option_name(name)
    return [option.replace("minimum", "min"), option] if "minimum" in option else [option]


def _read(text: str) -> bool | int | float | str:
    """A number, true or false, if the text is one."""
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text


def collect(problems: list[str], check: Callable[[], Result]) -> Result | None:
    """The result of `check`; or None, and what was wrong is added to `problems`."""
    try:
        return checked(caught(check, None))
    except UserError as error:
        problems.extend(error.messages)
    return None


def check_output(option: str, name: str, *, others: Mapping[str, Path | None]) -> None:
    """Find out now, not after the translation, whether the output `name` can be written.

    `others` are the files that must not be overwritten, by the options that name them. Raises UserError.
    """
    path = Path(name)
    if name == STANDARD and sys.stdout is None:
        raise UserError("standard output is closed; open it, or redirect it to a file or to /dev/null")
    if name == STANDARD or is_device(path):
        return
    given = f"{option} {name}"
    if path.is_dir():
        raise UserError(f"{given}: is a folder, not a file")
    for other, taken in others.items():
        if taken is not None and _same(path, taken):
            raise UserError(f"{given}: would overwrite {other} {taken}; give another name")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise UserError(f"{given}: there is no folder {path.parent}")
    try:
        with tempfile.TemporaryFile(dir=folder):  # to try is the only way to know: root, read-only disks, …
            pass
    except OSError as error:
        raise UserError(f"{given}: the folder {path.parent} cannot be written to ({error.strerror})") from None


def is_device(path: Path) -> bool:
    """Whether it is something that is written to as it is, such as /dev/null or a named pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve() or (path.exists() and other.exists() and path.samefile(other))


@contextmanager
def opened_for_writing(name: str) -> Iterator[IO[bytes]]:
    """Standard output, a device or named pipe as it is, or a file that appears complete or not at all.

    Raises UserError when the disk is full, and the like; a reader that has gone is left to `run`.
    """
    shown, standard = ("standard output", True) if name == STANDARD else (name, False)
    with failing_as(shown, standard=standard), _opened(name) as file:
        yield cast(IO[bytes], Output(file, shown, standard=standard))


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    path = Path(name)
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif is_device(path):
        with open(path, "wb") as file:
            yield file
    else:
        with written_atomically(path.resolve(), "wb") as file:  # of a link, the file it points to
            yield file
