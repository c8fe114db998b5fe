"""Which component did it? Logits, heads and circuits, taken apart exactly and beside chance."""

from .attribution import Attribution, logit_attribution

__all__ = ["Attribution", "logit_attribution"]
