"""Do single heads attend to one fixed offset at every token?

Attention of a few heads on the first tokens of a document, and on its tokens in random order. Of an
encoder-decoder also the decoder's attention to what it has said, and to its source. And how much of
all heads' attention special tokens get, such as [CLS] and [SEP].
L layers, H heads, T tokens of the document, S of a source, F of them drawn, R offsets, n heads
drawn, s special tokens.
"""

from functools import partial
from typing import Annotated, Literal

import numpy as np

from minitx import run as run_model

from ..contract import Asks, Of, options, register
from ..drawing import Line, Part, Rows, When, draw, figures, lines, row, token_ticks
from ..maths import profiles
from ..measures import conditions, decoder_texts, heads
from ..running import passes
from ..running.stream import UNSAVED
from ..texts import corpus, formats, joined

MOST = 16  # heads of --head, as a layer of a small model has
COLUMNS = 3  # of them side by side
LABELLED = 20  # tokens, at most, that all get their label


def attention(
    model,
    run=UNSAVED,
    *,
    head: str = "auto",
    show: Annotated[int, options.Within(2, 64)] = 15,
    text: options.Text = "sample",
    tokens: options.Tokens = 0,
    side: Literal["auto", "encoder", "decoder", "cross"] = "auto",
    source: options.Said = corpus.SENTENCE,
    target: options.Target = "",
    seed: options.Seed = 0,
):
    """Heat maps of the attention of a few heads.

    head: 1 to 16 heads to show, e.g. L0H0,L1H2; auto: those with the sharpest attention to the
    left and to the right, and the one with the broadest
    show: how many of the document's first tokens to show
    side: part of an encoder-decoder to analyse: its encoder (auto), or the decoder's attention to
    its own tokens or (cross) to those of its source
    source: the text that the encoder reads, with decoder and cross in place of --text; a pair of
    texts is read in its place by any model
    target: the decoder's output for it; without one, its own greedy output
    """
    if model.encoder is not None:
        said = _said(model, source, target)
        if side == "cross":
            return _of_cross(model, said, head, show, seed)
        return _of_pass(model, said, "inputs", head, show, seed)
    if not isinstance(source, str):
        pair = joined.encoding(model, source)
        return _of_pass(model, pair, "ids", head, show, seed) | {"second": pair.second}
    documents = corpus.documents(model, text, tokens=tokens)
    pairs = heads.select(head, model, documents, run)  # (layer, head)
    _check_number(pairs)
    document = documents.first()[0]
    shuffled = documents.shuffled(0, document, seed)
    by_offset = profiles.mean_attention(heads.head_profiles(model, document), len(document))
    best = np.array([by_offset[pair].argmax() for pair in pairs])  # by_offset: [L H R]
    uniform = profiles.uniform(documents.T, model.config.causal)
    result = {"offset": profiles.offsets()[best]} | heads.named(pairs)
    result["at_offset_null"] = profiles.mean_attention(uniform, documents.T)[best]
    positions = conditions.head_profiles(model, document, "positions")
    alone = profiles.mean_attention(positions, documents.T)
    result["at_offset_positions"] = np.array([alone[pair][i] for pair, i in zip(pairs, best)])
    for suffix, ids in ("", document), ("_shuffled", shuffled):
        result |= _drawn(model, _patterns(model, ids, pairs), ids, best, show, suffix)
    return result | _to_specials(model, documents, document)


def _pairs(head, model, automatic):
    pairs = automatic if head == "auto" else heads.parse(head, model.config)
    _check_number(pairs)
    return pairs


def _check_number(pairs):
    """Raise ValueError for more heads than a figure holds."""
    if len(pairs) > MOST:
        raise ValueError(f"--head names {len(pairs)} heads; a figure has at most {MOST}")


def _drawn(model, patterns, ids, best, show, suffix):
    """Attention of heads [n T T] among the first tokens, and to their offsets over all of them."""
    result = {f"pattern{suffix}": patterns[:, :show, :show]}
    result[f"pieces{suffix}"] = np.array(corpus.labels(model, ids[:show]))
    return result | {f"at_offset{suffix}": _at_offsets(patterns, best)}


