"""How much is lost without the positions of patches?

Final features of the patches with the position table at zero, beside those of the whole model:
their cosine, and how often the class stays the same. Chance: features of another patch of the same
picture; classes of another picture. N pictures.
"""

import numpy as np

import minitx

from ...contract import options, register_of_pictures
from ...drawing import Bar, Line, When, bars, draw, row
from ...measures import pictures, residual_stream
from ...running.stream import UNSAVED

WAYS = "as it is", "shuffled", "at zero"


def remove_positions(
    model,
    run=UNSAVED,
    *,
    text: pictures.Source = "sample",
    documents: pictures.Count = 0,
    seed: options.Seed = 0,
):
    """Features and classes with the positions of the patches at zero, or shuffled."""
    places = pictures.grid_of(model)
    sample = pictures.sample(model, text, documents, seed)
    has_classes = model.config.task_head in ("image", "taught")

    def measure(i, tokens):
        rng = np.random.default_rng((seed, i))
        shuffled = pictures.shuffled_places(places, len(tokens), rng)
        ways = {}, {"positions": shuffled}, {"edits": {"pos_embed": np.zeros_like}}
        keep = ["ln_final", *(["logits"] if has_classes else [])]
        traces = [minitx.run(model, tokens, keep, **way) for way in ways]
        unit = residual_stream.unit_vectors
        features = np.array([unit(t["ln_final"][0, places.patches]) for t in traces])
        other = features[0][rng.permutation(places.n)]
        cosines = (features[1:] * features[0]).sum(axis=-1).mean(axis=-1)  # shuffled, zero
        sums = {"cosines": cosines, "null": (features[0] * other).sum(axis=-1).mean()}
        if has_classes:
            sums["classes"] = np.array([t["logits"][0].argmax() for t in traces])
        return sums

    sums = run.gather(measure, sample, "pictures", keep=("classes",))
    result = {"documents": len(sample), "ways": np.array(WAYS)}
    result |= dict(zip(("cosine_shuffled", "cosine"), sums["cosines"] / len(sample)))
    result["cosine_null"] = sums["null"] / len(sample)
    result["cosines"] = np.array([1.0, result["cosine_shuffled"], result["cosine"]])
    if has_classes:
        result |= _classes(sums["classes"], sample, pictures.knows_classes(model, sample), seed)
    return result


def _classes(classes, sample, is_known, seed):
    """How often classes [N 3] stay, and how often they are right where that is known."""
    own = classes[:, 0]
    order = np.random.default_rng(seed).permutation(len(own))
    kept = (classes == own[:, None]).mean(axis=0)
    by_chance = (own[order] == own).mean()
    result = {"kept": kept, "stays": kept[2], "stays_shuffled": kept[1], "stays_null": by_chance}
    result["kept_null"] = np.full(len(WAYS), by_chance)
    if is_known:
        result["right"] = (classes == sample.classes[:, None]).mean(axis=0)
        most = np.bincount(sample.classes).max() / len(own)
        result["right_null"] = np.full(len(WAYS), most)
    return result


def _draw_classes(axes, r):
    """How often the class is right, or stays, in each way."""
    if "stays" not in r:
        axes.set_axis_off()
        return
    name = "right" if "right" in r else "kept"
    label = {"right": "pictures whose class is right", "kept": "pictures whose class stays"}[name]
    panel = bars(
        Bar(name, label, draw.BLUE, null=f"{name}_null"),
        ticks="ways",
        null="null: the most frequent class, or that of another picture",
        ylabel=label,
    )
    panel(axes, r)


register_of_pictures(
    remove_positions,
    look="Where the bars of the second and third condition fall to the line, the classes are "
    "lost with the positions.",
    numbers="""
        cosine: cosine of the patches' final features with those without positions, mean
            null: cosine with the features of another patch of the same picture
        cosine_shuffled: the same with positions in random order
            no null: that of the other one
        stays: pictures whose class is the same without positions
            null: share of pictures whose class is that of another picture
        stays_shuffled: the same with positions in random order
            no null: that of the other one
        right by ways: pictures whose class is right, with the positions as they are, in random
            order, at zero
            null: share of the most frequent class
        fact documents: pictures read
    """,
    says=[
        "Without positions the patches' final features have a cosine of {cosine:.3f} with those of "
        "the whole model, with positions in random order {cosine_shuffled:.3f} (another patch of "
        "the same picture: {cosine_null:.3f}).",
        When(
            "stays_null",
            " The class stays the same in {stays:.0%} of {documents} pictures without positions, "
            "in {stays_shuffled:.0%} with positions in random order (another picture: "
            "{stays_null:.0%}).",
        ),
    ],
    draw=row(
        bars(
            Bar("cosines", "features", draw.BLUE),
            levels=[Line("cosine_null", "null: another patch", "--", draw.GREY)],
            ticks="ways",
            ylabel="cosine with the whole model's features",
        ),
        _draw_classes,
    ),
)
