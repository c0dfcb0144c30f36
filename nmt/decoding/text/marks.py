"""Marks: spans of a line, carried over to its translation by attention.

Whatever goes with a line and must be in its translation is a mark with a rule:

- one that encloses words, such as a tag of HTML, encloses the words that attend to those;
- one that encloses none, such as a line break, an address, or a placeholder, which the model has not seen, stands where
  the words around it are translated, with the white space that it had;
- one with a text `instead`, such as a term of a glossary, takes the place of the words that attend to its own, or of
  what it `replaces`, such as an unknown word that a model has written; nothing, of what it should not have.

Two steps: `_Placing` chooses for each mark a span of the translation, and `pieces` writes. Words are first divided into
atoms: runs of letters and digits, and signs, each by itself. Letters attend as their word does; a sign attends to the
same sign of the word that its own word attends to, and so do the parts of a word such as Ctrl+X to those of one that is
built alike. So a mark around `Cancel` in "Press Cancel" takes no period of "Drücken Sie Abbrechen.":

    source  Press <b> Cancel </b>                    inside(t)   attention of atom t to what the mark encloses
    target  Drücken  Sie  Abbrechen  .               score(t)    inside(t) - attention to all the rest
    inside  0.1      0.3  0.9        0
    score   -0.8    -0.4  0.8        0               the run with the largest sum of scores: Abbrechen

Marks stay nested as they are in the line; those beside each other may change places. It knows lines, words, and
attention; it knows nothing of what marks mean.
"""

import math
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, groupby, islice
from typing import NamedTuple

import regex

from nmt.data.words import ALONE, CLOSING, WORD_OR_SIGN, Span, are_together, has_finer, overlapping, words_of
from nmt.decoding.text.sentences import ENDS, FULL_STOPS

ROOT = -1  # the parent of the marks that are in no other
_FIXED = -2  # holds what is in no mark
Weighted = tuple[int, int, float]  # source word, target word (see `words_of`), and how much the latter attends to it
Range = tuple[int, int]  # [start, stop)

DECAY, NEIGHBORS = 0.5, 8
"""A word crosses a mark without words that attends to one on its other side in the source. It costs the square of its
attention, so that what it glances at hardly counts, times DECAY for each word between, of NEIGHBORS words."""
TENSION, ORDER = 4.0, 1.0
"""How much more a word attends to that of equal words which is in a like position: by e^4, if the other one is at the
other end of its sentence. It is the prior of Dyer, Chahuneau & Smith (2013), section 2, with their value. And by e for
each of them that comes between, where the translation has as many."""
MOST_PARTS = 40
"""Letters between signs of a word that are looked at, so that time is in proportion to the length of a line."""
FOLLOWING, SENTENCE = 1.5, 1.5
"""What a place is worth before the word that followed the mark, and at the end of a sentence, where it was at one."""

_UNSPACED = regex.compile(f"[{ALONE}]{{2}}")
_QUOTES = "\"'`´„‚「」『』"
_JOINING = ("'", "’", "־")  # the apostrophe of elision, and Hebrew's hyphen
_ENDS, _ELLIPSIS = frozenset(ENDS), "..."


class Mark(NamedTuple):
    """What stands around the characters [start, stop) of a line, or, where they are none, between two of them."""

    start: int
    stop: int
    parent: int = ROOT  # the mark in which it stands, which comes before it in the list of marks
    before: bool = False  # whether white space belongs before it, and after it; only where no words are its own
    after: bool = False
    breaks: bool = False  # whether words need no white space where it stands between them, as at a line break
    instead: str | None = None  # what takes the place of the words that are aligned with it, or of what it `replaces`
    replaces: Range | None = None  # characters of the translation
    tags: tuple[str, str] = ("", "")  # what it begins and ends with
    place: Span = (0, 0)  # of what it stands for, in a line that the model sees only a part of


class Piece(NamedTuple):
    """A part of a translation with its marks."""

    text: str
    mark: int | None  # that it belongs to; None: it is the translation's, or white space
    start: int | None = None  # its first character in the translation, or that of what it stands for


