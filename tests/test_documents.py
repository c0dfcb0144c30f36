"""What the documents say exists: files behind links, options in commands, figures instead of placeholders, the classes
and keys of docs/models.md; and the score of docs/adding-attention.md works as the page says."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nmt.cli import evaluate, export, train
from nmt.cli.commands import COMMANDS
from nmt.config.allowed import choices, dotted, places
from nmt.config.loading import read_config
from nmt.decoding.translator import Translator
from nmt.models import scores
from nmt.models.decoders import DECODERS
from nmt.models.initial_state import INITIAL_STATES
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from tests.conftest import ROOT, make_synthetic_corpus
from tests.documented import (
    DOCUMENTS,
    ELSEWHERE,
    Block,
    add_the_example,
    before_training,
    blocks,
    commands,
    commands_of,
    lay_out,
)
from tests.random_model import SENTENCES, save_random_model

PARSERS = {program: command.parser() for program, command in COMMANDS.items()}


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "SECURITY.md"], ids=lambda path: path.name)
def test_what_is_named_exists(path: Path) -> None:
    """Files behind links, headings behind #; what a name in backticks that links to a Python file stands for, such as
    [`DotScore`](../nmt/models/scores.py); tests such as `tests/test_files.py::test_a_file`."""
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"@[A-Z0-9]+@", text), "a placeholder was never filled in"
    for target in re.findall(r"\]\(([^)]+)\)", text):
        name, _, place = target.partition("#")
        file = path.parent / name if name else path
        assert target.startswith("https://") or file.exists(), target
        assert not place or target.startswith("https://") or place in places_of(file), target
    named = re.findall(r"\[`?(\w+)`?\]\((?:\.\./)?((?:nmt|tests)/[\w/]+\.py)\)", text)
    if path.parent.name != "research":  # which speaks of former files and of other toolkits' as well
        named += [(name, file) for file, name in re.findall(r"`((?:nmt|tests)/[\w/]+\.py)(?:::(\w+))?`", text)]
    for name, file in named:
        assert (ROOT / file).is_file(), file
        assert not name or name in defined(file), f"{file} defines no {name}"


def places_of(file: Path) -> set[str]:
    """What may stand behind # in a link to a document."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def defined(file: str) -> set[str]:
    """The functions, classes, and annotated names of a Python file."""
    nodes = list(ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))))
    names = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    targets = [node.target for node in nodes if isinstance(node, ast.AnnAssign)]
    return names | {target.id for target in targets if isinstance(target, ast.Name)}


def command_lines() -> Iterator[tuple[str, str]]:
    """Every command line of ours in the documents and in the headers of the configurations."""
    ours = "|".join(PARSERS)
    for path in DOCUMENTS:
        for command in commands(path):
            line = command.text.replace("\\\n", " ")
            yield from (
                (path.name, command_line)
                for command_line in re.findall(rf"(?:^|\| |\.venv/bin/)((?:{ours}) [^>]*)", line)
            )
    for path in (ROOT / "configs").rglob("*.yaml"):
        text = re.sub(r"\\\n[# ]*", " ", path.read_text(encoding="utf-8"))
        for line in re.findall(rf"^#(?: Command:)? *((?:{ours}) -.*)$", text, re.MULTILINE):
            yield path.name, line


def test_commands_have_the_options_that_they_show(capsys: pytest.CaptureFixture[str]) -> None:
    lines = list(command_lines())
    assert len(lines) >= 60
    wrong = []
    for document, line in lines:
        program, *arguments = shlex.split(line, comments=True)
        if "--list-configs" in arguments:  # which would list them
            continue
        try:
            _, problems = PARSERS[program].read(arguments)
        except SystemExit:
            problems = [capsys.readouterr().err]
        wrong += [f"{document}: {line}: {problem}" for problem in problems]
    assert wrong == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_say_what_they_are_so_that_no_command_is_overlooked(path: Path) -> None:
    for block in blocks(path.read_text(encoding="utf-8")):
        assert block.language in ("bash", "console", "json", "python", "text", "yaml"), f"line {block.line}"
        if block.language == "text":
            assert not re.search(r"^(nmt|make|python|pip|nmt-\w+) [^|]*$", block.text, re.MULTILINE), (
                f"line {block.line}"
            )


def test_whatever_is_not_run_has_a_reason_that_is_still_needed() -> None:
    listed = [command for path in DOCUMENTS for command in commands(path)]
    assert {command.elsewhere for command in listed} == {None, *ELSEWHERE}
    assert len([command for command in listed if command.elsewhere is None]) > 40
    assert len([command for command in listed if command.is_short]) > 20


