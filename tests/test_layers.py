"""The layers of the package: imports point down only, and folders on one line never import each other.

The sources are read, not run, so imports inside functions and under TYPE_CHECKING count as well.

    python -m tests.test_layers     the longest files, where a second idea may have moved in; no length is a failure
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "nmt"

LAYERS = (  # from the bottom up; a name stands for a folder or a single module of nmt/
    ("errors", "examples", "files", "other_names", "signals", "symbols"),
    ("config", "devices", "pharaoh", "processes", "tensor_file", "text_form"),
    ("protected",),
    ("data", "evaluation", "ops"),
    ("models",),
    ("decoding", "training"),
    ("documents", "experiment"),
    ("serving", "web"),
    ("cli",),
    ("__main__",),
)
HEIGHTS = {name: height for height, layer in enumerate(LAYERS) for name in layer}
OUTSIDE = {"benchmarks", "scripts", "tests"}


class Import(NamedTuple):
    file: Path
    line: int
    module: str  # absolute and dotted, such as nmt.data.corpus
    late: bool = False  # inside a function or under TYPE_CHECKING, so that importing the file does not run it


def sources(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def parse(file: Path) -> ast.Module:
    return parsed(file.read_text(encoding="utf-8"), str(file))


@cache
def parsed(text: str, name: str) -> ast.Module:
    return ast.parse(text, filename=name)


def station(package: Path, file: Path) -> str:
    """The folder or single module that a file belongs to: data for nmt/data/corpus.py, __init__ for nmt/__init__.py."""
    return file.relative_to(package).parts[0].removesuffix(".py")


def imports(package: Path, file: Path) -> Iterator[Import]:
    """Every import of a file. `from a import b` is read as a.b: b may be a module, and a name of a does no harm so."""
    folder = file.relative_to(package.parent).parent.parts
    for node, late in statements(parse(file)):
        if isinstance(node, ast.Import):
            yield from (Import(file, node.lineno, name.name, late) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1] if node.level else ()
            start = (*above, node.module) if node.module else above
            modules = (".".join((*start, name.name)) for name in node.names)
            yield from (Import(file, node.lineno, module, late) for module in modules)


def statements(node: ast.AST, *, late: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """What stands below a node, without expressions, which import nothing; and whether importing the file runs it."""
    for below in ast.iter_child_nodes(node):
        if not isinstance(below, ast.expr):
            yield below, late
            yield from statements(below, late=late or _is_late(below))


def _is_late(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def objection(package: Path, statement: Import) -> str | None:
    """Why an import is not allowed, or None."""
    importer = station(package, statement.file)
    first, *rest = statement.module.split(".")
    if first in OUTSIDE:
        return f"{statement.module} is not part of the package"
    if first != package.name or not rest:
        return None
    imported = rest[0]
    if imported == importer or (imported not in HEIGHTS and len(rest) == 1):
        return None  # the same folder; or a name in nmt/__init__.py, such as __version__
    if imported not in HEIGHTS:
        return f"{statement.module}: {imported} has no place in LAYERS"
    if importer == "__init__":
        if statement.late:
            return None
        return f"{statement.module}: nmt/__init__.py runs before everything else and imports nothing of the package"
    if importer in HEIGHTS and HEIGHTS[imported] >= HEIGHTS[importer]:
        where = "above" if HEIGHTS[imported] > HEIGHTS[importer] else "on the same line as"
        return f"{statement.module}: {imported} stands {where} {importer}"
    return None


def violations(package: Path) -> list[str]:
    """One line for every import that is not allowed, and for every file without a place in LAYERS."""
    lines = []
    for file in sources(package):
        shown = file.relative_to(package.parent).as_posix()
        if station(package, file) not in {*HEIGHTS, "__init__"}:
            lines.append(f"{shown}: {station(package, file)} has no place in LAYERS")
        for statement in imports(package, file):
            if (reason := objection(package, statement)) is not None:
                lines.append(f"{shown}:{statement.line}: imports {reason}")
    return lines


def report(lines: list[str]) -> str:
    return "\n" + "\n".join(lines)


def test_imports_point_down_only() -> None:
    lines = violations(PACKAGE)
    assert not lines, report(lines)


def test_text_knows_no_models_and_no_searches() -> None:
    """Of `decoding`, `text/` imports itself and what phrases are to a search; see `tests/decoding/search/test_loop.py`
    for what the search imports."""
    allowed = ("nmt.decoding.text.", "nmt.decoding.search.phrases.")
    modules = {
        statement.module for file in sources(PACKAGE / "decoding" / "text") for statement in imports(PACKAGE, file)
    }
    others = {name for name in modules if name.startswith(("nmt.models.", "nmt.decoding."))}
    assert {name for name in others if not name.startswith(allowed)} == set()


def test_every_place_in_the_layers_is_taken() -> None:
    assert {station(PACKAGE, file) for file in sources(PACKAGE)} - {"__init__"} == set(HEIGHTS)


def test_nothing_is_imported_by_a_name_in_a_string() -> None:
    """Such an import would escape this test, and the reader. The commands stand above all others anyway."""
    lines = [
        f"{file.relative_to(ROOT).as_posix()}:{node.lineno}"
        for file in sources(PACKAGE)
        if file != PACKAGE / "cli" / "commands.py"
        for node in ast.walk(parse(file))
        if isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) in {"import_module", "__import__"}
    ]
    assert not lines, report(lines)


def test_every_module_says_what_it_does() -> None:
    lines = [file.relative_to(ROOT).as_posix() for file in sources(PACKAGE) if not ast.get_docstring(parse(file))]
    assert not lines, report(lines)


# ------------------------------------------------------------------------------------------------- the checker itself


def make_package(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / "nmt" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder / "nmt"


@pytest.mark.parametrize(
    ("file", "line", "expected"),
    [
        ("data/a.py", "import nmt.models.encoder", "imports nmt.models.encoder: models stands above data"),
        ("data/a.py", "from nmt import models", "imports nmt.models: models stands above data"),
        ("data/a.py", "from .. import models", "imports nmt.models: models stands above data"),
        ("data/a.py", "from ..models import x", "imports nmt.models.x: models stands above data"),
        ("data/__init__.py", "from ..models import x", "imports nmt.models.x: models stands above data"),
        ("data/deep/a.py", "from ...models import x", "imports nmt.models.x: models stands above data"),
        ("data/a.py", "from nmt.ops.masks import x", "imports nmt.ops.masks.x: ops stands on the same line as data"),
        ("training/a.py", "import nmt.decoding", "imports nmt.decoding: decoding stands on the same line as training"),
        ("symbols.py", "from .errors import x", "imports nmt.errors.x: errors stands on the same line as symbols"),
        ("errors.py", "from nmt.config import x", "imports nmt.config.x: config stands above errors"),
        ("data/a.py", "from nmt.utils.text import x", "imports nmt.utils.text.x: utils has no place in LAYERS"),
        ("data/a.py", "import scripts.demo", "imports scripts.demo is not part of the package"),
        ("data/a.py", "from tests import conftest", "imports tests.conftest is not part of the package"),
        (
            "__init__.py",
            "from nmt.decoding import x",
            "imports nmt.decoding.x: nmt/__init__.py runs before everything else and imports nothing of the package",
        ),
    ],
)
def test_forbidden_import(tmp_path: Path, file: str, line: str, expected: str) -> None:
    assert violations(make_package(tmp_path, {file: f"import torch\n{line}\n"})) == [f"nmt/{file}:2: {expected}"]


def test_imports_inside_functions_and_for_types_count(tmp_path: Path) -> None:
    text = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from nmt.training.trainer import Trainer\n"
        "def f():\n"
        "    import nmt.cli.train\n"
    )
    assert violations(make_package(tmp_path, {"ops/a.py": text})) == [
        "nmt/ops/a.py:3: imports nmt.training.trainer.Trainer: training stands above ops",
        "nmt/ops/a.py:5: imports nmt.cli.train: cli stands above ops",
    ]


def test_the_package_itself_may_import_late(tmp_path: Path) -> None:
    text = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from nmt.decoding.translator import Translator\n"
        "else:\n"
        "    from nmt.decoding import beam\n"
        "def __getattr__(name):\n"
        "    from nmt.decoding.translator import Translator\n"
    )
    both = text.replace("else:\n    from nmt.decoding import beam\n", "")
    assert violations(make_package(tmp_path, {"__init__.py": both})) == []
    late = "imports nmt.decoding.beam: nmt/__init__.py runs before everything else and imports nothing of the package"
    assert f"nmt/__init__.py:5: {late}" in violations(make_package(tmp_path, {"__init__.py": text}))


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = "import sys, nmt; sys.exit(bool({'torch', 'numpy', 'pydantic', 'sentencepiece'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_module_without_a_layer_is_found(tmp_path: Path) -> None:
    assert violations(make_package(tmp_path, {"utils.py": "", "helpers/a.py": ""})) == [
        "nmt/helpers/a.py: helpers has no place in LAYERS",
        "nmt/utils.py: utils has no place in LAYERS",
    ]


if __name__ == "__main__":
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in sources(PACKAGE)}
    for longest in sorted(lengths, key=lambda file: -lengths[file])[:20]:
        print(f"{lengths[longest]:5} {longest.relative_to(ROOT).as_posix()}")
