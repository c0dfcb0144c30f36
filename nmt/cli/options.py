"""The options that say how to translate: by a search or at random, and what to do with unknown words.

The options of the search are the keys of the configuration's decoding section, the only place where their meaning and
ranges are written. `read_…` reads the values of options and yields what is wrong with them, so that all mistakes are
reported together, before any work begins. It knows no models, and PyTorch is not imported.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from pydantic import ValidationError

from nmt.cli.outputs import STANDARD
from nmt.cli.parsers.parser import option_name, option_names
from nmt.cli.parsers.shared import END_LINKS
from nmt.config import checked_value
from nmt.config.allowed import allowed
from nmt.config.schema import AlignmentStep, DecodingConfig, EndLinks, SamplingConfig
from nmt.data.corpus import read_lines
from nmt.data.dictionary import read_dictionary
from nmt.errors import Checking, UserError

SEARCH = tuple(DecodingConfig.model_fields)  # beam_size, …: the names under which argparse keeps the options
SAMPLING = tuple(SamplingConfig.model_fields)  # temperature, …
MOST = 10**17  # lines, pieces, …
_NUMBER = re.compile(r"-?([0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})([eE][-+]?[0-9]{1,3})?")

Item = TypeVar("Item")


def missing(needed: Mapping[str, tuple[object, str]]) -> Checking[None]:
    """Yield which of the needed options are missing; `needed` has their values and what they mean."""
    for option, (value, meaning) in needed.items():
        if value is None:
            yield f"{option} is missing: {meaning}"


def read_count(option: str, text: str | None, *, least: int) -> Checking[int | None]:
    """Read a whole number; None if there is none, or if it is wrong."""
    if text is not None:
        number = number_in(text)
        if isinstance(number, int) and least <= number < MOST:
            return number
        yield f"{option} {shlex.quote(text)}: allowed: a whole number, at least {least}"
    return None


def read_whole(option: str, path: Path | None, read: Callable[..., list[Item]]) -> Checking[list[Item]]:
    """Read a file, which must not be empty; nothing if there is no `path`. `read` takes the lines and a name."""
    items: list[Item] = []
    if path == Path(STANDARD):
        yield f"{option} {STANDARD}: standard input is not read here; give a file, such as /dev/stdin"
    elif path is not None:
        try:
            items = read(read_lines(path), name=str(path))
            if not items:
                yield f"{option} {path}: the file is empty"
        except UserError as error:
            yield from (f"{option}: {message}" for message in error.messages)
    return items


def read_decoding_value(option: str, text: str | None, *, key: str) -> Checking[Any]:
    """Read a value by the rules of the configuration's key decoding.`key`; None if there is none, or if it is wrong."""
    if text is None:
        return None
    try:
        return checked_value(DecodingConfig, key, _value(text))
    except UserError as error:
        yield f"{option} {shlex.quote(text)}: {str(error).removesuffix(', or null')}"  # which is to leave it out


def read_sampling(options: Mapping[str, Any]) -> Checking[SamplingConfig | None]:
    """Read how to draw translations; None if they are searched for."""
    texts = {name: options[name] for name in SAMPLING if options[name] is not None}
    if not options["sample"]:
        yield from (f"{option_names(name)[0]} has an effect only with --sample" for name in texts)
        return None
    for name in ("beam_size", "coverage_penalty"):
        if options[name] is not None:
            yield f"{option_names(name)[0]} has no effect with --sample, which draws instead of searching"
    values = {}
    for name, text in texts.items():
        try:
            values[name] = getattr(SamplingConfig.model_validate({name: _value(text)}), name)
        except ValidationError:
            rule = allowed(SamplingConfig.model_json_schema()["properties"][name]).removesuffix(", or null")
            yield f"{option_names(name)[0]} {shlex.quote(text)}: allowed: {rule}"
    return SamplingConfig(**values)


def number_in(text: str) -> int | float | None:
    """The number that the text is, in plain digits; None for another text, though Python may read 1_0, ٣ or nan."""
    if _NUMBER.fullmatch(text) is None:
        return None
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def _value(text: str) -> bool | int | float | str:
    """A number, true or false, if the text is one."""
    if text in ("true", "false"):
        return text == "true"
    number = number_in(text)
    return text if number is None else number


def read_alignment_step(
    options: Mapping[str, Any], *, users: Sequence[str], aligns: bool = False
) -> Checking[AlignmentStep]:
    """Read whose attention is a word's; `users`: the options that need it, by argparse's names.

    `aligns`: whether words are aligned without them, as in documents.
    """
    step = yield from _read_choice(options, "alignment_step", get_args(AlignmentStep), users=users, used=aligns)
    return cast(AlignmentStep, step or "this")


def read_end_links(options: Mapping[str, Any], *, aligns: bool = False) -> Checking[EndLinks]:
    """Read what to link a word to that attends to the end of the source; `aligns` as above."""
    rule = yield from _read_choice(options, "end_links", get_args(EndLinks), users=["alignments"], used=aligns)
    return cast(EndLinks, rule or END_LINKS)


def _read_choice(
    options: Mapping[str, Any], name: str, choices: Sequence[str], *, users: Sequence[str], used: bool
) -> Checking[str | None]:
    """Read an option that has one of a few values; None if it is left out. It has an effect if it is `used` in any
    case, or with one of the options `users`, by argparse's names."""
    value: str | None = options[name]
    if value is None:
        return None
    if not used and not any(options[user] for user in users):
        yield f"{option_name(name)} has an effect only with {' or '.join(map(option_name, users))}"
    if value not in choices:
        yield f"{option_name(name)} {shlex.quote(value)}: unknown; choose one of {', '.join(choices)}"
    return value


def read_how(options: Mapping[str, Any]) -> Checking[dict[str, Any]]:
    """Read what the translator is told about the search and unknown words."""
    how = {}
    for name in SEARCH:
        if options[name] is not None:
            how[name] = yield from read_decoding_value(option_names(name)[0], options[name], key=name)
    if options["dictionary"] is not None:
        if not options["replace_unknown"]:
            yield "--dictionary has an effect only with --replace-unknown"
        try:
            how["replace_unknown"] = read_dictionary(options["dictionary"])
        except UserError as error:
            yield from (f"--dictionary: {message}" for message in error.messages)
    elif options["replace_unknown"]:
        how["replace_unknown"] = {}
    return how
