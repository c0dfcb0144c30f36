"""nmt-serve: translation over HTTP, as an API that LibreTranslate's clients speak and as a page.

Wiring only: arguments → models and limits → a web application → until a signal comes. All mistakes are reported at
once, before a model is loaded.
"""

import argparse
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from importlib.util import find_spec
from ipaddress import IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.options import (
    add_computing_options,
    add_search_options,
    add_sentence_option,
    add_unknown_word_options,
    filled_lines,
    missing,
    number_within,
    read_whole,
    translation_options,
    whole_number,
)
from nmt.cli.parser import Parser, command
from nmt.errors import collected, refuse
from nmt.ops.memory import enough_memory
from nmt.serving.limits import Detector, Limits, Pair, matching

if TYPE_CHECKING:
    from nmt.decoding.text.glossary import Glossary

PROGRAM = "nmt-serve"
COUNTS = {  # options of limits: their unit, and what they limit
    "characters": ("N", "characters of a text"),
    "texts": ("N", "texts of a request"),
    "body": ("BYTES", "bytes of a request"),
    "waiting": ("N", "requests that wait for their translation; one more is refused with status 503"),
}
MEMORY = "serve fewer models, or on another machine"
_ORIGIN = re.compile(r"\*|(?!http://.*:80$|https://.*:443$)https?://(?:[a-z0-9._-]+|\[([0-9a-f:]+)\])(?::([1-9]\d*))?")
_PAIRED = re.compile(r"(?:(\w+)-(\w+)|([^\s=:/]+):([^\s=:/]+))=(.+)", re.DOTALL)


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Serve translations over HTTP: LibreTranslate's API (/spec describes it), metrics, and a page to "
        "type in at /. Requests that come at once are translated together.",
        epilog="Ctrl-C, SIGTERM, or a closed terminal ends it after the requests that it holds are answered; a second "
        "signal, at once. docs/serving.md has the API, and what to know before it is opened to others.",
        usual=("model", "host", "port", "glossary", "device", "precision", "beam_size", "api_keys", "cors"),
    )
    made.add_argument(
        "--model",
        action="append",
        metavar="[PAIR=]PATH",
        help="a model to serve: a model file, or a run folder (its best model); required, and may be given several "
        "times, for different languages. They are those of its configuration, or the PAIR, such as en-de, or "
        "zh-Hans:en for codes with a hyphen",
    )
    made.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen: 127.0.0.1 for this machine alone, 0.0.0.0 for all (default: 127.0.0.1)",
    )
    made.add_argument(
        "--port",
        type=whole_number(0, 65535),
        default=5000,
        metavar="PORT",
        help="0: one that is free, which is printed (default: 5000)",
    )
    made.add_argument(
        "--glossary",
        action="append",
        metavar="[PAIR=]FILE",
        help="how terms are to be translated: a term, a tab, and its translation on each line, as for nmt-translate; "
        "PAIR says for which languages where there are several models",
    )
    add_sentence_option(made, "true, where it is installed; a request may say otherwise")
    add_computing_options(made, precision=True)
    add_search_options(made.add_argument_group("search, of all models"))
    add_unknown_word_options(made.add_argument_group("unknown words"))
    limits = made.add_argument_group("limits")
    for name, (unit, what) in COUNTS.items():
        default = getattr(Limits, name)
        limits.add_argument(
            f"--max-{name}",
            type=whole_number(1),
            default=default,
            metavar=unit,
            help=f"at most so many {what} (default: {default})",
        )
    limits.add_argument(
        "--max-seconds",
        type=number_within(0.001, 1e9),
        default=Limits.seconds,
        metavar="SECONDS",
        help=f"a request that is not answered by then gets status 503 (default: {Limits.seconds:g})",
    )
    limits.add_argument(
        "--max-per-minute",
        type=whole_number(1),
        metavar="N",
        help="translation requests a minute from one API key, or one address without one; more get status 429 "
        "(default: any number)",
    )
    access = made.add_argument_group("access")
    access.add_argument(
        "--api-keys",
        type=Path,
        help="a file with an API key a line; only requests with one of them are translated (default: all are)",
    )
    access.add_argument(
        "--cors",
        action="append",
        type=_origin,
        default=[],
        metavar="ORIGIN",
        help="pages of this origin, such as https://example.org, may use the API from a browser; may be given several "
        "times; *: all pages (default: none but its own)",
    )
    access.add_argument(
        "--log-requests",
        action="store_true",
        help="write a line to standard error for each request: time, path, status, and milliseconds, never its text "
        "(default: nothing)",
    )
    return made


