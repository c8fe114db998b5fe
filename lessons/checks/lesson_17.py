"""Checks of lesson 17: a picture cut into rows, an order of positions, a head's weights."""

import numpy as np

import minitx
from minitx.weights import shapes

from . import NOT_YET, Wrong
from .arrays import needs_function

SIDE, PATCH, COLOURS = 32, 4, 3
N = SIDE // PATCH  # patches down, and across
SHOWN = 40  # pictures that an order is tried on
WANTED = {"left": "above", "right": "below"}
SIZES = (32, 4), (224, 16), (224, 8), (30, 10)  # side of a picture, of a patch
INSIDE = {  # axes of a patch in another order -> hint
    (
        1,
        3,
        4,
    ): "in each patch the three colours of a pixel are adjacent; wanted all its red first",
    (4, 3, 1): "in each patch pixels go down before they go across",
}
LIKELY = (  # wrong numbers of weights, n patches along a side -> hint
    (lambda n, side: n**4, "the class token is missing: it asks and is looked at like a patch"),
    (lambda n, side: 1 + n**2, "these are the tokens; each has a weight for every token"),
    (lambda n, side: 1 + n**4, "the class token has a weight for every token, and each for it"),
    (lambda n, side: (1 + n) ** 2, "n patches along a side are n squared in the picture"),
    (lambda n, side: (1 + side**2) ** 2, "these are pixels; a token is a patch"),
)


def check_rows(answer):
    """Patches row by row; in each one colour after another, its pixels row by row."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda picture: picture.reshape(64, 48)")
    picture = np.random.default_rng(0).permutation(SIDE * SIDE * COLOURS)
    picture = picture.reshape(SIDE, SIDE, COLOURS)
    given = np.asarray(answer(picture.copy()))
    shape = N * N, PATCH * PATCH * COLOURS
    if given.shape != shape:
        raise Wrong(f"wanted {list(shape)}, this gives {list(given.shape)}")
    split = picture.reshape(N, PATCH, N, PATCH, COLOURS)

    def is_cut(*axes):
        return np.array_equal(given, split.transpose(axes).reshape(shape))

    if is_cut(0, 2, 4, 1, 3):
        return "right: 64 patches of 48 numbers"
    if np.array_equal(given, picture.reshape(shape)):
        raise Wrong("these are stripes: a patch is 4 pixels high; split rows and columns first")
    for inside, hint in INSIDE.items():
        if is_cut(0, 2, *inside):
            raise Wrong(hint)
    if is_cut(2, 0, 4, 1, 3):
        raise Wrong("the patches go down before they go across; wanted row by row")
    raise Wrong("64 rows of 48 numbers, but not those of the patches: row by row, colour by colour")


def check_order(answer):
    """An order of positions with which left is above, and right is below."""
    if answer is ...:
        return NOT_YET
    order = np.ravel(answer)
    if not np.array_equal(np.sort(order), np.arange(N * N)):
        raise Wrong(f"wanted each of the numbers 0 to {N * N - 1} once, such as grid[:, ::-1]")
    said = answers_with(order.astype(int))
    wrong = [f"{said[name]} where the circle is {name}" for name in WANTED]
    if said != WANTED:
        raise Wrong(f"it says {', '.join(wrong)}; wanted {' and '.join(WANTED.values())}")
    return "right: rows and columns are exchanged"


def answers_with(order):
    """What the model says most often of the pictures of each class in WANTED."""
    model = minitx.load("tiny-vit")
    pictures, classes = shapes.draw(SHOWN, seed=17)
    tokens = model.encode(images=list(pictures)).tokens
    places = np.append(0, 1 + order)
    edits = {"pos_embed": lambda rows: rows[:, places]}
    said = minitx.run(model, tokens, "logits", edits)["logits"].argmax(axis=1)
    most = {}
    for name in WANTED:
        of_class = said[classes == shapes.CLASSES.index(name)]
        most[name] = shapes.CLASSES[np.bincount(of_class).argmax()]
    return most


def check_weights(answer):
    """(1 + n²)², n patches along a side: a weight for each query and key."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda side, patch: side // patch")
    for side, patch in SIZES:
        given, n = answer(side, patch), side // patch
        for wrong, hint in LIKELY:
            if given == wrong(n, side):
                raise Wrong(hint)
        if given != (1 + n**2) ** 2:
            raise Wrong(f"side {side}, patch {patch}: wanted {(1 + n**2) ** 2}, this gives {given}")
    return "right: half the side, four times the patches, about sixteen times the weights"
