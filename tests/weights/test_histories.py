"""The bundled trainings are what their card says, and open as any other."""

import hashlib
import re

import numpy as np
import pytest

import minitx
from minitx import weights
from minitx.analysis.forming import seeds
from minitx.learning.parameters import parameters

CARD = (weights.find(weights.histories()[0]).parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", weights.histories())
def test_the_card_is_the_files_own(name):
    folder = weights.find(name)
    for file in ("model.safetensors", seeds.FILE):
        stated = re.search(rf"`{folder.name}/{file}` \| `([0-9a-f]{{64}})`", CARD)[1]
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == stated
    size = sum(path.stat().st_size for path in folder.parent.rglob("*") if path.is_file())
    assert size < 8 << 20


@pytest.mark.parametrize("name", weights.histories())
def test_a_history_opens_snapshot_by_snapshot(name):
    history = minitx.History.from_folder(name)
    assert len(history.snapshots) == 24 and history.snapshots[0] == 0
    assert history.snapshots[-1] == len(history.losses)
    assert np.mean(history.losses[-100:]) < history.losses[0] - 2
    last, first = history.model_after(history.snapshots[-1]), history.model_after(0)
    for key, x in parameters(minitx.load(name)).items():
        assert (x == parameters(last)[key]).all()
    assert abs(first.weights.W_E.std() - 0.08) < 0.002  # as it was drawn
    assert (first.tokenizer.encode("The dog") == last.tokenizer.encode("The dog")).all()
    assert first.tokenizer.decode(first.tokenizer.encode("The dog")) == "The dog"


def test_histories_are_found_and_are_none_of_the_bundled():
    name = weights.histories()[0]
    assert not {*weights.histories()} & {*weights.bundled(), *weights.zoo()}
    assert weights.fetch(name) == weights.find(name)
    with pytest.raises(FileNotFoundError, match=f"Did you mean {name}"):
        weights.find(name + "x")
