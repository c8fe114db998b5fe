"""A tensor that a file lacks, or that is of another shape or type: what is said of it by name."""

import numpy as np
import pytest
import tiny

import minitx

SMALL = np.ones((3, 3), np.float32)
C_ATTN, C_FC = "transformer.h.0.attn.c_attn", "transformer.h.0.mlp.c_fc.weight"
REL = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
REFUSED = {  # variant -> tensor, what it becomes (None: it is missing), and what is said
    "bert-masked": [
        (
            "bert.encoder.layer.1.output.dense.weight",
            None,
            "no tensor for W_out: wanted 'encoder.layer.1.output.dense.weight'; "
            "closest: .*'bert.encoder.layer.0.output.dense",  # by its name in the file
        ),
        (
            "bert.embeddings.token_type_embeddings.weight",
            lambda x: x[:1],
            r"W_type \[N E\].*\[1, 18\]",
        ),
        (
            "bert.embeddings.position_embeddings.weight",
            np.ones((12, 18), np.int64),
            "position_embeddings.weight' is stored as I64; wanted one of F64, F32, F16, BF16",
        ),
    ],
    "bert-sequence": [
        ("classifier.bias", SMALL, r"b_U \[C\], has shape \[3, 3\]"),
        ("classifier.bias", lambda x: x[:1], r"b_U \[C\], has shape \[1\]; .*\[3\]"),
    ],
    "roberta-masked": [
        (
            "lm_head.layer_norm.bias",
            None,
            "no tensor for ln_head_b: wanted 'lm_head.layer_norm.bias'",
        )
    ],
    "gpt2-causal": [
        (
            "transformer.wpe.weight",
            lambda x: x[:5],
            r"'transformer.wpe.weight', read .*W_pos \[P E\], has shape \[5, 18\]; "
            r"config.json makes it \[12, 18\]",
        ),
        (
            C_FC,
            lambda x: x.T.copy(),
            rf"'{C_FC}', read .*W_in \[D M\], has shape \[30, 18\]; "
            r"config.json makes it \[18, 30\]",
        ),
        (f"{C_ATTN}.bias", lambda x: x[:53], r"b_Q \[A\], has shape \[53\]"),
        (f"{C_ATTN}.weight", lambda x: x[:, :36].copy(), r"W_Q \[D A\].*54\]"),
        (f"{C_ATTN}.bias", np.ones(55, np.float32), r"c_attn.bias'.* shape"),
        ("transformer.ln_f.weight", np.float32(1), r"ln_final_w \[D\], has shape \[1\]"),
    ],
    "bart-causal": [
        (
            "model.decoder.layers.1.encoder_attn.k_proj.weight",
            SMALL,
            r"'model.decoder.layers.1.encoder_attn.k_proj.weight', read as W_K \[D K\], has shape "
            r"\[3, 3\]; config.json makes it \[18, 18\]",
        ),
        ("model.encoder.embed_positions.weight", SMALL, r"read as W_pos \[P E\].* \[14, 18\]"),
        ("final_logits_bias", SMALL, r"'final_logits_bias', read as b_U \[V\], has shape"),
        (
            "model.decoder.layers.0.encoder_attn_layer_norm.bias",
            None,
            "no tensor for ln_cross_b: wanted 'decoder.layers.0.encoder_attn_layer_norm.bias'",
        ),
    ],
    "t5-relu": [
        (
            REL,
            SMALL,
            r"relative_attention_bias.weight', read as W_rel \[R H\].* makes it \[8, 3\]",
        ),
        (REL, None, f"no tensor for W_rel: wanted '{REL.partition('_')[0]}"),
        ("decoder.block.0.layer.1.EncDecAttention.o.weight", SMALL, r"W_O \[A D\].* \[15, 18\]"),
    ],
    "t5-gated": [
        ("decoder.block.1.layer.2.DenseReluDense.wi_0.weight", SMALL, r"read as W_gate \[D M\]")
    ],
    "marian-separate": [
        ("model.decoder.embed_tokens.weight", SMALL, r"W_E \[V E\].* makes it \[53, 18\]")
    ],
}


@pytest.mark.parametrize("variant, row", [(x, row) for x in REFUSED for row in REFUSED[x]])
def test_a_tensor_that_is_missing_or_does_not_fit(tmp_path, variant, row):
    tensor, new, message = row
    with pytest.raises(ValueError, match=message):
        minitx.load(tiny.make(tmp_path, variant, tiny.edited(**{tensor: new})))
