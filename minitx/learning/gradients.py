"""Where a loss pushes: its gradient by every array and every point of a model.

The forward pass is recorded (tape.py says which points), the loss is taken at the targets, and
backward.py walks back from there. Axis letters: see model.py; N: rows that have a target.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..activations import ACTIVATIONS
from ..arrays import Model
from ..edits import Edit
from ..heads import classified_token, is_pooled, read_tokens, require_head, token_shares
from ..inputs import Ids, Texts, source_arguments, whole_numbers
from ..kernels import capped_, feature_major, layer_norm, linear, mean_and_inverse_std
from ..machine import show
from ..machine.mapped import require_arrays
from ..masks import Mask
from ..points import Key, expand, from_first, name_of, points
from ..trace import read_inputs, run
from . import derivatives
from .backward import stack_back
from .backward_steps import layer_norm_back, linear_back
from .parameters import is_tied_output, owners, parameters
from .tape import Back, on_tape

UNCOUNTED = -100  # a target that is left out of the loss
SCORES = 1 << 22  # scores over the vocabulary that are held at once
WITH_LOSS = (
    "masked",
    "causal",
    "sequence",
    "token",
    "next_sentence",
    "image",
)  # heads of cross-entropy


class Gradients(show.Shown, Mapping[Key, np.ndarray]):
    """A loss and its gradients: grads.loss in nats, grads["W_pos"], grads["W_Q", 3].

    A mapping from each array or point that was requested, a name or (name, layer), to an array of
    the same shape. A shared array, such as a tied embedding, has one gradient, the total, under
    each of its names. `.n_targets`: number of tokens, or texts, in the mean loss.

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> ids = model.tokenizer.encode("The dog ran")
    >>> grads = minitx.gradients(model, ids[:-1], [ids[1:]], wrt=["W_pos", ("W_Q", 3)])
    >>> list(grads), grads["W_Q", 3].shape, grads.n_targets
    (['W_pos', ('W_Q', 3)], (128, 128), 4)
    """

    __eq__ = object.__eq__  # as a Trace
    __hash__ = object.__hash__

    def __init__(self, loss: float, n_targets: int, arrays: dict[Key, np.ndarray]):
        self.loss = loss
        self.n_targets = n_targets
        self.arrays = arrays

    def _summary(self):
        return show.gradients(self.loss, self.n_targets, self.arrays)

    def __getitem__(self, key: Key) -> np.ndarray:
        if key not in self.arrays:
            names = ", ".join(dict.fromkeys(map(name_of, self.arrays)))
            raise KeyError(f"{key!r} was not requested; wrt had: {names}")
        return self.arrays[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def gradients(
    model: Model,
    tokens: Texts | Ids | None,
    targets: ArrayLike,
    wrt: Key | Sequence[Key] | None = None,
    *,
    edits: Mapping[Any, Edit] | None = None,
    source: Texts | Ids | None = None,
    source_valid: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    types: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    mask: Mask | None = None,
    enc_mask: Mask | None = None,
    cross_mask: Mask | None = None,
) -> Gradients:
    """Mean cross-entropy of the model's logits at `targets`, and its gradients.

    tokens: a text, or ids [T] or [B T], as for `run`. targets: the target id at each position [T]
    or [B T], -100 for none; for one class per text, [B]. They are not shifted: for the next token
    give tokens[1:].
    wrt: names of arrays ("W_pos", ("W_Q", 3), of an encoder "enc_W_E", of cross-attention
    ("cross_W_Q", 0)) or points ("resid_pre", 0); a name alone means all layers. None: all arrays.
    edits: as for `run`; an edited point is a constant, so no gradient passes through it.
    Other arguments are those of `forward`. Returns Gradients, in nats, of the model's dtype; frozen
    or hidden parts get exact zeros. Raises ValueError for a name that this model does not have, a
    target outside the vocabulary, or a head whose loss is not a cross-entropy.
    Source: Rumelhart, Hinton & Williams 1986; formulas beside each kernel in derivatives.py.

    A step against the gradient lowers the loss:

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> ids = model.tokenizer.encode("The dog ran to the dog")
    >>> grads = minitx.gradients(model, ids[:-1], ids[1:], wrt="pos_embed")
    >>> step = {"pos_embed": lambda x: x - 0.1 * grads["pos_embed"]}
    >>> after = minitx.gradients(model, ids[:-1], ids[1:], wrt=[], edits=step)
    >>> after.loss < grads.loss
    True
    """
    batch, source_batch = read_inputs(model, tokens, source, source_valid, valid, types)
    require_arrays(model, "gradients")
    targets = check_targets(model, targets, batch.valid)
    named, available = parameters(model), points(model, batch.types is not None)
    keys = list(named) if wrt is None else expand_names(wrt, [*named, *available], model)
    owner = owners(model)
    wanted = {key: owner.get(key, key) for key in keys}
    edited = expand(list(edits or ()), available, model)
    if "logits" in edited:
        raise ValueError(
            "edits replace the logits, from which the loss is computed: there are no gradients"
        )
    options = dict(valid=batch.valid, types=batch.types, positions=positions, mask=mask)
    if source_batch is not None:
        options |= dict(enc_mask=enc_mask, cross_mask=cross_mask, **source_arguments(source_batch))
    trace = run(model, batch.tokens, on_tape(available), edits, **options)
    back = Back(model, trace, {*wanted.values()}, owner, {*edited})
    loss, dx = loss_back(model, targets, read_tokens(model.config, batch, source_batch), back)
    stacks_back(dx, model, batch, source_batch, positions, back)
    arrays = {key: _kept(key, owner, named, back) for key, owner in wanted.items()}
    n_targets = int(np.count_nonzero(targets != UNCOUNTED))
    return Gradients(loss, n_targets, arrays)


def stacks_back(dx, model, batch, source_batch, positions, back):  # [B T D]
    """From the gradient by the last stream through the model, then through its encoder."""
    stack_back(dx, model, batch, positions, back)
    if "source" in back.kept:
        in_encoder = back.of_encoder(model.encoder)
        stack_back(back.kept["source"], model.encoder, source_batch, None, in_encoder)


def measure_back(model, batch, source_batch, slope, wrt, edits=None):
    """The gradients by points of any number that is made of a model's logits.

    slope: f(logits) -> d number / d logits, an array of their shape; wrt: names, or (name, layer).
    Returns the Back of the pass: `.kept` {point: gradient}, without those that the number does not
    depend on; `.trace`, all points of the tape.
    """
    available = points(model, batch.types is not None)
    wanted, edited = (expand(list(names), available, model) for names in (wrt, edits or ()))
    options = dict(valid=batch.valid, types=batch.types, **source_arguments(source_batch))
    trace = run(model, batch.tokens, on_tape(available), edits, **options)
    back = Back(model, trace, {*wanted}, {}, {*edited})
    x = last_stream(model, back)
    asked = x
    asked_at = read_tokens(model.config, batch, source_batch)
    if is_pooled(model.config.task_head):
        asked = classified_token(x, asked_at, model.config)[:, 0]
    _, _, dx = head_back(asked, lambda y: (0.0, slope(y)), model, back)
    if is_pooled(model.config.task_head):
        dx = classified_token_back(dx, x, asked_at, model.config)
    stacks_back(feature_major(dx), model, batch, source_batch, None, back)
    return back


def last_stream(model, back):  # -> [B T D]
    """What the task head reads."""
    return back.value("ln_final") if model.config.pre_norm else back.trace["resid_post", -1]


def expand_names(names, available, model):
    """Names of arrays or points, or (name, layer), each once; a name alone: of all layers."""
    if isinstance(names, str) or from_first(names, model) in available:
        names = [names]
    expanded = {}
    named = [(key, name_of(key)) for key in available]
    for key in names:
        wanted = from_first(key, model)
        matches = [key for key, name in named if wanted in (key, name)]
        if not matches:
            known = list(dict.fromkeys(map(name_of, available)))
            close = ", ".join(difflib.get_close_matches(str(name_of(key)), known, 3, 0.4)) or "none"
            raise ValueError(
                f"wrt: this model has no array or point {key!r}; closest: {close}; "
                f"it has: {', '.join(known)}"
            )
        expanded |= dict.fromkeys(matches)
    return list(expanded)


def _kept(key, owner, named, back):
    """The gradient by one wanted name; exact zeros where the loss does not depend on it."""
    if owner not in back.kept:
        return np.zeros_like(named[key])
    dx = back.kept[owner]
    return dx.T if is_tied_output(key, owner) else dx


def check_targets(model, targets, valid):  # -> [B T] or [B]
    """Targets as an array. Raises ValueError for those that the model's head cannot have."""
    require_head(model)
    head = model.config.task_head
    n_classes = model.weights.W_U.shape[1]
    if head not in WITH_LOSS or n_classes == 1:
        heads = ", ".join(WITH_LOSS)
        text = f"the loss of a {head!r} head of {n_classes} is not a cross-entropy over classes"
        raise ValueError(f"{text}; wanted one of: {heads}")
    wanted = valid.shape[:1] if is_pooled(head) else valid.shape
    targets = np.asarray(targets)
    if wanted not in (targets.shape, (1, *targets.shape)):
        given = list(targets.shape)
        raise ValueError(f"targets are {given}; wanted {list(wanted)}, one for each position")
    counted = targets != UNCOUNTED
    whole_numbers("targets", targets[counted], n_classes)
    if not counted.any():
        raise ValueError(f"all targets are {UNCOUNTED}; wanted at least one that counts")
    return targets.reshape(wanted)


