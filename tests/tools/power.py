"""How often verdicts say yes where they should, and where they must not: a table of docs/pages.

    python tests/tools/power.py          measures all and writes the table
    python tests/tools/power.py dial     one experiment, printed

Planted: one, two or four heads that read positions and give a fixed offset 0.11, 0.2 or 0.5 of
their attention, in documents of 64 and of 512 tokens; for `notch` they read waves of 2 to 4 tokens
alone. Null: heads whose direction words alone make, of three kinds (directed.py), three seeds.
For `patch` and `paths` one, two or four heads copy the word before a hidden one, and as many write
it: each has all, half or a quarter of the answer. Null: random weights. For `cca` MLPs write over
none of the position waves, a quarter, three quarters or all.
For what only a trained model has (LEARNED) a share of every weight of bundled models is noise; for
what none of these has (BUILT) three sizes of it are built in.
"""

import itertools
import re
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import directed
import numpy as np
import tiny
from constructed import ALL, FAST

import minitx
from minitx import analysis
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.measures import document_features
from minitx.arrays import Layer
from minitx.circuits import repeated

PAGE = Path(__file__).parents[2] / "docs/pages/numbers.md"
TABLE = re.compile(r"(?<=<!-- power -->\n).*?(?=<!-- end -->)", re.DOTALL)
ANSWERS = re.compile(r"(?<=<!-- power of patches -->\n).*?(?=<!-- end -->)", re.DOTALL)
READABLE = re.compile(r"(?<=<!-- power of cca -->\n).*?(?=<!-- end -->)", re.DOTALL)
WEAKENED = re.compile(r"(?<=<!-- power with noise -->\n).*?(?=<!-- end -->)", re.DOTALL)
BUILT_IN = re.compile(r"(?<=<!-- power built in -->\n).*?(?=<!-- end -->)", re.DOTALL)
VERDICTS = {  # experiment -> its options
    "conditions": {},
    "notch": {"losses": 0},
    "dial": {"losses": 0},
    "sources": {},
    "kernel": {},
    "profiles": {},
    "lags": {},
    "positions": {},
    "queries-keys": {},
    "singular-values": {},
    "extraction": {},
    "bases": {},
    "rotation": {},
    "components": {},
    "residual": {},
    "chain": {},
}
N_HEADS = 1, 2, 4
N_PAIRS = 24
SHARES = 0.11, 0.2, 0.5
LENGTHS = {64: 6, 512: 3}  # tokens -> documents
LAGS = (-1,), (-1, 2), (-1, 2, -3, 1)
KINDS = "words", "copied", "near"
SEEDS = range(3)
STAY = 1, 0.75, 0.25, 0  # share of the waves that nothing writes over
ROWS = {64: 60, 512: 8}  # tokens -> documents, enough for `cca`
BUNDLES = "tiny-stories", "tiny-gpt2", "tiny-roberta"
LEARNED = dict.fromkeys(
    (
        *("models", "attention", "norms", "probe", "reviews", "scale-positions"),
        *("inject-positions", "remove-positions", "mask-positions", "shift", "joint-space"),
        *("joint-grid", "predict", "projections", "slices", "attribution", "attribute", "heads"),
        "circuit",
    ),
    BUNDLES,
) | {"relearn": ("tiny-roberta",), "alignment": ("tiny-bart",)}
NOISE = 0, 0.25, 0.5, 0.75  # share of each weight
SIZES = 0.25, 0.5, 1, 0  # of what is built in; the last is none of it
PATCHES = {"patch": SEEDS, "paths": (0,)}  # seeds of pairs and of random weights


def answer(name, model, **options):
    """The verdict of an experiment."""
    experiment = registry.get(name)
    return experiment.answer(experiment.run(model, **options)).verdict


def on_documents(name, model, tokens):
    """The verdict on documents of so many tokens."""
    own = registry.get(name).option_names
    asked = {"tokens": tokens, "documents": LENGTHS[tokens]}
    options = {key: n for key, n in asked.items() if key in own} | VERDICTS[name]
    return answer(name, model, **options)


def planted(name, tokens):
    """Verdicts on the models whose heads read positions."""
    waves = FAST if name == "notch" else ALL
    for lags, share in itertools.product(LAGS, SHARES):
        yield on_documents(name, directed.by_positions(lags, share, tokens, waves), tokens)


