"""Many random lines of any characters, through nmt-translate in a process of its own.

As many lines come out as went in, whatever they hold; with alignments and n-best lists too, each of which names what is
there. Memory stays near that of ordinary sentences. The model is random, and so are the pieces that it writes: with
single bytes among them, which seldom make valid UTF-8.
"""

import random
from pathlib import Path

import pytest
import torch

from nmt.config.schema import Config
from nmt.data.subwords import Subwords
from nmt.models.model_file import ModelFile, save_model
from nmt.models.seq2seq import build_model
from tests.end_to_end.forked import run

pytestmark = pytest.mark.slow

SENTENCES = [
    "A dog runs across the green field.",
    "Two men are sitting on a bench and reading the newspaper.",
    "The woman in the red dress is dancing!",
    "Is the boy playing with a ball?",
]
KINDS = {
    "bpe": {"type": "bpe", "size": 71},
    "bytes": {"type": "bpe", "size": 330, "byte_fallback": True, "normalization": "identity"},
    "words": {"type": "word", "size": 24},
}
EXTRA = 150  # MB of memory that hostile lines may take beyond ordinary ones: a few lines of 10,000 pieces are in memory
MANY = 400  # lines, so that every one of LONG is among them

RANGES = [  # of characters, each range as likely as another; never half of a surrogate pair, and never a line end
    (0x0000, 0x0009),
    (0x000B, 0x001F),
    (0x0020, 0x007E),
    (0x007F, 0x009F),
    (0x00A0, 0x024F),
    (0x0300, 0x036F),  # combining marks
    (0x0590, 0x06FF),
    (0x0E00, 0x0E7F),
    (0x2000, 0x206F),  # spaces, zero-width characters, U+2028, U+2029, marks of direction
    (0x2581, 0x2581),  # ▁, with which sentencepiece marks words
    (0x4E00, 0x9FFF),
    (0xFE00, 0xFEFF),  # variation selectors, byte order mark
    (0xFFF0, 0xFFFF),
    (0x1F1E6, 0x1FAFF),  # emoji and flags
    (0x20000, 0x10FFFF),
]
WORDS = [
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "▁",
    "▁▁",
    "<0x0A>",
    "<0xFF>",
    "⁇",
    "|||",
    " ||| ",
    "0-0",
    "\r",
    "\t",
    "\u2028",
]
LONG = ["😀", "\x00", "▁", "\u0301"]
WARNINGS = ["; --split-sentences translates", "characters that the model does not know"]  # of such lines
LENGTHS = {"bpe": 10_000, "bytes": 2_500, "words": 10_000}  # of a word of them; 😀 has four bytes
BLANK = ["", " ", "\t \t", "\r", "\r\r", " " * 3000, "\u3000\u2003", "\ufeff"]


def word(generator: random.Random) -> str:
    kind = generator.random()
    if kind < 0.3:
        return generator.choice(generator.choice(SENTENCES).split())
    if kind < 0.4:
        return generator.choice(WORDS)
    first, last = generator.choice(RANGES)
    return "".join(chr(generator.randint(first, last)) for _ in range(generator.randint(1, 12)))


