"""nmt-serve: translation over HTTP, as an API that LibreTranslate's clients speak and as a page.

Wiring only: arguments → models and limits → a web application → until a signal comes. All mistakes are reported at
once, before a model is loaded.
"""

import argparse
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.cli.common import run
from nmt.cli.options import (
    MOST,
    add_device_option,
    add_precision_option,
    add_search_options,
    add_unknown_word_options,
    missing,
    number_in,
    read_count,
    read_whole,
    translation_values,
)
from nmt.cli.parser import Parser, option_name
from nmt.errors import UserError, collected, refuse
from nmt.ops.memory import enough_memory
from nmt.serving.limits import Limits, Pair

if TYPE_CHECKING:
    from nmt.cli.models import Models
    from nmt.decoding.options import TranslationOptions
    from nmt.decoding.text.glossary import Glossary

PROGRAM = "nmt-serve"
COUNTS = {  # options of limits: their unit, and what they limit
    "characters": ("N", "characters of a text"),
    "texts": ("N", "texts of a request"),
    "body": ("BYTES", "bytes of a request"),
    "waiting": ("N", "requests that wait for their translation; one more is refused with status 503"),
}
MEMORY = "serve fewer models, or on another machine"
PORTS = {"http": 80, "https": 443}  # which browsers leave out of an origin
_HOST = r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]"
_ORIGIN = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST})(?::(?P<port>[0-9]{{1,5}}))?")
_PAIRED = re.compile(r"(?:(\w+)-(\w+)|([^\s=:/]+):([^\s=:/]+))=(.+)", re.DOTALL)


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Serve translations over HTTP: LibreTranslate's API (POST /translate, GET /languages), metrics, "
        "and a page to type in at /. Requests that come at once are translated together.",
        epilog="Ctrl-C or SIGTERM ends it after the requests that it holds are answered; a second one, at once. "
        "docs/serving.md has the API, and what to know before it is opened to others.",
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
    made.add_argument("--port", metavar="PORT", help="0: one that is free, which is printed (default: 5000)")
    made.add_argument(
        "--glossary",
        action="append",
        metavar="[PAIR=]FILE",
        help="how terms are to be translated: a term, a tab, and its translation on each line, as for nmt-translate; "
        "PAIR says for which languages where there are several models",
    )
    made.add_argument(
        "--whole-lines",
        action="store_true",
        help="translate each line of a text as a whole, instead of sentence by sentence",
    )
    add_device_option(made)
    add_precision_option(made)
    add_search_options(made.add_argument_group("search, of all models"))
    add_unknown_word_options(made.add_argument_group("unknown words"))
    limits = made.add_argument_group("limits")
    for name, (unit, what) in COUNTS.items():
        default = getattr(Limits, name)
        limits.add_argument(f"--max-{name}", metavar=unit, help=f"at most so many {what} (default: {default})")
    limits.add_argument(
        "--max-seconds",
        metavar="SECONDS",
        help=f"a request that is not answered by then gets status 503 (default: {Limits.seconds:g})",
    )
    limits.add_argument(
        "--max-per-minute",
        metavar="N",
        help="translation requests a minute from one API key, or one address without one; more get status 429 "
        "(default: any number)",
    )
    access = made.add_argument_group("access")
    access.add_argument(
        "--api-keys",
        type=Path,
        metavar="FILE",
        help="a file with an API key a line; only requests with one of them are translated (default: all are)",
    )
    access.add_argument(
        "--cors",
        action="append",
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


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to serve, to whom, and where."""

    models: "Models"
    pairs: Sequence[Pair | None]  # of each model, where they are not those of its configuration
    glossaries: "Sequence[tuple[Pair | None, Glossary]]"  # and of which pair; None: of the only one
    whole_lines: bool
    how: "TranslationOptions"
    limits: Limits
    keys: Sequence[str] | None
    origins: Sequence[str]
    log_requests: bool
    host: str
    port: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-serve; returns the exit code: 0 after a graceful stop, or 2 after a mistake of the user."""
    return run(PROGRAM, partial(_command, arguments))


def _command(arguments: Sequence[str] | None) -> None:
    _serve(_read_request(parser().parse_args(arguments)))


def _read_request(options: argparse.Namespace) -> Request:
    from nmt.cli.models import read_models
    from nmt.decoding.options import TranslationOptions

    values = vars(options)
    problems = missing({"--model [PAIR=]PATH": (options.model, "a model file, or the folder of a run")})
    how = TranslationOptions()
    with collected(problems):
        how = TranslationOptions(**translation_values(values, problems))
        problems += how.contradictions()
    pairs, paths = [], []
    for text in options.model or ():
        pair, path = _paired(text)
        pairs.append(pair)
        paths.append(path)
    computing = {"device": options.device, "precision": options.precision, "ensemble": None}
    models = read_models({"model": paths or None, **computing}, problems)
    glossaries = _read_glossaries(options.glossary or (), problems, models=len(paths))
    limits = _read_limits(values, problems)
    keys = None
    if options.api_keys is not None:
        keys = read_whole("--api-keys", options.api_keys, _read_keys, problems)
    origins = [_read_origin(text, problems) for text in options.cors or ()]
    port = 5000 if options.port is None else number_in(options.port)
    if not isinstance(port, int) or not 0 <= port < 1 << 16:
        problems.append(f"--port {shlex.quote(options.port)}: allowed: a whole number from 0 to 65535")
        port = 0
    refuse(problems)
    return Request(
        models=models,
        pairs=pairs,
        glossaries=glossaries,
        whole_lines=options.whole_lines,
        how=how,
        limits=limits,
        keys=keys,
        origins=origins,
        log_requests=options.log_requests,
        host=options.host,
        port=port,
    )


def _paired(text: str) -> tuple[Pair | None, Path]:
    """The pair and the path in PAIR=PATH; no pair where the whole is a path, as in `systems`."""
    match = _PAIRED.fullmatch(text)
    if match is None or Path(text).exists():
        return None, Path(text)
    return Pair(match[1] or match[3], match[2] or match[4]), Path(match[5])


def _read_glossaries(texts: Sequence[str], problems: list[str], *, models: int) -> "list[tuple[Pair | None, Glossary]]":
    from nmt.decoding.text.glossary import read_glossary

    glossaries = []
    for text in texts:
        pair, path = _paired(text)
        if pair is None and models > 1:
            problems.append(f"--glossary {path}: say for which of the models it is, as in --glossary en-de={path}")
        # A term that a line cannot have is not reported: the log would say what somebody has sent.
        with collected(problems):
            glossaries.append((pair, read_glossary(path, as_written=False, warn=lambda why: None)))
    return glossaries


def _read_limits(values: Mapping[str, Any], problems: list[str]) -> Limits:
    limits: dict[str, Any] = {}
    for name in (*COUNTS, "per_minute"):
        limits[name] = read_count(option_name(f"max_{name}"), values[f"max_{name}"], problems, least=1)
    if (text := values["max_seconds"]) is not None:
        seconds = number_in(text)
        if seconds is not None and 0 < seconds < MOST:
            limits["seconds"] = float(seconds)
        else:
            problems.append(f"--max-seconds {shlex.quote(text)}: allowed: a number, more than 0")
    return Limits(**{name: value for name, value in limits.items() if value is not None})


def _read_origin(text: str, problems: list[str]) -> str:
    """Read an origin, or *, which is all of them."""
    origin = text if text == "*" else _as_sent(text)
    if origin is None:
        problems.append(
            f"--cors {shlex.quote(text)}: an origin is scheme and host, perhaps with a port, such as "
            "https://example.org or http://localhost:8080, in ASCII (xn--...); or *"
        )
    return origin or text


def _as_sent(text: str) -> str | None:
    """An origin as browsers send it: in lower case, addresses shortened, without the port that is the scheme's; None
    for what is no origin."""
    match = _ORIGIN.fullmatch(text.lower()) if text.isascii() else None
    if match is None:
        return None
    scheme, host, port = match["scheme"], match["host"], int(match["port"] or PORTS[match["scheme"]])
    if host.startswith("["):
        try:
            host = f"[{IPv6Address(host[1:-1]).compressed}]"
        except ValueError:
            return None
    if port >= 1 << 16:
        return None
    return f"{scheme}://{host}" if port == PORTS[scheme] else f"{scheme}://{host}:{port}"


def _read_keys(lines: Sequence[str], *, name: str) -> list[str]:
    lines = list(lines)
    keys = [line.strip() for line in lines if line.strip()]
    if lines and not keys:
        raise UserError(f"{name}: has no key; expected one on each line")
    return keys


@enough_memory(MEMORY, what="")
def _serve(request: Request) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed: pip install 'nmt-toolkit[serve]'") from None
    from nmt.serving.api import Service, application
    from nmt.serving.models import Served, loaded, sentence_rules, tell_of_impossible_terms
    from nmt.serving.server import listening, serve

    with closing(listening(request.host, request.port)) as opened:  # told before models are loaded, which takes longer
        translators = loaded(
            list(zip(request.models.paths, request.pairs, strict=True)),
            device=request.models.device or "cpu",
            precision=request.models.precision,
        )
        rules = {} if request.whole_lines else sentence_rules(translators, _warn)
        glossaries = _glossaries(request, list(translators))
        served = Served(translators, request.how, rules, glossaries)
        served.check()
        tell_of_impossible_terms(translators, glossaries, _warn)
        log = _say if request.log_requests else None
        service = Service(served, limits=request.limits, keys=request.keys, log=log)
        serve(application(service, origins=request.origins), service, opened, program=PROGRAM)


def _glossaries(request: Request, pairs: Sequence[Pair]) -> "dict[Pair, Glossary]":
    """The glossary of each pair that has one."""
    problems = []
    glossaries: dict[Pair, Glossary] = {}
    for named, glossary in request.glossaries:
        pair = pairs[0] if named is None else named.among(pairs) or named
        if pair not in pairs:
            problems.append(f"--glossary: no model translates {pair}")
        if pair in glossaries:
            problems.append(f"--glossary: there are several for {pair}; put all terms into one file")
        glossaries[pair] = glossary
    refuse(problems)
    return glossaries


def _warn(why: str) -> None:
    _say(f"{PROGRAM}: {why}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    from nmt.cli import start

    raise SystemExit(start.main(PROGRAM))
