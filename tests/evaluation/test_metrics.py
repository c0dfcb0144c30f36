"""Our scores are sacreBLEU's; what cannot be scored is refused with a helpful message."""

import random
from functools import cache

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

from nmt.errors import UserError
from nmt.evaluation.metrics import METRICS, TOKENIZERS, check_tokenizer, corpus_scores, counted, sentence_score

HYPOTHESES = ["the cat sat on a mat.", "Dogs don't bark, they sing.", "yes"]
REFERENCES = ["The cat sat on the mat.", "Dogs don't sing, they bark.", "no"]


def test_scores_and_signatures_are_those_of_sacrebleu() -> None:
    scores = corpus_scores(HYPOTHESES, REFERENCES, metrics=("bleu", "chrf", "chrf++", "ter"))
    theirs = {"bleu": BLEU(), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}
    assert list(scores) == list(theirs)
    for name, metric in theirs.items():
        expected = metric.corpus_score(HYPOTHESES, [REFERENCES])
        assert (scores[name].score, scores[name].signature) == (expected.score, str(metric.get_signature()))
        assert METRICS[name].title == expected.name


def test_accuracy_and_character_error_rate_by_hand() -> None:
    """With two references the nearer counts, and characters are those of a reference in the mean, as in TER."""
    lines, first, second = ["kitten", " geht ", "Tür", ""], ["sitting", "geht", "tür", ""], ["sitten", "ging", "", ""]
    scores = corpus_scores(lines, first, metrics=("accuracy", "cer"))
    assert scores["accuracy"].score == 50  # of geht and of the empty line
    assert scores["cer"].score == pytest.approx(100 * (3 + 0 + 1 + 0) / (7 + 4 + 3 + 0))
    assert scores["cer"].signature == "nrefs:1|case:mixed|version:nmt-toolkit-0.1.0"
    folded = corpus_scores(lines, first, metrics=("accuracy", "cer"), lowercase=True)
    assert (folded["accuracy"].score, folded["accuracy"].signature[:15]) == (75, "nrefs:1|case:lc")
    both = counted(METRICS["cer"].build("13a", False), lines, [first, second])
    assert both.score == pytest.approx(100 * (1 + 0 + 1 + 0) / (6.5 + 4 + 3 + 0))
    assert both.sentences(3) == pytest.approx([100 / 6.5, 0, 100 / 3])
    assert counted(METRICS["cer"].build("13a", False), ["a"], [[""]]).score == 100


@pytest.mark.parametrize("seed", range(5))
def test_the_character_error_rate_is_that_of_the_plain_recurrence(seed: int) -> None:
    draw = random.Random(seed)
    first, second = ("".join(draw.choices("ab\N{GRINNING FACE}", k=draw.randint(0, 12))) for _ in range(2))

    @cache
    def distance(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        return min(
            distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (first[i - 1] != second[j - 1])
        )

    expected = 100 * distance(len(first), len(second)) / len(second) if second else 100.0 * bool(first)
    assert corpus_scores([first], [second], metrics=("cer",))["cer"].score == pytest.approx(expected)


def test_lowercase_ignores_case_and_the_signatures_say_so() -> None:
    mixed = corpus_scores(["THE CAT SAT DOWN"], ["the cat sat down"])
    folded = corpus_scores(["THE CAT SAT DOWN"], ["the cat sat down"], lowercase=True)

    assert mixed["bleu"].score == mixed["chrf"].score == 0
    assert folded["bleu"].score == pytest.approx(100)
    assert folded["chrf"].score == pytest.approx(100)
    assert mixed["ter"].score == folded["ter"].score == 0
    assert mixed["ter"].signature == folded["ter"].signature
    assert all("case:lc" in score.signature for score in folded.values())


@pytest.mark.parametrize("tokenize", [name for name in TOKENIZERS if name not in ("ja-mecab", "flores200")])
def test_each_tokenizer_reaches_bleu_and_its_signature(tokenize: str) -> None:
    score = corpus_scores(HYPOTHESES, REFERENCES, tokenize=tokenize, metrics=("bleu",))["bleu"]

    assert score.score == BLEU(tokenize=tokenize).corpus_score(HYPOTHESES, [REFERENCES]).score
    assert f"|tok:{tokenize}|" in score.signature


def test_tokenized_text_is_scored_without_a_notice_of_sacrebleu(caplog: pytest.LogCaptureFixture) -> None:
    lines = ["a tokenized line ."] * 101

    corpus_scores(lines, lines)

    assert not caplog.records


def test_japanese_without_mecab_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)

    with pytest.raises(UserError, match=r"pip install 'sacrebleu\[ja\]'"):
        corpus_scores(HYPOTHESES, REFERENCES, tokenize="ja-mecab")


