"""A small English-German corpus with gold word alignments from a hand-written grammar, for demos and tests.

synthetic_lexicon.yaml has the words; `Clause` and `Sentence` represent meaning; `translate` turns a sentence into
English, German and the links between their words, deterministically: the same English always has the same German. Only
the `draw_…` functions are random. The German shows what makes this language pair hard to align word by word: gender,
case, adjective endings, plurals, verb-second order, separable verbs, and verbs at the end of a clause.

It knows nothing about models. The package never imports it; it has a corpus from it, which nmt-synthetic writes.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import yaml

# --------------------------------------------------------------------------------------------------- lexicon

LEXICON = yaml.safe_load(Path(__file__).with_name("synthetic_lexicon.yaml").read_text(encoding="utf-8"))
CLASSES: dict[str, list[str]] = LEXICON["classes"]
ENGLISH_FINITE: dict[str, list[str]] = LEXICON["english_finite"]
GERMAN_FINITE: dict[str, list[str]] = LEXICON["german_finite"]
MODALS: dict[str, tuple[list[str], list[str]]] = LEXICON["modals"]
DETERMINERS: dict[str, tuple[str, str]] = LEXICON["determiners"]
SINGULAR_DETERMINERS = ("the",) * 6 + ("a",) * 4 + ("this", "my", "his", "our")
PLURAL_DETERMINERS = ("the",) * 6 + ("",) * 2 + ("this", "my", "his", "our", "two", "three")
SPECIFIC_DETERMINERS = ("the", "this", "my", "his", "our")  # after the others, "not" would become "kein"
GENDERS = ("m", "f", "n", "p")  # the columns of endings
DEFINITE, STRONG, WEAK = LEXICON["definite"], LEXICON["strong"], LEXICON["weak"]
TIMES: dict[str, tuple[str, bool]] = LEXICON["times"]
FREQUENCIES: dict[str, str] = LEXICON["frequencies"]
PREPOSITIONS: dict[str, tuple[str, str]] = LEXICON["prepositions"]
CONJUNCTIONS: dict[str, str] = LEXICON["conjunctions"]

MOST_SENTENCES = 200_000  # far below what the grammar can say, and still fast to draw
SHORTEST, LONGEST = 3, 16


class Noun(NamedTuple):
    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    kind: str


class Adjective(NamedTuple):
    english: str
    german: str
    kinds: tuple[str, ...]


class Verb(NamedTuple):
    english: str
    english_third: str
    english_participle: str
    infinitive: str
    german_third: str
    german_participle: str
    auxiliary: str
    subjects: str
    case: str
    objects: str
    further: str

    @property
    def prefix(self) -> str:
        """What a separable verb leaves at the end of a main clause; empty for other verbs."""
        return self.infinitive.rpartition("|")[0]

    def english_finite(self, person: int) -> str:
        regular = (self.english, self.english_third, self.english)
        return ENGLISH_FINITE.get(self.english, regular)[person]

    def german_finite(self, person: int) -> str:
        """Without the prefix."""
        infinitive = self.infinitive.rpartition("|")[2]
        return GERMAN_FINITE.get(infinitive, (infinitive.removesuffix("n"), self.german_third, infinitive))[person]


class Pronoun(NamedTuple):
    english: str
    english_object: str
    nominative: str
    accusative: str
    dative: str
    person: str


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in LEXICON[table].splitlines()]


NOUNS = {row[0]: Noun(*row) for row in rows("nouns")}
ADJECTIVES = {row[0]: Adjective(row[0], row[1], tuple(row[2].split(","))) for row in rows("adjectives")}
VERBS = {row[0]: Verb(*row) for row in rows("verbs")}
PRONOUNS = {row[0]: Pronoun(*row) for row in rows("pronouns")}
BE = Verb("be", "is", "been", "sein", "ist", "gewesen", "sein", "any", "-", "-", "-")


# ------------------------------------------------------------------------------------------- what a sentence says


class NounPhrase(NamedTuple):
    determiner: str  # a key of DETERMINERS
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None


Nominal = NounPhrase | Pronoun


class PrepositionalPhrase(NamedTuple):
    preposition: str  # a key of PREPOSITIONS
    phrase: NounPhrase


class Clause(NamedTuple):
    """One finite verb with everything that belongs to it.

    `form` is "present", "perfect" or a modal; `adverb` a key of TIMES or FREQUENCIES; `first` what precedes the
    subject: "" (nothing), "adverb" or "phrase". A predicate adjective goes with BE, an object with a transitive verb.
    """

    subject: Nominal
    verb: Verb
    object: Nominal | None = None
    predicate: Adjective | None = None
    phrase: PrepositionalPhrase | None = None
    adverb: str = ""
    form: str = "present"
    negated: bool = False
    first: str = ""


class Sentence(NamedTuple):
    """A main clause, perhaps with a subordinate one after it or, if `led`, before it.

    `conjunction` is "that" or a key of CONJUNCTIONS.
    """

    main: Clause
    conjunction: str = ""
    subordinate: Clause | None = None
    led: bool = False


# ---------------------------------------------------------------------------------- from meaning to both languages


class English:
    """A source word, compared by identity, so that German can point to it before its position is known."""

    def __init__(self, text: str) -> None:
        self.text = text


class German(NamedTuple):
    text: str
    sources: tuple[English, ...]  # the English words it comes from, at least one


class Phrase(NamedTuple):
    english: list[English]
    german: list[German]


class Pair(NamedTuple):
    english: tuple[str, ...]
    german: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]  # (source position, target position), from 0, sorted


NOTHING = Phrase([], [])


def word_for_word(english: str, german: str) -> Phrase:
    sources = [English(word) for word in english.split()]
    return Phrase(sources, [German(word, (source,)) for word, source in zip(german.split(), sources, strict=True)])


def person_of(nominal: Nominal) -> int:
    """The row of the finite forms: 0 for I, 1 for the third person singular, 2 for the plural."""
    if isinstance(nominal, Pronoun):
        return int(nominal.person)
    return 2 if nominal.plural else 1


def decline_determiner(determiner: str, case: str, column: int) -> tuple[str, str]:
    """The German determiner and the adjective ending after it: weak if the determiner marks the case, else strong."""
    stem, declension = DETERMINERS[determiner]
    strong, weak = STRONG[case][column], WEAK[case][column]
    if determiner == "the":
        return DEFINITE[case][column], weak
    without_ending = (case, GENDERS[column]) in (("nom", "m"), ("nom", "n"), ("acc", "n"))
    if declension == "der" or (declension == "ein" and not without_ending):
        return stem + strong, weak
    return stem, strong


def decline_noun(noun: Noun, case: str, plural: bool) -> str:
    if not plural:
        return noun.german
    takes_n = case == "dat" and not noun.german_plural.endswith(("n", "s"))
    return noun.german_plural + ("n" if takes_n else "")


def english_determiner(phrase: NounPhrase) -> str:
    following = phrase.adjective.english if phrase.adjective else phrase.noun.english
    if phrase.determiner == "a" and following[0] in "aeiou":
        return "an"
    return "these" if phrase.determiner == "this" and phrase.plural else phrase.determiner


def translate_noun_phrase(phrase: NounPhrase, case: str) -> Phrase:
    """Determiner, adjective and noun, one English word for one German word."""
    column = GENDERS.index("p" if phrase.plural else phrase.noun.gender)
    determiner, ending = decline_determiner(phrase.determiner, case, column)
    english, german = [english_determiner(phrase)], [determiner]
    if phrase.adjective:
        english.append(phrase.adjective.english)
        german.append(phrase.adjective.german.removesuffix("e") + ending)
    english.append(phrase.noun.english_plural if phrase.plural else phrase.noun.english)
    german.append(decline_noun(phrase.noun, case, phrase.plural))
    return word_for_word(" ".join(english), " ".join(german))


def translate_nominal(nominal: Nominal, case: str) -> Phrase:
    if isinstance(nominal, NounPhrase):
        return translate_noun_phrase(nominal, case)
    german = {"nom": nominal.nominative, "acc": nominal.accusative, "dat": nominal.dative}[case]
    return word_for_word(nominal.english if case == "nom" else nominal.english_object, german)


def translate_prepositional_phrase(phrase: PrepositionalPhrase) -> Phrase:
    """Preposition and noun phrase; "in dem" becomes "im", which then comes from both English words."""
    german, case = PREPOSITIONS[phrase.preposition]
    preposition = English(phrase.preposition)
    inner = translate_noun_phrase(phrase.phrase, case)
    words = [German(german, (preposition,)), *inner.german]
    if german == "in" and words[1].text == "dem":
        words[:2] = [German("im", (preposition, *words[1].sources))]
    return Phrase([preposition, *inner.english], words)


def translate_adverb(adverb: str) -> Phrase:
    return word_for_word(adverb, TIMES[adverb][0] if adverb in TIMES else FREQUENCIES.get(adverb, ""))


class VerbGroup(NamedTuple):
    english: list[English]
    finite: German
    rest: list[German]  # at the end of the German clause: prefix, participle or infinitive
    negation: list[German]


def translate_verbs(clause: Clause, between: list[English]) -> VerbGroup:
    """The verbs of a clause; `between` is the adverb that English puts between them."""
    verb, person = clause.verb, person_of(clause.subject)
    negation = [German("nicht", (English("not"),))] if clause.negated else []
    adverb_or_not = between + [source for word in negation for source in word.sources]
    if clause.form == "present":
        english, sources, main = finite_verb(verb.english, verb.english_finite(person), adverb_or_not, clause)
        rest = [German(verb.prefix, (main,))] if verb.prefix else []
        return VerbGroup(english, German(verb.german_finite(person), sources), rest, negation)
    if clause.form == "perfect":
        auxiliary, participle = English(ENGLISH_FINITE["have"][person]), English(verb.english_participle)
        finite = German(GERMAN_FINITE[verb.auxiliary][person], (auxiliary,))
        rest = [German(verb.german_participle, (participle,))]
        return VerbGroup([auxiliary, *adverb_or_not, participle], finite, rest, negation)
    english_forms, german_forms = MODALS[clause.form]
    english, sources, _ = finite_verb(clause.form, english_forms[person], adverb_or_not, clause)
    infinitive = [English(word) for word in (("to", verb.english) if clause.form == "want" else (verb.english,))]
    rest = [German(verb.infinitive.replace("|", ""), tuple(infinitive))]
    return VerbGroup([*english, *infinitive], German(german_forms[person], sources), rest, negation)


def finite_verb(
    base: str, finite: str, adverb_or_not: list[English], clause: Clause
) -> tuple[list[English], tuple[English, ...], English]:
    """The English words of a simple finite verb, those that the German finite verb comes from, and the verb itself.

    "be", "can" and "must" precede an adverb or "not"; other verbs follow an adverb, and "not" needs "do".
    """
    verb = English(finite)
    if base in ("be", "can", "must"):
        return [verb, *adverb_or_not], (verb,), verb
    if not clause.negated:
        return [*adverb_or_not, verb], (verb,), verb
    auxiliary, verb = English(ENGLISH_FINITE["do"][person_of(clause.subject)]), English(base)
    return [auxiliary, *adverb_or_not, verb], (auxiliary, verb), verb


def verbs_at_end(clause: Clause, verbs: VerbGroup) -> list[German]:
    """The verbs of a subordinate clause: the finite one last, and separable verbs in one word."""
    if clause.form == "present" and clause.verb.prefix:
        return [German(clause.verb.prefix + verbs.finite.text, verbs.finite.sources)]
    return [*verbs.rest, verbs.finite]


def translate_clause(clause: Clause, *, order: str) -> Phrase:
    """A clause in German `order`: "second" (main), "first" (main, after another clause) or "final" (subordinate)."""
    subject = translate_nominal(clause.subject, "nom")
    thing = translate_nominal(clause.object, clause.verb.case) if clause.object else NOTHING
    phrase = translate_prepositional_phrase(clause.phrase) if clause.phrase else NOTHING
    predicate = word_for_word(clause.predicate.english, clause.predicate.german) if clause.predicate else NOTHING
    adverb = translate_adverb(clause.adverb)
    verbs = translate_verbs(clause, adverb.english if clause.adverb in FREQUENCIES else [])

    opening = {"": NOTHING, "adverb": adverb, "phrase": phrase}[clause.first]
    english = [*opening.english, *subject.english, *verbs.english, *thing.english, *predicate.english]
    english += [] if clause.first == "phrase" else phrase.english
    english += adverb.english if clause.adverb in TIMES and clause.first != "adverb" else []

    moved = [] if clause.first == "phrase" else phrase.german
    time = [] if clause.first == "adverb" else adverb.german
    objects = [*thing.german, *time] if isinstance(clause.object, Pronoun) else [*time, *thing.german]
    middle = [*objects, *verbs.negation, *moved, *predicate.german]
    if order == "final":
        return Phrase(english, [*subject.german, *middle, *verbs_at_end(clause, verbs)])
    if order == "first" or clause.first:
        return Phrase(english, [*opening.german, verbs.finite, *subject.german, *middle, *verbs.rest])
    return Phrase(english, [*subject.german, verbs.finite, *middle, *verbs.rest])


def translate(sentence: Sentence) -> Pair:
    """Both sides of a sentence, and the links between their words."""
    stop = word_for_word(".", ".")
    main = translate_clause(sentence.main, order="first" if sentence.led else "second")
    if sentence.subordinate is None:
        return finish([main, stop])
    subordinate = translate_clause(sentence.subordinate, order="final")
    conjunction = word_for_word(sentence.conjunction, {**CONJUNCTIONS, "that": "dass"}[sentence.conjunction])
    if sentence.led:
        return finish([conjunction, subordinate, word_for_word(",", ","), main, stop])
    comma = German(",", tuple(conjunction.english))  # German sets it off; English has only the conjunction
    return finish([main, Phrase(conjunction.english, [comma, *conjunction.german]), subordinate, stop])


def finish(phrases: Sequence[Phrase]) -> Pair:
    """Join the phrases, capitalize the first words, and number the words to write down the links."""
    sources = [word for phrase in phrases for word in phrase.english]
    targets = [word for phrase in phrases for word in phrase.german]
    position = {source: number for number, source in enumerate(sources)}
    links = sorted((position[source], number) for number, word in enumerate(targets) for source in word.sources)
    return Pair(capitalize([word.text for word in sources]), capitalize([word.text for word in targets]), tuple(links))


def capitalize(words: Sequence[str]) -> tuple[str, ...]:
    return (words[0][0].upper() + words[0][1:], *words[1:])


# ------------------------------------------------------------------------------------------------------- chance

Choice = TypeVar("Choice")


def pick(chance: random.Random, choices: Sequence[Choice]) -> Choice:
    """One of `choices`. Built on random(), the only method whose numbers Python promises to keep between versions."""
    return choices[int(chance.random() * len(choices))]


def draw_noun_phrase(chance: random.Random, kinds: Sequence[str]) -> NounPhrase:
    noun = pick(chance, [noun for noun in NOUNS.values() if noun.kind in kinds])
    plural = chance.random() < 0.3
    determiner = pick(chance, PLURAL_DETERMINERS if plural else SINGULAR_DETERMINERS)
    fitting = [adjective for adjective in ADJECTIVES.values() if noun.kind in adjective.kinds]
    return NounPhrase(determiner, noun, plural, pick(chance, fitting) if chance.random() < 0.3 else None)


def draw_subject(chance: random.Random, kinds: Sequence[str]) -> Nominal:
    if "person" in kinds and chance.random() < 0.25:
        return pick(chance, [PRONOUNS["I"], *PRONOUNS.values()])  # "I" twice: it has verb forms of its own
    return draw_noun_phrase(chance, kinds)


def draw_object(chance: random.Random, verb: Verb, subject: Nominal) -> Nominal | None:
    kinds = CLASSES[verb.objects]
    if not kinds:
        return None
    if "person" in kinds and chance.random() < 0.2:
        speakers = ("I", "we") if subject in (PRONOUNS["I"], PRONOUNS["we"]) else ()  # not "I see me"
        return pick(chance, [pronoun for pronoun in PRONOUNS.values() if pronoun.english not in speakers])
    return draw_noun_phrase(chance, kinds)


def draw_phrase(chance: random.Random, verb: Verb) -> PrepositionalPhrase:
    if verb.further in ("with", "for") and chance.random() < 0.4:
        return PrepositionalPhrase(verb.further, draw_noun_phrase(chance, CLASSES["person"]))
    phrase = draw_noun_phrase(chance, ("place", "surface"))
    inside = "on" if phrase.noun.kind == "surface" else "in"
    return PrepositionalPhrase(pick(chance, (inside, inside, "behind")), phrase)


def may_be_negated(clause: Clause) -> bool:
    """Whether "nicht" just before the last verbs negates the clause.

    "must not" is not "müssen", "not a" is "kein", and "nicht" would precede a frequency adverb or a phrase.
    """
    specific = not isinstance(clause.object, NounPhrase) or clause.object.determiner in SPECIFIC_DETERMINERS
    return specific and clause.form != "must" and clause.adverb not in FREQUENCIES and clause.phrase is None


def draw_clause(chance: random.Random, verb: Verb, *, brief: bool = False, may_open: bool = False) -> Clause:
    """A clause around `verb`; `brief` leaves out adverbs and phrases, `may_open` lets one of them come first."""
    if verb is BE:
        return draw_description(chance, brief)
    subject = draw_subject(chance, CLASSES[verb.subjects])
    clause = Clause(subject, verb, draw_object(chance, verb, subject))
    if verb.further != "that":
        clause = clause._replace(form=pick(chance, ("present",) * 4 + ("perfect",) * 2 + tuple(MODALS)))
    if not brief and verb.further != "that" and chance.random() < 0.35:
        clause = clause._replace(phrase=draw_phrase(chance, verb))
    if not brief and chance.random() < 0.4:
        times = [time for time, (_, with_perfect) in TIMES.items() if with_perfect or clause.form != "perfect"]
        clause = clause._replace(adverb=pick(chance, pick(chance, (times, times, list(FREQUENCIES)))))
    if may_open and clause.adverb in TIMES and chance.random() < 0.6:
        clause = clause._replace(first="adverb")
    elif may_open and clause.phrase and clause.phrase.preposition not in ("with", "for") and chance.random() < 0.3:
        clause = clause._replace(first="phrase")
    return clause._replace(negated=may_be_negated(clause) and chance.random() < 0.2)


def draw_description(chance: random.Random, brief: bool) -> Clause:
    """Somebody or something is described: the only case in which German adjectives have no ending."""
    subject = draw_subject(chance, CLASSES["any"])
    kind = "person" if isinstance(subject, Pronoun) else subject.noun.kind
    used = None if isinstance(subject, Pronoun) else subject.adjective
    fitting = [adjective for adjective in ADJECTIVES.values() if kind in adjective.kinds and adjective != used]
    adverb = pick(chance, list(FREQUENCIES)) if not brief and chance.random() < 0.15 else ""
    clause = Clause(subject, BE, predicate=pick(chance, fitting), adverb=adverb)
    return clause._replace(negated=may_be_negated(clause) and chance.random() < 0.25)


def draw_sentence(chance: random.Random) -> Sentence:
    usual = [verb for verb in VERBS.values() if verb.further != "that"] + [BE] * 3
    kind = chance.random()
    if kind < 0.78:
        return Sentence(draw_clause(chance, pick(chance, usual), may_open=True))
    subordinate = draw_clause(chance, pick(chance, usual), brief=chance.random() < 0.8)
    if kind < 0.85:
        speaking = [verb for verb in VERBS.values() if verb.further == "that"]
        return Sentence(draw_clause(chance, pick(chance, speaking), may_open=True), "that", subordinate)
    led = kind > 0.93
    main = draw_clause(chance, pick(chance, usual), brief=chance.random() < 0.8, may_open=not led)
    return Sentence(main, pick(chance, list(CONJUNCTIONS)), subordinate, led)


def make_pairs(count: int, seed: int) -> list[Pair]:
    """`count` pairs with distinct English, in an order that does not depend on their probability."""
    chance = random.Random(seed)
    distinct: dict[tuple[str, ...], Pair] = {}
    while len(distinct) < count:
        pair = translate(draw_sentence(chance))
        if all(SHORTEST <= len(side) <= LONGEST for side in (pair.english, pair.german)):
            distinct.setdefault(pair.english, pair)
    # Common short sentences are drawn early; a new order spreads them evenly over train, valid and test.
    return [pair for _, pair in sorted((chance.random(), pair) for pair in distinct.values())]


# -------------------------------------------------------------------------------------------------------- files


def corpus_files(pairs: Iterable[Pair], sizes: Mapping[str, int]) -> dict[str, bytes]:
    """The contents of NAME.en, NAME.de and NAME.align for every name in `sizes`, with that many of the pairs.

    A line is a sentence with single spaces between words; an alignment is in the Pharaoh format, source-target, from 0.
    """
    files, rest = {}, iter(pairs)
    for name, size in sizes.items():
        split = list(islice(rest, size))
        files[f"{name}.en"] = _content(pair.english for pair in split)
        files[f"{name}.de"] = _content(pair.german for pair in split)
        files[f"{name}.align"] = _content([f"{source}-{target}" for source, target in pair.alignment] for pair in split)
    return files


def _content(lines: Iterable[Sequence[str]]) -> bytes:
    return "".join(f"{' '.join(line)}\n" for line in lines).encode("utf-8")
