"""A small comparison that a person can check, with attention set by hand; and sentences that try to break the page."""

from functools import cache

from nmt.evaluation.comparison import Comparison, compare
from nmt.evaluation.page.contents import packed

SOURCE = ["the dog runs", "a cat sleeps", "the big old house", "yes"]
REFERENCE = ["der Hund rennt", "eine Katze schläft", "das große alte Haus", "ja"]
GOOD = ["der Hund rennt", "eine Katze schläft", "das große Haus", "ja"]
BAD = ["der Hund läuft", "eine eine Katze", "das große alte Haus ⁇", "nein"]
# The columns of the last row: the, dog, runs, </s>
WEIGHTS = [[0.9, 0.1, 0.0, 0.0], [0.0, 0.8, 0.2, 0.0], [0.0, 0.0, 0.4, 0.6]]

HOSTILE = [
    "<script>document.title = 'broken'</script>",
    "</script><script>document.title = 'broken'</script><!--",
    '"><img src=x onerror="document.title=\'broken\'">',
    "\\u003c/script> {{ 7 * 7 }} {% raw %} &lt;b&gt; &amp;amp;",
    "half \ud800 a pair, and NUL \x00",
    " ".join(f"word{number}" for number in range(1_000)),
    "x" * 10_000,
    "\u202eright to left\u202c كلب يركض 😀 狗",
    "",
]
ARABIC, HEBREW = "كلب كبير يركض", "כלב גדול רץ"


@cache
def small() -> Comparison:
    return compare(
        {"good.txt": GOOD, "bad.txt": BAD}, [REFERENCE], source=SOURCE, metrics=("bleu", "chrf"), tested=True
    )


def attention() -> dict[str, list[str | None]]:
    return {"good.txt": [packed(WEIGHTS), None, None, None]}


def hostile() -> Comparison:
    return compare(
        {"<b>&one": HOSTILE, "two\ud800</title>": HOSTILE[::-1]}, [HOSTILE], source=HOSTILE, metrics=("bleu", "chrf")
    )
