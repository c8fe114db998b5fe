"""What a folder or a file is that is not a checkpoint minitx reads, and what to do about it.

`find`, `fetch` and `minitx.load` all speak in these words. Read downward: a file with other content
than its name promises, weights in other forms, adapters, quantized weights, a folder's state.
"""

import itertools
import json
import re
from typing import NamedTuple

MODEL, INDEX = "model.safetensors", "model.safetensors.index.json"
CONFIG, ADAPTER = "config.json", "adapter_config.json"
MOST = 10_000  # files of a folder that are looked at

# --- a file with other content

BEGINNINGS = (  # first bytes, in lower case: what the file is, and what to do
    (
        b"version https://git-lfs",
        "a Git LFS pointer, not the file itself",
        "run `git lfs pull` in its folder (`git lfs install` once before)",
    ),
    (b"/annex/objects/", "a git-annex pointer, not the file itself", "run `git annex get`"),
    (b"<!doctype html", "a web page", "download the file, not the page that shows it"),
    (b"<html", "a web page", "download the file, not the page that shows it"),
    (b"pk\3\4", "a zip archive, as torch.save writes pickles", "convert it to safetensors"),
    (b"gguf", "a GGUF file", "convert it to safetensors"),
    (b"\x1f\x8b", "compressed with gzip", "unpack it"),
    (b"\xef\xbb\xbf", "a text with a byte order mark", "save it as UTF-8 without one"),
    (b"\xff\xfe", "UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16", "save it as UTF-8"),
)


def check_content(path):
    """Raise ValueError for a file that holds something else, such as a Git LFS pointer."""
    with open(path, "rb") as file:
        begin = file.read(64).lstrip().lower()
    if not begin:
        raise ValueError(f"{path} is empty: get the file again")
    for first, what, advice in BEGINNINGS:
        if begin.startswith(first):
            raise ValueError(f"{path} is {what}: {advice}")


# --- weights in other forms


class Form(NamedTuple):
    """Weights that are not read, by how the names of their files end."""

    endings: tuple
    what: str
    advice: str


PICKLES = ".bin", ".pt", ".pth", ".ckpt", ".pkl"
ORIGINAL = "fetch the safetensors checkpoint that it was made from"
FORMS = (  # the one that is easiest to convert first
    Form(
        PICKLES,
        "pickles",
        "a pickle can run any code; if you trust the file, convert it to model.safetensors, as "
        "save_pretrained of transformers does, or look on the model's page for a converted copy",
    ),
    Form(
        (".h5", ".keras"),
        "of TensorFlow",
        "convert it with transformers 4: from_pretrained(FOLDER, from_tf=True), save_pretrained",
    ),
    Form(
        (".msgpack",),
        "of Flax",
        "convert it with transformers 4: from_pretrained(FOLDER, from_flax=True), save_pretrained",
    ),
    Form(
        (".gguf",),
        "GGUF, mostly quantized",
        f"{ORIGINAL}, or convert it with transformers: from_pretrained(FOLDER, gguf_file=NAME), "
        "save_pretrained",
    ),
    Form((".onnx",), "an exported graph (ONNX)", ORIGINAL),
    Form((".tflite", ".mlmodel", ".ot"), "an export for another runtime", ORIGINAL),
    Form(
        (".npz", ".npy"),
        "NumPy arrays",
        "save them with safetensors.numpy.save_file as model.safetensors, under the tensor names "
        "of a supported family",
    ),
)
NO_WEIGHTS = re.compile(r"(^|/)(training_args|optimizer|scheduler|scaler|rng_state\w*)\.\w+$")
SHARD = re.compile(r"-\d+-of-\d+\.safetensors$")


def in_other_form(names):
    """What the weights among these file names are, and what to do; "" if there are none."""
    names = [name for name in names if not NO_WEIGHTS.search(name)]
    for form in FORMS:
        files = [name for name in names if name.endswith(form.endings)]
        if files:
            return (
                f"weights only as {listing(files)}, {form.what}, which minitx never opens: "
                f"{form.advice}"
            )
    tensors = [name for name in names if name.endswith(".safetensors")]
    if any(map(SHARD.search, tensors)):
        return f"shards ({listing(tensors)}) without {INDEX}: get this file, too"
    if tensors:
        return f"weights as {listing(tensors)}; wanted the name {MODEL}: rename the file"
    return ""


def listing(names):
    """The first names, sorted, and how many there are if that is not all."""
    names = sorted(names)
    more = f", … ({len(names)} in all)" if len(names) > 6 else ""
    return ", ".join(one_line(name, 100) for name in names[:6]) + more


def one_line(text, longest=300):
    """What a file says, as a message shows it: control characters escaped, what is long cut off."""
    text = str(text)
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:longest])
    return shown if len(text) <= longest else f"{shown}… ({len(text)} characters)"


# --- adapters

MERGE = (
    "merge them with the peft library, merge_and_unload() and save_pretrained(), and give the "
    "folder that this writes"
)


def is_adapter(names):
    """Whether these files are an adapter without the model that it changes."""
    return any(name.startswith("adapter_") for name in names) and not {MODEL, INDEX} & {*names}


def of_adapter(folder):
    """The kind of an adapter, its model, and what to do; folder: None where no file was read."""
    stated = {} if folder is None else _object(folder / ADAPTER)
    base = stated.get("base_model_name_or_path") or f"the model that {ADAPTER} names"
    kind = one_line(stated.get("peft_type") or "LoRA", 40).replace("LORA", "LoRA")
    text = f"a PEFT adapter ({kind}) of {one_line(base, 200)}, not a model"
    if re.search("PROMPT|P_TUNING|PREFIX", kind):
        return f"{text}: its virtual tokens cannot be merged into weights, and are not supported"
    return f"{text}: {MERGE}"


