"""What an experiment is: its options, its numbers with their nulls, its answer, and its Result.

What an experiment declares with stands here by its name; `options` and `verdict` are modules.
"""

from .registry import NotApplicable, register, register_of_pictures
from .rules import NATS, Asks, Below, Each, Enough, Every, Led, Of, Provided, Share, Without

__all__ = ["NATS", "Asks", "Below", "Each", "Enough", "Every", "Led", "NotApplicable", "Of"]
__all__ += ["Provided", "Share", "Without", "register", "register_of_pictures"]
