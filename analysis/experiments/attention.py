"""Attention of single heads on the first tokens of a document, token by token.

L layers, H heads, T tokens of the document, F of them drawn, R offsets. Order: the picture, the experiment,
its choice of heads.
"""

import numpy as np

from minitx import run

from .. import corpus, draw, profiles as maths, stream
from ..registry import experiment

CHOSEN = 4


def plot(r):
    """One column for each head: on the text above, on the same tokens in random order below."""
    n = len(r["heads"])
    figure = draw.figure(max(2.75 * n + 0.6, 6), 6.4)
    grid = figure.subplots(2, n, squeeze=False)
    for (row, i), axes in np.ndenumerate(grid):
        suffix = ("", "_shuffled")[row]
        image = _heat(axes, r["pattern" + suffix][i], r["pieces" + suffix])
        axes.set_title(f"{r['heads'][i]}, {_papers_name(r['heads'][i])}{suffix.replace('_', ': ')}\n"
                       f"{r['at_offset' + suffix][i]:.2f} at {draw.offset(r['offset'][i])} "
                       f"(uniform: {r['at_offset_null'][i]:.3f})")
    grid[0, 0].set_ylabel("query")
    grid[1, 0].set_ylabel("query (null: tokens shuffled)")
    for axes in grid[1]:
        axes.set_xlabel("key")
    figure.colorbar(image, ax=grid, shrink=0.5, label="attention")
    return figure


def _papers_name(name):
    """L0H0 -> head(1,1): the paper counts from 1."""
    layer, head = map(int, name[1:].split("H"))
    return f"head({layer + 1},{head + 1})"


def _heat(axes, pattern, pieces):
    """Heat map of [F F] with the diagonal marked."""
    F, labels = len(pattern), [draw.label(piece) for piece in pieces]
    image = axes.imshow(pattern, cmap="Blues", vmin=0, vmax=1)
    axes.plot([-0.5, F - 0.5], [-0.5, F - 0.5], color=draw.VERMILION, linewidth=0.7)
    axes.set_xticks(range(F), labels, rotation=90, fontsize=6.5)
    axes.set_yticks(range(F), labels, fontsize=6.5)
    axes.tick_params(length=0)
    return image


@experiment(
    asks="What does a position head look like, token by token?",
    draw=plot,
    look="A dark line beside the diagonal is attention to one fixed offset: below the diagonal to the "
         "left, above it to the right. In the lower row the same tokens stand in random order; a line that "
         "stays does not need the text.",
    published="In roberta-base the paper's head(8,9) and head(2,3), here L7H8 and L1H2, attend sharply to "
              "the next token on one side; head(1,1) and head(7,5), here L0H0 and L6H4, lean gently to the "
              "tokens around (Yamamoto and Matsuzaki, figure 2).",
    numbers={
        "heads": "heads shown",
        "offset": "the offset, in tokens, to which each attends most",
        "at_offset": "mean attention to it over the whole document",
        "at_offset_null": "the same under uniform attention",
        "at_offset_shuffled": "mean attention to it on the same tokens in random order"})
def attention(model, *, head: str = "", tokens: int = 15, text: str = "sample", seed: int = 0):
    """Heat maps of the attention of a few heads.

    head: heads to show, as L0H0,L1H2 (default: the sharpest head of each offset, four at most)
    tokens: how many of the document's first tokens to show
    text: text file, one paragraph a line
    seed: seed of the shuffle
    """
    corpus.within("tokens", tokens, 2, 64)
    chosen = corpus.heads(head, model.config)
    document = corpus.documents(model, text, 1)
    T = document.shape[1]
    by_offset = maths.mean_attention(stream.head_profiles(model, document), T)  # [L H R]
    chosen = chosen or sharpest(by_offset)
    best = np.array([by_offset[pair].argmax() for pair in chosen])
    found = {"heads": np.array([corpus.head_name(*pair) for pair in chosen]), "offset": maths.offsets()[best],
             "at_offset_null": maths.mean_attention(maths.uniform(T, model.config.causal), T)[best]}
    for suffix, ids in (("", document), ("_shuffled", corpus.shuffled(model, document, seed))):
        patterns = _patterns(model, ids, chosen)
        attended = maths.mean_attention(maths.profile(patterns), T)
        found |= {"pattern" + suffix: patterns[:, :tokens, :tokens],
                  "pieces" + suffix: np.array(model.tokenizer.pieces(ids[0, :tokens])),
                  "at_offset" + suffix: attended[np.arange(len(best)), best]}
    return found


def sharpest(by_offset):
    """The sharpest head of each offset, the CHOSEN sharpest of these: [L H R] -> [(layer, head)]."""
    by_offset = np.where(maths.offsets() == 0, 0, by_offset)  # a position head looks elsewhere
    best, most = by_offset.argmax(axis=2), by_offset.max(axis=2)
    heads = sorted(np.ndindex(best.shape), key=lambda pair: -most[pair])
    first = {}
    for pair in heads:
        first.setdefault(best[pair], pair)
    return list(first.values())[:CHOSEN]


def _patterns(model, ids, chosen):
    """Attention [n T T] of the chosen heads."""
    trace = run(model, ids, keep=[("pattern", layer) for layer in {layer for layer, _ in chosen}])
    return np.array([trace["pattern", layer][0, head] for layer, head in chosen])
