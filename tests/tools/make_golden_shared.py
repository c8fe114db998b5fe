"""Makes the models of tests/golden whose layers share their weights: ALBERT.

As make_golden.py, whose files and inputs are used here. A module runs once for each layer that has
its weights, so that hooks take the layer's number from how many have run.
"""

import re

import make_golden as single
import torch
import transformers

ALBERT = single.BERT | dict(hidden_size=12, intermediate_size=14, embedding_size=8)
ALBERT |= dict(num_hidden_layers=3, classifier_dropout_prob=0.3)
ORDER = "AlbertForNextSentencePrediction"  # no class of the library: the second head alone


def with_decoder(tensors, *_):
    """The tied output matrix and its bias written out a second time, as in published files."""
    weight = tensors["albert.embeddings.word_embeddings.weight"].clone()
    bias = tensors["predictions.bias"].clone()
    return tensors | {"predictions.decoder.weight": weight, "predictions.decoder.bias": bias}


def with_order(tensors, config, _):
    """The head for the order of two sentences, without that for words."""
    config["architectures"] = [ORDER]
    return {name: x for name, x in tensors.items() if not name.startswith("predictions")}


DISK = single.DISK | {
    "decoder": with_decoder,
    "order": with_order,
    "no-prefix": single.renamed(r"^albert\.", ""),
}


HOOKS = {"attention.query": "q", "attention.key": "k", "attention.value": "v"}
MORE_HOOKS = {
    "attention.dense": "attn_out",
    "attention.LayerNorm": "ln1",
    "ffn": "pre",
    "ffn_output": "mlp_out",
    "full_layer_layer_norm": "ln2",
    "embeddings.word_embeddings": "embed",
    "embeddings.position_embeddings": "pos_embed",
    "embeddings.token_type_embeddings": "type_embed",
    "embeddings.LayerNorm": "ln_embed",
}


def watch(model, every, seen):
    n_heads = model.config.num_attention_heads

    def file(name, module, args, out):
        point = (HOOKS | MORE_HOOKS)[name]
        ending = "" if name.startswith("embeddings.") else f".{seen['layer']}"
        seen[point + ending] = single.heads(out, n_heads) if point in "qkv" else out[0]
        single.file_statistics(module, args[0][0], point, ending, seen, single.by_root)
        if point == "attn_out":
            seen[f"z{ending}"] = single.heads(args[0], n_heads)
        if point == "mlp_out":
            seen[f"post{ending}"] = args[0][0]

    def count(module, args):
        seen["layer"] = seen.get("layer", -1) + 1

    for name, module in model.named_modules():
        if type(module).__name__ == "AlbertLayer":
            module.register_forward_pre_hook(count)
        own = re.sub(
            r"^(albert\.)?(encoder\.albert_layer_groups\.\d+\.albert_layers\.\d+\.)?", "", name
        )
        if own in HOOKS or (every and own in MORE_HOOKS):
            module.register_forward_hook(lambda m, args, out, own=own: file(own, m, args, out))


def load(folder, dtype):
    [saved_from] = transformers.AutoConfig.from_pretrained(folder).architectures
    is_order = saved_from == ORDER
    cls = transformers.AlbertForPreTraining if is_order else single.class_of(saved_from)
    return single.loaded(cls, folder, "pooler" + "|^predictions" * is_order, dtype=dtype)


def run(model, text, seen):
    outputs = single.run(model, text, seen)
    if model.config.architectures == [ORDER]:
        given = torch.tensor(text["tokens"])[None], None, torch.tensor(text["types"])[None]
        outputs["logits"] = model(*given).sop_logits[0]
    del outputs["layer"]
    return outputs


MAKER = single.Maker({"Albert": ALBERT}, DISK, load=load, watch=watch, run=run)