def loss_back(model, targets, valid, back):  # [B T] or [B] -> float, [B T D]
    """The loss, and its gradient by the final stream.

    Rows without a target are left out, the others go through the head in pieces, so that no array
    of all tokens by all words is held.
    """
    cfg = model.config
    x = last_stream(model, back)
    asked = classified_token(x, valid, cfg)[:, 0] if is_pooled(cfg.task_head) else x
    counted = targets != UNCOUNTED
    rows, ids = asked[counted], targets[counted]  # [N D], [N]; of pictures [N rD]
    d_rows, d_logits, total = np.empty_like(rows), [], 0.0
    step = max(1, SCORES // model.weights.W_U.shape[1])
    for start in range(0, len(rows), step):
        piece = slice(start, start + step)
        mean_loss = partial(mean_cross_entropy, ids=ids[piece], n=len(rows))
        loss, dy, d_rows[piece] = head_back(rows[piece], mean_loss, model, back)
        total += loss
        if "logits" in back.wanted:
            d_logits.append(dy)
    if d_logits:
        back.kept["logits"] = placed(np.concatenate(d_logits), counted)
    d_asked = placed(d_rows, counted)
    if is_pooled(cfg.task_head):
        d_asked = classified_token_back(d_asked, x, valid, cfg)
    return total / len(rows), feature_major(d_asked)


def classified_token_back(d_asked, x, valid, cfg):  # [B D], [B T D] -> [B T D]
    """The gradient by the tokens of each text that were read; zeros at all others."""
    B, T, D = x.shape
    if cfg.head_reads:
        return token_shares(T, cfg).astype(x.dtype).T @ d_asked.reshape(B, -1, D)
    every_token = np.broadcast_to(np.eye(T, dtype=x.dtype), (B, T, T))
    share = classified_token(every_token, valid, cfg)  # [B 1 T]
    return share.swapaxes(1, 2) @ d_asked[:, None]


def placed(rows, where):  # [N D], bool [...] with N True -> [... D]
    """Rows where they belong; zeros elsewhere."""
    x = np.zeros((*where.shape, rows.shape[-1]), rows.dtype)
    x[where] = rows
    return x


def mean_cross_entropy(y, ids, n):  # [N V], [N] -> float, [N V]
    """Summed loss of some rows, and the gradient of the mean over n by their logits."""
    loss, dy = derivatives.cross_entropy(y, ids)
    dy /= n
    return loss, dy


def head_back(x, loss_of, model, back):  # [... D] -> float, [... V], [... D]
    """The loss of some rows of the last stream; its gradient by their logits, and by them.

    loss_of: f(logits) -> the loss, and its gradient by the logits.
    """
    cfg, w = model.config, model.weights
    normed = active = dense = x
    if w.W_head is not None:
        dense = linear(x, w.W_head, w.b_head)
        normed = active = ACTIVATIONS[cfg.head_act](dense.copy(order="K"))
    if w.ln_head_w is not None:
        normed = layer_norm(active, w.ln_head_w, w.ln_head_b, cfg.eps)
    unembedded = normed * cfg.unembed_scale
    y = linear(unembedded, w.W_U, w.b_U)
    loss, dy = loss_of(capped_(y.copy(order="K"), cfg.logit_cap) if cfg.logit_cap else y)
    d_product = derivatives.capped(dy, y, cfg.logit_cap) if cfg.logit_cap else dy
    dx = linear_back("U", d_product, unembedded, back) * cfg.unembed_scale
    if w.ln_head_w is not None:
        mean, scale = mean_and_inverse_std(active, cfg.eps)
        dx = layer_norm_back("ln_head", dx, active, mean, scale, back)
    if w.W_head is not None:
        dx = linear_back("head", derivatives.activation(dx, dense, cfg.head_act, active), x, back)
    return loss, dy, dx
