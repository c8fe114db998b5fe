"""How often verdicts say yes where they should, and where they must not: a table of docs/pages.

    python tests/tools/power.py          measures all and writes the tables
    python tests/tools/power.py dial     one experiment, printed

Documents have 64 tokens, or 512; a bundled model whose table is shorter has rows that are predicted
from those before them.

Planted: one, two or four heads that read positions and give a fixed offset 0.11, 0.2 or 0.5 of
their attention; for `notch` they read waves of 2 to 4 tokens alone. Null: heads whose direction
words alone make, of three kinds (directed.py), three seeds.
For `patch` and `paths` one, two or four heads copy the word before a hidden one, and as many write
it: each has all, half or a quarter of the answer. Null: random weights. For `cca` MLPs write over
none of the position waves, a quarter, three quarters or all.
For what only a trained model has (LEARNED) a share of every weight of bundled models is noise; for
what none of these has (BUILT) three sizes of it are built in.
"""

import itertools
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import directed
import documents
import numpy as np
import tiny
from constructed import ALL, FAST

import minitx
from minitx import analysis
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.measures import document_features
from minitx.circuits import repeated
from minitx.circuits.measure import token_id

PAGE = Path(__file__).parents[2] / "docs/pages/numbers.md"
VERDICTS = (
    *("conditions", "notch", "dial", "sources", "kernel", "profiles", "lags", "positions"),
    *("queries-keys", "singular-values", "extraction", "bases", "rotation", "components"),
    *("residual", "chain"),
)
OPTIONS = {"notch": {"losses": 0}, "dial": {"losses": 0}}
N_HEADS = 1, 2, 4
N_PAIRS = 24
ENDS = 4  # of a pair's tokens: those that begin and end a text, the word that differs, the hidden
SHARES = 0.11, 0.2, 0.5
LENGTHS = {64: 6, 512: 3}  # tokens -> documents
LAGS = (-1,), (-1, 2), (-1, 2, -3, 1)
KINDS = "words", "copied", "near"
SEEDS = range(3)
STAY = 1, 0.75, 0.25, 0  # share of the waves that nothing writes over
ROWS = {64: 60, 512: 8}  # tokens -> documents, enough for `cca`
LEARNED = (
    *("models", "attention", "norms", "probe", "reviews", "scale-positions", "inject-positions"),
    *("remove-positions", "mask-positions", "shift", "joint-space", "joint-grid", "predict"),
    *("projections", "slices", "attribution", "attribute", "heads", "circuit", "relearn"),
    "alignment",
)
BUNDLES = {64: ("tiny-stories", "tiny-gpt2", "tiny-roberta"), 512: ("tiny-bert", "tiny-roberta")}
OWN_BUNDLES = {  # where an experiment asks only some models
    "relearn": dict.fromkeys(LENGTHS, ("tiny-roberta",)),
    "alignment": {64: ("tiny-bart",), 512: ()},  # tiny-bart reads 64 tokens
}
BEFORE, RIDGE = 24, 0.02  # rows that predict the next one; added to their squares
UNASKED = {"shift": {"tokens"}, "attribution": {"tokens"}}  # which they choose themselves
UNASKED |= {name: {"documents"} for name in ("reviews", "relearn", "alignment")}
FEW = {64: {}, 512: {"documents": 8}}  # tokens -> options, where a model has learned
SPARSE = {("projections", 512): {"every": 128}}  # of its 14 models, and a pass for each token
NOISE = 0, 0.25, 0.5, 0.75  # share of each weight
SIZES = 0.25, 0.5, 1, 0  # of what is built in; the last is none of it
ANSWER = " he"  # that one head writes
AHEAD = 64  # positions by which documents are shifted: so far `predicted` goes on at no cost
PATCHES = "patch", "paths"
PAIRED = {7: SEEDS, 64: (0,)}  # tokens of their pairs -> seeds; one more patch for each token


def answer(name, model, **options):
    experiment = registry.get(name)
    return experiment.answer(experiment.run(model, **options)).verdict


