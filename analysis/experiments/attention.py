"""Attention of single heads on the first tokens of a document, token by token.

L layers, H heads, T tokens of the document, F of them drawn, R offsets. Order: the picture, the experiment,
its choice of heads.
"""

import numpy as np

from minitx import run

from .. import corpus, draw, heads, profiles as maths, stream
from ..registry import experiment

MOST = 6  # heads that a figure holds


def plot(r):
    """One column for each head: on the text above, on the same tokens in random order below."""
    n = len(r["heads"])
    figure = draw.figure(max(2.75 * n + 0.6, 6), 6.4)
    grid = figure.subplots(2, n, squeeze=False)
    darkest = np.max([r["pattern"], r["pattern_shuffled"]], axis=(0, 2, 3))  # [n]
    for (row, i), axes in np.ndenumerate(grid):
        suffix = ("", "_shuffled")[row]
        image = _heat(axes, r["pattern" + suffix][i], r["pieces" + suffix], darkest[i])
        if row:
            figure.colorbar(image, ax=grid[:, i], location="bottom", shrink=0.8, aspect=30, label="attention")
        axes.set_title(f"{r['heads'][i]}, {r['papers_heads'][i]}{suffix.replace('_', ': ')}\n"
                       f"{r['at_offset' + suffix][i]:.2f} at {draw.offset(r['offset'][i])} "
                       f"(uniform: {r['at_offset_null'][i]:.3f})")
    grid[0, 0].set_ylabel("query")
    grid[1, 0].set_ylabel("query (null: tokens shuffled)")
    for axes in grid[1]:
        axes.set_xlabel("key")
    return figure


def _heat(axes, pattern, pieces, darkest):
    """Heat map of [F F], 0 to `darkest`, with the diagonal marked."""
    F, labels = len(pattern), [draw.label(piece) for piece in pieces]
    image = axes.imshow(pattern, cmap="Blues", vmin=0, vmax=darkest)
    axes.plot([-0.5, F - 0.5], [-0.5, F - 0.5], color=draw.VERMILION, linewidth=0.7)
    axes.set_xticks(range(F), labels, rotation=90, fontsize=6.5)
    axes.set_yticks(range(F), labels, fontsize=6.5)
    axes.tick_params(length=0)
    return image


def says(r):
    """What the numbers show, in plain words."""
    rows = zip(r["heads"], r["offset"], r["at_offset"], r["at_offset_null"], r["at_offset_shuffled"])
    return " ".join(f"{head} gives {attended:.2f} of its attention to the token at {draw.offset(t)} (uniform "
                    f"attention: {null:.3f}), and {shuffled:.2f} when the words are shuffled."
                    for head, t, attended, null, shuffled in rows)


@experiment(
    asks="What does a position head look like, token by token?",
    draw=plot,
    look="A dark line beside the diagonal is attention to one fixed offset: below the diagonal to the "
         "left, above it to the right. Each head has a scale of its own, below it. In the lower row the same "
         "tokens stand in random order; a line that "
         "stays does not need the text.",
    published="In roberta-base the paper's head(8,9) and head(2,3), here L7H8 and L1H2, attend sharply to "
              "the next token on one side; head(1,1) and head(7,5), here L0H0 and L6H4, lean gently to the "
              "tokens around (Yamamoto and Matsuzaki, figure 2).",
    figure="figure 2",
    says=says,
    numbers={
        "heads": "heads shown",
        "offset": "the offset, in tokens, to which each attends most",
        "at_offset": "mean attention to it over the whole document",
        "at_offset_null": "the same under uniform attention",
        "at_offset_shuffled": "mean attention to it on the same tokens in random order"})
def attention(model, *, head: str = "auto", show: int = 15, text: str = "sample", tokens: int = 0, seed: int = 0):
    """Heat maps of the attention of a few heads.

    head: up to 6 heads to show, as L0H0,L1H2; auto: the sharpest to the left, to the right, and the broadest
    show: how many of the document's first tokens to show
    text: file or folder with one document or paragraph a line, - for standard input, or sample
    tokens: length of the document (0: the model's longest input)
    seed: seed of the shuffle
    """
    corpus.within("show", show, 2, 64)
    read = corpus.documents(model, text, tokens=tokens)
    chosen = heads.chosen(head, model, read)
    if len(chosen) > MOST:
        raise ValueError(f"--head names {len(chosen)} heads; a figure holds {MOST}")
    document, T = read.first()[0], read.T
    by_offset = maths.mean_attention(stream.head_profiles(model, document), T)  # [L H R]
    best = np.array([by_offset[pair].argmax() for pair in chosen])
    found = {"heads": np.array([heads.name(*pair) for pair in chosen]), "offset": maths.offsets()[best],
             "papers_heads": np.array([heads.papers_name(*pair) for pair in chosen]),
             "at_offset_null": maths.mean_attention(maths.uniform(T, model.config.causal), T)[best]}
    for suffix, ids in (("", document), ("_shuffled", read.shuffled(0, document, seed))):
        patterns = _patterns(model, ids, chosen)
        attended = maths.mean_attention(maths.profile(patterns), T)
        found |= {"pattern" + suffix: patterns[:, :show, :show],
                  "pieces" + suffix: np.array(model.tokenizer.pieces(ids[:show])),
                  "at_offset" + suffix: attended[np.arange(len(best)), best]}
    return found


def _patterns(model, ids, chosen):
    """Attention [n T T] of the chosen heads."""
    trace = run(model, ids, keep=[("pattern", layer) for layer in {layer for layer, _ in chosen}])
    return np.array([trace["pattern", layer][0, head] for layer, head in chosen])
