"""What `minitx scan` shows: one prompt on one page, and the same in the terminal."""

import shlex
from html import escape

import numpy as np

from ..drawing import Bar, Line, bars, column, draw, lines, panels, row
from ..machine.language import filled, translated
from ..texts import corpus
from . import report, section

SHOWN = 8  # tokens in words, heads
NEXT = "Ask on"
HEADINGS = "Guess", "By layer", "Tokens", "Parts", "Heads"


def words(model, scanned, attributed):
    """{heading: a sentence}. scanned: a Scan; attributed: the Result of `attribute`."""
    said = [say(model, scanned) for say in (_guess, _lens, _tokens)]
    return dict(zip(HEADINGS, (*said, attributed.says, _heads(scanned))))


def _labels(model, ids):
    return [draw.label(str(piece)) for piece in corpus.labels(model, np.asarray(ids))]


def _guess(model, scanned):
    ids, p = scanned.guesses.ids[0], scanned.guesses.probabilities[0]
    return ", ".join(f"{word} {share:.1%}" for word, share in zip(_labels(model, ids), p))


def _lens(model, scanned):
    """What the model would say after each layer, and how likely the guess is there."""
    ids = scanned.lens.ids[:, 0]
    first = next(i for i in range(len(ids)) if (ids[i:] == scanned.wanted.what).all())
    said = " → ".join(_labels(model, ids))
    if first == 0:
        text = "{said}. The embeddings alone give it."
    else:
        text = "{said}. From layer {layer} on it is the guess, there with {share:.0%}."
    return filled(text, said=said, layer=first - 1, share=scanned.reached[first])


def _tokens(model, scanned):
    """The tokens that add most to the log-probability of the guess."""
    added, lost = scanned.added.integrated, scanned.added.ablated
    order = np.argsort(-np.maximum(abs(added), abs(lost)), kind="stable")[:SHOWN].tolist()
    pieces = _labels(model, scanned.wanted.tokens)
    listed = ", ".join(f"{pieces[i]} {added[i]:+.2f} ({lost[i]:+.2f})" for i in order)
    text = "{listed} nats by integrated gradients (lost without the token)."
    return filled(text, listed=listed)


def _heads(scanned):
    """Heads that look at one thing from where the word is asked."""
    if not scanned.looks:
        return translated("No head gives half of its attention to one kind of token.")
    text = "{head} looks at {kind} ({share:.0%}; all tokens alike: {chance:.0%})"
    looks = (x._asdict() | {"kind": translated(x.kind)} for x in scanned.looks[:SHOWN])
    listed = [filled(text, **look) for look in looks]
    return "; ".join(listed) + "."


def commands(model, name, text, scanned):
    """Commands that ask on, ready to run."""
    best, other = _texts(model, scanned.guesses.ids[0, :2])
    ready = [["minitx", "attribute", name, text, "--target", best, "--other", other]]
    ready.append(["minitx", "serve", name])
    if scanned.changed is not None:
        changed = _as_text(model, scanned.changed.tokens)
        right, wrong = _texts(model, [scanned.wanted.what, scanned.changed.guess])
        if changed and right and wrong:
            asked = ["--pairs", f"{text}|{changed}", "--measure", f"{right}|{wrong}"]
            ready.insert(0, ["minitx", "patch", name, *asked])
    return [shlex.join(line) for line in ready if "" not in line]


def _texts(model, ids):
    """Each token as a text that is one token, spaces included; "" where there is none."""
    texts = [model.tokenizer.decode([i], special=True) for i in ids]
    encode = model.tokenizer.encode
    return [text if [*encode(text, special=False)] == [i] else "" for text, i in zip(texts, ids)]


def _as_text(model, ids):
    """A text that is read as these ids, or ""."""
    before, after = corpus.specials(model)
    text = model.tokenizer.decode(ids[len(before) : len(ids) - len(after)], special=True)
    return text if np.array_equal(model.tokenizer.encode(text), ids) else ""


BY_TOKEN = bars(
    Bar("added", "integrated gradients"),
    Bar("lost", "lost without the token", color=draw.VERMILION),
    ticks="pieces",
    ylabel="nats that a token adds to the guess",
)
BY_LAYER = lines(
    Line("reached", None),
    xticks=panels.stream_layers,
    ylim=(0, 1),
    xlabel="after layer",
    ylabel="probability of the guess",
)


def figures_of(model, scanned, attributed):
    """Of tokens and layers, and of the parts: two SVG texts."""
    pieces = np.array(_labels(model, scanned.wanted.tokens))
    r = {"added": scanned.added.integrated, "lost": scanned.added.ablated}
    r |= {"reached": scanned.reached, "pieces": pieces}
    with draw.style():
        picture = column(row(BY_TOKEN, BY_LAYER, widths=(3, 2)))(r)
        return draw.svg(picture), *attributed.drawn[0]


def page(model, name, text, scanned, attributed):
    """The whole document."""
    title = filled("What {model} makes of one prompt", model=escape(name))
    body = f"<h1>{title}</h1><p>{escape(str(text))}</p>"
    figures = dict(zip(("Tokens", "Parts"), figures_of(model, scanned, attributed)))
    for heading, said in words(model, scanned, attributed).items():
        body += f"<h2>{escape(translated(heading))}</h2><p>{escape(said)}</p>"
        body += section.image(figures[heading], translated(heading)) if heading in figures else ""
    ready = "\n".join(commands(model, name, text, scanned))
    body += f"<h2>{translated(NEXT)}</h2><pre><code>{escape(ready)}</code></pre>"
    return report.plain(name, body)
