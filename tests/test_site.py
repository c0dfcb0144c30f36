"""The documentation as a site: it is built as `make docs` builds it, without a warning, and leads where it should."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="needs the extra docs: pip install '.[docs]'")
    (command,) = re.findall(r"-m (sphinx .*) -d build/doctrees \. build/site$", (ROOT / "Makefile").read_text(), re.M)
    folder = tmp_path_factory.mktemp("site")
    arguments = [*shlex.split(command), "-d", folder / "doctrees", ROOT, folder / "site"]
    built = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return folder / "site"


@pytest.mark.slow
def test_what_is_linked_is_there(site: Path) -> None:
    """Every link of every page leads to a file, and to a place in it where it names one."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    places = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]*)"', text):
            if re.match(r"\w+:|//", target) or path.name in ("genindex.html", "search.html"):
                continue
            name, _, place = target.partition("#")
            there = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not there.exists() or (place and there in places and place not in places[there]):
                broken.append(f"{path.relative_to(site)}: {target}")
    assert broken == []


@pytest.mark.slow
def test_a_class_in_a_document_leads_to_the_api_and_a_test_to_its_lines(site: Path) -> None:
    papers = (site / "docs" / "papers.html").read_text(encoding="utf-8")
    assert 'href="api/models.html#nmt.models.scores.DotScore"' in papers
    assert re.search(r'href="\.\./files/tests/models/test_attention\.py\.html#line-\d+"', papers)
    api = (site / "docs" / "api" / "models.html").read_text(encoding="utf-8")
    assert re.search(r'href="\.\./\.\./files/nmt/models/scores\.py\.html#line-\d+"', api)


@pytest.mark.slow
def test_docstrings_are_shown_as_they_are_written(site: Path) -> None:
    page = (site / "docs" / "api" / "models.html").read_text(encoding="utf-8")
    assert "p_t = (S - 1) · σ(v_pᵀ tanh(W_p h_t) / √d)" in re.sub(r"<[^>]+>", "", page)
    assert "the encoder’s annotations" in page or "the encoder's annotations" in page  # a comment behind a field
