"""Mutation testing itself: which mistakes are made, and that tests are found to notice them or not."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from tests.conftest import ROOT
from tests.mutation.__main__ import read_reasons, table
from tests.mutation.operators import Module
from tests.mutation.runner import Baseline, Result
from tests.mutation.swapping import Living
from tests.mutation.targets import TARGETS


def mistakes(source: str) -> list[str]:
    module = Module("small.py", dedent(source))
    for mutant in module.mutants:
        module.code(mutant, "small.py")  # each of them compiles
    assert module.code(None, "small.py") == compile(dedent(source), "small.py", "exec")  # and leaves no trace
    return [f"{mutant.before} → {mutant.after}" for mutant in module.mutants]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a < b → a <= b", "a < b → a >= b"]),
        ("a is not b", ["a is not b → a is b"]),
        ("a < b == c", ["a < b == c → a <= b == c", "a < b == c → a >= b == c", "a < b == c → a < b != c"]),
        ("a + b", ["a + b → a - b"]),
        ("a @ b", ["a @ b → a * b"]),
        ("a += b", ["a += b → a -= b"]),
        ("a and b", ["a and b → a or b"]),
        ("not a", ["not a → a"]),
        ("-a", ["-a → a"]),
        ("f(True)", ["f(True) → f(False)", "f(True) → pass"]),
        ("f(7)", ["f(7) → f(8)", "f(7) → pass"]),
        ("a['b']", ["a['b'] → a['bXX']"]),
        ("max(a)", ["max(a) → pass", "max → min"]),
        ("f(a, b, key=c)", ["f(a, b, key=c) → f(a, b)", "f(a, b, key=c) → f(a, key=c)", "f(a, b, key=c) → pass"]),
        ("a[b:c]", ["b:c → :c", "b:c → b:"]),
        ("a.b = c", ["a.b = c → pass"]),
        ("a = b", []),
        ("if a: b", ["if a: → if not a:"]),
        ("[a for a in b if c]", ["for a if c → for a if not c"]),
        ("for a in b: continue", ["continue → break"]),
        ("with a: b", ["with a: → if True:"]),
        ("def f(a=1):\n    return a", ["1 → 2", "return a → return"]),
    ],
)
def test_which_mistakes_are_made(source: str, expected: list[str]) -> None:
    assert sorted(mistakes(source)) == sorted(expected)


def test_what_is_left_alone() -> None:
    source = '''
        """Text."""
        from a import b
        @cache(7)
        def f(a: "int | None") -> "int":
            """Text."""
            assert a > 7
            name: Literal["a"] = f"{7} text"
            A, B = TypeVar("A", bound=C), Literal["a", 7]
            pairs = zip(a, b, strict=True)
            raise ValueError("text")
    '''
    assert mistakes(source) == ["zip(a, b, strict=True) → zip(a, strict=True)", "raise ValueError('text') → pass"]


def test_where_a_mistake_is() -> None:
    source = """
        class A:
            def b(self):
                if (self.c or
                    self.d):
                    return f(
                        self, 7)
    """
    places = [(m.function, m.line, m.first, m.last) for m in Module("small.py", dedent(source)).mutants]
    assert set(places) == {("A.b", 4, 4, 5), ("A.b", 6, 6, 7), ("A.b", 7, 6, 7)}


SMALL = """
LIMIT = 3

def twice(a):
    return 2 * a

class A:
    def thrice(self, a):
        def inner():
            return 3 * a
        return inner()
