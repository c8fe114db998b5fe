"""Makes tests/golden/generated: tiny random models, and what the reference library generates.

    python tests/tools/make_generated.py      (needs torch and transformers)

A folder holds a checkpoint in float16 with its generation settings, and outputs.safetensors:
`source` [N S], or `prompt` for a causal model, and under the name of each setting the new tokens
[N n]; -1 fills up. The library reads exactly these files. It computes in float64 here: T5's norms,
Marian's sinusoids and the scores of beams, which it rounds to float32, are patched, so that
rounding decides nothing. Read downward: models, files, the library in float64, `main`.
"""

import json
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers.generation import utils
from transformers.models.t5.modeling_t5 import T5LayerNorm

GENERATED = Path(__file__).parents[1] / "golden" / "generated"
TEXTS, LONGEST, NEW = 200, 9, 12
BART = dict(
    tie_word_embeddings=False,  # tied ones repeat themselves: their own token is the likeliest
    vocab_size=61,
    d_model=18,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=3,
    encoder_ffn_dim=30,
    decoder_ffn_dim=30,
    max_position_embeddings=24,
)
T5 = dict(
    tie_word_embeddings=False,
    vocab_size=61,
    d_model=18,
    d_kv=5,
    d_ff=30,
    num_layers=2,
    num_heads=3,
    relative_attention_num_buckets=6,
    relative_attention_max_distance=12,
)
GPT2 = dict(
    tie_word_embeddings=False,
    vocab_size=61,
    n_embd=18,
    n_layer=2,
    n_head=3,
    n_positions=24,
    n_inner=30,
)
# folder -> class, sizes, what of generating stands in config.json, and in generation_config.json
MODELS = {
    "bart": (
        "BartForConditionalGeneration",
        BART,
        dict(
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
            decoder_start_token_id=2,
            forced_bos_token_id=5,
            forced_eos_token_id=2,
        ),
        None,
    ),
    "marian": (
        "MarianMTModel",
        BART | dict(scale_embedding=True, activation_function="swish"),
        dict(pad_token_id=60, eos_token_id=0, decoder_start_token_id=60, forced_bos_token_id=7),
        dict(
            bad_words_ids=[[60], [0]],
            bos_token_id=0,
            decoder_start_token_id=60,
            eos_token_id=0,
            forced_eos_token_id=0,
            pad_token_id=60,
        ),
    ),
    "t5": (
        "T5ForConditionalGeneration",
        T5,
        dict(pad_token_id=0, eos_token_id=49, decoder_start_token_id=0),
        None,
    ),
    "gpt2": ("GPT2LMHeadModel", GPT2, dict(bos_token_id=60, eos_token_id=60), None),
}
SETTINGS = {"greedy": {}} | {
    f"beams-{beams}-{penalty:g}{'-early' if early else ''}": dict(
        num_beams=beams, length_penalty=penalty, early_stopping=early
    )
    for beams, penalty, early in [
        (2, 0.5, False),
        (2, 1.0, False),
        (2, 2.0, False),
        (4, 0.5, False),
        (4, 1.0, False),
        (4, 2.0, False),
        (4, 1.0, True),
    ]
}


def draw(name, shape, rng):
    """Random values on a scale at which scores and logits are neither flat nor peaked."""
    if re.search(r"norm|ln_\w", name):
        return rng.normal(1.0 if name.endswith("weight") else 0.0, 0.2, shape)
    if len(shape) == 1 or name.endswith("logits_bias"):
        return rng.normal(0.0, 0.3, shape)
    if re.search(r"shared|embed|wte|wpe|relative|lm_head", name):
        return rng.normal(0.0, 0.4 if "lm_head" in name else 0.8, shape)
    fan_in = shape[0] if re.search("c_attn|c_proj|c_fc", name) else shape[1]
    gain = 3.5 if re.search(r"\.(v|o|wi|wo|v_proj|out_proj|c_proj)\.", name) else 1.2
    if re.search(r"\.[qk]_proj", name):
        gain = 2.5
    if re.search(r"(SelfAttention|EncDecAttention)\.[qk]\.", name):
        gain = 0.9  # T5 does not divide scores
    return rng.normal(0.0, gain / fan_in**0.5, shape)


