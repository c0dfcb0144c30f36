"""Which lines are read together, and which sentences are computed together. It knows lengths only."""

from collections.abc import Callable, Iterable, Iterator, Sequence


def chunks(lines: Iterable[str], characters: int, waiting: Callable[[], bool] | None) -> Iterator[list[str]]:
    """Lines together, until they have `characters` characters, line ends counted, or the next is `waiting`."""
    chunk: list[str] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line) + 1
        if size >= characters or (waiting is not None and waiting()):
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices that go together, longest first: their number × the longest stays within `batch_tokens`, if it can."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
