"""Direct logit attribution: a logit as the exact sum of what each component writes to the stream.

Every norm keeps the mean and the scale that it had on this text; the way from each writer to the
logit is then linear (Elhage et al. 2021). So the gradient of the logit is carried back from the
last stream through the norms, and each writer's part is its product with what the writer adds:
nothing is approximated. T tokens, S keys, H heads, n: drawn pairs of tokens.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from .. import show
from ..arrays import Model
from ..gradients import classified_token_back, head_back, last_stream
from ..heads import classified_token, is_pooled
from ..inputs import Ids, as_target, check_source
from ..points import name_of, points
from ..tape import Back
from .measure import Token, places, token_ids, with_places
from .stream import EMBEDDINGS, POINT_OF, Stack, by_head
from .texts import check_model, read_texts

NOWHERE = -1  # a column's value where a component has no layer, head or place
DRAWS = 200  # pairs of tokens of the null
NEAR = 0.02, 50  # how far a drawn id is from that of the asked token: of the vocabulary, at least


class Row(NamedTuple):
    """One component's part: of the logit first, then of the drawn pairs of tokens."""

    component: str
    layer: int
    head: int
    place: int
    parts: np.ndarray  # [1 + n]


class Attribution(show.Shown, Mapping[str, np.ndarray]):
    """A table whose rows are components: component, layer, head, place, logits, null.

    A mapping from each column's name to its array [rows]; columns are attributes too. Layer, head
    and place are -1 where a component has none. `.null` is the 99 % quantile of the absolute value
    of each part for drawn pairs of tokens. `.logit` is the model's own number, `.gap` what the sum
    of `.logits` lacks: rounding if `.linear`; else the head before the vocabulary is not linear,
    and its gradient stands for it. `.heads` [L H] are the parts of the heads alone.

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

    def __init__(self, rows: list[Row], logit: float, linear: bool, shape: tuple[int, int]):
        self.component, self.layer, self.head, self.place = (
            np.array([row[i] for row in rows]) for i in range(4)
        )
        parts = np.array([row.parts for row in rows])
        self.logits = parts[:, 0]
        self.null = _quantile(abs(parts[:, 1:]))
        self.logit, self.linear, self._shape = logit, linear, shape

    @property
    def gap(self) -> float:
        """What the sum of the parts lacks of the model's own number, in logits."""
        return float(self.logit - self.logits.sum())

    @property
    def heads(self) -> np.ndarray:  # [L H]
        """The parts of the heads; of a decoder those of its self-attention."""
        total = np.zeros(self._shape)
        is_head = self.component == "head"
        np.add.at(total, (self.layer[is_head], self.head[is_head]), self.logits[is_head])
        return total

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.COLUMNS:
            raise KeyError(f"no column {name!r}; there are: {', '.join(self.COLUMNS)}")
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.COLUMNS)

    def __len__(self) -> int:
        return len(self.COLUMNS)

    def _summary(self):
        kind = "linear head" if self.linear else "head that is not linear, by its gradient"
        title = f"Attribution of {self.logit:.4f} logits, {kind}; the sum lacks {self.gap:.2g}"
        largest = np.argsort(-abs(self.logits), kind="stable")[:10]
        rows = [tuple(self._cells(i)) for i in largest]
        lines = ["  ".join(cells) for cells in rows]
        return show.Summary(title, lines, self.COLUMNS, rows)

    def _cells(self, i):
        """One row as text."""
        numbers = [self.layer[i], self.head[i], self.place[i]]
        plain = ["" if number == NOWHERE else str(number) for number in numbers]
        return [str(self.component[i]), *plain, f"{self.logits[i]:+.4f}", f"{self.null[i]:.4f}"]


