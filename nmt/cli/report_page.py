"""The page of nmt-eval: the outcome of a comparison, with the attention of its models → the file.

Wiring only. NumPy and Jinja2 are imported when there is a page: everyday scores need not wait for them.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.outputs import write_text
from nmt.data.corpus import read_lines
from nmt.evaluation.comparison import Comparison
from nmt.ops.memory import enough_memory

if TYPE_CHECKING:
    from nmt.decoding.writing import Translation

MEMORY = "shorten the longest lines"
MOST_WEIGHTS = 12_000_000  # characters of packed weights on a page


@enough_memory(MEMORY)
def write_page(
    path: str, comparison: Comparison, attention: Mapping[str, Sequence[str | None]], *, training_text: Path | None
) -> None:
    """Write the page of a comparison. `attention`: by system, what `with_attention` gives. `training_text`: the text
    whose rare words are looked at."""
    from nmt.evaluation.page.contents import contents
    from nmt.evaluation.page.render import page

    training = None if training_text is None else read_lines(training_text)
    write_text(path, page(contents(comparison, attention=attention, training=training)))


def with_attention(
    source: Sequence[str], translations: "Iterable[Translation]", *, models: int
) -> tuple[list[str], list[str | None]]:
    """The texts of translations, and the packed weights of those that the page lists, until they have as many
    characters as each of several `models` may have; None of the others."""
    from nmt.evaluation.page.contents import LISTED, packed, shown

    texts: list[str] = []
    attention: list[str | None] = []
    left = MOST_WEIGHTS // models
    for line, best in zip(source, translations, strict=True):
        texts.append(best.text)
        attention.append(None)
        is_listed = left >= 0 and len(texts) <= LISTED and all(shown(one).is_whole for one in (line, best.text))
        if is_listed and best.soft_alignment is not None:
            weights = best.soft_alignment.weights
            # The page's words are what stands between spaces; a vocabulary of cut words joins some.
            if weights.shape == (len(best.text.split()), len(line.split()) + 1):
                text = packed(weights)
                left -= len(text)
                attention[-1] = text if left >= 0 else None
    return texts, attention
