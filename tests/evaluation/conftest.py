"""What tests of pictures share: the figures that are saved."""

from typing import Any

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Collects every figure that is saved, without preventing it from being saved."""
    saved: list[Figure] = []
    save = Figure.savefig

    def savefig(self: Figure, *arguments: Any, **options: Any) -> None:
        saved.append(self)
        save(self, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return saved
