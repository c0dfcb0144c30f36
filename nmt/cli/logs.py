"""The log of a training: a file, with the time of each line, and the terminal."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.files import open_refusing_links


@contextmanager
def logging_to(path: Path) -> Iterator[logging.Logger]:
    """The logger "nmt", which in the block writes to `path` and to stderr.

    Logging a line that cannot be written, as on a full disk, raises OSError.
    """
    logger = logging.getLogger("nmt")
    handlers = [_FileHandler(path, encoding="utf-8", errors="backslashreplace"), _ConsoleHandler()]
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield logger
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
        for handler in handlers:
            handler.close()


class _FileHandler(logging.FileHandler):
    """Lines with their time; a link in place of the file is not followed."""

    def _open(self) -> Any:
        return open_refusing_links(Path(self.baseFilename), self.mode, encoding=self.encoding, errors=self.errors)

    def format(self, record: logging.LogRecord) -> str:
        return logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S").format(record)

    def handleError(self, record: logging.LogRecord) -> None:
        raise  # the OSError; logging would print a traceback and go on


class _ConsoleHandler(logging.Handler):
    """Lines on stderr, above the progress bar instead of through it.

    A terminal that has gone away (a closed session, `| head`) must not end the training: the file has every line.
    """

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):
            tqdm.write(self.format(record), file=sys.stderr)
