"""research/attention_table.md from the results so far: the table, BLEU by length, and the published order next to ours.

Pure text: it knows results, not folders. A row is shown once both of its tasks are done with at least one seed; missing
rows are listed.
"""

import math
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import NamedTuple

from benchmarks.attention_orders import LIMIT, OUTCOMES, Difference
from benchmarks.attention_recipes import Recipe
from benchmarks.attention_rows import CHOICES, ORDERS, PUBLISHED, ROWS, Row, concordance
from benchmarks.attention_tasks import MULTI30K, SYNTHETIC, Result, Task, Training, shown
from benchmarks.length_buckets import Bucket
from nmt.config import Config
from nmt.config.schema import InitialisationSection, UniformInitialisation

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
    example: Training,
) -> str:
    """The whole document. `orders`, `choices`: the differences of ORDERS and CHOICES, None where a row is missing;
    `example`: the run whose commands to show."""
    sections = [
        _introduction(recipe),
        _missing(scored, recipe),
        _main_table(scored),
        _by_length(lengths, scored),
        _beside_published(scored),
        _orders(orders),
        _choices(choices),
        _how(example, recipe),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _introduction(recipe: Recipe) -> str:
    beam = recipe.multi30k.configuration().decoding.beam_size
    return f"""# {recipe.title}

Luong, Pham & Manning's Table 4 (2015, arXiv 1508.04025) with more rows, on small data. Every row is trained with the
same recipe, the same sizes, and the same kind of initial state; only `model.attention` and the type, input feeding, and
order of `model.decoder` differ. `benchmarks/attention_table.py` trains the rows and writes this file.

- **Perplexity** and **BLEU**: Multi30k English-German, tokenized and lowercased. Perplexity per subword piece of the
  validation corpus, for the best model by that measure; BLEU on test_2016_flickr at beam {beam}.
  {_recipe(recipe.multi30k)}.
- **AER** and **synthetic BLEU**: the same row, smaller, on the synthetic corpus, whose gold alignments are known. Each
  target word of the reference is linked to the source word with the most weight when that target word is forced
  (`--end-links best`). AER is that of Och & Ney, where 0 is perfect and 1 is worst. Some words have several gold links,
  which one link per word cannot cover, and a period has one but can be written without looking at it: periods change
  AER by up to 0.12.
  {_recipe(recipe.synthetic)}."""


def _recipe(task: Task) -> str:
    changed = f" with {_quoted(task.overrides)}" if task.overrides else ""
    local_p = f", local-p with {_quoted(task.of_local_p)}" if task.of_local_p else ""
    described = describe_recipe(task.configuration())
    return f"Recipe, [{shown(task.config)}](../{shown(task.config)}){changed}: {described}{local_p}"


def _quoted(overrides: Iterable[str]) -> str:
    return ", ".join(f"`{override}`" for override in overrides)


def describe_recipe(config: Config) -> str:
    """The recipe in a sentence."""
    model, training = config.model, config.training
    schedule = {key: value for key, value in training.schedule.model_dump(mode="json").items() if key != "name"}
    parts = [
        f"{config.subwords.size:,} {config.subwords.type} pieces",
        f"embeddings of {model.embedding_size}",
        f"encoder of {model.encoder.hidden_size} {model.encoder.cell.upper()} units per direction",
        f"decoder of {model.decoder.hidden_size}",
        f"initial state {model.decoder.initial_state}",
        f"{model.initialisation.name} initialization{_range(model.initialisation)}",
        f"dropout {model.decoder.dropout:g}",
        f"{training.optimizer.name} at {training.optimizer.learning_rate:g}",
        " ".join([training.schedule.name, "schedule", *(f"{key} {value}" for key, value in schedule.items())]),
        f"batches of {training.batch_size} {training.batch_by}",
        f"{training.max_epochs} epochs",
        f"label smoothing {training.label_smoothing:g}",
    ]
    return ", ".join(parts)


def _range(start: InitialisationSection) -> str:
    return f" in ±{start.range:g}" if isinstance(start, UniformInitialisation) else ""


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
    spread = " With several seeds: mean ± standard deviation." if several else " One seed per row."
    signatures = {result.signature for row in scored.values() for result in (*row.multi30k, *row.synthetic)}
    notes = f"""Minutes (with validation) and target tokens per second are those of training on Multi30k, whatever else
the machine was doing. For careful measurements of speed, see [performance.md](../docs/performance.md).{spread}
{_input_feeding(scored)}
BLEU: {" · ".join(f"`{signature}`" for signature in sorted(signatures))}.
Multi30k was trained on: {_where(result for row in scored.values() for result in row.multi30k)}.
The synthetic corpus was trained on: {_where(result for row in scored.values() for result in row.synthetic)}."""
    return f"{markdown(lines)}\n\n{notes}" if scored else ""


def _feeding_side_by_side(scored: Mapping[str, Scored]) -> list[Scored]:
    """The rows in the order of ROWS, each one without input feeding right after the one with it."""
    order = list(ROWS)

    def place(scored_row: Scored) -> tuple[int, bool]:
        row = scored_row.row
        return order.index(row._replace(input_feeding=True).name), not row.input_feeding

    return sorted(scored.values(), key=place)


def _input_feeding(scored: Mapping[str, Scored]) -> str:
    """How many rows it helps, among those that exist with it and without it."""
    twins = [(scored.get(row.row._replace(input_feeding=True).name), row) for row in scored.values()]
    pairs = [(fed.multi30k, unfed.multi30k) for fed, unfed in twins if fed and not unfed.row.input_feeding]
    compared = [(pair, common) for pair in pairs if (common := _common_seeds(*pair))[0]]
    if not compared:
        return ""
    bleu = sum(_mean(fed, _bleu) > _mean(unfed, _bleu) for _, (fed, unfed) in compared)
    perplexity = sum(_mean(fed, _perplexity) < _mean(unfed, _perplexity) for _, (fed, unfed) in compared)
    are_left_out = any(len(fed) + len(unfed) > 2 * len(common[0]) for (fed, unfed), common in compared)
    seeds = ", by the seeds that both have" if are_left_out else ""
    return f"""
Of {len(compared)} rows with and without input feeding, {bleu} have higher BLEU with it, and {perplexity} lower
perplexity{seeds}.
"""


def _common_seeds(fed: Sequence[Result], unfed: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    seeds = {result.seed for result in fed} & {result.seed for result in unfed}
    return [result for result in fed if result.seed in seeds], [result for result in unfed if result.seed in seeds]


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
    return f"""{title}

test_2016_flickr in buckets by the number of source words, each scored by itself. This is what attention is for,
and the main figure of both papers (Bahdanau et al. 2014, figure 2; Luong et al. 2015, figure 6).

![BLEU by source length of three models]({lengths.image})

{markdown(lines)}"""


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

Luong et al.'s Table 4, WMT14 English-German, newstest2014: BLEU before → after unknown words are replaced, which
subwords make unnecessary here. Data (4.5 million pairs) and sizes (four layers of 1,000 LSTM units) are different, so
only the order can be compared. Ranks are among the rows that both have, by BLEU before replacement.{agreement}
For our attempts to explain the differences, see results.md on
[input feeding](results.md#input-feeding-and-the-initialization-of-small-models) and on
[local-p](results.md#local-p-where-it-looks).

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
    seeds = "With several seeds: the mean of the differences ± their standard deviation, and p of each seed."
    if not several:
        seeds = "One seed a row: p says what other sentences might change, and nothing of what another seed would."
    text = f"""What attention (`location`) and input feeding bring in Luong et al.'s Table 1, and the pairs of rows that
their Table 4 puts in an order, in BLEU. p is that of sacreBLEU's paired bootstrap over the sentences, with 1,000
resamples (`--compare A,B` has it for other rows). {seeds} An order holds, or is reversed, if every seed says so with
p < {LIMIT}; otherwise, the difference is within noise. (This p is one-sided: about one of 20 pairs of equal models
has less than {LIMIT}, by the chance of the sentences alone.)"""
    return f"""{title}

{fill(text, 120, break_on_hyphens=False, break_long_words=False)}

{markdown(lines)}

Of {len(pairs)} orders, {counts}."""


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
    single = sum(len(ours.seeds) == 1 for _, ours in pairs)
    share = f"All {single} pairs" if single == len(pairs) else f"{single} of the {len(pairs)} pairs"
    text = f"""The same test for all pairs of rows that differ in one option alone, of which the second has dot, global
attention, no input feeding, Luong's decoder, or the order of Bahdanau's authors' code. {share}
have one seed: if their rows were equal, about {single / 20:.0f} of them would have p < {LIMIT}, and what another
seed would change, p does not say."""
    return f"""## What one option brings

{fill(text, 120, break_on_hyphens=False, break_long_words=False)}

{markdown(lines)}"""


def _how(example: Training, recipe: Recipe) -> str:
    device = "cpu"
    table = " ".join(["python -m benchmarks.attention_table", *(["--recipe", recipe.name] if recipe.suffix else [])])
    other = "" if recipe.suffix else f"\n{table} --recipe long  # 16 epochs from ±0.2, some rows with three seeds"
    commands = "\n".join(
        shlex.join(command)
        for command in (example.train_command(device=device), example.evaluate_command(device=device))
    )
    return f"""## How to reproduce

```bash
make data
pip install -c constraints.txt -e '.[plots]'
{table}            # every row; resumes where it stopped
{table} --rows global-dot,none --seeds 3
{table} --compare global-dot,global-general,global-cosine
{table} --report-only{other}
```

These commands train and score one row, here {example.row.name}, with OMP_NUM_THREADS as in the line about the machine:

```bash
{commands}
```"""


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
