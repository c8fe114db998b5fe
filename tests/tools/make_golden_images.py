"""Makes tests/golden/images: tiny random models of pictures, six of each family, and their numbers.

A folder holds config.json, model.safetensors and preprocessor_config.json, as the reference library
saves them, and reference.safetensors: `pixels` [B C h w], the library's own points in float64 by
minitx's names (`q.0`), `logits`, and `float32.logits` of the library as it is. CLIP has those of
its text side too (`text.ids`, `text.q.0`), and `similarity`.

In float64 one thing is patched: ViT, DeiT and CLIP take attention's softmax in float32, whatever
the model's dtype. Every parameter is drawn at random, biases and norms too. `preprocessing.npz`
has 50 generated pictures and what the library's processors make of each (pictures.py draws them).
"""

import contextlib
import json
import sys
import zlib
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pictures
import torch
import transformers
from make_golden import file_statistics, hooked
from safetensors.torch import save_file

GOLDEN = Path(__file__).parents[1] / "golden" / "images"
VIT = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=6)
VIT |= dict(image_size=8, patch_size=4, num_channels=3)
DINO = {key: x for key, x in VIT.items() if key != "intermediate_size"} | dict(mlp_ratio=2)
TEXT = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10)
TEXT |= dict(vocab_size=23, max_position_embeddings=9, bos_token_id=20, eos_token_id=22)
TEXT |= dict(pad_token_id=0)
WIDE = dict(image_size=[8, 12], patch_size=[4, 2])
# folder | class that is saved | changes of its config
VARIANTS = [
    ("vit-image", "ViTForImageClassification", dict(num_labels=3)),
    ("vit-bare", "ViTModel", dict(hidden_act="relu", layer_norm_eps=1e-3)),
    ("vit-biasless", "ViTForImageClassification", dict(qkv_bias=False, num_labels=2)),
    ("vit-wide", "ViTForImageClassification", WIDE | dict(num_labels=3)),
    ("vit-gray", "ViTForImageClassification", dict(num_channels=1, num_attention_heads=1)),
    ("vit-deep", "ViTForImageClassification", dict(num_hidden_layers=4, hidden_act="gelu_new")),
    ("deit-image", "DeiTForImageClassification", dict(num_labels=3)),
    ("deit-taught", "DeiTForImageClassificationWithTeacher", dict(num_labels=3)),
    ("deit-bare", "DeiTModel", dict(hidden_act="silu")),
    ("deit-biasless", "DeiTForImageClassificationWithTeacher", dict(qkv_bias=False)),
    ("deit-wide", "DeiTForImageClassificationWithTeacher", WIDE | dict(num_labels=4)),
    ("deit-deep", "DeiTForImageClassification", dict(num_hidden_layers=3, layer_norm_eps=1e-6)),
    ("dinov2-image", "Dinov2ForImageClassification", dict(num_labels=3)),
    ("dinov2-bare", "Dinov2Model", dict(mlp_ratio=3)),
    ("dinov2-gated", "Dinov2ForImageClassification", dict(use_swiglu_ffn=True, num_labels=3)),
    ("dinov2-gated-bare", "Dinov2Model", dict(use_swiglu_ffn=True, mlp_ratio=4, qkv_bias=False)),
    ("dinov2-unmasked", "Dinov2ForImageClassification", dict(use_mask_token=False)),
    ("dinov2-deep", "Dinov2Model", dict(num_hidden_layers=4, hidden_act="gelu_new")),
    ("clip-both", "CLIPModel", {}),
    ("clip-gelu", "CLIPModel", dict(hidden_act="gelu", projection_dim=5)),
    ("clip-deep", "CLIPModel", dict(num_hidden_layers=3, num_attention_heads=4)),
    ("clip-old-end", "CLIPModel", dict(text=dict(eos_token_id=2), layer_norm_eps=1e-3)),
    ("clip-pictures", "CLIPVisionModelWithProjection", dict(projection_dim=6)),
    ("clip-texts", "CLIPTextModelWithProjection", dict(projection_dim=6)),
]


def settings_of(name, changes):
    changes = dict(changes)
    if name.startswith("dinov2"):
        return DINO | changes
    if name == "clip-pictures":
        return VIT | changes
    if name == "clip-texts":
        return TEXT | changes
    if not name.startswith("clip"):
        return VIT | changes
    text, width = changes.pop("text", {}), changes.pop("projection_dim", 7)
    sides = {"vision_config": VIT | changes, "text_config": TEXT | changes | text}
    return sides | {"projection_dim": width}


def build(name, class_name, changes, rng):
    cls = getattr(transformers, class_name)
    config = cls.config_class(**settings_of(name, changes), attn_implementation="eager")
    model = cls(config).eval()
    for key, parameter in model.named_parameters():
        x = draw(key, parameter.shape, rng)
        parameter.data = torch.tensor(x, dtype=torch.float32)
    return model


