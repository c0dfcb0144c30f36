"""Marks put back into a line's translation: where the tags of HTML and of subtitles go (see `inline`).

In the translation a mark encloses the words that are aligned with those it enclosed: of all runs of words the one with
the most of them over the words that it did not enclose. The marks of a translation are nested as those of the line are,
whatever the alignment; marks beside each other may change places. It knows lines, words and alignments; it knows
nothing of what the marks mean.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from nmt.data.words import ALONE, Span, words_of
from nmt.decoding.text.sentences import ENDS
from nmt.documents.inline import ROOT, Mark
from nmt.pharaoh import Link

_UNSPACED = re.compile(f"[{ALONE}]{{2}}")
_SENTENCE_END = re.compile(rf"[{ENDS}][\"'”’»)\]」』]*\Z")


def placed(
    line: str,
    marks: Sequence[Mark],
    tags: Sequence[tuple[str, str]],
    translation: str,
    links: Sequence[Link] | None,
    *,
    escape: Callable[[str], str] = str,
) -> str:
    """The translation with its marks; `tags` are what each begins and ends with, and `escape` is for the text.

    `links` connect words of the line and of the translation (see `words`); without any, the words are taken to be
    aligned in proportion.
    """
    return _Placing(line, marks, translation, links).written(tags, escape) if marks else escape(translation)


class _Range(NamedTuple):
    """Words [start, stop)."""

    start: int
    stop: int


class _Placing:
    """Where the marks of one line go in its translation."""

    def __init__(self, line: str, marks: Sequence[Mark], translation: str, links: Sequence[Link] | None) -> None:
        self.line, self.marks, self.translation = line, marks, translation
        self.source, self.target = words_of(line), words_of(translation)
        self.read = _read(links or (), len(self.source), len(self.target))
        self.letters = [0, *accumulate(map(str.isalnum, line))]  # letters and digits before each place of the line
        self.firsts: dict[int, int] = {}  # the first and last target word of each source word
        self.lasts: dict[int, int] = {}
        pairs = links or ((word, place) for place, word in enumerate(self.read) if word is not None)
        for word, place in pairs:
            self.firsts[word] = min(self.firsts.get(word, place), place)
            self.lasts[word] = max(self.lasts.get(word, place), place)
        # For each source word, and the end, the place behind all words that are aligned with one before it, and that of
        # the first word that is aligned with it or one after it
        lasts = (self.lasts.get(word, -1) + 1 for word in range(len(self.source)))
        firsts = (self.firsts.get(word, len(self.target)) for word in reversed(range(len(self.source))))
        self.behind = [*accumulate(lasts, max, initial=0)]
        self.ahead = [*accumulate(firsts, min, initial=len(self.target))][::-1]
        # The next aligned word at or after each place
        self.next = [len(self.target)] * (len(self.target) + 1)
        for place in reversed(range(len(self.target))):
            self.next[place] = self.next[place + 1] if self.read[place] is None else place
        self.children: dict[int, list[int]] = {}
        for index, mark in enumerate(marks):
            self.children.setdefault(mark.parent, []).append(index)
        self.starts = [start for start, _ in self.source]
        self.ends = [end for _, end in self.source]
        self.enclosed = {ROOT: _Range(0, len(self.source))} | {
            index: self._enclosed(mark) for index, mark in enumerate(marks)
        }
        self.holder = [ROOT] * len(self.target)  # the innermost mark around each target word
        self.ranges = {ROOT: _Range(0, len(self.target))}
        self.spans = {ROOT: (0, len(translation))}  # of characters
        for node in (ROOT, *range(len(marks))):
            if node in self.children:
                self._place_children(node)

    def _enclosed(self, mark: Mark) -> _Range:
        """The source words that a mark encloses, to the larger part; at least one, if any of it."""
        if mark.start == mark.stop:
            return _Range(0, 0)
        first = bisect_right(self.ends, mark.start)
        last = bisect_left(self.starts, mark.stop) - 1
        if last < first:
            return _Range(0, 0)
        shares = [self._share(mark, first), self._share(mark, last)]
        start = first + (shares[0] < 0.5)
        stop = last + (shares[1] >= 0.5)
        if start >= stop:
            start = first if shares[0] >= shares[1] else last
            stop = start + 1
        return _Range(start, stop)

    def _share(self, mark: Mark, word: int) -> float:
        """How much of the letters and digits of a source word a mark encloses."""
        start, end = self.source[word]
        letters = self._letters(start, end)
        return self._letters(max(start, mark.start), min(end, mark.stop)) / letters if letters else 1.0

    def _letters(self, start: int, stop: int) -> int:
        return self.letters[stop] - self.letters[start]

    def _place_children(self, node: int) -> None:
        """Choose the words of each child that encloses any, and then the places of the others between them."""
        children, within = self.children[node], self.ranges.get(node)
        if within is not None:
            self._choose_words(node, children, within)
        taken = sorted((*self.spans[child], child) for child in children if child in self.ranges)
        for child in children:
            if child not in self.ranges:
                place = self._place(node, self.marks[child])
                before = bisect_left(taken, (place, 0, 0)) - 1
                if before >= 0 and place < taken[before][1]:  # inside another child: before it, or after it
                    start, stop, other = taken[before]
                    place = stop if child > other else start
                self.spans[child] = (place, place)

    def _choose_words(self, node: int, children: Sequence[int], within: _Range) -> None:
        owners: dict[int, int] = {}
        for child in children:
            for word in range(*self.enclosed[child]):
                other = owners.get(word)
                if other is None or self._share(self.marks[child], word) > self._share(self.marks[other], word):
                    owners[word] = child
        places: dict[int, list[int]] = {}
        for place in range(*within):
            read = self.read[place]
            if read is not None and read in owners:
                places.setdefault(owners[read], []).append(place)
        for child in sorted(places, key=lambda child: (-len(places[child]), child)):
            chosen = self._densest(node, places[child])
            if chosen is None:
                continue
            start, stop = chosen
            # Words at the edge that are aligned with nothing
            if self.enclosed[child].start == self.enclosed[node].start and self.next[within.start] >= start:
                start = within.start
            if self.enclosed[child].stop == self.enclosed[node].stop and self.next[stop] >= within.stop:
                stop = within.stop
            self.ranges[child] = _Range(start, stop)
            self.holder[start:stop] = [child] * (stop - start)
            self.spans[child] = self._characters(child, node)

    def _densest(self, node: int, places: Sequence[int]) -> _Range | None:
        """The run of words that has the most of `places`, less the aligned words between them that are not of them.

        It has no word of another child of the node. Of equals the longest, and then the first.
        """
        best, best_range = (0, 0), None
        start, score, previous = 0, -1, -1
        for place in places:
            if self.holder[place] != node:
                score = -1
                continue
            between = self.next[previous + 1]
            while score >= 0 and between < place:
                score = score - 1 if self.holder[between] == node else -1
                between = self.next[between + 1]
            if score < 0:
                start, score = place, 0
            score += 1
            previous = place
            if (score, place - start) > best:
                best, best_range = (score, place - start), _Range(start, place + 1)
        return best_range

    def _characters(self, child: int, node: int) -> tuple[int, int]:
        """The characters of a child that has words: without the punctuation that it left out in the source."""
        mark, words, (first, last) = self.marks[child], self.ranges[child], self.spans[node]
        if (same := self._in_same_word(mark, words)) is not None:
            return same
        start, stop = self.target[words.start][0], self.target[words.stop - 1][1]
        start += self._punctuation((start, stop), self._left_out(mark.start, -1), 1)
        stop -= self._punctuation((start, stop), self._left_out(mark.stop, 1), -1)
        start = min(start, stop - 1)
        return max(start, first), min(stop, last)

    def _in_same_word(self, mark: Mark, words: _Range) -> tuple[int, int] | None:
        """The characters of a mark inside a word that the translation has unchanged, such as the 2 of H2O."""
        begin = mark.start + self.line[mark.start : mark.start + 1].isspace()  # a mark begins before the space
        word = bisect_right(self.starts, begin) - 1
        if word < 0 or mark.stop > self.ends[word] or words.stop - words.start > 1:
            return None
        (start, stop), (place, end) = self.source[word], self.target[words.start]
        if self.line[start:stop] != self.translation[place:end]:
            return None
        return place + begin - start, place + mark.stop - start

    def _left_out(self, place: int, direction: int) -> int:
        """How many characters of its word are beyond a place, if it is inside a word and they are punctuation."""
        if not 0 < place < len(self.line) or self.line[place - 1].isspace() or self.line[place].isspace():
            return 0
        start, stop = self.source[bisect_right(self.starts, place) - 1]
        if direction > 0:
            return 0 if self._letters(place, stop) else stop - place
        return 0 if self._letters(start, place) else place - start

    def _punctuation(self, span: Span, most: int, step: int) -> int:
        """How many of the first characters of a span of the translation (step 1), or of the last (-1), are punctuation.

        Of what stands there between white space at least one character remains.
        """
        start, stop = span
        text = self.translation[start : min(stop, start + most + 1)]
        if step < 0:
            text = self.translation[max(start, stop - most - 1) : stop][::-1]
        text = text.split()[0]
        return next((count for count, letter in enumerate(text[:most]) if letter.isalnum()), min(most, len(text) - 1))

    def _place(self, node: int, mark: Mark) -> int:
        """The place, in characters, for a mark without words: before the word that is aligned with what follows it.

        Where white space came after it alone, as after the number of a footnote, it goes behind the word before it; and
        between two sentences it goes between their translations.
        """
        start, stop = self.spans[node]
        within = self.ranges.get(node)
        if within is None or within.start == within.stop:
            return stop
        words = self.enclosed[node]
        following = bisect_left(self.starts, mark.start)
        is_inside = following > 0 and self.ends[following - 1] > mark.start
        if is_inside or (following > words.start and mark.after and not mark.before and not mark.breaks):
            last = self._within(self.lasts.get(following - 1), within)
            if last is not None:
                end = self.target[last][1]
                end -= self._punctuation((0, end), self._left_out(mark.start, 1), -1)
                return min(max(end, start), stop)
        if following <= words.start:
            return start
        if following >= words.stop:
            return stop
        place = self._between_sentences(following, within)
        if place is None and (place := self._within(self.firsts.get(following), within)) is None:
            before = self._within(self.lasts.get(following - 1), within)
            share = (following - words.start) / (words.stop - words.start)
            place = before + 1 if before is not None else within.start + round(share * (within.stop - within.start))
        return stop if place >= within.stop else min(max(self.target[place][0], start), stop)

    def _between_sentences(self, following: int, words: _Range) -> int | None:
        """The place between the translations of what is before a source word and of the rest, if a sentence ends there.

        None where they are mixed. Of words between them that are aligned with nothing, the end of a sentence belongs to
        the first.
        """
        first, last = self.behind[following], self.ahead[following]
        if first > last or not _ends_sentence(self.line, self.source[following - 1]):
            return None
        ends = (place for place in range(last, first, -1) if _ends_sentence(self.translation, self.target[place - 1]))
        return self._within(next(ends, first), words)

    def _within(self, place: int | None, words: _Range) -> int | None:
        return place if place is not None and words.start <= place < words.stop else None

    def written(self, tags: Sequence[tuple[str, str]], escape: Callable[[str], str]) -> str:
        """The translation with the marks."""
        pieces: list[str] = []
        at = 0  # characters of the translation that have been written
        frames = [(ROOT, self._in_order(ROOT))]
        while frames:
            node, children = frames[-1]
            if not children:
                stop = self.spans[node][1]
                pieces.append(escape(self.translation[at:stop]))
                at = stop
                frames.pop()
                pieces.append(tags[node][1] if node != ROOT else "")
            elif children[-1] in self.ranges:
                child = children.pop()
                start = self.spans[child][0]
                pieces += [escape(self.translation[at:start]), tags[child][0]]
                at = start
                frames.append((child, self._in_order(child)))
            else:
                place = self.spans[children[-1]][0]
                together = []
                while children and children[-1] not in self.ranges and self.spans[children[-1]][0] == place:
                    together.append(children.pop())
                text = self.translation[at:place]
                pieces.append(escape(text.rstrip()))
                pieces += self._between(node, together, text[len(text.rstrip()) :], tags)
                at = place
        return "".join(pieces)

    def _in_order(self, node: int) -> list[int]:
        """The children, the first one last."""
        return sorted(
            self.children.get(node, ()),
            key=lambda child: (self.spans[child][0], child in self.ranges, child),
            reverse=True,
        )

    def _between(self, node: int, marks: Sequence[int], gap: str, tags: Sequence[tuple[str, str]]) -> list[str]:
        """Marks without words at one place, with the white space that they had; `gap` is what the text has there.

        Between two characters of a script without spaces there is none.
        """
        start, stop = self.spans[node]
        place = self.spans[marks[0]][0]
        befores = [self.marks[mark].before for mark in marks]
        afters = [self.marks[mark].after for mark in marks]
        spaced = [befores[0] and place > start]
        spaced += [before or after for before, after in zip(befores[1:], afters, strict=False)]
        spaced += [place < stop and self._spaced_after(marks[-1], self.translation[place])]
        if not gap and _UNSPACED.fullmatch(self.translation, place - 1, place + 1):
            spaced[0] = spaced[-1] = False
        if gap and not any(spaced) and not any(self.marks[mark].breaks for mark in marks):
            spaced[0] = True
        pieces: list[str] = []
        space = gap or " "
        for has_space, whole in zip(spaced, [*(self._whole(mark, tags) for mark in marks), []], strict=True):
            pieces += [space if has_space else "", *whole]
            space = space.strip("\r\n") if has_space else space  # a line of subtitles ends once
        return pieces

    def _spaced_after(self, mark: int, following: str) -> bool:
        """Whether there is a space between a mark and the character `following` in the translation.

        So it is where there was one in the source, or punctuation that is not there now.
        """
        place = self.marks[mark].start
        before = self.line[place : place + 1]
        was_punctuation = before != "" and not before.isalnum() and not before.isspace()
        return (self.marks[mark].after and not following.isspace()) or (was_punctuation and following.isalnum())

    def _whole(self, mark: int, tags: Sequence[tuple[str, str]]) -> list[str]:
        """A mark without words in the translation, with those inside it."""
        pieces: list[str] = []
        frames = [(mark, False)]
        while frames:
            node, is_end = frames.pop()
            pieces.append(tags[node][is_end])
            if not is_end:
                frames.append((node, True))
                frames += [(child, False) for child in reversed(self.children.get(node, ()))]
        return pieces


def _ends_sentence(text: str, word: Span) -> bool:
    return _SENTENCE_END.search(text, *word) is not None


def _read(links: Iterable[Link], sources: int, targets: int) -> list[int | None]:
    """The source word that each target word is aligned with, of several the first; without links in proportion."""
    read: list[int | None] = [None] * targets
    for word, place in links:
        if read[place] is None:
            read[place] = word
    if all(word is None for word in read) and sources:
        return [place * sources // targets for place in range(targets)]
    return read
