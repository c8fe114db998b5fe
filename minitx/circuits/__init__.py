"""Which component did it? Logits, heads and circuits, taken apart exactly and beside chance."""

from .agreement import Agreement
from .attribution import Attribution, logit_attribution
from .detectors import Scores, detect_heads, in_context_score
from .edges import Scored, attribute
from .effects import Effects
from .patching import patch
from .paths import PathEffects, path_patch

__all__ = [
    "Agreement",
    "Attribution",
    "Effects",
    "PathEffects",
    "Scored",
    "Scores",
    "attribute",
    "detect_heads",
    "in_context_score",
    "logit_attribution",
    "patch",
    "path_patch",
]
