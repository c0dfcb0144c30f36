"""research/attention_table.md from the results so far: the table, BLEU by length, and the published order next to ours.

Pure text: it knows results, not folders. A row is shown once both of its tasks are done with at least one seed; missing
rows are listed.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.attention_orders import LIMIT, OUTCOMES, Difference
from benchmarks.attention_recipes import Recipe
from benchmarks.attention_rows import CHOICES, ORDERS, PUBLISHED, ROWS, Row, concordance
from benchmarks.attention_tasks import MULTI30K, SYNTHETIC, Result, Task, shown
from benchmarks.length_buckets import Bucket

LENGTH_ROWS = ("none", "global-additive", "local-p-general")
Table = Sequence[Sequence[str]]


class Scored(NamedTuple):
    """A complete row: its results by seed, in the same order for both tasks."""

    row: Row
    multi30k: Sequence[Result]
    synthetic: Sequence[Result]


class Lengths(NamedTuple):
    """BLEU by source length, for each model and bucket, and where the document links the plot."""

    parts: Sequence[Bucket]
    series: Mapping[str, Sequence[float]]
    image: str


def complete(rows: Iterable[Row], results: Iterable[Result]) -> dict[str, Scored]:
    """The rows with results of both tasks for at least one seed, by name, with the seeds that have both."""
    by_seed = {(result.row, result.task, result.seed): result for result in results}
    seeds = sorted({result.seed for result in by_seed.values()})
    scored = {}
    for row in rows:
        keys = [((row.name, MULTI30K.name, seed), (row.name, SYNTHETIC.name, seed)) for seed in seeds]
        both = [(by_seed[first], by_seed[second]) for first, second in keys if first in by_seed and second in by_seed]
        if both:
            scored[row.name] = Scored(row, *zip(*both, strict=True))
    return scored


def report(
    scored: Mapping[str, Scored],
    lengths: Lengths | None,
    *,
    orders: Sequence[Difference | None],
    choices: Sequence[Difference | None],
    recipe: Recipe,
) -> str:
    """The whole document. `orders`, `choices`: the differences of ORDERS and CHOICES, None where a row is missing."""
    sections = [
        _introduction(recipe),
        _missing(scored, recipe),
        _main_table(scored),
        _by_length(lengths, scored),
        _beside_published(scored),
        _orders(orders),
        _choices(choices),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _introduction(recipe: Recipe) -> str:
    option = f" --recipe {recipe.name}" if recipe.suffix else ""
    return f"""# {recipe.title}

Luong, Pham & Manning's Table 4 (2015, arXiv 1508.04025) with more rows, on small data: only `model.attention` and the
type, input feeding, and order of `model.decoder` differ. `python -m benchmarks.attention_table{option}` trains the rows
and writes this file.

- Perplexity (per subword piece of the validation corpus) and BLEU (of test_2016_flickr) are of Multi30k English-German:
  {_recipe(recipe.multi30k)}.
