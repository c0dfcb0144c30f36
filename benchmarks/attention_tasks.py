"""The two tasks that every row of the attention table is trained on, each by the product's own commands.

A training lies in a folder of its own, whose name has the recipe's hash: with another recipe or other corpora it is
another folder, so that results never mix. What came out is kept apart from the weights, small enough to be put under
version control: a training whose result is kept is done, wherever it was made; another is continued from where it was.
The module knows one training at a time, and nothing of the table.
"""

import hashlib
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.attention_rows import Row
from nmt.config.loading import read_config
from nmt.config.schema import Config
from nmt.data.corpus import digests, read_lines
from nmt.decoding.options import TranslationOptions
from nmt.decoding.scoring import score
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.evaluation.alignments import alignment_scores
from nmt.files import written_atomically
from nmt.models.model_file import load_model
from nmt.pharaoh import read_gold
from nmt.training.run_folder import METRICS, STATE
from nmt.training.states import read_state

ROOT = Path(__file__).resolve().parent.parent
TRANSLATIONS, SCORES = "translations.txt", "scores.json"


class Task(NamedTuple):
    """A recipe, a test set, and perhaps the gold alignments of the test set in Pharaoh format."""

    name: str
    config: Path
    source: Path
    reference: Path
    gold: Path | None = None
    overrides: tuple[str, ...] = ()  # what the recipe changes in the configuration, as values of nmt-train's --set
    of_local_p: tuple[str, ...] = ()  # what it changes besides in the rows of local-p

    def sets(self, row: Row | None = None) -> list[str]:
        """What the recipe changes in the configuration, and the row, as values of nmt-train's --set."""
        if row is None:
            return list(self.overrides)
        return [*self.overrides, *(self.of_local_p if row.scope == "local-p" else ()), *row.overrides]

    def configuration(self, row: Row | None = None) -> Config:
        """That of the recipe, or of a row trained by it."""
        return read_config(self.config, self.sets(row)).config

    @property
    def tokenize(self) -> str:
        """The tokenization of BLEU, here as in validation."""
        return self.configuration().training.validation.tokenize


_MULTI30K, _SYNTHETIC = ROOT / "data" / "multi30k" / "tok", ROOT / "data" / "synthetic"
MULTI30K = Task(
    "multi30k",
    ROOT / "configs" / "research" / "attention_table.yaml",
    _MULTI30K / "test_2016_flickr.lc.norm.tok.en",
    _MULTI30K / "test_2016_flickr.lc.norm.tok.de",
)
SYNTHETIC = Task(
    "synthetic",
    ROOT / "configs" / "research" / "attention_synthetic.yaml",
    _SYNTHETIC / "test.en",
    _SYNTHETIC / "test.de",
    _SYNTHETIC / "test.align",
)


def plan(
    tasks: Sequence[Task], rows: Sequence[Row], *, seeds: Sequence[int], runs: Path, results: Path
) -> list["Training"]:
    """All trainings in the order in which they are done: every row with the first seed, then with the second.

    Raises UserError for every file that is missing.
    """
    corpora = {task: _corpora(task) for task in tasks}
    configurations = {(task, row): configuration(task, row) for task in tasks for row in rows}
    return [
        Training(task, row, seed, runs, results, _hash([configurations[task, row], corpora[task], seed]))
        for seed in seeds
        for row in rows
        for task in tasks
    ]


def configuration(task: Task, row: Row) -> dict[str, Any]:
    """Every key that the recipe and the row set, be it to its default; what a default is worth is the code's."""
    keys = task.configuration(row).model_dump(mode="json", exclude_unset=True)
    data = {key: value for key, value in keys["data"].items() if key not in ("train", "valid", "cache_folder")}
    return {**keys, "name": None, "seed": None, "data": data}  # the seed counts by itself, files by their bytes


def _corpora(task: Task) -> list[str]:
    """Every file that the task reads, as a hash of its bytes."""
    data = task.configuration().data
    pairs = (*data.train, data.valid)
    files = [file for pair in pairs for file in (pair.source, pair.target, pair.alignments) if file is not None]
    files += [task.source, task.reference, *([task.gold] if task.gold else [])]
    return list(digests(files).values())


def _hash(recipe: Any) -> str:
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:8]


