"""One page to explore every head of a model on one text: a single, self-contained HTML file.

The data, the style, the program (page/explore.*) and a charting library (page/SOURCES.md) all stand
in it.
Order: `write`, what can be shown, what is computed, how arrays are packed, how the page is put
together. L layers, H heads, T queries and S keys (tokens, or words), d width of a head, D model
width, C columns, R offsets. Of an encoder-decoder the page has three parts. Queries and keys come
in two states, as they are in the model and normalised (joint.py): an axis "state" of length 2.
"""

import base64
import json
import re
from html import escape
from pathlib import Path

import numpy as np

from ..maths import factors, joint, profiles
from ..measures import joint_fit, looks, spoken
from ..runner import registry, results
from ..texts import formats as of_texts
from ..texts import words as of_words

PAGE = Path(__file__).parent / "page"
MOST = 128  # tokens that can still be told apart on a screen
# columns of Q = X U_Q and K = X U_K that are shown, the heaviest
COLUMNS = 4
# by which c is chosen, for each head
DISTANCE, PRODUCTS = joint_fit.How().distance, joint_fit.How().products
STEPS = 65535
TINY = 1e-300  # instead of a zero by which something is divided
BLANKS = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


def write(model, name, text, path, words=False, target=None):
    """Write the page of a text to the file `path`; return its size in bytes.

    name: what the model is called on the page. words: whole words instead of pieces. Of an
    encoder-decoder the text is the source; target: what is said of it, by default the model's own
    greedy output. Raises ValueError, before any work, for a partial checkpoint, fewer than two
    tokens of the text's own, or more than MOST tokens.
    """
    tokens = readable(model, text, target)
    content = page(data(model, name, text, tokens, words)).encode()
    results.write(Path(path), content)
    return len(content)


# what can be shown


def readable(model, text, target=None):
    """The tokens [T] of a text, of an encoder-decoder a Spoken; ValueError if there is no page."""
    if model.missing:
        raise registry.NotApplicable(
            f"explore needs the whole model; {len(model.missing)} tensors are missing, "
            f"{model.missing[0]} among them"
        )
    if model.encoder is None:
        if target is not None:
            kind = model.config.model_type
            raise ValueError(f"target is {target!r}, but this model ({kind}) is one stack")
        return _readable(model, text)
    source = _readable(model.encoder, text)
    if target is None:
        return spoken.greedy(model, source)
    _readable(model, target)
    return spoken.forced(model, source, target)


def _readable(model, text):
    """The tokens [T] of a text; raises ValueError for too few or too many."""
    of_texts.valid(text, "the text")
    tokens = model.tokenizer.encode(text, special=True)
    n_own = len(model.tokenizer.encode(text, special=False))
    if n_own < 2:
        raise ValueError(
            f"the text {text!r} has {n_own} {'token' if n_own == 1 else 'tokens'}, "
            "special ones not counted; wanted 2 or more, so that there is something to look at"
        )
    most, reader = min((MOST, "the page shows"), (model.config.n_ctx, "this model reads"))
    if len(tokens) > most:
        raise ValueError(
            f"the text has {len(tokens)} tokens, special ones included; {reader} at most {most}"
        )
    return tokens


# what is computed


def data(model, name, text, tokens, words=False, **options):
    """One run: all that the page shows of what `readable` gives, ready for JSON.

    Of an encoder-decoder every part is below "parts". options: further keywords of `minitx.run`
    for a run that is changed: edits, mask, positions.
    """
    content = {"model": str(name), "text": text}
    if model.encoder is None:
        return content | part(looks.of_text(model, tokens, **options), words)
    parts = looks.of_parts(model, tokens, **options)
    return content | {"parts": {name: part(look, words) for name, look in parts.items()}}


def part(look, words=False):
    """What the page shows of one part of a model."""
    model, cfg = look.model, look.model.config
    word, labels = _labelled(model.tokenizer, look.queries, words)
    reader = model.encoder if look.is_cross else model
    of_key, key_labels = _labelled(reader.tokenizer, look.keys, words)
    arrays, facts, moved = measured(look, word, of_key)
    content = {"labels": _visible(labels)}
    if look.is_cross:
        content["keys"] = _visible(key_labels)
    causal = not look.sees.all()
    content |= {"layers": cfg.n_layers, "heads": cfg.n_heads, "width": cfg.d_head}
    content |= {"causal": causal, "unit": "word" if words else "token"}
    content |= {"distance": DISTANCE, "moved": moved, "facts": facts}
    if not look.is_cross:
        content["uniform"] = uniform_profile(len(labels), causal).tolist()
    content["arrays"] = {key: pack(*packed) for key, packed in arrays.items()}
    return content


def _visible(labels):
    """Labels whose blanks can be seen."""
    return [label.translate(BLANKS) or "∅" for label in labels]


