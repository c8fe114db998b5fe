"""Does a sentence become one vector?

The shape at every arrow of one pass, with the numbers of the sentence that is given: text, pieces,
ids, rows of the embeddings, the points of a layer, logits, distribution. They are read off the
trace of a real pass, so that they hold for every family. n steps; the letters of the axes are in
LETTERS. Order: the experiment, its steps; the words; the picture.
"""

import itertools
import re
import textwrap
from typing import NamedTuple

import numpy as np
import scipy

from minitx import POINTS
from minitx import run as run_model

from ..runner import draw
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED
from ..texts import corpus

COLUMNS = BEFORE, LAYER, AFTER = "before the layers", "in layer 0", "after the layers"
NOT_MADE = "one-hot"
STREAM = "resid_"  # how the names of the stream's points begin
ADDED = "pos_embed", "type_embed"  # to the rows of the words
ABREAST = "q", "k", "v"  # three arrows from one box
WIDE, HIGH = 0.94, 0.78  # of a row of boxes; a column is 1 wide, the next row 1 below
SHOWN = 3  # pieces and ids written in a box
COLORS = {  # of boxes, by their axes
    "T D": "#CFE5F2",
    "H T d": "#FBE3C0",
    "H T S": "#F6CDB8",
    "T M": "#CBEBDD",
    "T V": "#EADCEB",
    "C": "#EADCEB",
}
LETTERS = {
    "T": "tokens",
    "S": "keys: the same tokens",
    "D": "width of the stream",
    "H": "heads",
    "d": "width of a head",
    "M": "width inside the MLP",
    "V": "vocabulary",
    "C": "classes",
}
MEANS = {  # what the distribution is about
    "causal": "row t: the piece after t",
    "masked": "row t: the piece at place t",
    "sequence": "the class of the text",
}
TRAINED = {  # what goes in and what is wanted when such a model is trained
    "causal": "In training the input is the wanted output, shifted right by one.",
    "masked": "In training the input is the wanted output with some pieces hidden.",
    "sequence": "In training a text goes in and one class is wanted.",
}


class Step(NamedTuple):
    """What one arrow gives."""

    name: str
    column: str  # one of COLUMNS
    axes: str
    shape: tuple
    meaning: str


def shapes(model, run=UNSAVED, *, sentence: str = corpus.SENTENCE):
    """The shape at every arrow of one pass of a sentence.

    sentence: what goes in
    """
    tokens = model.tokenizer.encode(sentence)
    if not len(tokens):
        raise ValueError(f"--sentence {sentence!r} has no tokens")
    trace = run_model(model, tokens)
    steps = _of_text(model, sentence, tokens) + _of_trace(model, trace)
    result = {"T": len(tokens), "width": model.config.d_model, "n_layers": model.config.n_layers}
    result["sequence"] = model.config.task_head == "sequence"
    result["trained"] = TRAINED.get(model.config.task_head, "")
    result["pieces"] = np.array(model.tokenizer.pieces(tokens))
    if model.config.task_head:
        last = len(tokens) - 1 - len(corpus.specials(model)[1])
        probabilities = scipy.special.softmax(trace["logits"][0].astype(np.float64), axis=-1)
        steps.append(_distribution(model, probabilities))
        result |= _likeliest(model, np.atleast_2d(probabilities), last)
    result |= _columns(steps)
    in_stream = [x.shape[1:] for key, x in trace.items() if str(key[0]).startswith(STREAM)]
    result["vectors"] = min(shape[0] for shape in in_stream)
    result["one_hot"] = len(tokens) * model.config.n_vocab
    result["made"] = sum(x.size for x in trace.values())
    return result


def _of_text(model, sentence, tokens):
    """The steps from a text to the ids whose rows the embedding gives."""
    T, V = len(tokens), model.config.n_vocab
    pieces = " ".join(draw.label(piece) for piece in model.tokenizer.pieces(tokens[:SHOWN]))
    ids = " ".join(map(str, tokens[:SHOWN]))
    never = "never made: rows of W_E are picked"
    steps = [Step("text", BEFORE, "characters", (len(sentence),), "what was typed")]
    steps.append(Step("pieces", BEFORE, "T", (T,), f"{pieces} …"))
    steps.append(Step("ids", BEFORE, "T", (T,), f"{ids} …"))
    steps.append(Step(NOT_MADE, BEFORE, "T V", (T, V), never))
    return steps


