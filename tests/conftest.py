"""Fixtures and helpers that every test may use."""

import gc
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coverage
import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from nmt.config.schema import Config
    from nmt.data.batch import Indices
    from nmt.data.planning import Lengths
    from nmt.data.store import PairedIds

ROOT = Path(__file__).resolve().parent.parent
# How fast a machine is says nothing about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
ONLY_POSIX = re.compile(
    r"\b(fcntl|resource|termios|forked|fork|mkfifo|umask|SIG(HUP|KILL|PIPE)|tests\.(fuzz|torture))\b|/dev/|/proc/"
)


def pytest_configure(config: pytest.Config) -> None:
    """Keep graphs of models in a folder of the tests, also those of programs that they start; but matplotlib's list of
    the system's fonts, which takes seconds to make, in one that stays. And wait for no disk: no test is about a power
    failure, except those that watch what is flushed."""
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="nmt-tests-")
    os.environ["MPLCONFIGDIR"] = str(ROOT / "build" / "matplotlib")
    os.fsync = lambda _: None  # type: ignore[assignment]


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Where there is no fork, as on Windows, leave out files of tests that name what only POSIX has."""
    is_test = collection_path.name.startswith("test_") and not hasattr(os, "fork")
    return (is_test and ONLY_POSIX.search(collection_path.read_text(encoding="utf-8")) is not None) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, which makes a great many objects that stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Spare the garbage collector what has been made so far."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _unwritten_memory_is_nan(request: pytest.FixtureRequest) -> Iterator[None]:
    """In the tests of computations: whoever reads a tensor before it is written computes NaN, and not now and then."""
    if {"ops", "models", "oracle"}.isdisjoint(request.path.relative_to(ROOT).parts):
        yield
        return
    import torch

    torch.set_deterministic_debug_mode("error")  # which is what fills it, and imports no compilers
    yield
    torch.set_deterministic_debug_mode("default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow proofs come first, so that at the end no process waits long for another one."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Switch coverage off in slow tests, which take long enough as it is."""
    stopped: list[coverage.Coverage] = []  # in a worker of pytest-xdist, pytest-cov has two
    while item.get_closest_marker("slow") and (measured := coverage.Coverage.current()):
        measured.stop()
        stopped.append(measured)
    try:
        return (yield)
    finally:
        for measured in reversed(stopped):
            measured.start()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real corpora next to the repository; without it the test is skipped."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real corpora in ../shared/data, beside the repository")
    return folder


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """threads(n) sets PyTorch's number of threads; when the test ends, it is as before, whoever has set it."""
    import torch

    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test, as the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights, in a folder as that of a run, which nobody changes."""
    from tests.random_model import save_random_model

    return save_random_model(tmp_path_factory.mktemp("model") / "best.safetensors")


def make_synthetic_corpus(folder: Path, **options: int) -> Path:
    """Write a corpus of the grammar into `folder`, with options such as train=600; returns the folder."""
    from scripts import make_synthetic_corpus as script

    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert script.main(["--output", str(folder), *words]) == 0
    return folder


def copy_with(additions: Mapping[str, Sequence[tuple[str, str]]], folder: Path) -> None:
    """Copy the package into `folder`, and write `additions` into its files: (the line before which it stands, text)."""
    shutil.copytree(ROOT / "nmt", folder / "nmt", ignore=shutil.ignore_patterns("__pycache__"))
    for name, texts in additions.items():
        path = folder / "nmt" / name
        source = path.read_text(encoding="utf-8")
        for place, text in texts:
            assert source.count(f"{place}\n") == 1
            source = source.replace(f"{place}\n", f"{text}{place}\n")
        path.write_text(source, encoding="utf-8")


def flip_a_bit(path: Path) -> None:
    """Of the byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Write a text file; returns its path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def write_texts(folder: Path, texts: Mapping[str, Iterable[str]]) -> Path:
    """Write text files by their names; returns the folder."""
    for name, lines in texts.items():
        write_lines(folder / name, lines)
    return folder


def write_pairs(folder: Path, **parts: Sequence[tuple[str, str]]) -> None:
    """Write the .en and .de of each part, such as train, of a corpus."""
    for name, pairs in parts.items():
        source, target = zip(*pairs, strict=True)
        write_texts(folder, {f"{name}.en": source, f"{name}.de": target})


def data_section(corpus: Path) -> dict[str, Any]:
    """The configuration's `data` section for train and valid, .en and .de, in a folder."""
    train, valid = (
        {"source": str(corpus / f"{name}.en"), "target": str(corpus / f"{name}.de")} for name in ("train", "valid")
    )
    return {"source_language": "en", "target_language": "de", "train": [train], "valid": valid}


def checked_config(path: Path, settings: Iterable[str] = ()) -> "Config":
    """The configuration in a file, whose keys and names of a model go together. Raises UserError if they do not."""
    from nmt.config.contradictions import contradictions
    from nmt.config.loading import read_config
    from nmt.models.combinations import FAMILIES, model_problems

    config, sources = read_config(path, [*settings], families=FAMILIES)
    sources.refuse([*contradictions(config), *model_problems(config)])
    return config


def written_ids(pairs: Iterable[tuple[str, str]], folder: Path, **options: Any) -> "PairedIds":
    """Encode pairs of lines into a new folder, with the options of `write_ids`, and open it."""
    from nmt.data.store import PairedIds, write_ids

    folder.mkdir(parents=True)
    return PairedIds(folder, write_ids(folder, pairs, **options))


def planned(
    source: "Lengths", target: "Lengths", *, seed: int, epoch: int, rows: "Indices | None" = None, **keys: Any
) -> "list[Indices]":
    """The batches of an epoch over pairs with these lengths, as these keys of `training` say."""
    from nmt.config.schema import TrainingConfig
    from nmt.data.planning import plan_batches

    return plan_batches(source, target, TrainingConfig(**keys), seed=seed, epoch=epoch, rows=rows)
