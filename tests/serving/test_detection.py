"""Languages told apart by lingua itself, among those of a server."""

import pytest

pytest.importorskip("lingua", reason="it is in the extra detect")

from nmt.serving.limits import Detected, Detector


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(["en", "de", "pt-BR", "no", "xx", "english"])


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["Hello"], "en"),
        (["Two dogs play in the snow.", "", "42"], "en"),
        (["Zwei Hunde spielen im Schnee."], "de"),
        (["Dois cachorros brincam na neve."], "pt-BR"),
        (["Hva heter du, og hvor kommer du fra?"], "no"),
    ],
)
def test_languages(detector: Detector, lines: list[str], code: str) -> None:
    """In the codes of the server, all that lingua knows, the likeliest first."""
    found = detector.languages(lines)
    assert found[0].language == code
    assert found[0].confidence >= found[1].confidence
    assert {one.language for one in found} == {"en", "de", "pt-BR", "no"}
    assert 97 <= sum(one.confidence for one in found) <= 103


@pytest.mark.parametrize("lines", [[], ["42"], ["", "\U0001f600"]])
def test_what_has_no_language(detector: Detector, lines: list[str]) -> None:
    assert detector.languages(lines)[0] == Detected("en", 0)


@pytest.mark.parametrize("codes", [[], ["en"], ["en", "xx"], ["zh-Hans", "zh-Hant"]])
def test_there_have_to_be_two_languages(codes: list[str]) -> None:
    with pytest.raises(LookupError):
        Detector(codes)
