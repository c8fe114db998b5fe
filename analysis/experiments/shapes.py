"""Is a sentence compressed into one vector?

The shape at every arrow of one pass, with the numbers of the sentence given: text, pieces, ids,
rows of the embeddings, the points of a layer, logits, distribution. They are read off the trace of
a real pass, so that they hold for every family. Of an encoder-decoder there are two lines of these,
the source's and the target's. n steps; the letters of the axes are in LETTERS.
"""

import itertools
import re
from typing import NamedTuple

import numpy as np
import scipy

from minitx import POINTS
from minitx import run as run_model
from minitx.heads import axes_of_logits, is_pooled, of_classes
from minitx.loading.labels import predicted
from minitx.model import CROSS, ENCODER

from ..contract import Asks, NotApplicable, Of, options, register
from ..drawing import When, draw
from ..machine.language import filled, label
from ..measures import decoder_texts
from ..running.stream import UNSAVED
from ..texts import corpus, joined

COLUMNS = BEFORE, LAYER, AFTER = "before the layers", "in layer 0", "after the layers"
STACKS = SOURCE, TARGET = "encoder, ", "decoder, "  # of an encoder-decoder; "" is a single stack
NOT_MADE, OUTPUT = "one-hot", "encoder's output"
BIAS = "pos_bias"  # comes from no box: from the distances of tokens
STREAM = "resid_"  # how the names of the stream's points begin
ADDED = "pos_embed", "type_embed"  # to the rows of the words
OF_PIECES = "pieces", "ids", "shifted right"  # boxes in which a text's own pieces stand
ABREAST = "q", "k", "v"  # three arrows from one box
NAMED = {  # what readers call points whose meanings are formulas
    **dict(zip(ABREAST, ("queries", "keys", "values"))),
    "scores": "scores: queries times keys",
    "pattern": "attention: softmax of the scores",
    "z": "attention times values",
}
WIDE, HIGH = 0.94, 0.78  # of a row of boxes; a column is 1 wide, the next row 1 below
SHOWN = 3  # pieces and ids written in a box
COLORS = {  # of boxes, by their axes; n tokens of either text
    "n D": "#CFE5F2",
    "n E": "#CFE5F2",
    "H n d": "#FBE3C0",
    "G n d": "#FBE3C0",
    "H n n": "#F6CDB8",
    "n M": "#CBEBDD",
    "n V": "#EADCEB",
    "n C": "#EADCEB",
    "C": "#EADCEB",
}
LETTERS = {
    "T": "tokens",
    "S": "keys: the same tokens",
    "D": "width of the stream",
    "E": "width of the embeddings",
    "H": "heads",
    "G": "heads of keys and values",
    "d": "width of a head",
    "M": "width inside the MLP",
    "V": "vocabulary",
    "C": "classes",
}
LETTERS_OF_TWO = {"T": "tokens of the target", "S": "tokens of the source"}
MEANS = {  # what the distribution is about; a head that is not here has none over its last axis
    "causal": "row t: the piece after t",
    "masked": "row t: the piece at position t",
    "sequence": "the class of the text",
    "token": "row t: the class of the piece at position t",
    "next_sentence": "whether the second text follows",
}
TRAINED = {  # what goes in and what is wanted when such a model is trained
    "causal": "In training the input is the wanted output, shifted right by one.",
    "masked": "In training the input is the wanted output with some pieces hidden.",
    "sequence": "In training a text goes in and one class is wanted.",
    "token": "In training a text goes in and a class of each token is wanted.",
    "next_sentence": "In training two texts go in; wanted is whether the second follows.",
    "question": "In training a question and a text go in; wanted is where the answer lies.",
    "choice": "In training a text goes in with each of several ends; wanted is the right one.",
    "replaced": "In training a text goes in with some pieces exchanged; wanted is which.",
}


SHIFTED = "In training, too, the decoder reads the wanted output shifted right by one."


class Step(NamedTuple):
    """What one arrow gives."""

    stack: str  # one of STACKS, or ""
    name: str
    column: str  # one of COLUMNS
    axes: str
    shape: tuple
    meaning: str


