"""Do single heads look at one fixed offset, token by token?

Attention of a few heads on the first tokens of a document, and on its tokens in random order.
L layers, H heads, T tokens of the document, F of them drawn, R offsets, n heads drawn.
"""

from typing import Annotated

import numpy as np

from minitx import run as run_model

from ..maths import profiles
from ..measures import conditions, heads
from ..runner import draw, options
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED
from ..texts import corpus

MOST = 6  # heads that a figure holds
COLUMNS = 3  # of them side by side
LABELLED = 20  # tokens, at most, that all get their label


def attention(
    model,
    run=UNSAVED,
    *,
    head: str = "auto",
    show: Annotated[int, options.Within(2, 64)] = 15,
    text: str = "sample",
    tokens: options.Size = 0,
    seed: options.Seed = 0,
):
    """Heat maps of the attention of a few heads.

    head: up to 6 heads to show, as L0H0,L1H2; auto: the sharpest to the left, to the right, and the
    broadest
    show: how many of the document's first tokens to show
    text: file or folder with one document or paragraph a line, - for standard input, or sample
    tokens: length of the document (0: the model's longest input)
    seed: seed of the shuffle
    """
    documents = corpus.documents(model, text, tokens=tokens)
    pairs = heads.select(head, model, documents, run)  # (layer, head)
    if len(pairs) > MOST:
        raise ValueError(f"--head names {len(pairs)} heads; a figure holds {MOST}")
    document = documents.first()[0]
    shuffled = documents.shuffled(0, document, seed)
    best = _best_offsets(model, document, pairs)
    uniform = profiles.uniform(documents.T, model.config.causal)
    result = {"offset": profiles.offsets()[best]}
    result["heads"] = np.array([heads.name(*pair) for pair in pairs])
    result["papers_heads"] = np.array([heads.papers_name(*pair) for pair in pairs])
    result["at_offset_null"] = profiles.mean_attention(uniform, documents.T)[best]
    positions = conditions.head_profiles(model, document, "positions")
    alone = profiles.mean_attention(positions, documents.T)
    result["at_offset_positions"] = np.array([alone[pair][i] for pair, i in zip(pairs, best)])
    result |= _measure(model, document, pairs, best, show, "")
    result |= _measure(model, shuffled, pairs, best, show, "_shuffled")
    return result


def _best_offsets(model, document, pairs):
    """Index [n] of the offset to which each head attends most."""
    by_offset = profiles.mean_attention(heads.head_profiles(model, document), len(document))
    return np.array([by_offset[pair].argmax() for pair in pairs])  # by_offset: [L H R]


def _measure(model, document, pairs, best, show, suffix):
    """Attention of the heads among the first tokens, and to their offsets over all of them."""
    patterns = _patterns(model, document, pairs)
    by_offset = profiles.mean_attention(profiles.profile(patterns), len(document))  # [n R]
    pieces = np.array(corpus.labels(model, document[:show]))
    return {
        f"pattern{suffix}": patterns[:, :show, :show],
        f"pieces{suffix}": pieces,
        f"at_offset{suffix}": by_offset[np.arange(len(best)), best],
    }


def _patterns(model, document, pairs):
    """Attention [n T T] of some heads."""
    layers = {layer for layer, _ in pairs}
    trace = run_model(model, document, keep=[("pattern", layer) for layer in layers])
    return np.array([trace["pattern", layer][0, head] for layer, head in pairs])


def says(r):
    """What the numbers show, in plain words."""
    return " ".join(_says_of(r, i) for i in range(len(r["heads"])))


def _says_of(r, i):
    """One head."""
    return (
        f"{r['heads'][i]} gives {r['at_offset'][i]:.2f} of its attention to the token at "
        f"{draw.offset(r['offset'][i])} (uniform attention: {r['at_offset_null'][i]:.3f}), "
        f"{r['at_offset_shuffled'][i]:.2f} when the words are shuffled, and "
        f"{r['at_offset_positions'][i]:.2f} on positions alone, with all words at zero."
    )


