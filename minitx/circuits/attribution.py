"""Direct logit attribution: a logit as the exact sum of what each component writes to the stream.

Every norm keeps the mean and the scale that it had on this text; the way from each writer to the
logit is then linear (Elhage et al. 2021). So the gradient of the logit is carried back from the
last stream through the norms, and each writer's part is its product with what the writer adds:
nothing is approximated. T tokens, S keys, H heads, C columns at which the head reads the stream, n:
the asked pair of tokens, and those that are drawn.
"""

import numpy as np

from .. import head_weights
from ..arrays import Model
from ..heads import classified_token, is_pooled, read_in
from ..inputs import Ids, as_target, check_source
from ..learning.gradients import classified_token_back, head_back, last_stream
from ..learning.tape import Back
from ..points import name_of, points
from ..sampling import generator
from .measure import Token, places, token_ids, with_places, with_tokens
from .stream import EMBEDDINGS, POINT_OF, Stack, Step
from .table import NOWHERE, Attribution, Row
from .texts import check_model, read_texts

DRAWS = 200  # pairs of tokens of the null
NEAR = 0.02, 50  # how far a drawn id is from that of the asked token: of the vocabulary, at least
ATTENTION = "pattern", "v", "cross_pattern", "cross_v"  # what parts by key are made of


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

    text: a text, or token ids [T]; for an encoder-decoder the input of the encoder, with `prefix`,
    the decoder's input (None: the start token). If `source` is given, as for `run`, text is the
    decoder's. target, other: an id, a text that is one token, or the number of a class.
    place: the position of the logits, counted from 0; by default the last of a causal model or a
    decoder, and the mask of a masked model. by_place: split each head's contribution by the key
    that it comes from, whose position is then its place.

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
    trace = inputs.run(model, recorded(model, inputs.batch))
    tokens = [target] if other is None else [target, other]
    ids = token_ids(model, tokens)
    return of_trace(model, trace, inputs.batch, column, ids, by_place, seed)


def of_trace(model, trace, batch, column, ids, by_place=False, seed=0) -> Attribution:
    """The same of one text's trace of the points `recorded`, and of one or two ids.

    batch: what the model's own stack reads. column: the position whose logits they are.
    """
    asked, dy = _asked(ids, model.weights.W_U.shape[1], seed)
    slope, columns = _slope_by_stream(with_tokens(model, asked), trace, batch, column, dy)
    place_shown = NOWHERE if is_pooled(model.config.task_head) else column
    walk = Walk(Stack(model), trace, columns, place_shown, by_place)
    rows = walk.rows(slope)
    b_U = model.weights.b_U
    if b_U is not None:
        rows.append(Row("b_U", dy @ b_U[asked], place=place_shown))
    y = with_places(trace["logits"])[0, column]
    y = y[asked].astype(np.float64)
    logit = float(dy[0] @ y)
    shape = model.config.n_layers, model.config.n_heads
    return Attribution(rows, logit, is_linear(model), shape)


def is_linear(model) -> bool:
    """Whether the task head is a product with W_U, and no more: no layer, no norm, no cap."""
    has_more = model.weights.W_head is not None or model.weights.ln_head_w is not None
    return not has_more and not model.config.logit_cap


def _inputs(model, text, source, prefix):
    """One text as Inputs. Raises ValueError if there are several."""
    check_model(model)
    if source is None:
        inputs = read_texts(model, text, prefix)
    else:
        check_source(model, source)
        inputs = read_texts(model, source)
        decoder = as_target(model, text, None, None, inputs.source)
        inputs = inputs._replace(batch=decoder)
    n = len(inputs.batch.tokens)
    if n != 1:
        raise ValueError(f"{n} texts; wanted one, whose logit is attributed")
    return inputs


