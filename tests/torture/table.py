"""The results of trials as a table: a row for each fault and moment, in Markdown and JSON."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.torture.outcomes import LOST, SILENT, SKIPPED, TITLES


class Result(NamedTuple):
    """What one trial came to."""

    group: str
    fault: str
    moment: str
    number: int
    outcome: str
    why: str
    seconds: float

    @property
    def is_bad(self) -> bool:
        """Whether it must not be."""
        return self.outcome in (LOST, SILENT)


def table(results: Iterable[Result]) -> list[dict[str, Any]]:
    """A row for each fault and moment that was tried, with how often each outcome came."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for result in sorted(results, key=lambda result: (result.fault, result.moment)):
        row = rows.setdefault(
            (result.fault, result.moment),
            {"fault": result.fault, "moment": result.moment, "trials": 0, **dict.fromkeys((*TITLES, SKIPPED), 0)},
        )
        row["trials"] += result.outcome != SKIPPED
        row[result.outcome] += 1
    return list(rows.values())


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table for people; what was skipped is not in it."""
    lines = [
        f"| fault | moment | trials | {' | '.join(TITLES.values())} |",
        f"|---|---|{'---:|' * (1 + len(TITLES))}",
    ]
    total = {"fault": "all", "moment": "", **{name: sum(row[name] for row in rows) for name in ("trials", *TITLES)}}
    for row in [*(row for row in rows if row["trials"]), total]:
        numbers = " | ".join(str(row[name] or "") for name in ("trials", *TITLES))
        lines.append(f"| {row['fault']} | {row['moment']} | {numbers} |")
    return "\n".join(lines) + "\n"


def short(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table with a row for each fault, over all its moments."""
    by_fault: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["fault"] not in by_fault:
            by_fault[row["fault"]] = {**row, "moment": "1"}
            continue
        whole = by_fault[row["fault"]]
        whole["moment"] = str(int(whole["moment"]) + 1)
        for name in ("trials", *TITLES, SKIPPED):
            whole[name] += row[name]
    return [{**row, "moment": f"{row['moment']} moments"} for row in by_fault.values()]
