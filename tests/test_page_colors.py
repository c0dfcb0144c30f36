"""What is written on both pages can be read: WCAG 2.2 asks for a contrast of 4.5 between text and what is behind it."""

import re

import pytest

from tests.conftest import ROOT

STYLES = [ROOT / "nmt" / name for name in ("pages.css", "translating.css", "evaluation/page/style.css")]
COLOR = re.compile(r"--(\w+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)")
ON_SHEET = [(name, "sheet") for name in ("ink", "soft", "accent", "error", "missing")]
ON_OTHERS = [("soft", "paper"), ("ink", "track"), ("ink", "weight")]  # mixtures of track and weight are in between
LETTERS = [("sheet", f"s{number}") for number in range(6)]


def luminance(color: str) -> float:
    """The relative luminance of sRGB: 0.2126 R + 0.7152 G + 0.0722 B, each made linear."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted(map(luminance, (one, other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme: str) -> None:
    declared = [match for path in STYLES for match in COLOR.findall(path.read_text(encoding="utf-8"))]
    colors = {name: light if scheme == "light" else dark for name, light, dark in declared}
    assert len(colors) == len(declared), "a color has two meanings"
    pairs = {(text, behind): contrast(colors[text], colors[behind]) for text, behind in ON_SHEET + ON_OTHERS + LETTERS}
    assert {names: ratio for names, ratio in pairs.items() if ratio < 4.5} == {}


def test_contrast() -> None:
    assert contrast("000000", "ffffff") == pytest.approx(21)
    assert contrast("777777", "ffffff") == pytest.approx(4.48, abs=0.01)  # just not enough