def recorded(model, batch):
    """The points that `of_trace` needs, of those that the model has."""
    stack = Stack(model)
    names = {*EMBEDDINGS.values(), *POINT_OF.values(), *ATTENTION}
    names |= {"resid_post", "ln_final", "logits", "attn_out_scale"}
    names |= {f"{step.name}_scale" for step in stack.steps if step.kind == "norm"}
    available = points(model, batch.types is not None)
    return [key for key in available if name_of(key) in names]


def _asked(ids, V, seed):  # -> [K], [n K]
    """The ids that are asked for, and the slopes by their logits: of `ids`, then of drawn ones.

    A row is 1 at the target, and -1 at the other.
    """
    rng = generator(seed)
    columns = []
    for i in ids:
        drawn = _near(i, ids, V, rng)
        columns.append(np.append(i, drawn))
    n = min(map(len, columns))
    columns = np.array([column[:n] for column in columns])
    asked = np.unique(columns)
    row = np.arange(n)
    dy = np.zeros((n, len(asked)))
    for sign, column in zip((1.0, -1.0), columns):
        dy[row, np.searchsorted(asked, column)] += sign
    return asked, dy


def _near(i, ids, V, rng):
    """Ids near to i, without those that are asked for; none where there are no others."""
    share, least = NEAR
    far = max(least, round(share * V))
    first = max(0, i - far)
    last = min(V - 1, i + far)
    pool = np.setdiff1d(np.arange(first, last + 1), ids)
    return rng.choice(pool, DRAWS) if len(pool) else pool


def _slope_by_stream(model, trace, batch, column, dy):  # -> [n C D], [C]
    """The gradient by the last stream, at those C columns at which the head reads it."""
    back = Back(model, trace, set(), {}, set())
    x = last_stream(model, back).astype(np.float64)
    asked_at = read_in(trace, model)
    asked = x[:, column]
    if is_pooled(model.config.task_head):
        asked = classified_token(x, asked_at, model.config)[:, 0]
    rows = np.repeat(asked, len(dy), axis=0)
    _, _, slope = head_back(rows, lambda y: (0.0, dy), model, back)
    if not is_pooled(model.config.task_head):
        return slope[:, None], np.array([column])
    texts = np.repeat(x, len(dy), axis=0)
    asked_at = np.repeat(asked_at, len(dy), axis=0)
    slope = classified_token_back(slope, texts, asked_at, model.config)
    columns = np.flatnonzero(slope.any(axis=(0, 2)))
    return slope[:, columns], columns


