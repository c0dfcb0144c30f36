"""The long form of fuzzing: so many minutes a target, half of them guided by coverage where that is worth it.

    python -m tests.fuzz --minutes 10 --target all

prints a line a target and writes the smallest input of each finding into cases/TARGET, which the short form replays.
Exit code 1 when there are findings.
"""

import argparse
import hashlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import CASES, Campaign, Found
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.worker import Finding, Worker

SHRINKING = 60.0  # seconds for all findings of a target
ROWS = "{:<14} {:>9} {:>8} {:>9} {:>8} {:>9}"


def main() -> int:
    options = _parser().parse_args()
    names = list(TARGETS) if options.target == "all" else options.target.split(",")
    if unknown := set(names) - set(TARGETS):
        print(f"no such target: {', '.join(unknown)}; choose of {', '.join(TARGETS)}, or all", file=sys.stderr)
        return 2
    print(ROWS.format("target", "cases", "cases/s", "guided", "seconds", "findings"), flush=True)
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not to be had here: hypothesis alone makes the cases", file=sys.stderr)
    all_found = 0
    for name in names:
        all_found += _fuzz(TARGETS[name], options.minutes * 60, options.seed)
    return 1 if all_found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10, help="a target (default: 10)")
    parser.add_argument("--target", default="all", help=f"all, or some with commas: {', '.join(TARGETS)}")
    parser.add_argument("--seed", type=int, default=None, help="the first seed (default: another each time)")
    return parser


def _fuzz(target: Target, seconds: float, seed: int | None) -> int:
    """Fuzz a target, print its row, and keep what was found; returns how many findings there are."""
    began = time.monotonic()
    guided = target.guided and importlib.util.find_spec("atheris") is not None
    until = began + (seconds / 2 if guided else seconds)
    first_seed = int(time.time()) * 10_000 if seed is None else seed
    cases_guided = 0
    with Campaign(target) as campaign:
        campaign.replay()
        campaign.generate(first_seed=first_seed, go_on=lambda _: time.monotonic() < until)
        if guided:
            cases_guided = _guided(target, seconds / 2, campaign)
        took = time.monotonic() - began
        campaign.shrink(seconds=SHRINKING)
    total = campaign.cases + cases_guided
    print(
        ROWS.format(
            target.name, f"{total:,}", f"{total / took:.1f}", f"{cases_guided:,}", f"{took:.0f}", len(campaign.found)
        ),
        flush=True,
    )
    for failure in campaign.found.values():
        path = _keep(target, failure)
        print(f"  {failure.finding.signature}\n    {path}", flush=True)
        print("".join(f"    {line}\n" for line in failure.finding.detail.splitlines()[-6:]), end="", flush=True)
    return len(campaign.found)


def _guided(target: Target, seconds: float, campaign: Campaign) -> int:
    """Let atheris run cases for so long, again after each crash; adds its findings, and returns how many it ran."""
    until, cases = time.monotonic() + seconds, 0
    while (left := until - time.monotonic()) > 10:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = [sys.executable, "-m", "tests.fuzz.guided", target.name, str(left), name]
            process = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, text=True)
            if (folder / "cases").exists():
                cases += int((folder / "cases").read_text())
            for path in folder.glob("*.json"):
                finding = Finding(**json.loads(path.read_text()))
                known = campaign.found.get(finding.signature)
                case = path.with_suffix(".case").read_bytes()
                if known is None or len(case) < len(known.case):
                    campaign.found[finding.signature] = Found(finding, case)
            if process.returncode == 0:
                return cases
            running = folder / "running"
            if not running.exists():
                raise RuntimeError(f"the guided form of {target.name} does not start:\n{process.stderr[-2000:]}")
            with Worker(target.prepare) as worker:  # by itself, to name it
                finding = worker.run(running.read_bytes()) or Finding(
                    f"the guided form ended with code {process.returncode}", process.stderr[-2000:]
                )
            campaign.found.setdefault(finding.signature, Found(finding, running.read_bytes()))
    return cases


def _keep(target: Target, failure: Found) -> Path:
    """Write the input of a finding where the short form replays it."""
    folder = CASES / target.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.blake2b(failure.finding.signature.encode(), digest_size=6).hexdigest()
    path.write_bytes(failure.case)
    return path


if __name__ == "__main__":
    sys.exit(main())
