"""One page to explore every head of a model on one text: a single, self-contained HTML file.

The data, the style, the program (page/explore.*) and a charting library (page/SOURCES.md) all stand
in it.
Order: `write`, what can be shown, what is computed, how arrays are packed, how the page is put
together. L layers, H heads, T tokens (or words), d width of a head, D model width, C columns, R
offsets. Queries and keys come in two states, as they are in the model and normalised (joint.py):
axes "state" and "side", of length 2 each.
"""

import base64
import json
import re
from html import escape
from pathlib import Path

import numpy as np

import minitx

from ..maths import factors, joint, profiles
from ..measures import inputs, joint_fit
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


def write(model, name, text, path, words=False):
    """Write the page of a text to the file `path`; return its size in bytes.

    name: what the model is called on the page. words: whole words instead of pieces. Raises
    ValueError, before any work, for a partial checkpoint, fewer than two tokens of the text's own,
    or more than MOST tokens.
    """
    tokens = readable(model, text)
    content = page(data(model, name, text, tokens, words)).encode()
    results.write(Path(path), content)
    return len(content)


# what can be shown


def readable(model, text):
    """The tokens [T] of a text; raises ValueError if there can be no page of them."""
    if model.missing:
        raise registry.NotApplicable(
            f"explore needs the whole model; {len(model.missing)} tensors are missing, "
            f"{model.missing[0]} among them"
        )
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


def data(model, name, text, tokens, words=False):
    """All that the page shows of a text with these tokens [T], ready for JSON."""
    cfg = model.config
    word, labels = _labelled(model.tokenizer, tokens, words)
    arrays, facts, moved = measured(model, tokens, word)
    content = {"model": str(name), "text": text}
    content["labels"] = [label.translate(BLANKS) or "∅" for label in labels]
    content |= {"layers": cfg.n_layers, "heads": cfg.n_heads, "width": cfg.d_head}
    content |= {"causal": cfg.causal, "unit": "word" if words else "token"}
    content |= {"distance": DISTANCE, "moved": moved, "facts": facts}
    content["uniform"] = uniform_profile(len(labels), cfg.causal).tolist()
    content["arrays"] = {key: pack(*packed) for key, packed in arrays.items()}
    return content


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


def measured(model, tokens, word):
    """Arrays and figures of all heads, and the largest change of attention by normalising.

    Each array comes with the number of its first axes along which it is packed apart. word: the
    number of the word that each token belongs to [T], or of the token itself.
    """
    trace = minitx.run(model, tokens, keep=["q", "k", "pattern"])
    q, k, pieces = (trace.stack(name)[:, 0].astype(np.float64) for name in ("q", "k", "pattern"))
    pattern, *before = of_words.merged(pieces, q, k, word)
    moves, correlations = normalising(model, *before)
    states = [before, joint.normalised(*before, **moves)]
    X = inputs.of_text(model, tokens).astype(np.float64)
    X = of_words.merged(pieces[:, 0], X, X, word)[1]
    plane, share = planes(states)
    columns, weight = waves(model, X)
    T = pattern.shape[-1]
    profile = profiles.mean_attention(profiles.profile(pattern, reach(T)), T)
    arrays = {"pattern": (pattern, 2), "plane": (plane, 3), "columns": (columns, 2)}
    arrays |= {"profile": (profile, 2), "share": (share, 0), "weight": (weight, 0)}
    facts = figures(model, pattern, states, plane, correlations, moves["c"])
    return arrays, facts, change(model, q, k, moves)


def normalising(model, q, k):
    """How queries and keys [L H T d] are normalised, each head by itself, and what it achieves.

    Returns {"c": [L H], "a": [L H d]} and the correlations before and after [2 L H].
    """
    sees = profiles.visible(q.shape[-2], model.config.causal)
    means = q.mean(axis=-2), k.mean(axis=-2)
    sums = joint.scan(q, k, means, sees * 1.0, sees, DISTANCE, PRODUCTS)
    correlations = joint.correlation(sums)
    number = joint.best(correlations, "head")
    after = np.take_along_axis(correlations, number[None], 0)[0]
    moves = joint.transform_of(number, means, DISTANCE)
    return moves, np.array([correlations[0], after])


def change(model, q, k, moves):
    """Largest change of attention between pieces, which is rounding: q, k [L H T d] of pieces."""
    scale = np.array([model.config.attn_scale(layer) for layer in range(len(q))])
    scale = scale[:, None, None, None]
    sees = profiles.visible(q.shape[-2], model.config.causal)
    changes, _ = joint.changes(q, k, **moves, scale=scale, seen=sees)
    return float(changes.max())


def planes(states):
    """The plane in which queries and keys together vary most, in each state.

    states: pairs of q and k [L H T d]. Returns coordinates [L H state side T 2] and the share of
    the variance of each axis [L H state 2]. Vectors have length 1 where distances are cosines.
    """
    coordinates, variance = [], []
    for pair in states:
        x = np.concatenate([joint.DISTANCES[DISTANCE].drawn(part) for part in pair], axis=-2)
        x -= x.mean(axis=-2, keepdims=True)
        projected = x @ joint.plane(x.swapaxes(-1, -2) @ x)
        coordinates.append(projected.reshape(*projected.shape[:2], 2, -1, 2))
        total = np.square(x).sum(axis=(-2, -1))[..., None]
        variance.append(np.square(projected).sum(axis=-2) / np.maximum(total, TINY))
    return np.stack(coordinates, axis=2), np.stack(variance, axis=2)


def waves(model, X):
    """The heaviest columns of Q = X U_Q and K = X U_K, and their share of W_A; X [L T D].

    Returns columns [L H side T C] and shares [L H C].
    """
    columns, weight = [], []
    for layer, x in enumerate(X):
        for head in range(model.config.n_heads):
            W_Q, W_K = inputs.query_key(model, layer, head)
            U_Q, S, U_K = factors.svd(W_Q.astype(np.float64), W_K.astype(np.float64))
            columns.append([x @ U[:, :COLUMNS] for U in (U_Q, U_K)])
            weight.append((S * S / max((S * S).sum(), TINY))[:COLUMNS])
    shape = len(X), model.config.n_heads
    return [np.reshape(x, (*shape, *np.shape(x)[1:])) for x in (columns, weight)]


def figures(model, pattern, states, plane, correlations, c):
    """What the page says of each head: [{"means": …, "values": one text a head}]."""
    sees = profiles.visible(pattern.shape[-1], model.config.causal)
    strongest = pattern.argmax(axis=-1)
    full, flat = [], []
    for state, (q, k) in enumerate(states):
        full.append(nearest(joint.distances(q, k, DISTANCE), strongest, sees))
        x, y = np.moveaxis(plane[:, :, state], 2, 0)
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
    "style": "explore.css",
    "d3": "d3.min.js",
    "plot": "plot.min.js",
    "state": "data.js",
    "views": "views.js",
    "program": "explore.js",
}


def page(content):
    """The HTML text of a page that shows `data(...)`."""
    parts = {
        "title": escape(f"{content['model']}: {content['text'][:60]}"),
        "data": as_script(content),
        "licences": escape(_asset("LICENCES.txt")),
    }
    for name, file in ASSETS.items():
        parts[name] = _asset(file)
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], _asset("explore.html"))


def as_script(value):
    """JSON that cannot end the script element in which it stands."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def _asset(file):
    """The text of a file of the folder page/."""
    return (PAGE / file).read_text(encoding="utf-8")