def on_documents(name, model, tokens):
    own = registry.get(name).option_names
    asked = {"tokens": tokens, "documents": LENGTHS[tokens]}
    options = {key: n for key, n in asked.items() if key in own}
    return answer(name, model, **options, **OPTIONS.get(name, {}))


def planted(name, tokens):
    """Verdicts on models whose heads read positions."""
    waves = FAST if name == "notch" else ALL
    for lags, share in itertools.product(LAGS, SHARES):
        yield on_documents(name, directed.by_positions(lags, share, tokens, waves), tokens)


def null(kind, name, tokens):
    """Verdicts on models whose heads read words."""
    for seed in SEEDS:
        model = directed.by_words(kind, seed=seed, places=max(tokens, directed.T))
        yield on_documents(name, model, tokens)


def of_answers(n_heads, name, tokens):
    """Verdicts on models in which so many heads carry the answer."""
    for share, seed in itertools.product(SHARES, PAIRED[tokens]):
        model = directed.by_positions((-1,) * n_heads, share, max(64, tokens), written=True)
        with tempfile.TemporaryDirectory() as folder:
            pairs = Path(folder, "pairs.txt")
            pairs.write_text(words_before(model, tokens, seed), encoding="utf-8")
            yield answer(name, model, pairs=str(pairs))


def words_before(model, tokens, seed):
    """N_PAIRS lines; each pair differs in the word before a hidden one, which is the answer."""
    words = model.tokenizer.pieces(words_alone(model))
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(N_PAIRS):
        *others, x, y = rng.choice(words, 5, replace=False).tolist()
        same = "".join(itertools.islice(itertools.cycle(others), tokens - ENDS))
        lines.append(f"{same}{x}<mask>|{same}{y}<mask>|{x}|{y}\n")
    return "".join(lines)


def words_alone(model):
    """Ids of the words that are one token, with the blank before them."""
    ids = repeated.words(model)
    pieces = model.tokenizer.pieces(ids)
    return ids[[piece.startswith(" ") and piece[1:].isalpha() for piece in pieces]]


def of_random_weights(name, tokens):
    """Verdicts on random weights, asked for random words that occur twice."""
    for bundle, seed in itertools.product(("tiny-roberta", "tiny-gpt2"), PAIRED[tokens]):
        rng = np.random.default_rng(seed)
        yield answer(name, document_features.untrained(minitx.load(bundle), rng), seed=seed)


def readable(stay, name, tokens):
    """Verdicts on the models in which this share of the positions stays."""
    for size, seed in itertools.product(SHARES, SEEDS):
        model = directed.written_over(stay, size, seed, max(tokens, directed.T))
        yield answer(name, model, tokens=tokens, documents=ROWS[tokens])


def drawn_anew(name, tokens):
    """Verdicts on bundled models whose queries and keys have noise in place of weights."""
    for bundle, seed in itertools.product(("deep-roberta", "tiny-roberta", "tiny-gpt2"), SEEDS):
        model = of_length(bundle, tokens)
        random = document_features.untrained(model, np.random.default_rng(seed))
        layers = {w.index: {"W_Q": w.W_Q, "W_K": w.W_K} for w in random.layers}
        model = tiny.with_weights(model, layers)
        yield answer(name, model, tokens=tokens, documents=ROWS[tokens])


def weakened(share, name, tokens):
    """Verdicts on trained models of whose weights this share is noise of the same deviation."""
    seeds = SEEDS if share else SEEDS[:1]
    bundles = OWN_BUNDLES.get(name, BUNDLES)[tokens]
    own = set(registry.get(name).option_names) - UNASKED.get(name, set())
    for bundle, seed in itertools.product(bundles, seeds):
        asked = {"seed": seed, "tokens": tokens} | FEW[tokens] | SPARSE.get((name, tokens), {})
        options = {key: n for key, n in asked.items() if key in own}
        model = with_noise(of_length(bundle, tokens), share, seed)
        yield analysis.run(name, model, **options).answer.verdict  # on its own text


@cache
def of_length(bundle, tokens):
    """A bundled model with so many positions: its first ones, or those of `predicted`."""
    model = minitx.load(bundle)
    begin = model.config.offset
    table = model.weights.W_pos[: begin + model.config.n_ctx]
    if tokens > model.config.n_ctx:
        new = predicted(table[begin:].astype(float), tokens)
        table = np.concatenate([table[:begin], new]).astype(np.float32)
    return with_table(model, table[: begin + tokens])


