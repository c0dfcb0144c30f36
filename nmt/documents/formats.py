"""The names of the formats of documents; importing it imports nothing else."""

from typing import Literal, get_args

Format = Literal["text", "html", "srt"]
FORMATS: tuple[Format, ...] = get_args(Format)
