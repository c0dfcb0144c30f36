"""Real sentences: neither the size of the batches nor the order of the lines changes a translation.

In float64 not one of 60 may differ, nor a score by more than 1e-12. In float32, in which products are rounded
differently for batches of different sizes, and a tie between two translations may fall the other way, at most one line
of 250 may.

The model is trained here, for a minute or two, because ties must be counted on real translations. Set NMT_PROOF_MODEL
to a model file or run folder to have the proof of that instead, and NMT_PROOF_TEXT to a file of sentences for it, of
which as many are taken.
"""

import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import yaml

from nmt.cli.train import main
from nmt.data.corpus import read_lines
from nmt.decoding.translator import Translator
from tests.batch_sizes import every_way, sentences
from tests.conftest import data_section
from tests.end_to_end.conftest import settings

pytestmark = pytest.mark.slow

LINES = {"float64": 60, "float32": 250}  # rounding, and with it a tie, is rare; a mistake is not
VARIED = 0.9  # of all lines: so many have translations of their own
DIFFERENT_IN_FLOAT32 = 0.004  # of all lines, at most
TRAINING_PAIRS = 6_000


@pytest.fixture(scope="module")
def lines() -> list[str]:
    path = os.environ.get("NMT_PROOF_TEXT")
    return list(read_lines(Path(path))) if path else sentences()


@pytest.fixture(scope="module")
def model(lines: list[str], shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of NMT_PROOF_MODEL, or one that is trained on a part of Multi30k."""
    if path := os.environ.get("NMT_PROOF_MODEL"):
        return Path(path)
    folder = tmp_path_factory.mktemp("flickr")
    corpus = shared_data / "multi30k" / "tok"
    for name, original, count in (("train", "train", TRAINING_PAIRS), ("valid", "val", 100)):
        for language in ("en", "de"):
            some = islice(read_lines(corpus / f"{original}.lc.norm.tok.{language}.gz"), count)
            text = "".join(f"{line}\n" for line in some)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")
    quick = settings(folder)
    quick["data"] = {**data_section(folder), "cache_folder": str(folder / "cache")}
    quick["subwords"] = {"type": "bpe", "size": 2000}
    quick["model"] = {
        "embedding_size": 64,
        "initialization": {"name": "xavier"},
        "encoder": {"hidden_size": 64},
        "decoder": {"hidden_size": 128, "output_size": 64},
    }
    quick["training"] = {
        "optimizer": {"name": "adam", "learning_rate": 5e-3},
        "batch_size": 64,
        "max_epochs": 2,
        "validation": {"metric": "loss"},
        "gradient_clip_norm": 1.0,
    }
    (folder / "quick.yaml").write_text(yaml.safe_dump(quick), encoding="utf-8")
    assert main(["--config", str(folder / "quick.yaml"), "--output", str(folder / "run"), "--device", "cpu"]) == 0
    return folder / "run"


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_no_translation_depends_on_its_batch(
    model: Path,
    lines: list[str],
    precision: str,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    translator = Translator.load(model)
    lines = lines[: LINES[precision]]
    if precision == "float64":
        translator.models[0].double()
    ways = every_way(translator, lines)
    _, alone = next(ways)
    texts = [best.text for best, *_ in alone]
    assert len(texts) == len(lines)
    assert len(set(texts)) >= VARIED * len(lines)
    worst = 0
    for name, translations in ways:
        differing = sum(best.text != text for (best, *_), text in zip(translations, texts, strict=True))
        apart = max(abs(best.score - other.score) for (best, *_), (other, *_) in zip(alone, translations, strict=True))
        worst = max(worst, differing)
        record_property(name, (differing, apart))
        with capsys.disabled():
            print(f"\n{precision}, {name}: {differing} of {len(lines)} lines differ, scores by {apart:.1e}")
        if precision == "float64":
            assert apart <= 1e-12
    assert worst <= (DIFFERENT_IN_FLOAT32 * len(lines) if precision == "float32" else 0)