- AER (Och & Ney; 0 is perfect; forced decoding of the reference, `--end-links best`) and synthetic BLEU are of the
  synthetic corpus: {_recipe(recipe.synthetic)}."""


def _recipe(task: Task) -> str:
    changed = f" with {_quoted(task.overrides)}" if task.overrides else ""
    local_p = f", local-p with {_quoted(task.of_local_p)}" if task.of_local_p else ""
    return f"[{shown(task.config)}](../{shown(task.config)}){changed}{local_p}"


def _quoted(overrides: Iterable[str]) -> str:
    return ", ".join(f"`{override}`" for override in overrides)


def _missing(scored: Mapping[str, Scored], recipe: Recipe) -> str:
    absent = [name for name in ROWS if name not in scored]
    seeds = {name: (len(row.multi30k), len(recipe.seeds(row.row))) for name, row in scored.items()}
    fewer = [f"{name} ({done} of {planned})" for name, (done, planned) in seeds.items() if done < planned]
    also = f" With fewer seeds than planned: {', '.join(fewer)}." if fewer else ""
    if not absent:
        return f"All {len(ROWS)} rows are complete.{also}"
    return f"**{len(absent)} of {len(ROWS)} rows are not complete yet:** {', '.join(absent)}.{also}"


def _main_table(scored: Mapping[str, Scored]) -> str:
    several = any(len(row.multi30k) > 1 for row in scored.values())
    head = [
        "score",
        "scope",
        "decoder",
        "input feeding",
        "perplexity",
        "BLEU",
        "parameters",
        "minutes",
        "tokens/s",
        "AER",
    ]
    head += ["synthetic BLEU", *(["seeds"] if several else [])]
    lines = [head]
    best = max((_mean(row.multi30k, _bleu) for row in scored.values()), default=math.nan)
    for row, multi30k, synthetic in _feeding_side_by_side(scored):
        bleu = _spread(multi30k, _bleu, ".2f")
        line = [row.score, "–" if row.score == "none" else row.scope, row.kind]
        line += [("yes" if row.input_feeding else "no") if row.decoder == "luong" else "–"]
        line += [_spread(multi30k, _perplexity, ".2f")]
        line += [f"**{bleu}**" if _mean(multi30k, _bleu) == best else bleu, f"{multi30k[0].parameters:,}"]
        line += [f"{_mean(multi30k, lambda result: result.minutes):.1f}"]
        line += [f"{_mean(multi30k, lambda result: result.target_tokens_per_second):,.0f}"]
        line += [
            _spread(synthetic, lambda result: result.alignment_error_rate, ".3f"),
            _spread(synthetic, _bleu, ".2f"),
        ]
        lines.append([*line, *([str(len(multi30k))] if several else [])])
    if not scored:
        return ""
    signatures = {result.signature for row in scored.values() for result in (*row.multi30k, *row.synthetic)}
    notes = [
        "Minutes (with validation) and target tokens per second: of training on Multi30k. ±: standard deviation.",
        f"BLEU: {' · '.join(f'`{signature}`' for signature in sorted(signatures))}.",
        f"Multi30k: {_where(result for row in scored.values() for result in row.multi30k)}.",
        f"Synthetic corpus: {_where(result for row in scored.values() for result in row.synthetic)}.",
    ]
    return "\n".join([markdown(lines), "", *notes])


def _feeding_side_by_side(scored: Mapping[str, Scored]) -> list[Scored]:
    """The rows in the order of ROWS, each one without input feeding right after the one with it."""
    order = list(ROWS)

    def place(scored_row: Scored) -> tuple[int, bool]:
        row = scored_row.row
        return order.index(row._replace(input_feeding=True).name), not row.input_feeding

    return sorted(scored.values(), key=place)


def _where(results: Iterable[Result]) -> str:
    """The machines, each with its threads, PyTorch and precision; of several, with their seeds."""
    seeds: dict[str, set[int]] = {}
    for result in results:
        machine = f"{result.machine}, threads: {result.threads}, PyTorch {result.pytorch}, {result.precision}"
        seeds.setdefault(machine, set()).add(result.seed)
    if len(seeds) == 1:
        return next(iter(seeds))
    return "; ".join(
        f"{machine} (seed{'s' * (len(numbers) > 1)} {', '.join(map(str, sorted(numbers)))})"
        for machine, numbers in sorted(seeds.items())
    )


def _by_length(lengths: Lengths | None, scored: Mapping[str, Scored]) -> str:
    title = "## BLEU by source length"
    if lengths is None:
        absent = [name for name in LENGTH_ROWS if name not in scored]
        return f"{title}\n\nNeeds the rows {', '.join(LENGTH_ROWS)}; not complete yet: {', '.join(absent)}."
    lines = [["source words", "sentences", *lengths.series]]
    for index, part in enumerate(lengths.parts):
        scores = [f"{series[index]:.2f}" for series in lengths.series.values()]
        lines.append([part.label, str(len(part.sentences)), *scores])
    return f"{title}\n\n![BLEU by source length of three models]({lengths.image})\n\n{markdown(lines)}"


def _beside_published(scored: Mapping[str, Scored]) -> str:
    """Luong et al.'s Table 4 and the same rows here, both with input feeding, in the published order."""
    here = {name: _mean(row.multi30k, _bleu) for name, row in scored.items()}
    published_bleu = {published.row: published.before for published in PUBLISHED if published.before is not None}
    shared = [name for name in published_bleu if name in here]
    lines = [["row", "published perplexity", "published BLEU", "rank", "perplexity here", "BLEU here", "rank"]]
    for row, perplexity, before, after in sorted(PUBLISHED, key=lambda published: -(published.before or 0)):
        bleu = "did not converge" if before is None else f"{before} → {after}"
        ours = scored.get(row)
        line = [row, perplexity, bleu, _rank(row, {name: published_bleu[name] for name in shared})]
        line += [_spread(ours.multi30k, _perplexity, ".2f") if ours else "not complete"]
        line += [_spread(ours.multi30k, _bleu, ".2f") if ours else "not complete"]
        lines.append([*line, _rank(row, {name: here[name] for name in shared})])
    same, total = concordance([(here[name], published_bleu[name]) for name in shared])
    agreement = f" {same} of {total} pairs of rows are in the same order." if total else ""
    return f"""## Next to the published table

WMT14 English-German, newstest2014, BLEU before → after unknown words are replaced; only the order can be compared.
Ranks are among the rows that both have, by BLEU before replacement.{agreement}

{markdown(lines)}"""


