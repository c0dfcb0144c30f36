"""Adding a document format: a class that reads it, and its line in FORMATS, all in documents/formats.py."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.random_model import save_random_model, text
from tests.test_layers import PACKAGE

READER = '''
class Numbered:
    """Lines that begin with a number and a tab, which stays."""

    is_marked, language = False, None

    def __init__(self, text: str) -> None:
        self._rows = [line.split("\\t") for line in text.splitlines()]
        self.lines = [row[1] for row in self._rows]

    def written(self, translations):
        return "".join(f"{row[0]}\\t{one.text}\\n" for row, one in zip(self._rows, translations, strict=True))


'''
ADDITIONS = {  # the line before which they stand: what is added
    "class Kind(NamedTuple):": READER.lstrip("\n"),
    '    "text": Kind(lambda text, name: PlainText(text), (".txt",)),': (
        '    "numbered": Kind(lambda text, name: Numbered(text), (".tab",)),\n'
    ),
}
PROGRAM = """
from pathlib import Path
from nmt import Translator
from nmt.cli.translate import main
from nmt.documents.document import translate_document

document = Path("document.tab").read_text()
translator = Translator.load("model.safetensors")
print(translate_document(translator, document, format="numbered"), end="")
assert main(["--model", "model.safetensors", "--input", "document.tab", "--format", "numbered"]) == 0
assert main(["--model", "model.safetensors", "--input", "document.tab", "--format", "text"]) == 0
"""
LINES = 5


@pytest.mark.slow
def test_a_program_and_the_command_know_it(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "nmt", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "nmt" / "documents" / "formats.py"
    source = path.read_text(encoding="utf-8")
    for place, addition in ADDITIONS.items():
        assert source.count(f"{place}\n") == 1
        source = source.replace(f"{place}\n", f"{addition}{place}\n")
    path.write_text(source, encoding="utf-8")
    save_random_model(tmp_path / "model.safetensors")
    lines = text(LINES).splitlines()
    (tmp_path / "document.tab").write_text("".join(f"{number}\t{line}\n" for number, line in enumerate(lines)))

    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
    printed = done.stdout.splitlines()
    by_program, by_command = printed[:LINES], printed[LINES : 2 * LINES]
    assert [line.split("\t")[0] for line in by_program] == ["0", "1", "2", "3", "4"]
    assert by_command == by_program
    assert [line.split("\t")[-1] for line in printed[2 * LINES :]] != [line.split("\t")[-1] for line in by_program]
