"""Path patching: what a sender writes changes only where a receiver reads it.

First the stream that the receiver reads is made: that of the base run, with the sender's difference
added where it writes, through the norms that follow. Then the base run is repeated with the
receiver's queries, keys, values or MLP made of this stream, and everything after it follows. N
pairs of texts, S senders that are tried one at a time.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from ..arrays import Model
from ..machine.progress import bar
from ..points import name_of, points
from . import each
from .effects import Effects, Patched, check_into, without_gaps
from .graph import Graph, Node
from .later import Later
from .measure import Measure, read_measure
from .patching import Texts, unrelated_sets
from .stream import EMBEDDINGS, POINT_OF
from .texts import Inputs, read_pairs

WRITTEN = {*EMBEDDINGS.values(), *POINT_OF.values(), "attn_out", "cross_out", "pos_angle"}
WRITTEN |= {f"enc_{name}" for name in WRITTEN} | {"logits", "resid_pre"}


class PathEffects(Effects):
    """Effects of one path; also the change of the stream that its receiver reads.

    `.change` [N T D]: the change of that stream due to the senders, clean into corrupt; `.whole`
    [N T D]: its whole difference between the clean and the corrupt run. Both are those of the first
    receiver, and None if receivers are tested one at a time. All senders together make the whole
    difference; in a pre-norm model (GPT-2) the changes due to single senders add up to it.

    >>> import minitx, numpy as np
    >>> from minitx import circuits
    >>> model = minitx.load("tiny-gpt2", dtype="float64")
    >>> pairs = "He said that", "She said that", (" he", " she")
    >>> path = circuits.path_patch(model, *pairs, receiver=("k", 3, 0))
    >>> isinstance(path, circuits.PathEffects), np.allclose(path.change, path.whole)
    (True, True)
    """

    change: np.ndarray
    whole: np.ndarray


def path_patch(
    model: Model,
    clean: Texts,
    corrupt: Texts,
    measure: Measure,
    sender: Any = None,
    receiver: Any = "logits",
    *,
    mlps: Literal["frozen", "recomputed"] = "frozen",
    into: Literal["both", "corrupt", "clean"] = "both",
    null: bool = True,
    prefix: Texts | None = None,
    place: int | None = None,
    unrelated: tuple[Texts, Texts] | list[tuple[Texts, Texts]] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> PathEffects:
    """Effects of patching the direct path from a sender to a receiver, in both directions.

    clean, corrupt, measure, prefix, place, unrelated: as for `patch`.
    sender: a head (layer, head), ("mlp", layer), "embed", in a decoder with a source ("cross_head",
    layer, head), in an encoder ("enc_head", layer, head), ("enc_mlp", layer), "enc_embed"; a list
    of these, which change together; None: everything that the receiver reads. A name alone, "head",
    is every sender of that name, one at a time: effects are then [L H], or [L] of "mlp".
    receiver: ("q", layer, head), likewise "k" and "v", whose heads are those of the points k and v;
    ("mlp", layer); "logits"; cross_q, cross_k, cross_v; enc_q …; or a list of these, which read the
    change together. A name alone, "q", is every receiver of that name, one at a time. Without a
    path, effects are 0. Only one of sender and receiver may be a name alone.
    mlps: "frozen" keeps the outputs of MLPs from the base run; with "recomputed" the change also
    reaches the receiver through the MLPs in between. Heads in between are always frozen. Norms are
    recomputed from their input.
    into: "corrupt", only clean activations into corrupt runs, or "clean", only the reverse;
    directions that are not run are NaN. null=False: no patches of unrelated pairs; nulls are NaN.
    Each halves the work. progress: a bar that counts passes.

    Returns PathEffects: effects, intervals and null as `patch`, one number for each receiver; for
    the null, the sender's output comes from another pair. Raises ValueError for names that this
    model does not have, or a sender that writes after the receiver reads. Source: Wang et al. 2022;
    Goldowsky-Dill et al. 2023.

    >>> import minitx
    >>> from minitx import circuits
    >>> model = minitx.load("tiny-gpt2")
    >>> clean, corrupt = ["He said that", "His house was"], ["She said that", "Her house was"]
    >>> path = circuits.path_patch(
    ...     model, clean, corrupt, (" he", " she"), sender=(0, 1), receiver=("q", 1, 2)
    ... )
    >>> path.shape, path.intervals.shape, path.change.shape
    ((), (2,), (2, 4, 128))
    """
    if mlps not in ("frozen", "recomputed"):
        raise ValueError(f"mlps is {mlps!r}; wanted 'frozen' or 'recomputed'")
    check_into(into)
    pairs = read_pairs(model, clean, corrupt, prefix)
    number = read_measure(model, measure, pairs.clean, place)
    graph = Graph(model)
    paths = Paths.of(graph, sender, receiver)
    runs = Runs(graph, number, mlps == "recomputed")
    keep = kept(model, pairs.clean)
    traces = [side.run(model, keep) for side in pairs]
    others = unrelated_sets(model, pairs, unrelated, prefix, seed) if null else []
    into_corrupt = into_clean = None
    with bar(progress, "paths"):
        if into != "clean":
            of_clean = [other.clean for other in others]
            into_corrupt = paths.patched(runs, pairs.corrupt, traces, of_clean)
        if into != "corrupt":
            of_corrupt = [other.corrupt for other in others]
            into_clean = paths.patched(runs, pairs.clean, traces[::-1], of_corrupt)
    into_corrupt, into_clean = without_gaps(into_corrupt, into_clean)
    if not isinstance(unrelated, list):
        into_corrupt, into_clean = (
            Patched(side.values, side.null[..., 0]) for side in (into_corrupt, into_clean)
        )
    on_clean, on_corrupt = (number.values(trace["logits"]) for trace in traces)
    effects = PathEffects(on_clean, on_corrupt, into_corrupt, into_clean, seed)
    if not (paths.each_sender or paths.each_receiver):
        _add_changes(effects, runs, paths.senders, paths.receivers[0], traces)
    return effects


def _add_changes(effects, runs, senders, receiver, traces):
    """What the senders change of the stream that a receiver reads, and all that differs there."""
    clean, corrupt = traces
    before = runs.stream(receiver, corrupt, {})
    changed = runs.changes(senders, clean, corrupt)
    effects.change = runs.stream(receiver, corrupt, changed) - before
    effects.whole = runs.stream(receiver, clean, {}) - before


def _listed(given):
    """One name, or a list of them, as a list."""
    return given if isinstance(given, list) else [given]


def _senders(graph, given, receivers):
    """The senders that are asked for. Raises ValueError for one that no receiver reads."""
    if given is None:
        return [x for x in graph.senders if any(graph.reaches(x, r) for r in receivers)]
    senders = [graph.sender(name) for name in _listed(given)]
    for node in senders:
        if not any(graph.reaches(node, r) for r in receivers):
            names = ", ".join(map(str, receivers))
            raise ValueError(
                f"no path from {node} to {names}: it writes after they read, or to another stream; "
                "wanted a sender of an earlier step"
            )
    if len(receivers) > 1 and Node("logits") in receivers:
        raise ValueError("logits cannot be combined with other receivers; wanted only one kind")
    return senders


def kept(model, inputs):
    """The points of a run that paths are made of."""
    available = points(model, inputs.batch.types is not None)
    return [key for key in available if name_of(key) in WRITTEN]


class Paths(NamedTuple):
    """From where to where is patched: all at once, or one sender, or receiver, at a time."""

    senders: list[Node]
    receivers: list[Node]
    each_sender: dict  # {node: its index} of a name that was given alone; else {}
    each_receiver: dict

    @classmethod
    def of(cls, graph, sender, receiver) -> "Paths":
        """The paths between names; ValueError where there are none, or too many are asked for."""
        each_sender = each.named(graph.senders, sender)
        each_receiver = each.named(graph.receivers, receiver)
        if each_sender and each_receiver:
            text = f"sender is {sender!r} and receiver {receiver!r}, which are names alone"
            raise ValueError(
                f"{text}; wanted at most one of them, each of which is tried by itself"
            )
        receivers = [*each_receiver] or [graph.receiver(given) for given in _listed(receiver)]
        if each_sender:
            reach = [x for x in each_sender if any(graph.reaches(x, r) for r in receivers)]
            sender = reach or [*each_sender]
        senders = _senders(graph, sender, receivers)
        return cls(senders, receivers, each_sender, each_receiver)

    def patched(self, runs, base, traces, others) -> Patched:
        """The measure of the base texts with what senders write in other ones.

        traces: of these, and of the base. others: sets of unrelated Inputs; none, no null. The null
        has a last axis for these sets.
        """
        donor, trace = traces
        values = self.values(runs, base, trace, donor)
        null = [np.full_like(values, np.nan)] if not others else []
        model = runs.graph.model
        for other in others:
            null.append(self.values(runs, base, trace, other.run(model, kept(model, other))))
        return Patched(values, np.stack(null, axis=-1))

    def values(self, runs, base, trace, donor):  # -> [N ...]
        """The measure of each text with what the senders write in the donor's run."""
        if self.each_sender:
            return each.sender_by_sender(runs, self, base, trace, donor)
        changed = runs.changes(self.senders, donor, trace)
        if self.each_receiver:
            return each.receiver_by_receiver(runs, self, base, trace, changed)
        return runs.values(self.receivers, base, trace, changed)[0]


