"""The document from made-up results: complete rows only, missing ones named, means, ranks and lengths."""

import json
from collections.abc import Iterable, Sequence

from benchmarks.attention_orders import Difference
from benchmarks.attention_recipes import RECIPES
from benchmarks.attention_report import LENGTH_ROWS, Lengths, complete, report
from benchmarks.attention_rows import CHOICES, ORDERS, ROWS
from benchmarks.attention_table import RESULTS
from benchmarks.attention_tasks import ROOT, Result
from benchmarks.length_buckets import Bucket


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


def test_a_row_stands_beside_its_twin_without_input_feeding() -> None:
    results = [*both("global-dot-no-feeding", 34.0), *both("global-dot", 33.0), *both("global-additive", 30.0)]
    results += [*both("none", 25.0, error=None), *both("none-no-feeding", 24.0, error=None)]
    text = document(results)
    begins = [line.split(" | ")[:4] for line in text.splitlines() if "| luong |" in line]
    assert begins == [
        ["| none", "–", "luong", "yes"],
        ["| none", "–", "luong", "no"],
        ["| additive", "global", "luong", "yes"],
        ["| dot", "global", "luong", "yes"],
        ["| dot", "global", "luong", "no"],
    ]


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


def test_several_seeds_are_averaged() -> None:
    text = document([*both("global-dot", 33.0), *both("global-dot", 35.0, seed=2), *both("none", 20.0)])
    assert row_of(text, "dot")[5] == "**34.00 ± 1.41**"
    assert [row_of(text, begin)[-1] for begin in ("dot", "none")] == ["2", "1"]


def test_published_order_beside_ours() -> None:
    """Published: local-p general 19.0, global dot 18.6, global general 17.3. Here the first two change places."""
    text = document([*both("local-p-general", 33.0), *both("global-dot", 34.0), *both("global-general", 32.0)])
    assert row_of(text, "local-p-general") == [
        "local-p-general", "5.9", "19.0 → 20.9", "1", "7.12", "33.00", "2",
    ]  # fmt: skip
    assert row_of(text, "global-dot")[3:] == ["2", "7.12", "34.00", "1"]
    assert row_of(text, "global-location")[3:] == ["–", "not complete", "not complete", "–"]
    assert row_of(text, "local-m-dot")[2:4] == ["did not converge", "–"]
    assert "2 of 3 pairs of rows" in text


def test_orders_of_rows_that_are_not_complete_are_left_out() -> None:
    assert "No two of their rows are complete yet." in document([])
    first, second, third = ORDERS[:3]
    ours = [
        Difference(first.better, first.worse, [1], [9.5], [0.001]),
        Difference(second.better, second.worse, [1], [-1.25], [0.0196]),
        Difference(third.better, third.worse, [1], [0.25], [0.025]),
    ]
    text = document([], orders=ours)
    begins = [f"{order.better} | {order.worse}" for order in (first, second, third)]
    assert [row_of(text, begin)[2:] for begin in begins] == [
        ["2.8", "+9.50", "0.001", "holds"],
        ["1.3", "-1.25", "0.020", "reversed"],
        ["0.4", "+0.25", "0.025", "within noise"],
    ]
    assert ", 1 hold, 1 are reversed, 1 are within noise." in text


def test_lengths() -> None:
    parts = [Bucket(0, 8, (0, 2)), Bucket(9, None, (1,))]
    series = {name: [30.0 + number, 20.0 + number] for number, name in enumerate(LENGTH_ROWS)}
    results = [trained for name in LENGTH_ROWS for trained in both(name, 33.0)]
    text = document(results, Lengths(parts, series, "images/bleu.png"))
    assert "](images/bleu.png)" in text
    assert row_of(text, "≤ 8") == ["≤ 8", "2", "30.00", "31.00", "32.00"]
    assert row_of(text, "≥ 9") == ["≥ 9", "1", "20.00", "21.00", "22.00"]
