"""Write tests/golden/asked.json: what the reference library reads where no mask is given.

`heads`: logits of every golden model with a head for a whole text, of ids with padding and end
tokens inside the rows, as its ids determine the token that is read. `both_sides`: the last stream
of decoders whose config.json says `"is_causal": false`. `hidden`: the first, where a mask hides the
tokens that the ids name, whose position OPT takes from the mask. Needs torch (make golden).
"""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

import minitx

GOLDEN = Path(__file__).parents[1] / "golden"
T = 8
DIGITS = 9


def main():
    transformers.logging.set_verbosity_error()
    folders = [path.parent for path in sorted(GOLDEN.glob("*/config.json"))]
    loadable = [folder for folder in folders if (folder / "model.safetensors").is_file()]
    result = {"heads": {}, "both_sides": {}, "hidden": {}}
    for folder in loadable:
        model = minitx.load(folder)
        cfg = model.config
        if cfg.n_vocab < T:  # of letters that are sorted
            continue
        if cfg.picture is None and cfg.task_head in ("sequence", "projection"):
            result["heads"][folder.name] = of_head(folder, cfg)
        if cfg.causal and not cfg.picture and model.encoder is None and not cfg.alibi:
            result["both_sides"].setdefault(cfg.model_type, of_both_sides(folder, cfg))
    folder = GOLDEN / "opt-sequence"
    result["hidden"][folder.name] = of_head(folder, minitx.load(folder).config, [2, 5, 6])
    text = json.dumps(result, separators=(",", ":")).replace('},"', '},\n"')
    (GOLDEN / "asked.json").write_text(text + "\n")


def of_head(folder, cfg, hidden=()):
    """Ids and logits of a model with a head for a whole text; the mask, if columns are hidden."""
    raw = json.loads((folder / "config.json").read_text())
    pad, end = raw.get("pad_token_id"), raw.get("eos_token_id")
    rows = np.random.default_rng(0).integers(4, cfg.n_vocab, (2, T))
    if end is not None:
        rows[:, 5] = end  # as many in each row
    if pad is not None:
        rows[0, 6:], rows[1, [2, 7]] = pad, pad
    else:
        rows = rows[:1]  # several need padding
    kind = getattr(transformers, cfg.architecture)
    reference = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64)
    mask = np.ones_like(rows)
    mask[:, [*hidden]] = 0
    given = {"attention_mask": torch.tensor(mask)} if len(hidden) else {}
    with torch.no_grad():
        output = reference.eval()(torch.tensor(rows), **given)
    logits = output.logits if "logits" in output else output.text_embeds
    valid = {"valid": mask.tolist()} if given else {}
    return {"ids": rows.tolist(), "logits": rounded(logits)} | valid


def of_both_sides(folder, cfg):
    """Ids and the last stream, normed, of a decoder that sees both sides."""
    raw = json.loads((folder / "config.json").read_text()) | {"is_causal": False}
    ids = np.random.default_rng(0).integers(4, cfg.n_vocab, (1, T))
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        (Path(copy) / "config.json").write_text(json.dumps(raw))
        reference = transformers.AutoModel.from_pretrained(
            copy, attn_implementation="eager", dtype=torch.float64
        )
    with torch.no_grad():
        output = reference.eval()(torch.tensor(ids))
    last = output.last_hidden_state[0, ::4]
    return {"folder": folder.name, "ids": ids.tolist(), "last": rounded(last)}


def rounded(x):
    """Numbers of a tensor as they are stored."""
    return np.round(x.double().numpy(), DIGITS).tolist()


if __name__ == "__main__":
    main()
