"""Which component did it? Logits, heads and circuits, taken apart exactly and beside chance."""

from .attribution import Attribution, logit_attribution
from .effects import Effects
from .patching import patch

__all__ = ["Attribution", "Effects", "logit_attribution", "patch"]
