"""nmt-translate with a tiny random model: what goes in, what comes out, and what is said about mistakes."""

import gzip
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli.average import main as average
from nmt.cli.shortlist import main as shortlist
from nmt.cli.translate import main
from nmt.decoding.reading import Reader
from tests.cli.conftest import refused, translated
from tests.random_model import exported, save_random_model

TEXT = ["A dog runs across the green field.", "Two men are reading.", "Is the boy playing with a ball?"]
HOSTILE = (
    b"\xef\xbb\xbfA dog runs.\r\n\n   \nA dog runs.\n\xf0\x9f\x98\x80\x00\x07\r\x0b\x0c\xc2\x85\xe2\x80\xa8x\n"
    + b"the green field " * 10
    + b"\nTwo men"
)  # 7 lines: a byte-order mark, Windows line ends, blank lines, controls, a long line, no line end at the end


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder's model, whose configuration asks for beams of 3."""
    return save_random_model(tmp_path_factory.mktemp("run") / "best.safetensors", sentences=TEXT)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.txt"
    path.write_bytes(HOSTILE)
    return path


def test_an_empty_file_gives_an_empty_file(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert main(["--model", str(model), "--input", str(tmp_path / "empty"), "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_bytes() == b""


def test_options_of_the_search(model: Path, source: Path) -> None:
    plain = translated(model, source)
    assert translated(model, source, "--beam-size", "3", "--max-length-ratio", "0.5", "--batch-tokens", "7") == plain
    other = translated(model, source, "--beam-size", "2", "--length-penalty", "none", "--max-length-ratio", "2")
    assert other != plain
    assert len(other) == 7


def test_samples(model: Path, source: Path) -> None:
    drawn = translated(model, source, "--sample")
    assert len(drawn) == 7
    assert drawn[1] == drawn[2] == ""
    assert drawn == translated(model, source, "--sample", "--seed", "42", "--temperature", "1", "--batch-tokens", "7")
    assert drawn != translated(model, source, "--sample", "--seed", "41")
    greedy = translated(model, source, "--beam-size", "1")
    assert translated(model, source, "--sample", "--top-k", "1") == greedy
    assert translated(model, source, "--sample", "--top-p", "1e-9") == greedy
    rows = [
        line.split(" ||| ") for line in translated(model, source, "--sample", "--n-best", "5")
    ]  # above the beam of 3
    assert [int(index) for index, *_ in rows] == [0] * 5 + [1, 2] + [3] * 5 + [4] + [5] * 5 + [6] * 5
    assert [float(score) for *_, score in rows[:5]] == sorted((float(score) for *_, score in rows[:5]), reverse=True)


def test_prefixes(capsys, model: Path, source: Path, tmp_path: Path, monkeypatch) -> None:
    prefix = tmp_path / "prefix.txt"
    prefix.write_text("Two men\n\n\nA dog runs\n\nIs the\n\n", encoding="utf-8")
    plain, forced = translated(model, source), translated(model, source, "--prefix", str(prefix))
    assert [
        line.startswith(beginning) for line, beginning in zip(forced, prefix.read_text().split("\n"), strict=False)
    ] == [True] * 7
    assert [forced[index] == plain[index] for index in range(7)] == [False, True, True, False, True, False, True]

    prefix.write_text("Two men\n", encoding="utf-8")
    (message,) = refused(capsys, main, "--model", model, "--input", source, "--prefix", prefix)
    assert f"--prefix {prefix} has 1 line and --input {source} has 7" in message
    output = tmp_path / "out"
    with source.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        (message,) = refused(capsys, main, "--model", model, "--prefix", prefix, "--output", output)
    assert "there are fewer prefixes than lines of text: line 2 has none" in message
    assert not output.exists()


def test_what_is_only_for_sampling(capsys, model: Path, source: Path) -> None:
    options = ("--temperature", "0.5", "--top-k", "3", "--top-p", "0.5", "--seed", "1")
    messages = refused(capsys, main, "--model", model, "--input", source, *options)
    assert len(messages) == 5  # how many there are, and each
    for option in options[::2]:
        assert sum(f"{option} has an effect only with --sample" in message for message in messages) == 1


def test_scores_follow_a_tab(model: Path, source: Path) -> None:
    rows = [line.split("\t") for line in translated(model, source, "--scores")]
    assert [text for text, _ in rows] == translated(model, source)
    assert all(float(score) < 0 for place, (text, score) in enumerate(rows) if text and place != 4)
    assert rows[1] == ["", "0.0000"]
    assert rows[4][1] == "0.0000"  # of what no vocabulary has, it stays as it is


def test_n_best_lists_name_their_line(model: Path, source: Path) -> None:
    rows = [line.split(" ||| ") for line in translated(model, source, "--n-best", "3")]
    assert [int(index) for index, _, _ in rows] == [0] * 3 + [1, 2] + [3] * 3 + [4] + [5] * 3 + [6] * 3
    assert [text for _, text, _ in rows[5:8:3]] == [translated(model, source)[3]]
    assert [float(score) for *_, score in rows[:3]] == sorted((float(row[2]) for row in rows[:3]), reverse=True)


def run(*options: object, **keywords: object) -> subprocess.Popen:
    program = "import sys; from nmt.cli.translate import main; sys.exit(main())"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program, *map(str, options)]
    return subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, stderr=-1, **keywords)


@pytest.mark.slow
def test_a_pipe_in_a_locale_without_utf8(model: Path, source: Path) -> None:
    with run("--model", exported(model)) as process:
        output, errors = process.communicate(HOSTILE)
    assert errors.count(b"\n") == errors.count(b"warning: ") == 2
    assert output.decode("utf-8").split("\n")[:-1] == translated(exported(model), source)


@pytest.mark.slow
def test_a_program_that_waits_for_its_answers(model: Path) -> None:
    """It writes a line and keeps the pipe open; two lines at once have two answers."""
    with run("--model", exported(model), bufsize=0) as process:  # what a buffer has taken, `select` cannot see
        for text, answers in ((b"A dog runs.\n", 1), (b"\nTwo men\n", 2), (b"Two men\nare", 1)):
            process.stdin.write(text)
            process.stdin.flush()
            for _ in range(answers):
                assert select.select([process.stdout], [], [], 60)[0]
                assert process.stdout.readline().endswith(b"\n")
        output, errors = process.communicate(b" reading.")
    assert errors == b""
    assert output.count(b"\n") == 1
    assert process.returncode == 0


def test_flush_translates_each_line_by_itself(model: Path, source: Path, monkeypatch) -> None:
    """Lines that are there already make no difference: the first is answered when only it has been translated."""
    plain = translated(model, source)
    chunks: list[list[str]] = []
    read_chunk = Reader.segments

    def noted(reader: Reader, lines: list[str], *rest: object) -> object:
        written = output_file.read_bytes().count(b"\n")
        assert written == sum(map(len, chunks))  # all that came before has been written out
        chunks.append(lines)
        return read_chunk(reader, lines, *rest)

    monkeypatch.setattr(Reader, "segments", noted)
    output_file = source.with_name("stdout")
    with output_file.open("w") as stdout, source.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["--model", str(model), "--flush"]) == 0
    assert [len(chunk) for chunk in chunks] == [1] * 7
    assert output_file.read_text(encoding="utf-8").split("\n")[:-1] == plain


