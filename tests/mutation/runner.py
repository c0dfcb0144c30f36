"""Runs tests against mutants, each in a forked child of its own; does not know which files, nor what the results mean.

A process that has imported PyTorch, but nothing of nmt, starts a child for all files that concern the same tests. That
child lets pytest collect the tests, and measures, in a child again, how long each takes and which lines it runs. Then
every mutant gets a child: the mutated code is put into the living function, and the tests that run the mutated lines
are run until one fails. What is no function's code (a constant of the module, a default) has to be imported: such a
mutant's child is started by the first process, and imports the mutated module.

Tests that start the program in another process run the unchanged code there, so the whole suite notices more than this.
A child that takes far longer than the tests did, or asks for far more memory, is ended, which counts as noticed.
"""

import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import coverage
import pytest

from tests.mutation.children import DONE, FAILED, Tell, quiet, start, told, wait
from tests.mutation.operators import Module, Mutant
from tests.mutation.swapping import Living, Swaps, forget_results

CPU_SECONDS, FACTOR = 5.0, 10  # a test may take so much processor time, and so many times as long as it did
WALL_SECONDS = 60.0  # a test that waits for ever


@dataclass(frozen=True)
class Result:
    """What became of a mutant: "failed" (a test), "ended" (time, memory), "survived", or "not run" (by no test)."""

    mutant: Mutant
    outcome: str
    tests: int

    @property
    def killed(self) -> bool:
        return self.outcome in ("failed", "ended")


@dataclass(frozen=True)
class Baseline:
    """The tests with the unchanged code: the processor's seconds of each, and for path and line those that run it."""

    seconds: dict[str, float]
    tests_of_line: dict[str, dict[int, list[str]]]

    def tests(self, mutant: Mutant, *, test_file: str, imported: bool, most: float) -> list[str]:
        """Those that run one of the mutant's lines, or all there are, of so many seconds together.

        Those of the file `test_file` come first. Then the quickest of each other file, the second of each, and so on,
        for the files test different things.
        """
        of_line = self.tests_of_line[mutant.path]
        lines = range(mutant.first, mutant.last + 1)
        names = set(self.seconds) if imported else {name for line in lines for name in of_line.get(line, ())}
        ranks: dict[str, tuple[int, float]] = {}
        met: Counter[str] = Counter()
        for name in sorted(names, key=lambda name: (self.seconds[name], name)):
            file = name.split("::")[0]
            ranks[name] = (-1 if file == test_file else met[file], self.seconds[name])
            met[file] += 1
        chosen: list[str] = []
        left = most
        for name in sorted(ranks, key=lambda name: (ranks[name], name)):
            if self.seconds[name] <= left or not chosen:
                chosen.append(name)
                left -= self.seconds[name]
        return chosen


def run(
    paths: Mapping[str, str], tests: Sequence[str], is_chosen: Callable[[Mutant], bool], *, jobs: int, seconds: float
) -> Iterator[Result]:
    """The results of the chosen mutants, as they come: so many at once, with tests of so many seconds.

    `paths` are the files to mutate, each with the file of its own tests.

    Raises RuntimeError if a test fails with the unchanged code.
    """
    modules = {path: Module(path, Path(path).read_text(encoding="utf-8")) for path in paths}
    to_import: list[tuple[Mutant, list[str]]] = []
    durations: dict[str, float] = {}
    for kind, *content in told(lambda tell: _collect(tests, _Group(modules, paths, is_chosen, jobs, seconds, tell))):
        if kind == "result":
            path, number, outcome, count = content
            yield Result(modules[path].mutants[number], outcome, count)
        elif kind == "import":
            path, number, names = content
            to_import.append((modules[path].mutants[number], names))
        elif kind == "error":
            raise RuntimeError(f"{' '.join(tests)}: {content[0]}")
        else:
            (durations,) = content

    def imported(mutant: Mutant, names: list[str]) -> Callable[[], None]:
        def work() -> None:
            file = Path(mutant.path).resolve()
            _import_instead(file, modules[mutant.path].code(mutant, str(file)))
            _collect([*{name.split("::")[0]: None for name in names}], _Chosen(names, durations))

        return work

    works = [(mutant, len(names), imported(mutant, names)) for mutant, names in to_import]
    yield from _outcomes(works, jobs)


def _collect(tests: Sequence[str], plugin: object) -> None:
    """Let pytest collect these tests and the plugin run them, without a word."""
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
    quiet()
    os._exit(DONE if pytest.main([*options, *tests], plugins=[plugin]) == 0 else FAILED)


