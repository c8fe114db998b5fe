"""What is measured, and what is wanted: the cases, who takes part in each, and the ratios that must come out.

A peer is written "system/task": a class of peers.py and a method of it.
"""
from typing import NamedTuple

from . import corpus, peers, shapes

ONNX = "onnxruntime/nothing", "onnxruntime-fused/nothing"
LENS = "transformer-lens/internals", "transformer-lens/internals_no_head", "transformer-lens/everything"
ALL = ("minitx/nothing", "minitx/pattern", "minitx/internals", "minitx/everything", "transformers/nothing",
       "transformers-eager/internals", *LENS, *ONNX)
SOME = tuple(peer for peer in ALL if peer not in (*LENS, "minitx/everything"))
SIZES = {(1, 32): ALL, (1, 128): ALL, (1, 512): ALL, (8, 32): SOME, (8, 128): (*SOME, "numpy/product")}
BEST = "minitx/nothing", "transformers/nothing", *ONNX
COLD = "minitx/logits", "transformers/logits", "onnxruntime/logits", "onnxruntime-fused/logits", \
    "onnxruntime-mapped/logits"
ANY = "roberta-small"  # where the peers read no weights: nothing large is made for these cases
IMPORTS = "minitx/import", "transformers/import", "onnxruntime/import", "transformer-lens/import", "numpy/import"


class Case(NamedTuple):
    """Peers in turn on one input [B T]."""
    name: str
    what: str
    peers: tuple
    shape: str = "roberta-base"
    batch: int = 1
    tokens: int = 16
    rounds: int = 5       # in each set of processes
    sets: int = 3         # at most so many; one is enough where every turn is a new process
    threads: int = 2
    fresh: bool = False   # every turn is a new process, and its start counts
    busy: bool = False    # another process computes on one of the cores meanwhile
    compared: bool = True  # everybody is asked once beforehand, and the results are compared
    apart: bool = False   # has no table of its own: see corpus.py

    @property
    def group(self):
        """Cases with the same group share their processes."""
        return self.shape, self.threads, self.fresh


def _forward(shape, batch, tokens, rounds, sets, who, threads=2):
    name = f"{shape.removesuffix('-base')}-{batch}x{tokens}{'-one-thread' if threads == 1 else ''}"
    what = f"{shape} shape, {batch} x {tokens} tokens" + (", one thread" if threads == 1 else "")
    return Case(name, what, who, shape, batch, tokens, rounds, sets, threads)


def _shapes():
    for shape, sets, rounds in ("roberta-base", 3, (5, 5, 3, 3, 3)), ("gpt2", 2, (3, 3, 2, 2, 2)):
        for ((batch, tokens), who), n in zip(SIZES.items(), rounds):
            yield _forward(shape, batch, tokens, n, sets, who)
    for batch, tokens, rounds in (1, 128, 4), (1, 512, 3), (8, 128, 2):
        yield _forward("roberta-base", batch, tokens, rounds, 2, (
            "minitx/nothing", "minitx/internals", "transformers-eager/internals", ONNX[0]), threads=1)


def _tasks():
    yield Case("perplexity", "loss of 512 tokens, gpt2 shape", ("minitx/loss", "transformers/loss"), "gpt2", 1, 512)
    yield Case("generation", f"{peers.NEW} tokens after 8, greedy, gpt2 shape",
               ("minitx/generation", "transformers/generation", "numpy/read"), "gpt2", 1, 8, 3)
    yield Case("busy-core", "1 x 512 tokens while another process holds a core", BEST, "roberta-base", 1, 512, 3,
               busy=True)
    yield Case("cold-start", "process start to first logits, 16 tokens", COLD, rounds=5, sets=1, fresh=True)
    yield Case("memory", "a fresh process after loading and one pass of 512 tokens",
               (*BEST, "minitx/internals", "transformers-eager/internals"), tokens=512, rounds=2, sets=1, fresh=True,
               compared=False)
    yield Case("import", "process start to imported", IMPORTS, ANY, rounds=3, sets=1, fresh=True, compared=False)
    for threads, name in (2, ""), (1, "-one-thread"):
        yield Case(f"svd{name}", f"singular values of W_Q W_K^T; dense: {peers.DENSE} of {peers.HEADS} heads",
                   ("numpy/thin_svd", "numpy/dense_svd"), ANY, rounds=3, threads=threads)
        yield Case(f"eigenvalues{name}", f"eigenvalues of W_Q W_K^T; dense: {peers.DENSE} of {peers.HEADS} heads",
                   ("numpy/small_eigenvalues", "numpy/dense_eigenvalues"), ANY, rounds=3, threads=threads)
    yield Case("report", f"minitx report {peers.MODEL}", ("command/report",), ANY, rounds=2, sets=1,
               compared=False)
    for n in corpus.DOCUMENTS:
        yield Case(corpus.case(n), f"{n} documents", corpus.readers(n), ANY, n, corpus.TOKENS, rounds=1, sets=1,
                   fresh=True, compared=False, apart=True)


