"""A logit as a table: a row for each component, and what its part would be by chance."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ..machine import show

NOWHERE = -1  # a column's value where a component has no layer, head or place
LARGEST = 10  # rows that are shown


class Row(NamedTuple):
    """One component's part: of the logit first, then of n drawn pairs of tokens."""

    component: str
    parts: np.ndarray  # [1 + n]
    layer: int = NOWHERE
    head: int = NOWHERE
    place: int = NOWHERE


class Attribution(show.Shown, Mapping[str, np.ndarray]):
    """A table whose rows are components: component, layer, head, place, logits, null.

    A mapping from each column's name to its array [rows]; columns are attributes too. Layer, head
    and place (the token's position) are -1 if a component has none. `.logits`: each component's
    contribution; `.drawn` [rows n]: the same for random pairs of tokens; `.null`: the 99% quantile
    of their absolute values. `.heads` [L H]: the contributions of the heads alone.
    `.logit` is the logit, or the difference of two, in the model's output; `.gap` is its difference
    from the sum of `.logits`: rounding if `.linear`. Otherwise the model transforms the stream
    before the unembedding (BERT), and contributions are estimated by the transform's gradient.

    >>> import minitx
    >>> from minitx import circuits
    >>> model = minitx.load("tiny-gpt2", dtype="float64")
    >>> table = circuits.logit_attribution(model, "The man said that", " he")
    >>> list(table)
    ['component', 'layer', 'head', 'place', 'logits', 'null']
    >>> [str(name) for name in table.component[:4]]
    ['word', 'position', 'head', 'head']
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    COLUMNS = "component", "layer", "head", "place", "logits", "null"
    component: np.ndarray
    layer: np.ndarray
    head: np.ndarray
    place: np.ndarray
    logits: np.ndarray
    null: np.ndarray

    def __init__(
        self,
        rows: list[Row],
        logit: float,
        linear: bool,
        shape: tuple[int, int],
    ):
        self.component = np.array([row.component for row in rows])
        self.layer = np.array([row.layer for row in rows])
        self.head = np.array([row.head for row in rows])
        self.place = np.array([row.place for row in rows])
        parts = np.array([row.parts for row in rows])
        self.logits, self.drawn = parts[:, 0], parts[:, 1:]
        self.null = _quantile(abs(self.drawn))
        self.logit = logit
        self.linear = linear
        self._shape = shape

    @property
    def gap(self) -> float:
        """What the sum of the parts lacks of the model's own number, in logits."""
        return float(self.logit - self.logits.sum())

    @property
    def heads(self) -> np.ndarray:  # [L H]
        """The parts of the heads; of a decoder those of its self-attention."""
        total = np.zeros(self._shape)
        mine = self.component == "head"
        heads = self.layer[mine], self.head[mine]
        np.add.at(total, heads, self.logits[mine])
        return total

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.COLUMNS:
            raise KeyError(f"no column {name!r}; available: {', '.join(self.COLUMNS)}")
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.COLUMNS)

    def __len__(self) -> int:
        return len(self.COLUMNS)

    def _summary(self):
        kind = "linear head" if self.linear else "head that is not linear, by its gradient"
        title = f"Attribution of {self.logit:.4f} logits, {kind}; the sum lacks {self.gap:.2g}"
        order = np.argsort(-abs(self.logits), kind="stable")
        rows = [self._cells(i) for i in order[:LARGEST]]
        lines = ["  ".join(cells) for cells in rows]
        return show.Summary(title, lines, self.COLUMNS, rows)

    def _cells(self, i):
        """One row as text."""
        plain = []
        for column in (self.layer, self.head, self.place):
            plain.append("" if column[i] == NOWHERE else str(column[i]))
        numbers = f"{self.logits[i]:+.4f}", f"{self.null[i]:.4f}"
        return str(self.component[i]), *plain, *numbers


def _quantile(draws):  # [rows n] -> [rows]
    """The 99% quantile of each row; NaN if nothing was drawn."""
    if not draws.shape[1]:
        return np.full(len(draws), np.nan)
    return np.quantile(draws, 0.99, axis=1)
