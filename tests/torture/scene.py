"""What is tortured: a folder with a tiny corpus, its configuration and a model, and what comes of it undisturbed.

All paths in it are relative, so that each trial has a copy of its own to break.

    corpus/…, train.yaml            a training of 9 updates in run/, with every random state
    model.safetensors, tune.yaml    its best model, and a fine-tuning of it, in run/ too
    translator.safetensors          a random model, with which text is translated in chunks, by a shortlist and more
    pairs.tsv                       a table, of which nmt-init makes the folder data
"""

import json
import random
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml

from nmt.models.model_file import KIND as MODEL
from nmt.tensor_file import read_tensors
from nmt.training.run_folder import PREVIOUS_STATE
from nmt.training.states import read_state
from tests.conftest import write_lines, write_pairs, write_texts
from tests.end_to_end.conftest import is_older, shown, timeless, without_times
from tests.random_model import WORDS, save_random_model, text
from tests.torture.commands import Child, Ended, call, in_a_child, start, start_ranks
from tests.torture.faults import Fault
from tests.torture.operations import Operation

NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "bird": "Vogel", "child": "Junge"}
VERBS = {"sees": "sieht", "hears": "hört"}
RANKS = 2
LINES, CHUNK = 23, 4  # of the text to translate, and of a chunk of it
TRANSLATION = ("out", "out.align")  # the outputs

INIT = ["--input", "pairs.tsv", "--source-language", "en", "--target-language", "de", "--output", "data"]
TRAIN = ["--config", "train.yaml", "--output", "run", "--device", "cpu"]
TUNE = ["--config", "tune.yaml", "--output", "run", "--device", "cpu"]
TRANSLATE = ["--model", "translator.safetensors", "--input", "text", "--output", "out", "--alignments", "out.align"]
TRANSLATE += [
    "--dictionary",
    "dictionary",
    "--replace-unknown",
    "--shortlist",
    "shortlist.safetensors",
    "--constraints",
    "constraints",
]
TRANSLATE += ["--chunk-lines", str(CHUNK), "--beam-size", "2", "--device", "cpu"]


class Job(NamedTuple):
    """A command that writes much, and how to go on with it."""

    program: str
    arguments: list[str]
    first: tuple[str, ...] = ()  # options that are needed until it has saved a state
    makes: str = ""  # the folder that it makes at once, so that it begins anew, or is over

    def start(self, folder: Path, fault: Fault | None = None, *, resume: bool = False) -> Child:
        """Begin, or go on."""
        return start(self.program, self.words(folder, resume=resume), folder, fault=fault)

    def call(self, folder: Path, fault: Fault | None = None, *, resume: bool = False) -> Ended:
        """Begin, or go on, to the end."""
        if resume and self.makes and (folder / self.makes).exists():
            return Ended(0, "", [])
        return self.start(folder, fault, resume=resume).ended()

    def words(self, folder: Path, *, resume: bool) -> list[str]:
        """The options with which it begins or goes on in a folder."""
        has_begun = resume and (folder / "run" / "state.safetensors").exists()
        goes_on = resume and not self.makes
        return [*self.arguments, *(() if has_begun else self.first), *(("--resume",) if goes_on else ())]


JOBS = {
    "training": Job("train", TRAIN),
    "fine-tuning": Job("train", TUNE, ("--init-from", "model.safetensors")),
    "translation": Job("translate", TRANSLATE),
    "making data": Job("init", INIT, makes="data"),
}


class Scene:
    """The folder `begin`, and for each job the folder where nothing has disturbed it, with its operations."""

    def __init__(self, work: Path) -> None:
        """Make everything in `work`, an empty folder."""
        self.work = work
        self.begin = work / "begin"
        _write_texts(self.begin)
        self.operations: dict[str, list[Operation]] = {}
        self._finish("training")
        shutil.copy(self.whole("training") / "run" / "best.safetensors", self.begin / "model.safetensors")
        in_a_child(lambda: save_random_model(self.begin / "translator.safetensors"))
        learn = ["--model", "translator.safetensors", "--source", "text", "--target", "text"]
        few = ["--translations", "5", "--most-frequent", "5", "--output", "shortlist.safetensors"]
        _expect_success(call("shortlist", [*learn, *few], self.begin))
        for job in ("fine-tuning", "translation", "making data"):
            self._finish(job)
        for ended in self.call_ranks(self.copy(self.whole("training by two")), {}):
            _expect_success(ended)

    def whole(self, job: str) -> Path:
        """The folder where nothing has disturbed that job."""
        return self.work / f"whole-{job.replace(' ', '-')}"

    def copy(self, folder: Path) -> Path:
        """Make `folder` one in which nothing has begun."""
        shutil.copytree(self.begin, folder)
        return folder

    def _finish(self, job: str) -> None:
        ended = JOBS[job].call(self.copy(self.whole(job)))
        _expect_success(ended)
        self.operations[job] = ended.operations

    def call_ranks(self, folder: Path, faults: Mapping[int, Fault], *, resume: bool = False) -> list[Ended]:
        """The training by two processes."""
        words = JOBS["training"].words(folder, resume=resume)
        return [child.ended() for child in start_ranks("train", words, folder, RANKS, faults)]

    def stopped(self, job: str, folder: Path, *, at: float) -> Path:
        """Make `folder` one in which the job was killed after that share of its file operations."""
        self.copy(folder)
        ended = JOBS[job].call(folder, Fault("kill", operation=int(at * len(self.operations[job]))))
        assert ended.code == -9, ended.errors
        return folder

    def differences(self, job: str, folder: Path) -> list[str]:
        """What of the job's results in `folder` is not as if nothing had disturbed it; the files' names."""
        whole = self.whole(job)
        if job == "translation":
            changed = [name for name in TRANSLATION if _content(whole / name) != _content(folder / name)]
            return changed + [path.name for path in folder.glob("out.chunks-*")]
        if job == "making data":  # whose report tells times
            names = {path.name for path in whole.glob("data/*")} - {"report.txt"}
            return [name for name in names if _content(whole / "data" / name) != _content(folder / "data" / name)]
        return run_differences(whole / "run", folder / "run")

    def leftovers(self, job: str, folder: Path) -> list[str]:
        """Files that killed processes left in `folder`, and nobody removed."""
        return sorted(_names(folder) - _names(self.whole(job)) - _names(self.begin))


