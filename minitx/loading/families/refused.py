"""Models that are rejected by name, with the reason and the closest supported type.

Any other model type is refused too, without a reason.
"""

from typing import NamedTuple


class Refusal(NamedTuple):
    """Why a model type does not load, and the closest supported type."""

    why: str
    nearest: str  # a model type, or a checkpoint


NARROW = "its embeddings and its layers differ in width (a projection in between): not supported"
UNTRIED = "it has not been tested against the reference library"
BEFORE = "it is pre-norm, with a norm after the last layer"
EXPERTS = "it has a mixture of experts: each token goes through a few of many MLPs"
GEMMA = "its norms add 1 to their weight, which is supported only for Gemma, Gemma 2 and 3"
OTHER_BLOCK = "its norms or its MLP are arranged differently from Llama"
STATE = "it has a recurrent state instead of attention"
MIXED = "some of its layers have a recurrent state instead of attention"
NEIGHBOURS = "its rotary embedding pairs adjacent features, which is supported only for GPT-J"
NEAR = "it has sparse attention: tokens see their neighbours and a few global tokens"
APPROXIMATE = "it approximates attention"
IMAGES = "it reads images, and a token has three positions"
FUSED = "its matrices are fused in a different layout"
NO_GATE = "its MLP has no gate"
REFUSED = {
    "apertus": Refusal("its activation is not supported, and its MLP has no gate", "llama"),
    "arcee": Refusal(NO_GATE, "llama"),
    "baichuan": Refusal(FUSED, "llama"),
    "bamba": Refusal(MIXED, "llama"),
    "big_bird": Refusal("it has block-sparse attention, with some random blocks", "bert"),
    "bigbird_pegasus": Refusal("it has block-sparse attention, with some random blocks", "bart"),
    "bitnet": Refusal(
        "its weights are ternary, and its attention and MLP have additional norms", "llama"
    ),
    "blenderbot": Refusal(BEFORE, "bart"),
    "chatglm": Refusal(f"{NEIGHBOURS}; it rotates only half of each head", "llama"),
    "codegen": Refusal(FUSED, "gptj"),
    "cohere": Refusal("it multiplies logits by a constant", "gptj"),
    "cohere2": Refusal("it multiplies logits by a constant", "gptj"),
    "ctrl": Refusal(UNTRIED, "gpt2"),
    "beit": Refusal("its attention adds a bias by relative position of patches", "vit"),
    "dbrx": Refusal(EXPERTS, "llama"),
    "deepseek_v2": Refusal(EXPERTS, "llama"),
    "deepseek_v3": Refusal(EXPERTS, "qwen3"),
    "dinov2_with_registers": Refusal("it has register tokens after the class token", "dinov2"),
    "dinov3_vit": Refusal("it has register tokens and rotary positions", "dinov2"),
    "diffllama": Refusal("its attention is the difference of two softmaxes", "llama"),
    "doge": Refusal("its attention mask is computed from the input", "llama"),
    "dots1": Refusal(EXPERTS, "qwen3"),
    "ernie": Refusal("it adds task embeddings", "bert"),
    "ernie4_5": Refusal(NEIGHBOURS, "llama"),
    "eurobert": Refusal("it is a bidirectional Llama", "modernbert"),
    "exaone": Refusal("its tensors have different names", "llama"),
    "exaone4": Refusal(UNTRIED, "olmo2"),
    "falcon_h1": Refusal(MIXED, "llama"),
    "falcon_mamba": Refusal(STATE, "gpt_neox"),
    "fnet": Refusal("it has a Fourier transform instead of attention", "bert"),
    "funnel": Refusal("its layers shorten the sequence", "bert"),
    "gemma3": Refusal("it reads images", "gemma3_text"),
    "gemma3n_text": Refusal(GEMMA, "llama"),
    "glm": Refusal(f"{NEIGHBOURS}; it rotates only half of each head", "llama"),
    "glm4": Refusal(f"{NEIGHBOURS}; it rotates only half of each head", "llama"),
    "glm4_moe": Refusal(EXPERTS, "qwen3"),
    "gpt_bigcode": Refusal(
        "multi-query attention: all heads share one set of keys and values", "gpt2"
    ),
    "gpt_neox_japanese": Refusal(UNTRIED, "gpt_neox"),
    "gpt_oss": Refusal(f"{EXPERTS}, and each head has a sink, a learned extra score", "llama"),
    "granitemoe": Refusal(EXPERTS, "llama"),
    "helium": Refusal(NEIGHBOURS, "llama"),
    "hunyuan_v1_dense": Refusal("it norms queries and keys after the rotation", "qwen3"),
    "ibert": Refusal("it computes with integers", "roberta"),
    "internlm": Refusal(UNTRIED, "llama"),
    "internlm2": Refusal(FUSED, "llama"),
    "jais": Refusal(UNTRIED, "bloom"),
    "jamba": Refusal(MIXED, "llama"),
    "jetmoe": Refusal(EXPERTS, "llama"),
    "led": Refusal(NEAR, "bart"),
    "lfm2": Refusal("most of its layers have convolutions instead of attention", "qwen3"),
    "llama4": Refusal(EXPERTS, "llama"),
    "llama4_text": Refusal(EXPERTS, "llama"),
    "longformer": Refusal(NEAR, "roberta"),
    "longt5": Refusal(NEAR, "t5"),
    "m2m_100": Refusal(BEFORE, "bart"),
    "mamba": Refusal(STATE, "gpt_neox"),
    "mamba2": Refusal(STATE, "gpt_neox"),
    "mbart": Refusal(BEFORE, "bart"),
    "megatron-bert": Refusal(BEFORE, "bert"),
    "minimax": Refusal(EXPERTS, "llama"),
    "ministral": Refusal(UNTRIED, "mistral"),
    "ministral3": Refusal("its queries are scaled by their position", "mistral"),
    "mistral3": Refusal("it reads images", "mistral"),
    "mixtral": Refusal(EXPERTS, "mistral"),
    "mobilebert": Refusal("each layer narrows the stream and widens it again", "bert"),
    "modernbert-decoder": Refusal(UNTRIED, "modernbert"),
    "mpt": Refusal(UNTRIED, "bloom"),
    "mt5": Refusal(UNTRIED, "t5"),
    "nemotron": Refusal(f"{GEMMA}, and {NO_GATE}", "llama"),
    "nomic_bert": Refusal(UNTRIED, "modernbert"),
    "nystromformer": Refusal(APPROXIMATE, "bert"),
    "olmo3": Refusal(UNTRIED, "olmo2"),
    "olmoe": Refusal(EXPERTS, "llama"),
    "openai-gpt": Refusal("it is post-norm", "gpt2"),
    "pegasus": Refusal(BEFORE, "bart"),
    "persimmon": Refusal(OTHER_BLOCK, "gpt_neox"),
    "phimoe": Refusal(EXPERTS, "llama"),
    "plbart": Refusal(UNTRIED, "bart"),
    "qwen": Refusal(FUSED, "qwen2"),
    "qwen2_5_vl": Refusal(IMAGES, "qwen2"),
    "qwen2_moe": Refusal(EXPERTS, "qwen2"),
    "qwen2_vl": Refusal(IMAGES, "qwen2"),
    "qwen3_5": Refusal(MIXED, "qwen3"),
    "qwen3_moe": Refusal(EXPERTS, "qwen3"),
    "qwen3_next": Refusal(MIXED, "qwen3"),
    "recurrent_gemma": Refusal(MIXED, "llama"),
    "reformer": Refusal(APPROXIMATE, "bert"),
    "rembert": Refusal(NARROW, "bert"),
    "roberta-prelayernorm": Refusal(BEFORE, "roberta"),
    "roformer": Refusal(NEIGHBOURS, "bert"),
    "rwkv": Refusal(STATE, "gpt_neox"),
    "seed_oss": Refusal(UNTRIED, "qwen2"),
    "siglip": Refusal("its head attends to all patches, and it has no class token", "clip"),
    "siglip2": Refusal("its head attends to all patches, and it has no class token", "clip"),
    "squeezebert": Refusal("its matrices are grouped convolutions", "bert"),
    "swin": Refusal("its layers attend within windows and merge patches", "vit"),
    "switch_transformers": Refusal(EXPERTS, "t5"),
    "umt5": Refusal("each layer has its own table of distances", "t5"),
    "vit_mae": Refusal("it masks patches and reconstructs them with a decoder", "vit"),
    "vit_msn": Refusal(UNTRIED, "vit"),
    "vaultgemma": Refusal(GEMMA, "llama"),
    "xglm": Refusal(UNTRIED, "gpt2"),
    "xlm": Refusal(UNTRIED, "xlm-roberta"),
    "xlm-roberta-xl": Refusal(BEFORE, "xlm-roberta"),
    "xlnet": Refusal("it has permuted factorization orders and two streams", "bert"),
    "xlstm": Refusal(STATE, "gpt_neox"),
    "xmod": Refusal("each language has its own layers", "xlm-roberta"),
    "yoso": Refusal(APPROXIMATE, "bert"),
    "zamba": Refusal(MIXED, "llama"),
    "zamba2": Refusal(MIXED, "llama"),
}
# families of which some checkpoints are refused, by a number in their config
PARTLY = {
    "deberta": Refusal(NARROW, "microsoft/deberta-base"),
    "deberta-v2": Refusal(NARROW, "microsoft/deberta-v3-base"),
    "opt": Refusal(NARROW, "facebook/opt-125m"),
}
# key of that number; where it is missing it is hidden_size
WIDTHS = {
    "opt": "word_embed_proj_dim",
    "deberta": "embedding_size",
    "deberta-v2": "embedding_size",
}


def reason(model_type):
    """What an error says of a model type that does not load; "" where nothing is known."""
    if model_type not in REFUSED:
        return ""
    why, nearest = REFUSED[model_type]
    return f"; {model_type} is not: {why}; the closest supported is {nearest}"


def check(raw):
    """Raises ValueError for a checkpoint that is refused, of a family that loads."""
    if raw["model_type"] not in PARTLY:
        return
    why, nearest = PARTLY[raw["model_type"]]
    key = WIDTHS[raw["model_type"]]
    sizes = raw.get(key), raw.get("hidden_size")
    if (sizes[0] or sizes[1]) != sizes[1]:
        given = f"{key} is {sizes[0]!r}, hidden_size {sizes[1]!r}"
        raise ValueError(f"{given}; wanted the same: {why}; the closest supported is {nearest}")