def draw(name, shape, rng):
    """Random values on the scale at which attention is neither flat nor sharp."""
    if "norm" in name or "lambda" in name:
        return rng.normal(float(not name.endswith("bias")), 0.3, shape)
    if name == "logit_scale":
        return np.array(1.3)
    if len(shape) == 1 or "token" in name or "position" in name:
        return rng.normal(0.0, 0.5, shape)
    return rng.normal(0.0, 1.4 / np.prod(shape[1:]) ** 0.5, shape)


LAYER = r"(?:layers|layer)\.(\d+)"
HOOKS = [  # end of a module's name, and the points that go in and come out
    (LAYER, "resid_pre", "resid_post"),
    (LAYER + r"\.(?:layernorm_before|norm1|layer_norm1)", None, "ln1"),
    (LAYER + r"\.(?:attention|self_attn)\.q_proj", None, "q"),
    (LAYER + r"\.(?:attention|self_attn)\.k_proj", None, "k"),
    (LAYER + r"\.(?:attention|self_attn)\.v_proj", None, "v"),
    (LAYER + r"\.(?:attention|self_attn)\.(?:o_proj|out_proj)", "z", "attn_out"),
    (LAYER + r"\.layer_scale1", None, "attn_out"),
    (LAYER + r"\.(?:layernorm_after|norm2|layer_norm2)", "resid_mid", "ln2"),
    (LAYER + r"\.mlp\.(?:fc1|gate_proj)", None, "pre"),
    (LAYER + r"\.mlp\.up_proj", None, "pre_linear"),
    (LAYER + r"\.mlp\.(?:fc2|down_proj)", "post", "mlp_out"),
    (LAYER + r"\.layer_scale2", None, "mlp_out"),
    ("patch_embeddings|patch_embedding", None, "patches"),
    ("token_embedding", None, "embed"),
    ("pre_layrnorm", None, "ln_embed"),
    ("layernorm|post_layernorm|final_layer_norm", None, "ln_final"),
]
BY_HEAD = "q", "k", "v", "z"


def file_points(n_heads, seen, name, points, ending, module, args, out):
    """What enters and leaves a module, and the numbers of a norm."""
    out = out[0] if isinstance(out, tuple) else out
    for point, x in zip(points, (args[0], out)):
        if point in BY_HEAD:
            seen[point + ending] = x.reshape(*x.shape[:2], n_heads, -1).transpose(1, 2)
        elif point:
            seen[point + ending] = x
    file_statistics(module, args[0], points[1], ending, seen)


@contextlib.contextmanager
def softmax_in_float64(seen):
    """Softmax in the dtype of its input; files what goes in and comes out, layer after layer."""
    softmax = torch.nn.functional.softmax

    def patched(x, dim=-1, dtype=None):
        layer = sum(key.startswith("scores") for key in seen)
        seen[f"scores.{layer}"] = x
        seen[f"pattern.{layer}"] = y = softmax(x, dim=dim)
        return y

    with mock.patch.object(torch.nn.functional, "softmax", patched):
        yield


def points_of(model, run, n_heads):
    """What a call of the library gives, and all points on the way."""
    seen = {}
    handles = hooked(model, HOOKS, partial(file_points, n_heads, seen))
    with torch.no_grad(), softmax_in_float64(seen):
        out = run(model)
    for handle in handles:
        handle.remove()
    return out, seen


def embedded(model, seen, B):
    """The points before the layers, of tensors by the library's names."""
    held = dict(model.named_parameters())

    def by_end(*ends):
        return next((x for name, x in held.items() for e in ends if name.endswith(e)), None)

    if "patches" not in seen:
        positions = by_end("text_model.embeddings.position_embedding.weight")
        return {"pos_embed": positions[: seen["embed"].shape[1]].expand(B, -1, -1)}
    patches = seen.pop("patches")
    patches = patches.flatten(2).transpose(1, 2) if patches.ndim == 4 else patches
    specials = [by_end("cls_token", "class_embedding"), by_end("distillation_token")]
    specials = [x.reshape(1, 1, -1).expand(B, -1, -1) for x in specials if x is not None]
    positions = by_end("position_embeddings", "vision_model.embeddings.position_embedding.weight")
    positions = positions.reshape(1, -1, patches.shape[2]).expand(B, -1, -1)
    return {"embed": torch.cat([*specials, patches], 1), "pos_embed": positions}


def side(model, run, n_heads, B, prefix=""):
    out, seen = points_of(model, run, n_heads)
    seen |= embedded(model, seen, B)
    if out is not None:
        seen["logits"] = out
    for key in [key for key in seen if key.startswith("resid_pre") and key != "resid_pre.0"]:
        del seen[key]  # the resid_post of the layer before
    return {prefix + name: x.detach().clone().contiguous() for name, x in seen.items()}


def logits_of(model, pixels):
    """What a class computes from pixels; None of one without a head."""
    if isinstance(model, transformers.CLIPModel):
        return model.get_image_features(pixel_values=pixels).pooler_output
    out = model(pixel_values=pixels)
    return out.get("logits", out.get("image_embeds"))


