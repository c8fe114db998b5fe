"""Which heads write an answer, and does another head tell them what to write?

What one head at a time writes in a clean text is put where the logits read it, and nowhere else:
its direct effect. Then it is put where the heads with the largest direct effects read their
queries, keys or values. Other heads keep still; MLPs on the way are computed again. N pairs, L
layers, H heads.
"""

from typing import Literal

import numpy as np

from minitx import circuits

from ..measures import asked as questions
from ..measures import heads as names
from ..measures import patched
from ..runner import draw, maps, options, verdict
from ..runner.registry import NotApplicable, register
from ..runner.stream import UNSAVED

TOGETHER = 16  # pairs in one pass
WRITERS = 3  # heads that are taken for those that write the answer
PARTS = {"direct": "to the logits", "through": "to what writers read"}
ENOUGH = 0.3  # share of the answer from which one head is said to write it, or to tell a writer


def paths(
    model,
    run=UNSAVED,
    *,
    pairs: options.Pairs = "",
    measure: str = "",
    n_pairs: options.Size = 0,
    writers: str = "",
    reads: Literal["all", "q", "k", "v"] = "all",
    seed: options.Seed = 0,
):
    """Direct effects of all heads on an answer, and on what the heads that write it read.

    pairs: clean|corrupt, a file with a pair a line, clean|corrupt|right|wrong, or names ("": random
    words that are said twice)
    measure: right|wrong, two tokens, where the pairs do not say it
    n_pairs: pairs to read (0: all of a file, 24 that are drawn)
    writers: heads, as L9H6,L9H9 ("": of layers that read other heads the three that restore most
    directly)
    reads: what of the writers is changed: q, k, v, or all three
    seed: seed of the words or names, of unrelated pairs and of intervals
    """
    cfg = model.config
    if cfg.n_layers == 1:
        raise NotApplicable("paths go from one layer to another; this model has one")
    given = names.parse(writers, cfg) if writers else None
    asked = questions.asked(model, "paths", pairs, measure, n_pairs, seed)
    size = min(TOGETHER, len(asked.clean))

    def into(name, receivers):
        def measured(i, group):
            texts = group.clean, group.corrupt, group.answers
            how = group.options() | {"mlps": "recomputed", "seed": seed}
            effects = circuits.path_patch(model, *texts, "head", receivers, **how)
            return patched.values(name, effects, size)

        kept = patched.names([name])
        groups = run.gather(measured, asked.groups(size), f"pairs, {PARTS[name]}", keep=kept)
        return {key: np.concatenate([*x])[: len(asked.clean)] for key, x in groups.items()}

    values = into("direct", "logits")
    result = questions.likelier(values["clean"], values["corrupt"])
    result |= patched.effects("direct", values, seed)
    of_writers = given or _largest(result["restored_by_direct"])
    result["writers"] = np.array([names.name(*head) for head in of_writers])
    receivers = _receivers(of_writers, reads, cfg)
    result |= patched.effects("through", into("through", receivers), seed)
    for name in PARTS:
        result |= _best(name, result)
    return result


