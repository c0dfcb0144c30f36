"""Fixtures and helpers that every test may use."""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure no coverage in slow proofs: they take long enough."""
    stopped: list[coverage.Coverage] = []  # pytest-cov has two of them in a worker of pytest-xdist
    while item.get_closest_marker("slow") and (measured := coverage.Coverage.current()):
        measured.stop()
        stopped.append(measured)
    try:
        return (yield)
    finally:
        for measured in reversed(stopped):
            measured.start()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real corpora beside the repository; without it the test is skipped."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real corpora in ../shared/data, beside the repository")
    return folder


def make_synthetic_corpus(folder: Path, **options: int) -> Path:
    """Let scripts/make_synthetic_corpus.py write into `folder`, with options such as train=600; returns the folder."""
    script = ROOT / "scripts" / "make_synthetic_corpus.py"
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    subprocess.run([sys.executable, script, "--output", folder, *words], check=True, stdout=subprocess.DEVNULL)
    return folder


def data_section(corpus: Path) -> dict[str, Any]:
    """The configuration's section `data` for the files train and valid, .en and .de, of a folder."""
    train, valid = (
        {"source": str(corpus / f"{name}.en"), "target": str(corpus / f"{name}.de")} for name in ("train", "valid")
    )
    return {"source_language": "en", "target_language": "de", "train": [train], "valid": valid}
