"""The models of a server by their pair of languages, and how one translates lines for several requests at once.

It knows translators; it knows no HTTP and no queue.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nmt.decoding.doubts import Doubts
from nmt.decoding.threads import number, sharing, until
from nmt.decoding.translator import Translation, TranslationOptions, Translator
from nmt.errors import collected, refuse
from nmt.ops.memory import enough_memory
from nmt.serving.limits import Pair
from nmt.serving.requests import Kind


def loaded(models: Sequence[tuple[Path, Pair, Callable[[], Translator]]]) -> dict[Pair, Translator]:
    """A translator for each pair of languages, by what loads it. Raises UserError with everything that is wrong."""
    translators: dict[Pair, Translator] = {}
    paths: dict[Pair, Path] = {}
    problems: list[str] = []
    for path, pair, load in models:
        with collected(problems):
            translator = load()
            for same in (other for other in paths if str(other).lower() == str(pair).lower()):
                instead = f"give one of them, or name the languages of one, as in --model en-de={path}"
                problems.append(f"{paths[same]} and {path} both translate {same}; {instead}")
            paths[pair], translators[pair] = path, translator
    refuse(problems)
    return translators


@dataclass(frozen=True)
class Served:
    """A translator for each pair of languages, and its options."""

    translators: Mapping[Pair, Translator]
    options: Mapping[Pair, TranslationOptions]
    threads: int = field(default_factory=number)  # for all models together

    def check(self) -> None:
        """Translate something with each model. Raises UserError for options that one of them cannot follow."""
        problems: list[str] = []
        for pair in self.translators:
            with collected(problems, of=str(pair)):
                self.translate(["a"], self.kind(pair))  # which reaches the model, as a sign alone would not
        refuse(problems)

    @property
    def pairs(self) -> list[Pair]:
        return list(self.translators)

    @property
    def workers(self) -> int:
        """How many threads may translate at once."""
        return min(self.threads, *(translator.scorer.most_batches for translator in self.translators.values()))

    def most(self, pair: Pair) -> int:
        """The length of the longest n-best list."""
        return self.options[pair].decoding(self.translators[pair].decoding).beam_size

    def has_alignments(self, pair: Pair) -> bool:
        """Whether the model has attention, which says what a word was translated from."""
        return self.translators[pair].scorer.without_alignments is None

    def kind(self, pair: Pair, *, weights: bool = False, **wishes: Any) -> Kind:
        """How lines are translated with the options of the model as a request changes them.

        Raises UserError for what they may not be, and where they do not go together.
        """
        options = replace(self.options[pair], **wishes)
        self.translators[pair].check(options)
        return Kind(pair, options, weights)

    def translate(
        self,
        lines: Sequence[str],
        kind: Kind,
        *,
        alone: bool = True,
        unwanted: Callable[[], bool] = lambda: False,
    ) -> list[list[Translation]]:
        """The translations of each line, with all cores if `alone`, or else with the share of one of `workers`.

        Raises UserError where the model computes NaN, or memory is short, and CancelledError soon after `unwanted`,
        which several threads ask.
        """
        translator = self.translators[kind.pair]
        threads = self.threads if alone else self.threads // self.workers
        with enough_memory("send shorter ones"), until(unwanted), sharing(threads):
            return list(translator.translate(lines, kind.options, doubts=Doubts()))  # nobody is told of texts