def texts(rng, end):
    """Two texts of ids, the second padded on the right; each ends in the id of the end."""
    ids = rng.integers(1, 20, (2, 7))
    ids[0, 6] = ids[1, 4] = end
    ids[1, 5:] = 0
    valid = np.ones((2, 7), np.int64)
    valid[1, 5:] = 0
    return torch.tensor(ids), torch.tensor(valid)


def text_features(model, ids, valid):
    if isinstance(model, transformers.CLIPModel):
        return model.get_text_features(input_ids=ids, attention_mask=valid).pooler_output
    return model(input_ids=ids, attention_mask=valid).text_embeds


def reference(name, class_name, model, rng):
    stored = {}
    if name != "clip-texts":
        stored |= of_pictures(name, model, rng)
    if name.startswith("clip") and name != "clip-pictures":
        stored |= of_texts(model, rng)
    if class_name == "CLIPModel":
        ids, valid, pixels = (stored[key] for key in ("text.ids", "text.valid", "pixels"))
        with torch.no_grad(), softmax_in_float64({}):
            out = model.double()(input_ids=ids, attention_mask=valid, pixel_values=pixels)
        stored["similarity"] = out.logits_per_image
    return {key: x.detach().clone().contiguous() for key, x in stored.items()}


def of_pictures(name, model, rng):
    vision = getattr(model.config, "vision_config", model.config)
    size = vision.image_size
    height, width = size if isinstance(size, list | tuple) else (size, size)
    pixels = torch.tensor(rng.normal(0, 1, (1, vision.num_channels, height, width)))
    stored = {"pixels": pixels}
    with torch.no_grad():
        plain = logits_of(model.float(), pixels.float())
    if plain is not None:
        stored["float32.logits"] = plain
    double, heads = model.double(), vision.num_attention_heads
    stored |= side(double, lambda m: logits_of(m, pixels), heads, 1)
    if name in RESIZED:
        stored |= at_another_size(double, RESIZED[name], rng)
    return stored


def of_texts(model, rng):
    ids, valid = texts(rng, 22)
    stored = {"text.ids": ids, "text.valid": valid}
    with torch.no_grad():
        stored["float32.text.logits"] = text_features(model.float(), ids, valid)
    heads = getattr(model.config, "text_config", model.config).num_attention_heads
    double = model.double()
    points = side(double, lambda m: text_features(m, ids, valid), heads, len(ids), "text.")
    return stored | points


RESIZED = {"vit-image": (12, 20), "dinov2-bare": (12, 4)}


def at_another_size(model, size, rng):
    """The last stream of a picture of another size; DINOv2 interpolates without being asked."""
    pixels = torch.tensor(rng.normal(0, 1, (1, 3, *size)))
    body = getattr(model, model.base_model_prefix, model)
    asked = {"interpolate_pos_encoding": True} if model.config.model_type == "vit" else {}
    with torch.no_grad(), softmax_in_float64({}):
        out = body(pixel_values=pixels, **asked).last_hidden_state
    return {"resized.pixels": pixels, "resized.ln_final": out}


PREPROCESSOR = {  # of the golden folders: nothing is resized
    "image_processor_type": "ViTImageProcessor",
    "do_resize": False,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.25, 0.3],
}


def folder(name, class_name, changes):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    model = build(name, class_name, changes, rng)
    place = GOLDEN / name
    model.save_pretrained(place)
    settings = dict(PREPROCESSOR)
    if getattr(model.config, "num_channels", 3) == 1:
        settings |= {"image_mean": 0.5, "image_std": 0.5}
    if name != "clip-texts":
        (place / "preprocessor_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    save_file(reference(name, class_name, model, rng), place / "reference.safetensors")
    print(name, file=sys.stderr)


def preprocessing():
    """What the library's processors on Pillow make of the generated pictures."""
    arrays = {}
    for name, settings in pictures.PROCESSORS.items():
        kind = settings["image_processor_type"] + "Pil"
        cls = getattr(transformers, kind, None)
        if cls is None:
            package, cls_name = pictures.PIL_CLASSES[name]
            cls = getattr(__import__(package, fromlist=[cls_name]), cls_name)
        given = {key: x for key, x in settings.items() if key != "image_processor_type"}
        processor = cls(**given, do_convert_rgb=True)
        for number, image in enumerate(pictures.drawn()):
            out = processor(image, return_tensors="np")["pixel_values"][0]
            arrays[f"{name}.{number}"] = np.asarray(out, np.float32)
    np.savez_compressed(GOLDEN / "preprocessing.npz", **arrays)


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for variant in VARIANTS:
        if not sys.argv[1:] or variant[0] in sys.argv[1:]:
            folder(*variant)
    if not sys.argv[1:]:
        preprocessing()
        versions = {"transformers": transformers.__version__, "torch": torch.__version__}
        text = json.dumps(versions, indent=1) + "\n"
        (GOLDEN.parent / "versions-images.json").write_text(text)
