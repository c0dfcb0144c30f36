"""Fixtures and helpers that every test may use."""

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real corpora beside the repository; without it the test is skipped."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real corpora in ../shared/data, beside the repository")
    return folder


def data_section(corpus: Path) -> dict[str, Any]:
    """The configuration's section `data` for the files train and valid, .en and .de, of a folder."""
    train, valid = (
        {"source": str(corpus / f"{name}.en"), "target": str(corpus / f"{name}.de")} for name in ("train", "valid")
    )
    return {"source_language": "en", "target_language": "de", "train": [train], "valid": valid}