def _labelled(tokenizer, tokens, words):
    """The number of the word that each token belongs to [T], and the labels of the words.

    Without `words` every token counts as a word of its own.
    """
    pieces = tokenizer.pieces(tokens)
    if not words:
        return np.arange(len(tokens)), pieces
    word = of_words.numbers(tokens, tokenizer.decode)
    return word, of_words.names(tokens, word, tokenizer.decode, pieces)


def uniform_profile(T, causal):
    """Relative-position profile of attention with equal weight on all keys a query sees: [R]."""
    return profiles.mean_attention(profiles.uniform(T, causal, reach(T)), T)


def reach(T):
    """Farthest offset of the relative-position profile of T tokens."""
    return min(T - 1, profiles.REACH)


def measured(look, word, of_key):
    """Arrays and figures of all heads, and the largest change of attention by normalising.

    Each array comes with the number of its first axes along which it is packed apart. word, of_key:
    the number of the word that each query, each key belongs to, or of the token itself.
    """
    pattern, *before = of_words.merged(look.pattern, look.q, look.k, word, of_key)
    sees = _words_seen(look.sees, pattern.shape)
    moves, correlations = normalising(*before, sees)
    states = [before, joint.normalised(*before, **moves)]
    _, X_q, X_k = of_words.merged(look.pattern[:, 0], look.X_q, look.X_k, word, of_key)
    plane, share = planes(states)
    columns, weight = waves(look, X_q, X_k)
    arrays = {"pattern": (pattern, 2), "plane": (plane, 3), "columns": (columns, 2)}
    if not look.is_cross:
        T = pattern.shape[-1]
        profile = profiles.mean_attention(profiles.profile(pattern, reach(T)), T)
        arrays["profile"] = (profile, 2)
    arrays |= {"share": (share, 0), "weight": (weight, 0)}
    facts = figures(pattern, states, plane, correlations, moves["c"], sees)
    return arrays, facts, change(look, moves)


def _words_seen(sees, shape):
    """Which words a word sees, where tokens see [T S]."""
    causal = not sees.all()
    return profiles.visible(shape[-1], causal) if causal else np.ones(shape[-2:], bool)


def normalising(q, k, sees):
    """How queries and keys [L H T d] are normalised, each head by itself, and what it achieves.

    Returns {"c": [L H], "a": [L H d]} and the correlations before and after [2 L H].
    """
    means = q.mean(axis=-2), k.mean(axis=-2)
    sums = joint.scan(q, k, means, sees * 1.0, sees, DISTANCE, PRODUCTS)
    correlations = joint.correlation(sums)
    number = joint.best(correlations, "head")
    after = np.take_along_axis(correlations, number[None], 0)[0]
    moves = joint.transform_of(number, means, DISTANCE)
    return moves, np.array([correlations[0], after])


def change(look, moves):
    """Largest change of attention between pieces, which is rounding."""
    scale = np.array([look.model.config.attn_scale(layer) for layer in range(len(look.q))])
    scale = scale[:, None, None, None]
    changes, _ = joint.changes(look.q, look.k, **moves, scale=scale, seen=look.sees)
    return float(changes.max())


def planes(states):
    """The plane in which queries and keys together vary most, in each state.

    states: pairs of q [L H T d] and k [L H S d]. Returns coordinates [L H state T+S 2], queries
    first, and the share of the variance of each axis [L H state 2]. Vectors have length 1 where
    distances are cosines.
    """
    coordinates, variance = [], []
    for pair in states:
        x = np.concatenate([joint.DISTANCES[DISTANCE].drawn(part) for part in pair], axis=-2)
        x -= x.mean(axis=-2, keepdims=True)
        projected = x @ joint.plane(x.swapaxes(-1, -2) @ x)
        coordinates.append(projected)
        total = np.square(x).sum(axis=(-2, -1))[..., None]
        variance.append(np.square(projected).sum(axis=-2) / np.maximum(total, TINY))
    return np.stack(coordinates, axis=2), np.stack(variance, axis=2)


def waves(look, X_q, X_k):
    """The heaviest columns of Q = X_q U_Q and K = X_k U_K, and their share of W_A.

    X_q [L T D], X_k [L S D]. Returns columns [L H T+S C], queries first, and shares [L H C].
    """
    cfg = look.model.config
    columns, weight = [], []
    for w, x_q, x_k in zip(look.weights, X_q, X_k):
        for head in range(cfg.n_heads):
            of_head = slice(head * cfg.d_head, (head + 1) * cfg.d_head)
            W_Q, W_K = (W[:, of_head].astype(np.float64) for W in (w.W_Q, w.W_K))
            U_Q, S, U_K = factors.svd(W_Q, W_K)
            columns.append(np.concatenate([x_q @ U_Q[:, :COLUMNS], x_k @ U_K[:, :COLUMNS]]))
            weight.append((S * S / max((S * S).sum(), TINY))[:COLUMNS])
    shape = len(X_q), cfg.n_heads
    return [np.reshape(x, (*shape, *np.shape(x)[1:])) for x in (columns, weight)]


