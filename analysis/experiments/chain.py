"""If the attention of one head is shifted, does a deeper head attend elsewhere?

The attention of a head is turned by s tokens to either side, and all else in its layer stays as it
was: its pattern is moved along the keys, which is exact whatever the head reads. A head of a deeper
layer that reads what the turned one copied then looks elsewhere; one that reads positions does not.
N documents, T tokens, A turned heads, L layers, H heads, R offsets.
"""

from typing import Annotated

import numpy as np

from ..contract import Asks, NotApplicable, Of, Without, options, register
from ..drawing import Rows, When, draw
from ..maths import moves, profiles
from ..measures import heads, inputs, later_layers
from ..measures import position_parts as reading
from ..running.stream import UNSAVED
from ..texts import corpus

HALF = 0.5  # of a head's attention: if it goes along, or with less of it left
MATTERS = 0.1  # of a head's attention, from which it counts as going along; a convention
WAYS = "right", "left", "null right", "null left"  # how a head is turned, side by side
SHOWN = 5  # pairs that are named
NUMBERED = 10  # rows and columns, at most, of a matrix whose cells show their numbers
NAMED = 40  # heads, at most, all of which are named on an axis
MOVED = {"cmap": "RdBu_r", "vmin": -1, "vmax": 1}
MATRICES = (  # that are drawn: of which result, how it is called, its colours
    ("kept", "attention kept at its offset", {"cmap": "Blues", "vmin": 0, "vmax": 1}),
    ("move", "attention that moves along", MOVED),
    ("move_null", "null: random sides", MOVED),
)