def null(name, kind):
    """Verdicts on the models whose heads read words."""
    for seed in SEEDS:
        yield on_documents(name, directed.by_words(kind, seed=seed), 64)


def of_answers(name, n_heads):
    """Verdicts on the models in which so many heads carry the answer."""
    for share, seed in itertools.product(SHARES, PATCHES[name]):
        model = directed.by_positions((-1,) * n_heads, share, written=True)
        with tempfile.TemporaryDirectory() as folder:
            pairs = Path(folder, "pairs.txt")
            pairs.write_text(words_before(model, seed), encoding="utf-8")
            yield answer(name, model, pairs=str(pairs))


def words_before(model, seed):
    """N_PAIRS lines; each pair differs in the word before a hidden one, which is the answer."""
    pieces = model.tokenizer.pieces(repeated.words(model))
    words = [piece for piece in pieces if piece.startswith(" ") and piece[1:].isalpha()]
    rng = np.random.default_rng(seed)
    lines = [rng.choice(words, 5, replace=False).tolist() for _ in range(N_PAIRS)]
    said = [(f"{a}{b}{c}{x}<mask>", f"{a}{b}{c}{y}<mask>", x, y) for a, b, c, x, y in lines]
    return "".join("|".join(line) + "\n" for line in said)


def of_random_weights(name):
    """Verdicts on random weights, asked for random words that occur twice."""
    for bundle, seed in itertools.product(("tiny-roberta", "tiny-gpt2"), PATCHES[name]):
        rng = np.random.default_rng(seed)
        yield answer(name, document_features.untrained(minitx.load(bundle), rng), seed=seed)


def readable(name, stay, tokens):
    """Verdicts on the models in which this share of the positions stays."""
    for size, seed in itertools.product(SHARES, SEEDS):
        model = directed.written_over(stay, size, seed, max(tokens, directed.T))
        yield answer(name, model, tokens=tokens, documents=ROWS[tokens])


def drawn_anew(name):
    """Verdicts on bundled models whose queries and keys have noise in place of weights."""
    for bundle, seed in itertools.product(("deep-roberta", "tiny-roberta", "tiny-gpt2"), SEEDS):
        model = minitx.load(bundle)
        random = document_features.untrained(model, np.random.default_rng(seed))
        layers = tuple(map(_with_queries_and_keys, model.layers, random.layers))
        yield answer(name, replace(model, layers=layers))


def _with_queries_and_keys(own, other):
    """A layer whose queries and keys have the weights of another."""
    return Layer(**vars(own) | {"W_Q": other.W_Q, "W_K": other.W_K})


def weakened(name, share):
    """Verdicts on trained models of whose weights this share is noise of the same deviation."""
    seeds = SEEDS if share else SEEDS[:1]
    for bundle, seed in itertools.product(LEARNED[name], seeds):
        model = with_noise(minitx.load(bundle), share, seed)
        drawn = {"seed": seed} if "seed" in registry.get(name).option_names else {}
        yield analysis.run(name, model, **drawn).answer.verdict  # on its own text


def with_noise(model, share, seed):
    """(1 - share) of each weight and `share` of that of `untrained`."""
    noise = document_features.untrained(model, np.random.default_rng(seed))

    def mixed(own, other):
        arrays = dict(vars(own))
        for name, x in vars(other).items():
            if isinstance(x, np.ndarray):
                arrays[name] = ((1 - share) * np.asarray(arrays[name]) + share * x).astype(x.dtype)
        return type(own)(**arrays)

    layers = tuple(map(mixed, model.layers, noise.layers))
    return replace(model, weights=mixed(model.weights, noise.weights), layers=layers)


def with_grown_norms(size, rng):
    """tiny-gpt2 with random rows of positions, the last 1 + 3 size times as long as the first."""
    model = minitx.load("tiny-gpt2")
    n, width = model.weights.W_pos.shape
    lengths = np.linspace(1, 1 + 3 * size, n) * np.linalg.norm(model.weights.W_E, axis=1).mean()
    rows = rng.standard_normal((n, width))
    rows *= lengths[:, None] / np.linalg.norm(rows, axis=1)[:, None]
    return tiny.with_weights(model, W_pos=rows)


def with_moved_keys(size, rng):
    """Random weights whose keys are their queries, all moved by a vector `size` times as long."""
    model = document_features.untrained(minitx.load("tiny-roberta"), rng)

    layers = {}
    for i, w in enumerate(model.layers):
        b = rng.standard_normal(w.b_K.shape)
        b *= size * np.linalg.norm(w.W_Q) / np.linalg.norm(b)
        layers[i] = {"W_K": w.W_Q, "b_Q": np.zeros_like(b), "b_K": b}
    return tiny.with_weights(model, layers=layers)


