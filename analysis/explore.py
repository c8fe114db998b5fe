"""One page on which to explore every head of a model on one text: a single HTML file that asks for nothing else.

The data, the style, the program (page/explore.*) and a charting library (page/SOURCES.md) all stand in it.
Order: `write`, what can be shown, what is computed, how arrays are packed, how the page is put together.
L layers, H heads, T tokens (or words), d width of a head, D model width, C columns, R offsets. Queries and keys come
in two states, as they are in the model and normalised (joint.py): axes "state" and "side", of length 2 each.
"""

import base64
import json
import re
from html import escape
from pathlib import Path

import numpy as np

import minitx

from . import data as of_texts, factors, inputs, joint, joint_fit, profiles, registry, results
from . import words as of_words

PAGE = Path(__file__).parent / "page"
MOST = 128                              # tokens that can still be told apart on a screen
COLUMNS = 4                             # columns of Q = X U_Q and K = X U_K that are shown, the heaviest
DISTANCE, PRODUCTS = joint_fit.How().distance, joint_fit.How().products  # by which c is chosen, for each head
STEPS = 65535
BLANKS = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


def write(model, name, text, path, words=False):
    """Write the page of a text to the file `path` -> its size in bytes.

    name: what the model is called on the page. words: whole words instead of pieces. ValueError, before any work,
    for a partial checkpoint, fewer than two tokens of the text's own, or more than MOST tokens.
    """
    tokens = readable(model, text)
    content = page(data(model, name, text, tokens, words)).encode()
    results.write(Path(path), content)
    return len(content)


# what can be shown

def readable(model, text):
    """The tokens [T] of a text; ValueError where they make no page."""
    if model.missing:
        raise registry.Unfit(f"explore needs the whole model; {len(model.missing)} tensors are missing, "
                             f"{model.missing[0]} among them")
    of_texts.valid(text, "the text")
    tokens, own = (model.tokenizer.encode(text, special=special) for special in (True, False))
    if len(own) < 2:
        raise ValueError(f"the text {text!r} has {len(own)} token{'s'[len(own) == 1:]}, special ones not counted; "
                         "wanted 2 or more, so that there is something to look at")
    most, whose = min((MOST, "the page shows"), (model.config.n_ctx, "this model reads"))
    if len(tokens) > most:
        raise ValueError(f"the text has {len(tokens)} tokens, special ones included; {whose} at most {most}")
    return tokens


# what is computed

def data(model, name, text, tokens, words=False):
    """All that the page is told of a text with these tokens [T], ready for JSON."""
    cfg, tokenizer, pieces = model.config, model.tokenizer, model.tokenizer.pieces(tokens)
    word = of_words.numbers(tokens, tokenizer.decode) if words else np.arange(len(tokens))
    labels = of_words.names(tokens, word, tokenizer.decode, pieces) if words else pieces
    arrays, facts, moved = measured(model, tokens, word)
    uniform = profiles.mean_attention(profiles.uniform(len(labels), cfg.causal, reach(labels)), len(labels))
    return {"model": str(name), "text": text, "labels": [label.translate(BLANKS) or "∅" for label in labels],
            "layers": cfg.n_layers, "heads": cfg.n_heads, "width": cfg.d_head, "causal": cfg.causal, "unit":
            "word" if words else "token", "distance": DISTANCE, "moved": moved, "facts": facts,
            "uniform": uniform.tolist(), "arrays": {key: pack(*packed) for key, packed in arrays.items()}}


def reach(labels):
    """Farthest offset of the relative-position profile."""
    return min(len(labels) - 1, profiles.REACH)


def measured(model, tokens, word):
    """Arrays, each with the number of its first axes along which it is packed apart; figures; change of attention.

    word: number of the word that each token belongs to [T], or of the token itself.
    """
    trace = minitx.run(model, tokens, keep=["q", "k", "pattern"])
    q, k, pieces = (trace.stack(name)[:, 0].astype(np.float64) for name in ("q", "k", "pattern"))
    pattern, *before = of_words.merged(pieces, q, k, word)
    moves, sums = normalising(model, *before)
    after = joint.normalised(*before, **moves)
    X = inputs.of_text(model, tokens).astype(np.float64)
    plane, share = planes([before, after])
    columns, weight = waves(model, of_words.merged(pieces[:, 0], X, X, word)[1])
    profile = profiles.mean_attention(profiles.profile(pattern, reach(pattern[0, 0])), pattern.shape[-1])
    arrays = {"pattern": (pattern, 2), "plane": (plane, 3), "columns": (columns, 2), "profile": (profile, 2),
              "share": (share, 0), "weight": (weight, 0)}
    return arrays, figures(model, pattern, [before, after], plane, sums, moves["c"]), change(model, q, k, moves)


def seen(model, T):
    """Whether a query sees a key: [T T]."""
    return np.tri(T, dtype=bool) | (not model.config.causal)


def normalising(model, q, k):
    """The changes of queries and keys [L H T d], each head by itself: {"c": [L H], "a": [L H d]}; and the correlations
    before and after [2 L H]."""
    sees, means = seen(model, q.shape[-2]), (q.mean(axis=-2), k.mean(axis=-2))
    found = joint.correlation(joint.scan(q, k, means, sees * 1.0, sees, DISTANCE, PRODUCTS))
    number = joint.best(found, "head")
    return joint.chosen(number, means, DISTANCE), np.array([found[0], np.take_along_axis(found, number[None], 0)[0]])


