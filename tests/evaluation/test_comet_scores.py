"""COMET by a stand-in for its package: what that is asked, that nothing is fetched, what is said if it is missing."""

import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.evaluation.comet_scores import check_comet, load_comet
from tests.comet_stand_in import install


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The stand-in can be imported, and there is a model file for it."""
    with install(tmp_path, monkeypatch) as model:
        yield model


def test_scores_are_the_packages_times_100(package: Path) -> None:
    """The stand-in scores the share of the reference's words that the translation has."""
    comet = load_comet(package, on_gpu=False)
    scores = comet.scores(["Ja.", "Nein!"], ["yes it is", "no"], ["yes it was so", "no"])
    assert scores == [50.0, 100.0]
    asked = sys.modules["comet"].asked
    assert asked["path"] == str(package)
    assert asked["local_files_only"] is True
    assert asked["samples"][0] == {"src": "Ja.", "mt": "yes it is", "ref": "yes it was so"}
    assert asked["gpus"] == 0
    assert (comet.measure.title, comet.measure.better) == ("COMET", "higher")
    load_comet(package, on_gpu=True).scores(["a"], ["b"], ["c"])
    assert asked["gpus"] == 1


def test_the_signature_tells_the_file_by_its_content(package: Path) -> None:
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    signature = load_comet(package, on_gpu=False).measure.signature
    assert signature == f"nrefs:1|model:model.ckpt|sha256:{digest[:16]}|version:2.2.7"


def test_nothing_is_fetched(package: Path) -> None:
    """The package and what it stands on are told to stay offline before they are imported; and it may not chatter."""
    level = logging.getLogger().level
    load_comet(package, on_gpu=False)
    assert logging.getLogger().level == level
    assert sys.modules["comet"].environment == {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_a_file_that_the_package_cannot_load(package: Path) -> None:
    package.write_bytes(b"damaged")
    with pytest.raises(UserError, match=r"model\.ckpt: COMET cannot load it: damaged file; the tokenizer"):
        load_comet(package, on_gpu=False)


def test_a_package_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(UserError) as caught:
        check_comet(tmp_path / "missing.ckpt")
    installed, missing = caught.value.messages
    assert (
        installed == "--comet: unbabel-comet is not installed: pip install 'nmt-toolkit[comet]' (for Python up to 3.12)"
    )
    assert missing.startswith(f"--comet {tmp_path / 'missing.ckpt'}: no such file; nothing is downloaded here")


def test_a_folder_and_a_file_without_its_settings(package: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder; give the model file in it, such as checkpoints/"):
        check_comet(package.parent)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    lone = tmp_path / "deep" / "er" / "model.ckpt"
    lone.write_bytes(package.read_bytes())
    with pytest.raises(UserError, match=r"there is no .*deep/hparams\.yaml, which COMET's models come with"):
        check_comet(lone)


def test_a_download_of_links(package: Path, tmp_path: Path) -> None:
    """Hugging Face keeps the files elsewhere, under other names, and a folder of links to them."""
    (tmp_path / "blobs").mkdir()
    package.rename(tmp_path / "blobs" / "1234")
    package.symlink_to(tmp_path / "blobs" / "1234")
    check_comet(package)
    assert load_comet(package, on_gpu=False).scores(["a"], ["b"], ["b"]) == [100.0]