def predicted(table, n):
    """n rows that go on as a table [T D] does: each is linear in the rows before it.

    The linear map is fitted by ridge regression; every new row is as long as the table's are.
    """
    mean = table.mean(axis=0)
    rows = [*(table - mean)]
    past = np.array([np.concatenate(rows[t - BEFORE : t]) for t in range(BEFORE, len(rows))])
    gram = past @ past.T + RIDGE * np.eye(len(past))
    to_next = past.T @ np.linalg.solve(gram, np.array(rows[BEFORE:]))
    length = np.linalg.norm(rows, axis=1).mean()
    while len(rows) < n:
        x = np.concatenate(rows[-BEFORE:]) @ to_next
        rows.append(x * length / np.linalg.norm(x))
    return np.array(rows) + mean


def with_table(model, rows):
    """The model with another position table, of so many positions."""
    config = replace(model.config, n_pos=len(rows), n_ctx=len(rows) - model.config.offset)
    return replace(tiny.with_weights(model, W_pos=rows), config=config)


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


def with_grown_norms(size, tokens, rng):
    """tiny-gpt2 with random rows of positions, the last 1 + 3 size times as long as the first."""
    model = minitx.load("tiny-gpt2")
    norm = np.linalg.norm(model.weights.W_E, axis=1).mean()
    rows = rng.standard_normal((tokens, model.config.d_model))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return with_table(model, norm * np.linspace(1, 1 + 3 * size, tokens)[:, None] * rows)


def with_strange_rows(size, tokens, rng):
    """tiny-roberta with this share of noise in the rows of positions that no document reaches."""
    ahead = min(tokens, AHEAD)
    model = of_length("tiny-roberta", tokens + ahead)
    rows = np.array(model.weights.W_pos)
    far = rows[-ahead:]
    far += size * (far.std() * rng.standard_normal(far.shape) - far)
    return with_table(model, rows)


def with_moved_keys(size, tokens, rng):
    """Random weights whose keys are their queries, all moved by a vector 2 size times as long."""
    model = document_features.untrained(of_length("tiny-roberta", tokens), rng)
    layers = {}
    for i, w in enumerate(model.layers):
        b = rng.standard_normal(w.b_K.shape)
        b *= 2 * size * np.linalg.norm(w.W_Q) / np.linalg.norm(b)
        layers[i] = {"W_K": w.W_Q, "b_Q": np.zeros_like(b), "b_K": b}
    return tiny.with_weights(model, layers=layers)


def with_written_answer(size, tokens, rng):
    """Random weights, but one head writes ANSWER alone, size times as long as the stream."""
    model = document_features.untrained(of_length("tiny-gpt2", tokens), rng)
    ids, last = drawn_words(model, tokens, rng), model.config.n_layers - 1
    x = minitx.run(model, ids[None], ["resid_post"])["resid_post", last]
    W_U = model.weights.W_U
    new = W_U[:, token_id(model, ANSWER)] - W_U.mean(axis=1)
    new *= size * np.linalg.norm(x[0, -1]) / np.linalg.norm(new)
    w, d = model.layers[last], model.config.d_head
    W_V, b_V, W_O = w.W_V.copy(), w.b_V.copy(), w.W_O.copy()
    W_V[:, :d] = b_V[:d] = 0  # of head 0
    b_V[0], W_O[0] = 1, new
    return tiny.with_weights(model, layers={last: {"W_V": W_V, "b_V": b_V, "W_O": W_O}})


def drawn_words(model, n, rng):  # -> [n]
    return rng.choice(words_alone(model), n)


def with_slices(size, model):
    """The model, whose heads read their own slice alone in this share of the layers."""
    H, d = model.config.n_heads, model.config.d_head
    blocks = np.kron(np.eye(H), np.ones((d, d))).astype(np.float32)  # on the diagonal
    cut = model.layers[: round(size * model.config.n_layers)]
    layers = {w.index: {"W_Q": w.W_Q * blocks, "W_K": w.W_K * blocks} for w in cut}
    return tiny.with_weights(model, layers=layers)