@command(PROGRAM, parser)
@enough_memory(MEMORY, what="")
def main(options: argparse.Namespace, problems: list[str]) -> None:
    from nmt.cli.models import languages_of, read_models

    problems += missing({"--model [PAIR=]PATH": (options.model, "a model file, or the folder of a run")})
    how = translation_options(vars(options), problems)
    named = [_paired(text) for text in options.model or ()]
    models = [read_models({**vars(options), "model": [path], "ensemble": None}, problems) for _, path in named]
    pairs: list[Pair] = []
    for (pair, _), model in zip(named, models, strict=True):
        with collected(problems):
            pairs.append(pair or Pair(*languages_of(model.paths[0])))
    glossaries = _read_glossaries(options.glossary or (), pairs, problems) if len(pairs) == len(models) else {}
    keys = None
    if options.api_keys is not None:
        keys = read_whole("--api-keys", options.api_keys, filled_lines, problems)
    for name in ("python_multipart", "starlette", "uvicorn"):
        if find_spec(name) is None:
            problems.append(f"{name} is not installed: pip install 'nmt-toolkit[serve]'")
    refuse(problems)

    from nmt.decoding.reading import usual_sentences
    from nmt.serving.api import Service, application, written_to_log
    from nmt.serving.models import Served, loaded
    from nmt.serving.server import listening, serve

    limits = Limits(**{name: getattr(options, f"max_{name}") for name in (*COUNTS, "seconds", "per_minute")})
    with closing(listening(options.host, options.port)) as opened:  # said before models are loaded, which takes longer
        translators = loaded([(model.paths[0], pair, model.load) for model, pair in zip(models, pairs, strict=True)])
        of_pairs = {}
        for pair in translators:
            split = how.split_sentences
            if split in (None, True):
                split = usual_sentences(pair.source, name=str(pair))
            of_pairs[pair] = replace(how, split_sentences=split, glossary=glossaries.get(pair))
        served = Served(translators, of_pairs)
        served.check()
        detector = None
        with suppress(ModuleNotFoundError, LookupError):
            detector = Detector(code for pair in translators for code in pair)
        log = written_to_log if options.log_requests else None
        service = Service(served, limits=limits, keys=keys, detector=detector, log=log)
        serve(application(service, origins=options.cors), service, opened, program=PROGRAM)


def _paired(text: str) -> tuple[Pair | None, Path]:
    """The pair and the path in PAIR=PATH; no pair where the whole is a path, as in `systems`."""
    match = _PAIRED.fullmatch(text)
    if match is None or Path(text).exists():
        return None, Path(text)
    return Pair(match[1] or match[3], match[2] or match[4]), Path(match[5])


def _read_glossaries(texts: Sequence[str], pairs: Sequence[Pair], problems: list[str]) -> "dict[Pair, Glossary]":
    """The glossary of each pair of languages that has one."""
    from nmt.decoding.text.glossary import read_glossary

    glossaries: dict[Pair, Glossary] = {}
    for text in texts if pairs else ():
        named, path = _paired(text)
        pair = pairs[0] if named is None else next(iter(matching(*named, pairs)), named)
        if named is None and len(pairs) > 1:
            problems.append(f"--glossary {path}: say for which of the models it is, as in --glossary en-de={path}")
        if pair not in pairs:
            problems.append(f"--glossary: no model translates {pair}")
        if pair in glossaries:
            problems.append(f"--glossary: there are several for {pair}; put all terms into one file")
        # A term that a line cannot have is not reported: the log would say what somebody has sent.
        with collected(problems):
            glossaries[pair] = read_glossary(path, pair)
    return glossaries


def _origin(text: str) -> str:
    """An origin in lower case, as browsers send it; or *, which is all of them."""
    match = _ORIGIN.fullmatch(text.lower())
    with suppress(ValueError):  # no address
        if match and int(match[2] or 0) < 1 << 16 and (match[1] is None or match[1] == str(IPv6Address(match[1]))):
            return match[0]
    raise argparse.ArgumentTypeError(
        "an origin is scheme and host, perhaps with a port, such as https://example.org or http://localhost:8080, "
        "in ASCII (xn--...), as short as it can be, without 80 for http or 443 for https; or *"
    )