def test_flores200_without_its_download_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline() -> None:
        raise OSError("no network here")

    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.Flores200Tokenizer", offline)

    with pytest.raises(UserError, match=r"downloads once.*\$SACREBLEU.*no network here"):
        check_tokenizer("flores200")


def test_the_message_names_what_was_given() -> None:
    with pytest.raises(UserError, match=r"^--tokenize: given '13b'"):
        check_tokenizer("13b")
    with pytest.raises(UserError, match=r"^training\.validation\.tokenize: given '13b'"):
        check_tokenizer("13b", "training.validation.tokenize")


# ------------------------------------------------------------------------------------------------- groups and sentences

LINES = ["The cat sat on a mat.", "Yes", "Dogs don't bark, they sing.", ""]
RIGHT = [
    ["The cat sat on the mat.", "No", "Dogs don't sing, they bark.", "Nothing."],
    ["A cat sat.", "Yes, sure", "Dogs bark.", "No."],
]


@pytest.mark.parametrize("name", ["bleu", "chrf"])
@pytest.mark.parametrize("references", [RIGHT[:1], RIGHT])
def test_scores_of_groups_and_sentences_are_those_of_sacrebleu(name: str, references: list[list[str]]) -> None:
    scored = counted(METRICS[name].build("13a", False), LINES, references)
    corpus = {"bleu": sacrebleu.corpus_bleu, "chrf": sacrebleu.corpus_chrf}[name]
    for places in ([0, 2, 3], [1], [3]):
        chosen = [[lines[place] for place in places] for lines in (LINES, *references)]
        assert scored.of(places) == pytest.approx(corpus(chosen[0], chosen[1:]).score, abs=1e-9)
    sentence = {"bleu": sacrebleu.sentence_bleu, "chrf": sacrebleu.sentence_chrf}[name]
    expected = [sentence(hypothesis, list(lines)).score for hypothesis, *lines in zip(LINES, *references, strict=True)]
    assert scored.sentences(4) == pytest.approx(expected, abs=1e-9)
    assert scored.sentences(1) == pytest.approx(expected[:1], abs=1e-9)


REFERENCE = "Der Hund sieht den Kater im Garten."
OTHER = "der hund SIEHT den kater im garten ."


@pytest.mark.parametrize("translation", ["Der Hund sieht den Kater.", "Ein Hund", "Hund", "", REFERENCE, OTHER])
def test_the_score_of_a_sentence_is_that_of_sacrebleu(translation: str) -> None:
    bleu = sentence_score("bleu", tokenize="13a", lowercase=False)
    assert bleu(translation, REFERENCE) == sacrebleu.sentence_bleu(translation, [REFERENCE]).score
    chrf = sentence_score("chrf", tokenize="13a", lowercase=False)
    assert chrf(translation, REFERENCE) == sacrebleu.sentence_chrf(translation, [REFERENCE]).score


def test_a_translation_without_long_matches_by_hand() -> None:
    """Of "Ein Hund" one word of two matches and no pair of one, which counts as 1/2; the translation has two words of
    eight, as the period is one."""
    computed = sentence_score("bleu", tokenize="13a", lowercase=False)("Ein Hund", REFERENCE)
    assert computed == pytest.approx(100 * 2.718281828459045 ** (1 - 8 / 2) * (1 / 2 * 1 / 2) ** 0.5)


@pytest.mark.parametrize("name", list(METRICS))
def test_a_blank_line_beside_another_reference_is_none(name: str) -> None:
    """As sacreBLEU has it for None; a line without any reference has an empty one."""
    translations = [*HYPOTHESES, ""]
    first, second = [*REFERENCES, ""], ["The cat sat down.", " ", "", ""]
    mine = counted(METRICS[name].build("13a", False), translations, [first, second])
    theirs = METRICS[name].build("13a", False).corpus_score(translations, [first, [second[0], None, None, None]])
    assert mine.score == theirs.score
    assert "nrefs:var" in str(mine.metric.get_signature())
    swapped = counted(METRICS[name].build("13a", False), translations, [second, first])
    assert swapped.score == mine.score


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), (["a", "b"], ["a"])])
def test_lists_that_do_not_pair_are_a_mistake_of_the_caller(hypotheses: list[str], references: list[str]) -> None:
    with pytest.raises(ValueError, match="cannot be scored"):
        corpus_scores(hypotheses, references)
