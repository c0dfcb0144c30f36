"""The npm package onnxruntime-web, of which the page needs two files.

It is the user's to fetch, since nothing here opens a connection; the checksum says that it is the one that was tried.
"""

import hashlib
import tarfile
from pathlib import Path

from nmt.errors import UserError

ADDRESS = "https://registry.npmjs.org/onnxruntime-web/-/onnxruntime-web-1.30.0.tgz"
SHA512 = (
    "ab4cbe26baedba45d2cec05610c71c55fa97db92d19a8b171c5f8269126683ca"
    "590a5cdc57bb2f35ce2b298de32f4d956fb42644c0ecd528a0a91e025c07ca61"
)
RUNTIME, PROGRAM = "package/dist/ort.wasm.bundle.min.mjs", "package/dist/ort-wasm-simd-threaded.wasm"
LAST = "service-worker.js"  # of the files of a page to be written


def runtime_of(package: Path) -> list[bytes]:
    """What the page needs of the package, the file at ADDRESS. Raises UserError where it is another one."""
    try:
        if hashlib.sha512(package.read_bytes()).hexdigest() != SHA512:
            raise UserError(f"{package}: is not {ADDRESS}, whose checksum is known; fetch it, as curl -O does")
        with tarfile.open(package) as archive:
            return [archive.extractfile(name).read() for name in (RUNTIME, PROGRAM)]  # type: ignore[union-attr]
    except OSError as error:
        raise UserError(f"{package}: cannot be read: {error.strerror}; fetch {ADDRESS}, as curl -O does") from error
