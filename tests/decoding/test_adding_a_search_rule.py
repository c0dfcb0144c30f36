"""Adding a search rule: a class in search/rules.py with its line in `rules_of` there, and a key in the schema.

What a program and nmt-translate can ask for comes with the key. That all searches obey is shown in `test_forbidden.py`.
"""

import inspect
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nmt.decoding.search.choices import NEVER
from nmt.decoding.search.hypotheses import Array
from nmt.decoding.search.rules import Rule
from tests.conftest import copy_with
from tests.random_model import save_random_model, text


class NotTwiceInARow(Rule):
    """No token right after itself."""

    def forbid(self, log_probabilities: Array, written: Array, sentences: Array) -> None:
        np.put_along_axis(log_probabilities, written[:, -1:], NEVER, axis=1)


ADDITIONS = {  # file: (the line before which they stand, what is added)
    "decoding/search/rules.py": [
        ("class NoUnknown(Rule):", f"{inspect.getsource(NotTwiceInARow)}\n\n"),
        (
            "    if decoding.suppress_unknown:",
            "    if decoding.not_twice_in_a_row:\n        rules.append(NotTwiceInARow())\n",
        ),
    ],
    "config/schema.py": [
        (
            "    suppress_unknown: bool = False",
            '    not_twice_in_a_row: bool = False\n    """No piece follows itself."""\n',
        )
    ],
}
LINES = 9
PROGRAM = """
from pathlib import Path
from nmt import TranslationOptions, Translator
from nmt.cli.translate import main

lines, translator = Path("text").read_text().splitlines(), Translator.load("model.safetensors")
for value in (None, True):
    for (best,) in translator.translate(lines, TranslationOptions(not_twice_in_a_row=value)):
        print(best.text, *best.tokens, sep="\\t")
main(["--model", "model.safetensors", "--input", "text"])
main(["--model", "model.safetensors", "--input", "text", "--not-twice-in-a-row"])
"""


@pytest.mark.slow
def test_a_program_and_the_command_can_ask_for_it(tmp_path: Path) -> None:
    copy_with(ADDITIONS, tmp_path)
    save_random_model(tmp_path / "model.safetensors")
    (tmp_path / "text").write_text(text(LINES))

    command = [sys.executable, "-c", PROGRAM]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300).stdout
    lines = printed.splitlines()
    assert len(lines) == 4 * LINES
    free, obeying, by_command, obeying_command = (lines[start : start + LINES] for start in range(0, len(lines), LINES))
    assert any(map(repeats, free))
    assert not any(map(repeats, obeying))
    assert by_command == [line.partition("\t")[0] for line in free]
    assert obeying_command == [line.partition("\t")[0] for line in obeying]


def repeats(line: str) -> bool:
    _, *pieces = line.split("\t")
    return any(one == other for one, other in itertools.pairwise(pieces))
