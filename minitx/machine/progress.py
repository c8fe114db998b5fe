"""A bar for what takes long, where it is asked for: tqdm's, in a terminal or a notebook."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_shown: ContextVar[Any] = ContextVar("bar", default=None)


@contextmanager
def bar(wanted: bool, what: str, total: int | None = None) -> Iterator[None]:
    """Context in which each `step` moves a bar on; without `wanted` none is shown."""
    if not wanted:
        yield
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=what) as shown:
        token = _shown.set(shown)
        try:
            yield
        finally:
            _shown.reset(token)


def step(n: int = 1) -> None:
    """One more is done."""
    shown = _shown.get()
    if shown is not None:
        shown.update(n)
