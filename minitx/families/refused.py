"""Models that are refused by name: what they compute that nothing here does, and what to take.

Any other model type is refused too, without a reason.
"""

from typing import NamedTuple


class Refusal(NamedTuple):
    """Why a model type does not load, and the nearest that does."""

    why: str
    nearest: str  # a model type, or a checkpoint


NARROW = "embeddings of another width go through a matrix that is not computed"
UNTRIED = "it has not been compared with the reference library here"
PARTS = "its attention has separate terms for content and place"
BEFORE = "its norms stand before each part, and after the last layer"
ROTARY = "its queries and keys are turned by their position (rotary)"
REFUSED = {
    "albert": Refusal(f"{NARROW}, and all layers share one set of weights", "bert"),
    "bloom": Refusal("its scores fall with the distance by a constant (ALiBi)", "gpt2"),
    "deberta": Refusal(PARTS, "roberta"),
    "deberta-v2": Refusal(PARTS, "roberta"),
    "funnel": Refusal("its layers shorten the text on the way", "bert"),
    "gpt_neo": Refusal("every other layer sees near tokens only", "gpt2"),
    "gpt_neox": Refusal(f"{ROTARY}, and attention and MLP read one stream", "gpt2"),
    "llama": Refusal(ROTARY, "gpt2"),
    "longformer": Refusal("its tokens see their neighbours and a few global ones", "roberta"),
    "mbart": Refusal(BEFORE, "bart"),
    "mistral": Refusal(f"{ROTARY}, and heads share keys and values", "gpt2"),
    "modernbert": Refusal(f"{ROTARY}, and most layers see near tokens only", "bert"),
    "mt5": Refusal(UNTRIED, "t5"),
    "opt": Refusal(UNTRIED, "gpt2"),
    "pegasus": Refusal(BEFORE, "bart"),
    "qwen2": Refusal(f"{ROTARY}, and heads share keys and values", "gpt2"),
    "xlnet": Refusal("it reads a text in many orders, through two streams", "bert"),
}
# families of which some checkpoints are refused, by a number in their config
PARTLY = {"electra": Refusal(NARROW, "google/electra-base-discriminator")}


def reason(model_type):
    """What an error says of a model type that does not load; "" where nothing is known."""
    if model_type not in REFUSED:
        return ""
    why, nearest = REFUSED[model_type]
    return f"; {model_type} is not: {why}; the nearest that loads is {nearest}"


def check(raw):
    """Raises ValueError for a checkpoint that is refused, of a family that loads."""
    sizes = raw.get("embedding_size"), raw.get("hidden_size")
    if raw["model_type"] in PARTLY and sizes[0] != sizes[1]:
        why, nearest = PARTLY[raw["model_type"]]
        given = f"embedding_size is {sizes[0]!r}, hidden_size {sizes[1]!r}"
        raise ValueError(f"{given}; wanted the same: {why}; the nearest that loads is {nearest}")