def test_commands_of_a_block() -> None:
    loop, here = "for a in b; do\n  c\ndone", "cat > d <<'END'\ne\nEND"
    program = "python -c '\nprint(1)\n\nprint(2)\n' g"
    block = Block("bash", f"{loop}\n{here}\n{program}\nf\n", 1)
    assert [command.text for command in commands_of(block, "page")] == [loop, here, program, "f"]
    block = Block("bash", "a --shard 2/4 \\\n  b\n\n# what follows\n…\nc  # d\n", 10)
    assert [(command.line, command.text) for command in commands_of(block, "page")] == [
        (10, "a --shard 2/4 \\\n  b"),
        (14, "a --shard 3/4 \\\n  b"),
        (14, "a --shard 4/4 \\\n  b"),
        (15, "c  # d"),
    ]
    shown = Block("console", "$ a\nits output\n$ b\n", 1)
    assert [command.text for command in commands_of(shown, "page")] == ["a", "b"]


@pytest.mark.parametrize(
    ("command", "replaced"),
    [
        ("nmt-train --config my.yaml", {"mine"}),
        ("torchrun --nproc-per-node 4 -m nmt train --config my.yaml --output runs/four", {"four"}),
        ("for seed in 1 2; do nmt-train --config my.yaml --output runs/seed$seed; done", {"seed1", "seed2"}),
        ("nmt-train --config my.yaml --dry-run", set()),
    ],
)
def test_a_training_finds_its_folder_free_and_ends_soon(tmp_path: Path, command: str, replaced: set[str]) -> None:
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    for name in ("mine", "four", "seed1", "seed2"):
        (tmp_path / "runs" / name).symlink_to("demo")
    text = (ROOT / "configs" / "my_files.yaml").read_text(encoding="utf-8").replace("name: my_files", "name: mine")
    (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
    before_training(command, tmp_path)
    left = {path.name for path in (tmp_path / "runs").iterdir()}
    assert left == {"demo", "mine", "four", "seed1", "seed2"} - replaced
    shorter = read_config(tmp_path / "my.yaml").config.training
    assert (shorter.max_updates, shorter.validate_every) == (100, "50 updates")


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what documents speak of, where a tiny model with random weights is the demo's."""
    folder = tmp_path_factory.mktemp("stock")
    (folder / "runs" / "demo").mkdir(parents=True)
    save_random_model(folder / "runs" / "demo" / "best.safetensors")
    make_synthetic_corpus(folder / "data" / "synthetic", train=400, valid=5, test=5)
    lay_out(folder)
    shutil.copyfile(folder / "data" / "synthetic" / "test.de", folder / "runs" / "demo" / "test.de")
    return folder


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if any(command.is_short for command in commands(path))])
def test_short_commands_run(path: Path, stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, and in this process where they are ours. That nmt-init tries a training is tested with it."""
    monkeypatch.setattr("nmt.experiment.training.dry_run", lambda request, log: iter(["time: measured"]))
    folder = tmp_path / "here"
    shutil.copytree(stock, folder, symlinks=True)
    monkeypatch.chdir(folder)
    for command in commands(path):
        if command.is_short:
            assert run_here(command.text, monkeypatch) == 0, f"{command.document}, line {command.line}: {command.text}"


def run_here(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command, with what is piped into it; returns its exit code."""
    feeding, _, program = re.sub(r"\\\n|  +# .*", " ", text).rpartition(" | ")
    if program.split()[0] not in PARSERS:
        return subprocess.run(["bash", "-c", text], cwd=Path.cwd(), check=False).returncode
    name, *arguments = shlex.split(program, comments=True)
    if name == "nmt-synthetic":
        arguments += ["--output", "beside"]  # the stock's corpus is smaller
    with open("fed", "w+", encoding="utf-8") as fed:
        subprocess.run(["bash", "-c", feeding], stdout=fed, check=True)
        fed.seek(0)
        monkeypatch.setattr(sys, "stdin", fed)
        try:
            return COMMANDS[name].main(arguments)
        except SystemExit as end:  # of an option such as --list-configs
            return int(end.code or 0)


def test_the_program_that_compares(
    stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one of docs/evaluation.md, with as many sentences, old and new, as the table and the page then say."""
    for name in ("test.en", "test.de", "old.out", "new.out"):
        shutil.copyfile(stock / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    listed = blocks((ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8"))
    (program,) = (block.text for block in listed if block.language == "python")
    exec(program, {})
    sentences = len(Path("test.en").read_text(encoding="utf-8").splitlines())
    assert f"{sentences} sentences" in capsys.readouterr().out
    assert f"{sentences} sentences" in Path("report.html").read_text(encoding="utf-8")


def test_the_program_that_runs_an_export(
    stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one of docs/runtime.md, with ONNX Runtime alone, writes what the model's greedy search does."""
    monkeypatch.chdir(tmp_path)
    assert export.main(["--model", str(stock / "runs" / "demo"), "--output", "exported.safetensors"]) == 0
    listed = blocks((ROOT / "docs" / "runtime.md").read_text(encoding="utf-8"))
    (program,) = (block.text for block in listed if block.language == "python")
    assert "nmt" not in program
    exec(program.replace("The old dog sleeps .", SENTENCES[1]), {})  # which has nothing that the vocabulary lacks
    limits = {"max_length_ratio": 2.0, "max_length_extra": 0}
    [[best]] = Translator.load("exported.safetensors").translate([SENTENCES[1]], beam_size=1, **limits)
    assert len(best.text) > 10
    assert capsys.readouterr().out.startswith(best.text)  # which has to end where the program writes another token


def test_the_loop_that_trains(stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of docs/training.md, whose model translates."""
    monkeypatch.chdir(tmp_path)
    text = stock / "data" / "synthetic"
    train, valid = (f"{{source: {text / part}.en, target: {text / part}.de}}" for part in ("train", "valid"))
    small = "subwords: {size: 99}\nmodel: {embedding_size: 5, encoder: {hidden_size: 3}, decoder: {hidden_size: 7}}\n"
    languages = "source_language: en, target_language: de"
    Path("my.yaml").write_text(f"name: a\ndata: {{{languages}, train: {train}, valid: {valid}}}\n{small}")
    listed = blocks((ROOT / "docs" / "training.md").read_text(encoding="utf-8"))
    (program,) = (block.text for block in listed if block.language == "python" and "build_model" in block.text)
    exec(program, {})
    assert len([*Translator.load("mine.safetensors").translate(SENTENCES)]) == len(SENTENCES)


def test_contributors_are_shown_names_that_exist() -> None:
    """In CONTRIBUTING.md's table, what has a capital or _ is defined."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = page[page.index("| to add |") :].split("\n\n")[0].splitlines()[2:]
    assert len(rows) >= 7
    package = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "nmt").rglob("*.py"))
    for name in re.findall(r"`(?:\w+\.)?([A-Z]\w+|_\w+)`", "".join(rows)):
        assert re.search(rf"^ *(?:class|def) {name}\b|^{name}\b.* = ", package, re.MULTILINE), name


def test_promises_and_equations_name_tests() -> None:
    """Each line of the table of docs/reliability.md, and each equation of a paper; that these exist is tested above."""
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    promises = page[page.index("| Promise | Test |") :].split("\n\n")[0].splitlines()[2:]
    assert len(promises) >= 24
    assert all(re.search(r"\| `tests/[\w/]+\.py(?:::\w+)?` \|$", line) for line in promises)
    equations = re.findall(r"^\| .*\]\(\.\./(?:nmt|scripts)/.*$", PAPERS, re.MULTILINE)
    assert len(equations) >= 30
    assert all("](../tests/" in line for line in equations)


def test_results_are_where_configurations_say() -> None:
    """Each "Result:" names a document or says that there is none; the README's figures are those of
    research/results.md, whose records each have a configuration, a signature, a seed, and minutes."""
    for path in (ROOT / "configs").rglob("*.yaml"):
        (result,) = re.findall(r"^# Result: +(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        document = re.search(r"(?:docs|research)/[\w-]+\.md", result)
        assert result == "not trained here." or (document and (ROOT / document.group()).is_file()), path.name
    results = (ROOT / "research" / "results.md").read_text(encoding="utf-8")
    figures = re.findall(r"^\| test_\w+ \|.*$", README, re.MULTILINE)
    assert len(figures) == 2
    assert all(line in results for line in figures)
    records = {}
    table = results[results.index("| set | configuration | BLEU here |") :].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        _, configuration, here, _, signature, seed, minutes = (cell.strip() for cell in line.strip("|").split("|"))
        name = configuration.strip("`")
        records[name] = re.findall(r"\*\*(\d+\.\d+)\*\*", here), minutes
        assert list((ROOT / "configs").rglob(f"{name}.yaml")), line
        assert records[name][0], line
        assert re.search(rf"^- {signature}: .*\bversion:[\d.]+`", results, re.MULTILINE), line
        assert int(seed) > 0, line
        assert float(minutes) > 0, line
    assert len(records) >= 4
    for name, test_set, figure in re.findall(
        r"^\| `(\w+)` \| test_(\d+)_flickr \| \*\*([\d.]+)\*\* \|", results, re.MULTILINE
    ):
        assert records[name][0][("2016", "2017").index(test_set)] == figure


def test_the_readme_lists_every_document() -> None:
    index = README[README.index("| document |") :].split("\n\n")[0]
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == set(re.findall(r"\(docs/([\w-]+\.md)\)", index))


def test_commands_are_installed() -> None:
    """The entry points, and nothing else, have the names of the commands."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    points = re.findall(r'^(nmt-\w+) = "nmt\.cli\.start:main"$', project, re.MULTILINE)
    assert sorted(points) == sorted(PARSERS)
    assert all(parser.prog == name for name, parser in PARSERS.items())


# --------------------------------------------------------------------------------------------------- docs/models.md

MODELS = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
ADDING = (ROOT / "docs" / "adding-attention.md").read_text(encoding="utf-8")
PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
KEYS = {dotted(place.path) for place in places()}


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_keys_exist(path: Path) -> None:
    """Every key in backticks, such as `model.decoder.type`, and the word behind it, if there is one."""
    text = path.read_text(encoding="utf-8")
    for key, value in re.findall(
        r"`((?:data|subwords|model|training|decoding)(?:\.\w+)+)(?:: ([\w-]+)|: [^`]+)?`", text
    ):
        assert key.removesuffix(".0") in KEYS, key
        assert not value or value in words(key), f"{key}: {value}"


def words(key: str) -> set[str]:
    """The words that may stand behind the key, in whichever variant of its section."""
    schemas = [place.schema for place in places() if dotted(place.path) == key]
    booleans = {"true", "false"} if any(schema.get("type") == "boolean" for schema in schemas) else set()
    return booleans.union(*map(choices, schemas))


FAMILIES = {"score": SCORES, "scope": SCOPES, "type": DECODERS, "initial_state": INITIAL_STATES}


@pytest.mark.parametrize("key", FAMILIES)
def test_every_member_has_a_row_with_its_class(key: str) -> None:
    family: Any = FAMILIES[key]
    for name, kind in family.items():
        rows = re.findall(rf"^\| `{re.escape(name)}` \|.*\[`(\w+)`\].*\|$", MODELS, re.MULTILINE)
        assert rows == [kind.__name__], name


def test_keys_of_the_model_are_in_the_document() -> None:
    keys = [key for key in KEYS if re.match(r"model\.(attention|decoder|encoder)\.", key)]
    assert [key for key in keys if f"`{key}" not in MODELS] == []


# ----------------------------------------------------------------------------------------- docs/adding-attention.md


def texts(language: str) -> list[str]:
    """The blocks of the page in a language."""
    return [block.text for block in blocks(ADDING) if block.language == language]


@pytest.fixture
def distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's class, as if it stood in nmt/models/scores.py, and in its SCORES."""
    (code,) = (block for block in texts("python") if block.startswith("class "))
    assert '"distance": DistanceScore,' in ADDING
    namespace = dict(vars(scores))
    exec(code, namespace)
    monkeypatch.setattr(scores, "DistanceScore", namespace["DistanceScore"], raising=False)
    monkeypatch.setitem(SCORES, "distance", namespace["DistanceScore"])


@pytest.mark.usefixtures("distance")
def test_the_test_of_the_example() -> None:
    """With its own imports, and those of the file that it goes to."""
    (code,) = (block for block in texts("python") if "def test_" in block)
    namespace: dict[str, Any] = {"torch": torch, "nn": nn}
    exec(code, namespace)
    namespace["test_distance_by_hand"]()


@pytest.mark.slow
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    """What the page prints, in a copy of the repository, and the tests that it then says to run."""
    for name in ("nmt", "tests", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    add_the_example(tmp_path)
    (line,) = (command.text for command in commands(ROOT / "docs" / "adding-attention.md") if "pytest" in command.text)
    program, *arguments = shlex.split(line)
    assert program == "python"
    done = subprocess.run([sys.executable, *arguments, "-q"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.usefixtures("distance")
def test_the_example_trains(here: Path) -> None:
    """The page's three commands, on a smaller corpus and for a few updates."""
    (configuration,) = texts("yaml")
    Path("my.yaml").write_text(configuration, encoding="utf-8")
    _, training, evaluation = next(block for block in texts("bash") if "nmt-eval" in block).splitlines()
    make_synthetic_corpus(Path("data/synthetic"), train=200, valid=3, test=2)
    few = ["--set", "subwords.size=100", "--set", "training.max_updates=2", "--device", "cpu"]
    assert train.main([*shlex.split(training)[1:], *few]) == 0
    assert evaluate.main([*shlex.split(evaluation)[1:], "--max-length-ratio", "1", "--device", "cpu"]) == 0
