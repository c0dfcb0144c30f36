"""Neural machine translation with recurrent encoder-decoders and attention.

Programs start with `from nmt import Translator`. Importing the package itself imports nothing, not even PyTorch; the
names in `__all__` are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.decoding.translator import Translation, TranslationOptions, Translator
    from nmt.errors import UserError

__version__ = "0.1.0"
__all__ = ["Translation", "TranslationOptions", "Translator", "UserError"]


def __getattr__(name: str) -> Any:
    if name in ("Translation", "TranslationOptions", "Translator"):
        from nmt.decoding import translator

        return getattr(translator, name)
    if name == "UserError":
        from nmt.errors import UserError

        return UserError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
