"""What a pass costs, counted and not timed: multiplications, bytes of new memory.

Models have random weights and sizes at which work is spread over threads. B texts, T tokens,
S keys.
"""

import gc
import sys
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tiny

import minitx
from minitx.arrays import Layer, Weights
from minitx.loading.stored_shapes import SHAPES
from minitx.machine import threads

MIB = 1 << 20
# norm after and before, without and with a T x T mask
MASKED, CAUSAL = "roberta-masked", "gpt2-causal"


def sized(variant, L=2, D=320, H=5, M=1024, V=1000):
    """A random float32 model in the form of a golden one; its layers share their weights."""
    golden = tiny.load(variant, np.float32)
    P = 514
    rng = np.random.default_rng(0)
    sizes = {"V": V, "P": P, "N": golden.config.n_types, "D": D, "E": D, "M": M}
    sizes |= {"A": D, "K": D, "d": D // H}

    def drawn(part):
        arrays = {}
        for name, x in vars(part).items():
            if name in SHAPES and x is not None:
                shape = [sizes[axis] for axis in SHAPES[name]]
                arrays[name] = rng.standard_normal(shape, np.float32) * 0.05
        return arrays

    weights = vars(golden.weights) | drawn(golden.weights)
    weights["W_U"] = weights["W_E"].T
    layer = drawn(golden.layers[0])
    config = replace(golden.config, n_layers=L, d_model=D, n_heads=H, d_mlp=M, n_vocab=V)
    config = replace(config, n_pos=P, n_ctx=P - config.offset)
    layers = tuple(Layer(index=i, **layer) for i in range(L))
    return minitx.Model(config, Weights(**weights), layers)


def cores(n):
    """Sets the number of threads; the test is skipped where BLAS has none to set."""
    threads.limit(n)
    if threads.count() != n:
        pytest.skip("this BLAS cannot be told how many threads to use")


def record_products(monkeypatch):
    """A list of all products (a, b) that are done from now on."""
    products, matmul = [], np.matmul

    def recorded(a, b, **options):
        products.append((a, b))
        return matmul(a, b, **options)

    monkeypatch.setattr(np, "matmul", recorded)
    return products


def multiplications(products):
    return sum(a.size * b.shape[-1] for a, b in products)


def rows(products, W):
    """How many rows the whole of a matrix multiplied."""
    return multiplications(pair for pair in products if np.shares_memory(pair[0], W)) / W.size


def of_layers(cfg, B, T, S):
    """Multiplications of all layers, by the formula.

    Every weight once for every token, and q.k and pattern.v for every pair of tokens.
    """
    weights = 4 * cfg.d_model**2 + 2 * cfg.d_model * cfg.d_mlp
    return cfg.n_layers * (B * T * weights + 2 * B * T * S * cfg.d_model)


def calls(function):
    """How many functions Python calls while `function` runs, its own and those in C."""
    events = []

    def note(frame, event, argument):
        events.append(event)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return events.count("call") + events.count("c_call")


@contextmanager
def memory():
    """.peak and .kept: bytes of new memory at most, and at the end."""
    gc.collect()
    tracemalloc.start()
    used, before = SimpleNamespace(), tracemalloc.get_traced_memory()[0]
    try:
        yield used
        gc.collect()
        used.kept, used.peak = (size - before for size in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