def logit_attribution(
    model: Model,
    text: str | Ids,
    target: Token,
    other: Token | None = None,
    *,
    source: str | Ids | None = None,
    prefix: str | Ids | None = None,
    place: int | None = None,
    by_place: bool = False,
    seed: int = 0,
) -> Attribution:
    """The logit of `target`, or its difference to that of `other`, as a sum over components.

    text: a text, or token ids [T]; of an encoder-decoder what the encoder reads, `prefix` being
    what the decoder has said so far (None: the start token). If `source` is given, as for `run`,
    text is the decoder's. target, other: an id, a text that is one token, or the number of a class.
    place: whose logits, counted from 0; by default the last place of a causal model or a decoder,
    and the mask of a masked model. by_place: split each head's part by the key that it comes from,
    which is then its place.

    Returns an Attribution, in logits. Components: word, position, type; head (its z W_O, with the
    bias of its values) and cross_head; b_O and cross_b_O; mlp; the bias of each norm, by the norm's
    name; b_U. What an encoder computes is in the cross_heads that read it. Null: `target` and
    `other` are replaced by tokens drawn with `seed` from ids near theirs (vocabularies are ordered
    roughly by frequency); NaN where there are none. Raises ValueError for a text without a mask or
    with several, a target of several tokens, or a model without head. Source: Elhage et al. 2021.

    The parts sum to the difference of two logits:

    >>> import minitx, numpy as np
    >>> from minitx import circuits
    >>> model = minitx.load("tiny-gpt2", dtype="float64")
    >>> table = circuits.logit_attribution(model, "The man said that", " he", " she")
    >>> bool(np.isclose(table.logits.sum(), table.logit, rtol=1e-10)), table.heads.shape
    (True, (4, 4))
    """
    inputs = _inputs(model, text, source, prefix)
    column = int(places(model, inputs, place)[0])
    stack = Stack(model)
    trace = inputs.run(model, _points(stack, model, inputs.batch, by_place))
    ids = token_ids(model, [target] if other is None else [target, other])
    dy = _slopes_by_logits(ids, model.weights.W_U.shape[1], seed)
    slope, columns = _slope_by_stream(model, trace, inputs.batch, column, dy)
    place_shown = NOWHERE if is_pooled(model.config.task_head) else column
    groups = [*_groups(stack, trace, slope, columns, place_shown, by_place)]
    if model.weights.b_U is not None:
        groups.insert(0, [_row("b_U", dy @ model.weights.b_U, place=place_shown)])
    rows = [row for group in reversed(groups) for row in group]
    y = with_places(trace["logits"])[0, column].astype(np.float64)
    shape = model.config.n_layers, model.config.n_heads
    return Attribution(rows, float(dy[0] @ y), is_linear(model), shape)


def is_linear(model) -> bool:
    """Whether the task head is a product with W_U, and no more."""
    return model.weights.W_head is None and model.weights.ln_head_w is None


def _inputs(model, text, source, prefix):
    """One text as Inputs. Raises ValueError if there are several."""
    check_model(model)
    if source is None:
        inputs = read_texts(model, text, prefix)
    else:
        check_source(model, source)
        inputs = read_texts(model, source)
        inputs = inputs._replace(batch=as_target(model, text, None, None, inputs.source))
    n = len(inputs.batch.tokens)
    if n != 1:
        raise ValueError(f"{n} texts; wanted one, whose logit is attributed")
    return inputs


def _points(stack, model, batch, by_place):
    """The points that the walk needs, of those that the model has."""
    names = {*EMBEDDINGS.values(), *POINT_OF.values(), "resid_post", "ln_final", "logits"}
    if by_place:
        names |= {"pattern", "v", "cross_pattern", "cross_v"}
    available = points(model, batch.types is not None)
    norms = {f"{step.name}_scale" for step in stack.steps if step.kind == "norm"}
    return [key for key in available if name_of(key) in names | norms]


def _slopes_by_logits(ids, V, seed):  # -> [1 + n V]
    """What is asked: 1 at the target, -1 at the other; then the same for drawn ids."""
    rng = np.random.default_rng(seed)
    drawn = [_near(i, ids, V, rng) for i in ids]
    columns = [np.append(i, ids_near) for i, ids_near in zip(ids, drawn)]
    dy = np.zeros((min(map(len, columns)), V))
    row = np.arange(len(dy))
    for sign, column in zip((1.0, -1.0), columns):
        np.add.at(dy, (row, column[: len(dy)]), sign)
    return dy


def _near(i, ids, V, rng):
    """Ids near to i, without those that are asked for; none where there are no others."""
    share, least = NEAR
    far = max(least, round(share * V))
    pool = np.setdiff1d(np.arange(max(0, i - far), min(V, i + far + 1)), ids)
    return rng.choice(pool, DRAWS) if len(pool) else pool


