"""The table's script: what is done is not done again, and one row from end to end in two updates."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import attention_table
from benchmarks.attention_recipes import RECIPES, Recipe
from benchmarks.attention_rows import ROWS
from benchmarks.attention_tasks import Result, Task, Training, alignment_error, plan
from nmt.decoding.translator import Translator

DONE = Result(
    "none", "tiny", 1, "0123abcd", 7.0, 33.0, "signature", 11, 1.0, 5000.0, None, "Abacus", 1, "2.13.0", "float32", []
)


@pytest.fixture
def task(tiny_config: Path) -> Task:
    """A recipe of two updates."""
    folder = tiny_config.parent
    return Task("tiny", tiny_config, folder / "test.en", folder / "test.de", folder / "test.align")


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Training], Result]], list[str]]:
    """runner(body) puts `body` in place of the commands, and returns the list that the trained rows are added to."""

    def install(body: Callable[[Training], Result]) -> list[str]:
        trained: list[str] = []

        def run(training: Training, *, device: str, threads: int) -> Result:
            trained.append(training.row.name)
            return body(training)

        monkeypatch.setattr(Training, "run", run)
        return trained

    return install


def finish(training: Training) -> Result:
    """As if it translated well, or without attention word for word."""
    training.results.mkdir(parents=True, exist_ok=True)
    file = training.task.source if training.row.score == "none" else training.task.reference
    result = replace(
        DONE,
        row=training.row.name,
        task=training.task.name,
        seed=training.seed,
        bleu=33.0 + len(training.row.name),
        recipe=training.recipe,
        translations=file.read_text(encoding="utf-8").splitlines(),
    )
    training.kept.write_text(json.dumps(result.__dict__), encoding="utf-8")
    return result


@pytest.fixture
def tiny_table(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script with one tiny task in the place of both."""
    multi30k, synthetic = task._replace(name="multi30k", gold=None), task._replace(name="synthetic")
    monkeypatch.setitem(RECIPES, "short", Recipe("short", "Short", multi30k, synthetic, repeats=1))
    longer = multi30k._replace(overrides=("training.max_updates=3",))
    monkeypatch.setitem(RECIPES, "long", Recipe("long", "Long", longer, synthetic, repeats=3))


@pytest.mark.usefixtures("tiny_table")
def test_a_table_that_was_stopped_goes_on(
    tmp_path: Path, runner: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped in the third of six trainings; and the report of this recipe has nothing of the other one."""
    stops = iter([False, False, True])

    def finish_or_stop(training: Training) -> Result:
        if next(stops, False):
            raise KeyboardInterrupt
        return finish(training)

    trained = runner(finish_or_stop)
    document = tmp_path / "table_long.md"
    folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results"), "--document", str(document)]
    arguments = ["--recipe", "long", "--rows", "global-dot", "--device", "cpu", "--threads", "1", *folders]
    assert attention_table.main(arguments) == 130
    assert len(trained) == 3
    assert "With fewer seeds than planned: global-dot (1 of 3)." in document.read_text(encoding="utf-8")
    assert attention_table.main(arguments) == 0
    assert len(trained) == 3 + 4
    text = document.read_text(encoding="utf-8")
    assert text.startswith("# Long\n")
    assert "43.00 ± 0.00" in text
    assert "fewer seeds" not in text
    capsys.readouterr()
    assert attention_table.main(["--report-only", *folders]) == 0
    assert f"{document}: 0 of {len(ROWS)} rows" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_table")
def test_one_row_from_end_to_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Two updates on 40 sentences, twice: nmt-train, nmt-eval, the alignments, the document; and then nothing to do."""
    runs, results, document = tmp_path / "runs", tmp_path / "results", tmp_path / "docs" / "table.md"
    arguments = ["--rows", "global-dot", "--device", "cpu", "--threads", "1"]
    arguments += ["--runs", str(runs), "--results", str(results), "--document", str(document)]
    assert attention_table.main(arguments) == 0

    multi30k, synthetic = plan(RECIPES["short"].tasks, [ROWS["global-dot"]], seeds=[1], runs=runs, results=results)
    first, second = multi30k.result(), synthetic.result()
    assert first is not None
    assert second is not None
    assert (first.threads, first.alignment_error_rate, first.signature[:7]) == (1, None, "nrefs:1")
    assert first.parameters == second.parameters > 1000
    assert (first.perplexity, first.bleu) == (second.perplexity, second.bleu), "one seed, one corpus"
    translator = Translator.load(synthetic.folder)
    assert second.alignment_error_rate == pytest.approx(alignment_error(translator, synthetic.task))
    assert 0 < second.alignment_error_rate <= 1
    assert len(first.translations) == 6
    assert first.precision == "float32"
    text = document.read_text(encoding="utf-8")
    assert f"| dot | global | luong | yes | {first.perplexity:.2f} |" in text
    assert f"{len(ROWS) - 1} of {len(ROWS)} rows are not complete yet" in text

    capfd.readouterr()
    shutil.rmtree(runs)  # on another machine, with what was kept
    assert attention_table.main(arguments) == 0
    said = capfd.readouterr().out
    assert said.count("already done") == 2
    assert "nmt-train" not in said
