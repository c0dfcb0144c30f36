"""nmt-train: one configuration file → a trained model in a run folder."""

import argparse
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from nmt import signals
from nmt.cli.options import number_within
from nmt.cli.outputs import STANDARD, write_text
from nmt.cli.parser import Parser, command, say
from nmt.devices import DEVICES
from nmt.errors import ToldElsewhere, UserError, collected, refuse
from nmt.examples import description, examples, starters
from nmt.signals import PATIENCE

PROGRAM = "nmt-train"


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Train a translation model from one configuration file.",
        epilog="Exit codes: 0 trained (or nothing left to do), 2 a mistake in what was given, a training that "
        "diverged, or memory or a disk that is too small, 128 + N stopped by signal N, once training has begun with "
        "the state saved, 1 a failure of the program. Several processes: torchrun --nproc-per-node N -m nmt train "
        "and these options.",
    )
    made.add_argument(
        "--config",
        type=Path,
        help="the configuration, required: a YAML file, or the name of an example, whose data are looked for in data/",
    )
    made.add_argument(
        "--list-configs",
        action=_ListConfigs,
        nargs="?",
        choices=["all"],
        default=argparse.SUPPRESS,
        help="list the examples to start from and exit; all: also the recipes of research",
    )
    made.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="set keys of the configuration, such as name=larger model.decoder.hidden_size=512",
    )
    made.add_argument("--output", type=Path, metavar="DIR", help="the run folder (default: runs/<name>)")
    made.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in the folder, also a finished one that is now to be longer; start it if there is none",
    )
    made.add_argument(
        "--overwrite",
        action="store_true",
        help="begin a new run in the folder whatever it holds: remove a former run's states, models, checkpoints and "
        "metrics, and tell which; other files, and the log, stay",
    )
    made.add_argument(
        "--init-from", type=Path, metavar="MODEL", help="fine-tune: start from a model file's or run folder's weights"
    )
    made.add_argument("--dry-run", action="store_true", help="read everything, report, and train nothing")
    made.add_argument(
        "--device", default="auto", metavar="NAME", help=f"where to compute: {', '.join(DEVICES)} (default: auto)"
    )
    made.add_argument(
        "--rank-timeout",
        type=number_within(0.1, 10_000),
        default=PATIENCE,
        metavar="MINUTES",
        help="with several processes: end when another one has not answered for this long, because it hangs; the state "
        f"that was saved last is kept (default: {PATIENCE})",
    )
    return made


class _ListConfigs(argparse.Action):
    """Print the examples and exit, as --version does."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: object, value: Any, *_: object) -> None:
        files = starters() if value is None else examples()
        if not files:
            parser.error("no examples are installed beside the package")
        width = max(map(len, files))
        lines = [f"{name:{width}}  {description(path)}" for name, path in files.items()]
        lines += ["", f"Each is a file with comments: {next(iter(files.values())).parent}"]
        lines.append("For text of your own, nmt-init writes one that suits its size and kind.")
        if value is None:
            lines.append(f"{PROGRAM} --list-configs all lists {len(examples()) - len(files)} recipes of research, too.")
        say("".join(f"{line}\n" for line in lines))
        parser.exit()


def _tell(line: str) -> None:
    """Print a line about a training that is only tried: its warnings to standard error."""
    if line.startswith("warning: "):
        print(line, file=sys.stderr)
    else:
        write_text(STANDARD, f"{line}\n")


@command(PROGRAM, parser, several=True)
def main(options: argparse.Namespace, problems: list[str]) -> int | None:
    from nmt.experiment.request import read_request
    from nmt.experiment.training import dry_run, run
    from nmt.processes import LostProcess

    try:
        if options.config is None:
            problems.append("--config FILE is missing; --list-configs lists examples")
            refuse(problems)
        with collected(problems):
            request = read_request(
                options.config,
                settings=options.overrides,
                output=options.output,
                init_from=options.init_from,
                resume=options.resume,
                overwrite=options.overwrite,
                device=options.device,
            )
        refuse(problems)
        request = replace(request, patience=timedelta(minutes=options.rank_timeout), program=PROGRAM)
        if not options.dry_run:
            run(request)
        elif signals.reports():
            for line in dry_run(request, log=_tell):
                _tell(line)
    except signals.Interrupted as interruption:
        return interruption.exit_code
    except UserError as error:
        if signals.reports() or isinstance(error, LostProcess):
            raise
        raise ToldElsewhere(*error.messages) from error
    return None
