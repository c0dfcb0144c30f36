"""The commands in the documents: which there are, what becomes of them, and a run of them all, as they are written.

    python -m tests.documented                              # make commands
    python -m tests.documented docs/serving.md --demo RUN   # one document, with RUN, a run folder, as the demo

A command stands in a fenced block of bash, or behind "$ " in one of console. Those of a document run in their order, in
a copy of the repository that has a trained demo, and the files that documents speak of (`lay_out`). A YAML block whose
first line is a comment with a file's name is written to that file. A server runs to the end of its document. Trainings
by a starter's settings, which take hours, end after a few validations.
`tests/test_documents.py` runs the short commands, with a tiny model.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.loading import read_config
from nmt.models.model_file import load_model, save_model
from tests.conftest import ROOT, write_lines

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "data/README.md", "notebooks/README.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("research/*.md")),
]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
SHOWN = 20  # lines of a command that fails
ENDING = 60  # seconds for a server to end
PATIENCE = 1800  # seconds for a command, 60 of these for a server to answer

# What is run only when it is asked for, by name: which commands, and why. The first that fits counts.
ELSEWHERE = {
    "network": (r"pip(-audit)? |make (setup|data)\b|get_multi30k|onnxruntime-web", "downloads something"),
    "suites": (r"make (test|check|torture|docs|notebooks)\b|-m tests\.|run_notebooks", "the tests themselves"),
    "gpu": (r"--device cuda", "needs a GPU"),
    "endless": (r": (tensorboard|jupyter lab|python -m http.server) ", "serves a person's browser until it is stopped"),
    "slurm": (r"sbatch ", "needs Slurm"),
    "docker": (r"docker ", "needs Docker"),
    "multi30k": (r"multi30k|(benchmarks\.|configs/research/)attention_table", "needs Multi30k, and minutes to hours"),
    "others": (r"wmt_news10k|histnorm|sigmorphon|: (set|language)=", "needs files of others that data/README.md names"),
    "measures": (r"benchmarks[/.]", "measures for minutes to hours"),
    "scale": (r"examples/(ray_data|spark)", "needs the extra scale"),
    "subword-nmt": (r"training.md.*(subword-nmt|--tokenize none)", "needs subword-nmt, a program of others"),
}
# Our own that do not train or serve; not those of documents in which each needs what came before it.
SHORT = (
    r"(?!docs/(tutorial|evaluation|adding-attention)).*: ((echo|printf) .* \| )?"
    r"(printf|mkdir|cp |nmt-(?!serve|train (?!--list-configs)))"
)


class Block(NamedTuple):
    """A fenced block: its language, "" if it has none, its lines, and the number of the first one."""

    language: str
    text: str
    line: int


class Command(NamedTuple):
    """A command as it is written, with the lines that it goes on over, and where."""

    document: str
    line: int
    text: str

    @property
    def elsewhere(self) -> str | None:
        """The name in ELSEWHERE; None if it can be run here."""
        return next(
            (name for name, (pattern, _) in ELSEWHERE.items() if re.search(pattern, f"{self.document}: {self.text}")),
            None,
        )

    @property
    def is_short(self) -> bool:
        return self.elsewhere is None and bool(re.match(SHORT, f"{self.document}: {self.text}"))


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a document."""
    for match in FENCE.finditer(text):
        indent, language, body = match.groups()
        plain = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        yield Block(language, plain, text.count("\n", 0, match.start()) + 2)