def shapes(
    model, run=UNSAVED, *, sentence: options.Said = corpus.SENTENCE, target: options.Target = ""
):
    """The shape at every arrow of one pass of a sentence.

    sentence: what goes in; in an encoder-decoder the source
    target: the target of an encoder-decoder ('': its own greedy output)
    """
    if model.encoder is not None:
        return _of_two(model, sentence, target)
    if target:
        kind = model.config.model_type
        raise NotApplicable(f"--target is {target!r}, but this model ({kind}) has a single stack")
    text = _encode(model, sentence)
    tokens = text.ids
    trace = run_model(model, tokens, **text.options)
    steps = _of_text(model, "", sentence, text) + _of_trace(model, trace, "")
    return _result(model, tokens, trace, steps) | {"vectors": _fewest(trace, STREAM)}


def _of_two(model, source, target):
    """The same of an encoder-decoder: the source's steps, then the target's."""
    given = _encode(model.encoder, source)
    tokens = given.ids
    said = _said(model, source, tokens, target)
    text = target or model.tokenizer.decode(said.outputs)
    trace = run_model(model, said.inputs, source=tokens)
    steps = _of_text(model.encoder, SOURCE, source, given)
    steps += [*_of_trace(model.encoder, trace, SOURCE), _output(model.encoder, trace)]
    steps += _of_text(model, TARGET, text, joined.of(said.outputs), said.inputs)
    steps += _of_trace(model, trace, TARGET)
    result = _result(model, said.outputs, trace, steps)
    result |= {"S": len(tokens), "source_layers": model.encoder.config.n_layers}
    result["vectors"] = _fewest(trace, ENCODER + STREAM, f"{CROSS}k", f"{CROSS}v")
    result["target_vectors"] = _fewest(trace, STREAM)
    result["one_hot"] += len(tokens) * model.encoder.config.n_vocab
    return result


def _encode(model, sentence):
    """A sentence, or a pair, as a Joined; raises ValueError if it has no tokens."""
    text = joined.encoding(model, sentence)
    if not len(text.ids):
        raise ValueError(f"--sentence {sentence!r} has no tokens")
    return text


def _said(model, source, tokens, target):
    """The Spoken of a target, or of the model's own; without a language model's head, the source.

    A classifier reads its source in the decoder, too.
    """
    if target or model.config.task_head != "causal":
        return decoder_texts.forced(model, tokens, target or source)
    return decoder_texts.greedy(model, tokens)


def _fewest(trace, *names):
    """Vectors that there are at least at the points whose names begin so."""
    return min(x.shape[-2] for key, x in trace.items() if str(key[0]).startswith(names))


def _result(model, tokens, trace, steps):
    """What is said and drawn; tokens: those that are to come out of an encoder-decoder."""
    cfg = model.config
    result = {"T": len(tokens), "width": cfg.d_model, "n_layers": cfg.n_layers}
    result["sequence"] = is_pooled(cfg.task_head)
    result["trained"] = TRAINED.get(cfg.task_head, "")
    if cfg.task_head == "causal" and model.encoder is not None:
        result["trained"] = SHIFTED
    result["pieces"] = np.array(model.tokenizer.pieces(tokens))
    if cfg.task_head in MEANS:
        last = len(tokens) - 1 - len(corpus.specials(model)[1])
        probabilities = scipy.special.softmax(trace["logits"][0].astype(np.float64), axis=-1)
        steps = [*steps, _distribution(model, probabilities)]
        result |= _likeliest(model, np.atleast_2d(probabilities), last)
    result["one_hot"] = len(tokens) * cfg.n_vocab
    result["made"] = sum(x.size for x in trace.values())
    return result | _columns(steps)


def _of_text(model, stack, sentence, text, inputs=None):
    """The steps from a sentence, as a Joined, to the rows of the embedding; inputs: a decoder's."""
    letter, tokens = "S" if stack == SOURCE else "T", text.ids
    T, V = len(tokens), model.config.n_vocab
    what = "what is said" if stack == TARGET else "what was typed"
    steps = [("text", "characters", (sum(map(len, joined.parts(sentence))),), what)]
    steps.append(("pieces", letter, (T,), _first_pieces(model, tokens, text.second)))
    steps.append(("ids", letter, (T,), " ".join(map(str, tokens[:SHOWN])) + " …"))
    if inputs is not None:
        steps.append(("shifted right", letter, (T,), _first_pieces(model, inputs)))
    never = "never made: rows of W_E are picked"
    steps.append((NOT_MADE, f"{letter} V", (T, V), never))
    return [Step(stack, name, BEFORE, *others) for name, *others in steps]


