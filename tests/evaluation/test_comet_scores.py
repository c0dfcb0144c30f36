"""COMET by a stand-in for its package: what that is asked, that nothing is fetched, what is said if it is missing."""

import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.evaluation.comet_scores import Comet, check_comet
from nmt.evaluation.metrics import counted
from tests.comet_stand_in import install


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The stand-in can be imported, and there is a model file for it."""
    with install(tmp_path, monkeypatch) as model:
        yield model


def test_scores_are_the_packages_times_100(package: Path) -> None:
    """The stand-in scores the share of the reference's words that the translation has. The package is told to stay
    offline before it is imported, and it may not chatter."""
    level = logging.getLogger().level
    comet = Comet(package, ["Ja.", "Nein!"], on_gpu=False)
    scored = counted(comet, ["yes it is", "no"], [["yes it was so", "no"], ["others", "do not count"]])
    assert scored.sentences(2) == [50.0, 100.0]
    assert scored.score == 75.0
    assert scored.of([1]) == 100.0
    asked = sys.modules["comet"].asked
    assert (asked["path"], asked["local_files_only"], asked["gpus"]) == (str(package), True, 0)
    assert asked["samples"][0] == {"src": "Ja.", "mt": "yes it is", "ref": "yes it was so"}
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    assert str(comet.get_signature()) == f"nrefs:1|model:model.ckpt|sha256:{digest[:16]}|version:2.2.7"
    assert logging.getLogger().level == level
    assert sys.modules["comet"].environment == {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_a_file_that_the_package_cannot_load(package: Path) -> None:
    package.write_bytes(b"damaged")
    with pytest.raises(UserError, match=r"model\.ckpt: COMET cannot load it \(damaged file"):
        Comet(package, [], on_gpu=False)


def test_a_package_that_is_not_installed_and_a_file_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(UserError) as caught:
        check_comet(tmp_path / "missing.ckpt")
    installed, missing = caught.value.messages
    assert installed.startswith("--comet: unbabel-comet is not installed: pip install 'nmt-toolkit[comet]'")
    assert missing.startswith(f"--comet {tmp_path / 'missing.ckpt'}: no such file")