def change(model, q, k, moves):
    """Largest change of attention between pieces, which is rounding: q, k [L H T d] of pieces."""
    scale = np.array([model.config.attn_scale(layer) for layer in range(len(q))])[:, None, None, None]
    return float(joint.changes(q, k, **moves, scale=scale, seen=seen(model, q.shape[-2]))[0].max())


def planes(states):
    """The plane in which queries and keys together vary most: pairs of [L H T d] -> [L H state side T 2], share of the
    variance [L H state 2]. Vectors of length 1 where distances are cosines."""
    places, shares = [], []
    for pair in states:
        x = np.concatenate([joint.DISTANCES[DISTANCE].drawn(part) for part in pair], axis=-2)
        x -= x.mean(axis=-2, keepdims=True)
        at = x @ joint.plane(x.swapaxes(-1, -2) @ x)
        places.append(at.reshape(*at.shape[:2], 2, -1, 2))
        shares.append(np.square(at).sum(axis=-2) / np.maximum(np.square(x).sum(axis=(-2, -1))[..., None], 1e-300))
    return np.stack(places, axis=2), np.stack(shares, axis=2)


def waves(model, X):
    """Columns of Q = X U_Q and K = X U_K [L H side T C], heaviest first, and their share of W_A [L H C]; X [L T D]."""
    columns, weight = [], []
    for layer, x in enumerate(X):
        for head in range(model.config.n_heads):
            U_Q, S, U_K = factors.svd(*(W.astype(np.float64) for W in inputs.query_key(model, layer, head)))
            columns.append([x @ U[:, :COLUMNS] for U in (U_Q, U_K)])
            weight.append((S * S / max((S * S).sum(), 1e-300))[:COLUMNS])
    shape = len(X), model.config.n_heads
    return (np.reshape(found, (*shape, *np.shape(found)[1:])) for found in (columns, weight))


def figures(model, pattern, states, plane, correlations, c):
    """What the page says of each head: [{"means": …, "values": one text a head}]."""
    sees, strongest = seen(model, pattern.shape[-1]), pattern.argmax(axis=-1)
    full = [nearest(joint.distances(*pair, DISTANCE), strongest, sees) for pair in states]
    flat = [nearest(joint.distances(*np.moveaxis(plane[:, :, state], 2, 0), "euclidean"), strongest, sees)
            for state in (0, 1)]
    chance = np.mean([1 / n for n in sees.sum(axis=1) if n > 1])
    scales = [joint.told(one) for one in c.ravel()]
    rows = (f"products against {DISTANCE} distances: correlation", "{:.2f} → {:.2f}", *correlations), \
        (f"strongest key is the nearest (chance {chance:.0%})", "{:.0%} → {:.0%}", *full), \
        ("the same in the plane", "{:.0%} → {:.0%}", *flat), ("scale c", "{}", scales)
    return [{"means": means, "values": [form.format(*one).replace("-", "−") for one in zip(*map(np.ravel, values))]}
            for means, form, *values in rows]


def nearest(far, strongest, sees):
    """Share of the queries whose strongest key [L H T] is the nearest one by these distances: [L H T T] -> [L H].

    Queries that see one key only are left out.
    """
    return joint.nearness(joint.ranks(far, sees), strongest, sees)[1] / (sees.sum(axis=1) > 1).sum()


# how arrays are packed

def pack(x, leading):
    """An array as 16-bit steps between the least and the greatest value of each part along its `leading` first axes.

    -> {"shape", "low", "high", "data": base64 of little-endian uint16, "error": half of the largest step}.
    """
    rows = np.asarray(x, np.float64).reshape(int(np.prod(x.shape[:leading])), -1)
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    codes = np.rint((rows - low) / np.maximum(high - low, 1e-300) * STEPS).astype("<u2")
    return {"shape": list(x.shape), "low": low[:, 0].tolist(), "high": high[:, 0].tolist(),
            "error": float((high - low).max() / STEPS / 2), "data": base64.b64encode(codes.tobytes()).decode()}


def unpack(packed):
    """The array again, as the page reads it: low + code (high - low) / 65535."""
    low, high = (np.array(packed[end])[:, None] for end in ("low", "high"))
    codes = np.frombuffer(base64.b64decode(packed["data"]), "<u2").reshape(len(low), -1)
    return (low + codes * ((high - low) / STEPS)).reshape(packed["shape"])


# how the page is put together

def page(found):
    """The HTML text of a page that shows `data(...)`."""
    parts = {"title": escape(f"{found['model']}: {found['text'][:60]}"), "data": as_script(found),
             "licences": escape(_read("LICENCES.txt")), "style": _read("explore.css"), "d3": _read("d3.min.js"),
             "plot": _read("plot.min.js"), "state": _read("data.js"), "views": _read("views.js"),
             "program": _read("explore.js")}
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], _read("explore.html"))


def as_script(value):
    """JSON that cannot end the script element in which it stands."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def _read(file):
    return (PAGE / file).read_text(encoding="utf-8")
