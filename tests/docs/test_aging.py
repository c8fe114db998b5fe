"""Numbers of the documents that change when the code or a bundled model does."""

import re
from pathlib import Path

import numpy as np
import pytest

from minitx import analysis
from minitx.analysis.pages import explore
from minitx.config import Config
from minitx.loading.families import FAMILIES
from minitx.loading.files import read_json

ROOT = Path(__file__).parents[2]
BASE = dict(
    d_model=768, d_mlp=3072, n_vocab=2, n_ctx=512, n_pos=512, n_types=0, eps=0.0, act="gelu"
)


@pytest.mark.parametrize("page", ["limits.md", "ja/limits.md"])
def test_how_many_tokens_a_page_shows(page):
    text = (ROOT / "docs/pages" / page).read_text(encoding="utf-8")
    [line] = [line for line in text.split("\n") if "explore" in line and "512" in line]
    base = Config(model_type="bert", n_layers=12, n_heads=12, **BASE)
    assert {str(explore.MOST), str(explore.most_tokens(base))} <= {*re.findall(r"\d+", line)}


@pytest.mark.parametrize("name", ["deep-roberta", "tiny-roberta"])
def test_where_positions_are_in_the_stream(name):
    text = (ROOT / "docs/pages/results.md").read_text(encoding="utf-8")
    mean = analysis.run("cca", name).arrays["mean_first"]
    assert ", ".join(f"{x:.2f}" for x in np.round(mean, 3)) in text


def test_every_type_that_loads_is_compared_with_the_library():
    golden = ROOT / "tests/golden"
    configs = [path.parent / "config.json" for path in golden.glob("**/reference.safetensors")]
    types = {read_json(path)["model_type"] for path in configs if path.is_file()}
    assert not {*FAMILIES} - types
