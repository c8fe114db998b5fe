"""cfg.json and sae_weights.safetensors of SAELens, before and after its version 6.

Deny by default: a key that changes what is computed is read, or refused by its name; so is a key
that nobody here knows, unless it has no effect.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..loading.files import listing, map_file, read_json
from ..names import point_of
from ..weights.local import BUNDLED

CONFIG, WEIGHTS = "cfg.json", "sae_weights.safetensors"
SMALL = "tiny-stories-sae"  # the bundled one
COMMON = {"W_enc": "DF", "W_dec": "FD", "b_dec": "D"}
TENSORS = {  # architecture -> {tensor: its axes}
    "standard": COMMON | {"b_enc": "F"},
    "topk": COMMON | {"b_enc": "F"},
    "jumprelu": COMMON | {"b_enc": "F", "threshold": "F"},
    "gated": COMMON | {"b_gate": "F", "r_mag": "F", "b_mag": "F"},
}
RENAMED = {"hook_point": "hook_name", "activation_fn_str": "activation_fn"}
RENAMED |= {"hook_point_layer": "hook_layer", "hook_point_head_index": "hook_head_index"}
NORMS = {None: "none", False: "none"} | {
    name: name for name in ("none", "layer_norm", "constant_norm_rescale")
}
ONLY = {  # key -> the values that change nothing; others are refused
    "finetuning_scaling_factor": (False, None),
    "uses_scaling_factor": (False, None),
    "hook_head_index": (None,),
    "reshape_activations": ("none", "hook_z", None),  # heads stand side by side in any case
    "noise_scale": (0, None),
}
KINDS = {  # key -> what its value is, where it is not null
    "architecture": str,
    "normalize_activations": str | bool,
    "activation_fn": str,
    "activation_fn_kwargs": dict,
    "model_from_pretrained_kwargs": dict,
    "apply_b_dec_to_input": bool,
    "rescale_acts_by_decoder_norm": bool,
    "hook_name": str,
}
INERT = set(
    """
    d_in d_sae architecture dtype device k activation_fn activation_fn_kwargs meta metadata
    apply_b_dec_to_input normalize_activations rescale_acts_by_decoder_norm hook_name hook_layer
    model_from_pretrained_kwargs
    model_name model_class_name hf_model_name prepend_bos exclude_special_tokens neuronpedia_id
    context_size seqpos_slice dataset_path dataset_trust_remote_code sae_lens_version
    sae_lens_training_version mse_loss_normalization b_dec_init_method decoder_init_norm
    l1_coefficient l1_warm_up_steps lp_norm l0_coefficient l0_warm_up_steps jumprelu_bandwidth
    jumprelu_init_threshold jumprelu_sparsity_loss_mode jumprelu_tanh_scale pre_act_loss_coefficient
    aux_loss_coefficient use_sparse_activations use_ghost_grads
    scale_sparsity_penalty_by_decoder_norm init_encoder_as_decoder_transpose
    """.split()
)


class Settings(NamedTuple):
    """What changes the numbers of an autoencoder."""

    architecture: str
    apply_b_dec_to_input: bool
    normalize: str
    k: int
    rescale: bool  # by the decoder's norms
    is_centred: bool  # the model that it was trained on writes vectors of mean 0
    hook_name: str

    def point(self):
        """The point of its hook. Raises ValueError where none is named."""
        if not self.hook_name:
            raise ValueError(f"{CONFIG} names no hook: it is not known which point this reads")
        return point_of(self.hook_name)


def read_sae(folder, dtype):
    """Settings and arrays of a folder. Raises ValueError for what would be computed otherwise."""
    folder = Path(folder)
    if not folder.exists() and str(folder) == SMALL:
        folder = BUNDLED / SMALL
    cfg = read_json(folder / CONFIG)
    for name in ("meta", "metadata"):
        own = cfg.get(name)
        cfg = {**(own if isinstance(own, dict) else {}), **cfg}
    cfg = {RENAMED.get(name, name): value for name, value in cfg.items()}
    if not (folder / WEIGHTS).is_file():
        names = listing(path.name for path in folder.iterdir())
        raise FileNotFoundError(f"no {WEIGHTS} in {folder} (there: {names})")
    settings = read_settings(cfg, folder / CONFIG)
    return settings, read_arrays(folder / WEIGHTS, settings.architecture, cfg, dtype)


def read_settings(cfg, path):
    """The Settings in a configuration. Raises ValueError that names what is not read."""
    for name, kind in KINDS.items():
        if not isinstance(cfg.get(name), kind | None):
            raise ValueError(f"{path}: {name} is {cfg[name]!r:.80}; expected {kind | None}")
    architecture = cfg.get("architecture", "standard")
    if architecture not in TENSORS:
        text = f"{path}: architecture is {architecture!r:.80}"
        raise ValueError(f"{text}; expected one of: {', '.join(TENSORS)}")
    unknown = [name for name in cfg if name not in INERT and name not in ONLY]
    if unknown:
        raise ValueError(f"{path} has keys that are not read here: {listing(unknown)}")
    for name, values in ONLY.items():
        if name in cfg and cfg[name] not in values:
            text = f"{path}: {name} is {cfg[name]!r:.80}"
            raise ValueError(f"{text}, which is not computed here; expected {values[0]!r}")
    normalize = cfg.get("normalize_activations")
    if normalize not in NORMS:
        text = (
            f"{path}: normalize_activations is {normalize!r:.80}, whose factor is not in the files"
        )
        raise ValueError(f"{text}; expected one of: none, layer_norm, constant_norm_rescale")
    k, rescale = read_activation(cfg, architecture, path)
    applied = bool(cfg.get("apply_b_dec_to_input", True))
    is_centred, hook = read_centred(cfg, path), cfg.get("hook_name") or ""
    return Settings(architecture, applied, NORMS[normalize], k, rescale, is_centred, hook)


def read_activation(cfg, architecture, path):
    """k and whether decoder norms rescale, both of topk alone."""
    given = cfg.get("activation_fn", "topk" if architecture == "topk" else "relu")
    if given != ("topk" if architecture == "topk" else "relu"):
        text = f"{path}: activation_fn is {given!r:.80} in architecture {architecture!r}"
        raise ValueError(f"{text}; expected relu, or topk in topk")
    k = cfg.get("k", (cfg.get("activation_fn_kwargs") or {}).get("k"))
    rescale = bool(cfg.get("rescale_acts_by_decoder_norm"))
    if architecture != "topk":
        if rescale:
            raise ValueError(f"{path}: rescale_acts_by_decoder_norm is computed in topk alone")
        return 0, False
    d_sae = cfg.get("d_sae")
    if type(k) is not int or type(d_sae) is not int or not 0 < k <= d_sae:
        raise ValueError(f"{path}: k is {k!r:.80}; expected a number from 1 to d_sae")
    return k, rescale


def read_centred(cfg, path):
    """Whether the model's stream was centred. Raises ValueError for other changes of the model."""
    changes = cfg.get("model_from_pretrained_kwargs") or {}
    on = [name for name, value in changes.items() if value]
    other = [name for name in on if name != "center_writing_weights"]
    if other:
        text = f"{path}: model_from_pretrained_kwargs changes the model by {listing(other)}"
        raise ValueError(f"{text}; only center_writing_weights is read")
    return bool(on)


def read_arrays(path, architecture, cfg, dtype):
    """{name: array} of the weights. Raises ValueError for one too many, too few, or of no shape."""
    tensors = map_file(path)
    axes = TENSORS[architecture]
    if "scaling_factor" in tensors and np.all(tensors["scaling_factor"]("float64") == 1):
        del tensors["scaling_factor"]
    missing = [name for name in axes if name not in tensors]
    unread = [name for name in tensors if name not in axes]
    if missing or unread:
        lacks, other = listing(missing) or "none", listing(unread) or "none"
        text = f"{path}: tensors missing: {lacks}; not read: {other}"
        raise ValueError(f"{text}; expected the tensors of {architecture!r}: {listing(axes)}")
    sizes = {"D": cfg.get("d_in"), "F": cfg.get("d_sae")}
    for name, letters in axes.items():
        given, wanted = [*tensors[name].shape], [sizes[letter] for letter in letters]
        if given != wanted:
            raise ValueError(f"{path}: {name} is {given}; expected {wanted}, by {CONFIG}")
    arrays = {name: tensors[name](dtype) for name in axes}
    for name, x in arrays.items():
        if not np.isfinite(x).all():
            raise ValueError(f"{path}: {name} has NaN or infinite numbers")
    return arrays
