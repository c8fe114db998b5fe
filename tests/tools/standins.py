"""Stand-ins for three folders of the hub: their files, keys and tensor names, with tiny sizes.

facebook/bart-base, Helsinki-NLP/opus-mt-en-de and google-t5/t5-small cannot be downloaded where the
tests run. What their files say is written here from memory of the published folders; sizes, ids and
weights are others.
"""

import json
from pathlib import Path

import numpy as np
import tiny
from analysis_models import random_tensors
from encoder_decoders import D, H, M, T, stacks, t5_layer, with_bias

PIECES = Path(__file__).parents[1] / "golden" / "pieces"
BART, MARIAN, T5 = "facebook/bart-base", "Helsinki-NLP/opus-mt-en-de", "google-t5/t5-small"
L = 2
LAYERS = {"encoder": L, "decoder": L}
TOKENIZERS = {  # what each brings for its texts: name -> place among the golden ones
    BART: {"vocab.json": "bart", "merges.txt": "bart"},
    MARIAN: dict.fromkeys(
        ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"), "marian"
    ),
    T5: {"spiece.model": "t5", "tokenizer.json": "t5-json"},
}
CLUTTER = ".gitattributes README.md flax_model.msgpack rust_model.ot tf_model.h5 pytorch_model.bin"


def files(repo):
    """{name: bytes} of one of the three folders."""
    tokenizer = {name: (PIECES / of / name).read_bytes() for name, of in TOKENIZERS[repo].items()}
    settings, tensors = {BART: bart, MARIAN: marian, T5: t5}[repo]()
    generation = {name: settings[name] for name in GENERATION if name in settings}
    own = {
        "config.json": json.dumps(settings).encode(),
        "generation_config.json": json.dumps(generation).encode(),
        "model.safetensors": tiny.pack(tensors),
    }
    if repo == BART:
        del own["generation_config.json"]
    return dict.fromkeys(CLUTTER.split(), b"other") | tokenizer | own


GENERATION = (
    "bad_words_ids bos_token_id decoder_start_token_id eos_token_id forced_eos_token_id max_length "
    "num_beams pad_token_id"
).split()
LABELS = {f"LABEL_{i}": i for i in range(3)}
BOTH = {  # of BART and Marian
    "add_bias_logits": False,
    "add_final_layer_norm": False,
    "attention_dropout": 0.1,
    "classif_dropout": 0.1,
    "classifier_dropout": 0.0,
    "d_model": D,
    "decoder_attention_heads": H,
    "decoder_ffn_dim": M,
    "decoder_layerdrop": 0.0,
    "decoder_layers": L,
    "dropout": 0.1,
    "encoder_attention_heads": H,
    "encoder_ffn_dim": M,
    "encoder_layerdrop": 0.0,
    "encoder_layers": L,
    "id2label": {str(i): label for label, i in LABELS.items()},
    "init_std": 0.02,
    "is_encoder_decoder": True,
    "label2id": LABELS,
    "max_position_embeddings": T,
    "normalize_before": False,
    "num_hidden_layers": L,
    "use_cache": True,
}


OF_BART = {
    "_name_or_path": "bart-base",
    "activation_dropout": 0.1,
    "activation_function": "gelu",
    "architectures": ["BartModel"],
    "bos_token_id": 0,
    "decoder_start_token_id": 2,
    "early_stopping": True,
    "eos_token_id": 2,
    "forced_eos_token_id": 2,
    "gradient_checkpointing": False,
    "model_type": "bart",
    "no_repeat_ngram_size": 3,
    "normalize_embedding": True,
    "num_beams": 4,
    "pad_token_id": 1,
    "scale_embedding": False,
    "task_specific_params": {"summarization": {"length_penalty": 1.0, "max_length": 128}},
    "torch_dtype": "float32",
    "transformers_version": "4.12.0.dev0",
}
OF_MARIAN = {
    "activation_dropout": 0.0,
    "activation_function": "swish",
    "architectures": ["MarianMTModel"],
    "bos_token_id": 0,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "max_length": T,
    "model_type": "marian",
    "normalize_embedding": False,
    "num_beams": 6,
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "static_position_embeddings": True,
    "transformers_version": "4.22.0.dev0",
}
OF_T5 = {
    "architectures": ["T5ForConditionalGeneration"],
    "d_ff": M,
    "d_kv": 10,
    "d_model": D,
    "decoder_start_token_id": 0,
    "dropout_rate": 0.1,
    "eos_token_id": 1,
    "initializer_factor": 1.0,
    "is_encoder_decoder": True,
    "layer_norm_epsilon": 1e-06,
    "model_type": "t5",
    "n_positions": 512,
    "num_heads": H,
    "num_layers": L,
    "output_past": True,
    "pad_token_id": 0,
    "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"num_beams": 4, "prefix": "summarize: "}},
    "vocab_size": 512,
}


def n_pieces(name):
    return len(json.loads((PIECES / name / "vocab.json").read_text(encoding="utf-8")))


def bart():
    """Settings and tensors of BART, saved without its head."""
    n = n_pieces("bart")
    settings = BOTH | OF_BART | {"vocab_size": n}
    sizes = {"shared.weight": (n, D)} | stacks(LAYERS, prefix="")
    for side in LAYERS:
        sizes |= {f"{side}.embed_positions.weight": (T + 2, D)}
        sizes |= with_bias(f"{side}.layernorm_embedding", D)
    return settings, with_copies(random_tensors(sizes))


def marian():
    """Settings and tensors of OPUS-MT; its padding, the last id, is what a target begins with."""
    n = n_pieces("marian")
    settings = BOTH | OF_MARIAN | {"vocab_size": n, "decoder_vocab_size": n}
    settings |= dict.fromkeys(("pad_token_id", "decoder_start_token_id"), n - 1)
    settings["bad_words_ids"] = [[n - 1]]
    sizes = {"model.shared.weight": (n, D), "final_logits_bias": (1, n)} | stacks(LAYERS)
    # computed, and in the files all the same
    table = sinusoids(T, D).astype(np.float32)
    tables = {f"model.{side}.embed_positions.weight": table for side in LAYERS}
    return settings, random_tensors(sizes) | tables


def sinusoids(n, width):
    """A table of positions, sines in its first half and cosines in its second."""
    angles = np.arange(n)[:, None] / 10000 ** (2 * np.arange(width // 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def t5():
    """Settings and tensors of T5; heads are not as wide as the stream has room for."""
    sizes = {"shared.weight": (OF_T5["vocab_size"], D)}  # more rows than tokens, as published
    for side in LAYERS:
        sizes[f"{side}.final_layer_norm.weight"] = (D,)
        for i in range(L):
            sizes |= t5_layer(f"{side}.block.{i}.layer", side == "decoder", inner=["wi"])
    for name in [
        name for name in sizes if ".block.0." in name and name.endswith("Attention.q.weight")
    ]:
        sizes[name.replace("q.weight", "relative_attention_bias.weight")] = 32, H
    return OF_T5, with_copies(random_tensors(sizes))


def with_copies(tensors):
    """The word embedding under its names in the two stacks, too."""
    words = tensors["shared.weight"]
    return tensors | {f"{side}.embed_tokens.weight": words for side in LAYERS}
