"""nmt-synthetic: a small corpus with gold word alignments, for the examples that need no download."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from nmt.cli.outputs import failing_as
from nmt.cli.parser import Parser, command, say
from nmt.errors import UserError, first_of, refuse

PROGRAM = "nmt-synthetic"
FOLDER = Path("data/synthetic")  # where the example configurations look for it
ARCHIVE = Path(__file__).resolve().parent.parent / "data" / "synthetic.tar.xz"  # from a grammar; see scripts/
_MOST = 3  # files that a message names


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Write an English-German corpus with gold word alignments, made by a small grammar: the corpus of "
        "the examples demo and attention_synthetic.",
        epilog="Files are {train,valid,test}.{en,de,align}: one sentence a line, words with single spaces between; "
        "alignments as source-target positions from 0 (Pharaoh format). Files with other content are not replaced "
        "unless --overwrite says so.",
    )
    add_output_options(made)
    return made


def add_output_options(parser: Parser) -> None:
    """Add --output and --overwrite, for `write_corpus`."""
    parser.add_argument(
        "--output",
        type=Path,
        default=FOLDER,
        metavar="DIR",
        help=f"where to write, made if missing (default: {FOLDER})",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace files there that have other content")


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    import tarfile

    refuse(problems)
    with tarfile.open(ARCHIVE) as archive:
        files = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    write_corpus(options.output, files, overwrite=options.overwrite)


def write_corpus(folder: Path, files: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write the files of a corpus. Raises UserError where others are in their place, unless they may be replaced."""
    from nmt.files import written_atomically

    with failing_as(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        others = [name for name, content in files.items() if _is_other(folder / name, content)]
    if others and not overwrite:
        raise UserError(
            f"{folder}: holds other files named {', '.join(first_of(others, _MOST))}; give another --output, or "
            "--overwrite to replace them"
        )
    for name, content in files.items():
        with failing_as(str(folder / name)), written_atomically(folder / name, "wb") as file:
            file.write(content)
    counts = {name: content.count(b"\n") for name, content in files.items() if name.endswith(".en")}
    written = ", ".join(f"{name.removesuffix('.en')} {count}" for name, count in counts.items())
    say(f"{folder}: {written} pairs\n")


def _is_other(path: Path, content: bytes) -> bool:
    """Whether something is there, and it is no file with this content."""
    try:
        return path.stat().st_size != len(content) or path.read_bytes() != content
    except FileNotFoundError:
        return path.is_symlink()
