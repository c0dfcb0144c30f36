"""The document from made-up results: complete rows only, missing ones named; and the one that there is."""

import json
from collections.abc import Iterable, Sequence

from benchmarks.attention_orders import Difference
from benchmarks.attention_recipes import RECIPES
from benchmarks.attention_report import Lengths, complete, report
from benchmarks.attention_rows import CHOICES, ORDERS, ROWS
from benchmarks.attention_table import RESULTS
from benchmarks.attention_tasks import ROOT, Result


def result(row: str, task: str, bleu: float, *, seed: int = 1, error: float | None = None) -> Result:
    return Result(
        row=row,
        task=task,
        seed=seed,
        recipe="0123abcd",
        perplexity=7.125,
        bleu=bleu,
        signature="nrefs:1|tok:none",
        parameters=1_234_567,
        minutes=11.25,
        target_tokens_per_second=5432.1,
        alignment_error_rate=error,
        machine="Abacus, 2 cores",
        threads=1,
        pytorch="2.13.0",
        precision="float32",
        translations=[],
    )


def both(row: str, bleu: float, *, seed: int = 1, error: float | None = 0.125) -> list[Result]:
    return [
        result(row, "multi30k", bleu, seed=seed),
        result(row, "synthetic", 97.0, seed=seed, error=error),
    ]


def document(
    results: Iterable[Result],
    lengths: Lengths | None = None,
    orders: Sequence[Difference] = (),
    choices: Sequence[Difference] = (),
) -> str:
    scored = complete(ROWS.values(), results)
    return report(
        scored,
        lengths,
        orders=[*orders, *[None] * (len(ORDERS) - len(orders))],
        choices=[*choices, *[None] * (len(CHOICES) - len(choices))],
        recipe=RECIPES["short"],
    )


def row_of(text: str, begin: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {begin} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_needs_both_tasks() -> None:
    text = document([result("global-dot", "multi30k", 34.0), *both("global-general", 33.0)])
    assert f"**{len(ROWS) - 1} of {len(ROWS)} rows are not complete yet:** none," in text
    assert "| dot | global |" not in text
    cells = ["general", "global", "luong", "yes", "7.12", "**33.00**", "1,234,567", "11.2", "5,432", "0.125", "97.00"]
    assert row_of(text, "general | global") == cells
    assert "Abacus, 2 cores, threads: 1, PyTorch 2.13.0, float32" in text
    assert "`nrefs:1|tok:none`" in text


def test_the_document_is_of_the_results_that_there_are() -> None:
    """research/attention_table.md has the table of what benchmarks/results has, row for row."""
    results = [Result(**json.loads(path.read_text(encoding="utf-8"))) for path in RESULTS.glob("*.json")]
    text = document(results)
    table = text[text.index("| score | scope |") :].partition("\n\n")[0]
    page = (ROOT / "research" / "attention_table.md").read_text(encoding="utf-8")
    assert table in page
    bleu = {result.row: result.bleu for result in results if result.task == "multi30k"}
    for order in ORDERS:
        cells = row_of(page, f"{order.better} | {order.worse}")
        assert cells[2:4] == [f"{order.published:.1f}", f"{bleu[order.better] - bleu[order.worse]:+.2f}"]
