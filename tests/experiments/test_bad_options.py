"""Options with which an experiment cannot run are named before any pass, with what is allowed."""

import pytest

import minitx
from minitx.analysis.contract import registry

ROWS = {}  # kind of model -> experiment, options, what is said
ROWS["bundled"] = [
    ("cca", {"documents": 1}, "--documents is 1; wanted 2 or more"),
    (
        "cca",
        {"documents": 4, "tokens": 16},
        "half of 4 have 28 ordinary tokens, and 128 [+] 12 directions fit so few tokens "
        "by chance; wanted 22 documents or more",
    ),
    ("cca", {"documents": 40, "tokens": 12, "components": 11}, "--components is 11; wanted 1 to 9"),
    ("dial", {"layer": 4}, r"--layer is 4; wanted -1, or one of \[0, 1, 2, 3\]"),
    ("dial", {"tokens": 24}, "documents have 22 ordinary tokens; wanted 28 or more to move"),
    ("dial", {"documents": 1}, "--documents: 1 read; an interval over documents"),
    ("dial", {"documents": 10**6}, "wanted 1000000"),
    ("chain", {"turn": "L9H0"}, "'L9H0' is not a head of this model: wanted L0H0 to L3H3"),
    ("chain", {"turn": "L3H1"}, "--turn L3H1: no layer is deeper; wanted heads of layers 0 to 2"),
    ("notch", {"layer": 4}, r"--layer is 4; wanted -1, or one of \[0, 1, 2, 3\]"),
    ("notch", {"bands": 8, "tokens": 64}, "8 bands are too many for 62 positions; wanted 1 to 4"),
    ("notch", {"documents": 1}, "--documents: 1 read"),
    ("conditions", {"tokens": 8}, "--tokens is 8; wanted 11 to 256"),
    ("conditions", {"head": "L9H0"}, "'L9H0' is not a head of this model"),
    ("conditions", {"documents": 10**6}, "documents of 256 tokens each; wanted 1000000"),
    ("positions", {"text": "/nowhere.txt"}, "no text file '/nowhere.txt'"),
    ("profiles", {"documents": -1}, "--documents is -1; wanted 1 or more"),
    (
        "profiles",
        {"documents": 10**6},
        r"'sample' has \d+ tokens .2 of them special., \d+ documents of 256 tokens each; ",
    ),
    (
        "profiles",
        {"tokens": 257},
        "--tokens 257: this model reads 4 to 256 tokens, special tokens included",
    ),
    ("profiles", {"tokens": 1}, "--tokens 1: this model reads 4 to 256 tokens"),
    (
        "profiles",
        {"documents": 1, "clusters": 99},
        "1 documents x 16 heads are too few for --clusters 99",
    ),
    ("profiles", {"reach": 256}, "--reach is 256; wanted 1 to 255"),
    ("attention", {"head": "L9H0"}, "'L9H0' is not a head of this model: wanted L0H0 to L3H3"),
    ("attention", {"head": "L0H0,L0H4"}, "'L0H4' is not a head of this model: wanted L0H0 to L3H3"),
    ("attention", {"head": "3,1"}, "'3' is not a head of this model"),
    ("predict", {"sentence": ""}, "--sentence '' has no token to predict"),
    ("rotation", {"tokens": 8}, "--tokens is 8; wanted 11 to 256"),
    ("rotation", {"head": "L0H9"}, "'L0H9' is not a head of this model: wanted L0H0 to L3H3"),
    ("rotation", {"documents": 1000}, "wanted 1000"),
    ("rotation", {"head": ","}, "--head names no head: wanted L0H0,L1H2 or auto"),
    ("lags", {"reach": 256}, "--reach is 256; wanted 10 to 255"),
    ("lags", {"tokens": 10}, "--tokens is 10; wanted 11 to 256"),
    ("models", {"others": "tiny-bard"}, "'tiny-bard' is not a bundled model"),
    ("sources", {"documents": 1}, "--documents is 1; wanted 2 or more"),
    ("sources", {"tokens": 8}, "--tokens is 8; wanted 11 to 256"),
    ("sources", {"head": "L9H0"}, "'L9H0' is not a head of this model"),
    ("queries-keys", {"head": "L9H0"}, "'L9H0' is not a head of this model: wanted L0H0 to L3H3"),
    (
        "queries-keys",
        {"columns": "0,32"},
        "--columns '0,32': wanted up to 6 of the columns 0 to 31, joined by commas",
    ),
    ("queries-keys", {"columns": "-1"}, "--columns '-1': wanted"),
    ("queries-keys", {"columns": ""}, "--columns '': wanted"),
    ("queries-keys", {"columns": "0,1,2,3,4,5,6"}, "wanted up to 6 of the columns"),
    (
        "queries-keys",
        {"low": 9, "high": 5},
        "--low 9 --high 5: wanted a band within 1 to 128 cycles, low before high",
    ),
    ("queries-keys", {"high": 129}, "--high 129: wanted a band within 1 to 128"),
    ("queries-keys", {"low": -2}, "--low -2"),
    ("queries-keys", {"reach": 200}, "--reach is 200; wanted 1 to 128"),
    ("queries-keys", {"show": 300}, "--show is 300; wanted 8 to 256"),
    ("queries-keys", {"input": "positions", "tokens": 300}, "--tokens is 300; wanted 16 to 256"),
    ("extraction", {"frequency": 129}, "--frequency is 129; wanted 1 to 128"),
    ("extraction", {"documents": -1}, "--documents is -1; wanted 1 or more"),
    ("singular-values", {"components": 128}, "--components is 128; wanted 1 to 127"),
    ("components", {"components": 65}, "--components is 65; wanted 1 to 64"),
    ("components", {"documents": 1}, "--documents is 1; wanted 2 or more"),
    ("bases", {"head": "L0H0,L0H1"}, "--head 'L0H0,L0H1' names 2 heads; wanted one, or auto"),
    ("relearn", {"tokens": 20}, "--tokens 20: spread documents have 34 to 256 here"),
]

