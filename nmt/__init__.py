"""Neural machine translation with recurrent encoder-decoders and attention.

Programs start with `from nmt import Translator`, or `train`. Importing the package itself imports nothing, not even
PyTorch; the names in `__all__` are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.decoding.translator import Translation, TranslationOptions, Translator
    from nmt.errors import UserError
    from nmt.experiment.from_python import train
    from nmt.experiment.training import Trained

__version__ = "0.1.0"
__all__ = ["Trained", "Translation", "TranslationOptions", "Translator", "UserError", "train"]


def __getattr__(name: str) -> Any:
    if name in ("Translation", "TranslationOptions", "Translator"):
        from nmt.decoding import translator

        return getattr(translator, name)
    if name in ("Trained", "train"):
        from nmt.experiment import from_python, training

        return from_python.train if name == "train" else training.Trained
    if name == "UserError":
        from nmt.errors import UserError

        return UserError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
