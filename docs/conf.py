"""The documentation as a site, by Sphinx: `make docs` builds it into build/site, and every warning is an error.

Its pages are README.md and the other documents as GitHub shows them, the API from the docstrings, and the notebooks.
Three things are done here that Sphinx does not do: docstrings, which are plain text with equations, become
reStructuredText; notebooks become Markdown; and a link to a file of the repository that is no page, such as a
configuration or a test, leads to a page with that file, or to the class in the API that it names.
"""

import gc
import inspect
import json
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

import nmt

ROOT = Path(__file__).resolve().parent.parent
gc.disable()  # nearly all that a build makes stays to its end: looking for garbage took a third of the time

project = "nmt-toolkit"
author = "the nmt-toolkit authors"
version = release = nmt.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.linkcode"]

# The source is the whole repository, so that links between documents are what they are on GitHub.
root_doc = "README"
include_patterns = ["*.md", "data/README.md", "research/*.md", "docs/*.md", "docs/api/*.rst", "notebooks/*"]
exclude_patterns = ["**/.*", ".venv", "build", "runs", "data/*/**", "nmt", "tests", "notebooks/runs"]
CHAPTERS = {
    "Learn": [
        "docs/tutorial",
        "notebooks/README",
        "notebooks/1_attention_step_by_step",
        "notebooks/2_learning_to_align",
        "notebooks/3_comparing_models",
        "docs/papers",
        "docs/models",
    ],
    "Use": [
        "docs/training",
        "docs/fine-tuning",
        "docs/translating",
        "docs/evaluation",
        "docs/deploying",
        "docs/runtime",
        "docs/serving",
        "docs/scale",
        "docs/troubleshooting",
    ],
    "Look up": ["docs/configuration", "docs/api/index", "data/README", "CHANGELOG"],
    "Results": [
        "docs/performance",
        "docs/reliability",
        "docs/security",
        "research/README",
        "research/results",
        "research/little_text",
        "research/alignment",
        "research/attention_table",
        "research/attention_table_long",
        "research/papers_and_code",
        "research/speed",
        "research/reliability",
    ],
    "Contribute": ["CONTRIBUTING", "docs/adding-attention", "SECURITY"],
}
"""The navigation; a document that is missing here comes last, under "More"."""

myst_heading_anchors = 6
nitpick_ignore_regex = [("py:.*", ".*")]  # types of PyTorch and others, whose documentation is not read here
suppress_warnings = ["myst.header"]  # cells of a notebook may begin at any level

autoclass_content = "both"
autodoc_inherit_docstrings = False  # not those of torch.nn.Module
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
maximum_signature_line_length = 100
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"nmt-toolkit {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
highlight_language = "text"  # of blocks that name none: commands and what they print
pygments_style = "friendly"
pygments_dark_style = "native"


def setup(app: Sphinx) -> None:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", add_navigation)
    app.connect("autodoc-process-docstring", as_restructured_text)
    app.connect("doctree-read", link_files, priority=100)  # before Sphinx copies them as downloads
    app.connect("missing-reference", link_to_file)
    app.connect("html-collect-pages", pages_of_files)
    app.connect("html-page-context", share_navigation, priority=100)  # before the theme makes it
    app.connect("build-finished", write_index)


def add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    if name == root_doc:
        listed = {root_doc}.union(*CHAPTERS.values())
        others = sorted(name for name in app.env.found_docs - listed if not name.startswith("docs/api/"))
        for caption, documents in [*CHAPTERS.items(), *([("More", others)] if others else [])]:
            source[0] += "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *documents, "```", ""])


def write_index(app: Sphinx, exception: Exception | None) -> None:
    """The front page under the name by which web servers look for it."""
    if exception is None and isinstance(app.builder, StandaloneHTMLBuilder):
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


# ------------------------------------------------------------------------------------------------------- docstrings


def as_restructured_text(app: Sphinx, what: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """In the place of `lines`: `names` in backticks as code, what is indented as it stands, all other marks as text."""
    text = "\n".join(lines).strip("\n")
    if what == "class" and re.match(r"Create (new instance of|a new model by parsing) ", text):
        text = ""  # what Python and pydantic say of the constructor of any tuple and any section
    if what == "attribute" and (not text or text.startswith("Alias for field number")):
        text = comment_of_field(name)
    result: list[str] = []
    for block in re.split(r"\n[ \t]*\n", text):
        if block.startswith("    "):
            result += ["::", "", *block.split("\n"), ""]
        elif re.match(r"Raises:\n", block):  # Google's form: a name, a colon, an explanation
            result += ["Raises:", "", *(f"  {escaped(line)}" for line in block.split("\n")[1:]), ""]
        else:
            result += [*escaped(block).split("\n"), ""]
    lines[:] = result


def escaped(text: str) -> str:
    """Text whose only mark is a pair of backticks around code."""
    parts = re.split(r"(`+)(.+?)\1", text, flags=re.DOTALL)
    plain, code = parts[::3], [*(re.sub(r"\s+", " ", part) for part in parts[2::3]), None]
    pairs = zip(plain, code, strict=True)
    return "".join(re.sub(r"([\\*_|`])", r"\\\1", one) + (f"``{two}``\\ " if two else "") for one, two in pairs)