def answer(r):
    """Yes: a head gives half of its attention to one offset, also when the words are shuffled.

    Partly: a head gives to an offset, not 0, several times what uniform attention gives.
    """
    away = r["offset"] != 0
    sharp = away & (np.minimum(r["at_offset"], r["at_offset_shuffled"]) >= heads.SHARP)
    verdict = "no"
    if sharp.any():
        verdict = "yes"
    elif (away & (r["at_offset"] >= profiles.TIMES * r["at_offset_null"])).any():
        verdict = "partly"
    text = "heads drawn with half of their attention or more at one offset, words shuffled or not"
    most = f"uniform: {r['at_offset_null'].max():.3f} of it"
    return Answer(verdict, text, f"{sharp.sum()} of {len(sharp)}", most)


def plot(r):
    """One column for each head: on the text above, on its tokens in random order below."""
    n = len(r["heads"])
    blocks = -(-n // COLUMNS)
    figure = draw.figure(12.5, 9.6 * blocks)
    parts = figure.subfigures(blocks, 1, squeeze=False)[:, 0]
    for block, part in enumerate(parts):
        _draw_block(part, r, range(n)[block * COLUMNS : (block + 1) * COLUMNS])
    return figure


def _draw_block(figure, r, members):
    """Up to COLUMNS heads side by side."""
    grid = figure.subplots(2, COLUMNS, squeeze=False)
    darkest = np.max([r["pattern"], r["pattern_shuffled"]], axis=(0, 2, 3))  # [n]
    style = {"location": "bottom", "shrink": 0.8, "aspect": 30, "label": "attention"}
    for column, i in enumerate(members):
        _draw_head(grid[0, column], r, i, "", darkest[i])
        image = _draw_head(grid[1, column], r, i, "_shuffled", darkest[i])
        figure.colorbar(image, ax=grid[:, column], **style)
        grid[1, column].set_xlabel("key")
    for axes in grid[:, len(members) :].ravel():
        axes.set_visible(False)
    grid[0, 0].set_ylabel("query")
    grid[1, 0].set_ylabel("query (null: tokens shuffled)")


def _draw_head(axes, r, i, suffix, darkest):
    """Heat map of one head, with the offset it attends to most and how much."""
    name, papers_name = r["heads"][i], r["papers_heads"][i]
    axes.set_title(
        f"{name}, {papers_name}{suffix.replace('_', ': ')}\n"
        f"{r['at_offset' + suffix][i]:.2f} at {draw.offset(r['offset'][i])} "
        f"(uniform: {r['at_offset_null'][i]:.3f})"
    )
    return _draw_pattern(axes, r["pattern" + suffix][i], r["pieces" + suffix], darkest)


def _draw_pattern(axes, pattern, pieces, darkest):
    """Heat map of [F F], 0 to `darkest`, with the diagonal marked."""
    F = len(pattern)
    labels = [draw.label(piece) for piece in pieces]
    image = axes.imshow(pattern, cmap="Blues", vmin=0, vmax=darkest)
    axes.plot([-0.5, F - 0.5], [-0.5, F - 0.5], color=draw.VERMILION, linewidth=0.7)
    step = -(-F // LABELLED)
    axes.set_xticks(range(0, F, step), labels[::step], rotation=90)
    axes.set_yticks(range(0, F, step), labels[::step])
    axes.tick_params(length=0)
    return image


register(
    attention,
    draw=plot,
    look="A dark line beside the diagonal is attention to one fixed offset: below the diagonal to "
    "the left, above it to the right. Each head has a scale of its own, below it. In the lower row "
    "the tokens stand in random order; a line that stays does not need their order.",
    published="In roberta-base the paper's head(8,9) and head(2,3), here L7H8 and L1H2, attend "
    "sharply to the next token on one side; head(1,1) and head(7,5), here L0H0 and L6H4, lean "
    "gently to the tokens around (Yamamoto and Matsuzaki, figure 2).",
    figure="figure 2",
    says=says,
    answer=answer,
    labels={
        "at_offset": "heads",
        "at_offset_shuffled": "heads",
        "at_offset_positions": "heads",
        "offset": "heads",
    },
    numbers={
        "at_offset": "mean attention to the offset that a head attends to most, over the document",
        "at_offset_null": "what uniform attention gives to that offset",
        "at_offset_shuffled": "mean attention to that offset of the text with its tokens in random "
        "order",
        "at_offset_positions": "mean attention to that offset of the text on positions alone "
        "(word embeddings at zero)",
        "offset": "the offset, in tokens, to which a head attends most",
        "heads": "heads shown",
    },
)
