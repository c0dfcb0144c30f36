"""`nmt.train`: nmt-train for programs, which give values instead of texts and expect nothing of theirs to change."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from nmt.errors import UserError, refuse
from nmt.experiment.request import read_request
from nmt.experiment.training import Trained, run
from nmt.signals import Interrupted

_one_at_a_time = Lock()


def train(
    config: Path | str,
    *,
    settings: Mapping[str, Any] | None = None,
    output: Path | str | None = None,
    init_from: Path | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: torch.device | str = "auto",
) -> Trained:
    """Train a model as `nmt-train` does, with the same log, files, and results.

    `config`: a YAML file, or the name of an example. `settings`: keys of the configuration that have other values here,
    such as {"training.max_epochs": 5}; a mapping as a value replaces the whole section, and relative paths start at the
    current folder. The other arguments are the command's options: the run folder (by default runs/NAME), the model file
    or run folder whose weights training starts from, whether to continue the run in the folder (or start it, if there
    is none) or to replace it, and auto, cpu, or cuda.

    One training at a time may run in a process, since PyTorch has one source of random numbers; it starts at the
    configuration's seed. A run that is resumed sets PyTorch's number of threads to the one that it began with.

    Raises UserError with everything that is wrong, before corpora are read; for what is wrong with these, or with the
    disk or the memory; and where training diverges. Ctrl-C raises KeyboardInterrupt, and SIGTERM and SIGHUP raise
    SystemExit, once the state is saved from which `resume` continues; a program's handlers of these signals are back
    when training has ended.
    """
    for name, path in (("config", config), ("output", output), ("init_from", init_from)):
        if path == "":  # of a variable that is not set; it would be the current folder
            raise UserError(f"{name}: the path is empty")
    for name, flag in (("resume", resume), ("overwrite", overwrite)):
        if not isinstance(flag, bool):  # a text such as "no" would be true, and replace a run
            raise UserError(f"{name} is {flag!r}; it must be True or False")
    options = _as_options({} if settings is None else settings)
    paths = [None if path is None else Path(path) for path in (output, init_from)]
    request = read_request(
        Path(config),
        settings=options,
        output=paths[0],
        init_from=paths[1],
        resume=resume,
        overwrite=overwrite,
        device=str(device),
    )
    request = replace(request, output=request.output.absolute())  # whatever folder the program goes to meanwhile
    if not _one_at_a_time.acquire(blocking=False):
        raise UserError(
            "another training runs in this process; train one after the other, or in processes of their own"
        )
    try:
        with _as_in_a_command():
            return run(request)
    except Interrupted as interruption:
        if interruption.exit_code == 128 + signal.SIGINT:
            raise KeyboardInterrupt(str(interruption)) from None
        raise SystemExit(interruption.exit_code) from None
    finally:
        _one_at_a_time.release()


def _as_options(settings: Mapping[str, Any]) -> list[str]:
    """The settings as the command has them: "KEY=VALUE" with VALUE in JSON, which YAML includes.

    Raises UserError with all problems.
    """
    if not isinstance(settings, Mapping):
        raise UserError(f"settings is {settings!r}; it must be a mapping of keys to values")
    options, problems = [], []
    for key, value in settings.items():
        try:
            options.append(f"{key}={json.dumps(value, default=_plain, ensure_ascii=False)}")
        except (TypeError, ValueError) as error:
            problems.append(f"settings: {key} is {value!r}, which a configuration cannot hold ({error})")
    refuse(problems)
    return options


def _plain(value: Any) -> Any:
    """What JSON has for a mapping, for numbers of NumPy or PyTorch, and for a path."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else os.fspath(value)


@contextmanager
def _as_in_a_command() -> Iterator[None]:
    """Compute in float32, with gradients, and on the device that is given, whatever the program has set."""
    number, device = torch.get_default_dtype(), torch.get_default_device()
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(number)
        torch.set_default_device(None if device.type == "cpu" else device)
