"""Trainings, translations and files on a system that lacks what only POSIX has: `tests/elsewhere` simulates Windows.

On Windows itself nothing is simulated.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.training import dry_run
from tests.conftest import ROOT
from tests.end_to_end.conftest import assert_same

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="the simulation of Windows is one on Linux")
HERE = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
BELOW_A_DAY, ABOVE_A_DAY = 86_300, 86_500

FILES = """
import sys
from pathlib import Path
from nmt import signals
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.files import open_refusing_links, written_atomically
from nmt.training.run_folder import RunFolder
folder = Path(sys.argv[1])
for content in ("oldest", "old", "new"):
    with written_atomically(folder / "state", former=folder / "state.1") as file:
        file.write(content)
        file.flush()
        with written_atomically(folder / "state.2") as other:  # which leaves alone what another process writes
            other.write(content)
(folder / "link").symlink_to(folder / "state")
try:
    open_refusing_links(folder / "link", "a")
except OSError as error:
    print(error.strerror)
pair = {"source": "/a", "target": "/b"}
languages = {"source_language": "en", "target_language": "de"}
config = Config.model_validate({"name": "run", "data": {**languages, "train": [pair], "valid": pair}})
with RunFolder.open(folder / "run", config, resume=False) as run:
    print(run.warnings)
    try:
        RunFolder.open(folder / "run", config, resume=False)
    except UserError as error:
        print(error)
print(sorted(signals.WORDS.values()))
"""

# Several commands in one process, which must have closed the files of one before the next. A dry run times one update.
COMMANDS = """
import json
import sys
from importlib import import_module
from nmt.training import dry_run
dry_run.WARM_UP, dry_run.TIMED = 0, 1
for name, *words in json.loads(sys.argv[1]):
    assert import_module(f"nmt.cli.{name}").main(words) == 0
"""


def elsewhere(folder: Path) -> dict[str, str]:
    """The environment of a program there; what it keeps for later starts is in the folder."""
    others = {name: value for name, value in HERE.items() if name != "XDG_CACHE_HOME"}
    simulated = [str(ROOT / "tests" / "elsewhere")] if sys.platform != "win32" else []
    path = os.pathsep.join([*simulated, str(ROOT)])
    return {**others, "PYTHONPATH": path, "LOCALAPPDATA": str(folder)}


def test_files_and_locks(tmp_path: Path) -> None:
    """Files are closed before they are renamed; age says what was left behind; one training has a run folder."""
    leftovers = {
        tmp_path / f"state.{digit * 32}.partial": age for digit, age in (("0", ABOVE_A_DAY), ("1", BELOW_A_DAY))
    }
    for path, age in leftovers.items():
        path.touch()
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    ended = subprocess.run(
        [sys.executable, "-c", FILES, tmp_path], env=elsewhere(tmp_path), capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    link, warnings, in_use, words = ended.stdout.splitlines()
    assert link == "is a link, and links are not followed here"
    assert (warnings, words) == ("[]", "['interrupted', 'terminated']")
    assert in_use.startswith(f"{tmp_path / 'run'}: in use by another training; wait for it")
    contents = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir() if path.is_file()}
    young = f"state.{'1' * 32}.partial"
    assert contents == {"state": "new", "state.1": "old", "state.2": "new", "link": "new", young: ""}


@pytest.mark.slow
def test_a_training_and_its_translations_are_the_same(
    tiny: Callable[..., Path],
    corpus: Path,
    command: Callable[..., list[str]],
    threads: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """From files to a model and to translations, byte for byte; each training is resumed."""
    threads(1)
    monkeypatch.chdir(tmp_path)
    for name in ("WARM_UP", "TIMED"):
        monkeypatch.setattr(dry_run, name, 1)  # COMMANDS sets them, and they are to be as before in the end
    source, lines = corpus / "test.en", (corpus / "test.en").read_bytes().splitlines(keepends=True)
    config = tiny(training={"max_epochs": 2})
    here, there = (tmp_path / name for name in ("here", "there"))

    def commands(folder: Path) -> list[list[str]]:
        (folder / "made").mkdir(parents=True)
        text = ["--source", corpus / "train.en", "--target", corpus / "train.de", "--output", folder / "made"]
        training = ["train", "--config", config, "--output", folder / "run", "--set"]
        how = ["--model", folder / "run", "--precision", "int8"]  # for which graphs are kept
        all_words = [
            ["init", *text, "--source-language", "en", "--target-language", "de"],
            [*training, "training.max_epochs=1"],
            [*training, "training.max_epochs=2", "--resume"],
            ["translate", *how, "--input", source, "--output", folder / "output"],
        ]
        return [[str(word) for word in words] for words in all_words]

    environment = elsewhere(there)
    program = [sys.executable, "-c", COMMANDS, json.dumps(commands(there))]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
    shutil.rmtree(corpus / "cache")
    monkeypatch.setattr(sys, "argv", ["", json.dumps(commands(here))])
    exec(COMMANDS, {})
    assert_same(here / "run", there / "run")
    for file in ("made/train.en", "made/my.yaml", "output"):
        assert (here / file).read_bytes().replace(b"/here/", b"/there/") == (there / file).read_bytes(), file
    assert any((there / "nmt-toolkit").iterdir())
    translate = command("translate", "--model", there / "run", "--precision", "int8")
    with subprocess.Popen(translate, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for line in lines[:3]:  # each waits for the answer to the one before
            process.stdin.write(line)
            process.stdin.flush()
            answers.append(process.stdout.readline())
        rest, _ = process.communicate(b"".join(lines[3:]), timeout=60)
    assert b"".join(answers) + rest == (here / "output").read_bytes()
    assert process.returncode == 0