class Walk:
    """The way back along a stack's stream, on one text: the part of each component on it."""

    def __init__(self, stack, trace, columns, place, by_place):
        self.stack = stack
        self.trace = trace
        self.columns = columns  # [C]
        self.place = place  # that is shown
        self.by_place = by_place

    def rows(self, slope) -> list[Row]:  # [n C D]
        """The rows of all components, in the order in which they write."""
        rows: list[Row] = []
        for step in reversed(self.stack.steps):
            if step.kind == "norm":
                rows = self.bias_row(step, slope) + rows
                slope = self.before_norm(step, slope)
            elif step.kind == "map":
                rows = [
                    self.row("b_map", slope.sum(axis=1) @ self.stack.model.weights.b_map),
                    *rows,
                ]
                slope = slope @ self.stack.model.weights.W_map.T
            elif step.kind == "write":
                rows = self.written(step, slope) + rows
        return rows

    def value(self, name, layer=None):  # -> [C ...]
        """What was recorded at a point [1 T ...], at the columns of interest."""
        return self.trace[self.stack.key(name, layer)][0, self.columns]

    def row(self, component, parts, layer=None, **where):
        """A row at the position that is shown."""
        layer = NOWHERE if layer is None else layer
        return Row(component, parts, layer, **{"place": self.place, **where})

    def bias_row(self, step, slope):
        """The bias of a norm, if it has one."""
        name = f"{step.name}_b"
        bias = getattr(self.stack.arrays(step.name, step.layer), name, None)
        if bias is None:
            return []
        return [self.row(name, slope.sum(axis=1) @ bias, step.layer)]

    def before_norm(self, step, slope):  # [n C D] -> [n C D]
        """The gradient before a norm with given mean and scale: (slope w scale) less its mean."""
        gain = getattr(self.stack.arrays(step.name, step.layer), f"{step.name}_w")
        if gain is None:
            return slope
        scale = self.value(f"{step.name}_scale", step.layer)
        slope = slope * gain * scale[:, None]
        if self.stack.cfg.rms_norm:
            return slope
        return slope - slope.mean(axis=-1, keepdims=True)

    def to_end(self, x, start):  # [... C D] -> [... C D]
        """What a step writes, as the last stream has it: through all norms behind that step."""
        for step in self.stack.steps[start + 1 :]:
            if step.kind == "norm":
                x = self.after_norm(step, x)
            elif step.kind == "map":
                x = x @ self.stack.model.weights.W_map
        return x

    def after_norm(self, step, x):  # [... C D] -> [... C D]
        """The way of `before_norm` forward: x less its mean, times w and the scale."""
        w = self.stack.arrays(step.name, step.layer)
        gain = getattr(w, f"{step.name}_w")
        if gain is None:
            return x
        if not self.stack.cfg.rms_norm:
            x = x - x.mean(axis=-1, keepdims=True)
        scale = self.value(f"{step.name}_scale", step.layer)
        return x * gain * scale[:, None]

    def written(self, step, slope):
        """The rows of all that writes in one step."""
        if step.name == "mlp":
            part = _product(slope, self.value("mlp_out", step.layer))
            return [self.row("mlp", part, step.layer)]
        if step.name != "embed":
            return self.head_rows(step, slope)
        rows = []
        for component, name in EMBEDDINGS.items():
            if name in self.trace:
                part = _product(slope, self.value(name))
                rows.append(self.row(component, part))
        return rows

    def head_rows(self, step, slope):
        """The heads of a layer, each as a whole or by key; then the bias that belongs to none."""
        layer = step.layer
        w = self.stack.arrays(step.name, layer)
        prefix = step.name.removesuffix("head")
        if step.name == "head":
            slope = self.before_norm(Step("norm", "attn_out", layer), slope)
        W_O = head_weights.outputs(w.W_O, self.stack.cfg.n_heads)
        rows = []
        if self.by_place:
            by_z = slope[:, None] @ W_O.swapaxes(-1, -2)  # [n H C d]
            parts = self._by_key(by_z, prefix, layer)
            for h, s in np.ndindex(parts.shape[1:]):
                rows.append(self.row(step.name, parts[:, h, s], layer, head=h, place=s))
        else:
            z = self.trace[f"{prefix}z", layer][0][:, self.columns]
            outputs = z.astype(np.float64) @ W_O  # [H C D]
            outputs = outputs.reshape(len(outputs), -1)
            parts = slope.reshape(len(slope), -1) @ outputs.T
            for h, part in enumerate(parts.T):
                rows.append(self.row(step.name, part, layer, head=h))
        if w.b_O is not None:
            part = slope.sum(axis=1) @ w.b_O
            rows.append(self.row(f"{prefix}b_O", part, layer))
        return rows

    def _by_key(self, by_z, prefix, layer):  # [n H C d] -> [n H S]
        """Parts of heads by key: what each key's value adds, as much as it is looked at."""
        pattern = self.trace[f"{prefix}pattern", layer][0]
        v = self.trace[f"{prefix}v", layer][0]
        v = head_weights.for_each_head(v, len(pattern))
        by_pattern = by_z @ v.swapaxes(-1, -2)
        return np.einsum("hcs,nhcs->nhs", pattern[:, self.columns], by_pattern)


def _product(slope, x):  # [n C D], [C D] -> [n]
    return np.einsum("ncd,cd->n", slope, x)
