"""The report as HTML, by a Jinja2 template that escapes whatever it is given.

The page is one file: style, script and data are in it, and its Content-Security-Policy allows that style and that
script, by their hashes, and nothing else; nothing can be loaded or sent.
"""

import base64
import hashlib
import json
import math
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nmt import __version__
from nmt.errors import counted
from nmt.evaluation.page.contents import Contents
from nmt.evaluation.tables import equation_of_p, meaning_of_differences, meaning_of_p
from nmt.symbols import END, PIECES

FOLDER = Path(__file__).parent
COMMON, STYLE, SCRIPT = FOLDER.parents[1] / "pages.css", FOLDER / "style.css", FOLDER / "script.js"


def page(contents: Contents) -> str:
    """The whole page. Texts may be anything; none of them becomes markup, style or script."""
    environment = Environment(
        autoescape=True, loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.policies["json.dumps_function"] = _dumps
    common, style, script = (path.read_text(encoding="utf-8") for path in (COMMON, STYLE, SCRIPT))
    style = f"{common}{style}"
    scores = [
        score
        for grouping in contents.groupings
        for group in grouping.groups
        for of_metric in group.scores.values()
        for score in of_metric
    ]
    comparison = contents.comparison
    text = environment.get_template("report.html").render(
        comparison=comparison,
        letters=contents.letters,
        titles=contents.titles,
        groupings=contents.groupings,
        habits=contents.habits,
        notes=contents.notes,
        data=contents.data,
        best={name: () if comparison.runs else comparison.best(name) for name in comparison.measures},
        best_means={name: comparison.best_mean(name) for name in comparison.measures},
        intervals=any(score.interval for candidate in comparison.systems for score in candidate.scores.values()),
        scale=min(100, 10 * math.ceil((max(scores, default=0) + 0.1) / 10)),
        title=f"Translation report: {', '.join(candidate.name for candidate in comparison.systems)}",
        meaning=" ".join(
            [
                *meaning_of_p(comparison.significance, baseline=contents.letters[0]),
                *meaning_of_differences(comparison.runs),
            ]
        ),
        equation_of_p=equation_of_p,
        policy=policy(style, script),
        style=style,
        script=script,
        version=__version__,
        end=PIECES[END],
        counted=counted,
    )
    return text.encode("utf-8", "replace").decode("utf-8")  # a name may hold half of a surrogate pair


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy that allows this style and this script and nothing else."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    allowed = [f"style-src 'sha256-{hashes[0]}'", f"script-src 'sha256-{hashes[1]}'"]
    return "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"])


def _dumps(value: object, **_: object) -> str:
    """As few bytes as JSON can be, for any script; Jinja2 escapes what HTML would read."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
