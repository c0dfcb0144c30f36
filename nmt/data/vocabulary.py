"""Vocabulary files: the words that a model knows, for text that is tokenized, and perhaps cut, before it comes here.

They become sentencepiece models, so that they go wherever such models go.

    <unk>                     the@@ 5120
    <s>                       the 4711
    </s>                      dog 40
    the

One word a line, as in the vocabularies of Luong et al.'s corpora (`vocab.50K.en`), or a word and how often it occurs,
as `subword-nmt get-vocab` and fairseq write them. Lines that are special symbols, wherever they stand, add no word. The
file is UTF-8, plain or gzip.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec  # type: ignore[attr-defined]

from nmt.data.corpus import excerpt, read_lines
from nmt.data.segmentation import DAMAGED, WORD_START
from nmt.errors import UserError, refuse_lines
from nmt.symbols import BEGIN, END, PAD, PIECES, UNKNOWN

MOST_WORDS = 1_000_000  # as many as subwords.size allows
LONGEST_WORD = 1000  # characters
_COUNT = re.compile("[0-9]+")
# The name of how such a model makes text of words. What it continues with is the joiner, or nothing.
_RULE = "spaces between words, but for those that end with:"


def read_vocabulary(path: Path) -> list[str]:
    """The words of a vocabulary file in its order, without <pad>, <unk>, <s> and </s>.

    Raises UserError with a message for each line that is wrong, and for a file without words.
    """
    lines: dict[str, int] = {}  # of the words
    problems: list[str] = []
    columns = 0
    for number, line in enumerate(read_lines(path), start=1):
        if number > MOST_WORDS + len(PIECES):
            problems.append(f"{path}: has more than {MOST_WORDS:,} words, the most that a vocabulary may have")
            break
        fields = line.split()
        columns = columns or (2 if len(fields) == 2 and _COUNT.fullmatch(fields[1]) else 1)
        try:
            word = _word(line, fields, columns)
            if word in lines:
                raise ValueError(f"{excerpt(word)} stands in line {lines[word]} already")
            lines[word] = number
        except ValueError as error:
            problems.append(f"{path}, line {number}: {error}")
    refuse_lines(path, problems)
    words = [word for word in lines if word not in PIECES]
    if not words:
        raise UserError(f"{path}: has no words; expected a vocabulary with one word a line")
    return words


def word_model(words: Iterable[str], joiner: str) -> bytes:
    """A serialized sentencepiece model of type word: the special symbols and these words.

    It changes no character of a text, and unlike models that sentencepiece trains it tells how words make a text.
    `joiner`: the end of words that the next word continues; "": every word is a whole one.
    """
    model = ModelProto()
    kinds = ModelProto.SentencePiece
    for token, text in enumerate(PIECES):
        model.pieces.add(piece=text, type=kinds.UNKNOWN if token == UNKNOWN else kinds.CONTROL)
    for word in words:
        model.pieces.add(piece=f"{WORD_START}{word}")
    model.trainer_spec.model_type = TrainerSpec.WORD
    model.trainer_spec.pad_id, model.trainer_spec.unk_id = PAD, UNKNOWN
    model.trainer_spec.bos_id, model.trainer_spec.eos_id = BEGIN, END
    model.normalizer_spec.name = "identity"
    model.denormalizer_spec.name = f"{_RULE}{joiner}"
    serialized: bytes = model.SerializeToString()
    return serialized


def joiner_of(model: ModelProto) -> str | None:
    """The joiner of a model by `word_model`, None for any other. Raises ValueError where it is damaged."""
    name = model.denormalizer_spec.name
    if isinstance(name, bytes):  # not UTF-8
        raise ValueError(DAMAGED)
    return name.removeprefix(_RULE) if name.startswith(_RULE) else None


def _word(line: str, fields: list[str], columns: int) -> str:
    """The word of a line with these fields in a file of so many columns. Raises ValueError that says why it is none."""
    if len(fields) != columns or (columns == 2 and not _COUNT.fullmatch(fields[1])):
        raise ValueError(f"given {excerpt(line)}; expected one word a line, or on every line a word and its count")
    word = fields[0]
    if "\0" in word:
        raise ValueError(f"{excerpt(word)} has a null character")
    if len(word) > LONGEST_WORD:
        raise ValueError(f"{excerpt(word)} has {len(word):,} characters, and a word at most {LONGEST_WORD:,}")
    return word
