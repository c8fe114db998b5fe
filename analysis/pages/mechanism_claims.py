"""Published claims about ways to know places, each put to models that know them in this way.

The publications train models of millions to billions of weights on inputs of 512 tokens and more;
here a claim is put to any checkpoint, on the text given, by one experiment: `mechanisms`. That
rotary positions make training converge faster (Su et al. 2021) is no row: a checkpoint tells the
loss at the end of its training, not the curve that led there.
"""

from ..contract.rules import NATS
from .claims import SHARE, Claim, above_null, below_null, not_above_null, number

PRESS, HAVIV = "Press et al. 2022, figure 1", "Haviv et al. 2022"
KAZEMNEJAD, BARBERO = "Kazemnejad et al. 2023", "Barbero et al. 2024"
WORDS = {
    "learned": "a learned table",
    "sinusoidal": "a sinusoidal table",
    "rotary": "rotary positions",
    "alibi": "ALiBi",
    "buckets": "a bias by bucket",
    "disentangled": "terms of content and place",
    "none": "no positions",
}
LONGER = "change of the loss at 4 times the trained length, nats per token: {}"
PROBED = "R² of a token's position from the stream, best layer, lower end of its interval: {}"
HELD, BROKEN = (
    "generalizes beyond the training length",
    "does not generalize beyond the training length",
)


def models(claim):
    """The models that a claim is about, in words."""
    kind = {None: "models", True: "causal models", False: "models that see both sides"}
    return f"{kind[claim.causal]} with {WORDS[claim.mechanism]}"


def low_r2(r):
    """The lower end of the interval of R², of the model that was asked, the first of the rows."""
    return r["r2_interval"][0, 0].item()


def of_length(source, mechanism, published, rule, causal=None):
    """A claim on longer inputs."""
    what = LONGER.format(WORDS[mechanism])
    given = source, what, "mechanisms", number("longest", 0), published
    about = {"mechanism": mechanism, "causal": causal}
    return Claim(*given, null=number("longest_null", 0), **about, **rule)


def of_place(source, causal, published, rule):
    """A claim on what the stream tells of places where nothing adds them."""
    side = "causal" if causal else "both sides seen"
    what = PROBED.format(f"no positions, {side}")
    given = source, what, "mechanisms", low_r2, published
    return Claim(*given, null=number("r2_null", 0), mechanism="none", causal=causal, **rule)


CLAIMS = [
    of_length(PRESS, "alibi", HELD, not_above_null(**NATS)),
    of_length(PRESS, "buckets", HELD, not_above_null(**NATS)),
    of_length(PRESS, "sinusoidal", BROKEN, above_null(**NATS)),
    of_length(PRESS, "rotary", BROKEN, above_null(**NATS)),
    of_length("Press et al. 2022", "learned", BROKEN, above_null(**NATS)),
    of_length(KAZEMNEJAD, "none", HELD, not_above_null(**NATS), causal=True),
    of_place(HAVIV, True, "known from the causal mask", SHARE),
    of_place(HAVIV, False, "known only where the future is hidden", not_above_null()),
    Claim(
        BARBERO,
        "attention of the sharpest head to its offset, the fastest quarter of the pairs not turned "
        "(null: the least without another quarter)",
        "mechanisms",
        number("without_fastest", 0),
        "the fastest pairs make heads that look at one offset",
        null=number("without_fastest_null", 0),
        mechanism="rotary",
        **below_null(),
    ),
]
