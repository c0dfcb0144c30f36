"""Every score, every scope and every decoder learns: 90 BLEU on the synthetic corpus, each with its alignment error.

The recipe is the attention table's long one for the synthetic corpus, but with fewer epochs and so without dropout, a
rate that is halved twice, a narrower window of local-m, and other sentences. The trainings run beside each other, one a
core, by nmt-train; a test waits for its own. Without attention, with a fixed context, or with attention to numbered
positions, a model is not expected to translate sentences that it has not seen, so these are left to the table.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.attention_recipes import RECIPES
from benchmarks.attention_rows import Row
from benchmarks.attention_tasks import Task, alignment_error
from nmt.data.corpus import read_lines
from nmt.decoding.translator import Translator
from nmt.evaluation.alignments import alignment_scores
from nmt.evaluation.metrics import corpus_scores
from nmt.models.decoders import DECODERS
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from nmt.pharaoh import read_gold
from tests.conftest import make_synthetic_corpus

pytestmark = pytest.mark.slow

RECIPE = RECIPES["long"].synthetic
SIZES = {"train": 6000, "valid": 100, "test": 200}
BAR = 90.0  # BLEU
HALF_WIDTH = 4  # of local-m: with the default, 10, these sentences of 9 words would be inside its window as a whole
EPOCHS, MORE = 4, 6  # and those of dot, and of local-m with such a window
NO_DROPOUT = ("model.encoder.dropout=0", "model.decoder.dropout=0")
NOT_EXPECTED = {"none", "fixed", "location"}  # scores, to translate sentences that they have not seen
NOT_TRAINED = {"scaled_dot"}  # scaled_general with a W_a of 1

COMBINATIONS = [
    Row("location_sensitive"),  # the slowest first
    Row("cosine", "local-p"),
    Row("concat", "local-m"),
    Row("additive", decoder="bahdanau"),
    Row("general", decoder="conditional_gru"),
    Row("dot"),
]
COMBINATIONS += [
    Row(score) for score in SCORES if score not in {*NOT_EXPECTED, *NOT_TRAINED, *(row.score for row in COMBINATIONS)}
]


def test_every_member_of_every_family_takes_part() -> None:
    assert {row.scope for row in COMBINATIONS} == set(SCOPES)
    assert {row.decoder for row in COMBINATIONS} == set(DECODERS)


class Corpus(NamedTuple):
    task: Task
    overrides: list[str]  # values of nmt-train's --set

    def train(self, row: Row, output: Path, *more: str) -> None:
        is_local = row.scope == "local-m"
        epochs = MORE if is_local or row.score == "dot" else EPOCHS
        length = [f"training.max_epochs={epochs}", f"training.schedule.after={epochs - 2} epochs"]
        window = [f"model.attention.half_width={HALF_WIDTH}"] if is_local else []
        overrides = (*self.overrides, *RECIPE.sets(row), *NO_DROPOUT, *length, *window)
        sets = [word for override in overrides for word in ("--set", override)]
        files = ["--config", str(RECIPE.config), "--output", str(output)]
        command = [sys.executable, "-m", "nmt.cli.train", *files, *sets, "--device", "cpu", *more]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert finished.returncode == 0, finished.stderr


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The corpus, with the subword model and the ids that all trainings share made already."""
    folder = make_synthetic_corpus(tmp_path_factory.mktemp("learning"), seed=2, **SIZES)
    files = [f"{key}.{side}={folder / name}.{language}" for key, name in (("train.0", "train"), ("valid", "valid"))
             for side, language in (("source", "en"), ("target", "de"))]  # fmt: skip
    task = RECIPE._replace(source=folder / "test.en", reference=folder / "test.de", gold=folder / "test.align")
    made = Corpus(task, [f"data.{setting}" for setting in (*files, f"cache_folder={folder / 'cache'}")])
    made.train(COMBINATIONS[0], folder / "unused", "--dry-run")
    return made


@pytest.fixture(scope="module")
def trained(
    request: pytest.FixtureRequest, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Row], Path]]:
    """trained(row) waits for the training of the row and gives its run folder."""
    runs = tmp_path_factory.mktemp("runs")
    selected = {item.callspec.params["row"]: None for item in request.session.items if _is_proof(item)}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs: dict[Row, Future[None]] = {row: pool.submit(corpus.train, row, runs / row.name) for row in selected}

        def wait(row: Row) -> Path:
            jobs[row].result()
            return runs / row.name

        yield wait
        for job in jobs.values():
            job.cancel()


def _is_proof(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and item.function is test_learns


@pytest.mark.parametrize("row", COMBINATIONS, ids=lambda row: row.name)
def test_learns(
    row: Row,
    corpus: Corpus,
    trained: Callable[[Row], Path],
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    translator = Translator.load(trained(row))
    hypotheses = [best.text for best, *_ in translator.translate(read_lines(corpus.task.source))]
    references = list(read_lines(corpus.task.reference))
    bleu = corpus_scores(hypotheses, references, tokenize="none", metrics=("bleu",))["bleu"].score
    error = alignment_error(translator, corpus.task)

    record_property("bleu", bleu)
    record_property("alignment_error_rate", error)
    with capsys.disabled():
        print(f"\n{row.name}: BLEU {bleu:.2f}, AER {error:.3f}")
    assert bleu >= BAR
    assert error < diagonal_error(corpus.task), "attention should align better than the order of the words does"


def diagonal_error(task: Task) -> float:
    """AER of linking each target word to the source word at the same position, or the last."""
    assert task.gold is not None
    lines = zip(read_lines(task.source), read_lines(task.reference), strict=True)
    sizes = [(len(source.split()), len(target.split())) for source, target in lines]
    diagonal = [[(min(position, words - 1), position) for position in range(length)] for words, length in sizes]
    return alignment_scores(diagonal, read_gold(read_lines(task.gold), name=str(task.gold))).error_rate