def _patterns(model, document, pairs):
    """Attention [n T T] of some heads; no others are kept."""
    kept = {}

    def watch(name, x, layer=None):
        if name == "pattern":
            kept.update({pair: x[0, pair[1]].copy() for pair in pairs if pair[0] == layer})

    def value(_):
        return np.array([kept[pair] for pair in pairs])

    return passes.value(passes.Reading(model, document, watch, value))


def _to_specials(model, documents, document):
    """What each special token [s] gets of all heads' attention, and the ordinary one beside it.

    Mean over heads and ordinary tokens, but those two; and by layer [L] what all of them get.
    """
    inner = documents.ordinary()
    first, last = inner.start, inner.stop - 1
    special = [*range(first), *range(last + 1, len(document))]
    if not special or last - first < 2:
        return {}
    beside = [first if i < first else last for i in special]
    by_layer = []

    def watch(name, x, layer=None):
        if name == "pattern":
            by_layer.append(x[0, :, first + 1 : last].mean(axis=(0, 1), dtype=np.float64))

    passes.value(passes.Reading(model, document, watch, lambda _: None))
    result = {"specials": np.array(corpus.labels(model, document[special]))}
    for end, keys in ("", special), ("_null", beside):
        attention = np.array(by_layer)[:, keys]  # [L s]
        result[f"to_special{end}"] = attention.mean(axis=0)
        result[f"special_by_layer{end}"] = attention.sum(axis=1)
    return result | {"layers": np.array([f"layer {i}" for i in range(len(by_layer))])}


def _of_pass(model, said, name, head, show, seed):
    """What tokens of a decoder, or of a pair of texts, look at of each other.

    name: the field of `said` that has them.
    """
    ids = getattr(said, name)
    T = len(ids)
    patterns = _all_patterns(model, said, "pattern")
    by_offset = profiles.mean_attention(profiles.profile(patterns), T)  # [L H R]
    pairs = _pairs(head, model, heads.auto(by_offset))
    best = [by_offset[pair].argmax() for pair in pairs]
    result = heads.named(pairs) | {"offset": profiles.offsets()[best]}
    uniform = profiles.uniform(T, model.config.causal)
    result["at_offset_null"] = profiles.mean_attention(uniform, T)[best]
    edits = conditions.CONDITIONS["positions"].edits
    alone = _of_pairs(_all_patterns(model, said, "pattern", edits), pairs)
    result["at_offset_positions"] = _at_offsets(alone, best)
    mixed = said._replace(**{name: _mixed(model, ids, seed, first=1)})
    for suffix, of_side in (("", said), ("_shuffled", mixed)):
        patterns = _of_pairs(_all_patterns(model, of_side, "pattern"), pairs)
        result |= _drawn(model, patterns, getattr(of_side, name), best, show, suffix)
    return result


def _of_cross(model, said, head, show, seed):
    """What the decoder looks at of its source, at each step."""
    patterns = _all_patterns(model, said, "cross_pattern")
    pairs = _pairs(head, model, _sharpest(patterns))
    result = heads.named(pairs) | {"strongest_null": 1 / len(said.source)}
    mixed = said._replace(source=_mixed(model.encoder, said.source, seed))
    for suffix, of_side in (("", said), ("_shuffled", mixed)):
        drawn = _of_pairs(_all_patterns(model, of_side, "cross_pattern"), pairs)
        result[f"strongest{suffix}"] = drawn.max(axis=-1).mean(axis=-1)
        result[f"pattern{suffix}"] = drawn[:, :show, :show]
        result[f"pieces{suffix}"] = np.array(decoder_texts.steps(model, of_side)[:show])
        labels = corpus.labels(model.encoder, of_side.source[:show])
        result[f"source_pieces{suffix}"] = np.array(labels)
    return result


def _said(model, source, target):
    """A source and what is said of it: the target, or the model's own greedy output."""
    for name, text in (("source", source), ("target", target or "-")):
        for part in joined.parts(text):
            formats.not_empty(part, f"--{name}")
    source = joined.encoding(model.encoder, source).ids
    if target:
        return decoder_texts.forced(model, source, target)
    return decoder_texts.greedy(model, source)


