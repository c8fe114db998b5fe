"""Numbers that others published for well-known models of pictures, compared where these are here.

published_images.json holds them with their sources. All are of one photograph, COCO's 000000039769,
as .png or .jpg in the folder `pictures` of MINITX_DATA; a checkpoint or photograph that is not here
is skipped with what is missing. The comparison itself is tried on golden models.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file

import minitx
from minitx import images, weights

ENTRIES = json.loads((Path(__file__).parent / "published_images.json").read_text())
FOLDER = Path(os.environ.get("MINITX_DATA", "nowhere")) / "pictures"
CATS = [FOLDER / f"000000039769.{ending}" for ending in ("png", "jpg")]


def check(model, entry, tokens):
    """The first numbers of a point, or similarities with texts."""
    expected = np.array(entry["expected"])
    if entry["point"] == "similarity":
        y = minitx.similarity(model, tokens, entry["texts"])[0]
    else:
        y = minitx.run(model, tokens, entry["point"])[entry["point"]][0]
    first = y[tuple(map(slice, expected.shape))]
    np.testing.assert_allclose(first, expected, rtol=1e-4, atol=entry.get("atol", 1e-4))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_published_value(entry):
    photograph = next((path for path in CATS if path.is_file()), None)
    try:
        model = minitx.load(weights.find(entry["model"]))
    except FileNotFoundError as absent:
        pytest.skip(f"{entry['model']} is not on this machine. {str(absent).splitlines()[-1]}")
    if photograph is None:
        pytest.skip("COCO's 000000039769 is not in the folder `pictures` of MINITX_DATA")
    if "size" in entry:
        model = minitx.resized(model, *entry["size"])
    check(model, entry, model.encode(images=photograph).tokens)


@pytest.mark.parametrize(
    "variant, point",
    [("vit-image", "logits"), ("dinov2-bare", "ln_final"), ("clip-both", "similarity")],
)
def test_a_value_that_differs_is_noticed(variant, point):
    folder = tiny.GOLDEN / "images" / variant
    model, stored = minitx.load(folder), load_file(folder / "reference.safetensors")
    tokens = images.rows_of(stored["pixels"], model.config.picture)
    entry = {"point": point, "expected": stored[point][0][:3].copy()}
    if point == "similarity":
        entry |= {"texts": stored["text.ids"][:1], "expected": stored[point][0, :1].copy()}
    check(model, entry, tokens)
    entry["expected"].flat[-1] += 0.01
    with pytest.raises(AssertionError):
        check(model, entry, tokens)
