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
EXPERTS = "each token goes through a few of many MLPs"
GEMMA = "its norms multiply by one more than their weight"
OTHER_BLOCK = "its norms or its MLP stand elsewhere than in Llama"
STATE = "it keeps a state in place of attention"
REFUSED = {
    "albert": Refusal(f"{NARROW}, and all layers share one set of weights", "bert"),
    "cohere": Refusal(OTHER_BLOCK, "llama"),
    "deberta": Refusal(PARTS, "roberta"),
    "deberta-v2": Refusal(PARTS, "roberta"),
    "deepseek_v3": Refusal(EXPERTS, "qwen3"),
    "falcon": Refusal("one norm serves attention and MLP", "gpt_neox"),
    "funnel": Refusal("its layers shorten the text on the way", "bert"),
    "gemma": Refusal(GEMMA, "llama"),
    "gemma2": Refusal(GEMMA, "llama"),
    "gemma3_text": Refusal(GEMMA, "llama"),
    "gpt_neo": Refusal("every other layer sees near tokens only", "gpt2"),
    "gptj": Refusal("it turns neighbouring features, and one norm serves both", "gpt_neox"),
    "granite": Refusal(OTHER_BLOCK, "llama"),
    "llama4_text": Refusal(EXPERTS, "llama"),
    "longformer": Refusal("its tokens see their neighbours and a few global ones", "roberta"),
    "mamba": Refusal(STATE, "gpt_neox"),
    "mbart": Refusal(BEFORE, "bart"),
    "mixtral": Refusal(EXPERTS, "mistral"),
    "mpt": Refusal(UNTRIED, "bloom"),
    "mt5": Refusal(UNTRIED, "t5"),
    "olmo": Refusal(OTHER_BLOCK, "llama"),
    "olmo2": Refusal(OTHER_BLOCK, "llama"),
    "opt": Refusal(UNTRIED, "gpt2"),
    "pegasus": Refusal(BEFORE, "bart"),
    "phi": Refusal("one norm serves attention and MLP", "gpt_neox"),
    "phi3": Refusal("its matrices are fused in another way", "llama"),
    "qwen2_moe": Refusal(EXPERTS, "qwen2"),
    "qwen3_moe": Refusal(EXPERTS, "qwen3"),
    "rwkv": Refusal(STATE, "gpt_neox"),
    "smollm3": Refusal("some of its layers turn nothing", "llama"),
    "stablelm": Refusal("a part of each head is turned, in a Llama", "gpt_neox"),
    "starcoder2": Refusal(OTHER_BLOCK, "llama"),
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
