"""Makes tests/golden/generated: tiny random models, and what the reference library generates.

    python tests/tools/make_generated.py              (needs torch and transformers)
    python tests/tools/make_generated.py settings     settings.json alone

A folder holds a checkpoint in float16 with its generation settings, and outputs.safetensors:
`source` [N S], or `prompt` for a causal model, and under the name of each setting the new tokens
[N n]; -1 fills up. The library reads exactly these files. It computes in float64 here: T5's norms,
Marian's sinusoids and the scores of beams, which it rounds to float32, are patched, so that
rounding decides nothing. settings.json has texts that were generated one by one with random
settings of a folder, `folder`, and arguments, `how`; a sample is drawn as `drawn` says.
"""

import json
import re
import shutil
import sys
import tempfile
import zlib
from pathlib import Path

import make_golden
import make_golden_pairs
import numpy as np
import standins
import torch
import transformers
from safetensors.torch import save_file
from transformers.generation import GenerationConfig, utils
from transformers.models.t5.modeling_t5 import T5LayerNorm

GENERATED = Path(__file__).parents[1] / "golden" / "generated"
TEXTS, LONGEST, NEW = 200, 9, 12
# with tied embeddings they repeat themselves: their own token is the likeliest
UNTIED = dict(tie_word_embeddings=False)
BART = make_golden_pairs.BART | UNTIED | dict(decoder_ffn_dim=30, max_position_embeddings=24)
T5 = make_golden_pairs.T5 | UNTIED
T5 |= dict(relative_attention_num_buckets=6, relative_attention_max_distance=12)
GPT2 = make_golden.GPT2 | UNTIED | dict(n_positions=24)
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
    f"beams-{beams}-{penalty:g}": dict(
        num_beams=beams, length_penalty=penalty, early_stopping=False
    )
    for beams in (2, 4)
    for penalty in (0.5, 1.0, 2.0)
}
SETTINGS["beams-4-1-early"] = SETTINGS["beams-4-1"] | dict(early_stopping=True)


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
    kept = config.to_diff_dict() | sizes | settings | {"dtype": "float16"}
    write(folder / "config.json", {k: x for k, x in kept.items() if k != "transformers_version"})
    if generation is not None:
        write(folder / "generation_config.json", generation)


def write(path, values):
    path.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")


# --- the library in float64


class Doubled:
    """torch, for generation's own arithmetic, with float64 in place of float32."""

    rng = None  # of samples

    def __getattr__(self, name):
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)

    def multinomial(self, p, num_samples):
        """A sample of each row: tokens lie side by side, the likeliest first, on a line."""
        p, order = p.sort(descending=True, stable=True)
        ends = p.cumsum(1)
        target = torch.tensor(self.rng.random((len(p), 1))) * ends[:, -1:]
        return order.gather(1, (ends < target).sum(1, keepdim=True))


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
            weight = stack.embed_positions.weight
            weight.data = torch.tensor(standins.sinusoids(*weight.shape))
    return model


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


def setting(rng, causal):
    """Random settings of a folder, and arguments of the library's `generate`."""

    def pick(*values):
        return values[rng.integers(len(values))]

    asked = {"repetition_penalty": pick(0.7, 1.3, 2.5), "no_repeat_ngram_size": pick(1, 2, 3, 4)}
    asked[pick("min_length", "min_new_tokens")] = pick(3, 8, 14)
    some = rng.permutation(61)[3:20].tolist()
    asked["bad_words_ids"] = [[a] for a in some[:3]] + [[a, a] for a in some[3:]]
    asked["renormalize_logits"] = True
    if not causal:
        asked |= {"forced_bos_token_id": 8, "forced_eos_token_id": 9}
    folder = {name: value for name, value in asked.items() if rng.random() < 0.4}
    movable = ("repetition_penalty", "no_repeat_ngram_size", "min_new_tokens")
    moved = [name for name in movable if name in folder and rng.random() < 0.3]
    return folder, {name: folder.pop(name) for name in moved} | search(rng, pick)


def search(rng, pick):
    kind = rng.integers(3)
    if kind == 0:
        beams = {"num_beams": pick(2, 4), "length_penalty": pick(-1.0, 0.5, 1.0, 2.0)}
        return beams | {"early_stopping": pick(True, False, "never")}
    if kind == 1:
        sample = {"temperature": pick(0.5, 1.0, 2.0), "top_k": pick(3, 10, 61)}
        return sample | {"top_p": pick(0.5, 0.9, 1.0), "seed": int(rng.integers(99))}
    return {}


def generated(name, model, rng):
    """What the library generates from one random text with random settings of its folder."""
    causal, in_config = not model.config.is_encoder_decoder, bool(rng.integers(2))
    own, how = setting(rng, causal)
    with tempfile.TemporaryDirectory() as copy:
        folder = Path(shutil.copytree(GENERATED / name, copy, dirs_exist_ok=True))
        place_settings(folder, own, in_config)
        file = {"config_file_name": "config.json", "_from_model_config": True} if in_config else {}
        model.generation_config = GenerationConfig.from_pretrained(folder, **file)
    utils.torch.rng = np.random.default_rng(how.get("seed"))
    text = rng.integers(3, 58, rng.integers(1, LONGEST + 1)).tolist()
    given = {key: value for key, value in how.items() if key != "seed"}
    given |= {"max_new_tokens": NEW, "do_sample": "seed" in how}
    with torch.no_grad():
        row = model.generate(torch.tensor([text]), attention_mask=torch.ones(1, len(text)), **given)
    start = len(text) if causal else 1
    new = row[0, start:].tolist()
    return dict(model=name, in_config=in_config, folder=own, how=how, text=text, new=new)


def place_settings(folder, own, in_config):
    """Settings in config.json, without the other file, or in generation_config.json."""
    config, file = folder / "config.json", folder / "generation_config.json"
    raw = json.loads(config.read_text())
    if in_config:
        write(config, raw | own)
        file.unlink(missing_ok=True)
    else:
        ends = {key: raw[key] for key in ("eos_token_id", "decoder_start_token_id") if key in raw}
        write(file, ends | own)


def make_settings():
    models = {name: row[0] for name, row in MODELS.items()}
    models["../llama-grouped"] = "LlamaForCausalLM"
    rng, lines = np.random.default_rng(0), []
    for name, class_name in models.items():
        model = library_model(GENERATED / name, class_name)
        lines += [json.dumps(generated(name, model, rng)) for _ in range(60)]
    (GENERATED / "settings.json").write_text("[" + ",\n".join(lines) + "]\n")


def main():
    if sys.argv[1:] == ["settings"]:
        return make_settings()
    for name in sys.argv[1:] or MODELS:
        class_name, sizes, settings, generation = MODELS[name]
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        make(GENERATED / name, class_name, sizes, settings, generation, rng)
        arrays = outputs(library_model(GENERATED / name, class_name), rng)
        save_file(arrays, GENERATED / name / "outputs.safetensors")
    return make_settings()


if __name__ == "__main__":
    main()
