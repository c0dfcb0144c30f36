"""The task for measuring speed and memory: the reference configuration, its variants, and their options.

It knows the configuration and the command line; it does not import PyTorch, so that a program that only starts others
and watches their memory stays small itself.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config.contradictions import contradictions
from nmt.config.loading import read_config
from nmt.config.problems import Problem
from nmt.config.schema import Config

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "configs" / "multi30k_en_de_luong.yaml"
TEST_SOURCE, TEST_TARGET = (ROOT / "data" / "multi30k" / f"test_2016_flickr.{side}" for side in ("en", "de"))
DEVICES = ("cpu", "cuda")

# What each variant sets in the configuration. An encoder with 256 units per direction has 512 units per layer.
VARIANTS: dict[str, tuple[str, ...]] = {
    "reference": (),
    "lstm_luong_general": (
        "model.encoder.cell=lstm",
        "model.encoder.layers=2",
        "model.decoder.cell=lstm",
        "model.decoder.layers=2",
        "model.attention.score=general",
    ),
    "local_p": ("model.attention.scope=local-p",),
    "no_input_feeding": ("model.decoder.input_feeding=false",),
}


class Task(NamedTuple):
    """What to train, and how to compute it."""

    config: Path
    variant: str
    overrides: tuple[str, ...]
    precision: str
    kernels: str
    device: str
    threads: int | None  # None: PyTorch's choice

    @property
    def sets(self) -> list[str]:
        """What to set in the configuration; later entries win."""
        computing = [f"training.precision={self.precision}", f"training.kernels={self.kernels}"]
        return [*VARIANTS[self.variant], *computing, *self.overrides]

    def load(self, checks: Sequence[Callable[[Config], list[Problem]]] = ()) -> Config:
        """The configuration. Raises UserError for every mistake in it."""
        config, sources = read_config(self.config, self.sets)
        sources.refuse([problem for check in (contradictions, *checks) for problem in check(config)])
        return config

    @property
    def arguments(self) -> list[str]:
        """The options that pass this task to the process of another benchmark."""
        words = ["--config", str(self.config), "--variant", self.variant, "--device", self.device]
        words += ["--precision", self.precision, "--kernels", self.kernels]
        words += [word for override in self.overrides for word in ("--set", override)]
        return words if self.threads is None else [*words, "--threads", str(self.threads)]


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `chosen_task` reads."""
    group = parser.add_argument_group("what to train, and how")
    group.add_argument("--variant", choices=list(VARIANTS), default="reference", help="default: reference")
    group.add_argument("--device", choices=DEVICES, default="cpu", help="default: cpu")
    group.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="default: float32")
    group.add_argument("--kernels", choices=("auto", "plain", "fused"), default="auto", help="default: auto")
    add_threads_option(group)
    group.add_argument(
        "--config", type=Path, default=REFERENCE, metavar="FILE", help="another configuration than the reference task's"
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="set a key of the configuration, after the variant's keys; may be repeated",
    )


def add_threads_option(group: argparse._ActionsContainer) -> None:
    """Add --threads."""
    group.add_argument("--threads", type=positive, metavar="T", help="threads on the CPU (default: PyTorch's choice)")


def chosen_task(options: argparse.Namespace) -> Task:
    """The task that the options of `add_task_options` describe."""
    overrides = tuple(options.overrides)
    computing = (options.precision, options.kernels, options.device, options.threads)
    return Task(options.config, options.variant, overrides, *computing)


def positive(text: str) -> int:
    """A whole number above 0, for argparse, which reports any other text."""
    if not text.isdecimal() or not 0 < int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1,000,000,000")
    return int(text)
