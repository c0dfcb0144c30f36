"""No configuration takes more than a second, whoever wrote it: too large, too deep or too many is refused."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nmt.config.loading import read_config
from nmt.config.schema import Config
from nmt.config.yaml_text import DEEPEST, LONGEST_TEXT, MOST_VALUES, YamlError, read_yaml
from nmt.errors import UserError


@pytest.fixture(autouse=True)
def _within_seconds() -> Iterator[None]:
    """Processor time of this process alone: other work on the machine does not count."""
    began = time.process_time()
    yield
    assert time.process_time() - began < 5


def test_up_to_the_limits() -> None:
    items = MOST_VALUES - 3  # besides the section, its key and the list
    text = f"a: [{', '.join(['x'] * items)}]"
    assert len(read_yaml(text).value["a"]) == items
    with pytest.raises(YamlError, match="more than 10,000 values"):
        read_yaml(text.replace("[", "[x, "))
    nested = "[" * (DEEPEST - 1) + "x" + "]" * (DEEPEST - 1)
    assert read_yaml(nested).value is not None
    with pytest.raises(YamlError, match="nested too deeply"):
        read_yaml(f"[{nested}]")
    assert len(read_yaml("a: " + "x" * (LONGEST_TEXT - 3)).value["a"]) == LONGEST_TEXT - 3
    with pytest.raises(YamlError, match="longer than 262,144 characters"):
        read_yaml("a: " + "x" * (LONGEST_TEXT - 2))
    with pytest.raises(YamlError, match=r"a key of 5,000 characters; at most 1,000 are allowed") as error:
        read_yaml("? " + "x" * 5000)
    assert error.value.line == 1


@pytest.mark.parametrize("name", ["/dev/zero", "large.yaml"])
def test_a_file_without_an_end_is_not_read_to_its_end(name: str, tmp_path: Path) -> None:
    path = tmp_path / name  # /dev/zero stays itself
    if name == "large.yaml":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(UserError, match=r"over 262,144 bytes, too large for a configuration"):
        read_config(path)


@pytest.mark.parametrize(
    "snippet",
    [
        "training: {max_epochs: 2, freeze: [" + "x, " * 2000 + "]}",
        "training: {max_epochs: 2}\n" + "".join(f"optimizr{n}: 1\n" for n in range(4800)),
        "data:\n  train:\n" + "  - {sorce: 5}\n" * 700,
    ],
    ids=["wrong entries", "unknown keys", "wrong sections"],
)
def test_many_problems_are_told_up_to_a_hundred(snippet: str, messages: Callable[..., list[str]]) -> None:
    problems = messages(snippet)
    assert len(problems) == 101
    assert problems[-1] == "there are more problems than these 100"


def test_long_values_are_shortened_in_messages(messages: Callable[..., list[str]], load: Callable[..., Config]) -> None:
    long = "x" * 100_000
    section = "{" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}"
    for override in (f"training.optimizer.name={long}", f"seed={section}", f"data.train=[{long}", f"{long}=1"):
        problems = messages("name: demo", override)
        assert problems
        assert all(len(message) < 2000 for message in problems)
    assert load("name: demo", f"data.valid.source={long}").data.valid.source.name == long