def hostile(count: int, length: int) -> list[str]:
    """`count` lines; one in 50 has up to 2,000 words, and one in a hundred a word of `length` characters."""
    generator = random.Random(1924)
    lines = []
    for number in range(count):
        kind = generator.random()
        if number % 50 == 0:
            words = int(2000 ** generator.random()) + 1
            lines.append(generator.choice([" ", "\t", "\r", "  "]).join(word(generator) for _ in range(words)))
        elif number % 100 == 25:
            lines.append(LONG[number // 100 % len(LONG)] * length)
        elif kind < 0.1:
            lines.append(generator.choice(BLANK))
        elif kind < 0.2:
            lines.append("".join(word(generator) for _ in range(generator.randint(1, 5))))
        else:
            lines.append(" ".join(word(generator) for _ in range(generator.randint(1, 12))))
    lines[count // 2] = " ".join(word(generator) for _ in range(2000))
    return lines


def ordinary(count: int) -> list[str]:
    generator = random.Random(7)
    words = [word for sentence in SENTENCES for word in sentence.split()]
    return [" ".join(generator.choices(words, k=generator.randint(1, 20))) for _ in range(count)]


def written(path: Path, lines: list[str]) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def random_model(kind: str, path: Path) -> Path:
    pair = {"source": "a", "target": "b"}
    config = Config.model_validate(
        {
            "name": "random",
            "data": {"source_language": "en", "target_language": "de", "train": [pair], "valid": pair},
            "subwords": KINDS[kind],
            "model": {"embedding_size": 6, "encoder": {"hidden_size": 5}, "decoder": {"hidden_size": 8}},
            "decoding": {"beam_size": 3, "max_length_ratio": 0.1},
        }
    )
    subwords = Subwords.train(SENTENCES, settings=config.subwords)
    torch.manual_seed(8)
    network = build_model(config.model, source_size=subwords.size, target_size=subwords.size)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(20)  # away from the uniform distribution, so that it writes many different pieces
    sizes = (subwords.size, subwords.size)
    save_model(path, ModelFile(config, network.state_dict(), subwords.model, subwords.model, sizes, {}))
    return path


def translate(model: Path, source: Path, *options: object) -> tuple[list[str], int]:
    """The lines that nmt-translate writes, and the most memory that it had, in MB, or 0 where nobody knows."""
    output = source.with_name("output")
    arguments = ["--model", model, "--device", "cpu", "--input", source, "--output", output, *options]
    ended = run("translate", *arguments)
    said = [line for line in ended.errors.splitlines() if not any(warning in line for warning in WARNINGS)]
    assert (ended.code, said) == (0, [])
    return rows(output), ended.peak


def rows(path: Path) -> list[str]:
    content = path.read_bytes()
    assert content.endswith(b"\n")
    lines = content.decode("utf-8").split("\n")[:-1]
    assert all(len(line.splitlines()) <= 1 for line in lines)  # nor a line break of another kind
    return lines


def check_lists(model: Path, source: Path, lines: list[str]) -> tuple[int, list[str]]:
    """Have n-best lists with alignments written and check them; the memory, and the best translations."""
    alignments = source.with_name("alignments")
    listed, memory = translate(model, source, "--n-best", 2, "--alignments", alignments)
    links = rows(alignments)
    assert len(links) == len(listed)
    best: dict[int, str] = {}
    last = 0
    for row, pharaoh in zip(listed, links, strict=True):
        index, _, rest = row.partition(" ||| ")
        text, _, score = rest.rpartition(" ||| ")
        assert int(index) in (last, last + 1)  # every line of the input has its list, in order
        last = int(index)
        assert float(score) <= 0
        best.setdefault(last, text)
        places = [tuple(map(int, link.split("-"))) for link in pharaoh.split()]
        assert all(place < len(lines[last].split()) for place, _ in places)
        assert [target for _, target in places] == sorted({target for _, target in places})
        assert not places or places[-1][1] < len(text.split())
        if text and lines[last].split():
            assert [target for _, target in places] == list(range(len(text.split())))
    assert list(best) == list(range(len(lines)))
    return memory, list(best.values())


@pytest.mark.parametrize("kind", KINDS)
def test_many_random_lines(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, lines = random_model(kind, tmp_path / "model"), hostile(MANY, LENGTHS[kind])
    _, usual = translate(model, written(tmp_path / "ordinary", ordinary(MANY)))
    source = written(tmp_path / "source", lines)
    memory, best = check_lists(model, source, lines)
    assert len(best) == MANY
    assert len(set(best)) > 10  # what is written depends on the line
    blank = [text for text, line in zip(best, lines, strict=True) if not line.split()]
    assert blank == [""] * len(blank)
    assert len(blank) > 25
    with capsys.disabled():
        print(f"\n{kind}: {usual} MB for ordinary lines, {memory} MB for hostile ones, with lists and links")
    assert memory <= usual + EXTRA
