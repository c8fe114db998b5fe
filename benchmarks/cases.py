"""What is measured, and what is wanted: the cases, their peers, and the ratios to reach.

A peer is written "system/task": a class of peers.py and one of its methods.
"""

from typing import NamedTuple

from . import corpus, peers, shapes

ONNX = "onnxruntime/nothing", "onnxruntime-fused/nothing"
LENS = (
    "transformer-lens/internals",
    "transformer-lens/internals_no_head",
    "transformer-lens/everything",
)
PRODUCTS = "products/nothing"
ALL = (
    "minitx/nothing",
    PRODUCTS,
    "minitx/pattern",
    "minitx/internals",
    "minitx/everything",
    "transformers/nothing",
    "transformers-eager/internals",
    *LENS,
    *ONNX,
)
WITHOUT_LENS = tuple(peer for peer in ALL if peer not in (*LENS, "minitx/everything"))
SIZES = {  # (batch, tokens): peers
    (1, 32): ALL,
    (1, 128): ALL,
    (1, 512): ALL,
    (8, 32): WITHOUT_LENS,
    (8, 128): (*WITHOUT_LENS, "numpy/product"),
}
ONE_THREAD = "minitx/nothing", PRODUCTS, "minitx/internals", "transformers-eager/internals", ONNX[0]
BEST = "minitx/nothing", "transformers/nothing", *ONNX
COLD = (
    "minitx/logits",
    "transformers/logits",
    "onnxruntime/logits",
    "onnxruntime-fused/logits",
    "onnxruntime-mapped/logits",
)
SMOLLM = "smollm-135m"
ANY = "roberta-small"  # where the peers read no weights: nothing large is made for these cases
IMPORTS = (
    "minitx/import",
    "transformers/import",
    "onnxruntime/import",
    "transformer-lens/import",
    "numpy/import",
)


class Case(NamedTuple):
    """Peers in turn on one input [B T]."""

    name: str
    what: str
    peers: tuple
    shape: str = "roberta-base"
    batch: int = 1
    tokens: int = 16
    rounds: int = 5  # in each set of processes
    sets: int = 3  # at most; one is enough where every turn is a new process
    threads: int = 2
    fresh: bool = False  # every turn is a new process, and its start counts
    busy: bool = False  # meanwhile another process computes on one of the cores
    compared: bool = True  # every peer is asked once beforehand, and the results are compared
    apart: bool = False  # has no table of its own: see corpus.py

    @property
    def group(self):
        """Cases with the same group share their processes."""
        return self.shape, self.threads, self.fresh


def _passes():
    """One pass over every size, on both shapes, and on one thread."""
    for shape, sets, rounds in ("roberta-base", 3, (5, 5, 3, 3, 3)), ("gpt2", 2, (3, 3, 2, 2, 2)):
        for ((batch, tokens), systems), n in zip(SIZES.items(), rounds):
            name = f"{shape.removesuffix('-base')}-{batch}x{tokens}"
            what = f"{shape} shape, {batch} x {tokens} tokens"
            yield Case(name, what, systems, shape, batch, tokens, n, sets)
    for batch, tokens, n in (1, 128, 4), (1, 512, 3), (8, 128, 2):
        name = f"roberta-{batch}x{tokens}-one-thread"
        what = f"roberta-base shape, {batch} x {tokens} tokens, one thread"
        yield Case(name, what, ONE_THREAD, "roberta-base", batch, tokens, n, sets=2, threads=1)


def _llamas():
    """A small Llama: passes and generation; beside NumPy's products, and memory read once."""
    systems = "minitx/nothing", PRODUCTS, "transformers/nothing"
    for tokens in 128, 512:
        what = f"SmolLM-135M shape, 1 x {tokens} tokens"
        yield Case(f"smollm-1x{tokens}", what, systems, SMOLLM, 1, tokens, rounds=3)
    what = f"{peers.NEW} tokens after 8, greedy, SmolLM-135M shape"
    systems = "minitx/generation", "transformers/generation", "numpy/read_all"
    yield Case("smollm-generation", what, systems, SMOLLM, tokens=8, rounds=3)


