"""What a notebook or a prompt shows of an object: a few lines of text, or a table of HTML.

A class that is a `Shown` has a method `_summary() -> Summary`; the functions below make those of
minitx. They look at arrays' shapes and bytes and read no file.
"""

import html
import textwrap
from dataclasses import fields, is_dataclass
from typing import NamedTuple

from .mapped import ARRAY, place_of, stays_in_file

WIDTH = 98  # columns of a line of text


class Summary(NamedTuple):
    """What is shown of one object, in both forms."""

    title: str
    lines: list  # of the text, below the title
    header: tuple  # of the table
    rows: list  # of the table: tuples as long as the header

    def text(self):
        """The title and the lines, as `repr` gives them."""
        wrap = textwrap.TextWrapper(WIDTH, initial_indent="  ", subsequent_indent="      ")
        return "\n".join([self.title, *map(wrap.fill, self.lines)])

    def html(self):
        """The title above a table, escaped, as notebooks show it."""
        title, header = html.escape(self.title), _row("th", self.header)
        rows = "".join(_row("td", row) for row in self.rows)
        return f"<p>{title}</p><table><thead>{header}</thead><tbody>{rows}</tbody></table>"


class Shown:
    """A class whose objects show themselves by their `_summary()`."""

    def __repr__(self):
        return self._summary().text()

    def _repr_html_(self):
        return self._summary().html()


def _row(tag, values):
    cells = "".join(f"<{tag}>{html.escape(str(value))}</{tag}>" for value in values)
    return f"<tr>{cells}</tr>"


def model(model):
    """A model: its sizes and those of its weights; in HTML one row for all layers."""
    cfg = model.config
    groups = _by_name(model)
    arrays = [x for group in groups.values() for x in group]
    if model.encoder is not None:
        arrays += [x for group in _by_name(model.encoder).values() for x in group]
    head = f"{cfg.task_head} head" if cfg.task_head else "no task head"
    title = f"Model {cfg.architecture or cfg.model_type} ({cfg.model_type}, {head})"
    normed = "not normed before ln_final" if cfg.pre_norm else "normed after each addition"
    n_numbers = sum(x.size for x in _distinct(arrays))
    lines = [
        f"{cfg.n_layers} layers of {cfg.n_heads} heads, each {cfg.d_head} wide",
        f"residual stream {cfg.d_model} wide, {normed}; inside the MLP {cfg.d_mlp}",
        _input(cfg),
        f"{n_numbers:,} numbers in {len(arrays)} arrays, {_size(_distinct(arrays))}",
    ]
    if cfg.encoder is not None:
        sizes = f"{cfg.encoder.n_layers} layers of {cfg.encoder.n_heads} heads"
        lines.append(f"among them those of its encoder, model.encoder: {sizes}")
    if cfg.labels:
        lines.append(f"classes ({len(cfg.labels)}): {_first(cfg.labels)}")
    if stays_in_file(model):
        lines.append("matrices stay in the file and are read when they are used")
    for what, names in (("missing", model.missing), ("not read", model.unused)):
        if names:
            lines.append(f"tensors {what} ({len(names)}): {_first(names)}")
    rows = []
    for name, group in groups.items():
        kilobytes = sum(x.nbytes for x in group) / 1e3
        rows.append((name, _shape(group[0]), len(group), f"{kilobytes:.1f}"))
    return Summary(title, lines, ("array", "shape", "arrays", "kB in all"), rows)


def _input(cfg):
    """What a model reads."""
    if cfg.picture is None:
        return f"reads up to {cfg.n_ctx} tokens of a vocabulary of {cfg.n_vocab}"
    rows, columns, channels, height, width, specials = cfg.picture
    patches = f"{rows} × {columns} patches of {height} × {width} pixels in {channels} channels"
    return f"reads pictures: {specials} special tokens, then {patches}"


def _by_name(model):
    """{name: arrays} of a model without its encoder; those of all layers have one name."""
    groups = {f"weights.{name}": [x] for name, x in _arrays(model.weights).items()}
    for layer in model.layers:
        arrays = _arrays(layer)
        if vars(layer).get("cross") is not None:
            arrays |= {f"cross.{name}": x for name, x in _arrays(layer.cross).items()}
        for name, x in arrays.items():
            groups.setdefault(f"layers[i].{name}", []).append(x)
    return groups


def weights(part):
    """Arrays of a model, of one of its layers, or of that layer's cross-attention, by shape."""
    arrays = _arrays(part)
    layer = vars(part).get("index")
    name = "Weights outside the layers" if layer is None else f"Weights of layer {layer}"
    if "ln_cross_w" in vars(part):
        name += ", cross-attention"
    return _summary_of_arrays(f"{name}: {_count(len(arrays), 'array')}", arrays, arrays)