def _of_trace(model, trace):
    """A step for every point outside the layers and in layer 0, in the order of the pass.

    The numbers by which a norm moves and scales each token are left out.
    """
    steps = []
    column = BEFORE
    for key, x in trace.items():
        name, layer = key if isinstance(key, tuple) else (key, None)
        if layer is not None:
            column = LAYER
        elif column == LAYER:
            column = AFTER
        axes = POINTS[name].axes.removeprefix("B ")
        if name == "logits" and model.config.task_head == "sequence":
            axes = "C"
        if axes != "T" and layer in (None, 0):
            steps.append(Step(name, column, axes, x.shape[1:], _meaning(name, model.config)))
    return steps


def _meaning(name, cfg):
    """What a point is in this family, in a few words."""
    if name in ("ln1", "ln2"):
        reader = "attention" if name == "ln1" else "the MLP"
        return f"LayerNorm of what {reader} reads" if cfg.pre_norm else "LayerNorm of the sum"
    if name == "logits":
        return (
            "scores over classes" if cfg.task_head == "sequence" else "scores over the vocabulary"
        )
    return re.split("[:;(]", POINTS[name].meaning)[0].strip()


def _distribution(model, probabilities):
    """The last step: what the logits are turned into."""
    axes = "C" if model.config.task_head == "sequence" else "T V"
    return Step("distribution", AFTER, axes, probabilities.shape, MEANS[model.config.task_head])


def _likeliest(model, probabilities, last):
    """The largest probability of one row [.. V], that of the last piece of the sentence."""
    row = probabilities[min(last, len(probabilities) - 1)]
    best = int(row.argmax())
    name = f"class {best}"
    if model.config.task_head != "sequence":
        [name] = model.tokenizer.pieces([best])
    rows = {"row_sum": row.sum(), "likeliest": np.array(name)}
    return rows | {"probability": row[best], "probability_null": 1 / len(row)}


def _columns(steps):
    """Arrays [n] of the steps' fields; shapes as text, and how many numbers they are."""
    names, columns, axes, sizes, meanings = zip(*steps)
    result = {"names": np.array(names), "columns": np.array(columns), "axes": np.array(axes)}
    result["shapes"] = np.array([" × ".join(map(str, shape)) for shape in sizes])
    result["sizes"] = np.array([int(np.prod(shape)) for shape in sizes])
    result["meanings"] = np.array(meanings)
    return result


def says(r):
    """What the numbers show, in plain words."""
    first = str(r["pieces"][0])
    text = (
        f"The sentence is {r['T']} pieces, and the stream has {r['vectors']} vectors of width "
        f"{r['width']} from the embeddings to the output, in every one of {r['n_layers']} layers: "
        f"no vector stands for the sentence. The first of them is that of {first!r}, one among "
        f"{r['T']}"
    )
    text += "; the classifier reads a single one." if r["sequence"] else "."
    text += (
        f" One-hot vectors would be {r['one_hot']:,} numbers and are never made, since rows are "
        f"picked instead; the points of the whole pass are {r['made']:,} numbers."
    )
    if "probability" not in r:
        return text + " This checkpoint has no output to turn them into probabilities."
    return (
        f"{text} What comes out is a distribution: its likeliest entry for the last piece is "
        f"{str(r['likeliest'])!r} with {r['probability']:.2f} (all equally likely: "
        f"{r['probability_null']:.2g})."
    )


def answer(r):
    """No if the stream keeps one vector for every token; partly if a classifier reads one."""
    verdict = "yes" if r["vectors"] < r["T"] else "no"
    if r["sequence"] and verdict == "no":
        verdict = "partly"
    measure = f"vectors of the stream at every point, for {r['T']} tokens"
    return Answer(verdict, measure, f"{r['vectors']}, of width {r['width']}", "")


def plot(r):
    """Boxes with shapes, in the order of the pass, in three columns."""
    rows = {column: _rows(r, column) for column in COLUMNS}
    most = max(map(len, rows.values()))
    figure = draw.figure(12.5, 0.66 * most + 0.4)
    for axes, column in zip(figure.subplots(1, 3, width_ratios=(1, 1.25, 1)), COLUMNS):
        axes.set(xlim=(0, 1), ylim=(most, -0.2))
        axes.axis("off")
        repeated = f"; then layers 1 to {r['n_layers'] - 1}" if r["n_layers"] > 1 else ""
        axes.set_title(column + repeated * (column == LAYER), fontweight="bold")
        for y, steps in enumerate(rows[column]):
            _draw_row(axes, r, y, steps)
        _draw_arrows(axes, r, rows[column])
        _draw_sides(axes, r, rows[column])
    _draw_letters(axes, r, most)
    return figure


def _rows(r, column):
    """Numbers of the steps of a column in rows: one in each, or those of ABREAST together."""
    rows = []
    for i in np.flatnonzero(r["columns"] == column):
        if r["names"][i] in ABREAST[1:]:
            rows[-1].append(i)
        else:
            rows.append([i])
    return rows


