"""`minitx steer`: continue a text with the direction between two kinds of texts added."""

import minitx
from minitx.research.passes import reader

from ..contract import options
from ..machine.language import filled
from ..texts import corpus, formats
from . import flags, inputs

HELD_OUT = 4  # every so many texts of a kind is not part of the vector
OTHER, LONG = 8, 64  # documents of other text, and tokens of each


def declare(commands):
    """Its flags."""
    about = "continue a text, steered towards one kind of texts and away from another"
    command = flags.command(commands, "steer", run, about, "MODEL", "TEXT")
    for name in ("towards", "away"):
        about = f"texts to steer {name.replace('away', 'away from')}: {options.WAYS}"
        command.add_argument(f"--{name}", required=True, metavar="FILE", help=about)
    about = "unrelated text, whose loss is the price (sample)"
    command.add_argument("--other", default="sample", metavar="TEXT", help=about)
    flags.of_column(command)
    about = "layer before which the vector is added, from 0 (the middle)"
    command.add_argument("--layer", type=int, metavar="N", help=about)
    about = "the token of each text that is read: its last, or the mean of all (last)"
    command.add_argument("--token", choices=["last", "mean"], default="last", help=about)
    about = "what the vector is multiplied by (1.0)"
    command.add_argument("--scale", type=float, default=1.0, metavar="X", help=about)
    about = "tokens to generate, at most (20)"
    command.add_argument("--n", type=int, default=20, metavar="N", help=about)


VECTOR = "before layer {layer}: {share:.1%} of the stream's length (shuffled labels: {null:.1%})"
EFFECT = (
    "{what}: {change:+.3f} nats a token (shuffled labels {low:+.3f} to {high:+.3f}, "
    "random directions {least:+.3f} to {most:+.3f})"
)
PARTS = (
    "log-probability of texts to steer towards, not part of the vector",
    "log-probability of texts to steer away from, not part of the vector",
    "log-probability of other text, the price",
)


def run(arguments):
    """minitx steer MODEL TEXT"""
    text = inputs.text_of(arguments.text)
    model = reader(inputs.load(arguments.model))
    names = arguments.towards, arguments.away
    sides = [texts_of(model, name, arguments.column) for name in names]
    tokens = min(LONG, model.config.n_ctx)
    other = [*corpus.texts(model, arguments.other, 0, tokens)][:OTHER]
    layer = model.config.n_layers // 2 if arguments.layer is None else arguments.layer
    kept, held_out = zip(*map(split, sides))
    vector = minitx.steering_vector(model, *kept, layer, token=arguments.token)
    ids = minitx.generate(model, text, arguments.n)
    edits = minitx.steer(vector, arguments.scale)
    steered = minitx.generate(model, text, arguments.n, edits=edits)
    for words, row in ("as it is", ids), ("steered", steered):
        print(f"{words}: {model.tokenizer.decode(row)}")
    numbers = {"share": vector.share, "null": vector.null}
    print("\n" + filled(VECTOR, layer=vector.layer, **numbers))
    for what, texts in zip(PARTS, (*held_out, other)):
        print(effect_of(what, vector.effect(texts, arguments.scale)))


def texts_of(model, name, column):
    """The documents of a file, as ids. Raises ValueError for fewer than two."""
    named = formats.of(name, column=column)
    texts = [*corpus.texts(model, named, 0, model.config.n_ctx)]
    if len(texts) < 2:
        raise ValueError(f"{name!r} has {len(texts)} of the texts; expected at least two")
    return texts


def split(texts):
    """The texts of the vector, and those that are held out: the last of every HELD_OUT."""
    step = min(HELD_OUT, len(texts))
    held_out = texts[step - 1 :: step]
    kept = [text for i, text in enumerate(texts) if i % step != step - 1]
    return kept, held_out


def effect_of(what, effect):
    """One effect in a line, beside chance."""
    numbers = {"change": effect.change, "low": effect.shuffled.min(), "high": effect.shuffled.max()}
    numbers |= {"least": effect.random.min(), "most": effect.random.max()}
    return filled(EFFECT, what=what, **numbers)
