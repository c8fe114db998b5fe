"""Tokens, types, positions, masks and sources that do not go together: what is said of each."""

import numpy as np
import pytest
import tiny

import minitx

NO_SOURCE = r"this model \(bart\) is an encoder-decoder; it needs source= text or ids"
REFUSED = {  # variant -> tokens, what is given besides, and what is said
    "bert-masked": [
        ([3, 61], {}, "token ids: 61 is out of range; wanted 0 to 60"),
        ([5] * 13, {}, "13 tokens; this model reads at most 12"),
        ([1, 2], dict(types=[0, 2]), "token types: 2 is out of range; wanted 0 to 1"),
        ([1, 2], dict(types=[0]), r"types is \[1, 1\]; wanted the shape of tokens"),
        ([1, 2], dict(types=[0.0, 1.0]), "token types are float64; wanted whole numbers"),
        ([[1, 2], [1, 2]], dict(types=[[0], [0, 1]]), "types .*different lengths"),
        ([4], dict(source=[5]), r"source given, but this model \(bert\) has a single stack"),
    ],
    "gpt2-causal": [
        ([3, -1], {}, "token ids: -1 is out of range; wanted 0 to 60"),
        (np.ma.array([3, 4], mask=[0, 1]), {}, "token ids: 1 entries of a masked array are masked"),
        ([3.0, 4.0], {}, "token ids are float64; wanted whole numbers"),
        ([True, False], {}, "token ids are bool; wanted whole numbers"),
        ([2**70], {}, "token ids are object; wanted whole numbers"),
        (np.array(["a"]), {}, "token ids are <U1; wanted whole numbers"),
        ([[1, 2], [3]], {}, "token ids come in rows of different lengths; pad them"),
        ([[[1, 2]]], {}, r"tokens are \[1, 1, 2\]; wanted \[T\] or \[B T\]"),
        (5, {}, r"tokens are \[\]; wanted \[T\]"),
        ([], {}, r"tokens are \[0\]; wanted \[T\] or \[B T\], with at least one token"),
        (np.ones((0, 4), int), {}, r"tokens are \[0, 4\]; wanted .* at least one token"),
        ([[], []], {}, r"tokens are \[2, 0\]; wanted .* at least one token"),
        ([5] * 13, {}, "13 tokens; this model reads at most 12"),
        ([1, 2], dict(valid=[1, 1, 1]), r"valid is \[1, 3\]; wanted the shape of tokens, \[1, 2\]"),
        ([1, 2], dict(valid=[1, 2]), "valid: 2 is out of range; wanted 0 to 1"),
        ([[1, 2], [1, 2]], dict(valid=[[1], [1, 1]]), "valid .*different lengths"),
        ([1, 2], dict(positions=[0, 12]), "positions: 12 is out of range; wanted 0 to 11"),
        ([1, 2], dict(positions=[-1, 0]), "positions: -1 is out of range"),
        ([1, 2], dict(positions=[0.0, 0.5]), "positions are float64; wanted whole numbers"),
        (
            [1, 2],
            dict(positions=[0]),
            r"positions are \[1\]; wanted \[T\] or \[B T\] for tokens \[1, 2\]",
        ),
        (
            [1, 2],
            dict(mask=np.ones((2, 2))),
            r"mask is float64 \[2, 2\]; wanted bool, True where a",
        ),
        (
            [1, 2],
            dict(mask=np.ones((2, 3), bool)),
            r"mask is bool \[2, 3\].*\[B H T S\] = \[1, 3, 2, 2\]",
        ),
        ([1, 2], dict(mask=np.ones((1,) * 5, bool)), r"mask is bool \[1, 1, 1, 1, 1\]"),
        ([1, 2], dict(mask=lambda q, k: q - k), r"mask is int64 \[1, 1, 2, 2\]; wanted bool"),
        (
            [4],
            dict(source=[5]),
            r"source given, but this model \(gpt2\) has no encoder \(its own is model.encoder\)",
        ),
    ],
    "roberta-masked": [
        ([5] * 13, {}, "13 tokens; this model reads at most 12"),
        ([1, 2], dict(types=[0, 1]), "token types: 1 is out of range; wanted 0 to 0"),
        ([1, 2], dict(positions=[0, 12]), "positions: 12 is out of range"),
    ],
    "roberta-relu-pad3": [([5] * 13, {}, "13 tokens; this model reads at most 12")],
    "distilbert-masked": [
        ([1, 2], dict(types=[0, 0]), "types given, but distilbert has no token types")
    ],
    "bart-causal": [
        ([4, 5], {}, NO_SOURCE),
        ([4], dict(source=[61]), "token ids: 61 is out of range; wanted 0 to 60"),
        ([4], dict(source=[5.0]), "token ids are float64; wanted whole numbers"),
        ([4], dict(source=[]), r"tokens are \[0\]; wanted"),
        (
            [4],
            dict(source=[5, 6], source_valid=[1]),
            r"valid is \[1, 1\]; wanted the shape of tokens, \[1, 2\]",
        ),
        ([4], dict(source=[5], types=[0]), "types given, but bart has no token types"),
        (
            [4, 5],
            dict(source=[5], cross_mask=np.ones((2, 2), bool)),
            r"^cross_mask is bool \[2, 2\].*\[B H T S\] = \[1, 3, 2, 1\]",
        ),
    ],
    "bart-sequence": [([4, 5], {}, NO_SOURCE)],
    "t5-relu": [
        (
            [[4], [5]],
            dict(source=[5, 6]),
            "the source has 1 texts, the decoder's tokens 2; wanted one source for each",
        ),
        ([4], dict(source=[[5], [6]]), "the source has 2 texts, the decoder's tokens 1"),
        (
            [4, 5],
            dict(source=[5], cross_mask=lambda q, k: q - k),
            r"^cross_mask is int64 \[1, 1, 2, 1\]; wanted bool",
        ),
    ],
    "marian-separate": [([53], dict(source=[60]), "token ids: 53 is out of range; wanted 0 to 52")],
    "bart-scaled": [
        (
            [4, 5],
            dict(source=[5, 6, 7], enc_mask=np.ones((2, 2), bool)),
            r"^enc_mask is bool \[2, 2\].*\[B H T S\] = \[1, 2, 3, 3\]",
        )
    ],
    "marian-odd": [
        ([4, 5], dict(source=[5, 6], mask=np.ones((3, 2), bool)), r"^mask is bool \[3, 2\]")
    ],
}


@pytest.mark.parametrize("variant, row", [(x, row) for x in REFUSED for row in REFUSED[x]])
def test_input_that_is_refused(variant, row):
    tokens, inputs, message = row
    for entry in (minitx.forward, minitx.run):
        with pytest.raises(ValueError, match=message):
            entry(tiny.load(variant), tokens, **inputs)
