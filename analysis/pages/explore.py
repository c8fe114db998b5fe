"""One page to explore every head of a model on one text: a single, self-contained HTML file.

The data, the style, the program (page/explore.*) and a charting library (page/SOURCES.md) all stand
in it. A page has one run, or two side by side: two texts, two models, or as is and changed. L
layers, H heads, T queries and S keys (tokens, or words), d width of a head, D model width, C
columns, R offsets. Of an encoder-decoder the page has three parts. Queries and keys come in two
states, as they are in the model and normalised (joint.py): an axis "state" of length 2.
"""

import bisect
import json
import re
import weakref
from html import escape
from pathlib import Path
from textwrap import shorten

import numpy as np

from minitx import head_weights
from minitx.images import n_tokens, names
from minitx.inputs import TooLong
from minitx.loading.labels import predicted

from ..contract import registry
from ..machine import files, language
from ..machine.language import label, translated
from ..maths import factors, joint, joint_cosine, profiles
from ..measures import decoder_texts, inputs, joint_fit
from ..texts import formats as of_texts
from ..texts import joined
from ..texts import words as of_words
from . import assets, attention, of_pictures, pushes, tokens, writers
from .packing import TINY, pack
from .writers import visible

MOST = 512  # tokens: more can be shown by scrolling, but not looked through
MOST_WEIGHTS = 8_000_000  # of all heads: 22 MB of page, 235 tokens on 12 x 12 heads
# columns of Q = X U_Q and K = X U_K that are shown, the heaviest
COLUMNS = 4
# the distance that is drawn, and what it is correlated with: joint_cosine knows these
DISTANCE, PRODUCTS = joint_fit.How().distance, joint_fit.How().products
SHORT = 300  # letters of a text that a page's program says
PLACES = re.compile(r"\{\d\}|#")
KEY = re.compile(r"\b(\w+):")  # of an object: it may be shown
NAMED = 40  # letters of a text that name a run
RUNS = {"as is", "changed", "by chance"}  # names of runs of a live page, which it translates


def write(model, name, text, path, words=False, target=None, beside=(), attribution=False):
    """Write the page of a text to the file `path`; return its size in bytes.

    text: a text, or a tuple of two that the model reads together.
    name: what the model is called on the page. words: whole words instead of pieces. Of an
    encoder-decoder the text is the source; target: what is said of it, by default the model's own
    greedy output. beside: (model, name, text) of a second run. attribution: what each token and
    each head contributes to a prediction. Raises ValueError, before any work, for a partial
    checkpoint, fewer than two tokens of the text's own, or more than the page shows.
    """
    wanted = [(model, name, text), *([beside] if beside else [])]
    content = page(*runs(wanted, words, target, attribution)).encode()
    files.write(Path(path), content)
    return len(content)


def runs(wanted, words=False, target=None, attribution=False):
    """The runs of a page, for [(model, name, text), ...]; raises ValueError as `write` does.

    Each has who wrote its guesses, and the kinds of its heads.
    """
    check_read(wanted, words)
    tokens = [readable(model, text, target) for model, _, text in wanted]
    if attribution:
        for model, _, _ in wanted:
            pushes.check(model)
    computed = []
    for (model, name, text), ids in zip(wanted, tokens):
        run = {"name": "as is"} | with_writers(data(model, name, text, ids, words), model, ids)
        if attribution:
            text_read = joined.of(ids)
            run["outputs"]["pushes"] = pushes.of_text(model, text_read.ids, text_read.types)
        computed.append(run)
    return named(computed)


def with_writers(run, model, said, **options):
    """A run with who wrote its guesses, and with the kinds of the model's heads.

    said: what `readable` gave. options: further keywords of `minitx.run`.
    """
    run = run | {"kinds": writers.of_kinds(model)}
    if model.encoder is None:
        text = joined.of(said)
        written = writers.of_text(model, text.ids, **text.options, **options)
        return run | {"outputs": run["outputs"] | {"written": written}}
    written = writers.of_text(model, said.inputs, source=said.source, **options)
    decoder = run["parts"]["decoder"]
    outputs = decoder["outputs"] | {"written": written}
    return run | {"parts": run["parts"] | {"decoder": decoder | {"outputs": outputs}}}


