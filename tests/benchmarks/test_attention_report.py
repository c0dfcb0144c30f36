"""The document from made-up results: complete rows only, missing ones named, means, ranks and lengths."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.attention_orders import Difference
from benchmarks.attention_recipes import RECIPES
from benchmarks.attention_report import LENGTH_ROWS, Lengths, complete, report
from benchmarks.attention_rows import CHOICES, ORDERS, ROWS
from benchmarks.attention_table import RESULTS
from benchmarks.attention_tasks import MULTI30K, ROOT, Result, Training
from benchmarks.length_buckets import Bucket

WITHOUT_FEEDING = [name for name in ROWS if name.endswith("-no-feeding")]
EXAMPLE = Training(MULTI30K, ROWS["none"], 1, Path("/somewhere/runs"), Path("/somewhere/results"), "0123abcd")


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
    recipe: str = "short",
) -> str:
    scored = complete(ROWS.values(), results)
    return report(
        scored,
        lengths,
        orders=[*orders, *[None] * (len(ORDERS) - len(orders))],
        choices=[*choices, *[None] * (len(CHOICES) - len(choices))],
        recipe=RECIPES[recipe],
        example=EXAMPLE,
    )


def row_of(text: str, begin: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {begin} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_no_row_is_complete() -> None:
    text = document([])
    assert f"**{len(ROWS)} of {len(ROWS)} rows are not complete yet:** none, global-additive" in text
    assert text.count("label smoothing 0.1, local-p with `model.attention.position_logit=unscaled`.") == 2
    assert "pairs of rows" not in text


def test_a_row_needs_both_tasks() -> None:
    text = document([result("global-dot", "multi30k", 34.0), *both("global-general", 33.0)])
    assert f"**{len(ROWS) - 1} of {len(ROWS)} rows are not complete yet:** none," in text
    assert "| dot | global |" not in text
    cells = row_of(text, "general | global")
    assert cells == [
        "general",
        "global",
        "luong",
        "yes",
        "7.12",
        "**33.00**",
        "1,234,567",
        "11.2",
        "5,432",
        "0.125",
        "97.00",
    ]
    assert "Abacus, 2 cores, threads: 1, PyTorch 2.13.0, float32" in text
    assert "`nrefs:1|tok:none`" in text


def test_every_row() -> None:
    text = document([trained for number, name in enumerate(ROWS) for trained in both(name, 20.0 + number)])
    assert f"All {len(ROWS)} rows are complete." in text
    assert "not complete |" not in text
    assert text.count("| luong | yes |") == text.count("| luong | no |") == len(WITHOUT_FEEDING)
    assert row_of(text, "none | – | luong | yes")[5] == "20.00"
    assert row_of(text, "additive | global | bahdanau")[3] == "–"


def test_a_row_stands_beside_its_twin_without_input_feeding() -> None:
    """Of the two pairs one has the higher BLEU with input feeding; the perplexity is the same in all of them."""
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
    assert "Of 2 rows with and without input feeding, 1 have higher BLEU with it, and 0 lower\nperplexity." in text
    assert "rows with and without input feeding" not in document(both("global-dot", 33.0))


def test_input_feeding_is_compared_with_the_seeds_that_both_have() -> None:
    """With seed 1 alone it is the better one, with seeds 1 and 2 it would be the worse one on average."""
    results = [*both("none", 24.0, error=None), *both("none", 10.0, seed=2, error=None)]
    results += both("none-no-feeding", 23.0, error=None)
    text = document(results)
    assert "Of 1 rows with and without input feeding, 1 have higher BLEU with it, " in text
    assert "perplexity, by the seeds that both have." in text

    results = [*both("none", 24.0, error=None), *both("none", 10.0, seed=2, error=None)]
    results += [*both("none-no-feeding", 23.0, seed=2, error=None), *both("none-no-feeding", 5.0, seed=3, error=None)]
    text = document(results)
    assert "Of 1 rows with and without input feeding, 0 have higher BLEU with it, " in text
    assert "perplexity, by the seeds that both have." in text


def test_the_document_is_of_the_results_that_there_are() -> None:
    """research/attention_table.md has the table of what benchmarks/results has, row for row."""
    results = [Result(**json.loads(path.read_text(encoding="utf-8"))) for path in RESULTS.glob("*.json")]
    text = document(results)
    table = text[text.index("| score | scope |") : text.index("## BLEU by source length")]
    page = (ROOT / "research" / "attention_table.md").read_text(encoding="utf-8")
    assert table in page
    bleu = {result.row: result.bleu for result in results if result.task == "multi30k"}
    for order in ORDERS:
        cells = row_of(page, f"{order.better} | {order.worse}")
        assert cells[2:4] == [f"{order.published:.1f}", f"{bleu[order.better] - bleu[order.worse]:+.2f}"]


def test_each_task_has_its_own_machine_and_precision() -> None:
    multi30k, synthetic = both("global-dot", 33.0)
    text = document([replace(multi30k, precision="bfloat16"), synthetic])
    assert "Multi30k was trained on: Abacus, 2 cores, threads: 1, PyTorch 2.13.0, bfloat16." in text
    assert "synthetic corpus was trained on: Abacus, 2 cores, threads: 1, PyTorch 2.13.0, float32." in text


def test_of_several_machines_the_seeds_are_told() -> None:
    results = [*both("global-dot", 33.0), *both("global-dot", 34.0, seed=2), *both("global-dot", 35.0, seed=3)]
    first = [replace(result, precision="bfloat16") if result.seed == 1 else result for result in results]
    text = document(first)
    machine = "Abacus, 2 cores, threads: 1, PyTorch 2.13.0"
    assert f"Multi30k was trained on: {machine}, bfloat16 (seed 1); {machine}, float32 (seeds 2, 3)." in text


def test_without_attention_there_is_no_alignment() -> None:
    assert row_of(document(both("none", 25.0, error=None)), "none")[9] == "–"


def test_several_seeds_are_averaged() -> None:
    text = document([*both("global-dot", 33.0), *both("global-dot", 35.0, seed=2), *both("none", 20.0)])
    assert row_of(text, "dot")[5] == "**34.00 ± 1.41**"
    assert [row_of(text, begin)[-1] for begin in ("dot", "none")] == ["2", "1"]


def test_a_seed_counts_when_both_of_its_tasks_are_done() -> None:
    scored = complete(ROWS.values(), [*both("global-dot", 33.0), result("global-dot", "multi30k", 35.0, seed=2)])
    assert [trained.seed for trained in scored["global-dot"].multi30k] == [1]


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
    """Of one seed each, with the p of each; an order that two of three seeds show is within noise."""
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
    assert "Of 3 orders, 1 hold, 1 are reversed, 1 are within noise." in text
    assert "One seed a row: p says" in text


def test_orders_by_several_seeds() -> None:
    ours = Difference(ORDERS[0].better, ORDERS[0].worse, [1, 2], [1.0, 3.0], [0.01, 0.2])
    text = document([], orders=[ours])
    assert row_of(text, ORDERS[0].better)[2:] == ["2.8", "+2.00 ± 1.41", "0.010, 0.200", "2", "within noise"]
    assert "One seed a row" not in text


def test_what_one_option_brings() -> None:
    """Pairs whose rows are not complete are left out; of 41 with one seed two would be told apart by chance."""
    assert "What one option brings" not in document([])
    first, second, third = CHOICES[:3]
    ours = [
        Difference(first.row, first.plain, [1], [9.5], [0.001]),
        Difference(second.row, second.plain, [1, 2], [-1.0, -3.0], [0.01, 0.02]),
        Difference(third.row, third.plain, [1, 2], [1.0, 3.0], [0.01, 0.2]),
    ]
    text = document([], choices=ours)
    section = text[text.index("## What one option brings") :]
    assert [row_of(section, f"{choice.option} | {choice.row}")[2:] for choice in CHOICES[:3]] == [
        [first.plain, "+9.50", "0.001", "1", "better"],
        [second.plain, "-2.00 ± 1.41", "0.010, 0.020", "2", "worse"],
        [third.plain, "+2.00 ± 1.41", "0.010, 0.200", "2", "within noise"],
    ]
    assert "1 of the 3 pairs have one seed: if their rows were equal, about 0 of them" in " ".join(section.split())
    many = [Difference(choice.row, choice.plain, [1], [0.5], [0.2]) for choice in CHOICES[:41]]
    assert "All 41 pairs have one seed: if their rows were equal, about 2 of them" in " ".join(
        document([], choices=many).split()
    )


def test_the_long_recipe_says_what_it_changes_and_which_seeds_are_missing() -> None:
    results = [*both("global-dot", 33.0), *both("global-dot", 35.0, seed=2), *both("global-cosine", 34.0)]
    text = document(results, recipe="long")
    assert "with `model.initialisation.range=0.2`, `training.max_epochs=16`" in text
    assert "uniform initialization in ±0.2" in text
    assert "16 epochs" in text
    assert "With fewer seeds than planned: global-dot (2 of 3)." in text
    assert "python -m benchmarks.attention_table --recipe long --report-only" in text


def test_lengths() -> None:
    parts = [Bucket(0, 8, (0, 2)), Bucket(9, None, (1,))]
    series = {name: [30.0 + number, 20.0 + number] for number, name in enumerate(LENGTH_ROWS)}
    results = [trained for name in LENGTH_ROWS for trained in both(name, 33.0)]
    text = document(results, Lengths(parts, series, "images/bleu.png"))
    assert "](images/bleu.png)" in text
    assert row_of(text, "≤ 8") == ["≤ 8", "2", "30.00", "31.00", "32.00"]
    assert row_of(text, "≥ 9") == ["≥ 9", "1", "20.00", "21.00", "22.00"]


def test_lengths_wait_for_their_rows() -> None:
    text = document(both("none", 25.0, error=None))
    assert "not complete yet: global-additive, local-p-general." in text


def test_the_recipes_are_told() -> None:
    text = document([])
    assert "6,000 bpe pieces" in text
    assert "uniform initialization in ±0.1" in text
    assert "halving schedule after 4 epochs every 1 epoch factor 0.6" in text
    assert "8 epochs" in text