def _rank(name: str, values: Mapping[str, float]) -> str:
    """1 for the highest; ties share the better rank."""
    return str(1 + sum(value > values[name] for value in values.values())) if name in values else "–"


def _orders(differences: Sequence[Difference | None]) -> str:
    """The published orders beside ours, each as far as its rows are complete; `differences` are those of ORDERS."""
    title = "## Which of the paper's orders hold"
    pairs = [(order, ours) for order, ours in zip(ORDERS, differences, strict=True) if ours is not None]
    if not pairs:
        return f"{title}\n\nNo two of their rows are complete yet."
    several = any(len(ours.seeds) > 1 for _, ours in pairs)
    lines = [["better in the paper", "than", "by", "here by", "p", *(["seeds"] if several else []), "outcome"]]
    for order, ours in pairs:
        line = [order.better, order.worse, f"{order.published:.1f}", ours.shown, ours.chances]
        lines.append([*line, *([str(len(ours.seeds))] if several else []), ours.outcome])
    outcomes = [ours.outcome for _, ours in pairs]
    counts = ", ".join(f"{outcomes.count(one)} {plural}" for one, plural in OUTCOMES.items())
    return f"""{title}

Of {len(pairs)} orders of Luong et al.'s Tables 1 and 4, {counts}. p: sacreBLEU's paired bootstrap over the sentences,
1,000 resamples, of each seed; an order holds, or is reversed, if every seed has p < {LIMIT}.

{markdown(lines)}"""


def _choices(differences: Sequence[Difference | None]) -> str:
    """What changing one option alone brings, as far as both rows are complete; `differences` are those of CHOICES."""
    pairs = [(choice, ours) for choice, ours in zip(CHOICES, differences, strict=True) if ours is not None]
    if not pairs:
        return ""
    lines = [["option", "row", "than", "here by", "p", "seeds", "the row is"]]
    words = {"holds": "better", "reversed": "worse", "within noise": "within noise"}
    for choice, ours in pairs:
        line = [choice.option, choice.row, choice.plain, ours.shown, ours.chances, str(len(ours.seeds))]
        lines.append([*line, words[ours.outcome]])
    return f"""## What one option brings

Pairs of rows that differ in one option alone, of which the second has the plain one; p as above.

{markdown(lines)}"""


def markdown(lines: Table) -> str:
    """A Markdown table; the first line is its head."""
    head, *body = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))


def _bleu(result: Result) -> float:
    return result.bleu


def _perplexity(result: Result) -> float:
    return result.perplexity


def _mean(results: Sequence[Result], value: Callable[[Result], float]) -> float:
    return statistics.fmean(value(result) for result in results)


def _spread(results: Sequence[Result], value: Callable[[Result], float | None], form: str) -> str:
    """The mean, ± the standard deviation if there are several seeds; a dash if there are no values."""
    values = [number for result in results if (number := value(result)) is not None]
    if not values:
        return "–"
    deviation = f" ± {statistics.stdev(values):{form}}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):{form}}{deviation}"
