"""Text in, text out: lines → pieces → batches → beam search → detokenized lines, one for each, in their order.

It knows models and subwords; it knows no files but the model's and no terminal. Lines are read a chunk at a time, so a
text larger than memory streams. A line's result does not depend on the lines around it, beyond rounding: batches only
share the work.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.config.schema import DecodingConfig, EnsembleName
from nmt.data.subwords import Vocabularies
from nmt.decoding.batched_search import Search
from nmt.decoding.doubts import Doubts
from nmt.decoding.engines import AnyScorer
from nmt.decoding.exports import checked_graphs
from nmt.decoding.graph_files import Graphs, graph_key
from nmt.decoding.options import TranslationOptions
from nmt.decoding.reading import Languages, Reader, sentence_language, usual_sentences
from nmt.decoding.runtime import CannotExportError, GraphsOfModel, RuntimeScorer
from nmt.decoding.search.hypotheses import Array
from nmt.decoding.text.forbidden import Forbidden, forbidden_by
from nmt.decoding.text.lines import check_text, chunks, chunks_with
from nmt.decoding.text.protect import Protection, Sight
from nmt.decoding.text.required import word_continuations
from nmt.decoding.text.segments import LONGEST_SEGMENT, Segment, longest_segment
from nmt.decoding.writing import Translation, Writer
from nmt.devices import PRECISIONS
from nmt.errors import UserError, collected, needing_toolkit, refuse
from nmt.models.model_file import (
    ModelFile,
    load_head,
    load_model,
    longest_trained,
    model_path,
    rebuild,
)
from nmt.protected import learned_by
from nmt.text_form import TextForm, source_form

if TYPE_CHECKING:
    import torch

    from nmt.decoding.scorer import Scorer
    from nmt.decoding.shortlist import Shortlist
    from nmt.models.seq2seq import Seq2Seq

__all__ = ["Translation", "TranslationOptions", "Translator"]

WORTH_EXPORTING = 400_000  # bytes of a file; what is smaller, PyTorch has translated before it is exported
CHUNK_BATCHES = 10  # batches a chunk of lines holds: enough to sort by length with little padding
MOST_CHARACTERS = 1 << 24  # of a chunk, however large a batch may be
CHARACTERS_A_PIECE = 4  # a rough mean, to know how many lines are enough before they are cut into pieces


class _Files(NamedTuple):
    """What a translator was loaded from, and how."""

    models: list[Path]
    digests: list[str | None]  # the checksums in the files, that of the shortlist last
    precision: str
    shortlist: Path | None
    ensemble: EnsembleName | None


class _Loaded(NamedTuple):
    """What the file of a model of a translator says of it, without the weights."""

    path: Path
    file: ModelFile
    vocabularies: Vocabularies


class Translator:
    """One or more models with their vocabularies, ready to translate. `decoding` holds the defaults of `translate`.

    One that was loaded can be pickled: as the paths of its files, with its device and options. Whoever unpickles it
    loads the files again, which must be there, with the content that they had.
    """

    def __init__(
        self,
        models: "Sequence[Seq2Seq] | AnyScorer",
        vocabularies: Vocabularies,
        *,
        decoding: DecodingConfig | None = None,
        device: "torch.device | str" = "cpu",
        longest_segment: int = LONGEST_SEGMENT,
        shortlist: "Shortlist | None" = None,
        ensemble: EnsembleName | None = None,
        languages: Languages | None = None,
        longest_trained: int | None = None,
        source_form: TextForm | None = None,
        learned: Mapping[str, bool | str] | None = None,
    ) -> None:
        """`models` are on `device`; lines of more than `longest_segment` pieces are translated in several segments.

        Several models are an ensemble, and `ensemble` names their mean (see `engines`), unless they have an engine
        already. `shortlist`: write only its pieces for a source, and those of prefixes and constraints. Raises
        UserError when it is one for other vocabularies, when there is no such `device`, and for an `ensemble` of one
        model.

        `longest_trained`: the pieces of the longest source line that the models were trained on, and `source_form`: the
        form of the source text, if they are known; they change no translation. `learned`: what `decoding.protect` names
        and the models are shown all the same (see `nmt.protected`).
        """
        if isinstance(models, Sequence):
            from nmt.decoding.scorer import Scorer

            models = Scorer(models, ensemble=ensemble)
        self.scorer: AnyScorer = models
        self.vocabularies = vocabularies
        self.decoding = decoding or DecodingConfig()
        self.device = _usable(device)
        self.longest_segment = longest_segment
        self.shortlist = shortlist and shortlist.checked(vocabularies)
        self.languages = languages or Languages()
        self.longest_trained = longest_trained
        self.source_form = source_form
        self.learned = learned or {}
        self._files: _Files | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._files is None:
            raise UserError(
                "a translator that was made of objects cannot be pickled, since it is pickled as the paths of its "
                "files; save the model, and use Translator.load"
            )
        return _loaded_again, (type(self), self._files, self.device, dict(self.decoding), self.longest_segment)

    @classmethod
    @needing_toolkit()
    def load(
        cls,
        path: Path | str | Sequence[Path | str],
        *,
        device: "torch.device | str" = "cpu",
        precision: str | None = None,
        shortlist: Path | str | None = None,
        ensemble: EnsembleName | None = None,
    ) -> "Translator":
        """Load a model file, the best model of a run folder, or an export; its configuration gives the defaults of
        `translate`.

        Several paths make an ensemble, whose mean `ensemble` names (see `engines`); the first model's configuration
        gives the defaults, and a line is cut where it is too long for any of them. `precision`: float32, or, for
        products rounded to it, int8 on a CPU and bfloat16 on a GPU, which translates faster and a little differently;
        by default that of an export, or float32.
        On a CPU ONNX Runtime searches with the weights as the file has them (`nmt.decoding.runtime`), which are read,
        and so checked, only where its graphs are not kept. `shortlist`: a file of nmt-shortlist with the pieces that
        may translate a source, for faster translation (see `shortlist`).

        Raises UserError when there is no such file, it is damaged, or holds no model of this toolkit; when the
        vocabularies of several, or of the shortlist, are not the same; when there is no such device, or no such
        precision on it; and for an `ensemble` of one model.
        """
        paths = [Path(path)] if isinstance(path, Path | str) else [Path(one) for one in path]
        if not paths:
            raise UserError("there is no model to load: the list of paths is empty")
        usable, loaded, problems = _usable(device), list[_Loaded](), list[str]()
        _check_precision(precision or PRECISIONS[0], usable)
        for one in paths:
            with collected(problems):
                loaded.append(_load(one))
        refuse(problems)
        first, listed = loaded[0], None
        for other in loaded:
            problems += _differences(first, other)
        refuse(problems)
        if shortlist is not None:
            from nmt.decoding.shortlist import load_shortlist

            listed = load_shortlist(Path(shortlist))  # checked once the models are known to be whole
        files = _Files(
            [one.path.absolute() for one in loaded],
            [*(one.file.digest for one in loaded), None if listed is None else listed.digest],
            precision or next((one.file.exported.precision for one in loaded if one.file.exported), PRECISIONS[0]),
            None if shortlist is None else Path(shortlist).absolute(),
            ensemble,
        )
        runtime = _runtime_scorer(loaded, files) if usable == "cpu" else None
        translator = cls(
            runtime or _pytorch_scorer(files, usable),
            first.vocabularies,
            decoding=first.file.config.decoding,
            device=usable,
            longest_segment=min(longest_segment(one.file.config.data.max_length) for one in loaded),
            shortlist=listed,
            languages=Languages(first.file.config.data.source_language, first.file.config.data.target_language),
            longest_trained=min(longest_trained(one.file) for one in loaded),
            source_form=source_form(first.file.training),
            learned=learned_by(*(one.file.training for one in loaded)),
        )
        translator._files = files
        return translator

    @cached_property
    def _continuing(self) -> Array:
        return word_continuations(self.vocabularies.target)

    def _forbidden(self, options: TranslationOptions) -> Forbidden | None:
        return forbidden_by(options.forbidden, self.vocabularies.target)

    @property
    def models(self) -> "tuple[Seq2Seq, ...]":
        """The models in PyTorch, which compute from here on, as whoever has them may change them.

        Raises UserError for int8, in which PyTorch does not compute.
        """
        if isinstance(self.scorer, RuntimeScorer):
            assert self._files is not None
            if self._files.precision == "int8":
                raise UserError("precision int8: PyTorch cannot compute in int8 here; load the translator in float32")
            self.scorer = _pytorch_scorer(self._files, self.device)
        return self.scorer.models  # type: ignore[attr-defined]

    def check(self, options: TranslationOptions, *, constraints: bool = False) -> None:
        """Raise UserError for options that `translate` would refuse, whatever the lines; `constraints`: with some.

        These are options that contradict each other, or need attention that the model does not have, or a language that
        is not known.
        """
        decoding = options.decoding(self.decoding)
        problems = options.contradictions(decoding, constraints=constraints)
        if decoding.coverage_penalty and (lacking := self.scorer.without_attention):
            problems.append(f"`coverage_penalty` needs attention, and {lacking}; set it to 0")
        if options.replace_unknown is not None and (lacking := self.scorer.without_attention):
            problems.append(f"`replace_unknown` needs attention, to know the source word of each, and {lacking}")
        if options.alignments and (why := self.scorer.without_alignments):
            problems.append(why)
        if options.glossary is not None and (forbidden := self._forbidden(options)) is not None:
            terms = map(self.vocabularies.target.normalized, options.glossary.all_translations)
            problems += forbidden.contradictions(terms, "the glossary")
        refuse(problems)
        sentence_language(options, self.languages)
        constrained = constraints or options.glossary is not None
        if constrained and (joiner := self.vocabularies.target.joiner):
            raise UserError(
                f"{'`constraints` do' if constraints else '`glossary` does'} not go with a vocabulary of cut words "
                f"(subwords.joiner: {joiner!r}), where a phrase may turn out to be the end of another word"
            )

    def translate(
        self,
        lines: Iterable[str],
        options: TranslationOptions | None = None,
        *,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[str] | None = None,
        first: int | None = 0,
        waiting: Callable[[], bool] | None = None,
        doubts: Doubts | None = None,
        **more: Any,
    ) -> Iterator[list[Translation]]:
        """For each line and in order, its `n_best` best translations, best first; fewer if fewer exist.

        Further keywords, such as `beam_size` and `n_best`, override those of `options`. A blank line gives one empty
        translation without asking the model. A line of more than `longest_segment` pieces is cut (see `segment`), the
        translations of its segments are joined as sentences are, and its score is that of all their tokens together.

        With `split_sentences` a line is cut into sentences, each of which is translated as if it stood on a line of its
        own; their translations are joined with the white space that the line has before, between and after them, but
        those in Chinese and Japanese without a space. Score and n-best list are those of the segments together: the
        second best translation has the second best of each. Alignments are between the words of the whole lines.

        `prefixes`: for each line what its translation begins with, or "". Its pieces are forced as the subword model
        cuts it, and the text has it as it was given; its last word is complete (see `required`). Of a line that is cut
        the first segment's translation begins with it. They do not go with `split_sentences`.

        `constraints`: for each line the phrases that its translations must contain, with tabs between them, or "" (see
        `required` and `constrained`). Of a line that is cut, the translation of the first segment has them; but a
        phrase that stands in the source of a later one, as a name does, is in the translation of that. Unknown words
        stay where they would be replaced together with a phrase.

        `first`: the place in the text of the first of `lines`, where they are only a part of it; None: they are no
        lines of a text that users have, so that messages quote them instead of their numbers.

        `waiting` is asked after each line whether the next one would have to be waited for. If so, what was read is
        translated at once, instead of when a chunk is full.

        `doubts` counts lines that may not be translated as they are meant, such as those of several sentences; None:
        at the end of the text, an InputWarning says how many there were.

        Where the target vocabulary has cut words (`Subwords.joiner`), prefixes are cut likewise, and translations have
        whole words; there are no constraints.

        Raises UserError for one text instead of several; when options contradict each other, or need attention that
        the model does not have, or a language that is not known; and, where the first line is asked for, when the model
        computes NaN, as with weights that are not finite.
        """
        options = _changed(options, more)
        self.check(options, constraints=constraints is not None)
        decoding = options.decoding(self.decoding)
        forbidden = self._forbidden(options)
        search = Search(
            scorer=self.scorer,
            decoding=decoding,
            options=options,
            shortlist=self.shortlist,
            continuing=None if prefixes is None and constraints is None else self._continuing,
            forbidden=forbidden,
        )
        writer = Writer(
            scorer=self.scorer,
            vocabularies=self.vocabularies,
            decoding=decoding,
            options=options,
            sight=self._sight(options),
            forbidden=forbidden,
        )
        counted = doubts or Doubts()
        read = self.read(
            lines, options, prefixes=prefixes, constraints=constraints, first=first, waiting=waiting, doubts=counted
        )
        translations = chain.from_iterable(
            writer.translations(together, segments, search.hypotheses(list(chain(*segments))))
            for together, segments in read
        )
        return self._warned_of(translations, counted) if doubts is None else translations

    def _warned_of(self, translations: Iterator[list[Translation]], doubts: Doubts) -> Iterator[list[Translation]]:
        yield from translations
        doubts.warn(self.source_form)

    def translate_text(self, text: str, options: TranslationOptions | None = None, **more: Any) -> str:
        """The best translation of a text: lines stay lines, and each of them is translated sentence by sentence.

        Keywords override those of `options`. Where nothing says how lines are cut into sentences, it is by the
        rules of the model's source language; an InputWarning says why they are not, if that is not known or sentencex
        is not installed. Raises UserError like `translate`.
        """
        check_text(text, "text")
        options = _changed(options, more)
        if options.split_sentences is None:
            options = replace(options, split_sentences=usual_sentences(self.languages.source))
        translations = self.translate(text.split("\n"), options)
        return "\n".join(best.text for best, *_ in translations)

    def read(
        self,
        lines: Iterable[str],
        options: TranslationOptions,
        *,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[str] | None = None,
        first: int | None = 0,
        waiting: Callable[[], bool] | None = None,
        doubts: Doubts | None = None,
    ) -> Iterator[tuple[Sequence[str], list[list[Segment]]]]:
        """As many lines at a time as are translated together, and the segments of each; for the rest see `translate`.

        Raises UserError for one text instead of several, for prefixes of lines that are cut into sentences, and, where
        its line is asked for, for one that cannot have its prefix or constraints.
        """
        if prefixes is not None and options.split_sentences:
            raise UserError(
                "prefixes do not go with split_sentences (--prefix, --split-sentences): where a line is several "
                "sentences, nothing says which of them begins with the prefix; give every sentence a line of its own"
            )
        decoding = options.decoding(self.decoding)
        reader = Reader(
            vocabularies=self.vocabularies,
            longest_segment=self.longest_segment,
            languages=self.languages,
            options=options,
            sight=self._sight(options),
            doubts=doubts or Doubts(),
            longest_trained=self.longest_trained,
            forbidden=self._forbidden(options),
            numbered=first is not None,
        )
        beside = {"prefixes": prefixes, "constraints": constraints}
        together = chunks_with(lines, beside, characters=_characters(decoding), waiting=waiting)
        return reader.of_chunks(together, first or 0)

    def _sight(self, options: TranslationOptions) -> Sight:
        return Sight(
            self.vocabularies.source,
            _protection(tuple(options.decoding(self.decoding).protect)),
            options.glossary,
            keeps_unknown=options.replace_unknown is None,
            learned=self.learned,
        )

    def together(self, lines: Iterable[str], options: TranslationOptions) -> Iterator[int]:
        """How many of the lines are translated together, then how many of the next, and so on.

        A text that is cut where they end is translated as the whole is, bit for bit, if no `waiting` is given.
        """
        return map(len, chunks(lines, _characters(options.decoding(self.decoding)), None))


def _changed(options: TranslationOptions | None, more: Mapping[str, Any]) -> TranslationOptions:
    return replace(options or TranslationOptions(), **more)


def _characters(decoding: DecodingConfig) -> int:
    """How many characters of lines are translated together."""
    return min(CHUNK_BATCHES * CHARACTERS_A_PIECE * decoding.batch_tokens, MOST_CHARACTERS)


@lru_cache(maxsize=16)
def _protection(patterns: tuple[str, ...]) -> Protection | None:
    return Protection(patterns) if patterns else None


def _usable(device: "torch.device | str") -> str:
    if str(device) == "cpu":
        return "cpu"
    import torch

    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).tolist()  # "meta" holds nothing that could be read
    except (AssertionError, RuntimeError, TypeError) as error:  # a PyTorch without CUDA asserts that it has it
        reason = str(error).partition("\n")[0].rstrip(".:")
        raise UserError(f'device {device}: cannot be used: {reason}; "cpu" always can') from error
    return str(chosen)


def _check_precision(precision: str, device: str) -> None:
    if precision not in PRECISIONS:
        raise UserError(f"precision {precision}: unknown; choose one of {', '.join(PRECISIONS)}")
    if precision == "int8" and device != "cpu":
        raise UserError("precision int8: is for the CPU; choose bfloat16 or float32 on a GPU")
    if precision == "bfloat16" and device == "cpu":
        raise UserError("precision bfloat16: is for a GPU; choose int8 or float32 on a CPU")


def _load(path: Path) -> _Loaded:
    path = model_path(path)
    file = load_head(path)
    try:
        return _Loaded(path, file, Vocabularies.from_bytes(file.source_subwords, file.target_subwords, file.sizes))
    except ValueError as error:
        load_model(path, export=True)  # which says it better, if the file is damaged
        raise _unfit(path, error) from error


def _unfit(path: Path, error: Exception) -> UserError:
    reason = shorten(str(error), 200, placeholder=" …")  # PyTorch names every weight that does not fit
    return UserError(f"{path}: damaged: its parts do not fit together ({reason})")


def _runtime_scorer(loaded: Sequence[_Loaded], files: _Files) -> RuntimeScorer | None:
    """The models in ONNX Runtime, where it can compute so and its graphs are worth making; else None."""
    must = files.precision == "int8"
    if not (must or any(one.file.exported or one.path.stat().st_size >= WORTH_EXPORTING for one in loaded)):
        return None
    graphs = [
        GraphsOfModel(graph_key(one.file, files.precision), partial(_exported, one, files.precision)) for one in loaded
    ]
    scores = [one.file.config.model.attention.score for one in loaded]
    scorer = RuntimeScorer(graphs, scores, ensemble=files.ensemble)
    try:
        scorer.engines(among=files.shortlist is not None)
    except CannotExportError:
        if must:
            raise UserError("precision int8: ONNX Runtime cannot compute this model; choose float32") from None
        return None
    return scorer


def _exported(one: _Loaded, precision: str, among: bool) -> Graphs | None:
    """The graphs of a model, made of its file, or those of an export."""
    if one.file.exported and one.file.exported.precision == precision and not among:
        return checked_graphs(one.path, _read_again(one.path, one.file.digest, export=True))
    network = _network(one.path, one.file.digest)  # which an export has not
    from nmt.decoding.graph import checked_export

    return checked_export(network, precision, among=among)


def _pytorch_scorer(files: _Files, device: str) -> "Scorer":
    """The models in PyTorch. Raises UserError for each that is damaged, or has changed since."""
    import torch

    from nmt.decoding.scorer import Scorer

    models, problems = [], list[str]()
    for path, digest in zip(files.models, files.digests, strict=False):
        with collected(problems):
            models.append(_network(path, digest).to(device))
    refuse(problems)
    return Scorer(models, precision=getattr(torch, files.precision), ensemble=files.ensemble)


def _network(path: Path, digest: str | None) -> "Seq2Seq":
    file = _read_again(path, digest)
    try:
        return rebuild(file)
    except (KeyError, ValueError, UserError) as error:
        raise _unfit(path, error) from error


def _read_again(path: Path, digest: str | None, *, export: bool = False) -> ModelFile:
    """The whole file, of which the head was read before. Raises UserError where it has changed since."""
    file = load_model(path, export=export)
    if file.digest != digest:
        raise UserError(f"{path}: has another content than when it was loaded first; start again")
    return file


def _loaded_again(
    kind: type[Translator], files: _Files, device: str, decoding: dict[str, Any], longest_segment: int
) -> Translator:
    """A translator as it was when it was pickled. Raises UserError when a file is not what it was then."""
    loaded = kind.load(
        files.models, device=device, precision=files.precision, shortlist=files.shortlist, ensemble=files.ensemble
    )
    assert loaded._files is not None
    pairs = zip([*files.models, files.shortlist], files.digests, loaded._files.digests, strict=True)
    what = "has another content than when the translator that was pickled was loaded from it"
    refuse([f"{path}: {what}" for path, before, now in pairs if before != now])
    loaded.decoding, loaded.longest_segment = DecodingConfig.model_validate(decoding), longest_segment
    return loaded


def _differences(one: _Loaded, other: _Loaded) -> list[str]:
    """Why two models cannot translate together: each side needs the same language, and the same vocabulary."""
    data, others = one.file.config.data, other.file.config.data
    languages = (data.source_language, others.source_language), (data.target_language, others.target_language)
    reasons = []
    for side, names, *both in zip(("source", "target"), languages, one.vocabularies, other.vocabularies, strict=True):
        if names[0] != names[1]:
            reasons.append(f"{side} languages differ ({' and '.join(names)})")
        if both[0].model != both[1].model:
            reasons.append(f"{side} vocabularies differ ({both[0].size} and {both[1].size} pieces)")
    return [f"{one.path} and {other.path} cannot translate together: their {reason}" for reason in reasons]
