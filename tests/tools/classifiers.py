"""tiny-roberta with a random head for classes, as a folder whose config.json names them."""

import json
import shutil

import numpy as np
from safetensors.numpy import load_file, save_file

from minitx import weights

LAYERS = {  # of each head: the class it is saved from, its layers; None: as many rows as classes
    "sequence": ("SequenceClassification", {"classifier.dense": 128, "classifier.out_proj": None}),
    "token": ("TokenClassification", {"classifier": None}),
    "question": ("QuestionAnswering", {"qa_outputs": 2}),
}


def write(folder, head, labels):
    """Write the folder; labels: of its classes."""
    shutil.copytree(weights.find("tiny-roberta"), folder)
    saved_from, layers = LAYERS[head]
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["architectures"] = [f"RobertaFor{saved_from}"]
    config["id2label"] = {str(i): label for i, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    arrays, rng = load_file(folder / "model.safetensors"), np.random.default_rng(0)
    arrays = {name: x for name, x in arrays.items() if not name.startswith("lm_head")}
    for name, rows in layers.items():
        shape = rows or len(labels), 128
        arrays[f"{name}.weight"] = rng.normal(size=shape).astype(np.float32)
        arrays[f"{name}.bias"] = rng.normal(size=shape[0]).astype(np.float32)
    save_file(arrays, folder / "model.safetensors")
    return folder