def test_flush_needs_an_output_that_is_written_line_by_line(capsys, model: Path, source: Path) -> None:
    (message,) = refused(
        capsys, main, "--model", model, "--input", source, "--flush", "--output", source.with_name("out")
    )
    assert "--flush has no effect with --output" in message
    assert main(["--model", str(model), "--input", str(source), "--flush", "--output", "/dev/null"]) == 0


def test_a_terminal_shows_the_progress(capsys, model: Path, source: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    translated(model, source)
    shown = capsys.readouterr().err
    assert "| 7/7 [" in shown
    assert " lines/s]" in shown


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_standard_stream(model: Path, source: Path, closed: str) -> None:
    option = "" if closed == "<&-" else f"--input '{source}'"
    command = f"'{sys.executable}' -m nmt translate --model '{exported(model)}' {option} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"nmt-translate: error: standard {'input' if closed == '<&-' else 'output'} is closed")


def test_every_mistake_is_reported_at_once(capsys, tmp_path: Path) -> None:
    messages = refused(
        capsys,
        main,
        *("--model", tmp_path / "nowhere"),
        *("--input", tmp_path / "missing.txt"),
        *("--output", tmp_path / "no" / "folder.txt"),
        *("--beam-size", "0"),
        *("--length-penalty", "avrage"),
        *("--max-length-ratio", "-1"),
        *("--batch-tokens", "many"),
        *("--n-best", "1.5"),
        *("--device", "gpu"),
        *("--chunk-lines", "0"),
    )
    assert "10 problems" in messages[0]
    text = "\n".join(messages)
    assert "nowhere: no such model file or run folder" in text
    assert "missing.txt: no such file" in text
    assert "there is no folder" in text
    assert "--beam-size is 0; allowed: a whole number, at least 1" in text
    assert "--length-penalty is 'avrage'; nearest: average; allowed: none, average, or a number, at least 0" in text
    assert "--max-length-ratio is -1; allowed: a number, at least 0" in text
    assert "--batch-tokens is 'many'; allowed: a whole number, at least 1" in text
    assert "--n-best is 1.5; allowed: a whole number, at least 1" in text
    assert "--device gpu: unknown; choose one of auto, cpu, cuda, mps, xpu" in text
    assert "--chunk-lines 0: allowed: a whole number, at least 1" in text


def test_invalid_utf8_is_named_by_line_before_any_work(capsys, model: Path, source: Path, monkeypatch) -> None:
    source.write_bytes(b"fine\nfine too\nnot \xff fine\n")
    output = source.with_name("output.txt")
    (message,) = refused(capsys, main, "--model", model, "--input", source, "--output", output)
    assert "source.txt, line 3: not valid UTF-8 (byte 0xff at column 5)" in message
    assert not output.exists()
    with source.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        (message,) = refused(capsys, main, "--model", model, "--output", output)
    assert "standard input, line 3: not valid UTF-8" in message
    assert not output.exists()
    assert list(source.parent.iterdir()) == [source]  # nothing half-written is left


def test_gzip_on_standard_input_is_called_that(capsys, model: Path, source: Path, monkeypatch) -> None:
    source.write_bytes(gzip.compress(b"A dog runs.\n" * 5))
    assert len(translated(model, source)) == 5  # a file is unpacked
    with source.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        (message,) = refused(capsys, main, "--model", model)
    assert "error: standard input is gzip, and only files are unpacked: give its name with --input FILE.gz" in message


def test_neither_the_input_nor_the_model_is_overwritten(capsys, model: Path, source: Path) -> None:
    weights = model.read_bytes()
    hard_link = source.with_name("link.txt")
    os.link(source, hard_link)
    (message,) = refused(capsys, main, "--model", model, "--input", source, "--output", hard_link)
    assert "link.txt: would overwrite --input" in message
    (message,) = refused(capsys, main, "--model", model.parent, "--input", source, "--output", model)
    assert "would overwrite --model" in message
    assert (source.read_bytes(), model.read_bytes()) == (HOSTILE, weights)


def test_no_other_file_of_the_run_is_overwritten(capsys, model: Path, source: Path, tmp_path: Path) -> None:
    """New files beside them are welcome."""
    run = tmp_path / "run"
    files = [run / name for name in ("config.yaml", "state.safetensors", "checkpoints/update-00000007.safetensors")]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"precious")
    shutil.copy(model, run / "best.safetensors")
    for file in files:
        (message,) = refused(capsys, main, "--model", run, "--input", source, "--output", file)
        assert f"would overwrite a file of the model's run, {file}; give another name" in message
        assert file.read_bytes() == b"precious"
    shutil.copy(model, checkpoint := run / "checkpoints" / "update-00000008.safetensors")
    for program, options in (
        (main, ["--model", checkpoint, "--input", source]),
        (average, ["--model", checkpoint, "--model", run]),
        (shortlist, ["--model", checkpoint, "--source", source, "--target", source]),
    ):
        capsys.readouterr()
        assert program([*map(str, options), "--output", str(files[1])]) == 2
        assert f"would overwrite a file of the model's run, {files[1]}; give" in capsys.readouterr().err
        assert files[1].read_bytes() == b"precious"
    assert main(["--model", str(run), "--input", str(source), "--output", str(run / "new.txt")]) == 0


