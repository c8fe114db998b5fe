"""Changes as a few lines of plain Python, which compute what the live page shows.

Each part gives lines; `code` puts them together. The names in the lines are those of a user:
model, tokens, edits, trace.
"""

from typing import NamedTuple

import numpy as np

from minitx import Model

from ..maths import masks
from ..measures import losses, spoken
from . import interventions
from .positions import POSITIONS, order


class Given(NamedTuple):
    """What is run: a model and a text, and how it is read."""

    model: Model
    name: str  # of the model, as `minitx.load` takes it
    text: str  # of an encoder-decoder its source
    target: str | None = None  # what an encoder-decoder is to say; None: its own greedy output
    hidden: tuple = ()  # places of a masked model's text where the mask token stands

    @property
    def is_pair(self):
        """Whether the model is an encoder-decoder."""
        return self.model.encoder is not None


def code(changes, given):
    """The lines as one text."""
    where = _place(changes, given)
    lines = [*_reading(given), "edits = {}"]
    for part in _positions, _mask, _heads, _layers, _dial:
        lines += part(changes, where)
    source = ", source=source" if given.is_pair else ""
    lines.append(f"trace = minitx.run(model, tokens, edits=edits{source})")
    imports = ["import numpy as np", "", "import minitx"]
    if changes.mask:
        imports.append("from minitx.analysis.maths import masks")
    return "\n".join([*imports, "", *lines]) + "\n"


def _reading(given):
    """The model and the tokens."""
    yield f"model = minitx.load({given.name!r})"
    if not given.is_pair:
        yield f"tokens = model.tokenizer.encode({given.text!r})"
        if given.hidden:
            mask = losses.mask_token(given.model.tokenizer)
            yield f"tokens[{list(given.hidden)}] = {mask}  # the mask token"
        return
    yield f"source = model.encoder.tokenizer.encode({given.text!r})"
    if given.target is None:
        n = min(spoken.LONGEST, given.model.config.n_ctx)
        yield f"tokens = minitx.generate(model, n={n}, source=source)[:-1]  # what it says"
    else:
        yield f"said = model.tokenizer.encode({given.target!r})"
        yield "tokens = np.array([model.config.start_id, *said[:-1]])"


class Where(NamedTuple):
    """Names of a stack, as the lines have them."""

    stack: str  # model, or model.encoder
    tokens: str  # tokens, or source
    place: interventions.Place

    @property
    def positions(self):
        """The points at which positions enter."""
        return self.place.positions


def _place(changes, given):
    """The Where of these changes; the text is read again to know its special tokens."""
    model = given.model
    if given.is_pair:
        source = model.encoder.tokenizer.encode(given.text)
        said = spoken.greedy(model, source)
        if given.target is not None:
            said = spoken.forced(model, source, given.target)
        place = interventions.place(changes.stack, model, said.inputs, source)
    else:
        place = interventions.place(changes.stack, model, model.tokenizer.encode(given.text))
    of_source = changes.stack == "encoder"
    names = ("model.encoder", "source") if of_source else ("model", "tokens")
    return Where(*names, place)


def _positions(changes, where):
    yield from POSITIONS[changes.positions].python(changes, where)


def _mask(changes, where):
    mask = changes.mask
    if mask is None:
        return
    values = "".join(f", {value!r}" for value in mask.values)
    seed = "" if mask.null_seed is None else f", seed={mask.null_seed}"
    cfg, stack = f"{where.stack}.config", where.stack
    yield f"f = masks.family({mask.family!r}{values})"
    size = f"len({where.tokens}), {cfg}.n_heads, {cfg}.causal{seed}"
    yield f"m = masks.build_mask(f, {size})"
    yield f"m = m.astype({stack}.weights.W_E.dtype)"
    rule = masks.meaning(mask.meaning)
    if rule.before:
        yield rule.before
    yield f'edits["{where.place.point(rule.point)}"] = {rule.python}'
    if rule.values:
        yield f'edits["{where.place.point("pattern")}"] = lambda p: p * m  # and the values'


def _heads(changes, where):
    by_layer = {}
    for layer, head in changes.heads_off:
        by_layer.setdefault(layer, []).append(head)
    H, point = where.place.stack.config.n_heads, where.place.point("z")
    for layer, heads in by_layer.items():
        is_on = np.isin(range(H), heads, invert=True).astype(int).tolist()
        on = f"np.array({is_on})[:, None, None]"
        yield f'edits["{point}", {layer}] = lambda z: z * {on}  # without head {_listed(heads)}'


def _listed(numbers):
    return ", ".join(map(str, numbers))


def _layers(changes, where):
    for layer in changes.layers_off:
        for point in interventions.WRITES[changes.stack]:
            yield f'edits["{point}", {layer}] = np.zeros_like  # layer {layer} writes nothing'


def _dial(changes, where):
    if not changes.dial:
        return
    yield from order("moved", f"np.roll({{}}, {-changes.dial})", where)
    point = where.positions[0]
    is_rows = changes.positions != "shifted"
    given = f'edits.get("{point}", lambda x: x)(x)' if is_rows else f'edits["{point}"][None]'
    if where.place.is_by_distance:
        yield f'given = edits.get("{point}", lambda x: x)'
        yield f'edits["{point}"] = lambda x: given(x)[..., moved]  # of the keys alone'
        return
    keys = where.place.point("k")
    source = ", source=source" if where.place.source is not None else ""
    yield f'others = edits | {{"{point}": lambda x: {given}[:, moved]}}'
    yield f'keys = minitx.run(model, tokens, "{keys}", others{source})'
    yield "edits |= dict(keys)  # keys of a run with their positions moved"
