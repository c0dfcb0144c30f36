"""Checks of a configuration that need the model families: names of scores, and options that a score does not take."""

from collections.abc import Iterator

from nmt.config import Config, Problem, unknown_choice
from nmt.config.schema import AttentionConfig
from nmt.models.attention import SCORES


def model_problems(config: Config) -> Iterator[Problem]:
    """What is wrong with `config.model` in the light of SCORES; to be passed to `load_config`."""
    attention = config.model.attention
    path = ("model", "attention", "score")
    if attention.score not in SCORES:
        yield unknown_choice(path, attention.score, list(SCORES))
        return
    taken = SCORES[attention.score].options
    for name, field in AttentionConfig.model_fields.items():
        if name in ("score", "scope") or name in taken or getattr(attention, name) == field.default:
            continue
        takers = [score for score, kind in SCORES.items() if name in kind.options]
        yield Problem(
            ("model", "attention", name),
            f"has no effect with score: {attention.score}; leave it out, or choose a score that takes it: "
            f"{', '.join(takers)}",
            reads=(path,),
        )