def figures(pattern, states, plane, correlations, c, sees):
    """What the page says of each head: [{"means": …, "values": one text a head}]."""
    strongest = pattern.argmax(axis=-1)
    full, flat = [], []
    for state, (q, k) in enumerate(states):
        full.append(nearest(joint.distances(q, k, DISTANCE), strongest, sees))
        x, y = np.split(plane[:, :, state], [q.shape[-2]], axis=-2)
        flat.append(nearest(joint.distances(x, y, "euclidean"), strongest, sees))
    chance = np.mean([1 / n for n in sees.sum(axis=1) if n > 1])
    scales = [joint.format_scale(value) for value in c.ravel()]
    correlation = f"products against {DISTANCE} distances: correlation"
    first = f"strongest key is the nearest (chance {chance:.0%})"
    facts = [_fact(correlation, "{:.2f} → {:.2f}", *correlations)]
    facts.append(_fact(first, "{:.0%} → {:.0%}", *full))
    facts.append(_fact("the same in the plane", "{:.0%} → {:.0%}", *flat))
    facts.append(_fact("scale c", "{}", scales))
    return facts


def _fact(means, form, *values):
    """A figure and its text for every head; values: arrays [L H] or lists that `form` takes."""
    heads = zip(*map(np.ravel, values))
    return {"means": means, "values": [form.format(*x).replace("-", "−") for x in heads]}


def nearest(distances, strongest, sees):
    """Share of the queries whose strongest key is the nearest one: [L H T T], [L H T] -> [L H].

    Queries that see one key only are left out.
    """
    hits = joint.nearness(joint.ranks(distances, sees), strongest, sees)[1]
    return hits / (sees.sum(axis=1) > 1).sum()


# how arrays are packed


def pack(x, leading):
    """An array as 16-bit steps between the least and the greatest value of each part.

    A part is what one index of the `leading` first axes selects. Returns {"shape", "low", "high",
    "error": half of the largest step, "data": base64 of little-endian uint16}.
    """
    rows = np.asarray(x, np.float64).reshape(int(np.prod(x.shape[:leading])), -1)
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    codes = np.rint((rows - low) / np.maximum(high - low, TINY) * STEPS).astype("<u2")
    packed = {"shape": list(x.shape), "low": low[:, 0].tolist(), "high": high[:, 0].tolist()}
    packed["error"] = float((high - low).max() / STEPS / 2)
    packed["data"] = base64.b64encode(codes.tobytes()).decode()
    return packed


def unpack(packed):
    """The array again, as the page reads it: low + code (high - low) / 65535."""
    low, high = (np.array(packed[end])[:, None] for end in ("low", "high"))
    codes = np.frombuffer(base64.b64decode(packed["data"]), "<u2").reshape(len(low), -1)
    return (low + codes * ((high - low) / STEPS)).reshape(packed["shape"])


# how the page is put together

ASSETS = {  # gap in explore.html: the file that fills it as it stands
    "d3": "d3.min.js",
    "plot": "plot.min.js",
}
# the page's program, in the order in which it is read
PROGRAM = "data.js", "colours.js", "attention.js", "views.js", "explore.js"
STYLES = ("explore.css",)
# nothing is loaded, and nothing leaves the page
POLICY = {
    "default-src": "'none'",
    "script-src": "'unsafe-inline'",
    "style-src": "'unsafe-inline'",
    "img-src": "data:",
}


def page(*runs, live=None, program=(), styles=(), body="", policy=None):
    """The HTML text of a page that shows one run, or two side by side; a run is `data(...)`.

    live: what a server says of itself, None for a page that stands alone. program, styles: names
    of further files in page/. body: HTML above the text. policy: changes of POLICY.
    """
    content = {"runs": [{"name": "as is"} | run for run in runs], "live": live}
    first = runs[0]
    rules = (POLICY | (policy or {})).items()
    parts = {
        "title": escape(f"{first['model']}: {first['text'][:60]}"),
        "policy": "; ".join(f"{what} {where}" for what, where in rules),
        "data": as_script(content),
        "licences": escape(_asset("LICENCES.txt")),
        "style": "\n".join(_asset(file) for file in (*STYLES, *styles)),
        "body": body,
    }
    scripts = [f"<script>{_asset(file)}</script>" for file in (*PROGRAM, *program)]
    parts["program"] = "\n".join(scripts)
    for name, file in ASSETS.items():
        parts[name] = _asset(file)
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], _asset("explore.html"))


def as_script(value):
    """JSON that cannot end the script element in which it stands."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def _asset(file):
    """The text of a file of the folder page/."""
    return (PAGE / file).read_text(encoding="utf-8")