def named(computed):
    """Two runs, each named by what tells it from the other: its text, its model, or both."""
    if len(computed) < 2:
        return computed
    differs = [key for key in ("model", "text") if computed[0][key] != computed[1][key]]
    names = [
        ": ".join(shorten(run[key], NAMED, placeholder=" …") for key in differs or ["model"])
        for run in computed
    ]
    if names[0] == names[1]:
        names = [f"{name} ({n})" for n, name in enumerate(names, 1)]
    return [run | {"name": name} for run, name in zip(computed, names)]


# what can be shown


def check_read(wanted, words):
    """Raise ValueError for whole words of pictures, or for texts beside pictures."""
    of_images = [name for model, name, _ in wanted if model.config.picture is not None]
    not_of_images = [name for model, name, _ in wanted if model.config.picture is None]
    if of_images and words:
        raise ValueError(f"words need a text; {of_images[0]} reads pictures")
    if of_images and not_of_images:
        said = f"{of_images[0]} reads pictures, {not_of_images[0]} reads texts"
        raise ValueError(f"{said}; wanted two models that read the same")


def readable(model, text, target=None):
    """The tokens [T] of a text, of a pair a Joined; ValueError if there is no page.

    Of an encoder-decoder a Spoken.
    Of a model of pictures the tokens [T V] of the picture that the text names.
    """
    if model.missing:
        raise registry.NotApplicable(
            f"explore needs the whole model; {len(model.missing)} tensors are missing, "
            f"{model.missing[0]} among them"
        )
    inputs.check_uncapped(model)
    if model.encoder is None:
        if target is not None:
            kind = model.config.model_type
            raise ValueError(
                f"target is {target!r:.80}, but this model ({kind}) has a single stack"
            )
        return _readable(model, text)
    source = joined.of(_readable(model.encoder, text))
    if target is None:
        said = decoder_texts.greedy(model, source.ids)
    else:
        _readable(model, target)
        said = decoder_texts.forced(model, source.ids, target)
    return said._replace(sequences=source.sequences)


def _readable(model, text):
    """The tokens [T] of a text, or [T V] of a picture; of a pair a Joined.

    Raises ValueError for too few or too many.
    """
    if model.config.picture is not None:
        if not isinstance(text, str):
            raise ValueError("a second text needs a model that reads texts; this reads pictures")
        _check_length(model, n_tokens(model.config.picture), "picture")
        return of_pictures.tokens_of(model, text)
    for part in joined.parts(text):
        of_texts.valid(part, "the text")
    n, n_own = joined.pieces_of(model, text)
    if n_own < 2:
        raise ValueError(
            f"the text {text!r:.80} has {n_own} {'token' if n_own == 1 else 'tokens'}, "
            "not counting special ones; wanted 2 or more"
        )
    _check_length(model, n, "text")
    return joined.encode(model, text)


def _check_length(model, n, what):
    """Raise TooLong for more tokens than the page shows or the model reads."""
    cfg = model.config
    most, reader = min((most_tokens(cfg), "the page shows"), (cfg.n_ctx, "this model reads"))
    if n > most:
        raise TooLong(f"the {what} has {n} tokens, special ones included; {reader} at most {most}")


def cut(model, text):
    """The longest beginning of a text that the page shows, up to the end of a word if it has one.

    >>> import minitx
    >>> text = cut(minitx.load("tiny-bart"), "a dog and a cat " * 10)
    >>> len(text), text[-11:]
    (59, 'a dog and a')
    """
    reader = model.encoder or model
    most = min(most_tokens(reader.config), reader.config.n_ctx)

    def n_tokens(n):
        return joined.pieces_of(reader, text[:n])[0]

    n = bisect.bisect_right(range(len(text)), most, key=n_tokens) - 1
    return text[: n + 1].rpartition(" ")[0] or text[:n]


def most_tokens(cfg):
    """Tokens that the page shows of a model of this size: MOST, or fewer for many heads.

    >>> import minitx
    >>> most_tokens(minitx.load("tiny-roberta").config)
    512
    """
    heads = cfg.n_layers * cfg.n_heads
    return min(MOST, int((MOST_WEIGHTS / heads) ** 0.5))


# what is computed


def data(model, name, text, tokens, words=False, lens=True, **options):
    """One run: all that the page shows of what `readable` gives, ready for JSON.

    Of an encoder-decoder every part is below "parts". lens: guesses by layer too, which take as
    long as the last layer's for each layer. options: further keywords of `minitx.run` for a run
    that is changed: edits, mask, positions.
    """
    content = {"model": str(name), "text": joined.shown(text), "sizes": sizes(model)}
    if model.config.picture is not None:
        content["picture"] = of_pictures.facts(model, tokens)
    if model.encoder is None:
        return content | part(attention.of_text(model, tokens, lens, **options), words)
    parts = attention.of_parts(model, tokens, lens, **options)
    return content | {"parts": {name: part(look, words) for name, look in parts.items()}}


