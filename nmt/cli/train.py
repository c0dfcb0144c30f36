"""nmt-train: one configuration file → a trained model in a run folder."""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.train())

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from textwrap import shorten

from nmt.cli import common
from nmt.cli.options import number_in
from nmt.cli.outputs import STANDARD, write_text
from nmt.cli.parsers.parser import say
from nmt.cli.parsers.train import PROGRAM, parser
from nmt.config import json_schema
from nmt.errors import Checking, ToldElsewhere, UserError, caught, checked
from nmt.experiment.request import Request, read_request
from nmt.experiment.training import dry_run, run
from nmt.models.combinations import FAMILIES
from nmt.processes import LostProcess, reported_by_the_first
from nmt.signals import Interrupted, reports
from nmt.training.optim import steering_metrics

LEAST_MINUTES, MOST_MINUTES = 0.1, 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    return common.run(PROGRAM, partial(_command, arguments), several=True)


def _command(arguments: Sequence[str] | None) -> int | None:
    with reported_by_the_first():
        options = parser().parse_args(arguments)
    if options.print_schema:
        schema = json_schema({**FAMILIES, "metric": steering_metrics()})
        if reports():
            say(f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n")
        return None
    try:
        if options.config is None:
            raise UserError("--config FILE is missing; --list-configs lists examples")
        request = checked(_request(options))
        if not options.dry_run:
            run(request)
        elif reports():
            for line in dry_run(request, log=partial(print, file=sys.stderr)):
                write_text(STANDARD, f"{line}\n")
    except Interrupted as interruption:
        return interruption.exit_code
    except UserError as error:
        if reports() or isinstance(error, LostProcess):
            raise
        raise ToldElsewhere(*error.messages) from error
    return None


def _request(options: argparse.Namespace) -> Checking[Request]:
    """Check the arguments, and read the configuration and the model to start from."""
    patience = yield from caught(lambda: rank_timeout(options.rank_timeout), timedelta())
    request = yield from read_request(
        options.config,
        settings=options.overrides,
        output=options.output,
        init_from=options.init_from,
        resume=options.resume,
        overwrite=options.overwrite,
        device=options.device,
    )
    return replace(request, patience=patience, program=PROGRAM)


def rank_timeout(text: str) -> timedelta:
    """How long to wait for another process. Raises UserError if `text` is not an allowed number of minutes."""
    minutes = number_in(text)
    if minutes is not None and LEAST_MINUTES <= minutes <= MOST_MINUTES:
        return timedelta(minutes=minutes)
    raise UserError(
        f"--rank-timeout {shorten(text, 40)}: allowed: a number of minutes, at least {LEAST_MINUTES} and at most "
        f"{MOST_MINUTES:,}"
    )
