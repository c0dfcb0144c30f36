"""Where local-p looks, measured on a model whose positions are set by hand."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import predicted_positions
from benchmarks.predicted_positions import measure
from nmt.decoding.translator import Translator
from nmt.pharaoh import Gold
from tests.known_model import save_known_model

SOURCE, TARGET = ["the", "small", "old", "cat", "slept"], ["die", "alte", "kleine", "Katze", "schlief"]
LINKS = [(0, 0), (2, 1), (1, 2), (3, 3), (4, 4)]
PAIR = (" ".join(SOURCE), " ".join(TARGET))


def known(path: Path, attention: str) -> Translator:
    save_known_model(path, SOURCE, TARGET, LINKS, attention=attention)
    return Translator.load(path)


def gold(links: Sequence[tuple[int, int]]) -> list[Gold]:
    return [Gold(set(links), set(links))]


@pytest.fixture
def translator(tmp_path: Path) -> Translator:
    return known(tmp_path / "model", "local-p")


def test_positions_by_hand(translator: Translator) -> None:
    """S - 1 is 5, of the end: p_t are 0, 2, 1, 3, 4, their shares 0, 0.4, 0.2, 0.6, 0.8, of mean 0.4 and variance 0.08.
    All weight is where p_t is, so the Gaussian takes nothing away."""
    measured = measure(translator, [PAIR] * 3, gold(LINKS) * 3, update=7)
    assert measured.update == 7
    assert measured.mean == pytest.approx(0.4, abs=1e-3)
    assert measured.deviation == pytest.approx(0.08**0.5, abs=1e-3)
    assert (measured.first, measured.last) == (0.2, 0.0)
    assert measured.from_largest == pytest.approx(0, abs=0.01)
    assert measured.from_gold == pytest.approx(0, abs=0.01)
    assert measured.largest_from_gold == 0
    assert measured.lost == pytest.approx(0, abs=1e-3)
    assert measured.largest == pytest.approx(1, abs=1e-3)


def test_distances_are_from_the_nearest_linked_word(translator: Translator) -> None:
    """die: 4 from slept. alte: 1 from both. kleine: without a link, so not counted. Katze: 0. schlief: 0 or 2."""
    links = gold([(4, 0), (1, 1), (3, 1), (3, 3), (4, 4), (2, 4)])
    measured = measure(translator, [PAIR], links, update=0)
    assert measured.largest_from_gold == pytest.approx((4 + 1 + 0 + 0) / 4)
    assert measured.from_gold == pytest.approx((4 + 1 + 0 + 0) / 4, abs=0.01)


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    for update in (3, 11):
        save_known_model(folder / f"update-{update:08d}.safetensors", SOURCE, TARGET, LINKS, attention="local-p")
    files = {"source": PAIR[0], "target": PAIR[1], "gold": "0-0 2-1 1-2 3-3 4-4"}
    for name, line in files.items():
        (tmp_path / name).write_text(f"{line}\n", encoding="utf-8")
    options = [word for name in files for word in (f"--{name}", str(tmp_path / name))]
    outputs = ["--json", str(tmp_path / "figures.json"), "--plot", str(tmp_path / "plot.png")]
    assert predicted_positions.main([f"known={tmp_path / 'run'}", *options, *outputs]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("known  11  0.4  ")
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert [row["update"] for row in figures["known"]] == [3, 11]
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