def sizes(model):
    """What the overview says of a model: {name of Config: value}."""
    cfg = model.config
    names = "model_type", "d_model", "d_mlp", "d_head", "n_vocab", "n_ctx", "pre_norm", "act"
    task = {"task_head": cfg.task_head, "mechanisms": cfg.mechanisms}
    task |= {"scaled": cfg.scale_attn, "by_distance": cfg.n_buckets > 0}
    return {name: getattr(cfg, name) for name in (*names, "gated", "rms_norm")} | task


def part(look, words=False):
    """What the page shows of one part of a model."""
    cfg = look.model.config
    of_query, of_keys = look.seconds
    given = words if look.words is None or not words else look.words
    word, labels = _labelled(look.model, look.queries, given, of_query)
    reader = look.model.encoder if look.is_cross else look.model
    of_key, key_labels = _labelled(reader, look.keys, given, of_keys)
    arrays, facts, moved = measured(look, word, of_key)
    content = {"labels": visible(labels)}
    if look.is_cross:
        content["keys"] = visible(key_labels)
    if of_keys is not None:  # only of two texts
        begins = None if of_query is None else int(word[of_query])
        content["second"] = {"query": begins, "key": int(of_key[of_keys])}
    content |= {"layers": cfg.n_layers, "heads": cfg.n_heads, "width": cfg.d_head}
    content |= {
        "causal": cfg.causal and not look.is_cross,
        "unit": translated("word" if words else "token"),
    }
    content |= {"distance": DISTANCE, "moved": moved, "facts": facts}
    if look.has_offsets:
        content["uniform"] = uniform_profile(merged_sees(look.sees, word, of_key)).tolist()
    if look.outputs is not None:
        content["outputs"] = of_outputs(look, word)
    content["arrays"] = {key: pack(*packed) for key, packed in arrays.items()}
    return content


def of_outputs(look, word):
    """What the page shows of a stack's Outputs, of tokens where heads may be of words.

    Tokens are numbers in "pieces".
    """
    outputs, tokenizer = look.outputs, look.model.tokenizer
    _, labels = _labelled(look.model, look.queries)
    content = {"labels": visible(labels), "word": word.tolist()}
    content["stream"] = pack(outputs.stream, 1)
    content["writes"] = {name: pack(x, 1) for name, x in outputs.writes.items()}
    content["rows"] = {name: x.round(4).tolist() for name, x in outputs.rows.items()}
    if outputs.classes is not None:
        content["classes"] = outputs.classes.round(5).tolist()
        content["names"] = [*look.model.config.labels] or None
    if outputs.guesses is None:
        return content
    guesses = {"guesses": outputs.guesses, "lens": outputs.lens}
    guesses = {name: given for name, given in guesses.items() if given is not None}
    ids = np.unique(np.concatenate([given.ids.ravel() for given in guesses.values()]))
    content["pieces"] = visible(predicted(look.model, ids))
    for name, given in guesses.items():
        numbers = np.searchsorted(ids, given.ids)
        content[name] = {"pieces": numbers.ravel().tolist(), "p": pack(given.probabilities, 0)}
    own = outputs.own
    labels = visible(tokenizer.pieces(np.maximum(own, 0)))
    content["own"] = [None if token < 0 else label for token, label in zip(own, labels)]
    content["actual"] = [None if np.isnan(p) else round(p, 7) for p in outputs.actual.tolist()]
    return content


def _labelled(model, tokens, words=False, second=None):
    """The number of the word that each token belongs to [T], and the labels of the words.

    words: whether there are words; else every token counts as one of its own; or their numbers [T].
    second: where a second text begins.
    """
    if model.config.picture is not None:
        return np.arange(len(tokens)), names(model.config.picture)
    tokenizer = model.tokenizer
    pieces = tokenizer.pieces(tokens)
    if words is False:
        return np.arange(len(tokens)), pieces
    word = of_words.numbers(tokens, tokenizer.decode, second) if words is True else words
    return word, of_words.names(tokens, word, tokenizer.decode, pieces)


