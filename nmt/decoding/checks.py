"""What of the options of a translation does not go together, or not with the model: told before a line is read."""

import math
from collections.abc import Iterator

from nmt.decoding.ensemble import Model, without_attention
from nmt.decoding.tasks import Options
from nmt.errors import UserError

_NONE = "(model.attention.score: none)"


def check_options(
    model: Model, options: Options, *, replace_unknown: bool, constraints: bool, alignments: bool
) -> None:
    """Raise UserError with all that is wrong; the last three say whether `Translator.translate` was given them."""
    problems = [*_contradictions(options, replace_unknown, constraints)]
    needed = options.decoding.coverage_penalty or replace_unknown or alignments
    if needed and (which := without_attention(model)):
        if options.decoding.coverage_penalty:
            problems.append(f"coverage_penalty needs attention, and {which} has none {_NONE}; set it to 0")
        if replace_unknown:
            problems.append(
                f"unknown words cannot be replaced: {which} has no attention {_NONE}, which would say what source word "
                "each stands for"
            )
        if alignments:
            problems.append(f"there are no alignments: {which} has no attention {_NONE} to read them from")
    if problems:
        raise UserError(*problems)


def _contradictions(options: Options, replace_unknown: bool, constraints: bool) -> Iterator[str]:
    if replace_unknown and options.decoding.suppress_unknown:
        yield "suppress_unknown leaves no unknown word to replace; choose one of the two"
    if constraints and options.sampling is not None:
        yield "constraints need a search; leave out either them or the sampling"
    if not 0 <= options.diversity < math.inf:
        yield f"diversity is {options.diversity}; it must be a number of at least 0"
    elif options.diversity:
        if options.n_best < 2:
            yield "diversity has an effect only on n-best lists: ask for at least 2 translations"
        if options.sampling is not None:
            yield "diversity does not go with sampling; leave out one of the two"
        if constraints:
            yield "diversity does not go with constraints; leave out one of the two"
