"""The options of nmt-serve."""

from pathlib import Path

from nmt.cli.parsers.parser import Parser
from nmt.cli.parsers.shared import (
    add_device_option,
    add_precision_option,
    add_search_options,
    add_unknown_word_options,
)
from nmt.serving.limits import Limits

PROGRAM = "nmt-serve"
COUNTS = {  # options of limits: their unit, and what they limit
    "characters": ("N", "characters of a text"),
    "texts": ("N", "texts of a request"),
    "body": ("BYTES", "bytes of a request"),
    "waiting": ("N", "requests that wait for their translation; one more is refused with status 503"),
}


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Serve translations over HTTP: LibreTranslate's API (POST /translate, GET /languages), metrics, "
        "and a page to type in at /. Requests that come at once are translated together.",
        epilog="Ctrl-C or SIGTERM ends it after the requests that it holds are answered; a second one, at once. "
        "docs/serving.md has the API, and what to know before it is opened to others.",
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
