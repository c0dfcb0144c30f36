"""What others join by says the same as the project: workflow, hooks, citation, and the versions of linters."""

import re
from typing import Any

import yaml

from nmt import __version__
from tests.conftest import ROOT

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_workflows_run_what_ci_runs_on_every_supported_python() -> None:
    (job,) = read(".github/workflows/check.yml")["jobs"].values()
    (fast,) = read(".github/workflows/systems.yml")["jobs"].values()
    assert fast["strategy"]["matrix"]["python"] == job["strategy"]["matrix"]["python"]
    assert [system.partition("-")[0] for system in fast["strategy"]["matrix"]["system"]] == [
        "ubuntu",
        "windows",
        "macos",
    ]
    supported = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    assert job["strategy"]["matrix"]["python"] == supported
    least, beyond = re.findall(r'^requires-python = ">=(3\.\d+),<3\.(\d+)"', PROJECT, re.MULTILINE)[0]
    assert (supported[0], supported[-1]) == (least, f"3.{int(beyond) - 1}")
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    (python,) = (step["with"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
    assert python["cache"] == "pip"
    assert all((ROOT / file).is_file() for file in python["cache-dependency-path"].split())


def test_hooks_are_the_linters_of_make_check() -> None:
    """`make check` begins with them, so that they have its versions, which constraints.txt alone has."""
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (linters,) = re.findall(r"^check: (.*) ##", makefile, re.MULTILINE)
    assert [hook["entry"] for hook in repository["hooks"]] == [f"make {target}" for target in linters.split()]
    assert [hook["pass_filenames"] for hook in repository["hooks"]] == [False, False]
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert all(re.search(rf"^{linter}==", constraints, re.MULTILINE) for linter in ("ruff", "mypy"))


def test_the_citation_is_of_this_project() -> None:
    """The schema's own checks are cffconvert's, which is not needed for a few fixed keys."""
    citation = read("CITATION.cff")
    (name,) = re.findall(r'^name = "(.*)"', PROJECT, re.MULTILINE)
    (license_,) = re.findall(r'^license = "(.*)"', PROJECT, re.MULTILINE)
    (author,) = re.findall(r'^authors = \[\{ name = "(.*)" \}\]', PROJECT, re.MULTILINE)
    assert (citation["title"], citation["version"], citation["license"]) == (name, __version__, license_)
    assert citation["authors"] == [{"name": author}]
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("\n  ", " ")
    for reference in citation["references"]:
        assert reference["title"] in readme
        assert reference["url"] in readme
    (address,) = re.findall(r'^Source = "(.*)"', PROJECT, re.MULTILINE) or [None]
    assert citation.get("repository-code") == address, "the public address is in both, or in neither"