def _largest(by_head):
    """The heads with the largest effects behind the first layer: [(layer, head)]."""
    H = by_head.shape[1]
    order = np.argsort(-by_head[1:], axis=None, kind="stable")[:WRITERS]
    return [(1 + int(i) // H, int(i) % H) for i in order]


def _receivers(of_writers, reads, cfg):
    """What is read of heads; heads may share keys and values."""
    letters = "qkv" if reads == "all" else reads
    group = cfg.n_heads // cfg.n_kv
    receivers = []
    for layer, head in of_writers:
        for letter in letters:
            receivers.append((letter, layer, head if letter == "q" else head // group))
    return [*dict.fromkeys(receivers)]


def _best(name, r):
    """The head that restores most by a path, with its interval and null."""
    by_head = r[f"restored_by_{name}"]
    place = np.unravel_index(by_head.argmax(), by_head.shape)
    best = {name: by_head[place], f"{name}_head": names.name(*map(int, place))}
    best[f"{name}_interval"] = r[f"restored_ends_{name}"][(slice(None), *place)]
    best[f"{name}_lost"] = r[f"lost_by_{name}"][place]
    return best | {f"{name}_null": abs(r[f"restored_by_{name}_null"]).max()}


def says(r):
    """What the numbers show, in plain words."""
    writers = ", ".join(r["writers"].tolist())
    return (
        f"Of {r['n_pairs']} pairs {r['told']:.0%} have the right answer likelier in their clean "
        f"text (fair coins: {r['told_null']:.0%}). {_of(r, 'direct')} directly, most of all heads. "
        f"{_of(r, 'through')} through what {writers} read."
    )


def _of(r, name):
    low, high = r[f"{name}_interval"]
    return (
        f"{r[f'{name}_head']} restores {r[name]:.0%} of the answer ({low:.0%} to {high:.0%}; of an "
        f"unrelated pair at most {r[f'{name}_null']:.0%})"
    )


def answer(r):
    """Yes: one head restores much directly, and one through those that do, both beyond chance.

    Undecided where the model does not tell the answers.
    """
    measure = "share of the answer that the best head restores directly, and through the writers"
    value = f"{r['direct']:.0%} by {r['direct_head']}, {r['through']:.0%} by {r['through_head']}"
    chance = f"{r['direct_null']:.0%}, {r['through_null']:.0%} of unrelated pairs"
    both = [verdict.of(r, name, enough=ENOUGH) for name in PARTS]
    return questions.answer(r, verdict.every(*both), measure, value, chance)


def plot(r):
    """Maps of all heads: restored, by chance, and lost; directly, and through the writers."""
    L = len(r["restored_by_direct"])
    figure = draw.figure(12.5, 2 * (1.7 + 0.38 * max(L, 4)))
    titles = {
        "direct": "from a head directly to the logits",
        "through": f"from a head to what {', '.join(r['writers'].tolist())} read",
    }
    for row, (name, title) in zip(figure.subfigures(2, 1), titles.items()):
        row.suptitle(title, x=0.01, ha="left", fontsize="medium")
        panels = row.subplots(1, 3, sharey=True)
        columns = {"restored": "restored", "restored_null": "by chance", "lost": "lost"}
        scores = [r[_array(name, column)] for column in columns]
        largest = max(abs(x).max() for x in scores) or 1.0
        for axes, x, heading in zip(panels, scores, columns.values()):
            image = maps.draw_map(axes, x, largest, written=40)
            axes.set(xlabel="head", title=heading)
        panels[0].set_ylabel("layer")
        row.colorbar(image, ax=[*panels], label="share of the answer")
    return figure


def _array(name, column):
    """The name of an array: restored_by_direct_null of direct and restored_null."""
    way, _, null = column.partition("_")
    return f"{way}_by_{name}" + (f"_{null}" if null else "")


SHARE = "share of the answer"


def described(name, how):
    """The headline numbers of one path, in words."""
    return {
        name: f"{SHARE} that the best head restores {how}",
        f"{name}_null": f"{SHARE} that a head of an unrelated pair restores {how} at most",
        f"{name}_head": f"the head that restores most {how}",
        f"{name}_interval": f"95 % interval over pairs of the {SHARE} that it restores {how}",
        f"{name}_lost": f"{SHARE} that its corrupt run takes away {how}",
    }


register(
    paths,
    draw=plot,
    says=says,
    answer=answer,
    look=(
        "Above, blue heads write the answer into the logits themselves, red ones against it. "
        "Below, blue heads change what those heads read, and so what they write. By chance: what "
        "heads of an unrelated pair do. Lost is the other way round, corrupt pieces in the clean "
        "run, as the published work measures it; red there works against the answer."
    ),
    published=(
        "In GPT-2 small L9H6, L9H9 and L10H0 name the indirect object, L10H7 and L11H10 work "
        "against it, and L7H3, L7H9, L8H6 and L8H10 steer them (Wang et al. 2022)."
    ),
    numbers=described("direct", "directly")
    | described("through", "through what the writers read")
    | questions.TOLD,
    labels={"direct_interval": ("from", "to"), "through_interval": ("from", "to")},
    per_head=("restored_by_direct", "restored_by_through"),
)
