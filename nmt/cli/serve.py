"""nmt-serve: translation over HTTP, as an API that LibreTranslate's clients speak and as a page.

Wiring only: arguments → models and limits → a web application → until a signal comes. All mistakes are reported at
once, before a model is loaded.
"""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.serve())

import argparse
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.cli.common import enough_memory, run
from nmt.cli.models import Models, add_device_option, add_precision_option, read_models
from nmt.cli.options import (
    MOST,
    add_search_options,
    add_unknown_word_options,
    missing,
    number_in,
    option_name,
    read_count,
    read_how,
    read_whole,
)
from nmt.errors import Checking, UserError, checked
from nmt.serving.limits import Limits

PROGRAM = "nmt-serve"
MEMORY = "serve fewer models, or on another machine"
_PAIRED = re.compile(r"(?:(\w+)-(\w+)|([^\s=:/]+):([^\s=:/]+))=(.*)", re.DOTALL)

_COUNTS = {  # options of limits: their unit, and what they limit
    "characters": ("N", "characters of a text"),
    "texts": ("N", "texts of a request"),
    "body": ("BYTES", "bytes of a request"),
    "waiting": ("N", "requests that wait for their translation; one more is refused with status 503"),
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to serve, to whom, and where."""

    models: Models
    pairs: Sequence[tuple[str, str] | None]  # of each model, where they are not those of its configuration
    whole_lines: bool
    how: Mapping[str, Any]  # to search, and unknown words
    limits: Limits
    keys: Sequence[str] | None
    origins: Sequence[str]
    log_requests: bool
    host: str
    port: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-serve; returns the exit code: 0 after a graceful stop, or 2 after a mistake of the user."""
    return run(PROGRAM, lambda: _serve(checked(_read_request(_parser().parse_args(arguments)))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        allow_abbrev=False,
        description="Serve translations over HTTP: LibreTranslate's API (POST /translate, GET /languages), metrics, "
        "and a page to type in at /. Requests that come at once are translated together.",
        epilog="Ctrl-C or SIGTERM ends it after the requests that it holds are answered; a second one, at once. "
        "docs/serving.md has the API, and what to know before it is opened to others.",
    )
    parser.add_argument(
        "--model",
        action="append",
        metavar="[PAIR=]PATH",
        help="a model to serve: a model file, or a run folder (its best model); required, and may be given several "
        "times, for different languages. They are those of its configuration, or the PAIR, such as en-de, or "
        "zh-Hans:en for codes with a hyphen",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen: 127.0.0.1 for this machine alone, 0.0.0.0 for all (default: 127.0.0.1)",
    )
    parser.add_argument("--port", metavar="PORT", help="0: one that is free, which is printed (default: 5000)")
    parser.add_argument(
        "--whole-lines",
        action="store_true",
        help="translate each line of a text as a whole, instead of sentence by sentence",
    )
    add_device_option(parser)
    add_precision_option(parser)
    add_search_options(parser.add_argument_group("search, of all models"))
    add_unknown_word_options(parser.add_argument_group("unknown words"))
    limits = parser.add_argument_group("limits")
    for name, (unit, what) in _COUNTS.items():
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
        help="translation requests a minute from one API key, or one address without keys; more get status 429 "
        "(default: any number)",
    )
    access = parser.add_argument_group("access")
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
    return parser


def _read_request(options: argparse.Namespace) -> Checking[Request]:
    values = vars(options)
    how = yield from read_how(values)
    yield from missing({"--model [PAIR=]PATH": (options.model, "a model file, or the folder of a run")})
    pairs, paths = [], []
    for given in options.model or ():
        pair, path = _paired(given)
        pairs.append(pair)
        paths.append(path)
    computing = {"device": options.device, "precision": options.precision, "ensemble": None}
    models = yield from read_models({"model": paths or None, **computing})
    limits = yield from _read_limits(values)
    keys = None
    if options.api_keys is not None:
        keys = yield from read_whole("--api-keys", options.api_keys, _read_keys)
    for origin in options.cors or ():
        if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
            yield f"--cors {shlex.quote(origin)}: an origin is scheme and host, such as https://example.org; or *"
    port = yield from _read_port(options.port)
    return Request(
        models=models,
        pairs=pairs,
        whole_lines=options.whole_lines,
        how=how,
        limits=limits,
        keys=keys,
        origins=options.cors or (),
        log_requests=options.log_requests,
        host=options.host,
        port=port,
    )


def _paired(given: str) -> tuple[tuple[str, str] | None, Path]:
    match = _PAIRED.fullmatch(given)
    if match is None:
        return None, Path(given)
    return (match[1] or match[3], match[2] or match[4]), Path(match[5])


def _read_limits(values: Mapping[str, Any]) -> Checking[Limits]:
    limits: dict[str, Any] = {}
    for name in (*_COUNTS, "per_minute"):
        option = option_name(f"max_{name}")
        limits[name] = yield from read_count(option, values[f"max_{name}"], least=1)
    if (text := values["max_seconds"]) is not None:
        seconds = number_in(text)
        if seconds is not None and 0 < seconds < MOST:
            limits["seconds"] = float(seconds)
        else:
            yield f"--max-seconds {shlex.quote(text)}: allowed: a number, more than 0"
    return Limits(**{name: value for name, value in limits.items() if value is not None})


def _read_keys(lines: Sequence[str], *, name: str) -> list[str]:
    del name
    return [line.strip() for line in lines if line.strip()]


def _read_port(text: str | None) -> Checking[int]:
    number = 5000 if text is None else number_in(text)
    if isinstance(number, int) and 0 <= number < 1 << 16:
        return number
    yield f"--port {shlex.quote(text or '')}: allowed: a whole number from 0 to 65535"
    return 0


@enough_memory(MEMORY, what="")
def _serve(request: Request) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed: pip install 'nmt-toolkit[serve]'") from None
    from nmt.decoding.options import TranslationOptions
    from nmt.serving.api import Service, application
    from nmt.serving.languages import Pair
    from nmt.serving.models import Served, loaded, sentence_rules
    from nmt.serving.server import listening, serve

    with closing(listening(request.host, request.port)) as opened:  # told before models are loaded, which takes longer
        loading = loaded(
            [(path, pair and Pair(*pair)) for path, pair in zip(request.models.paths, request.pairs, strict=True)],
            device=request.models.device or "cpu",
            precision=request.models.precision,
        )
        translators = checked(loading)
        rules = {} if request.whole_lines else sentence_rules(translators, lambda why: _say(f"{PROGRAM}: {why}"))
        served = Served(translators, TranslationOptions(**request.how), rules)
        served.check()
        log = _say if request.log_requests else None
        service = Service(served, limits=request.limits, keys=request.keys, log=log)
        serve(application(service, origins=request.origins), service, opened, program=PROGRAM)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
