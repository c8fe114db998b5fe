"""What `minitx decode` shows: the text, a table of its steps, a record, a figure."""

from pathlib import Path

from ..contract import results
from ..drawing import draw
from ..machine import files
from ..machine.language import filled, label, translated
from ..measures import decoding, heads
from ..texts import corpus

STRONGEST = 3  # source pieces of a step that the table names
READINGS = {  # without such a step, and with some
    "said": (
        "No token that is said stands in the source.",
        "Of the {n} steps whose token that is said stands in the source, {share:.0%} look most at "
        "that piece (at a random piece: {null:.0%}).",
    ),
    "asking": (
        "No token that asks stands in the source.",
        "Of the {n} steps whose token that asks stands in the source, {share:.0%} look most at "
        "that piece (at a random piece: {null:.0%}).",
    ),
}
TITLES = "step", "asks", "looks at", "says", "best: logit, probability"
LABELLED = 60  # pieces of a source, at most, that all get their label


def text_of(model, ids):
    """Generated ids as text; without a tokenizer the ids themselves."""
    if corpus.has_tokenizer(model):
        return model.tokenizer.decode(ids)
    return " ".join(map(str, ids))


def table(decoded):
    """A line for each step: who asks, where it looks, what is said, the best logits."""
    rows = [tuple(map(translated, TITLES))]
    for i in range(len(decoded.said)):
        looks = ", ".join(f"{piece} {weight:.2f}" for piece, weight in strongest(decoded, i))
        best = zip(decoded.best_pieces[i], decoded.logits[i], decoded.probabilities[i])
        best = " | ".join(f"{visible(piece)} {y:.2f}, {p:.3f}" for piece, y, p in best)
        asks, said = (visible(x[i]) for x in (decoded.asking_pieces, decoded.said_pieces))
        rows.append((str(i + 1), asks, looks, said, best))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def strongest(decoded, i):
    """The source pieces that step i looks at most, with their attention."""
    weights = decoded.attention[i]
    order = weights.argsort(kind="stable")[::-1][:STRONGEST]
    return [(visible(decoded.source_pieces[j]), float(weights[j])) for j in order]


def visible(piece):
    """A piece with its blanks visible."""
    return draw.label(piece).replace(r"\$", "$")


def says(readings):
    """The two readings of a step in plain words."""
    sentences = []
    for name, templates in READINGS.items():
        n, share, null = readings[name]
        sentences.append(filled(templates[n > 0], n=n, share=share, null=null))
    return " ".join(sentences)


def record(decoded, text):
    """All of it, for a program to read."""
    source = {"ids": decoded.source.tolist(), "pieces": decoded.source_pieces.tolist()}
    steps = [_step(decoded, i) for i in range(len(decoded.said))]
    readings = {name: reading._asdict() for name, reading in decoding.naive(decoded).items()}
    return {"text": text, "source": source, "steps": steps, "strongest_is": readings}


def _step(decoded, i):
    best = [_token(*token) for token in zip(decoded.best[i], decoded.best_pieces[i])]
    for token, y, p in zip(best, decoded.logits[i], decoded.probabilities[i]):
        token |= {"logit": float(y), "probability": float(p)}
    asking = _token(decoded.asking[i], decoded.asking_pieces[i])
    said = _token(decoded.said[i], decoded.said_pieces[i])
    said["probability"] = float(decoded.said_probabilities[i])
    attention = decoded.attention[i].tolist()
    return {"asking": asking, "said": said, "attention": attention, "best": best}


def _token(token, piece):
    return {"id": int(token), "piece": str(piece)}


def titled(name, config, layer, head):
    """The title of a figure: the model's name, and whose attention it shows."""
    layer %= config.n_layers
    shown = label(f"layer {layer}") if head is None else heads.name(layer, head % config.n_heads)
    return filled("Where does each step look?  ({name}, {shown})", name=name, shown=shown)


def write(decoded, title, path):
    """The figure as a file, SVG or PNG by its ending; raises ValueError for another one."""
    path = check_file(path)
    with draw.style():
        picture = draw.exported(plot(decoded), title, path.suffix[1:])
    files.write(path, picture)


def check_file(name):
    """A path whose ending is one of a figure and whose folder is there."""
    path = Path(name)
    if path.suffix[1:] not in results.FORMATS:
        wanted = " or ".join(f".{ending}" for ending in results.FORMATS)
        raise ValueError(f"--out {name}: wanted a file that ends in {wanted}")
    files.writable_file(path)
    return path


def plot(decoded):
    """A heat map, steps x source pieces: who asks on the left, what is said on the right."""
    n, S = decoded.attention.shape
    figure = draw.figure(max(6.0, min(14.0, 3.4 + 0.3 * S)), 1.6 + 0.26 * n)
    axes = figure.subplots()
    image = axes.imshow(decoded.attention, cmap="Blues", vmin=0, aspect="auto")
    axes.plot(decoded.attention.argmax(axis=1), range(n), "o", color=draw.ORANGE, markersize=3)
    axes.set_yticks(range(n), map(draw.label, decoded.asking_pieces))
    axes.xaxis.has_tokens = axes.yaxis.has_tokens = True
    axes.set_ylabel("asks: the previous token")
    every = -(-S // LABELLED)
    labels = [draw.label(piece) for piece in decoded.source_pieces[::every]]
    turned = sum(map(len, labels)) > 2 * len(labels)
    axes.set_xticks(range(0, S, every), labels, rotation=90 if turned else 0)
    axes.set_xlabel("source (dot: the strongest piece)")
    said = axes.secondary_yaxis("right")
    tokens = zip(decoded.said_pieces, decoded.said_probabilities)
    said.set_yticks(range(n), [f"{draw.label(piece)}  {p:.2f}" for piece, p in tokens])
    said.yaxis.has_tokens = True
    said.set_ylabel("said, with its probability")
    for side in axes, said:
        side.tick_params(length=0)
    figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02, label="attention")
    return figure