def _pipelines():
    """A measure of many documents, beside the reference library's batches with hooks."""
    systems = "minitx/profiles", PRODUCTS, "transformers-eager/profiles"
    for shape, batch, tokens in ("roberta-base", 8, 512), ("gpt2", 16, 128):
        name = f"documents-{shape.removesuffix('-base')}-{batch}x{tokens}"
        what = f"attention by offset of {batch} documents of {tokens} tokens, {shape} shape"
        yield Case(name, what, systems, shape, batch, tokens, rounds=3)


TASKS = (
    Case(
        "perplexity",
        "loss of 512 tokens, gpt2 shape",
        ("minitx/loss", "transformers/loss"),
        "gpt2",
        tokens=512,
    ),
    Case(
        "generation",
        f"{peers.NEW} tokens after 8, greedy, gpt2 shape",
        ("minitx/generation", "transformers/generation", "numpy/read_all"),
        "gpt2",
        tokens=8,
        rounds=3,
    ),
    Case(
        "busy-core",
        "1 x 512 tokens while another process holds a core",
        BEST,
        tokens=512,
        rounds=3,
        busy=True,
    ),
    Case("cold-start", "process start to first logits, 16 tokens", COLD, sets=1, fresh=True),
    Case(
        "memory",
        "a fresh process after loading and one pass of 512 tokens",
        (*BEST, "minitx/internals", "transformers-eager/internals"),
        tokens=512,
        rounds=2,
        sets=1,
        fresh=True,
        compared=False,
    ),
    Case(
        "import",
        "process start to imported",
        IMPORTS,
        ANY,
        rounds=3,
        sets=1,
        fresh=True,
        compared=False,
    ),
)
REPORT = Case(
    "report",
    f"minitx report {peers.MODEL}",
    ("command/report",),
    ANY,
    rounds=2,
    sets=1,
    compared=False,
)


def _factors():
    """Singular values and eigenvalues, on two threads and on one."""
    svd, eigenvalues = "singular values of W_Q W_K^T", "eigenvalues of W_Q W_K^T"
    dense = f"dense: {peers.DENSE} of {peers.HEADS} heads"
    for threads, end in (2, ""), (1, "-one-thread"):
        routes = "numpy/thin_svd", "numpy/dense_svd"
        yield Case(f"svd{end}", f"{svd}; {dense}", routes, ANY, rounds=3, threads=threads)
        routes = "numpy/small_eigenvalues", "numpy/dense_eigenvalues"
        name, what = f"eigenvalues{end}", f"{eigenvalues}; {dense}"
        yield Case(name, what, routes, ANY, rounds=3, threads=threads)


def _documents():
    """Experiments that read a corpus, for each number of documents."""
    once = {"rounds": 1, "sets": 1, "fresh": True, "compared": False, "apart": True}
    for n in corpus.DOCUMENTS:
        readers = corpus.readers(n)
        yield Case(corpus.case(n), f"{n} documents", readers, ANY, n, corpus.TOKENS, **once)


CASES = {
    case.name: case
    for case in (
        *_passes(),
        *_llamas(),
        *_pipelines(),
        *TASKS,
        *_factors(),
        REPORT,
        *_documents(),
    )
}


class Wanted(NamedTuple):
    """One number to reach: factor * seconds of the fastest of `over` / seconds of `under`.

    With a unit of "s" or "MB" it is a number of `under` alone.
    """

    what: str
    case: str
    under: str
    over: tuple
    must: float
    aim: float
    factor: float = 1.0
    # "s" and "MB": the median seconds, or private memory, of `under`; less is better
    unit: str = "×"

    @property
    def less(self):
        """Whether small is good."""
        return self.unit in ("s", "MB")


def _product_share(case):
    """Factor that makes seconds(product) / seconds(pass) the share of the product's rate."""
    m, n, k = peers.PRODUCT
    return shapes.flops(case.shape, case.batch, case.tokens) / (2 * m * n * k * peers.PRODUCTS)


