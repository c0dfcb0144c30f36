"""The options of nmt-train."""

import argparse
from pathlib import Path

from nmt.cli.parsers.parser import Parser, say
from nmt.devices import DEVICES
from nmt.examples import description, examples

PROGRAM = "nmt-train"
MINUTES = "30"  # of waiting for another process, which may be scoring a long line


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Train a translation model from one configuration file.",
        epilog="Exit codes: 0 trained (or nothing left to do), 2 a mistake in what was given, or a training that "
        "diverged, 128 + N stopped by signal N, once training has begun with the state saved, 1 a failure of the "
        "program. Several processes: torchrun --nproc-per-node N -m nmt.cli.train and these options.",
    )
    made.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the configuration, required: a YAML file, or the name of an example, whose data are looked for in data/",
    )
    made.add_argument("--list-configs", action=_ListConfigs, nargs=0, help="list the examples and exit")
    made.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="set a key of the configuration, such as model.decoder.hidden_size=512; may be given several times",
    )
    made.add_argument("--output", type=Path, metavar="DIR", help="the run folder (default: runs/<name>)")
    made.add_argument("--resume", action="store_true", help="continue the run in the folder; start it if there is none")
    made.add_argument(
        "--overwrite",
        action="store_true",
        help="begin a new run in the folder whatever it holds: remove a former run's states, models, checkpoints and "
        "metrics, and tell which; other files, and the log, stay",
    )
    made.add_argument(
        "--init-from",
        type=Path,
        metavar="MODEL",
        help="fine-tune: start from a model file's or run folder's weights",
    )
    made.add_argument("--dry-run", action="store_true", help="read everything, report, and train nothing")
    made.add_argument("--device", choices=DEVICES, default="auto", help="where to compute (default: auto)")
    made.add_argument(
        "--rank-timeout",
        default=MINUTES,
        metavar="MINUTES",
        help="with several processes: end when another one has not answered for this long, because it hangs; the state "
        f"that was saved last is kept (default: {MINUTES})",
    )
    made.add_argument("--print-schema", action="store_true", help="print the JSON schema of the configuration and exit")
    return made


class _ListConfigs(argparse.Action):
    """Print the examples and exit, as --version does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        files = examples()
        if not files:
            parser.error("no examples are installed beside the package")
        width = max(map(len, files))
        lines = [f"{name:{width}}  {description(path)}" for name, path in files.items()]
        lines += ["", f"Each is a file with comments: {next(iter(files.values())).parent}"]
        say("".join(f"{line}\n" for line in lines))
        parser.exit()