CASES = {case.name: case for case in (*_shapes(), *_tasks())}


class Wanted(NamedTuple):
    """One number to reach: factor * seconds of the fastest of `over` / seconds of `under`, or a number of `under`."""
    what: str
    case: str
    under: str
    over: tuple
    must: float
    aim: float
    factor: float = 1.0
    unit: str = "×"        # "s" and "MB": the median seconds, or private memory, of `under`; less is better

    @property
    def less(self):
        """Whether small is good."""
        return self.unit in ("s", "MB")


def _product_share(case):
    """Factor that makes seconds(product) / seconds(pass) the share of the product's rate."""
    m, n, k = peers.PRODUCT
    return shapes.flops(case.shape, case.batch, case.tokens) / (2 * m * n * k * peers.PRODUCTS)


def _passes():
    eager = "transformers-eager/internals",
    for size, must, aim in ("1x32", 1.5, 2), ("1x128", 1.6, 2.5), ("1x512", 1.85, 2.5), ("8x128", 1.9, 2.5):
        yield Wanted(f"q, k, v, pattern, hidden states; reference library, eager: {size}", f"roberta-{size}",
                     "minitx/internals", eager, must, aim)
    for peer, how in zip(LENS[:2], ("", ", its head emptied")):
        for size in "1x128", "1x512":
            yield Wanted(f"the same; run_with_cache{how}: {size}", f"roberta-{size}", "minitx/internals", (peer,), 2, 3)
    for size, must, aim in ("1x128", 0.8, 1), ("1x512", 1.15, 1.3), ("8x128", 1.1, 1.3):
        yield Wanted(f"nothing captured; ONNX Runtime: {size}", f"roberta-{size}", "minitx/nothing", ONNX, must, aim)
    case = CASES["roberta-8x128"]
    yield Wanted("share of the matrix-product rate, 8x128", case.name, "minitx/nothing", ("numpy/product",), 0.75, 0.9,
                 _product_share(case), "of the rate")


def _others():
    yield Wanted("cold start; reference library", "cold-start", COLD[0], COLD[1:2], 10, 20)
    yield Wanted("cold start; ONNX Runtime", "cold-start", COLD[0], COLD[2:4], 1.5, 2)
    yield Wanted("1x512, a core held; reference library", "busy-core", BEST[0], BEST[1:2], 3, 5)
    yield Wanted("private memory, one 512-token pass", "memory", BEST[0], (), 60, 40, unit="MB")
    yield Wanted("greedy generation; reference library with its cache", "generation", "minitx/generation",
                 ("transformers/generation",), 1.8, 2.5)
    yield Wanted("share of the memory bandwidth, generation", "generation", "minitx/generation", ("numpy/read",), 0.75,
                 0.9, shapes.read_by_a_token("gpt2") * peers.NEW / peers.READ, "of the limit")
    yield Wanted("perplexity of 512 tokens; reference library", "perplexity", "minitx/loss",
                 ("transformers/loss",), 2, 3)
    scale = peers.HEADS / peers.DENSE
    for name, how in ("", "two threads"), ("-one-thread", "one thread, as the commands of minitx run"):
        yield Wanted(f"thin SVD, 144 heads; dense ({how})", f"svd{name}", "numpy/thin_svd", ("numpy/dense_svd",),
                     40, 100, scale)
        yield Wanted(f"eigenvalues, 144 heads; dense ({how})", f"eigenvalues{name}", "numpy/small_eigenvalues",
                     ("numpy/dense_eigenvalues",), 200, 300, scale)
    yield Wanted("minitx report tiny-roberta", "report", "command/report", (), 60, 20, unit="s")


WANTED = *_passes(), *_others()


def must():
    """The cases of the wanted numbers, with those peers only that the numbers are made of."""
    needed = {}
    for wanted in WANTED:
        needed.setdefault(wanted.case, set()).update((wanted.under, *wanted.over))
    return [CASES[name]._replace(peers=tuple(peer for peer in CASES[name].peers if peer in some))
            for name, some in needed.items()]
