"""The breakdown of an update: what is counted where, and that the parts are the whole."""

import pytest

from benchmarks.breakdown import PRODUCTS, PYTHON, REST, Event, grouped, operations


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("mm", [[3, 5], [5, 7]], 2 * 3 * 5 * 7),
        ("addmm", [[7], [3, 5], [5, 7], [], []], 2 * 3 * 5 * 7),
        ("addmm_", [[3, 7], [3, 5], [5, 7], [], []], 2 * 3 * 5 * 7),
        ("bmm", [[2, 3, 5], [2, 5, 7]], 2 * 2 * 3 * 5 * 7),
        ("addmv_", [[3], [3, 5], [5], [], []], 2 * 3 * 5),
        ("mul", [[3, 5], [3, 5]], 0),
    ],
)
def test_operations_of_a_product(name: str, shapes: list[list[int]], expected: int) -> None:
    assert operations(name, shapes) == expected


def test_groups_add_up_to_the_whole() -> None:
    events = [Event("mm", 2.0, 1, []), Event("bmm", 1.0, 1, []), Event("copy_", 0.5, 1, []), Event("tanh", 0.25, 1, [])]
    times = grouped(events, 5.0)
    assert (times[PRODUCTS], times[REST], times[PYTHON]) == (3.0, 0.25, 1.25)
    assert sum(times.values()) == 5.0