def _first_pieces(model, tokens, second=None):
    """The first few pieces as one text; of a pair those of both, with a line between."""
    if second is not None:
        return " | ".join(_first_pieces(model, x) for x in (tokens[:second], tokens[second:]))
    return " ".join(draw.label(x) for x in model.tokenizer.pieces(tokens[:SHOWN])) + " …"


def _of_trace(model, trace, stack):
    """A step for every point outside the layers and in layer 0, in the order of the pass.

    The numbers by which a norm moves and scales each token are left out.
    """
    steps = []
    column = BEFORE
    for key, x in trace.items():
        name, layer = key if isinstance(key, tuple) else (key, None)
        if name.startswith(ENCODER) != (stack == SOURCE):
            continue
        name = name.removeprefix(ENCODER)
        if layer is not None:
            column = LAYER
        elif column == LAYER:
            column = AFTER
        axes = _axes(name, model, stack)
        if axes not in ("S", "T") and layer in (None, 0):
            steps.append(Step(stack, name, column, axes, x.shape[1:], _meaning(name, model.config)))
    return sorted(steps, key=lambda step: (COLUMNS.index(step.column), step.name == BIAS))


def _axes(name, model, stack):
    """Letters of a point's axes without the first; where there is a source, S stands for that."""
    if name == "logits":
        return _axes_of_scores(model)
    axes = POINTS[name].axes.partition(" ")[2]
    if not model.config.d_embed:
        axes = axes.replace("E", "D")
    if model.config.n_kv == model.config.n_heads:
        axes = axes.replace("G", "H")
    if stack == SOURCE:
        return axes.replace("T", "S")
    if stack == TARGET and not name.startswith(CROSS):
        return axes.replace("S", "T")
    return axes


def _axes_of_scores(model):
    """Letters of the axes of the logits without the first."""
    return " ".join(axes_of_logits(model.config.task_head)[1:])


def _output(encoder, trace):
    """What an encoder gives the decoder."""
    is_normed = encoder.config.pre_norm
    point = f"{ENCODER}ln_final" if is_normed else (f"{ENCODER}resid_post", -1)
    shape = trace[point].shape[1:]
    return Step(SOURCE, OUTPUT, AFTER, "S D", shape, "read by cross-attention in each layer")


def _meaning(name, cfg):
    """What a point is in this family, in a few words."""
    readers = {"ln1": "attention", "ln_cross": "cross-attention", "ln2": "the MLP"}
    text = re.split("[:;(]", POINTS[name].meaning)[0].strip()
    if name in readers:
        of = f"what {readers[name]} reads" if cfg.pre_norm else "the sum"
        text = f"LayerNorm of {of}"
    if name == "logits":
        text = f"scores over {'classes' if of_classes(cfg.task_head) else 'the vocabulary'}"
    return text.replace("LayerNorm", "RMSNorm") if cfg.rms_norm else text


def _distribution(model, probabilities):
    """The last step: what the logits are turned into."""
    axes = _axes_of_scores(model)
    stack, means = "", MEANS[model.config.task_head]
    if model.encoder is not None:
        stack, means = TARGET, MEANS[model.config.task_head].replace("after t", "that is said at t")
    return Step(stack, "distribution", AFTER, axes, probabilities.shape, means)


def _likeliest(model, probabilities, last):
    """The largest probability of one row [.. V], that of the last piece of the sentence."""
    row = probabilities[min(last, len(probabilities) - 1)]
    best = int(row.argmax())
    [name] = predicted(model, [best])
    rows = {"row_sum": row.sum(), "likeliest": np.array(name)}
    return rows | {"probability": row[best], "probability_null": 1 / len(row)}


def _columns(steps):
    """Arrays [n] of the steps' fields; shapes as text, and how many numbers they are."""
    stacks, names, columns, axes, sizes, meanings = zip(*steps)
    result = {"names": np.array(names), "columns": np.array(columns), "axes": np.array(axes)}
    result["stacks"] = np.array(stacks)
    result["shapes"] = np.array([" × ".join(map(str, shape)) for shape in sizes])
    result["sizes"] = np.array([int(np.prod(shape)) for shape in sizes])
    result["meanings"] = np.array(meanings)
    return result


