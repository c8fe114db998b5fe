"""Where a neuron, a head or a direction is largest over a corpus, with context, beside chance.

One example for each text: its largest token. The null is the same count from the tokens of each
text in random order. T tokens, F numbers of a token at a point.

Order: the examples, `top_examples`, the search.
"""

import html
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Model
from ..learning.saved import write
from ..machine import show
from ..points import Key
from ..sampling import generator
from ..words.text import told_once
from .features import read_feature
from .passes import encode, point_of, random_of, reader, vectors

CONTEXT = 8  # tokens on either side
BINS = 30
PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>body {{font: 15px sans-serif; margin: 2em}} td {{padding: .1em .8em; vertical-align: bottom}}
.bar {{background: #0072b2; width: .8em; display: inline-block}}
.bars {{border-bottom: 1px solid; border-left: 1px solid; white-space: nowrap; padding: 0 .3em}}
.ends {{display: flex; justify-content: space-between}}</style>
<h1>{title}</h1><p>{null}</p>{largest}<h2>Texts drawn at random</h2>{random}
<h2>All tokens by value</h2><table><tr>
<td>number of tokens,<br>logarithmic,<br>at most {most:,}</td><td class="bars">{bars}</td></tr>
<tr><td></td><td class="ends"><span>{low:.3g}</span><span>value</span><span>{high:.3g}</span></td>
</tr></table>"""
SAME = (
    "; order does not matter: with tokens in random order it is as large, so it reads words alone"
)


class Example(NamedTuple):
    """One token of one text: `.context` has it between « and »."""

    value: float
    document: int
    position: int
    token: str
    context: str


class Examples(show.Shown):
    """Texts in which a feature is largest: `.largest` and `.random` are lists of Example.

    `.values` [n]: those of the largest, `.null` [n]: the largest of the same texts with their
    tokens in random order. `.untrained` [n]: the largest of a model with random weights, None if
    not asked for. `.counts` [30] and `.edges` [31]: the histogram of all tokens, of which
    there are `.n_tokens`, in `.n_texts`. `.save(path)` writes a page.
    """

    def __init__(self, what, largest, random, nulls, values, n_texts):
        self.largest, self.random = largest, random
        self.null, self.untrained = nulls
        self.values = np.array([example.value for example in largest])
        self.counts, self.edges = np.histogram(values, BINS)
        self.n_tokens, self.n_texts = len(values), n_texts
        texts = f"{len(largest):,} of {n_texts:,} texts"
        self._title = f"{what}: the largest in {texts}, of {self.n_tokens:,} tokens"

    def _summary(self):
        return self._table(self.largest, self._title)

    def _table(self, examples, title):
        rows = [(f"{x.value + 0.0:.4g}", x.document, x.position, x.context) for x in examples]
        lines = [self._beside(), *("  ".join(map(str, row)) for row in rows)]
        return show.Summary(title, lines, ("value", "document", "position", "context"), rows)

    def _beside(self):
        mean, null = self.values.mean(), self.null.mean()
        weights = ""
        if self.untrained is not None:
            weights = f"; with random weights: {self.untrained.mean():.4g}"
        same = SAME if np.allclose(self.values, self.null, rtol=1e-3) else ""
        said = f"mean of these values: {mean:.4g}; with tokens in random order: {null:.4g}"
        return f"{said}{weights}{same}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write a page: the examples, random ones, and the histogram."""
        heights = np.log1p(self.counts)
        heights = heights / heights.max()
        bars = [f'<span class="bar" style="height: {h:.2f}in"></span>' for h in heights]
        parts = {"title": html.escape(self._title), "null": self._beside()}
        parts["largest"] = self._table(self.largest, "").html()
        parts["random"] = self._table(self.random, "").html()
        parts["bars"] = "".join(bars)
        low, high = self.edges[0], self.edges[-1]
        page = PAGE.format(**parts, low=low, high=high, most=self.counts.max())
        write(Path(path), page)


@told_once()
def top_examples(
    model: Model | str | PathLike[str],
    documents: Iterable[Any],
    at: Key,
    feature: int | tuple[int, int] | ArrayLike | Callable[[np.ndarray], np.ndarray],
    n: int = 20,
    *,
    seed: int = 0,
    untrained: bool = False,
) -> Examples:
    """The n texts in which one feature is largest, each at its largest token, with their context.

    documents: texts, pairs, or rows of ids, in any iterable; they are read once.
    at: a point with one vector for each token. feature: a neuron's number (at ("post", 3), 17); at
    a point of heads a head's number, measured by the norm of its vector, or (head, column); a
    direction [F], measured by the dot product; or f(x [T F]) -> [T], such as a feature of a sparse
    autoencoder. seed: of the random order, texts and weights. untrained: also compute the same for
    a model of the same shape with random weights.
    Raises ValueError for a point or a feature that the model does not have, and for no documents.

    >>> import minitx
    >>> texts = ["The dog ran to the house.", "She was sad."]
    >>> examples = minitx.top_examples("tiny-stories", texts, at=("post", 3), feature=17, n=2)
    >>> len(examples.largest), examples.null.shape, examples.n_tokens
    (2, (2,), 11)
    """
    if isinstance(documents, str) or not isinstance(documents, Iterable):
        text = f"documents are {documents!r:.80}"
        raise ValueError(f"{text}; expected a list of texts, or another iterable of them")
    model = reader(model)
    point = point_of(model, at)
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n is {n!r:.80}; expected a number of texts, 1 or more")
    measure, name = read_feature(model, point, feature)
    search = Search(model, n, seed)
    noise = random_of(model, seed) if untrained else None
    for number, document in enumerate(documents):
        batch = encode(model, document, number)
        mixed = search.mixed(batch)
        values = measure(vectors(model, batch, [point])[point])
        null = measure(vectors(model, mixed, [point])[point])
        search.add(batch.tokens[0], values, null)
        if untrained:
            search.add_untrained(measure(vectors(noise, batch, [point])[point]))
    if not search.n_texts:
        raise ValueError("no documents; expected at least one")
    return search.examples(name)


class Search:
    """The largest tokens so far, random ones, and the largest by chance."""

    def __init__(self, model, n, seed):
        from ..analysis.texts import corpus

        self.model, self.n, self.n_texts = model, n, 0
        self.before, self.after = corpus.specials(model)
        self.rng = generator(seed)
        self.largest, self.random = [], []
        self.null, self.untrained, self.values = [], [], []

    def mixed(self, batch):
        """A text with its tokens but the special ones in random order."""
        ids = batch.tokens[0].copy()
        own = slice(0, len(ids))
        if self._has_ends(ids):
            own = slice(len(self.before), len(ids) - len(self.after))
        ids[own] = self.rng.permutation(ids[own])
        return batch._replace(tokens=ids[None])

    def _has_ends(self, ids):
        """Whether a text begins and ends with the special tokens of the tokenizer."""
        begin, end = len(self.before), len(ids) - len(self.after)
        has_begin = np.array_equal(ids[:begin], self.before)
        return has_begin and np.array_equal(ids[end:], self.after)

    def add(self, ids, values, null):
        """One more text."""
        top = int(np.argmax(values))
        drawn = int(self.rng.integers(len(values)))
        self.largest.append(self._example(ids, values, top))
        self.largest.sort(key=lambda x: -x[0])
        self._keep(self.null, null)
        slot = self.n_texts
        if slot >= self.n:  # each text is as likely to be among the n (Vitter 1985)
            slot = int(self.rng.integers(slot + 1))
        if slot < self.n:
            self.random[slot : slot + 1] = [self._example(ids, values, drawn)]
        del self.largest[self.n :]
        self.values.append(values)
        self.n_texts += 1

    def add_untrained(self, values):
        """The same text, in a model with random weights."""
        self._keep(self.untrained, values)

    def _keep(self, largest, values):
        largest.append(float(np.max(values)))
        largest.sort(reverse=True)
        del largest[self.n :]

    def _example(self, ids, values, position):
        begin = max(position - CONTEXT, 0)
        window = ids[begin : position + CONTEXT + 1]
        value = float(values[position])
        return value, self.n_texts, position, window, position - begin

    def examples(self, what):
        """What was seen, with the tokens as text."""
        self.random.sort(key=lambda x: -x[0])
        largest = [self._shown(*x) for x in self.largest]
        random = [self._shown(*x) for x in self.random]
        values = np.concatenate(self.values)
        nulls = np.array(self.null), np.array(self.untrained) if self.untrained else None
        return Examples(what, largest, random, nulls, values, self.n_texts)

    def _shown(self, value, document, position, window, own):
        from ..analysis.texts import corpus

        pieces = [str(piece) for piece in corpus.labels(self.model, window)]
        token = pieces[own]
        pieces[own] = f"«{token}»"
        return Example(value, document, position, token, " ".join(pieces).strip())
