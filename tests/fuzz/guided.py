"""Cases that follow coverage: atheris changes bytes and keeps what reaches new lines of the package.

    python -m tests.fuzz.guided TARGET SECONDS FOLDER

runs one target in this process and writes each distinct finding to FOLDER, its signature in a file beside it. Files of
tensors get their checksum anew after each change, so that it hides nothing. Only the package is instrumented.
"""

import json
import os
import random
import re
import sys
import time
from pathlib import Path

import atheris
import torch  # noqa: F401 - before the package, as neither it nor what it imports is to be instrumented

with atheris.instrument_imports(include=["nmt"]):
    import tests.fuzz.targets

from tests.fuzz.campaign import LARGEST, kept
from tests.fuzz.sealed import Parts, Stored, put_together, taken_apart
from tests.fuzz.worker import SECONDS, bounded

_PARTS = 4096  # bytes of a part at most


def main() -> None:
    """Run a target until its time is up."""
    name, seconds, folder = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]).resolve()
    target = tests.fuzz.targets.TARGETS[name]
    seeds = [*target.seeds(), *(path.read_bytes() for path in kept(name))]
    began = time.monotonic()
    cases = 0
    known: dict[str, int] = {}
    scratch = folder / "scratch"
    corpus = scratch / "corpus"
    corpus.mkdir(parents=True)
    for number, seed in enumerate(seeds):
        (corpus / f"{number}").write_bytes(seed)
    (scratch / "work").mkdir()
    os.chdir(scratch / "work")
    one_case = bounded(target.prepare(scratch / "work"))

    def run(case: bytes) -> None:
        nonlocal cases
        cases += 1
        if cases % 50 == 0:
            (folder / "cases").write_text(str(cases))
        (folder / "running").write_bytes(case)  # what a crash leaves behind
        finding = one_case(case)
        if finding is not None and len(case) < known.get(finding.signature, sys.maxsize):
            known[finding.signature] = len(case)
            place = re.sub(r"[^A-Za-z0-9]+", "-", finding.signature)[:80]
            (folder / f"{place}.case").write_bytes(case)
            (folder / f"{place}.json").write_text(json.dumps(finding._asdict()))
        if time.monotonic() - began > seconds:
            (folder / "cases").write_text(str(cases))
            (folder / "running").unlink()
            os._exit(0)

    options = ["fuzz", str(corpus), f"-timeout={int(20 * SECONDS)}", "-rss_limit_mb=0", f"-max_len={LARGEST >> 4}"]
    options += [f"-artifact_prefix={scratch}/", "-verbosity=0"]
    atheris.Setup(options, run, custom_mutator=_mutated, enable_python_coverage=True)
    atheris.Fuzz()


def _mutated(case: bytes, largest: int, seed: int) -> bytes:
    """Another case: of a file of tensors one of its parts is changed, and its checksum set right."""
    chance = random.Random(seed)
    name, line_end, content = (
        case.partition(b"\n") if case.split(b"\n")[0].endswith(b".safetensors") else (b"", b"", case)
    )
    try:
        parts = taken_apart(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return bytes(atheris.Mutate(case, largest))
    kind = chance.randrange(8)
    if kind == 0 or not parts.tensors or not parts.texts:
        return bytes(atheris.Mutate(case, largest))
    if kind < 5:
        text = chance.choice(sorted(parts.texts))
        old = str(parts.texts[text]).encode()
        new = bytes(atheris.Mutate(old, len(old) + _PARTS)).decode("utf-8", "replace")
        changed = Parts(parts.tensors, {**parts.texts, text: new})
    else:
        tensor = chance.choice(sorted(parts.tensors))
        kept = parts.tensors[tensor]
        new_content = bytes(atheris.Mutate(kept.content, len(kept.content) + _PARTS))
        if kept.type == "U8":
            stored = Stored("U8", [len(new_content)], new_content)
        else:
            stored = kept._replace(content=(new_content + bytes(len(kept.content)))[: len(kept.content)])
        changed = Parts({**parts.tensors, tensor: stored}, parts.texts)
    return name + line_end + put_together(changed)


if __name__ == "__main__":
    main()
