"""What losses may cost, counted: products with the vocabulary, memory; the same on any threads."""

import numpy as np
import tiny
from counting import CAUSAL, MIB, cores, memory, multiplications, of_layers, record_products, sized

from minitx.analysis.measures import losses


def test_losses_multiply_the_vocabulary_once_and_hold_little_of_it(monkeypatch):
    """500 tokens, 60,000 words: 114 MiB of logits in float32, 229 in float64."""
    model, T = sized(CAUSAL, L=1, D=64, H=4, M=64, V=60_000), 500
    tokens, V, D = tiny.ids(model, T), 60_000, 64
    products = record_products(monkeypatch)
    with memory() as used:
        losses.causal(model, tokens)
    at_once = losses.ROWS * losses.COLUMNS
    # measured 15.0 of 20 MiB: logits of a chunk in float32 and float64
    assert used.peak < 2.5 * 8 * at_once < 0.1 * 8 * T * V, used.peak / MIB
    assert multiplications(products) == of_layers(model.config, 1, T, T) + (T - 1) * D * V


def test_losses_do_not_depend_on_threads():
    model, costs = sized(CAUSAL, L=1, D=64, H=4, M=64, V=20_000), []
    for count in (1, 2):
        cores(count)
        costs.append(losses.causal(model, tiny.ids(model, 500)))
    assert np.abs(costs[0] - costs[1]).max() < 1e-5  # features in float32; measured 1.5e-8