def commands_of(block: Block, document: str) -> Iterator[Command]:
    """The commands of a block; "…" stands for those that count on from the one before, as in --shard 2/8."""
    text, before = block.text, ""
    if block.language == "console":
        text = "".join(line.removeprefix("$ ") if line.startswith("$ ") else "\n" for line in text.splitlines(True))
    whole = r"for .*\n(?:.*\n)*?done|.*<<'(\w+)'\n(?:.*\n)*?\2|.* '\n(?:.*\n)*?'.*|(?:.*\\\n)*.*"
    for match in re.finditer(rf"^({whole})\n", text, re.MULTILINE):
        written, line = match[1], block.line + text.count("\n", 0, match.start())
        if written == "…":
            last, count = map(int, re.findall(r"(\d+)/(\d+)", before)[0])
            for number in range(last + 1, count + 1):
                yield Command(document, line, before.replace(f"{last}/{count}", f"{number}/{count}"))
        elif written and not written.startswith("#"):
            before = written
            yield Command(document, line, written)


def commands(path: Path) -> list[Command]:
    """The commands of a document, in their order."""
    document = path.relative_to(ROOT).as_posix()
    command_blocks = [
        block for block in blocks(path.read_text(encoding="utf-8")) if block.language in ("bash", "console")
    ]
    return [command for block in command_blocks for command in commands_of(block, document)]


def named_files(text: str) -> dict[str, str]:
    """The configurations that a document shows with their names, such as "# my.yaml"."""
    yaml_texts = [block.text for block in blocks(text) if block.language == "yaml"]
    return {match[1]: block for block in yaml_texts if (match := re.match(r"# (\w+\.yaml)\n", block))}


# ------------------------------------------------------------------------------------------- what documents speak of


def lay_out(folder: Path) -> None:
    """Make the files that documents speak of, in a folder with runs/demo, which is every model, and data/synthetic."""
    words = re.findall(r"[a-z]{2,}", " ".join(path.read_text(encoding="utf-8") for path in DOCUMENTS))
    lines = [" ".join(words[start : start + 7]) for start in range(0, 7 * 440, 7)]
    for name, part in (("train", lines[:400]), ("valid", lines[400:420]), ("test", lines[420:])):
        write_lines(folder / f"{name}.en", part)
        write_lines(folder / f"{name}.de", [line[::-1] for line in part])
    shutil.copyfile(folder / "train.en", folder / "other.en")
    shutil.copyfile(folder / "test.de", folder / "mono.de")
    for name in ("test.out", "new.out", "old.out"):
        shutil.copyfile(folder / "test.de", folder / name)
    write_lines(
        folder / "huge.en", (folder / "data" / "synthetic" / "test.en").read_text(encoding="utf-8").splitlines()[:40]
    )
    forms = [f"{word},N,{word}s" for word in sorted(set(words))[:400]]
    write_lines(folder / "paradigms.csv", ["Lemma,Features,Form", *forms])
    write_lines(folder / "film.en.srt", ["1", "00:00:01,000 --> 00:00:02,500", "<i>The old dog sleeps .</i>", ""])
    (folder / "sets").mkdir()
    for kind in ("source", "right", "wrong"):
        shutil.copyfile(folder / f"test.{'en' if kind == 'source' else 'de'}", folder / "sets" / f"negation.{kind}")
    for part in ("train", "valid", "test"):
        shutil.copyfile(folder / f"{part}.en", folder / f"{part}.source")
        shutil.copyfile(folder / f"{part}.de", folder / f"{part}.target")
    shutil.copyfile(folder / "test.en", folder / "new.en")
    mine = (ROOT / "configs" / "my_files.yaml").read_text(encoding="utf-8").replace("../data/my_files/", "")
    mine = mine.replace("name: my_files", "name: my_first_model")
    (folder / "my.yaml").write_text(mine, encoding="utf-8")
    new = mine.replace("my_first_model", "new")
    new = re.sub(r"^(subwords|model):.*\n((  .*)?\n)*", "", new, flags=re.MULTILINE)  # to fine-tune: another model's
    (folder / "new.yaml").write_text(new, encoding="utf-8")
    size = read_config(folder / "my.yaml").config.model.embedding_size
    for side in ("en", "de"):
        known = sorted(set((folder / f"train.{side}").read_text(encoding="utf-8").split()))[:300]
        write_lines(folder / f"vectors.{side}.txt", [f"{word} {' '.join(['0.1'] * size)}" for word in known])
    (folder / "MODEL").symlink_to("runs/demo")
    for name in (
        "mine",
        "my_files",
        "my_first_model",
        "en-de",
        "first_try",
        "forms",
        "a",
        "b",
        "new",
        "seed1",
        "seed2",
        "seed3",
    ):
        (folder / "runs" / name).symlink_to("demo")
    model = load_model(folder / "runs" / "demo" / "best.safetensors")
    back = model.config.data.model_copy(update={"source_language": "de", "target_language": "en"})
    model = model._replace(config=model.config.model_copy(update={"data": back}))
    (folder / "runs" / "de-en").mkdir()
    save_model(folder / "runs" / "de-en" / "best.safetensors", model)