def signs(r):
    """2 if the stream has fewer vectors than tokens, and 1 if a classifier reads a single one."""
    return 2 * (r["vectors"] < r.get("S", r["T"])) + bool(r["sequence"])


def plot(r):
    """Boxes with shapes, in the order of the pass, in three columns; a line of them for a stack."""
    stacks = [*dict.fromkeys(r["stacks"].tolist())]
    rows = {place: _rows(r, *place) for place in itertools.product(stacks, COLUMNS)}
    most = [max(len(rows[stack, column]) for column in COLUMNS) for stack in stacks]
    figure = draw.figure(12.5, 0.66 * sum(most) + 0.4 * len(stacks))
    ratios = {"width_ratios": (1, 1.25, 1), "height_ratios": most}
    panels = figure.subplots(len(stacks), 3, squeeze=False, **ratios)
    for axes, (place, listed) in zip(panels.flat, rows.items()):
        stack, column = place
        axes.set(xlim=(0, 1), ylim=(most[stacks.index(stack)], -0.2))
        axes.axis("off")
        title = f"{label(stack)}{label(column)}{_repeated(r, *place)}"
        axes.set_title(title, fontweight="bold")
        for y, steps in enumerate(listed):
            wide = WIDE / len(steps) - 0.02 * (len(steps) > 1)
            for x, i in zip(_lefts(steps), steps):
                _draw_box(axes, r, i, (x, y), wide)
        _draw_arrows(axes, r, listed)
        _draw_sides(axes, r, listed)
    _draw_letters(panels[-1, -1], r, most[-1])
    return figure


def _repeated(r, stack, column):
    """What a title says of the layers that are not drawn."""
    n = r["source_layers"] if stack == SOURCE else r["n_layers"]
    return filled("; then layers 1 to {n}", n=n - 1) if column == LAYER and n > 1 else ""


def _rows(r, stack, column):
    """Numbers of the steps of a column in rows: one in each, or those of ABREAST together."""
    rows = []
    for i in np.flatnonzero((r["stacks"] == stack) & (r["columns"] == column)):
        if r["names"][i].removeprefix(CROSS) in ABREAST[1:]:
            rows[-1].append(i)
        else:
            rows.append([i])
    return rows


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
        name = r["names"][below[0]]
        if name in ADDED:
            axes.text(*middles, y - 0.11, "+", ha="center", va="center", fontweight="bold")
        if name in (*ADDED, BIAS):
            continue
        for i, x in enumerate(middles):
            is_from_source = name == f"{CROSS}q" and i > 0
            color = draw.PURPLE if is_from_source else "black"
            axes.annotate("", (x, y), (x, y - 1 + HIGH), arrowprops=style | {"color": color})


def _draw_box(axes, r, i, corner, wide):
    """One box: what it is above, below it the name in code or a meaning, axes and shape."""
    from matplotlib.patches import Rectangle

    (x, y), is_made = corner, r["names"][i] != NOT_MADE
    fill = COLORS.get(re.sub("[TS]", "n", r["axes"][i]), "#EEEEEE") if is_made else "white"
    edge = draw.PURPLE if r["names"][i] == OUTPUT else draw.GREY
    style = {"facecolor": fill, "edgecolor": edge, "linestyle": "-" if is_made else "--"}
    axes.add_patch(Rectangle((x, y), wide, HIGH, **style))
    font = {"fontsize": 10, "va": "center"}
    name, meaning = str(r["names"][i]), draw.literal(str(r["meanings"][i]))
    shape = f"[{r['axes'][i]}]  {r['shapes'][i]}"
    is_point = name in POINTS
    above, below = name, meaning
    if is_point:
        above, below = NAMED.get(name.removeprefix(CROSS), meaning), name
    if wide < 0.5:
        below, shape = str(r["shapes"][i]), ""
    axes.text(x + 0.02, y + 0.2, above, fontweight="bold", **font)
    axes.text(x + wide - 0.02, y + (0.56 if is_point else 0.2), shape, ha="right", **font)
    said = axes.text(x + 0.02, y + 0.56, below, color="#444444", **font)
    if is_point or name in OF_PIECES:
        draw.of_tokens(said)


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
    for part in ("", CROSS):
        if f"{part}z" in first:
            start, end = (first.index(f"{part}{name}") + 0.4 for name in "qz")
            _draw_side(axes, start, end, 0.962, draw.ORANGE)


