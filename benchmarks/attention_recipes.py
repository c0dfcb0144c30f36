"""The recipes that all rows of the attention table can be trained by: one result of a row belongs to one of them.

`short` is the configurations as they are, one seed a row, except that the logit of local-p's positions is the paper's,
which is not scaled. `long` trains twice as long, from larger weights, which suit models of so few units, with the
scaled logit, and the rows whose order is in question with three seeds. The module knows no folders and no results.
"""

from typing import NamedTuple

from benchmarks.attention_rows import REPEATED, Row
from benchmarks.attention_tasks import MULTI30K, SYNTHETIC, Task


class Recipe(NamedTuple):
    """How every row is trained on both tasks, and with how many seeds."""

    name: str
    title: str  # of the report
    multi30k: Task
    synthetic: Task
    repeats: int  # seeds of the rows in REPEATED; the others have one

    @property
    def tasks(self) -> tuple[Task, Task]:
        return self.multi30k, self.synthetic

    @property
    def suffix(self) -> str:
        """Of the names of the report, its plot, and the folder of results."""
        return "" if self.name == "short" else f"_{self.name}"

    def seeds(self, row: Row) -> range:
        """The seeds that the row is meant to have."""
        return range(1, 1 + (self.repeats if row.name in REPEATED else 1))


_START = "model.initialization.range=0.2"  # ±0.1, the paper's, is meant for 1,000 units: research/results.md
_LONGER = ("training.max_epochs=16", "training.schedule.after=8 epochs", "training.schedule.factor=0.775")
_PAPER = ("model.attention.position_logit=unscaled",)
_SCALED = ("model.attention.position_logit=scaled",)
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "short",
            "Every attention, one recipe",
            MULTI30K._replace(of_local_p=_PAPER),
            SYNTHETIC._replace(of_local_p=_PAPER),
            repeats=1,
        ),
        Recipe(
            "long",
            "Every attention, a longer recipe",
            MULTI30K._replace(overrides=(_START, *_LONGER), of_local_p=_SCALED),
            SYNTHETIC._replace(overrides=(_START,), of_local_p=_SCALED),
            repeats=3,
        ),
    )
}