ADDING = ROOT / "docs" / "adding-attention.md"


def add_the_example(folder: Path) -> None:
    """Do in a copy of the repository what docs/adding-attention.md says: its class, line, test, and oracle."""
    code, line, test, oracle = (
        block.text for block in blocks(ADDING.read_text(encoding="utf-8")) if block.language == "python"
    )
    imports, test = test.split("\n\n\n")
    factor = '        "distance": {"attention.score": "distance"},\n'
    insertions = [  # the file, a line of it, what comes before and behind that line
        ("nmt/models/scores.py", "SCORES: dict[str, type[Score]] = {\n", f"{code}\n\n", line),
        ("tests/models/test_attention.py", "import math\n", "", f"{imports}\n"),
        ("tests/oracle/equations.py", "SCORES: dict.* = {.*\n", f"{oracle}\n\n", '    "distance": distance,\n'),
        ("tests/oracle/cases.py", '    "score": {\n', "", factor),
    ]
    for name, place, before, behind in insertions:
        source = (folder / name).read_text(encoding="utf-8")
        (found,) = re.finditer(f"^{place}" if ".*" in place else f"^{re.escape(place)}", source, re.MULTILINE)
        changed = f"{source[: found.start()]}{before}{found[0]}{behind}{source[found.end() :]}"
        (folder / name).write_text(changed, encoding="utf-8")
    with open(folder / "tests" / "models" / "test_attention.py", "a", encoding="utf-8") as file:
        file.write(f"\n\n{test}")


# ----------------------------------------------------------------------------------------------------- running them

OF_STARTERS = {"max_updates: 30000": "max_updates: 100", r"validate_every: \d+ updates": "validate_every: 50 updates"}


def before_training(command: str, folder: Path) -> None:
    """Remove what stands for the run that a command makes, and have it end soon where its settings are a starter's."""
    runs = re.findall(r"train .*--output runs/(\w+)", command)
    for name in re.findall(r"train .*--config ([\w./-]+\.yaml)", command):
        if (folder / name).is_file():  # made by a command before
            text = (folder / name).read_text(encoding="utf-8")
            if not re.search("--dry-run|--output|name=", command):
                runs += re.findall(r"^name: ([\w.-]+)", text, re.MULTILINE)
            for setting, shorter in OF_STARTERS.items():
                text = re.sub(setting, shorter, text)
            (folder / name).write_text(text, encoding="utf-8")
    for run in runs:
        for stand_in in (folder / "runs").glob(f"{run}*" if f"{run}$" in command else run):  # runs/seed$seed
            if stand_in.is_symlink():
                stand_in.unlink()


