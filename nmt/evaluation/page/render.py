"""The report as HTML, by a Jinja2 template that escapes whatever it is given.

The page is one file: style, script and data are in it, and its Content-Security-Policy allows that style and that
script, by their hashes, and nothing else; nothing can be loaded or sent.
"""

import base64
import hashlib
import math
from itertools import chain
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nmt import __version__
from nmt.errors import counted
from nmt.evaluation.page.contents import Contents, Group
from nmt.evaluation.tables import equation_of_p, has_intervals, legend
from nmt.symbols import END, PIECES

FOLDER = Path(__file__).parent
COMMON, STYLE, SCRIPT = FOLDER.parents[1] / "pages.css", FOLDER / "style.css", FOLDER / "script.js"


def page(contents: Contents) -> str:
    """The whole page. Texts may be anything; none of them becomes markup, style or script."""
    environment = Environment(
        autoescape=True, loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, keep_trailing_newline=True
    )
    # As few bytes as JSON can be, for any script; Jinja2 escapes what HTML would read.
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    common, style, script = (path.read_text(encoding="utf-8") for path in (COMMON, STYLE, SCRIPT))
    style = f"{common}{style}"
    comparison = contents.comparison
    bars = [[_bars(contents, group) for group in grouping.groups] for grouping in contents.groupings]
    highest = max((score for groups in bars for by_metric in groups for score in chain(*by_metric.values())), default=0)
    text = environment.get_template("report.html").render(
        **vars(contents),
        bars=bars,
        best={name: comparison.best(name) for name in comparison.measures},
        scale=min(100, 10 * math.ceil((highest + 0.1) / 10)),
        title=f"Translation report: {', '.join(candidate.name for candidate in comparison.systems)}",
        legend=legend(comparison) if len(comparison.systems) > 1 or has_intervals(comparison) else "",
        equation_of_p=equation_of_p,
        policy=policy(style, script),
        style=style,
        script=script,
        version=__version__,
        end=PIECES[END],
        counted=counted,
    )
    return text.encode("utf-8", "replace").decode("utf-8")  # a name may hold half of a surrogate pair


def _bars(contents: Contents, group: Group) -> dict[str, list[float]]:
    """The scores of a group by metric, for each system."""
    return {name: [one.of(group.indices) for one in systems] for name, systems in contents.scored.items()}


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy that allows this style and this script and nothing else."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    allowed = [f"style-src 'sha256-{hashes[0]}'", f"script-src 'sha256-{hashes[1]}'"]
    return "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"])