def _slope_by_stream(model, trace, batch, column, dy):  # -> [n C D], [C]
    """The gradient by the last stream, at those C columns at which the head reads it."""
    back = Back(model, trace, set(), {}, set())
    x = last_stream(model, back).astype(np.float64)
    pooled = is_pooled(model.config.task_head)
    asked = classified_token(x, batch.valid, model.config)[:, 0] if pooled else x[:, column]
    rows = np.repeat(asked, len(dy), axis=0)
    _, _, slope = head_back(rows, lambda y: (0.0, dy), model, back)
    if not pooled:
        return slope[:, None], np.array([column])
    texts = np.broadcast_to(x, (len(dy), *x.shape[1:]))
    valid = np.broadcast_to(batch.valid, texts.shape[:2])
    slope = classified_token_back(slope, texts, valid, model.config)
    columns = np.flatnonzero(slope.any(axis=(0, 2)))
    return slope[:, columns], columns


def _groups(stack, trace, slope, columns, place, by_place):
    """The rows of each step of the stream, the last step first."""
    for step in reversed(stack.steps):
        if step.kind == "norm":
            yield _bias_rows(stack, step, slope, place)
            slope = _before_norm(stack, step, slope, trace, columns)
        elif step.name == "embed" and step.kind == "write":
            embedded = {name: key for name, key in EMBEDDINGS.items() if key in trace}
            yield [
                _row(name, _product(slope, trace[key][0, columns]), place=place)
                for name, key in embedded.items()
            ]
        elif step.name == "mlp" and step.kind == "write":
            part = _product(slope, trace["mlp_out", step.layer][0, columns])
            yield [_row("mlp", part, step.layer, place=place)]
        elif step.kind == "write":
            yield _head_rows(stack, step, slope, trace, columns, place, by_place)


def _row(component, parts, layer=NOWHERE, head=NOWHERE, place=NOWHERE):
    return Row(component, layer, head, int(place), parts)


def _product(slope, x):  # [n C D], [C D] -> [n]
    return np.einsum("ncd,cd->n", slope, x)


def _bias_rows(stack, step, slope, place):
    """The bias of a norm, if it has one."""
    bias = getattr(stack.arrays(step.name, step.layer), f"{step.name}_b", None)
    if bias is None:
        return []
    layer = NOWHERE if step.layer is None else step.layer
    return [_row(f"{step.name}_b", slope.sum(axis=1) @ bias, layer, place=place)]


def _before_norm(stack, step, slope, trace, columns):  # [n C D] -> [n C D]
    """The gradient before a norm whose mean and scale stay: (slope w scale) without its mean."""
    gain = getattr(stack.arrays(step.name, step.layer), f"{step.name}_w")
    if gain is None:
        return slope
    scale = trace[stack.key(f"{step.name}_scale", step.layer)][0, columns]
    slope = slope * gain * scale[:, None].astype(np.float64)
    return slope if stack.cfg.rms_norm else slope - slope.mean(axis=-1, keepdims=True)


def _head_rows(stack, step, slope, trace, columns, place, by_place):
    """The heads of a layer, each as a whole or by key; then the bias that belongs to none."""
    w = stack.arrays(step.name, step.layer)
    component, prefix = step.name, step.name.removesuffix("head")
    W_O = by_head(w.W_O, stack.cfg.n_heads).astype(np.float64)
    by_z = np.einsum("ncD,hdD->nhcd", slope, W_O)
    if by_place:
        pattern = trace[f"{prefix}pattern", step.layer][0][:, columns].astype(np.float64)
        v = trace[f"{prefix}v", step.layer][0]
        v = np.repeat(v, len(pattern) // len(v), axis=0)
        parts = np.einsum("hcs,nhcs->nhs", pattern, by_z @ v.swapaxes(-1, -2))
        rows = [
            _row(component, parts[:, h, s], step.layer, h, s) for h, s in np.ndindex(v.shape[:2])
        ]
    else:
        parts = np.einsum("nhcd,hcd->nh", by_z, trace[f"{prefix}z", step.layer][0][:, columns])
        rows = [_row(component, part, step.layer, h, place) for h, part in enumerate(parts.T)]
    if w.b_O is not None:
        rows.append(_row(f"{prefix}b_O", slope.sum(axis=1) @ w.b_O, step.layer, place=place))
    return rows


def _quantile(draws):  # [rows n] -> [rows]
    """The 99 % quantile of each row; NaN if nothing was drawn."""
    if not draws.shape[1]:
        return np.full(len(draws), np.nan)
    return np.quantile(draws, 0.99, axis=1)
