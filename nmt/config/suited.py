"""Settings that suit the size of a text, and the starter `configs/my_files.yaml` with them, for `nmt init`.

Training ends where validation no longer gets better, so its length suits every size.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

from nmt.config.yaml_text import KeyPath, on_one_line, read_yaml

TABLE: dict[int, dict[str, Any]] = {  # from so many training pairs on; `suited_settings` names the sources
    0: {
        "data.max_length": 300,
        "subwords.size": 2000,
        "model.encoder.dropout": 0.5,
        "model.encoder.word_dropout": 0.2,
        "model.decoder.dropout": 0.5,
        "model.decoder.word_dropout": 0.2,
        "training.optimizer": {"name": "adam", "learning_rate": 0.002},
        "training.batch_size": 1000,
        "training.batch_by": "tokens",
        "training.label_smoothing": 0.2,
        "training.recurrent_dropout": 0.5,
        "training.guided_alignment": {"weight": 0.5},
    },
    10_000: {"subwords.size": 4000},
    100_000: {
        "subwords.size": 8000,
        "model.encoder.dropout": 0.2,
        "model.decoder.dropout": 0.2,
        "training.max_updates": 300_000,
    },
}
OF_WORDS: dict[str, Any] = {  # where lines are words or their characters, which small models learn
    "model.embedding_size": 128,
    "model.tie_embeddings": "all",
    "model.encoder.hidden_size": 128,
    "model.encoder.word_dropout": 0.0,
    "model.decoder.hidden_size": 128,
    "model.decoder.output_size": 128,
    "model.decoder.word_dropout": 0.0,
    "training.optimizer": {"name": "adam", "learning_rate": 0.002},
    "training.schedule": {"name": "plateau"},
    "training.batch_size": 40,
    "training.batch_by": "sentences",
    "training.label_smoothing": 0.1,
    "training.recurrent_dropout": 0.0,
    "training.guided_alignment": None,
}
OF_FEW_WORDS = {"training.validate_every": "200 updates"}  # as few as in the first row: soon known by heart
MEASURED = {  # pairs that a model was trained on: what they are, and how it scored, as research/ says
    1_000: "image captions (validation BLEU 18)",
    2_000: "image captions (validation BLEU 21)",
    4_600: "sentences of talks (validation BLEU 14)",
    5_000: "image captions (validation BLEU 26)",
    10_000: "sentences of news (BLEU 3.2, of little use)",
    29_000: "image captions (BLEU 39.3)",
    225_000: "short lines of a parliament (validation BLEU 23)",
}
TYPES = {"sentences": "bpe", "words": "char", "characters": "word"}
METRICS = {"sentences": "bleu", "words": "accuracy", "characters": "accuracy"}


def suited_settings(pairs: int, *, units: Literal["sentences", "words", "characters"], tokenize: str) -> dict[str, Any]:
    """Values by the keys of a configuration, where they differ from the starter's or depend on the text.

    Below 10,000 pairs they follow Sennrich & Zhang (2019, arXiv:1905.11901, table 2), who have 100,000 words of TED
    talks: few pieces, small batches, much dropout, of whole pieces as well, and label smoothing; dropout of
    recurrent weights was measured on 2,000 captions, guided alignment and the learning rate on 1,000 of them and on
    the talks. There is no text to spare, and its sentences have many of so few pieces: of 4,600 of talks, those with
    more than 100 have 9% of the text. The starter was measured on 29,000 captions, and what suits words on seven sets
    of old spellings of 1,000 words each, their learning rate on one of these and on forms of words.

    Args:
        pairs: of the training text.
        units: what its lines are; see `nmt.data.cleaning.Usual`.
        tokenize: what the validation BLEU takes for words.
    """
    least = max(size for size in TABLE if size <= pairs)
    row = TABLE[least]
    if units != "sentences":
        row = row | OF_WORDS | ({} if least else OF_FEW_WORDS)
    return row | {
        "subwords.type": TYPES[units],
        "training.validation.metric": METRICS[units],
        "training.validation.tokenize": tokenize,
    }


def compared(pairs: int) -> str:
    """What models of the three texts scored that are nearest in size, measured by ratios."""
    nearest = sorted(MEASURED, key=lambda size: abs(math.log(size / pairs)))[:3]
    sizes = ", ".join(f"{size:,} {MEASURED[size]}" for size in sorted(nearest))
    return f"nearest sizes that were measured: {sizes}; short and similar sentences need fewer"


def filled_in(starter: str, values: Mapping[str, Any], head: str) -> str:
    """The text of a configuration with other values, by keys such as model.encoder.dropout, all of which it has.

    Comments stay, except those at its head, which become `head`.
    """
    lines, document = starter.split("\n"), read_yaml(starter)
    for key, value in values.items():
        path: KeyPath = tuple(int(part) if part.isdecimal() else part for part in key.split("."))
        number, is_there = document.line(path)
        if number is None or not is_there:
            raise KeyError(key)
        indented, _, comment = re.split(rf"({path[-1]}:.*?)(?=$| #)", lines[number - 1])
        lines[number - 1] = f"{indented}{path[-1]}: {on_one_line(value)}{comment}"
    body = re.sub(r"\A(#.*\n)*", "", "\n".join(lines))
    return f"# {head}\n{body}"