class _Group:
    """A plugin that runs the mutants of functions; those that have to be imported are only named."""

    def __init__(
        self,
        modules: dict[str, Module],
        test_files: Mapping[str, str],
        is_chosen: Callable[[Mutant], bool],
        jobs: int,
        most: float,
        tell: Tell,
    ) -> None:
        self._modules = modules
        self._test_files = test_files
        self._is_chosen = is_chosen
        self._jobs = jobs
        self._most = most
        self._tell = tell

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            self._tell("error", "pytest cannot collect them")
            os._exit(FAILED)
        try:
            self._run({item.nodeid: item for item in session.items})
        except RuntimeError as error:
            self._tell("error", str(error))
        except KeyboardInterrupt:
            os._exit(FAILED)  # pytest would show the arguments of every call, which takes minutes
        os._exit(DONE)

    def _run(self, items: dict[str, pytest.Item]) -> None:
        files = {path: Path(path).resolve() for path in self._modules}
        baseline = _baseline(list(items.values()), files)
        self._tell("seconds", baseline.seconds)
        living = Living(list(files.values()))
        forget_results()
        works = []
        for path, module in self._modules.items():
            original = module.code(None, str(files[path]))
            for mutant in filter(self._is_chosen, module.mutants):
                swaps = living.swaps(files[path], original, module.code(mutant, str(files[path])))
                names = baseline.tests(
                    mutant, test_file=self._test_files[path], imported=swaps is None, most=self._most
                )
                if swaps is None:
                    self._tell("import", path, mutant.number, names)
                elif not names:
                    self._tell("result", path, mutant.number, "not run", 0)
                else:
                    works.append((mutant, len(names), _swapped(swaps, [items[n] for n in names], baseline.seconds)))
        for result in _outcomes(works, self._jobs):
            self._tell("result", result.mutant.path, result.mutant.number, result.outcome, result.tests)


class _Chosen:
    """A plugin that runs the named tests until one fails."""

    def __init__(self, names: list[str], seconds: dict[str, float]) -> None:
        self._names = names
        self._seconds = seconds

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        if session.testsfailed or not set(self._names) <= set(items):
            os._exit(FAILED)
        _until_one_fails([items[name] for name in self._names], self._seconds)
        return True


class _Reports:
    """A plugin that keeps which tests failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _swapped(swaps: Swaps, items: list[pytest.Item], seconds: dict[str, float]) -> Callable[[], None]:
    def work() -> None:
        for function, code in swaps:
            function.__code__ = code
        quiet()
        _until_one_fails(items, seconds)

    return work


def _until_one_fails(items: Sequence[pytest.Item], seconds: dict[str, float]) -> None:
    """Run tests, and end the process when one has failed, or all have passed."""
    reports = _Reports()
    items[0].config.pluginmanager.register(reports)
    os.chdir(tempfile.gettempdir())  # what goes wrong goes wrong here
    for item, following in zip(items, [*items[1:], None], strict=True):
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS + FACTOR * seconds[item.nodeid])
        signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS + FACTOR * seconds[item.nodeid])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if reports.failed:
            os._exit(FAILED)
    os._exit(DONE)


def _baseline(items: Sequence[pytest.Item], files: dict[str, Path]) -> Baseline:
    """Run all tests once, in a child, so that nothing of them is left here. Raises RuntimeError if one fails."""

    def work(tell: Tell) -> None:
        quiet()
        os.chdir(tempfile.gettempdir())
        reports = _Reports()
        items[0].config.pluginmanager.register(reports)
        included = [str(file) for file in files.values()]
        measured = coverage.Coverage(data_file=None, config_file=False, include=included)
        measured.start()
        seconds: dict[str, float] = {}
        for item, following in zip(items, [*items[1:], None], strict=True):
            measured.switch_context(item.nodeid)
            before = _processor_seconds()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = _processor_seconds() - before
        measured.stop()
        data = measured.get_data()
        lines = {path: data.contexts_by_lineno(str(file)) for path, file in files.items()}
        tell(reports.failed, seconds, lines)

    messages = list(told(work))
    if len(messages) != 1:
        raise RuntimeError("running them ended before its time")
    failed, seconds, lines = messages[0]
    if failed:
        raise RuntimeError(f"fail with the unchanged code: {', '.join(failed)}")
    return Baseline(seconds, {path: {int(line): names for line, names in of.items()} for path, of in lines.items()})


def _processor_seconds() -> float:
    """Of this process and those it has started and that have ended; the machine may be shared."""
    return sum(os.times()[:4])


def _outcomes(works: Sequence[tuple[Mutant, int, Callable[[], None]]], jobs: int) -> Iterator[Result]:
    """Do each piece of work in a child, so many at once."""
    waiting = list(reversed(works))
    running: dict[int, tuple[Mutant, int]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant, count, work = waiting.pop()
            running[start(work)] = (mutant, count)
        pid, status = wait(list(running))
        mutant, count = running.pop(pid)
        outcome = "survived" if status == DONE else "ended" if status < 0 else "failed"
        yield Result(mutant, outcome, count)


def _import_instead(file: Path, code: CodeType) -> None:
    """Have the next import of this file give other code."""
    usual = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        return code if Path(self.path).resolve() == file else usual(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