BUILT = {  # experiment -> its model, of a size, tokens and a generator; options
    "norms": (with_grown_norms, {}),
    "inject-positions": (
        lambda size, tokens, _: directed.forgetful(size, max(tokens, directed.T)),
        {"documents": 10},
    ),
    "shift": (with_strange_rows, {"steps": 3}),
    "joint-space": (with_moved_keys, {"distance": "euclidean"}),
    "joint-grid": (with_moved_keys, {"distance": "euclidean", "documents": 8}),
    "attribute": (with_written_answer, {}),
    "slices": (lambda size, tokens, _: with_slices(size, of_length("tiny-roberta", tokens)), {}),
}


def built_in(size, name, tokens):
    """Verdicts on models in which so much of what an experiment asks for is built in."""
    build, options = BUILT[name]
    reads = READS.get(name, documents_of)
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            model = build(size, tokens, np.random.default_rng(seed))
            own = reads(model, tokens, seed, folder)
            yield analysis.run(name, model, **options, **own).answer.verdict


def documents_of(_, tokens, *__):
    """What an experiment reads that chooses its documents."""
    return {"tokens": tokens}


def runs_of(_, tokens, seed, folder):
    """A file of runs of ids, which `forgetful` continues."""
    path = Path(folder, f"{seed}.txt")
    path.write_text(directed.runs(seed, 20 * tokens), encoding="utf-8")
    return {"ids": str(path), "tokens": tokens}


def words_asked(model, tokens, seed, _):
    """A prompt of drawn words; asked is ANSWER."""
    ids = drawn_words(model, tokens, np.random.default_rng(seed))
    return {"target": ANSWER, "prompt": "".join(model.tokenizer.pieces(ids))}


READS = {"inject-positions": runs_of, "attribute": words_asked}  # others: documents_of


def table(heads, columns, lengths, names):
    """A table with a row for each of these experiments and lengths: kinds of verdicts, counted."""
    rows = []
    for name, tokens in itertools.product(names, lengths):
        counts = [Counter(column(name, tokens)) for column in columns]
        if not any(counts):
            continue
        cells = [", ".join(f"{n} {kind}" for kind, n in each.most_common()) for each in counts]
        rows.append([f"`{name}`", str(tokens), *cells])
        print(*rows[-1], sep=" | ", file=sys.stderr)
    return documents.table(["", "tokens", *heads], rows) + "\n"


def of_each(verdicts, values):
    return [partial(verdicts, value) for value in values]


COLUMNS = "positions", "words", "words, copied", "words near the token"
ANSWERED = "one head has all", "two have half each", "four a quarter each", "random weights"
STAYED = "all waves stay", "three quarters", "a quarter", "none", "queries and keys drawn anew"
NOISY = "as trained", *(f"{share} of it noise" for share in NOISE[1:])
AMOUNTS = "a quarter built in", "half", "all", "none"
TABLES = {  # the place on the page: experiments; heads, columns, tokens
    "power": (
        VERDICTS,
        COLUMNS,
        [planted, *of_each(null, KINDS)],
        LENGTHS,
    ),
    "power of patches": (
        PATCHES,
        ANSWERED,
        [*of_each(of_answers, N_HEADS), of_random_weights],
        PAIRED,
    ),
    "power of cca": (
        ("cca",),
        STAYED,
        [*of_each(readable, STAY), drawn_anew],
        LENGTHS,
    ),
    "power with noise": (
        LEARNED,
        NOISY,
        of_each(weakened, NOISE),
        LENGTHS,
    ),
    "power built in": (
        BUILT,
        AMOUNTS,
        of_each(built_in, SIZES),
        LENGTHS,
    ),
}

if __name__ == "__main__":
    for place, (names, *columns) in TABLES.items():
        asked = [name for name in names if name in (sys.argv[1:] or names)]
        if asked and sys.argv[1:]:
            print(table(*columns, asked))
        elif asked:
            part, text = table(*columns, asked), PAGE.read_text(encoding="utf-8")
            PAGE.write_text(documents.filled(text, place, part), encoding="utf-8")
