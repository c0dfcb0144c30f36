#!/usr/bin/env python3
"""Fetch Multi30k, task 1 (image captions in English, German and French), and check every byte of it.

    python scripts/get_multi30k.py                          # into data/multi30k of this repository
    python scripts/get_multi30k.py --from FOLDER            # no network: FOLDER/raw and FOLDER/tok
    python scripts/get_multi30k.py --languages en de        # what `make data` fetches

A file is written only once its line count and SHA-256 have proved right, and under a temporary name first, so that
every file in the output folder is complete. Run it again to fetch what is missing. The text is Elliott et al. (2016,
2017), "Multi30K: Multilingual English-German Image Descriptions", as in the repository github.com/multi30k/dataset.

The script does not prepare the text for training. It needs the repository and the standard library, but none of the
packages that nmt needs; the package never imports it.
"""

import gzip
import hashlib
import http.client
import secrets
import sys
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find the package when run as a file

from nmt.cli.parser import Parser

PROGRAM = "get_multi30k.py"
OUTPUT = Path(__file__).resolve().parent.parent / "data" / "multi30k"
ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1"
TERMS = "Multi30k extends the captions of Flickr30k: for research and education, not for commercial use."
LANGUAGES = ("en", "de", "fr")
FORMS = {
    "raw": "cased, not tokenized",
    "tok": "Moses: normalized, tokenized, lowercased",
}
GZIP_MAGIC = b"\x1f\x8b"
TIMEOUT_SECONDS = 60


class Content(NamedTuple):
    lines: int
    sha256: str  # of the decompressed file