def uniform_profile(sees):
    """Relative-position profile of attention with equal weight on all keys a query sees: [R]."""
    T = len(sees)
    equal = sees / np.maximum(sees.sum(axis=1, keepdims=True), 1)
    return profiles.mean_attention(profiles.profile(equal, reach(T)), T)


def reach(T):
    """Farthest offset of the relative-position profile of T tokens."""
    return min(T - 1, profiles.REACH)


def measured(look, word, of_key):
    """Arrays and figures of all heads, and the largest change of attention by normalising.

    Each array comes with the number of its first axes along which it is packed apart, and its bits.
    word, of_key: the number of the word that each query, each key belongs to, or of the token
    itself.
    """
    pattern, *before = merged(look.pattern, look.q, look.k, word, of_key)
    sees = merged_sees(look.sees, word, of_key)
    moves, correlations = normalising(*before, sees)
    states = [before, joint.normalised(*before, **moves)]
    _, X_q, X_k = merged(look.pattern[:, 0], look.X_q, look.X_k, word, of_key)
    plane, share = planes(states)
    columns, weight = waves(look, X_q, X_k)
    # places in a figure of 600 points need no 16 bits
    arrays = {"pattern": (pattern, 2), "plane": (plane, 3, 12), "columns": (columns, 2, 12)}
    if look.has_offsets:
        T = pattern.shape[-1]
        profile = profiles.mean_attention(profiles.profile(pattern, reach(T)), T)
        arrays["profile"] = (profile, 2)
    lengths = np.linalg.norm(look.v, axis=-1)[..., None]  # [L H S 1]
    _, total, lengths = merged(look.pattern, look.total[..., None], lengths, word, of_key)
    arrays |= {"values": (lengths[..., 0], 1, 12), "total": (total[..., 0], 1)}
    arrays |= {"share": (share, 0), "weight": (weight, 0)}
    facts = figures(pattern, states, plane, correlations, moves["c"], sees)
    return arrays, facts, change(look, moves)


def merged(pattern, q, k, word, of_key):
    """Attention, queries and keys of words; as they are where every token is a word."""
    if max(len(word) - word[-1], len(of_key) - of_key[-1]) == 1:
        return pattern, q, k
    return of_words.merged(pattern, q, k, word, of_key)


def merged_sees(sees, word, of_key):
    """Which words a word sees, where tokens see [T S]: those of which it sees a piece."""
    shape = word[-1] + 1, of_key[-1] + 1
    not_of_images = np.zeros(shape, bool)
    queries, keys = np.nonzero(sees)
    not_of_images[word[queries], of_key[keys]] = True
    return not_of_images


def normalising(q, k, sees):
    """How queries and keys [L H T d] are normalised, each head by itself, and what it achieves.

    Returns {"c": [L H], "a": [L H d]} and the correlations before and after [2 L H].
    """
    means = q.mean(axis=-2), k.mean(axis=-2)
    sums = joint_cosine.scan(q, k, means, sees * 1.0, sees)
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
    U_Q, weight, U_K = (np.stack(x) for x in zip(*(axes(look.model, w) for w in look.weights)))
    columns = [X[:, None] @ U for X, U in ((X_q, U_Q), (X_k, U_K))]
    return np.concatenate(columns, axis=-2), weight


_AXES = {}  # id of a layer's W_Q: weak references to its W_Q and W_K, and their `axes`


def axes(model, w):
    """The heaviest axes of each head of a layer: U_Q [H D C], shares of W_A [H C], U_K [H D C].

    They are computed once for a layer: a page that follows a reader's typing asks again and again.
    """
    known = _AXES.get(id(w.W_Q))
    if known and known[0]() is w.W_Q and known[1]() is w.W_K:
        return known[2]
    sides = (head_weights.matrices(w, model.config, letter) for letter in "QK")
    U_Q, S, U_K = factors.svd(*(W.astype(np.float64) for W in sides))
    squares = S * S
    weight = squares / np.maximum(squares.sum(axis=-1, keepdims=True), TINY)
    computed = U_Q[..., :COLUMNS], weight[:, :COLUMNS], U_K[..., :COLUMNS]
    number = id(w.W_Q)
    of_query = weakref.ref(w.W_Q, lambda _: _AXES.pop(number, None))
    _AXES[number] = of_query, weakref.ref(w.W_K), computed
    return computed


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
    return {
        "means": label(means),
        "values": [label(form.format(*x)).replace("-", "−") for x in heads],
    }


