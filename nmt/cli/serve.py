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
from functools import partial
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from nmt.cli.common import run
from nmt.cli.models import Models, read_models
from nmt.cli.options import MOST, missing, number_in, read_count, read_how, read_whole
from nmt.cli.parsers.parser import option_name
from nmt.cli.parsers.serve import COUNTS, PROGRAM, parser
from nmt.decoding.text.glossary import Glossary, read_glossary
from nmt.errors import Checking, UserError, caught, checked
from nmt.ops.memory import enough_memory
from nmt.serving.limits import Limits, Pair

MEMORY = "serve fewer models, or on another machine"
PORTS = {"http": 80, "https": 443}  # which browsers leave out of an origin
_HOST = r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]"
_ORIGIN = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST})(?::(?P<port>[0-9]{{1,5}}))?")
_PAIRED = re.compile(r"(?:(\w+)-(\w+)|([^\s=:/]+):([^\s=:/]+))=(.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to serve, to whom, and where."""

    models: Models
    pairs: Sequence[Pair | None]  # of each model, where they are not those of its configuration
    glossaries: Sequence[tuple[Pair | None, Glossary]]  # and of which pair; None: of the only one
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
    return run(PROGRAM, lambda: _serve(checked(_read_request(parser().parse_args(arguments)))))


def _read_request(options: argparse.Namespace) -> Checking[Request]:
    values = vars(options)
    how = yield from read_how(values)
    yield from missing({"--model [PAIR=]PATH": (options.model, "a model file, or the folder of a run")})
    pairs, paths = [], []
    for text in options.model or ():
        pair, path = _paired(text)
        pairs.append(pair)
        paths.append(path)
    computing = {"device": options.device, "precision": options.precision, "ensemble": None}
    models = yield from read_models({"model": paths or None, **computing})
    glossaries = yield from _read_glossaries(options.glossary or (), models=len(paths))
    limits = yield from _read_limits(values)
    keys = None
    if options.api_keys is not None:
        keys = yield from read_whole("--api-keys", options.api_keys, _read_keys)
    origins = []
    for text in options.cors or ():
        origins.append((yield from _read_origin(text)))
    port = yield from _read_port(options.port)
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


def _read_glossaries(texts: Sequence[str], *, models: int) -> Checking[list[tuple[Pair | None, Glossary]]]:
    glossaries = []
    for text in texts:
        pair, path = _paired(text)
        if pair is None and models > 1:
            yield f"--glossary {path}: say for which of the models it is, as in --glossary en-de={path}"
        # A term that a line cannot have is not told: the log would say what somebody has sent.
        glossary = yield from caught(partial(read_glossary, path, as_written=False, warn=lambda why: None), None)
        if glossary is not None:
            glossaries.append((pair, glossary))
    return glossaries


def _read_limits(values: Mapping[str, Any]) -> Checking[Limits]:
    limits: dict[str, Any] = {}
    for name in (*COUNTS, "per_minute"):
        option = option_name(f"max_{name}")
        limits[name] = yield from read_count(option, values[f"max_{name}"], least=1)
    if (text := values["max_seconds"]) is not None:
        seconds = number_in(text)
        if seconds is not None and 0 < seconds < MOST:
            limits["seconds"] = float(seconds)
        else:
            yield f"--max-seconds {shlex.quote(text)}: allowed: a number, more than 0"
    return Limits(**{name: value for name, value in limits.items() if value is not None})


def _read_origin(text: str) -> Checking[str]:
    """Read an origin, or *, which is all of them."""
    origin = text if text == "*" else _as_sent(text)
    if origin is None:
        yield (
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
    from nmt.serving.models import Served, loaded, sentence_rules, tell_of_impossible_terms
    from nmt.serving.server import listening, serve

    with closing(listening(request.host, request.port)) as opened:  # told before models are loaded, which takes longer
        translators = loaded(
            list(zip(request.models.paths, request.pairs, strict=True)),
            device=request.models.device or "cpu",
            precision=request.models.precision,
        )
        rules = {} if request.whole_lines else sentence_rules(translators, _warn)
        glossaries = checked(_glossaries(request, list(translators)))
        served = Served(translators, TranslationOptions(**request.how), rules, glossaries)
        served.check()
        tell_of_impossible_terms(translators, glossaries, _warn)
        log = _say if request.log_requests else None
        service = Service(served, limits=request.limits, keys=request.keys, log=log)
        serve(application(service, origins=request.origins), service, opened, program=PROGRAM)


def _glossaries(request: Request, pairs: Sequence[Pair]) -> Checking[dict[Pair, Glossary]]:
    """The glossary of each pair that has one."""
    glossaries: dict[Pair, Glossary] = {}
    for named, glossary in request.glossaries:
        pair = pairs[0] if named is None else named.among(pairs) or named
        if pair not in pairs:
            yield f"--glossary: no model translates {pair}"
        if pair in glossaries:
            yield f"--glossary: there are several for {pair}; put all terms into one file"
        glossaries[pair] = glossary
    return glossaries


def _warn(why: str) -> None:
    _say(f"{PROGRAM}: {why}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