class Runs:
    """Runs of a graph's model in which receivers read a changed stream."""

    def __init__(self, graph: Graph, number, recompute_mlps=False):
        self.graph, self.number, self.recompute_mlps = graph, number, recompute_mlps
        self.later = Later(graph.model, number)

    def changes(self, senders, trace, base_trace):  # -> {Place: [N T D]}
        """What senders write more in one run than in another, by the place where they write it."""
        changed = {}
        for node in senders:
            place = self.graph.senders[node]
            more = self.graph.more(node, trace, base_trace)
            changed[place] = changed.get(place, 0.0) + more
        return changed

    def stream(self, receiver, trace, changed):  # -> [... N T D]
        """What a receiver reads in the run of a trace, with changes {Place: [... N T D]}."""
        place = self.graph.receivers[receiver]
        added = {where.step: more for where, more in changed.items() if where.stack == place.stack}
        stack = self.graph.stack_of(place)
        return stack.walk(place.step, trace, added, self.recompute_mlps)

    def values(self, receivers, base: Inputs, trace, changed):  # -> [S N]
        """The measure of runs in which receivers read these changes {Place: [S N T D]}."""
        N = len(base.batch.tokens)
        S = max((len(more) for more in changed.values() if more.ndim > 3), default=1)
        rows = np.tile(np.arange(N), S)
        texts = base.rows(rows)
        edits: dict = {}
        for receiver in receivers:
            stream = self.stream(receiver, trace, changed)
            x = np.broadcast_to(stream, (S, N, *stream.shape[-2:])).reshape(-1, *stream.shape[-2:])
            if receiver.name == "logits":
                return self.later.of_stream(x, rows, texts.head_tokens(self.graph.model)).reshape(
                    S, N
                )
            angle = self.graph.angle(receiver, trace)
            angle = None if angle is None else np.tile(angle, (S, 1, 1))
            value = self.graph.value(receiver, x, texts.batch.valid, angle)
            _add_edit(edits, receiver, value)
        first = min(receiver.layer for receiver in receivers)
        return self.later.values(texts, rows, first, trace, edits).reshape(S, N)


def _add_edit(edits, receiver, value):
    """Puts the value of a receiver where a run computes it, beside others of the same point."""
    if receiver.head is None:
        edits[f"{receiver.name}_out", receiver.layer] = lambda x: value
        return
    key = receiver.name, receiver.layer
    before = edits.get(key, lambda x: x)

    def edit(x):
        x = before(x)
        x[:, receiver.head] = value
        return x

    edits[key] = edit
