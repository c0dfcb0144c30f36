"""What is looked at before a page is written: the npm package onnxruntime-web, and a page that is already there.

Two files of the package are needed. It is the user's to fetch, since nothing here opens a connection; the checksum says
that it is the one that was tried.
"""

import hashlib
import json
import re
import tarfile
from pathlib import Path

from nmt.errors import UserError

ADDRESS = "https://registry.npmjs.org/onnxruntime-web/-/onnxruntime-web-1.30.0.tgz"
SHA512 = (
    "ab4cbe26baedba45d2cec05610c71c55fa97db92d19a8b171c5f8269126683ca"
    "590a5cdc57bb2f35ce2b298de32f4d956fb42644c0ecd528a0a91e025c07ca61"
)
RUNTIME, PROGRAM = "package/dist/ort.wasm.bundle.min.mjs", "package/dist/ort-wasm-simd-threaded.wasm"
WORKER = "service-worker.js"  # the last file of a page to be written, which names the others
START = 'const [VERSION, FILES] = ["%s", %s];\n'  # its first line, with JSON
WRITTEN = re.compile(re.escape(START) % (r"\w{64}", r"(\{[^\n]*\})"))


def runtime_of(package: Path) -> list[bytes]:
    """What the page needs of the package, the file at ADDRESS. Raises UserError where it is another one."""
    try:
        if hashlib.sha512(package.read_bytes()).hexdigest() != SHA512:
            raise UserError(f"{package}: its checksum is not that of {ADDRESS}; download that with curl -O")
        with tarfile.open(package) as archive:
            return [archive.extractfile(name).read() for name in (RUNTIME, PROGRAM)]  # type: ignore[union-attr]
    except OSError as error:
        raise UserError(f"{package}: cannot be read: {error.strerror}; download {ADDRESS} with curl -O") from error


def files_of(folder: Path) -> set[str]:
    """The names of the files of the page in a folder; none where there is no page, or another program's."""
    try:
        written = WRITTEN.match((folder / WORKER).read_text(encoding="utf-8"))
        return {WORKER, *json.loads(written[1])} if written else set()
    except (OSError, ValueError):
        return set()
