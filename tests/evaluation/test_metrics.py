"""Our scores are sacreBLEU's; what cannot be scored is refused with a helpful message."""

from contextlib import nullcontext

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

from nmt.errors import UserError
from nmt.evaluation.metrics import METRICS, TOKENIZERS, check_tokenizer, corpus_scores

HYPOTHESES = ["the cat sat on a mat.", "Dogs don't bark, they sing.", "yes"]
REFERENCES = ["The cat sat on the mat.", "Dogs don't sing, they bark.", "no"]


def test_scores_are_those_of_sacrebleu() -> None:
    scores = corpus_scores(HYPOTHESES, REFERENCES)

    assert list(scores) == ["bleu", "chrf", "ter"]
    assert scores["bleu"].score == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores["chrf"].score == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores["ter"].score == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score


def test_signatures_name_every_choice() -> None:
    version = sacrebleu.__version__
    scores = corpus_scores(HYPOTHESES, REFERENCES)

    assert scores["bleu"].signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert scores["chrf"].signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    assert scores["ter"].signature == f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:{version}"


def test_a_perfect_translation_has_100_and_no_edits() -> None:
    scores = corpus_scores(REFERENCES, REFERENCES)

    assert scores["bleu"].score == pytest.approx(100)
    assert scores["chrf"].score == pytest.approx(100)
    assert scores["ter"].score == 0


def test_ter_counts_edits_per_100_reference_words() -> None:
    # One word of four replaced.
    assert corpus_scores(["a b c d"], ["a b x d"], metrics=("ter",))["ter"].score == pytest.approx(25)


def test_every_sentence_of_ter_is_announced_and_nothing_else_changes() -> None:
    begun: list[int] = []
    scores = corpus_scores(HYPOTHESES, REFERENCES, watched=lambda: nullcontext(begun.append(1)))
    assert len(begun) == len(HYPOTHESES)
    plain = TER()
    assert scores["ter"] == (plain.corpus_score(HYPOTHESES, [REFERENCES]).score, str(plain.get_signature()))


def test_chrf_is_the_f2_of_character_grams() -> None:
    # Characters: 1 of 1 right, 1 of 2 found; F2 = 5 · 1 · 0.5 / (4 · 1 + 0.5) = 0.5556; no longer grams in "a".
    assert corpus_scores(["a"], ["ab"], metrics=("chrf",))["chrf"].score == pytest.approx(55.5556, abs=1e-4)


def test_lowercase_ignores_case_and_the_signatures_say_so() -> None:
    mixed = corpus_scores(["THE CAT SAT DOWN"], ["the cat sat down"])
    folded = corpus_scores(["THE CAT SAT DOWN"], ["the cat sat down"], lowercase=True)

    assert mixed["bleu"].score == mixed["chrf"].score == 0
    assert folded["bleu"].score == pytest.approx(100)
    assert folded["chrf"].score == pytest.approx(100)
    assert mixed["ter"] == folded["ter"] == (0, folded["ter"].signature)
    assert all("case:lc" in score.signature for score in folded.values())


@pytest.mark.parametrize("tokenize", [name for name in TOKENIZERS if name not in ("ja-mecab", "flores200")])
def test_each_tokeniser_reaches_bleu_and_its_signature(tokenize: str) -> None:
    score = corpus_scores(HYPOTHESES, REFERENCES, tokenize=tokenize, metrics=("bleu",))["bleu"]

    assert score.score == BLEU(tokenize=tokenize).corpus_score(HYPOTHESES, [REFERENCES]).score
    assert f"|tok:{tokenize}|" in score.signature


@pytest.mark.parametrize("name", METRICS)
def test_one_metric_alone_has_the_score_it_has_among_others(name: str) -> None:
    among = corpus_scores(HYPOTHESES, REFERENCES, metrics=tuple(METRICS))
    assert corpus_scores(HYPOTHESES, REFERENCES, metrics=(name,)) == {name: among[name]}


def test_chrf_with_words_is_named_and_signed_as_sacrebleu_does() -> None:
    (score,) = corpus_scores(HYPOTHESES, REFERENCES, metrics=("chrf++",)).values()
    words = CHRF(word_order=2)
    assert score.score == words.corpus_score(HYPOTHESES, [REFERENCES]).score
    assert "|nc:6|nw:2|" in score.signature
    assert METRICS["chrf++"].title == words.corpus_score(HYPOTHESES, [REFERENCES]).name


def test_tokenised_text_is_scored_without_a_notice_of_sacrebleu(caplog: pytest.LogCaptureFixture) -> None:
    lines = ["a tokenised line ."] * 101

    corpus_scores(lines, lines)

    assert not caplog.records


def test_an_unknown_tokeniser_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"given 'ja-mecb'; nearest: ja-mecab; allowed: .*flores200"):
        check_tokenizer("ja-mecb")


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


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), (["a", "b"], ["a"])])
def test_lists_that_do_not_pair_are_a_mistake_of_the_caller(hypotheses: list[str], references: list[str]) -> None:
    with pytest.raises(ValueError, match="cannot be scored"):
        corpus_scores(hypotheses, references)


def test_the_message_names_what_was_given() -> None:
    with pytest.raises(UserError, match=r"^--tokenize: given '13b'"):
        check_tokenizer("13b")
    with pytest.raises(UserError, match=r"^training\.validation\.tokenize: given '13b'"):
        check_tokenizer("13b", "training.validation.tokenize")
