"""The package as a program imports it, and the session that README.md shows, run as it stands there."""

import doctest
import re
from pathlib import Path

import pytest

import nmt
from nmt.decoding.translator import Translation, TranslationOptions, Translator
from nmt.errors import UserError
from nmt.experiment.from_python import train
from nmt.experiment.training import Trained
from tests.known_model import save_known_model

README = Path(__file__).resolve().parent.parent / "README.md"
SOURCE, TARGET = ["Today", "our", "men", "can", "dance", "."], ["Heute", "können", "unsere", "Männer", "tanzen", "."]
LINKS = [(0, 0), (3, 1), (1, 2), (2, 3), (4, 4), (5, 5)]


def test_what_the_package_offers() -> None:
    assert nmt.Translator is Translator
    assert nmt.Translation is Translation
    assert nmt.TranslationOptions is TranslationOptions
    assert nmt.UserError is UserError
    assert nmt.train is train
    assert nmt.Trained is Trained
    assert set(nmt.__all__) == {"Trained", "Translation", "TranslationOptions", "Translator", "UserError", "train"}
    assert set(nmt.__all__) <= set(dir(nmt))  # what completion offers
    with pytest.raises(AttributeError, match="module 'nmt' has no attribute 'Transformer'"):
        nmt.Transformer  # noqa: B018


def test_the_session_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a model set by hand that is as certain of each token as the demo's: log 1 / (1 + 9 exp(-4.66)) = -0.08."""
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    save_known_model(tmp_path / "runs" / "demo" / "best.safetensors", SOURCE, TARGET, LINKS, certainty=4.68)
    monkeypatch.chdir(tmp_path)
    (session,) = re.findall(r"^```python\n(>>> .*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(session, {}, "README.md", str(README), 0)
    assert len(test.examples) == 7
    said: list[str] = []
    assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)