def in_proportion(line: str, translation: str) -> list[Weighted]:
    """Links of words whose attention is not known."""
    sources, targets = len(words_of(line)), len(words_of(translation))
    return [(place * sources // targets, place, 1.0) for place in range(targets)] if sources else []


def written(
    line: str,
    marks: Sequence[Mark],
    translation: str,
    links: Sequence[Weighted],
    *,
    escape: Callable[[str], str] = str,
) -> str:
    """The translation with its marks; `escape` is for the text."""
    parts = pieces(line, marks, translation, links)
    return "".join(part.text if part.mark is not None else escape(part.text) for part in parts)


def pieces(
    line: str,
    marks: Sequence[Mark],
    translation: str,
    links: Sequence[Weighted],
    *,
    fixed: Sequence[Span] = (),
    whole: Sequence[Span] = (),
) -> list[Piece]:
    """The translation with its marks, part by part; without `links` words are taken to be aligned in proportion.

    Of what is `fixed` nothing is in a mark, and at the beginning nothing comes before it. None parts what is `whole`.
    """
    if not marks:
        return [Piece(translation, None, 0)]
    placing = _Placing(line, marks, translation, links or in_proportion(line, translation), fixed, whole)
    return _Writing(placing).pieces()


def moved(spans: Iterable[Span], parts: Sequence[Piece]) -> list[Span]:
    """Where the characters [start, stop) of a translation are in that with its marks, whose `parts` these are.

    Of what a mark stands there instead of, they are its characters.
    """
    bounds = [*accumulate((len(part.text) for part in parts), initial=0)]
    own = [(part.start, number) for number, part in enumerate(parts) if part.start is not None]

    def place(character: int) -> int:
        begin, number = own[max(bisect_right(own, (character, len(parts))) - 1, 0)]
        return bounds[number] + max(min(character - begin, len(parts[number].text) - 1), 0)

    if not own:
        return [(0, 0) for _ in spans]
    return [(place(start), place(stop - 1) + 1 if start < stop else place(start)) for start, stop in spans]


class _Atoms:
    """The atoms of a text, which are cut at `cuts` too, and the words that they are parts of."""

    def __init__(self, text: str, cuts: Iterable[int]) -> None:
        self.text = text
        places = sorted(set(cuts))
        self.spans: list[Span] = []
        for start, stop in (match.span() for match in WORD_OR_SIGN.finditer(text)):
            inside = places[bisect_right(places, start) : bisect_left(places, stop)]
            self.spans += zip([start, *inside], [*inside, stop], strict=True)
        self.starts = [start for start, _ in self.spans]
        self.signs = [_sign(text[start]) for start in self.starts]
        self.words = [range(*self.between(*word)) for word in words_of(text)]
        self._shares: dict[int, list[tuple[int, float]]] = {}

    def between(self, start: int, stop: int) -> Range:
        """The atoms that begin among the characters [start, stop)."""
        return bisect_left(self.starts, start), bisect_left(self.starts, stop)

    def letters(self, word: int) -> list[int]:
        """The atoms of a word that are letters and digits."""
        return [atom for atom in self.words[word] if not self.signs[atom]]

    def sentences(self) -> list[int]:
        """Which sentence each word is in, from 0; one ends with a word that ends with a mark of its end."""
        ends = [self.signs[atoms[-1]] in _ENDS if atoms else False for atoms in self.words]
        return [*accumulate(ends[:-1], initial=0)] if ends else []

    def shares(self, word: int) -> list[tuple[int, float]]:
        """The parts of a word that are read, and how much of it each is; of very many the first and the last ones."""
        if word not in self._shares:
            parts = self.letters(word) or list(self.words[word])
            if len(parts) > MOST_PARTS:
                parts = parts[: MOST_PARTS // 2] + parts[-MOST_PARTS // 2 :]
            sizes = [self.spans[part][1] - self.spans[part][0] for part in parts]
            self._shares[word] = [(part, size / sum(sizes)) for part, size in zip(parts, sizes, strict=True)]
        return self._shares[word]

    def core(self, word: int) -> range:
        """The atoms of a word without the signs around it."""
        letters = self.letters(word)
        return range(letters[0], letters[-1] + 1) if letters else range(0)

    def touches(self, atom: int) -> bool:
        """Whether there is an atom before this one, without white space between them."""
        return 0 < atom < len(self.spans) and self.spans[atom - 1][1] == self.starts[atom]

    def closes(self, atom: int) -> bool:
        """Whether it is a quotation mark at the end of a quotation."""
        return self.signs[atom] == '"' and self.text[self.starts[atom]] in CLOSING

    def around(self, word: int) -> range:
        """The atoms of a word and NEIGHBORS signs that touch it, which are words in scripts without spaces."""
        start, stop = first, last = self.words[word].start, self.words[word].stop
        while first - start < NEIGHBORS and self.touches(start) and self.signs[start - 1]:
            start -= 1
        while stop - last < NEIGHBORS and self.touches(stop) and self.signs[stop]:
            stop += 1
        return range(start, stop)

    def spelled(self, atoms: range) -> str:
        """What atoms of one word spell."""
        return self.text[self.spans[atoms[0]][0] : self.spans[atoms[-1]][1]] if atoms else ""


def _sign(character: str) -> str:
    """What a sign is, alike for those that languages write differently, as quotation marks; "" for letters, digits."""
    category = unicodedata.category(character)
    if category[0] in "LMN" or category == "Cf":
        return ""
    if category in ("Pi", "Pf") or character in _QUOTES:
        return '"'
    if category == "Pd":
        return "-"
    return "." if character in FULL_STOPS else unicodedata.normalize("NFKC", character)


class _Attention:
    """How much each atom of a translation attends to each of its source."""

    def __init__(
        self, line: str, translation: str, links: Sequence[Weighted], cuts: Sequence[int], replaced: Sequence[int]
    ) -> None:
        self.source, self.target = _Atoms(line, cuts), _Atoms(translation, replaced)
        rows: list[dict[int, float]] = [{} for _ in self.target.words]
        ours, theirs = self.source.sentences(), self.target.sentences()
        apart = ours[-1:] == theirs[-1:]  # as many, so that each is the translation of its like
        for word, place, weight in links:
            if not apart or ours[word] == theirs[place]:
                rows[place][word] = weight
        near, far = (_positions(of_words if apart else [0] * len(of_words)) for of_words in (ours, theirs))
        _tell_apart(rows, self._equal_words(ours if apart else [0] * len(ours)), near, far)
        alike = self._unchanged(rows)
        if moved := self._cuts_of_unchanged(alike, cuts):
            self.target = _Atoms(translation, [*moved, *replaced])
        taken = {word for word in alike.values() if _is_literal(self.source.spelled(self.source.core(word)))}
        self.by_source: list[list[tuple[int, float]]] = [[] for _ in self.source.spans]
        self.totals = [0.0] * len(self.target.spans)
        pairs = zip(self._ends(self.source), self._ends(self.target), strict=False) if apart else ()
        ends = {atom: attended for attended, atom in pairs if attended is not None and atom is not None}
        for place, row in enumerate(rows):
            if place in alike:
                self._add(place, {alike[place]: 1.0})
            elif self.target.words[place].start in ends:  # the period of tokenized text
                continue
            elif others := {word: weight for word, weight in row.items() if word not in taken}:
                self._add(place, others)
        for atom, attended in ends.items():
            if not self.totals[atom]:
                self._link(attended, atom, 1.0)  # the period of a sentence, behind any word
        self.before = [0.0, *accumulate(self.totals)]

    def _equal_words(self, sentences: Sequence[int]) -> list[list[int]]:
        """The words of the source that a sentence has several times, each time."""
        equal: dict[tuple[int, str], list[int]] = {}
        for word, (atoms, sentence) in enumerate(zip(self.source.words, sentences, strict=True)):
            equal.setdefault((sentence, self.source.spelled(self.source.core(word) or atoms)), []).append(word)
        return [words for words in equal.values() if len(words) > 1]

    def _ends(self, atoms: _Atoms) -> list[int | None]:
        """The mark at the end of each sentence; None where there is none."""
        lasts = {sentence: words[-1] for sentence, words in zip(atoms.sentences(), atoms.words, strict=True)}
        return [last if atoms.signs[last] in _ENDS else None for last in lasts.values()]

    def _unchanged(self, rows: Sequence[dict[int, float]]) -> dict[int, int]:
        """The source word of each target word that is the same, without the signs around both: that which it attends to
        most.

        If it is no word of a language, such as F5 or Ctrl+X, it is one of its kind even if it attends to none of them.
        """
        literals: dict[str, dict[int, None]] = {}
        for word in range(len(self.source.words)):
            if _is_literal(core := self.source.spelled(self.source.core(word))):
                literals.setdefault(core, {})[word] = None
        cores = [self.target.spelled(self.target.core(place)) for place in range(len(rows))]
        alike = [row.keys() & literals.get(core, {}).keys() for core, row in zip(cores, rows, strict=True)]
        strongest = [max((row[word] for word in words), default=0.0) for row, words in zip(rows, alike, strict=True)]
        unchanged: dict[int, int] = {}
        for place in sorted(range(len(rows)), key=lambda place: -strongest[place]):  # of equal ones the first
            core, row = cores[place], rows[place]
            if core and (same := literals.get(core)):
                attended = alike[place] & same.keys()
                word = max(attended, key=lambda word: (row[word], -word)) if attended else next(iter(same))
                unchanged[place] = word
                del same[word]
            elif core and row:
                best = max(row, key=lambda word: row[word])
                if self.source.spelled(self.source.core(best)) == core:
                    unchanged[place] = best
        return unchanged

    def _cuts_of_unchanged(self, unchanged: dict[int, int], cuts: Sequence[int]) -> list[int]:
        """Where marks begin and end in words that the translation has unchanged, as around the 2 of H2O."""
        source, target = self.source, self.target
        places = sorted(set(cuts))
        moved: list[int] = []
        for place, word in unchanged.items():
            core = source.core(word)
            start, stop = source.spans[core[0]][0], source.spans[core[-1]][1]
            shift = target.spans[target.core(place)[0]][0] - start
            moved += [cut + shift for cut in places[bisect_right(places, start) : bisect_left(places, stop)]]
        return moved

    def _add(self, place: int, row: dict[int, float]) -> None:
        """Link the atoms of the target word at `place`, which attends to the source words of `row`."""
        source, target = self.source, self.target
        best = max(row, key=lambda word: row[word])
        ours, theirs = target.core(place), source.core(best)
        is_whole = len(ours) > 1 and [target.signs[atom] for atom in ours] == [source.signs[atom] for atom in theirs]
        if is_whole:
            for atom, attended in zip(ours, theirs, strict=True):
                self._link(attended, atom, 1.0)
        first, stop = target.words[place].start, target.words[place].stop
        is_glued = not ours and (target.touches(first) or target.touches(stop))
        atoms = [] if is_whole else target.letters(place)
        signs: dict[tuple[str, bool, bool], deque[int]] = {}  # of a kind, inside the word or around it
        for atom in source.around(best):
            if source.signs[atom] and not (is_whole and atom in theirs):
                signs.setdefault((source.signs[atom], atom in theirs, source.closes(atom)), deque()).append(atom)
        for atom in target.words[place]:
            if target.signs[atom] and not (is_whole and atom in ours):
                sought, closes = (target.signs[atom], atom in ours), target.closes(atom)
                if same := signs.get((*sought, closes)) or signs.get((*sought, not closes)):
                    self._link(same.pop() if closes else same.popleft(), atom, 1.0)
                elif target.signs[atom] == _ELLIPSIS if ours else not is_glued:  # of a name, as in "Save as…"
                    atoms.append(atom)
        for atom in atoms:
            for word, weight in row.items():
                for part, share in source.shares(word):
                    self._link(part, atom, weight * share)

    def _link(self, attended: int, atom: int, weight: float) -> None:
        self.by_source[attended].append((atom, weight))
        self.totals[atom] += weight

    def to(self, start: int, stop: int) -> dict[int, float]:
        """The attention of the target atoms that have any to the source atoms [start, stop)."""
        inside: dict[int, float] = {}
        for attended in range(start, stop):
            for atom, weight in self.by_source[attended]:
                inside[atom] = inside.get(atom, 0.0) + weight
        return inside


def _positions(sentences: Sequence[int]) -> list[float]:
    """How far each word is in its sentence, of 1; `sentences` says which one it is in."""
    counts, starts = Counter(sentences), {sentence: place for place, sentence in reversed([*enumerate(sentences)])}
    return [(place - starts[sentence] + 0.5) / counts[sentence] for place, sentence in enumerate(sentences)]


def _tell_apart(
    rows: Sequence[dict[int, float]], equal: Sequence[Sequence[int]], near: Sequence[float], far: Sequence[float]
) -> None:
    """Move the attention to `equal` words to that one in a like position, as words that know no positions cannot.

    Where as many words attend to them more than to all others, their order counts as well.
    """
    group = {word: (number, order) for number, words in enumerate(equal) for order, word in enumerate(words)}
    meaning: list[list[int]] = [[] for _ in equal]  # the words that attend most to those of each group
    for place, row in enumerate(rows):
        sums: dict[int, float] = {}
        for word in row.keys() & group.keys():
            sums[group[word][0]] = sums.get(group[word][0], 0.0) + row[word]
        for number, weight in sums.items():
            if 2 * weight > sum(row.values()):
                meaning[number].append(place)
    for number, places in enumerate(meaning):
        tension = ORDER if len(equal[number]) == len(places) else 0.0
        for order, place in enumerate(places):
            row, moved = rows[place], dict[int, float]()
            for word in row:
                if word in group and group[word][0] == number:
                    behind = tension * min(abs(group[word][1] - order), NEIGHBORS)
                    moved[word] = row[word] * math.exp(-TENSION * abs(near[word] - far[place]) - behind)
            scale = sum(row[word] for word in moved) / sum(moved.values())
            row |= {word: weight * scale for word, weight in moved.items()}


def _is_literal(word: str) -> bool:
    """Whether it is no word of a language, by its digits, signs or capitals."""
    return any(not character.isalpha() for character in word) or any(map(str.isupper, word[1:]))


class _Placing:
    """Where the marks of one line go in its translation."""

    def __init__(
        self,
        line: str,
        marks: Sequence[Mark],
        translation: str,
        links: Sequence[Weighted],
        fixed: Sequence[Span],
        whole: Sequence[Span],
    ) -> None:
        self.line, self.marks, self.translation = line, marks, translation
        self.whole = sorted({*fixed, *whole})
        cuts = [place for mark in marks for place in (mark.start, mark.stop)]
        replaced = [place for mark in marks for place in mark.replaces or ()]
        self.attention = _Attention(line, translation, links, cuts, replaced)
        self.source, self.target = self.attention.source, self.attention.target
        self.sentence_ends = [place for place, sign in enumerate(self.target.signs, start=1) if sign in _ENDS]
        self.children: dict[int, list[int]] = {}
        for index, mark in enumerate(marks):
            self.children.setdefault(mark.parent, []).append(index)
        self.enclosed: dict[int, Range] = {ROOT: (0, len(self.source.spans))}
        self.enclosed |= {index: self.source.between(mark.start, mark.stop) for index, mark in enumerate(marks)}
        self.holder = [ROOT] * len(self.target.spans)  # the innermost mark around each target atom
        self.ranges: dict[int, Range] = {ROOT: (0, len(self.target.spans))}  # of target atoms
        self.spans: dict[int, Span] = {ROOT: (0, len(translation))}  # of characters
        for start, stop in fixed:
            first, last = self.target.between(start, stop)
            self.holder[first:last] = [_FIXED] * (last - first)
            if not start:
                first, begin = max(last, self.ranges[ROOT][0]), max(stop, self.spans[ROOT][0])
                self.ranges[ROOT], self.spans[ROOT] = (first, len(self.target.spans)), (begin, len(translation))
        for node in (ROOT, *range(len(marks))):
            if node in self.children:
                self._place_children(node)

    def _place_children(self, node: int) -> None:
        """Choose the words of each child that encloses any, and then the places of the others between them."""
        if node in self.ranges:
            self._choose_runs(node, self.children[node])
        children = self.children[node]
        chosen = sorted((*self.spans[child], child) for child in children if child in self.ranges)
        for child in children:
            if child not in self.ranges:
                place = self._place(node, self.marks[child])
                place = max([place, *(self.whole[index][1] for index in overlapping(self.whole, (place, place)))])
                has_words = self.marks[child].start < self.marks[child].stop  # which is not before what it follows
                before = bisect_left(chosen, (place + has_words, 0, 0)) - 1
                if before >= 0 and place < chosen[before][1]:  # inside another child: before it, or after it
                    start, stop, other = chosen[before]
                    place = stop if child > other else start
                self.spans[child] = (place, place)

    def _choose_runs(self, node: int, children: Sequence[int]) -> None:
        """Choose the words of each child that has any: first of those that replace them, which others may enclose."""
        first, last = self.ranges[node]
        totals = self.attention.totals
        inside: dict[int, dict[int, float]] = {}
        for child in children:
            attending = self.attention.to(*self.enclosed[child])
            if child in self.ranges:  # as it was chosen beside the node
                self._hold(child, self.ranges[child])
            elif (place := self.marks[child].replaces) is not None:
                self._hold(child, self.target.between(*place))
            elif attending := {atom: weight for atom, weight in attending.items() if first <= atom < last}:
                inside[child] = attending
        sizes = {
            child: sum(max(2 * weight - totals[atom], 0.0) for atom, weight in attending.items())
            for child, attending in inside.items()
        }
        encloses = {child: self.marks[child].instead is None for child in children}
        for child in sorted(inside, key=lambda child: (encloses[child], -sizes[child], child)):
            run = self._best_run(node, child, inside[child])
            if run is not None and encloses[child]:
                run = self._adopt(node, child, run)
            if run is not None:
                self._hold(child, run)

    def _adopt(self, node: int, child: int, run: Range) -> Range:
        """The run, and the rest of the children of the node that it has a part of, which are now of the child."""
        held = {self.holder[atom] for atom in range(*run)} - {node}
        for other in held:
            run = min(run[0], self.ranges[other][0]), max(run[1], self.ranges[other][1])
            self.children[node].remove(other)
        self.children.setdefault(child, []).extend(sorted(held))
        return run

    def _hold(self, child: int, run: Range) -> None:
        start, stop = self.ranges[child] = run
        self.holder[start:stop] = [child] * (stop - start)
        self.spans[child] = self.target.spans[start][0], self.target.spans[stop - 1][1]

    def _best_run(self, node: int, child: int, inside: dict[int, float]) -> Range | None:
        """The run of atoms with the largest sum of scores; of equals the longest, then the first.

        Where no sum is above 0, the atom with the most attention. It has no atom of another child of the node, except
        what takes the place of words, if it encloses them; if not, and that atom is another's, it is no other one,
        which would be lost. What encloses all that the node does has all of its atoms.
        """
        totals, before = self.attention.totals, self.attention.before
        encloses = self.marks[child].instead is None

        def is_free(atom: int) -> bool:
            holder = self.holder[atom]
            return holder == node or (encloses and holder >= 0 and self.marks[holder].instead is not None)

        every = self.ranges[node]
        if encloses and self.enclosed[child] == self.enclosed[node] and all(map(is_free, range(*every))):
            return every
        free = sorted(filter(is_free, inside))
        best, best_run = (0.0, 0), None
        start, score, previous = 0, -1.0, -1
        for atom in free:
            score -= before[atom] - before[previous + 1]
            if score < 0 or not all(map(is_free, range(previous + 1, atom))):
                start, score = atom, 0.0
            score += 2 * inside[atom] - totals[atom]
            previous = atom
            if score > 0 and (round(score, 6), atom - start) > best:
                best, best_run = (round(score, 6), atom - start), (start, atom + 1)
        if best_run is None:
            most = max(free if encloses else inside, key=lambda atom: inside[atom], default=None)
            best_run = None if most is None or not is_free(most) else (most, most + 1)
        return best_run

    def _place(self, node: int, mark: Mark) -> int:
        """The place, in characters, for a mark without words: where the words around it are translated.

        What white space came after alone, as after the number of a footnote, goes behind the word before it.
        """
        start, stop = self.spans[node]
        first, last = self.ranges.get(node, (0, 0))
        here, (begin, end) = bisect_left(self.source.starts, mark.start), self.enclosed[node]
        if first == last:
            return stop
        is_inside = begin < here < end and self.source.touches(here)
        if here > begin and not mark.before and not mark.breaks and (mark.after or is_inside):
            links = [link for link in self.attention.by_source[here - 1] if first <= link[0] < last]
            if links:  # behind the atom that attends most to the one before
                atom = max(links, key=lambda link: link[1])[0]
                return min(max(self.target.spans[atom][1], start), stop)
        if here <= begin or here >= end:
            return start if here <= begin else self._at_end(mark, stop, first, last)
        place = self._best_place(here, (begin, end), (first, last))
        return stop if place >= last else min(max(self.target.starts[place], start), stop)

    def _at_end(self, mark: Mark, stop: int, first: int, last: int) -> int:
        """The end of what a mark stands in, before a period that the source does not have."""
        atom = last - 1
        while mark.before and atom > first and self.target.signs[atom] in _ENDS and not self.attention.totals[atom]:
            atom -= 1
        return min(stop, self.target.spans[atom][1])

    def _best_place(self, here: int, within: Range, places: Range) -> int:
        """The target atom before which a mark before the source atom `here` goes.

        It is the place with the lowest cost: what crosses it, less what the words beside it have of those beside the
        mark, of which that which follows counts more; and sentences end where they do in the source. Of equal places
        the last that begins a word.
        """
        before = self._linked(range(here - 1, within[0] - 1, -1))
        behind = self._linked(range(here, within[1]))
        changes: dict[int, float] = {places[0]: 0.0}  # of the cost, from one place on
        beside: dict[int, float] = {}  # what a place is worth for the words beside it
        for atoms, sign in ((before, -1), (behind, 1)):
            for distance, attended in enumerate(atoms):
                for atom, weight in self.attention.by_source[attended]:
                    if places[0] <= atom < places[1]:
                        changes[atom + 1] = changes.get(atom + 1, 0.0) + sign * weight**2 * DECAY**distance
                        if not distance:
                            place = atom if sign > 0 else atom + 1
                            beside[place] = beside.get(place, 0.0) + weight**2 * (FOLLOWING if sign > 0 else 1.0)
        if len(changes) == 1:
            share = (here - within[0]) / (within[1] - within[0])
            return places[0] + round(share * (places[1] - places[0]))
        ends = self.source.signs[here - 1] in _ENDS
        candidates = {place + step for place in (*changes, *beside) for step in (-1, 0)}
        for place in changes if ends else ():
            after = bisect_left(self.sentence_ends, place)
            candidates.update(self.sentence_ends[max(after - 1, 0) : after + 1])
        bounds = sorted(changes)
        costs = [*accumulate(changes[bound] for bound in bounds)]

        def cost(place: int) -> tuple[float, bool, int]:
            crossing = costs[bisect_right(bounds, place) - 1]
            worth = beside.get(place, 0.0) + SENTENCE * (ends and place > 0 and self.target.signs[place - 1] in _ENDS)
            return round(crossing - worth, 6), not self._begins_word(place), -place

        return min((place for place in candidates if places[0] <= place <= places[1]), key=cost)

    def _linked(self, atoms: Iterable[int]) -> list[int]:
        """The first of the source atoms, without signs that no word attends to."""
        linked = (atom for atom in atoms if self.attention.by_source[atom] or not self.source.signs[atom])
        return list(islice(linked, NEIGHBORS))

    def _begins_word(self, place: int) -> bool:
        """Whether a mark may stand before a target atom without parting a word, or a sign from its word."""
        if place >= len(self.target.spans):
            return True
        before, start = self.target.spans[place - 1][1] if place else 0, self.target.starts[place]
        return before < start or (
            _UNSPACED.fullmatch(self.translation, start - 1, start + 1) is not None
            and not are_together(self.translation, start - 1)
        )


class _Writing:
    """The translation with the marks, each at its place."""

    def __init__(self, placing: _Placing) -> None:
        self.placing, self.marks, self.translation = placing, placing.marks, placing.translation
        self.at = 0  # characters of the translation that have been written
        self.written: list[Piece] = []

    def pieces(self) -> list[Piece]:
        self._write_inside(ROOT)
        return [piece for piece in self.written if piece.text]

    def _write_inside(self, node: int) -> None:
        """Write what a mark encloses; they are nested less deeply than functions may be."""
        placing = self.placing

        def group(child: int) -> tuple[int | None, int]:
            """Marks without words at one place are written together."""
            return child if child in placing.ranges else None, placing.spans[child][0]

        children = sorted(
            placing.children.get(node, ()), key=lambda child: (placing.spans[child][0], child in placing.ranges, child)
        )
        for (child, place), together in groupby(children, key=group):
            if child is None:
                end = self.at + len(self.translation[self.at : place].rstrip())
                self._write(end)
                self._write_between(node, [*together], self.translation[end:place])
                self.at = place
                continue
            self._write(place)
            mark = self.marks[child]
            if mark.instead is None:
                self.written.append(Piece(mark.tags[0], child))
                self._write_inside(child)
                self.written.append(Piece(mark.tags[1], child))
            else:
                stop = placing.spans[child][1]
                if not (mark.instead or self.translation[stop : stop + 1].strip(CLOSING).strip()):
                    self._strip()
                self.written.append(Piece(mark.instead, child, self.at))
                self.at = stop
                if not (mark.instead or any(piece.text for piece in self.written)):
                    self.at += len(self.translation[self.at :]) - len(self.translation[self.at :].lstrip())
        self._write(placing.spans[node][1])

    def _strip(self) -> None:
        """Take back the white space at the end of what is written."""
        while self.written and not (text := self.written[-1].text).rstrip():
            self.written.pop()
        if self.written:
            self.written[-1] = self.written[-1]._replace(text=text.rstrip())

    def _write(self, stop: int) -> None:
        """Write the translation up to a character."""
        self.written.append(Piece(self.translation[self.at : stop], None, self.at))
        self.at = max(self.at, stop)

    def _write_between(self, node: int, marks: Sequence[int], gap: str) -> None:
        """Write marks without words at one place, with the white space that they had; `gap` is what the text has there.

        Beside a character of a script without spaces there is none.
        """
        start, stop = self.placing.spans[node]
        place = self.placing.spans[marks[0]][0]
        befores = [self.marks[mark].before for mark in marks]
        afters = [self.marks[mark].after for mark in marks]
        spaced = [place > start and (befores[0] or self._is_split_off(marks[0], place - len(gap)))]
        spaced += [before or after for before, after in zip(befores[1:], afters, strict=False)]
        spaced += [place < stop and self._is_spaced_after(marks[-1], self.translation[place], gap)]
        if not gap:
            spaced[0] = spaced[0] and not has_finer(self.translation[place - 1 : place])
            spaced[-1] = spaced[-1] and not has_finer(self.translation[place : place + 1])
        if gap and not any(spaced) and not any(self.marks[mark].breaks for mark in marks):
            spaced[0] = True
        space = gap or " "
        for has_space, mark in zip(spaced, [*marks, None], strict=True):
            self.written.append(Piece(space if has_space else "", None, place - len(gap)))
            if mark is not None:
                self._write_whole(mark)
            space = space.strip("\r\n") if has_space else space  # a line of subtitles ends once

    def _is_split_off(self, mark: int, place: int) -> bool:
        """Whether a mark is parted from what it was joined to, as in l’{name}, and stands behind a word at `place`."""
        start = self.marks[mark].start
        return self.placing.line[start - 1 : start] in _JOINING and self.translation[place - 1 : place].isalnum()

    def _is_spaced_after(self, mark: int, following: str, gap: str) -> bool:
        """Whether there is a space between a mark and the character `following` in the translation.

        So it is where there was one in the source, or punctuation that is not there now; before punctuation where the
        translation has one, as in French.
        """
        if following in CLOSING:
            return gap != ""
        place, line = self.marks[mark].stop, self.placing.line
        before = line[place : place + 1]
        was_punctuation = before != "" and not before.isalnum() and not before.isspace()
        return (self.marks[mark].after and not following.isspace()) or (was_punctuation and following.isalnum())

    def _write_whole(self, node: int) -> None:
        """Write a mark without words in the translation, with those inside it."""
        mark = self.marks[node]
        self.written.append(Piece(mark.tags[0] if mark.instead is None else mark.instead, node))
        for child in self.placing.children.get(node, ()):
            self._write_whole(child)
        self.written.append(Piece(mark.tags[1], node))