def with_slices(size, _, name="tiny-roberta"):
    """A model whose heads read their own slice alone, in this share of the layers."""
    model = minitx.load(name)
    H, d = model.config.n_heads, model.config.d_head
    blocks = np.kron(np.eye(H), np.ones((d, d))).astype(np.float32)  # on the diagonal
    cut = model.layers[: round(size * model.config.n_layers)]
    layers = {w.index: {"W_Q": w.W_Q * blocks, "W_K": w.W_K * blocks} for w in cut}
    return tiny.with_weights(model, layers=layers)


BUILT = {  # experiment -> its model, of a size and a generator; options (ids: of a seed)
    "norms": (with_grown_norms, {}),
    "inject-positions": (
        lambda size, _: directed.forgetful(size),
        {"ids": directed.runs, "documents": 10, "tokens": 64},
    ),
    "joint-space": (with_moved_keys, {"distance": "euclidean"}),
    "joint-grid": (with_moved_keys, {"distance": "euclidean", "documents": 8}),
    "slices": (with_slices, {}),
}


def built_in(name, size):
    """Verdicts on models in which so much of what an experiment asks for is built in."""
    build, options = BUILT[name]
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            model, ids = build(size, np.random.default_rng(seed)), {}
            if "ids" in options:
                path = Path(folder, f"{seed}.txt")
                path.write_text(options["ids"](seed), encoding="utf-8")
                ids = {"ids": str(path)}
            yield analysis.run(name, model, **options | ids).answer.verdict


def row_of_built(name):
    """A row of the fifth table."""
    return counted(name, [built_in(name, size) for size in SIZES])


def row_of_weakened(name):
    """A row of the fourth table."""
    return counted(name, [weakened(name, share) for share in NOISE])


def row_of_readable(name):
    """A row of the third table."""
    columns = [readable(name, stay, 512) for stay in STAY]
    return counted(name, [readable(name, 1, 64), *columns, drawn_anew(name)])


def row(name):
    """A row of the first table."""
    columns = [planted(name, tokens) for tokens in LENGTHS]
    return counted(name, columns + [null(name, kind) for kind in KINDS])


def row_of_answers(name):
    """A row of the second table."""
    return counted(name, [of_answers(name, n) for n in N_HEADS] + [of_random_weights(name)])


def counted(name, columns):
    """A row: each kind of verdict, counted, in each column."""
    counts = [Counter(column) for column in columns]
    cells = [", ".join(f"{n} {kind}" for kind, n in each.most_common()) for each in counts]
    return f"| `{name}` | {' | '.join(cells)} |"


def table(heads, row, names):
    """A table with a row for each of these experiments."""
    lines = [f"| {' | '.join(['', *heads])} |", "|---" * (len(heads) + 1) + "|"]
    return "\n".join([*lines, *map(row, names)]) + "\n"


COLUMNS = [*(f"positions, {tokens} tokens" for tokens in LENGTHS)]
COLUMNS += ["words", "words, copied", "words near the token"]
ANSWERED = "one head has all", "two have half each", "four a quarter each", "random weights"
STAYED = "all waves stay, 64 tokens", "all, 512 tokens", "three quarters", "a quarter", "none"
STAYED += ("queries and keys drawn anew",)
NOISY = "as trained", *(f"{share} of it noise" for share in NOISE[1:])
AMOUNTS = "a quarter built in", "half", "all", "none"
TABLES = {  # the place on the page: experiments and their table
    TABLE: (VERDICTS, partial(table, COLUMNS, row)),
    ANSWERS: (PATCHES, partial(table, ANSWERED, row_of_answers)),
    READABLE: (("cca",), partial(table, STAYED, row_of_readable)),
    WEAKENED: (LEARNED, partial(table, NOISY, row_of_weakened)),
    BUILT_IN: (BUILT, partial(table, AMOUNTS, row_of_built)),
}

if __name__ == "__main__":
    for place, (names, written) in TABLES.items():
        asked = [name for name in names if name in (sys.argv[1:] or names)]
        if asked and sys.argv[1:]:
            print(written(asked))
        elif asked:
            text = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(place.sub(written(asked), text), encoding="utf-8")