class Training(NamedTuple):
    """One row on one task with one seed."""

    task: Task
    row: Row
    seed: int
    runs: Path  # the folder of all trainings
    results: Path  # the folder of what came out of them
    recipe: str  # a hash of all that the result depends on, but for the code: configuration, row, seed and corpora

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.runs / self.row.name / f"seed{self.seed}" / f"{self.task.name}-{self.recipe}"

    @property
    def kept(self) -> Path:
        """The file of the result."""
        return self.results / f"{self.row.name}-seed{self.seed}-{self.task.name}-{self.recipe}.json"

    def train_command(self, *, device: str) -> list[str]:
        sets = [
            *self.task.sets(self.row),
            f"seed={self.seed}",
            f"data.cache_folder={shown(self.runs / '.cache')}",
        ]
        options = [word for override in sets for word in ("--set", override)]
        files = ["--config", shown(self.task.config), "--output", shown(self.folder)]
        return ["nmt-train", *files, *options, "--device", device, "--resume"]

    def evaluate_command(self, *, device: str) -> list[str]:
        files = {"--model": self.folder, "--source": self.task.source, "--reference": self.task.reference}
        files |= {"--output": self.folder / TRANSLATIONS, "--json": self.folder / SCORES}
        words = [word for option, path in files.items() for word in (option, shown(path))]
        return ["nmt-eval", *words, "--tokenize", self.task.tokenize, "--device", device]

    def result(self) -> "Result | None":
        """What came out, once it has."""
        try:
            return Result(**json.loads(self.kept.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except TypeError as error:
            raise UserError(f"{self.kept}: of another version of this benchmark ({error}); remove it") from None

    def run(self, *, device: str, threads: int) -> "Result":
        """Train from wherever it was left, score, and record. Raises CalledProcessError when a command fails."""
        execute(self.train_command(device=device), threads=threads)
        execute(self.evaluate_command(device=device), threads=threads)
        result = measure(self)
        self.results.mkdir(parents=True, exist_ok=True)
        with written_atomically(self.kept) as file:
            json.dump(asdict(result), file, indent=1, ensure_ascii=False)
            file.write("\n")
        return result


@dataclass(frozen=True)
class Result:
    """What one training came to."""

    row: str
    task: str
    seed: int
    recipe: str
    perplexity: float  # of the validation corpus, for the best model
    bleu: float  # of the test set
    signature: str
    parameters: int
    minutes: float  # of training and validation
    target_tokens_per_second: float  # the median of the log's lines
    alignment_error_rate: float | None  # None where there are no gold alignments, or there is no attention
    machine: str
    threads: int
    pytorch: str
    precision: str
    translations: list[str]  # of the test set


def measure(training: Training) -> Result:
    """Read what the commands left in the run folder, and compare the alignments."""
    folder, task, row = training.folder, training.task, training.row
    bleu = json.loads((folder / SCORES).read_text(encoding="utf-8"))["bleu"]
    records = [json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()]
    speeds = [record["target_tokens_per_second"] for record in records if record["split"] == "train"]
    where = read_state(folder / STATE).numbers["surroundings"]
    translator = Translator.load(folder)
    aligned = task.gold is not None and row.score != "none"
    return Result(
        row=row.name,
        task=task.name,
        seed=training.seed,
        recipe=training.recipe,
        perplexity=load_model(folder).training["validation"]["perplexity"],
        bleu=bleu["score"],
        signature=bleu["signature"],
        parameters=sum(parameter.numel() for parameter in translator.models[0].parameters()),
        minutes=records[-1]["seconds"] / 60,
        target_tokens_per_second=statistics.median(speeds),
        alignment_error_rate=alignment_error(translator, task) if aligned else None,
        machine=machine(where["device"]),
        threads=where["threads"],
        pytorch=where["PyTorch"],
        precision=where["precision"],
        translations=list(read_lines(folder / TRANSLATIONS)),
    )


def alignment_error(translator: Translator, task: Task) -> float | None:
    """AER of the model's hard alignments of the test set, from forced decoding of the references, against the gold."""
    assert task.gold is not None
    pairs = zip(read_lines(task.source), read_lines(task.reference), strict=True)
    how = TranslationOptions(alignments=True, end_links="best")  # the rule of the rows that are there
    scores = score(translator, pairs, how)
    predicted = [scored.alignment.links for scored in scores if scored.alignment is not None]
    return alignment_scores(predicted, read_gold(read_lines(task.gold), name=str(task.gold))).error_rate


def execute(command: Sequence[str], *, threads: int) -> None:
    """Print and run one of the product's commands, and wait for it, whatever comes; raises CalledProcessError."""
    print(f"$ {shlex.join(command)}", flush=True)
    program, *arguments = command
    beside = Path(sys.executable).parent / program  # the virtual environment need not be activated
    process = subprocess.Popen([beside, *arguments], cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    try:
        code = process.wait()
    except BaseException:
        process.terminate()  # a training then saves its state
        process.wait()
        raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def shown(path: Path) -> str:
    """The path as a command run in the repository's folder needs it."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def machine(device: str) -> str:
    """What the training ran on, as people call it."""
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    models = [line.partition(":")[2].strip() for line in _processor_lines() if line.startswith("model name")]
    return f"{models[0] if models else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _processor_lines() -> Iterator[str]:
    with open("/proc/cpuinfo", encoding="utf-8") if Path("/proc/cpuinfo").exists() else open(os.devnull) as file:
        yield from file
