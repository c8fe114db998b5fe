"""A hook sees every intermediate of a forward pass, and may change it: x = hook("name", x)."""

from collections.abc import Callable
from functools import partial

import numpy as np

Hook = Callable[..., np.ndarray]  # hook(name, x) or hook(name, x, layer=i) -> what stands for x


def identity(name, x, layer=None):
    """The default hook: every activation as it is."""
    return x


class Prefixed:
    """A hook whose names all begin with `prefix`."""

    def __init__(self, prefix, hook):
        self.prefix, self.hook = prefix, hook

    def __call__(self, name, x, **layer):
        return self.hook(self.prefix + name, x, **layer)

    def asks(self, name, **layer):
        """As `asks` of the whole name."""
        return asks(self.hook, self.prefix + name, **layer)


def asks(hook, name, **layer):
    """Whether a hook wants a point that is computed on request: it then has a method `asks`."""
    if isinstance(hook, partial):
        return asks(hook.func, name, **hook.keywords)
    wants = getattr(hook, "asks", None)
    return wants is not None and wants(name, **layer)