def _all_patterns(model, said, point, edits=()):
    """Attention [L H T S] of all heads."""
    if isinstance(said, joined.Joined):
        trace = run_model(model, said.ids, [point], dict(edits), **said.options)
    else:
        trace = decoder_texts.traced(model, said, [point], edits=dict(edits))
    return trace.stack(point)[:, 0]


def _of_pairs(patterns, pairs):
    """Those of some heads, of [L H T S]: [n T S]."""
    return np.array([patterns[pair] for pair in pairs])


def _at_offsets(patterns, best):
    """Mean attention [n] of heads [n T T] to an offset each."""
    by_offset = profiles.mean_attention(profiles.profile(patterns), patterns.shape[-1])
    return by_offset[np.arange(len(best)), best]


def _sharpest(patterns):
    """The two sharpest heads of [L H T S], and the broadest, by their mean largest weight."""
    weight = patterns.max(axis=-1).mean(axis=-1)  # [L H]
    order = np.argsort(-weight, axis=None, kind="stable").tolist()
    numbers = dict.fromkeys([*order[:2], order[-1]])
    return [tuple(map(int, np.unravel_index(i, weight.shape))) for i in numbers]


def _mixed(model, tokens, seed, first=0):
    """Tokens in random order, special ones and those before `first` in their places."""
    is_own = decoder_texts.ordinary(model, tokens)
    is_own[:first] = False
    mixed = tokens.copy()
    mixed[is_own] = np.random.default_rng(seed).permutation(tokens[is_own])
    return mixed


def at_one(r):
    """Attention [n] to one offset but 0, words shuffled or not, or to one token of a source."""
    if "strongest" in r:
        return r["strongest"]
    return np.minimum(r["at_offset"], r["at_offset_shuffled"]) * (r["offset"] != 0)


def uniform(r):
    """What uniform attention gives to it [n]."""
    name = "strongest_null" if "strongest" in r else "at_offset_null"
    return np.broadcast_to(r[name], r["heads"].shape)


def best(r):
    """The number of the head that most exceeds uniform attention."""
    return (at_one(r) - uniform(r)).argmax()


def n_sharp(r):
    """Heads with half of their attention or more there."""
    return (at_one(r) >= heads.SHARP).sum()


OF_SPECIALS = row(
    lines(
        Line("special_by_layer", "special tokens"),
        Line("special_by_layer_null", "null: the ordinary tokens beside them", "--", draw.GREY),
        xticks="layers",
        ylabel="attention of all heads to them",
        ylim=(0, None),
    ),
    height=3.2,
)


def _rows_of_heads(r):
    """Up to COLUMNS heads side by side on the text, and below on its tokens in random order."""
    blocks = np.split(np.arange(len(r["heads"])), range(COLUMNS, len(r["heads"]), COLUMNS))
    paints = [partial(_draw_row, m=m, suffix=end) for m in blocks for end in ("", "_shuffled")]
    return [Part(paint, height=5) for paint in paints]


def _draw_row(figure, r, m, suffix):
    """The heads with the numbers m, each with a scale of its own."""
    grid = figure.subplots(1, COLUMNS, squeeze=False)[0]
    darkest = np.max([r["pattern"], r["pattern_shuffled"]], axis=(0, 2, 3))  # [n]
    style = {"location": "bottom", "shrink": 0.8, "aspect": 30, "label": "attention"}
    for axes, i in zip(grid, m):
        image = _draw_head(axes, r, i, suffix, darkest[i])
        figure.colorbar(image, ax=axes, **style).ax.locator_params("x", nbins=4)
        axes.set_xlabel("key")
    for axes in grid[len(m) :]:
        axes.set_visible(False)
    grid[0].set_ylabel("query (null: tokens shuffled)" if suffix else "query")


def _draw_head(axes, r, i, suffix, darkest):
    """Heat map of one head, with the offset it attends to most and how much."""
    name, papers_name = r["heads"][i], r["papers_heads"][i]
    if "offset" in r:
        weight = f"{r['at_offset' + suffix][i]:.2g} at {draw.offset(r['offset'][i])}"
        null = r["at_offset_null"][i]
    else:
        weight, null = f"{r['strongest' + suffix][i]:.2g} at the strongest", r["strongest_null"]
    heading = f"{name}, {papers_name}{suffix.replace('_', ': ')}"
    axes.set_title(f"{heading}\n{weight} (uniform: {null:.2g})")
    pieces = r["pieces" + suffix]
    keys = r.get("source_pieces" + suffix, pieces)
    image = _draw_pattern(axes, r["pattern" + suffix][i], pieces, keys, darkest)
    draw.border(axes, None if suffix else r.get("second"), "xy")
    return image