def _draw_side(axes, start, end, x, color):
    """A line from one row's right end to that of another."""
    xs, ys = [WIDE, x, x, WIDE], [start, start, end, end]
    axes.plot(xs, ys, color=color, linewidth=1.5)


def _draw_letters(axes, r, most):
    """What the letters are here, and how such a model is trained."""
    sizes = {}
    for letters, shape in zip(r["axes"], r["shapes"]):
        if letters == "characters":
            continue
        for letter, size in zip(str(letters).split(), str(shape).split(" × ")):
            sizes.setdefault(letter, {})[size] = True  # stacks may differ
    meanings = LETTERS | (LETTERS_OF_TWO if "S" in r else {})
    lines = [f"{x} = {' and '.join(sizes[x])}: {meanings[x]}" for x in LETTERS if x in sizes]
    lines += ["", draw.wrapped(str(r["trained"]), 44)]
    axes.text(0, most - 1, "\n".join(lines), fontsize=10, va="bottom", linespacing=1.6)


OF_ONE = (
    "The sentence has {T} tokens, and the stream has {vectors} vectors of width {width} from the "
    "embeddings to the output, in every one of {n_layers} layers: no vector stands for the "
    "sentence. The first of them is that of {pieces[0]!r}, one among {T}"
)
OF_TWO = (
    "The source has {S} tokens, and the encoder's stream has {vectors} vectors of width {width} "
    "in every one of {source_layers} layers; the decoder reads {T} tokens, its {T} output tokens "
    "shifted right by one, and its stream has {target_vectors}. Cross-attention has a key and a "
    "value for each of the {vectors}: no vector stands for the sentence."
)

register(
    shapes,
    draw=plot,
    look="Read each column downward. A box is an array of the pass: what it is, its name in code, "
    "its axes and their sizes for this sentence, without the batch. The dashed box is the one-hot "
    "input of textbooks, which no program makes. Three arrows lead from one box to queries, keys "
    "and values; values join after the softmax (orange). The blue line at the side is the residual "
    "stream, to which attention and the MLP add. As many rows come out as went in: the letter T "
    "stays. An encoder-decoder has the source's boxes above and the target's below; purple arrows "
    "come from the encoder's output.",
    published="Introductions to transformers often draw a vector of the sentence between what is "
    "read and what is written, as recurrent encoders had one; a transformer has none.",
    numbers="""
        vectors: vectors that the stream has at every point, at least
            no null: the architecture's, chance has no part in it
        fact T: tokens of the sentence, special ones included; of an encoder-decoder, of the target
        fact S: tokens of the source, special ones included
        target_vectors: vectors that the decoder's stream has at every point, at least
            no null: the architecture's, chance has no part in it
        fact width: width of each vector
        fact one_hot: numbers that one-hot inputs would have; they are never made
        fact made: numbers that all points of the pass have together
        probability: largest probability in the distribution at the last piece of the sentence
            null: probability of each entry if all were equally likely
    """,
    answer=Asks(
        When(
            "S",
            "vectors of the encoder's stream at every point, for {S} tokens",
            "vectors of the stream at every point, for {T} tokens",
        ),
        value="{vectors}, of width {width}",
        chance="",
        rule=Of("signs", null=0, enough=2, most=3, margin=0),
    ),
    says=[
        When("S", OF_TWO, [OF_ONE, When("sequence", "; the classifier reads a single one.", ".")]),
        " One-hot vectors would be {one_hot:,} numbers and are never made, since rows are looked "
        "up instead; the points of the whole pass are {made:,} numbers.",
        When(
            "probability",
            " What comes out is a distribution: its most likely entry for the last token is "
            "{likeliest!r} with {probability:.2f} (uniform: {probability_null:.2g}).",
            " This checkpoint has no output that is a distribution.",
        ),
    ],
    sides=("both", "encoder"),
)