def nearest(distances, strongest, sees):
    """Share of the queries whose strongest key is the nearest one: [L H T S], [L H T] -> [L H].

    Keys at the same distance are none of them the nearest. Queries that see one key only are left
    out.
    """
    own = np.take_along_axis(distances, strongest[..., None], -1)
    is_nearest = ((distances <= own) & sees).sum(axis=-1) == 1
    several = sees.sum(axis=1) > 1
    return is_nearest[..., several].sum(axis=-1) / max(several.sum(), 1)


# how the page is put together

ASSETS = {"charts": "charts.min.js"}  # gap in explore.html: the file that fills it as it stands
# the page's program, in the order in which it is read
PROGRAM = (
    "language.js",
    "dom.js",
    "data.js",
    "align.js",
    "colours.js",
    "attention.js",
    "draw.js",
    "picture.js",
    "steps.js",
    "overview.js",
    "kinds.js",
    "heads.js",
    "joint.js",
    "lines.js",
    "layer.js",
    "columns.js",
    "neurons.js",
    "matrix.js",
    "offsets.js",
    "grid-offsets.js",
    "values.js",
    "outputs.js",
    "guesses.js",
    "lens.js",
    "stream.js",
    "pushes.js",
    "writers.js",
    "flow.js",
    "patched.js",
    "views.js",
    "address.js",
    "explore.js",
    "walk.js",
    "start.js",
)
STYLES = ("explore.css",)
# nothing is loaded, and nothing leaves the page
POLICY = {
    "default-src": "'none'",
    "script-src": "'unsafe-inline'",
    "style-src": "'unsafe-inline'",
    "img-src": "data:",
}


def page(
    *runs, live=None, view="", program=(), styles=(), body="", policy=None, says="", patched=None
):
    """The HTML text of a page that shows one run, or two side by side; a run is `data(...)`.

    live: what a server says of itself, None for a page that stands alone. view: what the page
    opens with, as its address has it. program, styles: names of further files in page/. body: HTML
    above the text. policy: changes of POLICY. says: what is changed in the second run. patched:
    what a patch with another text has shown, as patching.saved gives it.
    """
    content = {"runs": [{"name": "as is"} | run for run in runs], "live": live, "view": view}
    content |= {"says": says, "patched": patched}
    parts = {name: assets.text(file) for name, file in ASSETS.items()}
    text = runs[0]["text"]
    parts["title"] = escape(f"{runs[0]['model']}: {text[:60]}{'…' if len(text) > 60 else ''}")
    parts["style"] = style(*STYLES, *styles)
    parts["body"] = language.in_html(body)
    parts["data"] = as_script(content)
    parts["licences"] = escape(assets.text("LICENCES.txt"))
    parts["program"] = scripts(*own_program(live or patched), *program)
    return composed("explore.html", POLICY | (policy or {}), **parts)


def style(*files):
    """The style of a page: the tokens, and these files of page/."""
    return "\n".join([tokens.css(), *map(assets.text, files)])


def scripts(*files):
    """The program of a page as elements: the tokens, and these files of page/."""
    programs = tokens.script(), *assets.scripts(*files)
    return "\n".join(f"<script>{text}</script>" for text in programs)


def composed(file, policy=POLICY, **parts):
    """A page: a file of page/ with its parts, and what all pages have, in the gaps {{NAME}}."""
    parts |= {"policy": rules(policy), "language": language.current()}
    parts["translations"] = as_script(translations(parts["program"]))
    template = language.in_html(assets.text(file))
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], template)


def rules(policy):
    """A policy as a page or a server states it."""
    return "; ".join(f"{what} {where}" for what, where in policy.items())


def own_program(has_patches=False):
    """The files of a page's program; those that draw patches only where there can be some."""
    return [file for file in PROGRAM if has_patches or file != "patched.js"]


def translations(program):
    """{text: translation} of what a program says; {} in English.

    Those with fields, {0}, and with numbers, #, are all taken: a program does not hold their keys.
    """
    catalogue = language.catalogue(language.current())
    texts = [text for text in catalogue.known if len(text) < SHORT]
    keys = RUNS.union(KEY.findall(program))
    said = [x for x in texts if x in keys or _is_said(x, program) or PLACES.search(x)]
    return {text: catalogue.translation(text) for text in said}


def _is_said(text, program):
    """Whether a program holds a text as "..." or `...`."""
    return f'"{text}"' in program or f"`{text}`" in program


def as_script(value):
    """JSON that cannot end the script element in which it stands."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