def comment_of_field(name: str) -> str:
    """The comment behind the field `name`, such as nmt.models.memory.Memory.values, of a tuple or a dataclass."""
    module, kind, field = name.rsplit(".", 2)
    source = inspect.getsource(getattr(import_module(module), kind))
    comment = re.search(rf"^ +{re.escape(field)}: [^#\n]*# (.*)$", source, re.MULTILINE)
    return comment.group(1) if comment else ""


# -------------------------------------------------------------------------------------------------------- notebooks


class NotebookParser(MystParser):
    """Reads a notebook as Markdown: its texts, its code, and what the code wrote and drew when it was last run."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        cells = json.loads(inputstring)["cells"]
        super().parse("\n\n".join(block for cell in cells for block in markdown_of(cell)), document)


def markdown_of(cell: dict[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    yield f"```python\n{text}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            yield f"![what the code above draws](data:image/png;base64,{''.join(data['image/png'].split())})"
        elif plain := "".join(output.get("text", data.get("text/plain", ""))).strip("\n"):
            yield f"````text\n{plain}\n````"


# ------------------------------------------------------------------------------------------------ files as pages


def link_files(app: Sphinx, document: nodes.document) -> None:
    """Turn links to files and folders of the repository that are no documents into links to pages with them."""
    here = Path(app.env.doc2path(app.env.docname)).parent
    for link in [*document.findall(addnodes.download_reference), *document.findall(addnodes.pending_xref)]:
        if link.get("reftype") != "myst" or link.get("refdomain"):
            continue
        path = (here / link["reftarget"]).resolve()
        if not path.exists() or not path.is_relative_to(ROOT) or path.suffix == ".png":
            continue
        place = path.relative_to(ROOT).as_posix()
        app.env.metadata[app.env.docname].setdefault("files", []).append(place)
        name = link.astext()
        target = f"{place.removesuffix('.py').replace('/', '.')}.{name}" if path.suffix == ".py" else place
        reference = addnodes.pending_xref(
            "", *link.children, refdomain="py", reftype="obj", reftarget=target, refdoc=app.env.docname, place=place,
            definition=name, refwarn=True, refexplicit=True,
        )  # fmt: skip
        link.replace_self(reference)


def link_to_file(app: Sphinx, env: Any, node: addnodes.pending_xref, children: nodes.Node) -> nodes.reference | None:
    """Where the API does not have what a link names: the page of the file, at the line that defines it."""
    if "place" not in node:
        return None
    address = app.builder.get_relative_uri(node["refdoc"], f"files/{node['place']}")
    path = ROOT / node["place"]
    if path.is_file():
        defined = re.compile(rf"^\s*(?:class |def )?{re.escape(node['definition'])}\b")
        lines = path.read_text(encoding="utf-8").split("\n")
        address += next((f"#line-{number}" for number, line in enumerate(lines, 1) if defined.match(line)), "")
    return nodes.reference("", "", children, internal=True, refuri=address)


SHOWN: set[str] = set()
"""Files with something in the API."""


def linkcode_resolve(domain: str, information: dict[str, str]) -> str | None:
    """The page and the line of the code of a thing in the API, all of whose pages are in docs/api."""
    thing: Any = import_module(information["module"])
    for name in information["fullname"].split("."):
        thing = getattr(thing, name, None)
    try:
        path, (_, line) = Path(inspect.getsourcefile(inspect.unwrap(thing)) or ""), inspect.getsourcelines(thing)
    except (TypeError, ValueError, OSError):  # a field
        return None
    if not path.is_relative_to(ROOT / "nmt"):
        return None
    place = path.relative_to(ROOT).as_posix()
    SHOWN.add(place)
    return f"../../files/{place}.html#line-{line}"


def pages_of_files(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file and folder that is linked, for each file in such a folder, and for those of the API."""
    assert isinstance(app.builder, StandaloneHTMLBuilder)
    linked = SHOWN.union(*(metadata.get("files", ()) for metadata in app.env.metadata.values()))
    listed = {
        place: sorted(path for path in (ROOT / place).iterdir() if path.is_file() and path.suffix in (".py", ".yaml"))
        for place in linked
        if (ROOT / place).is_dir()
    }
    files = linked - listed.keys() | {path.relative_to(ROOT).as_posix() for paths in listed.values() for path in paths}
    for place in sorted(files):
        text = (ROOT / place).read_text(encoding="utf-8")
        try:
            language = get_lexer_for_filename(place).aliases[0]
        except ClassNotFound:
            language = "text"
        body = app.builder.highlighter.highlight_block(text, language, linenos="inline", lineanchors="line")
        yield f"files/{place}", {"title": place, "body": f"<h1>{place}</h1>{body}"}, "page.html"
    for place, paths in listed.items():
        name = place.rsplit("/", 1)[-1]
        items = "".join(f'<li><a href="{name}/{path.name}.html">{path.name}</a></li>' for path in paths)
        yield f"files/{place}", {"title": place, "body": f"<h1>{place}</h1><ul>{items}</ul>"}, "page.html"


NAVIGATION: dict[tuple[Any, ...], str] = {}
"""The navigation of all pages of files as deep as one another, which takes longer than the rest of such a page."""


def share_navigation(app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document) -> None:
    make = context.get("toctree")
    if page.startswith("files/") and make is not None:

        def toctree(**options: Any) -> str:
            depth = page.count("/"), *sorted(options.items())
            if depth not in NAVIGATION:
                NAVIGATION[depth] = make(**options)
            return NAVIGATION[depth]

        context["toctree"] = toctree