def chain(
    model,
    run=UNSAVED,
    *,
    turn: str = "directed",
    by: Annotated[int, options.Within(1, 4)] = 2,
    text: options.Text = "sample",
    documents: options.Documents = 8,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Turn each head and measure where every head of a deeper layer looks, for all pairs.

    turn: heads to turn, as L0H0,L1H2; directed: those with a direction that have one in a deeper
    layer; all: every head but those of the last layer
    by: tokens by which they are turned, to the right and to the left
    """
    inputs.reachable(model)
    if model.config.n_layers < 2:
        raise NotApplicable("chain needs two layers or more; this model has one")
    named = _named(turn, model)
    document_set = corpus.documents(model, text, documents, tokens)
    T, N = document_set.T, len(document_set)
    places = document_set.ordinary()
    still = heads.mean_attention(model, document_set, run)
    directed = profiles.directed(still, T, causal=model.config.causal)
    turned = _turned_heads(named, directed)

    def measure(i, document):
        rng = np.random.default_rng((seed, i))
        to_the_right = rng.random(T)[places] < 0.5  # the queries that the null turns to the right
        passed = yield reading.of_document_read(model, document)
        return _measure(model, passed, places, turned, by, to_the_right)

    sums = run.gather(measure, document_set, "documents")
    result = {"T": T, "documents": N, "by": by, "turned": np.array(turned, int).reshape(-1, 2)}
    result |= {"directed": directed, "n_directed": directed.sum()}
    result |= heads.by_strength(still.max(axis=-1), directed)
    result["profile"] = sums["profile"] / N
    result["profiles"] = sums["profiles"] / N
    result["own_move"] = sums["own_move"] / N
    result |= _moves(result)
    return result | _strongest(result)


def _named(turn, model):
    """Heads by name; "directed" and "all" as they are. Raises ValueError for other words."""
    if turn in ("directed", "all"):
        return turn
    named = heads.parse(turn, model.config)
    last = model.config.n_layers - 1
    lacking = [heads.name(*pair) for pair in named if pair[0] == last]
    if lacking:
        text = f"--turn {', '.join(lacking)}: no layer is deeper; wanted heads of layers 0 to "
        raise ValueError(text + str(last - 1))
    return named


def _turned_heads(named, directed):
    """Pairs (layer, head) to turn, in order; directed: [L H] bool."""
    if named == "all":
        return [*np.ndindex(len(directed) - 1, directed.shape[1])]
    if named == "directed":
        turned = np.argwhere(directed).tolist()
        return [(layer, head) for layer, head in turned if directed[layer + 1 :].any()]
    return sorted(set(named))


def _measure(model, passed, places, turned, by, to_the_right):
    """Attention by offset of all heads, as they are [L H R] and with each head turned [A 4 L H R].

    own_move: [A] tokens by which the turned head's own attention differs, right from left.
    """
    still = _patterns(model, passed.streams[0][None], 0, places)[0]
    by_head = np.zeros((len(turned), len(WAYS), *still.shape))
    own_moves = np.zeros(len(turned))
    for i, (layer, head) in enumerate(turned):
        edit = _Turn(head, places, by, to_the_right, model.config.causal)
        stream = np.repeat(passed.streams[layer][None], len(WAYS), axis=0)
        by_head[i] = _patterns(model, stream, layer, places, edit)
        own_moves[i] = edit.own_move
    return {"profile": still, "profiles": by_head, "own_move": own_moves}


class _Turn:
    """The edit of a layer's pattern [4 H T T] that turns one head in each of WAYS."""

    def __init__(self, head, places, by, to_the_right, causal):
        self.head = head
        self.places = places
        self.by = by
        self.to_the_right = to_the_right[:, None]
        self.causal = causal
        self.own_move = 0.0

    def __call__(self, pattern):
        inside = pattern[0, self.head, self.places, self.places]
        right, left = (moves.turned(inside, s, self.causal) for s in (self.by, -self.by))
        self.own_move = moves.mean_key(right) - moves.mean_key(left)
        new = pattern.copy()
        ways = [right, left]
        ways.append(np.where(self.to_the_right, right, left))
        ways.append(np.where(self.to_the_right, left, right))
        new[:, self.head, self.places, self.places] = ways
        return new


def _patterns(model, stream, first, places, edit=None):
    """Attention by offset of the heads of all layers, from a stream [B T D] onward: [B L H R].

    first: the layer that reads the stream; its pattern goes through `edit`. Zeros before it, and in
    it if it is edited.
    """
    cfg = model.config
    by_layer = np.zeros((len(stream), cfg.n_layers, cfg.n_heads, 2 * profiles.REACH + 1))

    def hook(name, x, layer=None):
        if name != "pattern":
            return x
        if layer == first and edit is not None:
            return edit(x)
        by_layer[:, layer] = moves.attention_between(x, places, places)
        return x

    later_layers.onward(model, stream, first, hook)
    return by_layer


def _moves(r):
    """What becomes of the attention of deeper heads when a head is turned: [A L H] each.

    move: how far attention within reach moves for each token that the turned head moved, over the
    attention at a head's own offset: 1 if all of this goes along, -1 if it goes the other way, more
    if it looks at several offsets. kept: share that stays at the own offset. best: offsets with
    most attention, turned left, not, right, and at_best, how much of it. 0 for heads without a
    direction, and for those that are not deeper.
    """
    A, (L, H, R) = len(r["turned"]), r["profile"].shape
    is_later = np.arange(L)[:, None] > r["turned"][:, :1, None]
    deeper = is_later & r["directed"]  # [A L H]
    still = np.broadcast_to(r["profile"], (A, L, H, R))
    looks = np.stack([r["profiles"][:, 1], still, r["profiles"][:, 0]], axis=1)
    result = {"deeper": deeper, "best": looks.argmax(axis=-1) - R // 2}
    result["at_best"] = looks.max(axis=-1)
    most = np.maximum(still.max(axis=-1), 1e-9)
    own = still.argmax(axis=-1)[:, None, :, :, None]
    left, _, right = np.take_along_axis(looks, own, axis=-1)[..., 0].swapaxes(0, 1)
    result["kept"] = np.where(deeper, (left + right) / (2 * most), 0)
    moved = r["profiles"] @ profiles.offsets(R // 2)  # [A 4 L H]
    right, left, null_right, null_left = moved.swapaxes(0, 1)
    by = r["own_move"][:, None, None]  # 0 for a head that looks at special tokens alone
    scale = np.sign(by) / np.maximum(abs(by) * most, 1e-9)
    result["move"] = np.where(deeper, (right - left) * scale, 0)
    result["move_null"] = np.where(deeper, (null_right - null_left) * scale, 0)
    return result


def _strongest(r):
    """How many pairs go along, and those that do so most, with the null."""
    pairs = np.argwhere(r["deeper"])  # [n 3]
    places = tuple(pairs.T)
    result = {"n_pairs": len(pairs), "n_turned": len(r["turned"])}
    for name, null in (("move", ""), ("move_null", "_null")):
        size = abs(r[name][places])
        result["n_moved" + null] = (size >= MATTERS).sum()
        result["strongest" + null] = size.max(initial=0.0)
    result["n_lost"] = (r["kept"][places] < HALF).sum()
    moved = r["move"][places]
    attention = abs(moved) * r["profile"].max(axis=-1)[tuple(pairs[:, 1:].T)]  # that moves
    first = np.argsort(-attention, kind="stable")
    first = first[abs(moved[first]) >= MATTERS][:SHOWN]
    described = [_describe(r, *pair) for pair in pairs[first]]
    result["pairs"] = np.array(described or ["none"])
    result["pair_moves"] = moved[first] if len(first) else np.zeros(1)
    return result


def _describe(r, a, layer, b):
    """'L0H1 by -2, +2 moves L1H2 from -1 (0.36) to -3 (0.07), +1 (0.07)'."""
    place = (a, slice(None), layer, b)
    looks = zip(r["best"][place], r["at_best"][place])
    left, still, right = (f"{draw.offset(t)} ({most:.2f})" for t, most in looks)
    by = int(r["by"])
    source, target = heads.name(*r["turned"][a]), heads.name(layer, b)
    return f"{source} by -{by}, +{by} moves {target} from {still} to {left}, {right}"


def plot(r):
    """Matrices of all pairs, turned head by deeper head: attention kept, moved, and the null."""
    figure = draw.figure(12.5, np.clip(0.32 * len(r["turned"]), 2.2, 9) + 2.4)
    if not r["n_pairs"]:
        draw.nothing(figure.subplots(), "no pair of heads with a direction")
        return figure
    panels = figure.subplots(1, 3, sharey=True)
    images = [_draw_matrix(axes, r, *matrix) for axes, matrix in zip(panels, MATRICES)]
    panels[0].set_ylabel("head that is turned")
    bar = {"location": "bottom", "aspect": 30}
    figure.colorbar(images[0], ax=panels[0], label="share of its attention", **bar)
    label = "share of its attention: red moves along, blue the other way"
    figure.colorbar(images[1], ax=panels[1:], label=label, shrink=0.5, **bar)
    return figure


def _draw_matrix(axes, r, name, title, style):
    """Turned heads down, heads of deeper layers across; blank where a head is not deeper."""
    H = r["directed"].shape[1]
    shown = np.flatnonzero(r["directed"][1:]) + H  # their numbers
    cells = r[name].reshape(len(r[name]), -1)[:, shown]
    is_blank = ~r["deeper"].reshape(len(cells), -1)[:, shown]
    image = axes.imshow(np.ma.array(cells, mask=is_blank), aspect="auto", **style)
    _label_heads(axes.xaxis, [heads.name(*divmod(i, H)) for i in shown])
    _label_heads(axes.yaxis, [heads.name(*pair) for pair in r["turned"]])
    ends = cells[~is_blank].min(), cells[~is_blank].max()
    title = f"{title}\n{ends[0]:z.2f} to {ends[1]:z.2f}"
    axes.set(title=title, xlabel="head of a deeper layer (grey: not deeper)")
    axes.tick_params(axis="x", rotation=90)
    axes.set_facecolor("#DDDDDD")
    if max(cells.shape) <= NUMBERED:
        for i, j in np.argwhere(~is_blank):
            text = f"{cells[i, j]:.2f}".replace("-0.00", "0.00")
            color = "white" if abs(cells[i, j]) > 0.6 else "black"
            axes.text(j, i, text, ha="center", va="center", fontsize=10, color=color)
    return image


def _label_heads(axis, names):
    """Names of heads as ticks, of at most NAMED of them."""
    step = -(-len(names) // NAMED) or 1
    axis.set_ticks(range(0, len(names), step), names[::step])


register(
    chain,
    draw=plot,
    look="Each row is a head that is turned, each column a head of a deeper layer that has a "
    "direction. The left matrix shows how much of its attention the deeper head keeps at its "
    "offset: pale where it reads what the turned head copied; a head that reads "
    "positions is dark blue everywhere (dial tells whether it does). The middle matrix shows the "
    "attention that moves as far as the turned head moved. Blue, -1, is the other way: the "
    "deeper head looks up its own word among the copied words, and the further to the left "
    "these were fetched, the further to the right its word stands. Red, +1, is along: it "
    "looks up a copied word among the words. Attention that is neither kept nor moves is "
    "scattered. In the right matrix as many queries are turned as far, but each to a side of "
    "its own. A pair counts the whole way from one head to the other, through the heads "
    "between them too.",
    published="Nothing: the paper reads positions out of every layer in one way. The bundled "
    "models show that deeper heads may look at neighbours by copied words.",
    numbers="""
        n_moved: pairs in which a tenth or more of the deeper head's attention moves along
            null: pairs in which a tenth or more moves along when each query is turned to a side
            drawn for it
        strongest: largest share of a deeper head's attention that moves with a turned head
            null: largest share that moves when each query is turned to a side drawn for it
        n_lost: pairs in which the deeper head keeps less than half of its attention
            no null: any turn may scatter attention; what moves along has a null
        pair_moves by pairs: share of the deeper head's attention that moves, in the pairs where
            most of it moves; negative: the other way
            no null: the largest of them, strongest, has one
        fact n_pairs: pairs of a turned head and a head of a deeper layer that has a direction
        fact n_turned: heads that were turned
        fact n_directed: heads with a direction: {profiles.DIRECTION}
        fact n_by_strength by strengths: heads with a direction, by the attention to their offset
        fact documents: documents measured
    """,
    answer=Asks(
        "largest share of a deeper head's attention that moves with an earlier head, in {n_pairs} "
        "pairs of heads",
        value="{strongest:.2f}",
        chance="{strongest_null:.2f}, shifted to random sides",
        rule=Of("strongest", enough=HALF),
        without=Without("n_pairs"),
    ),
    says=When(
        "n_pairs",
        [
            "{n_directed} of {directed.size} heads have a direction.",
            " {n_turned} heads were turned by {by} tokens to either side. There are {n_pairs} "
            "pairs with a deeper head that has a direction. In {n_lost} of them the deeper head "
            "loses more than half of its attention there; in {n_moved} a tenth of it or more moves "
            "as far as the turned head, along or the other way (if each query is turned to a side "
            "drawn for it: {n_moved_null}). At most {strongest:.2f} of it moves (null: "
            "{strongest_null:.2f}). The pairs that move most: ",
            Rows("{pairs}"),
            ".",
            heads.describe_strengths,
        ],
        "No two heads, one in a deeper layer, have a direction, so no pair was measured.",
    ),
    shares_passes=True,
)
