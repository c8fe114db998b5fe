"""What a model of the stories learned of each kind, beside chance, bigrams and rules of thumb.

    python -m minitx.weights.training.stories_measure FOLDER            accuracy of each kind
    python -m minitx.weights.training.stories_measure FOLDER --parts    heads and edges of each

Each kind is asked with items drawn by another seed than those of training. Read downward: the
model, bigrams, rules, the tables.
"""

import argparse
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import minitx
from minitx import analysis
from minitx.weights import stories
from minitx.weights.training.train_stories import PLAN, Drawn

ITEMS, SEED = 1000, 1000  # of each kind
BATCH = 256  # texts a pass
READ = 2000  # rows of training text that bigrams are counted in


# ---- the model


def predicted(model: minitx.Model, items: list[stories.Item]) -> list[str]:
    """The most probable word in the place of each answer."""
    is_masked = not model.config.causal
    texts = [masked(item) if is_masked else item.clean for item in items]
    ids = [model.tokenizer.encode(text, special=False) for text in texts]
    columns = [len(stories.words_of(item.clean)) - (not is_masked) for item in items]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    tops = {}
    for length in sorted({len(row) for row in ids}):
        of_length = [i for i in order if len(ids[i]) == length]
        for begin in range(0, len(of_length), BATCH):
            batch = of_length[begin : begin + BATCH]
            stream = minitx.forward(model, np.array([ids[i] for i in batch]))
            rows = stream[np.arange(len(batch)), [columns[i] for i in batch]]
            tops |= zip(batch, minitx.logits(model, rows[:, None])[:, 0].argmax(-1).tolist())
    words = *stories.vocabulary(), stories.MASK
    return [words[tops[i]] for i in range(len(ids))]


def masked(item: stories.Item) -> str:
    """The text of an Item with its answer hidden."""
    return f"{item.clean} {stories.MASK}{item.text[len(item.clean + item.answers[0]) :]}"


# ---- bigrams


def bigrams() -> dict[str, str]:
    """{word: the word that most often follows it} in rows of the last stage."""
    drawn, words = Drawn(PLAN[-1]), stories.vocabulary()
    counts: dict[int, Counter] = {}
    for seed in range(READ):
        ids, _ = drawn.drawn_row(np.random.default_rng((SEED, seed)))
        for before, after in pairwise(ids):
            counts.setdefault(before, Counter())[after] += 1
    return {words[i]: words[of.most_common(1)[0][0]] for i, of in counts.items()}


# ---- rules that do not look back for what is asked


def said(item: stories.Item) -> list[str]:
    """Words of the text that could be the answer, in its order."""
    return [word for word in stories.words_of(item.clean) if word in item.candidates]


RULES: dict[str, Callable] = {
    "first said": lambda item, usual: (said(item) or [usual])[0],
    "last said": lambda item, usual: (said(item) or [usual])[-1],
    "most often right": lambda item, usual: usual,
}


# ---- the table


class Shares(NamedTuple):
    """Shares of right answers to one kind."""

    model: float
    chance: float
    bigram: float
    rule: float
    name: str  # of the best rule


def shares_of(kind: str, model: minitx.Model, follows: dict[str, str]) -> Shares:
    """Shares of right answers, of the model and of what does not look back."""
    items = stories.draw(kind, ITEMS, SEED)
    usual = Counter(item.right for item in stories.draw(kind, ITEMS, SEED + 1))
    guess = usual.most_common(1)[0][0]
    ruled = {name: [rule(item, guess) for item in items] for name, rule in RULES.items()}
    best = max(ruled, key=lambda name: share(ruled[name], items))
    last = [stories.words_of(item.clean.lower())[-1] for item in items]
    answers = predicted(model, items), [follows.get(word, "") for word in last], ruled[best]
    right, by_bigram, by_rule = (share(of, items) for of in answers)
    chance = float(np.mean([item.chance for item in items]))
    return Shares(right, chance, by_bigram, by_rule, best)


def share(answers: list[str], items: list[stories.Item]) -> float:
    """How many of the answers count as right."""
    accepted = ({word.lower() for word in item.accepted} for item in items)
    return float(np.mean([a.lower() in words for a, words in zip(answers, accepted)]))


def parts_of(kind: str, model: minitx.Model) -> str:
    """A line of what `patch` and `circuit` answer for one kind."""
    patch, circuit = (analysis.run(name, model, pairs=kind) for name in ("patch", "circuit"))
    arrays, edges = patch.arrays, circuit.arrays
    cells = [kind, patch.answer.verdict]
    for name in ("restored", "lost"):
        own, null = (100 * float(arrays[key]) for key in (name, f"{name}_null"))
        cells.append(f"{arrays[f'{name}_head']} {own:.0f} ({null:.0f})")
    cells += [circuit.answer.verdict, f"{edges['edges']:.0f}"]
    cells.append(f"{float(edges['near']):.2f} ({float(edges['near_null']):.2f})")
    return f"| {' | '.join(cells)} |"


ACCURACY = "kind | told by | model | chance | bigram | best rule"
PARTS = "kind | `patch` | restores most | takes away most | `circuit` | edges | how close"


def main():
    """Print a table in Markdown, shares in per cent."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="checkpoint of train_stories.py")
    parser.add_argument("--parts", action="store_true", help="what patch and circuit answer")
    args = parser.parse_args()
    model, head = minitx.load(args.folder), PARTS if args.parts else ACCURACY
    print(f"| {head} |\n{'|---' * len(head.split(' | '))}|")
    follows = {} if args.parts else bigrams()
    for kind, (by, _) in stories.KINDS.items():
        if args.parts:
            print(parts_of(kind, model), flush=True)
            continue
        row = shares_of(kind, model, follows)
        per_cent = " | ".join(f"{100 * share:.0f}" for share in row[:4])
        print(f"| {kind} | {by} | {per_cent} ({row.name}) |", flush=True)


if __name__ == "__main__":
    main()