def start_server(command: str, servers: ExitStack, **options: Any) -> int:
    """Start a server, to end with `servers`, and wait until it answers; returns 0, or the exit code if it has ended."""
    port = (re.findall(r"--port (\d+)", command) or ["5000"])[0]
    server = subprocess.Popen(["bash", "-c", f"exec {command}"], **options)
    servers.callback(server.wait, ENDING)
    servers.callback(server.terminate)  # before that
    for _ in range(PATIENCE // 60):
        if server.poll() is not None:
            return server.returncode
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
            return 0
        except OSError:
            time.sleep(2)
    return 1


def run_document(path: Path, folder: Path, *, included: Sequence[str]) -> int:
    """Run the commands of a document in `folder`; print a line for each, and return how many failed."""
    listed = commands(path)
    if path == ADDING:
        add_the_example(folder)
    for name, text in named_files(path.read_text(encoding="utf-8")).items():
        (folder / name).write_text(text, encoding="utf-8")
    if any(re.match(r"nmt-train --config demo(?!.*(--dry-run|--output|name=))", command.text) for command in listed):
        (folder / "runs" / "demo").rename(folder / "demo.before")  # the document makes it
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment["PATH"] = f"{folder / '.venv' / 'bin'}{os.pathsep}{environment['PATH']}"
    failed = 0
    with ExitStack() as servers:
        for command in listed:
            where = f"{command.document}:{command.line}"
            if (name := command.elsewhere) is not None and name not in included:
                print(f"not run  {where}  {command.text}\n         ({ELSEWHERE[name][1]})", flush=True)
                continue
            before_training(command.text, folder)
            started = time.perf_counter()
            code, lines = _run(command.text, servers, cwd=folder, env=environment)
            seconds = time.perf_counter() - started
            print(f"{f'{seconds:.0f} s' if not code else 'FAILED':7}  {where}  {command.text}", flush=True)
            if code:
                failed += 1
                print(f"         exit code {code}", *lines[-SHOWN:], sep="\n         ", flush=True)
    return failed


def _run(text: str, servers: ExitStack, **options: Any) -> tuple[int, list[str]]:
    """Run a command, 124 if it takes too long, or start a server; returns the exit code and what it wrote."""
    with tempfile.TemporaryFile("w+") as output:
        options |= {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "text": True}
        if text.startswith("nmt-serve"):
            code = start_server(text, servers, **options)
        else:
            shell = ["timeout", str(PATIENCE), "bash", "-o", "pipefail", "-ec", text]
            code = subprocess.run(shell, **options, check=False).returncode
            if code == 128 + signal.SIGPIPE and "| head " in text:  # what is before head had more to write
                code = 0
        output.seek(0)
        return code, output.read().splitlines()


def copied(folder: Path) -> Path:
    """Copy what a clone would have, with changes that are not committed, and link the environment that runs this."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if part.name != ".ready":
            (folder / ".venv" / part.name).symlink_to(part)
    (folder / ".venv" / ".ready").touch()  # newer than pyproject.toml, so that `make` leaves the environment alone
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.documented", description="Run the commands of the documents."
    )
    parser.add_argument("documents", nargs="*", type=Path, help="by default all")
    parser.add_argument("--demo", type=Path, metavar="RUN", help="a run of configs/demo.yaml; by default one is made")
    parser.add_argument("--with", nargs="+", choices=ELSEWHERE, default=[], dest="included", help="run these as well")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="commands-") as name:
        folder, stock = Path(name) / "clone", Path(name) / "stock"  # always the same clone: runs record its paths
        python = copied(folder) / ".venv" / "bin" / "python"
        if options.demo is None:
            print("making the demo, which most documents speak of", flush=True)
            environment = {**os.environ, "PYTHONPATH": str(folder)}
            subprocess.run([python, "scripts/demo.py"], cwd=folder, check=True, env=environment)
        else:
            subprocess.run([python, "scripts/make_synthetic_corpus.py"], cwd=folder, check=True)
            shutil.copytree(options.demo, folder / "runs" / "demo")
        lay_out(folder)
        folder.rename(stock)
        for path in [path.resolve() for path in options.documents] or DOCUMENTS:
            shutil.copytree(stock, folder, symlinks=True)
            failed += run_document(path, folder, included=options.included)
            shutil.rmtree(folder)
    print(f"failed: {failed} of the commands" if failed else "every command that was run did what it says")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