# Form, split and language of each file, and what it must contain
CONTENTS = {
    "raw/train.en": Content(29000, "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"),
    "raw/train.de": Content(29000, "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"),
    "raw/train.fr": Content(29000, "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d"),
    "raw/val.en": Content(1014, "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"),
    "raw/val.de": Content(1014, "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"),
    "raw/val.fr": Content(1014, "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc"),
    "raw/test_2016_flickr.en": Content(1000, "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"),
    "raw/test_2016_flickr.de": Content(1000, "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"),
    "raw/test_2016_flickr.fr": Content(1000, "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6"),
    "raw/test_2017_flickr.en": Content(1000, "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98"),
    "raw/test_2017_flickr.de": Content(1000, "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081"),
    "raw/test_2017_flickr.fr": Content(1000, "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6"),
    "tok/train.lc.norm.tok.en": Content(29000, "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
    "tok/train.lc.norm.tok.de": Content(29000, "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
    "tok/train.lc.norm.tok.fr": Content(29000, "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1"),
    "tok/val.lc.norm.tok.en": Content(1014, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
    "tok/val.lc.norm.tok.de": Content(1014, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
    "tok/val.lc.norm.tok.fr": Content(1014, "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a"),
    "tok/test_2016_flickr.lc.norm.tok.en": Content(
        1000, "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"
    ),
    "tok/test_2016_flickr.lc.norm.tok.de": Content(
        1000, "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"
    ),
    "tok/test_2016_flickr.lc.norm.tok.fr": Content(
        1000, "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836"
    ),
    "tok/test_2017_flickr.lc.norm.tok.en": Content(
        1000, "c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f"
    ),
    "tok/test_2017_flickr.lc.norm.tok.de": Content(
        1000, "02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6"
    ),
    "tok/test_2017_flickr.lc.norm.tok.fr": Content(
        1000, "c0583117a47b31e8a6c6a97cfe8de153e462074668f4e994764fcc80b21d33b4"
    ),
}


class Failure(Exception):
    """Something to tell the user: a file that cannot be fetched, or is not what it should be."""


class Unreachable(Failure):
    """The network does not respond, so there is no point in trying the next file."""


def decompress(data: bytes, origin: str) -> bytes:
    """`data` as it is, or decompressed if its first bytes say that it is gzip."""
    if not data.startswith(GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as problem:
        raise Failure(f"{origin}: damaged gzip file ({problem})") from problem


def read_from_folder(folder: Path, name: str) -> tuple[bytes, str]:
    """The contents of the file `name` in `folder`, with or without ".gz", and its path."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            try:
                return path.read_bytes(), str(path)
            except OSError as problem:
                raise Failure(f"{path}: cannot be read ({problem.strerror})") from problem
    raise Failure(f"{folder / name}: no such file, neither plain nor .gz")


def read_from_network(address: str, name: str) -> tuple[bytes, str]:
    """The contents of the file `name` in the public repository, and its URL; only raw files are compressed there."""
    url = f"{address}/{name}.gz" if name.startswith("raw/") else f"{address}/{name}"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            return answer.read(), url
    except (OSError, http.client.HTTPException) as problem:
        way_out = f"--from FOLDER takes the files from a folder that has them as {name} or {name}.gz"
        raise Unreachable(f"{url}: cannot be fetched ({problem}); {way_out}") from problem


def check(text: bytes, expected: Content, origin: str) -> None:
    """Raise Failure unless `text` has the expected number of lines and SHA-256."""
    lines = text.count(b"\n")
    if lines != expected.lines:
        raise Failure(f"{origin}: {lines} line{'' if lines == 1 else 's'}, {expected.lines} expected")
    sha256 = hashlib.sha256(text).hexdigest()
    if sha256 != expected.sha256:
        raise Failure(f"{origin}: SHA-256 {sha256}, {expected.sha256} expected")


def write(path: Path, data: bytes) -> None:
    """Write under a temporary name, then rename, so that an interrupted run leaves no incomplete file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(16)}.partial")
    try:
        with open(temporary, "xb") as file:  # does not follow a link that somebody put there
            file.write(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def place(output: Path, name: str) -> Path:
    """Raw files go into the output folder itself, tokenized ones into its subfolder tok."""
    return output / name.removeprefix("raw/")


def get(name: str, expected: Content, output: Path, read: Callable[[str], tuple[bytes, str]]) -> str:
    """Fetch one file unless it is there already; returns what was done. Raises Failure."""
    path = place(output, name)
    try:
        before = path.read_bytes() if path.is_file() else None
        if before is not None and hashlib.sha256(before).hexdigest() == expected.sha256:
            return f"{path}: already there"
        data, origin = read(name)
        text = decompress(data, origin)
        check(text, expected, origin)
        write(path, text)
    except OSError as problem:
        raise Failure(f"{path}: cannot be read or written ({problem})") from problem
    replaced = ", replacing a file with other content" if before is not None else ""
    return f"{path}: {expected.lines} lines from {origin}{replaced}"


def main(
    arguments: Sequence[str] | None = None,
    contents: Mapping[str, Content] = CONTENTS,
    address: str = ADDRESS,
) -> int:
    """Return the exit code: 0 when every file is in place, 2 otherwise. Tests pass other contents and addresses."""
    parser = Parser(
        PROGRAM,
        description="Fetch Multi30k, task 1: the splits train, val, test_2016_flickr and test_2017_flickr, one caption "
        "per line, with line counts and SHA-256 checked. Correct files that are already there are left alone.",
        epilog=TERMS,
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=OUTPUT,
        metavar="DIR",
        help="folder to write to, created if missing (default: data/multi30k of this repository)",
    )
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        metavar="FOLDER",
        help="read the files from FOLDER/raw and FOLDER/tok (plain or .gz) instead of the network, "
        "such as data/task1 of a clone of github.com/multi30k/dataset",
    )
    parser.add_argument(
        "--languages",
        nargs="+",
        choices=LANGUAGES,
        default=LANGUAGES,
        metavar="LANGUAGE",
        help="any of en de fr (default: all)",
    )
    meanings = "; ".join(f"{form}: {meaning}" for form, meaning in FORMS.items())
    parser.add_argument("--form", choices=(*FORMS, "both"), default="both", help=f"{meanings} (default: both)")
    options = parser.parse_args(arguments)
    if options.folder is not None and not options.folder.is_dir():
        parser.error(f"--from {options.folder}: no such folder")
    elif options.folder is not None and not any((options.folder / form).is_dir() for form in FORMS):
        parser.error(f"--from {options.folder}: has none of the folders {' and '.join(FORMS)}")
    if options.output.exists() and not options.output.is_dir():
        parser.error(f"--output {options.output}: not a folder")

    def read(name: str) -> tuple[bytes, str]:
        return read_from_network(address, name) if options.folder is None else read_from_folder(options.folder, name)

    print(TERMS)
    failures = []
    for name, expected in contents.items():
        form, language = name.split("/")[0], name.rpartition(".")[2]
        if options.form not in (form, "both") or language not in options.languages:
            continue
        try:
            print(get(name, expected, options.output, read), flush=True)
        except Failure as failure:
            failures.append(str(failure))
            if isinstance(failure, Unreachable):
                break
    for message in failures:
        print(f"{parser.prog}: error: {message}", file=sys.stderr)
    return 2 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