def _draw_row(axes, r, y, steps):
    """The boxes of a row."""
    wide = WIDE / len(steps)
    for x, i in zip(_lefts(steps), steps):
        _draw_box(axes, r, i, (x, y), wide - 0.02 * (len(steps) > 1))


def _lefts(steps):
    """Where the boxes of a row begin."""
    return WIDE / len(steps) * np.arange(len(steps))


def _draw_arrows(axes, r, rows):
    """What leads from row to row: arrows, from q and k two of them, or a plus."""
    style = {"arrowstyle": "->", "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0}
    for y, (above, below) in enumerate(itertools.pairwise(rows), 1):
        boxes = max(above, below, key=len)
        middles = _lefts(boxes) + WIDE / len(boxes) / 2
        if above is boxes and len(above) > 1:
            middles = middles[:-1]  # values go to z
        if r["names"][below[0]] in ADDED:
            axes.text(*middles, y - 0.11, "+", ha="center", va="center", fontweight="bold")
            continue
        for x in middles:
            axes.annotate("", (x, y), (x, y - 1 + HIGH), arrowprops=style)


def _draw_box(axes, r, i, corner, wide):
    """One box: name, axes and shape above, the meaning below where it has room."""
    from matplotlib.patches import Rectangle

    (x, y), is_made = corner, r["names"][i] != NOT_MADE
    fill = COLORS.get(str(r["axes"][i]), "#EEEEEE") if is_made else "white"
    style = {"facecolor": fill, "edgecolor": draw.GREY, "linestyle": "-" if is_made else "--"}
    axes.add_patch(Rectangle((x, y), wide, HIGH, **style))
    font = {"fontsize": 10, "va": "center"}
    axes.text(x + 0.02, y + 0.2, r["names"][i], fontweight="bold", **font)
    if wide < 0.5:
        axes.text(x + 0.02, y + 0.56, r["shapes"][i], **font)
        return
    shape = f"[{r['axes'][i]}]  {r['shapes'][i]}"
    axes.text(x + wide - 0.02, y + 0.2, shape, ha="right", **font)
    axes.text(x + 0.02, y + 0.56, draw.literal(str(r["meanings"][i])), color="#444444", **font)


def _draw_sides(axes, r, rows):
    """Lines at the side: the stream, to which the writers add, and the values on their way to z."""
    first = [str(r["names"][steps[0]]) for steps in rows]
    begin = 0
    for y, name in enumerate(first):
        if name.startswith(STREAM):
            begin = y
        if name.endswith("_out"):  # the next box is, or norms, the sum
            _draw_side(axes, begin + 0.5, y + 1.3, 0.985, draw.BLUE)
            axes.text(0.985, y + 1.15, " +", color=draw.BLUE, va="center")
    if "z" in first:
        _draw_side(axes, first.index("q") + 0.4, first.index("z") + 0.4, 0.962, draw.ORANGE)


def _draw_side(axes, start, end, x, color):
    """A line from one row's right end to that of another."""
    xs, ys = [WIDE, x, x, WIDE], [start, start, end, end]
    axes.plot(xs, ys, color=color, linewidth=1.5)


def _draw_letters(axes, r, most):
    """What the letters are here, and how such a model is trained."""
    sizes = {}
    for letters, shape in zip(r["axes"], r["shapes"]):
        if letters != "characters":
            sizes |= dict(zip(str(letters).split(), str(shape).split(" × ")))
    lines = [f"{x} = {sizes[x]}: {means}" for x, means in LETTERS.items() if x in sizes]
    lines += ["", *textwrap.wrap(str(r["trained"]), 44)]
    axes.text(0, most - 1, "\n".join(lines), fontsize=10, va="bottom", linespacing=1.6)


register(
    shapes,
    draw=plot,
    says=says,
    look=(
        "Read each column downward. A box is an array of the pass with its axes and their sizes "
        "for this sentence; the text of one batch entry is shown. The dashed box is the one-hot "
        "input of textbooks, which no program makes. Three arrows lead from one box to queries, "
        "keys and values; values go on to z (orange). The blue line at the side is the residual "
        "stream, to which attention and the MLP add. As many rows come out as went in: the letter "
        "T stays."
    ),
    published=(
        "Introductions to transformers often draw a vector of the sentence between what is read "
        "and what is written, as recurrent encoders had one; a transformer has none."
    ),
    answer=answer,
    numbers={
        "vectors": "vectors that the stream has at every point, at least",
        "T": "tokens of the sentence, special ones included",
        "width": "width of each vector",
        "one_hot": "numbers that one-hot inputs would have; they are never made",
        "made": "numbers that all points of the pass have together",
        "probability": "largest probability in the distribution at the last piece of the sentence",
        "probability_null": "probability of each entry if all were equally likely",
    },
)
