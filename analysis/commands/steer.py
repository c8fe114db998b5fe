"""`minitx steer`: continue a text with the direction between two kinds of texts added."""

import numpy as np

import minitx
from minitx.research.passes import reader
from minitx.research.steering import LEAST, VERDICTS

from ..contract import options, own_texts
from ..machine.language import filled, translated
from ..texts import corpus, formats
from . import flags, inputs

HELD_OUT = 4  # every so many texts of a kind is not part of the vector
OTHER, LONG = 8, 64  # documents of other text, and tokens of each


def declare(commands):
    """Its flags."""
    about = "continue a text, steered from one kind of texts to another"
    command = flags.command(commands, "steer", run, about, "MODEL", "TEXT")
    for name in ("towards", "away"):
        about = f"texts to steer {name.replace('away', 'away from')}: {options.WAYS}"
        command.add_argument(f"--{name}", required=True, metavar="TEXTS", help=about)
    about = "unrelated text, whose loss is the price (sample, or stories if it knows only these)"
    command.add_argument("--other", metavar="TEXT", help=about)
    flags.of_column(command)
    about = "layer before which the vector is added, from 0 (the middle)"
    command.add_argument("--layer", type=int, metavar="N", help=about)
    about = "the token of each text that is read: its last, or the mean of all (last)"
    command.add_argument("--token", choices=["last", "mean"], default="last", help=about)
    about = "what the vector is multiplied by (1.0)"
    command.add_argument("--scale", type=float, default=1.0, metavar="X", help=about)
    about = "tokens to generate, at most (20)"
    command.add_argument("--n", type=int, default=20, metavar="N", help=about)


MADE = (
    "made of {n} texts towards and {m} away; {n_out} and {m_out} others are held out, to try it on"
)
VECTOR = "before layer {layer}: {share:.1%} of the stream's length (shuffled labels: {null:.1%})"
EFFECT = (
    "{what}: {change:+.3f} nats a token (shuffled labels {low:+.3f} to {high:+.3f}, "
    "random directions {least:+.3f} to {most:+.3f}, random weights {first:+.3f} to {last:+.3f})"
)
PARTS = (  # of held-out texts and others
    "log-probability of texts to steer towards, not part of the vector",
    "log-probability of texts to steer away from, not part of the vector",
    "log-probability of other text, the price",
)

CONTRAST = (
    "{verdict}: texts to steer towards gain {change:+.3f} nats a token more than those to steer "
    "away from (95% {low:+.3f} to {high:+.3f}; the largest null: {null:+.3f})"
)
OTHERWISE = (
    "more texts narrow the interval, which has to be above the largest null; the vector reads the "
    "last token of each text: where texts differ elsewhere, --token mean reads all of them; "
    "--layer takes another layer, --scale a longer vector"
)
TOO_FEW = (
    "undecided: a vector needs six texts of each kind, and two more of each to try it on; dozens "
    "narrow the interval"
)


def run(arguments):
    """minitx steer MODEL TEXT"""
    text = inputs.text_of(arguments.text)
    model = reader(inputs.load(arguments.model))
    names = arguments.towards, arguments.away
    sides = [texts_of(model, name, arguments.column) for name in names]
    tokens = min(LONG, model.config.n_ctx)
    named = own_texts.text(model) if arguments.other is None else arguments.other
    other = [*corpus.texts(model, named, 0, tokens)][:OTHER]
    layer = model.config.n_layers // 2 if arguments.layer is None else arguments.layer
    kept, held_out = zip(*map(split, sides))
    vector = minitx.steering_vector(model, *kept, layer, token=arguments.token)
    ids = minitx.generate(model, text, arguments.n)
    edits = minitx.steer(vector, arguments.scale)
    steered = minitx.generate(model, text, arguments.n, edits=edits)
    for words, row in ("as it is", ids), ("steered", steered):
        print(f"{words}: {model.tokenizer.decode(row)}")
    (n, m), (n_out, m_out) = vector.n, map(len, held_out)
    print("\n" + filled(MADE, n=n, m=m, n_out=n_out, m_out=m_out))
    print(filled(VECTOR, layer=vector.layer, share=vector.share, null=vector.null))
    print_effects(vector, [*held_out, other], arguments.scale, arguments.token)


def print_effects(vector, texts, scale, token):
    """What the vector changes on texts of both kinds and on others, and whether it steers."""
    effects = [vector.effect(side, scale) if side else None for side in texts]
    for what, effect in zip(PARTS, effects):
        if effect:
            print(effect_of(what, effect))
    print()
    if not all(effects[:2]):
        return print(translated(TOO_FEW))
    contrast = vector.contrast(*effects[:2])
    low, high = contrast.interval
    numbers = {"change": contrast.change, "low": low, "high": high, "null": contrast.null}
    print(filled(CONTRAST, verdict=translated(contrast.verdict), **numbers))
    if np.isnan(low) or min(vector.n) < LEAST:
        print(translated(TOO_FEW))
    elif contrast.verdict != VERDICTS[0] and token == "last":
        print(translated(OTHERWISE))


def texts_of(model, name, column):
    """The documents of a file, or the text itself, as ids."""
    named = formats.of(name, column=column)
    return [*corpus.texts(model, named, 0, model.config.n_ctx)]


def split(texts):
    """The texts of the vector, and those that are held out: the last of every HELD_OUT."""
    kept = [text for i, text in enumerate(texts) if i % HELD_OUT != HELD_OUT - 1]
    return kept, texts[HELD_OUT - 1 :: HELD_OUT]


def effect_of(what, effect):
    """One effect in a line, beside chance."""
    numbers = {"change": effect.change, "low": effect.shuffled.min(), "high": effect.shuffled.max()}
    numbers |= {"least": effect.random.min(), "most": effect.random.max()}
    numbers |= {"first": effect.untrained.min(), "last": effect.untrained.max()}
    return filled(EFFECT, what=translated(what), **numbers)
