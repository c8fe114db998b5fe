"""Which component did it? Logits, heads and circuits, taken apart exactly and beside chance."""

from .agreement import Agreement
from .attribution import logit_attribution
from .composing import composition
from .detectors import detect_heads, in_context_score
from .edges import Scored, attribute
from .effects import Effects
from .patching import patch
from .paths import PathEffects, path_patch
from .rollout import rollout
from .scores import Scores
from .search import Circuit, find
from .table import Attribution

__all__ = [
    "Agreement",
    "Attribution",
    "Circuit",
    "Effects",
    "PathEffects",
    "Scored",
    "Scores",
    "attribute",
    "composition",
    "detect_heads",
    "find",
    "in_context_score",
    "logit_attribution",
    "patch",
    "path_patch",
    "rollout",
]