ROWS["causal"] = [
    ("components", {"tokens": 2}, "--tokens is 2; wanted 4 or more"),
    ("shapes", {"sentence": ""}, "--sentence '' has no tokens"),
    ("joint-space", {"top": 137}, "--top is 137; wanted 0 to 136"),
    (
        "predict",
        {"sentence": "He <mask> out."},
        "has a mask, but a causal model predicts only the next token",
    ),
    (
        "joint-space",
        {"pairs": "capybara:sleeping"},
        "these keys are to the right of the queries, where this model does",
    ),
    (
        "remove-positions",
        {"ways": "none"},
        "--ways: 'none' is not a table; available: zero, mean, shuffled, shifted",
    ),
    ("remove-positions", {"stride": 32}, "--stride is 32; wanted 0 to 31"),
    ("remove-positions", {"stride": 8}, "--stride 8 needs --whole:"),
    (
        "remove-positions",
        {"documents": 1},
        "--documents: 1 read; an interval over documents needs at least 2",
    ),
    (
        "mask-positions",
        {"family": "window", "parameter": "x"},
        r"--parameter 'x': wanted numbers joined by commas, such as 8 or 8,0\.1",
    ),
    (
        "mask-positions",
        {"parameter": "8"},
        "--parameter '8' needs exactly one --family; available: linear",
    ),
    ("mask-positions", {"documents": 2}, "--documents is 2; wanted 3 or more"),
    ("mask-positions", {"documents": 1, "evaluations": 0}, "--documents is 1; wanted 2 or more"),
    ("mask-positions", {"sentence": ""}, "--sentence '' has 0 tokens; wanted 2 or more"),
    (
        "probe",
        {"mask": "wave"},
        "--mask 'wave': 'wave' is not a family of masks; available: linear.*linear,window:8",
    ),
    (
        "probe",
        {"mask": "linear:x"},
        "--mask 'linear:x': could not convert.*wanted names joined by commas",
    ),
    ("probe", {"documents": 5}, "--documents: 5 read; an interval over documents needs at least 6"),
    ("norms", {"documents": 5}, "--documents: 5 read; an interval over documents needs at least 6"),
    ("shift", {"documents": 1}, "--documents: 1 read; an interval over documents needs at least 2"),
    ("shift", {"tokens": 32}, "--tokens is 32; wanted 2 to 31"),
]

ROWS["bert"] = [
    ("joint-space", {"top": 325}, "--top is 325; wanted 0 to 324"),
    ("joint-space", {"documents": 2, "tokens": 999}, "--tokens 999: this model reads at most 256"),
    ("joint-space", {"head": "L9H0"}, "'L9H0' is not a head of this model"),
    (
        "joint-space",
        {"pairs": "brown:llama"},
        r"--pairs: 'llama' is not in the sentence; there are '\[CLS\]', 'the', 'br', '##own'",
    ),
    ("joint-space", {"pairs": "brown"}, "--pairs 'brown': wanted query:key, as in brown:capybara"),
    (
        "joint-space",
        {"sentence": "a"},
        "--sentence 'a' has 1 token, special ones not counted; wanted 2",
    ),
    (
        "joint-space",
        {"sentence": "capybara", "words": True},
        "--sentence 'capybara' has 1 word, special ones not counted; wanted 2",
    ),
    (
        "joint-space",
        {"pairs": "brown:"},
        "--pairs 'brown:': wanted query:key, as in brown:capybara",
    ),
    ("joint-space", {"sentence": ""}, "--sentence '' has 0 tokens"),
    (
        "joint-space",
        {"sentence": "word " * 300},
        r"--sentence has \d+ tokens; this model reads at most 256",
    ),
    ("joint-grid", {"tokens": 257}, "--tokens 257: this model reads at most 256"),
    ("joint-grid", {"tokens": 3}, "--tokens is 3; wanted 4 or more"),
    ("joint-grid", {"documents": -2}, "--documents is -2; wanted 1 or more"),
]


@pytest.mark.parametrize("kind, row", [(kind, row) for kind in ROWS for row in ROWS[kind]])
def test_bad_options_are_noticed_before_any_pass(request, monkeypatch, kind, row):
    name, options, message = row
    monkeypatch.setattr(minitx.model, "block", None)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        registry.get(name).run(request.getfixturevalue(kind), **options)


def test_without_blocks_there_is_no_pass(bundled, monkeypatch):
    monkeypatch.setattr(minitx.model, "block", None)
    with pytest.raises(TypeError, match="not callable"):
        registry.get("attention").run(bundled)