def trace(valid, arrays, points):
    """What a trace recorded, by shape; in HTML a row for each point, with its meaning.

    arrays: {name or (name, layer): array}; points: POINTS of trace.py.
    """
    B, T = valid.shape
    layers, example = {}, {}  # by name
    for key, x in arrays.items():
        name, *layer = [key] if isinstance(key, str) else key
        layers.setdefault(name, []).extend(layer)
        example.setdefault(name, x)
    most = max(map(len, layers.values()), default=0)
    named, rows = {}, []
    for name, x in example.items():
        own, point = layers[name], points[name]
        few = 0 < len(own) < most
        label = f"{name} (layer {_first(own)})" if few else name
        named[label] = x
        kilobytes = f"{max(len(own), 1) * x.nbytes / 1e3:.1f}"
        rows.append((name, point.axes, _shape(x), _first(own), kilobytes, point.meaning))
    n_arrays, n_points = _count(len(arrays), "array"), _count(len(layers), "point")
    title = f"Trace of {B} × {T} tokens: {n_arrays} of {n_points}"
    summary = _summary_of_arrays(title, named, arrays)
    return summary._replace(header=("point", "axes", "shape", "layers", "kB", "what"), rows=rows)


def gradients(loss, n_targets, arrays):
    """A loss and its gradients, by shape."""
    n = _count(len(arrays), "array")
    title = f"Loss {loss:.4f} nats, mean of {_count(n_targets, 'target')}; gradients of {n}"
    named = {key if isinstance(key, str) else f"{key[0]} {key[1]}": x for key, x in arrays.items()}
    return _summary_of_arrays(title, named, arrays)


def config(cfg):
    """Fields of a config; the text leaves out those that have their default."""
    rows = [(field.name, _value(getattr(cfg, field.name))) for field in fields(cfg)]
    title = "Config (what is not listed has its default)"
    return Summary(title, [_given(cfg)], ("field", "value"), rows)


def _given(cfg):
    """The fields of a config that do not have their default, and those of its encoder's."""
    texts = []
    for field in fields(cfg):
        value = getattr(cfg, field.name)
        if is_dataclass(value):
            texts.append(f"{field.name}=({_given(value)})")
        elif value != field.default:
            texts.append(f"{field.name}={_value(value)}")
    return ", ".join(texts)


def _value(value):
    """A field of a config, cut off where it says much of each layer (rotary frequencies)."""
    text = repr(value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"


def cache(cache):
    """Tokens that a cache holds, and its bytes."""
    B = 0 if cache.valid is None else len(cache.valid)
    stored = cache.stored.values()
    room = min((x.shape[3] for x in stored), default=0)
    rows = [("texts", B), ("tokens", len(cache)), ("room for tokens", room)]
    rows += [("layers", len(stored)), ("bytes", sum(x.nbytes for x in stored))]
    title = f"Cache of {B} × {len(cache)} tokens in {len(stored)} layers, {_size(stored)}"
    return Summary(title, [], ("what", "number"), rows)


def tokenizer(tokenizer):
    """Where a tokenizer comes from; its files are not read for this."""
    origin = tokenizer.folder or "memory"
    rows = [("model type", tokenizer.model_type), ("folder", origin)]
    title = f"Tokenizer ({tokenizer.model_type}) of {origin}"
    return Summary(title, [], ("what", "value"), rows)


def _summary_of_arrays(title, named, counted):
    """The names in `named` by shape, below a title with the bytes of the arrays in `counted`."""
    shapes = {}
    for name, x in named.items():
        shapes.setdefault(_shape(x), []).append(name)
    longest = max(map(len, shapes), default=0)
    lines = [f"{shape:{longest}}  {', '.join(names)}" for shape, names in shapes.items()]
    return Summary(f"{title}, {_size(_distinct(counted.values()))}", lines, *_table(named))


def _table(arrays):
    """Header and rows: name, shape and size of each array."""
    rows = [(name, _shape(x), f"{x.nbytes / 1e3:.1f}") for name, x in arrays.items()]
    return ("array", "shape", "kB"), rows


def _arrays(part):
    """{name: array} of a namespace, without what a model lacks."""
    return {name: x for name, x in vars(part).items() if isinstance(x, ARRAY)}


def _distinct(arrays):
    """These arrays, each memory once: a tied W_U is a view of W_E."""
    return {(place_of(x), x.size): x for x in arrays}.values()


def _size(arrays):
    """ "1.23 MB of float32"."""
    kinds = sorted({str(x.dtype) for x in arrays})
    size = f"{sum(x.nbytes for x in arrays) / 1e6:.2f} MB"
    return f"{size} of {', '.join(kinds)}" if kinds else size


def _shape(x):
    return f"[{' '.join(map(str, x.shape))}]"


def _count(n, noun):
    """ "1 array", "2 arrays"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _first(names, n=6):
    """The first n of some names, with dots for the others."""
    shown = ", ".join(map(str, names[:n]))
    return shown + ", …" if len(names) > n else shown
