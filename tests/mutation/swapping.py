"""A mutated module's functions in the place of the living ones, so that nothing has to be imported again."""

import functools
import gc
from pathlib import Path
from types import CodeType, FunctionType

CO_OPTIMIZED = 1  # a flag of the code of functions; a class's body has it not

Key = tuple[str, int]  # a function's name and its first line
Swaps = list[tuple[FunctionType, CodeType]]  # which living functions get which code


class Living:
    """The functions of some files that are alive in this process."""

    def __init__(self, paths: list[Path]) -> None:
        names = {str(path) for path in paths}
        self._functions: dict[str, dict[Key, list[FunctionType]]] = {name: {} for name in names}
        for candidate in gc.get_objects():
            if type(candidate) is FunctionType and candidate.__code__.co_filename in names:
                code = candidate.__code__
                of_file = self._functions[code.co_filename]
                of_file.setdefault((code.co_name, code.co_firstlineno), []).append(candidate)

    def swaps(self, path: Path, original: CodeType, mutated: CodeType) -> Swaps | None:
        """What has to be swapped; None if something other than the code of functions has changed."""
        if _frame(original) != _frame(mutated):
            return None
        before, after = _functions(original), _functions(mutated)
        pairs = [(self._functions[str(path)].get(key, []), after[key]) for key in before if before[key] != after[key]]
        swaps = [(function, code) for functions, code in pairs for function in functions]
        if not all(functions for functions, _ in pairs):
            return None
        if any(len(function.__code__.co_freevars) != len(code.co_freevars) for function, code in swaps):
            return None
        return swaps


def forget_results() -> None:
    """Empty what `functools.cache` keeps of nmt's functions: the unchanged ones gave it."""
    for candidate in gc.get_objects():
        if type(candidate) is functools._lru_cache_wrapper and str(candidate.__module__).startswith("nmt"):
            candidate.cache_clear()


def _functions(code: CodeType) -> dict[Key, CodeType]:
    """The functions of a module and of its classes; those inside them are part of their code."""
    functions: dict[Key, CodeType] = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            of_class = not inner.co_flags & CO_OPTIMIZED
            functions.update(_functions(inner) if of_class else {(inner.co_name, inner.co_firstlineno): inner})
    return functions


def _frame(code: CodeType) -> tuple[object, ...]:
    """A module or a class without its functions: what runs when it is imported."""
    constants: list[object] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            of_class = not constant.co_flags & CO_OPTIMIZED
            constants.append(_frame(constant) if of_class else (constant.co_name, constant.co_firstlineno))
        else:
            constants.append((type(constant), repr(constant)))
    return (code.co_name, code.co_firstlineno, code.co_code, code.co_names, tuple(constants))
