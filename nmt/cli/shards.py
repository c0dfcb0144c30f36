"""One shard of nmt-translate: which lines of the text it has, and the record of what it was made of."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nmt.cli.parsers.parser import option_name
from nmt.cli.parts_request import facts_of
from nmt.cli.translation_request import Request
from nmt.data.corpus import read_lines
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.jobs.records import Facts, State, changes
from nmt.jobs.shards import Record, finish, record_of


class Block(NamedTuple):
    """The lines of a shard, and what translates them."""

    first: int
    lines: int
    pieces: int  # that the text can be cut into
    facts: Facts
    texts: Mapping[str, State]  # before they were read
    translator: Translator


def block_of(request: Request, translator: Translator) -> Block:
    """Find the lines of a shard.

    A shard ends where lines that are translated together do. So they have the batches that they have in the whole text,
    and their translations are the same bit for bit.
    """
    assert request.source is not None
    assert request.shard is not None
    texts = request.texts()
    facts = facts_of(request.command, request.models.paths)
    sizes = list(translator.together(read_lines(request.source), request.options))
    batch_tokens = request.options.decoding(translator.decoding).batch_tokens
    return Block(
        *request.shard.block(sizes),
        pieces=len(sizes),
        facts={**facts, option_name("batch_tokens"): str(batch_tokens)},  # which decides where shards end
        texts=texts,
        translator=translator,
    )


def finish_block(request: Request, block: Block) -> None:
    """Write the record of a translated shard. Raises UserError if the text has changed meanwhile."""
    assert request.shard is not None
    if changed := changes(block.texts):
        raise UserError(*changed, f"{request.output}: is of no use; translate shard {request.shard} again")
    facts = {name: fact for name, fact in block.facts.items() if name != option_name("shard")}
    record = Record(request.shard, block.first, block.lines, request.lines or 0, facts, {})
    finish(Path(record_of(request.output)), record, request.files)
