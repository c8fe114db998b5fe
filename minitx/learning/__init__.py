"""Gradients, and training from nothing: random arrays follow those of a loss on a text.

The way back: derivatives, backward, tape, gradients. Training, in this order: start (the arrays,
from a config.json), tokens (the text), batches (what a step learns from), adamw (one step), loop
(all of them), stages (a model that grows on the way), saved (snapshots, and going on), train.
"""

from .train import History, train

__all__ = ["History", "train"]