"""


def imported(folder: Path) -> ModuleType:
    (folder / "small.py").write_text(SMALL, encoding="utf-8")
    specification = importlib.util.spec_from_file_location("small", folder / "small.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_functions_are_swapped_and_other_things_are_not(tmp_path: Path) -> None:
    small, file = imported(tmp_path), tmp_path / "small.py"
    module, living = Module("small.py", SMALL), Living([file])
    swapped = {}
    for mutant in module.mutants:
        swaps = living.swaps(file, module.code(None, str(file)), module.code(mutant, str(file)))
        if swaps is None:
            swapped[str(mutant)] = None
            continue
        ((function, code),) = swaps
        former, function.__code__ = function.__code__, code
        swapped[str(mutant)] = (small.twice(5), small.A().thrice(5))
        function.__code__ = former
    assert swapped == {
        "small.py:2 the module: LIMIT = 3 → LIMIT = 4": None,
        "small.py:5 twice: return 2 * a → return": (None, 15),
        "small.py:5 twice: 2 * a → 2 / a": (0.4, 15),
        "small.py:5 twice: 2 * a → 3 * a": (15, 15),
        "small.py:10 A.thrice.inner: return 3 * a → return": (10, None),
        "small.py:10 A.thrice.inner: 3 * a → 3 / a": (10, 0.6),
        "small.py:10 A.thrice.inner: 3 * a → 4 * a": (10, 20),
        "small.py:11 A.thrice: return inner() → return": (10, None),
    }


def test_which_tests_a_mutant_is_run_with() -> None:
    (mutant,) = Module("small.py", "a < b").mutants[:1]
    seconds = {"a::slow": 3.0, "a::quick": 1.0, "a::middling": 2.0, "b::slow": 4.0, "b::other": 0.1}
    baseline = Baseline(seconds, {"small.py": {1: ["a::slow", "a::quick", "a::middling", "b::slow"]}})
    assert baseline.tests(mutant, test_file="", imported=False, most=10) == [
        "a::quick",
        "b::slow",
        "a::middling",
        "a::slow",
    ]
    assert baseline.tests(mutant, test_file="", imported=False, most=5) == ["a::quick", "b::slow"]
    assert baseline.tests(mutant, test_file="", imported=False, most=0) == ["a::quick"]
    assert baseline.tests(mutant, test_file="", imported=True, most=3) == ["b::other", "a::quick"]
    assert baseline.tests(mutant, test_file="b", imported=True, most=6) == ["b::other", "b::slow", "a::quick"]


def test_a_small_project(tmp_path: Path) -> None:
    """An endless loop is ended, a constant of the module is imported anew, and what no test notices is found."""
    source = """
        LIMIT = 3

        def small(a):
            return a < LIMIT

        def count(a):
            done = 0
            while done != a:
                done += 1
            return done

        def unused():
            return 7
    """
    tests = """
        from small import count, small

        def test_small():
            assert small(2)
            assert not small(4)

        def test_count():
            assert count(5) == 5
    """
    (tmp_path / "small.py").write_text(dedent(source), encoding="utf-8")
    (tmp_path / "test_small.py").write_text(dedent(tests), encoding="utf-8")
    program = """
        from tests.mutation import runner
        runner.CPU_SECONDS = 0.5
        files, tests = {"small.py": "test_small.py"}, ["test_small.py"]
        for result in runner.run(files, tests, lambda mutant: True, jobs=2, seconds=9):
            print(result.outcome, result.mutant)
    """
    ran = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert sorted(ran.stdout.splitlines()) == [
        "ended small.py:10 count: 1 → 2",
        "ended small.py:10 count: done += 1 → done -= 1",
        "failed small.py:11 count: return done → return",
        "failed small.py:5 small: a < LIMIT → a >= LIMIT",
        "failed small.py:5 small: return a < LIMIT → return",
        "failed small.py:9 count: done != a → done == a",
        "not run small.py:14 unused: return 7 → return 8",
        "survived small.py:2 the module: LIMIT = 3 → LIMIT = 4",
        "survived small.py:5 small: a < LIMIT → a <= LIMIT",
        "survived small.py:8 count: done = 0 → done = 1",
    ]


def test_the_table() -> None:
    outcomes = ["failed", "ended", "survived", "not run"]
    mutants = Module("small.py", "a < b\nc < d").mutants
    results = [Result(mutant, outcome, 1) for mutant, outcome in zip(mutants, outcomes, strict=True)]
    assert table(results).splitlines()[2:] == ["| `small.py` | 4 | 2 | 2 | 50.0 |", "| All | 4 | 2 | 2 | 50.0 |"]


def test_reasons_are_for_mistakes_that_there_are() -> None:
    """So that none is left when the code has changed."""
    there = {
        (path, mutant.function, f"{mutant.before} → {mutant.after}")
        for path in TARGETS
        for mutant in Module(path, (ROOT / path).read_text(encoding="utf-8")).mutants
    }
    assert set(read_reasons()) <= there


def test_all_operations_are_mutated() -> None:
    operations = {f"nmt/ops/{file.name}" for file in (ROOT / "nmt" / "ops").glob("*.py")} - {"nmt/ops/__init__.py"}
    assert operations <= set(TARGETS)
    assert all((ROOT / file).is_file() for file in TARGETS)
    assert all((ROOT / test).exists() for test_file, tests in TARGETS.values() for test in (test_file, *tests))
