"""Which heads write the answer, and does an earlier head influence them?

What one head at a time writes in a clean text is put where the logits read it, and nowhere else:
its direct effect. Then it is put where the heads with the largest direct effects read their
queries, keys or values. Other heads keep still; MLPs on the way are computed again. N pairs, L
layers, H heads.
"""

from typing import Literal

import numpy as np

from minitx import circuits, head_weights

from ..contract import Asks, NotApplicable, Share, options, register
from ..drawing.maps import Map, Scale, maps
from ..drawing.panels import figures
from ..measures import contrast_pairs as questions
from ..measures import heads as names
from ..measures import patch_effects
from ..running.stream import UNSAVED

WRITERS = 3  # heads that are taken for those that write the answer
PARTS = {"direct": "to the logits", "through": "to what writers read"}
HOW = {"direct": "directly", "through": "through what the writers read"}
ENOUGH = 0.3  # share of the answer from which one head is said to write it, or to tell a writer


def paths(
    model,
    run=UNSAVED,
    *,
    pairs: options.Pairs = "",
    measure: options.Measure = "",
    n_pairs: options.Size = 0,
    writers: str = "",
    reads: Literal["all", "q", "k", "v"] = "all",
    seed: options.Seed = 0,
):
    """Direct effects of all heads on an answer, and on what the heads that write it read.

    pairs: clean|corrupt, a file with a pair a line, clean|corrupt|right|wrong, or names ("": random
    words that occur twice)
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
    questions.check_sum(model)
    asked = questions.asked(model, "paths", pairs, measure, n_pairs, seed)

    def into(name, receivers):
        def patched(_, group):
            texts = group.clean, group.corrupt, group.answers
            how = group.options() | {"mlps": "recomputed", "seed": seed}
            return circuits.path_patch(model, *texts, "head", receivers, **how)

        return patch_effects.by_pair(asked, [name], patched, f"pairs, {PARTS[name]}", run)

    by_path = {"direct": into("direct", "logits")}
    values = by_path["direct"]
    result = questions.likelier(values["clean"], values["corrupt"])
    result |= patch_effects.effects("direct", values, seed)
    of_writers = given or _largest(result["restored_by_direct"])
    result["writers"] = np.array([names.name(*head) for head in of_writers])
    receivers = _receivers(of_writers, reads, cfg)
    by_path["through"] = into("through", receivers)
    result |= patch_effects.effects("through", by_path["through"], seed)
    for name in PARTS:
        result |= _best(name, result)
        result[f"{name}_null"] = patch_effects.by_chance([name], by_path[name], "restored", seed)
    return result


def _largest(by_head):
    """The heads with the largest effects behind the first layer: [(layer, head)]."""
    H = by_head.shape[1]
    order = np.argsort(-by_head[1:], axis=None, kind="stable")[:WRITERS]
    return [(1 + int(i) // H, int(i) % H) for i in order]


def _receivers(of_writers, reads, cfg):
    """What is read of heads; heads may share keys and values."""
    letters = "qkv" if reads == "all" else reads
    receivers = []
    for layer, head in of_writers:
        for letter in letters:
            number = head if letter == "q" else head_weights.key_head(cfg, head)
            receivers.append((letter, layer, number))
    return [*dict.fromkeys(receivers)]


def _best(name, r):
    """The head that restores most by a path, with its interval."""
    by_head = r[f"restored_by_{name}"]
    place = np.unravel_index(by_head.argmax(), by_head.shape)
    best = {name: by_head[place], f"{name}_head": names.name(*map(int, place))}
    best[f"{name}_interval"] = r[f"restored_ends_{name}"][(slice(None), *place)]
    best[f"{name}_lost"] = r[f"lost_by_{name}"][place]
    return best


BY_HEAD = Scale("share of the answer")


def of_path(name, heading):
    """Maps of all heads by one path: restored, by chance, and lost."""
    return maps(
        Map(f"restored_by_{name}", "restored", BY_HEAD),
        Map(f"restored_by_{name}_null", "null: unrelated pairs", BY_HEAD),
        Map(f"lost_by_{name}", "lost by the reverse patch", BY_HEAD),
        heading=heading,
    )


def best_of(name):
    """What the best head by one path restores, as a template."""
    return (
        f"{{{name}_head}} restores {{{name}:.0%}} of the answer ({{{name}_interval:to .0%}}; of "
        f"unrelated pairs up to {{{name}_null:.0%}})"
    )


register(
    paths,
    look="In the first figure red heads write the answer into the logits themselves, blue ones "
    "against it. In the second red heads change what those heads read, and so what they "
    "write. The null: what heads of an unrelated pair do. Lost is the reverse patch, from "
    "the corrupt into the clean run, as the published work measures it; blue there works "
    "against the answer.",
    published="In GPT-2 small L9H6, L9H9 and L10H0 name the indirect object, L10H7 and L11H10 work "
    "against it, and L7H3, L7H9, L8H6 and L8H10 steer them (Wang et al. 2022).",
    numbers=[
        *(
            f"""
            {name}: share of the answer that the best head restores {how}
                null: share that the best head of unrelated pairs restores {how} in 99 of 100 draws
            fact {name}_head: the head that restores most {how}
            fact {name}_interval by from, to: 95% interval over pairs of the share of the answer
                that it restores {how}
            {name}_lost: share of the answer that its corrupt run takes away {how}
                no null: it is of the head that restores most, which has one
            """
            for name, how in HOW.items()
        ),
        questions.TOLD,
    ],
    answer=Asks(
        "share of the answer that the best head restores directly, and through the writers",
        value="{direct:.0%} by {direct_head}, {through:.0%} by {through_head}",
        chance="{direct_null:.0%}, {through_null:.0%} of unrelated pairs",
        rule=questions.if_told(Share("direct", enough=ENOUGH), Share("through", enough=ENOUGH)),
    ),
    says=[
        questions.TELLS,
        f"{best_of('direct')} directly, most of all heads. {best_of('through')} through what "
        "{writers} read.",
    ],
    draw=figures(
        of_path("direct", "from a head directly to the logits"),
        of_path("through", "from a head to what {writers} read"),
    ),
    per_head=("restored_by_direct", "restored_by_through"),
)