def _object(path):
    """The JSON object in a file; {} where there is none."""
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


# --- quantized weights

STATED = "quantization_config", "compression_config", "quantization"  # keys of config.json
NAMED = {  # how a tensor's name ends: the kind
    r"\.qweight$": "GPTQ or AWQ",
    r"\.bitsandbytes__\w+$": "bitsandbytes, 4 bits",
    r"\.SCB$": "bitsandbytes, 8 bits",
    r"\.weight_packed$": "compressed-tensors",
    r"\.weight_scale(_inv)?$": "FP8 or 8-bit integers",
    r"_blocks$": "MXFP4",
    r"\.scales$": "MLX",
}


def stated_quantization(settings):
    """The kind of quantization that a config.json states; "" for none."""
    stated = next((settings[key] for key in STATED if isinstance(settings.get(key), dict)), None)
    if not stated:
        return ""
    kind = stated.get("quant_method") or ("MLX" if "group_size" in stated else "unnamed kind")
    bits = stated.get("bits") or stated.get("num_bits")
    return one_line(kind, 40) + (f", {one_line(bits, 9)} bits" if bits else "")


def quantization(dtypes):
    """The kind of quantization of tensors, {name: dtype as stored}; "" for none."""
    if any(str(dtype).startswith("F8") for dtype in dtypes.values()):
        return "FP8"
    kinds = (kind for end, kind in NAMED.items() if any(re.search(end, name) for name in dtypes))
    return next(kinds, "")


def check_not_quantized(folder, kind):
    """Raise ValueError for a folder with quantized weights of a kind; "" for others."""
    if kind:
        raise ValueError(
            f"{folder} is quantized ({kind}), which minitx does not compute: fetch {_base(folder)}"
            " in float32, float16 or bfloat16"
        )


def check_tensors(folder, dtypes):
    """Raise ValueError for tensors, {name: dtype}, that are quantized or hold an adapter."""
    check_not_quantized(folder, quantization(dtypes))
    adapters = [name for name in dtypes if ".lora_" in name]
    if adapters:
        raise ValueError(
            f"{folder} holds a LoRA adapter that is not merged into its model "
            f"({listing(adapters)}): {MERGE}"
        )


def _base(folder):
    """The model that a folder's README.md says it was made from."""
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8", errors="replace")[:4000] if path.is_file() else ""
    base = re.search(r"^base_model:\s*(?:-\s*)?([\w./-]+)\s*$", text, re.M)
    return base[1] if base else "the model that it was made from"


# --- a folder


def folder_of(path):
    """The checkpoint folder that a path means: also by its weights file, or a cache's folder."""
    if path.name in (MODEL, INDEX, CONFIG) and (path.parent / CONFIG).is_file():
        return path.parent
    snapshots = [*path.glob("snapshots/*")] if path.name.startswith("models--") else []
    if not snapshots:
        return path
    main = path / "refs" / "main"
    commit = main.read_text(encoding="ascii", errors="replace").strip() if main.is_file() else ""
    of_main = [snapshot for snapshot in snapshots if snapshot.name == commit]
    return (of_main or sorted(snapshots, key=lambda folder: folder.stat().st_mtime))[-1]


def no_checkpoint(path):
    """The error for an existing path without config.json."""
    if not path.is_dir():
        return ValueError(_no_folder(path))
    names = names_in(path)
    if is_adapter(names):
        return ValueError(f"{path} is {of_adapter(path)}")
    if not names:
        return FileNotFoundError(f"{path} is empty; wanted {CONFIG} and {MODEL}")
    if gone := _links_to_nothing(path):
        return FileNotFoundError(gone)
    text = f"no {CONFIG} in {path} (there: {listing(names)})"
    models = [name.rpartition("/")[0] for name in names if name.endswith(f"/{CONFIG}")]
    if models:
        return FileNotFoundError(f"{text}; checkpoints inside: {listing(models)}")
    if {MODEL, INDEX} & {*names}:
        return FileNotFoundError(f"{text}: copy it from where the weights are from")
    other = in_other_form(names)
    return ValueError(f"{text}; it has {other}") if other else FileNotFoundError(text)


def _no_folder(path):
    """The sentence on a file where a folder was wanted."""
    text = f"{path} is a file; wanted the folder of a checkpoint, {CONFIG} beside {MODEL}"
    form = next((form for form in FORMS if path.name.endswith(form.endings)), None)
    return (
        f"{text}; weights as this, {form.what}, are never opened: {form.advice}" if form else text
    )


def without_weights(folder):
    """The error for a folder with config.json and without safetensors that are read."""
    names = names_in(folder)
    if is_adapter(names):
        return ValueError(f"{folder} is {of_adapter(folder)}")
    if gone := _links_to_nothing(folder):
        return FileNotFoundError(gone)
    other = in_other_form(names)
    if other:
        return ValueError(f"{folder} has {other}")
    return FileNotFoundError(f"no {MODEL} or {INDEX} in {folder} (there: {listing(names)})")


def _links_to_nothing(folder):
    """The sentence on a link whose file is gone, as in a cache that was cleared; "" for none."""
    links = (folder / name for name in (CONFIG, MODEL, INDEX))
    gone = [path for path in links if path.is_symlink() and not path.exists()]
    return f"{gone[0]} is a link to a file that is gone: download it again" if gone else ""


def names_in(folder):
    """Names of the files in a folder and in those inside, as NAME and FOLDER/NAME."""
    paths = itertools.chain(folder.glob("*"), folder.glob("[!.]*/*"))
    files = [path for path in itertools.islice(paths, MOST) if not path.is_dir()]
    return sorted(path.relative_to(folder).as_posix() for path in files)