def make(folder, class_name, sizes, settings, generation, rng):
    """A random checkpoint in float16, written as old files are."""
    cls = getattr(transformers, class_name)
    config = cls.config_class(**sizes | settings)
    config.architectures = [class_name]
    model = cls(config)
    tensors = {}
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    shapes["lm_head.weight"] = (config.vocab_size, sizes.get("d_model") or sizes["n_embd"])
    for name, shape in shapes.items():
        tensors[name] = torch.tensor(draw(name, shape, rng), dtype=torch.float16)
    for name in shapes:
        if name.endswith("embed_tokens.weight"):
            tensors[name] = tensors["model.shared.weight"].clone()
    if "bart" in folder.name or "marian" in folder.name:
        bias = draw("final_logits_bias", (1, config.vocab_size), rng)
        bias[0, config.eos_token_id] = 3.0  # so that some texts end
        if generation:
            bias[0, [0, 60]] = 4.5, 6.0  # the end; padding, which is suppressed
        tensors["final_logits_bias"] = torch.tensor(bias, dtype=torch.float16)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    kept = config.to_diff_dict() | sizes | settings
    kept = {key: value for key, value in kept.items() if key not in ("transformers_version",)}
    write(folder / "config.json", kept | {"dtype": "float16"})
    if generation is not None:
        write(folder / "generation_config.json", generation)


def write(path, values):
    """A JSON file."""
    path.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")


# --- the library in float64


class Doubled:
    """torch, for generation's own arithmetic, with float64 in place of float32."""

    def __getattr__(self, name):
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)


def rms_norm(self, x):
    """T5's norm without its step to float32."""
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def library_model(folder, class_name):
    """The folder as the library reads it, in float64."""
    cls = getattr(transformers, class_name)
    model = cls.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    words = model.get_input_embeddings().weight
    assert not torch.equal(model.lm_head.weight, words), "the output embedding was not read"
    utils.torch = Doubled()
    T5LayerNorm.forward = rms_norm
    if class_name.startswith("Marian"):
        for stack in model.model.encoder, model.model.decoder:
            stack.embed_positions.weight.data = sinusoids(*stack.embed_positions.weight.shape)
    return model


def sinusoids(T, D):
    """Sines in the first half of the width, cosines in the second, as Marian has them."""
    angle = np.arange(T)[:, None] / 10000 ** (2 * np.arange(D // 2) / D)
    return torch.tensor(np.concatenate([np.sin(angle), np.cos(angle)], axis=1))


def outputs(model, rng):
    """Random inputs, and what the library generates from them with each of SETTINGS."""
    causal = not model.config.is_encoder_decoder
    given = rng.integers(3, 58, (TEXTS, LONGEST))
    lengths = rng.integers(1, LONGEST + 1, (TEXTS, 1))
    columns = np.arange(LONGEST)
    valid = columns >= LONGEST - lengths if causal else columns < lengths
    inputs = {"input_ids": torch.tensor(given), "attention_mask": torch.tensor(valid).long()}
    if causal:
        inputs["pad_token_id"] = 0
    arrays = {"prompt" if causal else "source": np.where(valid, given, -1)}
    start = LONGEST if causal else 1
    end = model.generation_config.eos_token_id
    for name, setting in SETTINGS.items():
        with torch.no_grad():
            rows = model.generate(**inputs, **setting, max_new_tokens=NEW, do_sample=False)
        arrays[name] = ended(rows[:, start:].numpy(), end)
    return {name: torch.tensor(rows, dtype=torch.int8) for name, rows in arrays.items()}


def ended(rows, end):
    """Rows with -1 behind the end token, [N NEW]."""
    full = np.full((len(rows), NEW), -1)
    for row, tokens in zip(full, rows):
        n = [*tokens, end].index(end) + 1
        row[: len(tokens[:n])] = tokens[:n]
    return full


def main():
    """Make all folders anew."""
    for name in sys.argv[1:] or MODELS:
        class_name, sizes, settings, generation = MODELS[name]
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        make(GENERATED / name, class_name, sizes, settings, generation, rng)
        arrays = outputs(library_model(GENERATED / name, class_name), rng)
        save_file(arrays, GENERATED / name / "outputs.safetensors")
        describe(name, {name: rows.numpy() for name, rows in arrays.items()})


def describe(name, arrays):
    """Whether these outputs can tell anything: how many differ, how many end, what beams change."""
    greedy = arrays["greedy"]
    ends = (greedy == -1).any(axis=1).mean()
    print(f"{name}: {len(np.unique(greedy, axis=0))} outputs, {ends:.0%} end early")
    for setting in SETTINGS:
        changed = (arrays[setting] != greedy).any(axis=1).sum()
        print(f"  {setting}: {changed} of {len(greedy)} are not greedy's")


if __name__ == "__main__":
    main()