def _draw_pattern(axes, pattern, queries, keys, darkest):
    """Heat map of [F F], 0 to `darkest`; where queries are the keys the diagonal is marked."""
    F = len(pattern)
    image = axes.imshow(pattern, cmap="Blues", vmin=0, vmax=darkest)
    if queries is keys:
        axes.plot([-0.5, F - 0.5], [-0.5, F - 0.5], color=draw.VERMILION, linewidth=0.7)
    token_ticks(axes.set_xticks, keys, LABELLED, rotation=90)
    token_ticks(axes.set_yticks, queries, LABELLED)
    axes.tick_params(length=0)
    return image


register(
    attention,
    look="A dark line beside the diagonal is attention to one fixed offset: below the diagonal to "
    "the left, above it to the right. Each head has a scale of its own, below it. In the second "
    "figure the tokens stand in random order; a line that stays does not need their order. The "
    "last one has what special tokens get, such as [CLS] and [SEP]: where its line stands clear of "
    "the grey one, heads attend to a token that is no word.",
    published="In roberta-base the paper's head(8,9) and head(2,3), here L7H8 and L1H2, attend "
    "sharply to the next token on one side; head(1,1) and head(7,5), here L0H0 and L6H4, lean "
    "gently to the tokens around (Yamamoto and Matsuzaki, figure 2).",
    figure="figure 2",
    sides=("encoder", "decoder", "cross"),
    numbers="""
        at_offset by heads: mean attention to the offset that a head attends to most, over the
            document
            null: uniform attention at that offset
        at_offset_[shuffled|positions] by heads: mean attention to that offset on [the text with its
            tokens in random order|positions alone (word embeddings at zero)]
            no null: it is beside the attention on the text, and what uniform attention gives
        fact offset by heads: the offset, in tokens, to which a head attends most
        strongest by heads: mean attention of cross-attention to the strongest source token of a
            step
            null: what even attention gives to each
        strongest_shuffled by heads: mean attention of cross-attention to the strongest source
            token, with the source's tokens in random order
            no null: it is beside the attention on the source, and what even attention gives
        to_special by specials: mean attention of all heads to a special token, from ordinary ones
            null: mean attention of all heads to the ordinary token beside it
        special_by_layer by layers: attention of a layer's heads, on average, to all special tokens
            null: attention of a layer's heads, on average, to the ordinary tokens beside them
        fact heads: heads shown
    """,
    answer=Asks(
        [
            "heads shown that give at least half of their attention to one ",
            When(
                "strongest",
                "source token, step by step",
                "offset, on the text and with words shuffled",
            ),
        ],
        value="{n_sharp} of {heads.size}",
        chance="a weight of {uniform.max:.3f} by uniform attention",
        rule=Of("at_one[best]", null="uniform[best]", enough=heads.SHARP),
    ),
    says=[
        When(
            "at_offset",
            Rows(
                "{heads} gives {at_offset:.2f} of its attention to the token at {offset:offset} "
                "(uniform attention: {at_offset_null:.3f}), {at_offset_shuffled:.2f} when the "
                "words are shuffled, and {at_offset_positions:.2f} on positions alone, with all "
                "words at zero.",
                join=" ",
            ),
            Rows(
                "{heads} gives {strongest:.2f} of its attention to the strongest source token of a "
                "step (even attention: {strongest_null:.3f}), and {strongest_shuffled:.2f} where "
                "the source's tokens are shuffled.",
                join=" ",
            ),
        ),
        When(
            "specials",
            [
                " Of the attention of all heads, from ordinary tokens, ",
                Rows("{specials} gets {to_special:.1%} ({to_special_null:.1%})", join=", "),
                "; in parentheses the ordinary token beside it.",
            ],
        ),
    ],
    draw=figures(_rows_of_heads, lambda r: [OF_SPECIALS] if "specials" in r else []),
    shares_passes=True,
)
