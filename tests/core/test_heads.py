"""Task heads: which one a checkpoint holds, what its logits are, and what is rejected by name.

That the numbers are the reference library's is test_parity.py's: each head of each family has a
golden variant there.
"""

import contextlib

import numpy as np
import pytest
import tiny

import minitx
from minitx import heads
from minitx.loading import families
from minitx.loading.checkpoint import UnreadWarning

OF_PICTURES = {"image", "taught", "projection"}  # test_images.py


@pytest.mark.parametrize("name", [name for name in heads.HEADS if name not in OF_PICTURES])
def test_logits_have_the_axes_that_the_table_says(name):
    """B texts, T tokens, V words, C classes, whichever checkpoint of the head it is."""
    variants = [path.parent.name for path in tiny.GOLDEN.glob("*/reference.safetensors")]
    held = [model for model in map(tiny.load, variants) if model.config.task_head == name]
    assert held
    for model in held:
        tokens, given = tiny.texts(model)
        x = minitx.forward(model, tokens, **given)
        y = minitx.logits(model, x, valid=given["valid"])
        head, n = heads.HEADS[name], model.weights.W_U.shape[1]
        sizes = {"B": 2, "T": tokens.shape[1], "V": model.config.n_vocab, "C": n}
        assert y.shape == tuple(sizes[axis] for axis in head.axes.split())
        assert len(head.classes) in (0, n)


@pytest.mark.parametrize(
    "variant,drop,head",
    [
        ("bert-token", (), "token"),
        ("bert-token", ["architectures"], None),  # without the pooler nothing says what it is
        ("gpt2-question", ["architectures"], "question"),
        ("distilbert-question", ["architectures"], "question"),
        ("bert-choice", ["architectures"], "sequence"),  # the same tensors
        ("bert-pretraining-legacy", (), "masked"),
        ("electra-replaced", ["architectures"], None),
        ("mpnet-sequence", ["architectures"], "sequence"),
        ("t5-token", (), "token"),
    ],
)
def test_which_head_a_checkpoint_is_for(tmp_path, variant, drop, head):
    folder = tiny.make(tmp_path, variant, drop=drop)
    warned = contextlib.nullcontext()
    if head is None:
        warned = pytest.warns(UnreadWarning, match="not read: .*has no head that gives logits")
    with warned:
        assert minitx.load(folder).config.task_head == head


def test_a_pretrained_bert_says_whether_a_sentence_follows():
    """Both of its heads can be asked for; the second reads the first token through the pooler."""
    folder = tiny.GOLDEN / "bert-pretraining-legacy"
    words = minitx.load(folder, "float64", head="masked")
    follows = minitx.load(folder, "float64", head="next_sentence")
    assert words.config == minitx.load(folder).config
    tokens = tiny.ids(words, 2, 6)
    x = minitx.forward(follows, tokens)
    assert (x == minitx.forward(words, tokens)).all()
    w = follows.weights
    expected = np.tanh(x[:, 0] @ w.W_head + w.b_head) @ w.W_U + w.b_U
    assert abs(minitx.logits(follows, x) - expected).max() < 1e-12  # measured 4e-16
    assert "cls.seq_relationship.weight" in words.unused
    assert "cls.predictions.transform.dense.weight" in follows.unused


def test_a_head_that_is_not_there_is_refused_with_those_that_are():
    folder = tiny.GOLDEN / "bert-pretraining-legacy"
    for wanted in ("token", "nonsense"):
        message = (
            rf"no head '{wanted}' in this checkpoint \(BertForPreTraining\); "
            "available heads: masked, next_sentence"
        )
        with pytest.raises(ValueError, match=message):
            minitx.load(folder, head=wanted)
    with pytest.raises(ValueError, match="BertModel.*available heads: none"):
        minitx.load(tiny.GOLDEN / "bert-bare", head="masked")


def test_a_head_of_a_known_size_has_that_size(tmp_path):
    weight, bias = np.ones((3, 18), np.float32), np.ones(3, np.float32)
    change = tiny.edited(qa_outputs__weight=weight, qa_outputs__bias=bias)
    tiny.make(tmp_path, "roberta-question", change)
    with pytest.raises(ValueError, match=r"qa_outputs.weight.*W_U \[D C\].*\[18, 3\].*\[18, 2\]"):
        minitx.load(tmp_path)


# --- refused by name


def test_an_electra_with_narrow_embeddings_maps_them():
    """The small ones: 128 and 256 in the small discriminator; a config may not say the first."""
    cfg = families.from_hf(tiny.config("electra-narrow"))
    assert (cfg.d_embed, cfg.d_model) == (8, 12)
    assert families.from_hf(tiny.config("electra-narrow", ["embedding_size"])).d_embed == 128
    assert families.from_hf(tiny.config("electra-replaced")).d_embed == 0
    with pytest.raises(ValueError, match="d_embed is 'x'; wanted a whole number of at least 1"):
        families.from_hf(tiny.config("electra-narrow", embedding_size="x"))


def test_an_electra_with_narrow_embeddings_is_refused_by_name(tmp_path):
    """Where its tensors are as wide as the stream."""
    folder = tiny.make(tmp_path, "electra-replaced", embedding_size=9)
    message = (
        r"'electra.embeddings.word_embeddings.weight', read as W_E \[V E\], has .* it \[61, 9\]"
    )
    with pytest.raises(ValueError, match=message):
        minitx.load(folder)


# --- MPNet, which has a table and a bias by distance


def test_positions_given_to_mpnet_are_those_of_its_table():
    model = tiny.load("mpnet-masked")
    tokens = tiny.ids(model, 6)
    keep = ["pos_bias", "pos_embed"]
    plain = minitx.run(model, tokens, keep)
    moved = minitx.run(model, tokens, keep, positions=np.arange(6)[::-1])
    assert (plain["pos_bias"] == moved["pos_bias"]).all()
    assert (plain["pos_embed"] == moved["pos_embed"][:, ::-1]).all()


def backwards(model):
    """How far a text read backwards moves the stream where the position table is zero."""
    tokens = tiny.ids(model, 6)
    zero = {"pos_embed": np.zeros_like}
    last = "resid_post", model.config.n_layers - 1
    x = minitx.run(model, tokens, [last], edits=zero)[last][0]
    other = minitx.run(model, tokens[::-1], [last], edits=zero)[last][0]
    return abs(x - other[::-1]).max()


def test_mpnet_has_positions_without_its_table_too():
    """So no experiment calls it without positions where the table is zero."""
    from minitx.analysis.contract.registry import NotApplicable
    from minitx.analysis.measures import inputs, mask_tap

    assert backwards(tiny.load("roberta-masked")) < 1e-12  # measured 1e-15
    model = tiny.load("mpnet-masked")
    assert backwards(model) > 0.1  # measured 1.26
    with pytest.raises(NotApplicable, match="only in the table, and mpnet adds a term"):
        inputs.reachable(model)
    with pytest.raises(NotApplicable, match="only in the table, and mpnet adds a term"):
        mask_tap.tap(model, positions="zero")
    assert callable(mask_tap.tap(model))