def test_the_target_of_a_link_is_written(model: Path, source: Path) -> None:
    (source.parent / "elsewhere").mkdir()
    source.with_name("output.txt").symlink_to(Path("elsewhere") / "translations")
    assert len(translated(model, source)) == 7
    assert source.with_name("output.txt").is_symlink()


def test_constraints(capsys, model: Path, source: Path, tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("Two men\n\n\nA dog\tball\n\nIs\tthe\n\n", encoding="utf-8")
    plain, constrained = translated(model, source), translated(model, source, "--constraints", str(constraints))
    for line, phrases in zip(constrained, constraints.read_text().split("\n")[:-1], strict=True):
        assert all(phrase in line for phrase in phrases.split("\t"))
    assert [constrained[index] == plain[index] for index in range(7)] == [False, True, True, False, True, False, True]

    arguments = ("--model", model, "--input", source, "--constraints", constraints)
    (message,) = refused(capsys, main, *arguments, "--sample")
    assert "--constraints do not go with --sample" in message
    (message,) = refused(capsys, main, *arguments, "--output", constraints)
    assert f"--output {constraints}: would overwrite --constraints" in message
    constraints.write_text("A dog runs across the green field.\n" * 7, encoding="utf-8")
    messages = refused(capsys, main, *arguments)
    assert "is blank and is to have" in "\n".join(messages)
    constraints.write_text("Two men\n", encoding="utf-8")
    (message,) = refused(capsys, main, *arguments)
    assert f"--constraints {constraints} has 1 line and --input {source} has 7" in message
    assert "a line of constraints may be empty" in message