def _names(folder: Path) -> set[str]:
    """All files, but TensorBoard's, whose names are dates, and those in folders that are removed within a day: the
    cache's, and one that nmt-init has not finished."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    passing = re.compile(r"\.cache|tensorboard|data\.\w+\.partial")
    return {str(name) for name in names if not any(map(passing.fullmatch, name.parts[:-1]))}


def run_differences(whole: Path, run: Path) -> list[str]:
    """The names of the files of a run folder that differ from another's in more than times."""
    names = {str(path.relative_to(folder)) for folder in (whole, run) for path in _files(folder)}
    return sorted(name for name in names if not _same(whole / name, run / name))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "tensorboard"] + [
        folder / "tensorboard"
    ]


def _same(left: Path, right: Path) -> bool:
    if left.name in ("train.log", ".lock"):
        return True
    if not (left.exists() and right.exists()):
        return False
    try:
        if left.name == "tensorboard":
            return repr(shown(left.parent)) == repr(shown(right.parent))
        if left.name == "metrics.jsonl":
            return timeless(left) == timeless(right)
        if left.name.startswith("state"):
            return _same_state(left, right) or (left.name == PREVIOUS_STATE and is_older(right, left))
        if left.suffix == ".safetensors":
            return _same_model(left, right)
    except Exception:  # however it is damaged
        return False
    return _without_place(left.read_text(encoding="utf-8"), left) == _without_place(
        right.read_text(encoding="utf-8"), right
    )


def _without_place(text: str, path: Path) -> str:
    """The text of a file without the folder of its trial, whose corpora a configuration names."""
    while path.name != "run":
        path = path.parent
    return text.replace(str(path.parent), "")


def _same_model(left: Path, right: Path) -> bool:
    (mine, my_texts), (theirs, their_texts) = (read_tensors(path, kind=MODEL) for path in (left, right))
    return (
        _without_place(json.dumps(my_texts), left) == _without_place(json.dumps(their_texts), right)
        and mine.keys() == theirs.keys()
        and all(torch.equal(tensor, theirs[name]) for name, tensor in mine.items())
    )


def _same_state(left: Path, right: Path) -> bool:
    """Whether all tensors and numbers are the same, but for times, also in a sum of metrics.jsonl, and folders."""
    mine, theirs = read_state(left), read_state(right)
    for state in (mine, theirs):
        state.numbers["config"] = _without_place(state.numbers["config"], state.path)
    return (
        without_times(mine.numbers) == without_times(theirs.numbers)
        and mine.tensors.keys() == theirs.tensors.keys()
        and all(torch.equal(tensor, theirs.tensors[name]) for name, tensor in mine.tensors.items())
    )


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _expect_success(ended: Ended) -> None:
    if ended.code != 0:
        raise RuntimeError(f"undisturbed, a command ends with {ended.code}:\n{ended.errors}")


def _write_texts(folder: Path) -> None:
    (folder / "corpus").mkdir(parents=True)
    pairs = [
        (f"the {one} {verb} the {two}", f"der {NOUNS[one]} {VERBS[verb]} den {NOUNS[two]}")
        for one in NOUNS
        for two in NOUNS
        for verb in VERBS
    ]
    sentences = text(LINES).splitlines()
    files: dict[str, Sequence[str]] = {
        "text": sentences,
        "constraints": [sentence.partition(" ")[2].partition(" ")[0] for sentence in sentences],
        "dictionary": [f"{word}\t{word.upper()}" for word in WORDS],
    }
    write_pairs(folder / "corpus", train=pairs[:24], valid=pairs[40:46])
    write_texts(folder, files)
    draw = random.Random(1)
    texts = {" ".join(draw.choices(WORDS, k=6)): None for _ in range(300)}
    write_lines(folder / "pairs.tsv", ["en\tde", *(f"{line}\t{line[::-1]}" for line in texts)])
    settings = _settings()
    (folder / "train.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    del settings["model"], settings["subwords"]
    settings["training"] |= {"max_updates": 6}
    (folder / "tune.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


def _settings() -> dict[str, Any]:
    """2 batches an update and 3 updates an epoch; validations within epochs and at their ends; an average."""
    train, valid = ({side: f"corpus/{name}.{side[:2]}" for side in ("en", "de")} for name in ("train", "valid"))
    files = [{"source": part["en"], "target": part["de"]} for part in (train, valid)]
    return {
        "name": "tortured",
        "data": {"source_language": "en", "target_language": "de", "train": files[:1], "valid": files[1]},
        "subwords": {"size": 44, "sampling": {"alpha": 0.1}},
        "model": {"embedding_size": 5, "encoder": {"hidden_size": 3, "dropout": 0.2}, "decoder": {"hidden_size": 7}},
        "training": {
            "optimizer": {"name": "adam", "learning_rate": 0.02},
            "schedule": {"name": "plateau", "metric": "loss", "patience": 0},
            "batch_size": 4,
            "accumulate": 2,
            "max_updates": 9,
            "validate_every": "3 updates",
            "save_every": "2 updates",
            "keep_best": 2,
            "average_best": 2,
            "log_every": 2,
        },
    }