def _wanted_of_internals():
    """Passes that return queries, keys, values, attention and hidden states."""
    eager = ("transformers-eager/internals",)
    for size, must, aim in (
        ("1x32", 1.5, 2),
        ("1x128", 1.6, 2.5),
        ("1x512", 1.85, 2.5),
        ("8x128", 1.9, 2.5),
    ):
        what = f"q, k, v, pattern, hidden states; reference library, eager: {size}"
        yield Wanted(what, f"roberta-{size}", "minitx/internals", eager, must, aim)
    for peer, head in zip(LENS[:2], ("", ", its head emptied")):
        for size in "1x128", "1x512":
            what = f"the same; run_with_cache{head}: {size}"
            yield Wanted(what, f"roberta-{size}", "minitx/internals", (peer,), 2, 3)


def _wanted_of_nothing():
    """Passes that return the final hidden states only."""
    for size, must, aim in ("1x128", 0.8, 1), ("1x512", 1.15, 1.3), ("8x128", 1.1, 1.3):
        what = f"nothing captured; ONNX Runtime: {size}"
        yield Wanted(what, f"roberta-{size}", "minitx/nothing", ONNX, must, aim)
    for size in "1x32", "1x128", "1x512", "8x128":
        what = f"NumPy's products of the same weights, share of a pass: {size}"
        yield Wanted(what, f"roberta-{size}", "minitx/nothing", (PRODUCTS,), 0.8, 0.9, unit="")
    case = CASES["roberta-8x128"]
    yield Wanted(
        "share of the matrix-product rate, 8x128",
        case.name,
        "minitx/nothing",
        ("numpy/product",),
        must=0.75,
        aim=0.9,
        factor=_product_share(case),
        unit="of the rate",
    )


WANTED_OF_TASKS = (
    Wanted("cold start; reference library", "cold-start", COLD[0], COLD[1:2], 10, 20),
    Wanted("cold start; ONNX Runtime", "cold-start", COLD[0], COLD[2:4], 1.5, 2),
    Wanted("1x512, a core held; reference library", "busy-core", BEST[0], BEST[1:2], 3, 5),
    Wanted("private memory, one 512-token pass", "memory", BEST[0], (), 60, 40, unit="MB"),
    Wanted(
        "greedy generation; reference library with its cache",
        "generation",
        "minitx/generation",
        ("transformers/generation",),
        must=1.8,
        aim=2.5,
    ),
    Wanted(
        "share of the memory bandwidth, generation",
        "generation",
        "minitx/generation",
        ("numpy/read_all",),
        must=0.75,
        aim=0.9,
        factor=shapes.read_by_a_token("gpt2") * peers.NEW / peers.READ,
        unit="of the limit",
    ),
    Wanted(
        "perplexity of 512 tokens; reference library",
        "perplexity",
        "minitx/loss",
        ("transformers/loss",),
        must=2,
        aim=3,
    ),
)
WANTED_OF_REPORT = Wanted(
    "minitx report tiny-roberta", "report", "command/report", (), 60, 20, unit="s"
)


def _wanted_of_factors():
    """Thin routes to singular values and eigenvalues over the dense ones."""
    scale = peers.HEADS / peers.DENSE
    for end, threads in (
        ("", "two threads"),
        ("-one-thread", "one thread, as the commands of minitx run"),
    ):
        what = f"thin SVD, 144 heads; dense ({threads})"
        dense = ("numpy/dense_svd",)
        yield Wanted(what, f"svd{end}", "numpy/thin_svd", dense, 40, 100, scale)
        what = f"eigenvalues, 144 heads; dense ({threads})"
        small, dense = "numpy/small_eigenvalues", ("numpy/dense_eigenvalues",)
        yield Wanted(what, f"eigenvalues{end}", small, dense, 200, 300, scale)


WANTED = (
    *_wanted_of_internals(),
    *_wanted_of_nothing(),
    *WANTED_OF_TASKS,
    *_wanted_of_factors(),
    WANTED_OF_REPORT,
)


def must():
    """The cases of the wanted numbers, with only those peers that the numbers need."""
    needed = {}
    for wanted in WANTED:
        needed.setdefault(wanted.case, set()).update((wanted.under, *wanted.over))
    cases = []
    for name, names in needed.items():
        systems = tuple(peer for peer in CASES[name].peers if peer in names)
        cases.append(CASES[name]._replace(peers=systems))
    return cases
