"""Makes tiny-roberta, tiny-bert and tiny-gpt2: models of books, trained on inputs that grow longer.

    python -m minitx.weights.training.train tiny-roberta --text FOLDER --out FOLDER

It may be stopped at any time and goes on from FOLDER when called again. Read downward: plans, what
is BERT's own. The bundles themselves were trained in torch by the same settings, their products in
bfloat16; the first weights, position rows that came later and inputs were drawn otherwise, and a
word that stands for another was any of the vocabulary.
"""

import numpy as np

from minitx.learning.batches import Batch, Words
from minitx.learning.gradients import UNCOUNTED
from minitx.learning.saved import as_json
from minitx.weights.training.recipe import Recipe, Row, make, options

PAIRS = 0.125  # share of BERT's inputs that are two segments, so that its second type is learned
BERT_SPECIALS = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SEPARATOR = BERT_SPECIALS.index("[SEP]")


# ---- BERT


def word_pieces(lines, config):
    """{name: bytes} of BERT's tokenizer that is learned from lines: WordPiece, lower case."""
    from tokenizers import (
        AddedToken,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    new = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    new.normalizer = normalizers.BertNormalizer(lowercase=True)
    new.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    new.decoder = decoders.WordPiece()
    tokens = [AddedToken(name, special=True) for name in BERT_SPECIALS]
    sizes = {"vocab_size": config.n_vocab, "limit_alphabet": 80}
    new.train_from_iterator(lines, trainers.WordPieceTrainer(special_tokens=tokens, **sizes))
    new.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    settings = {"tokenizer_class": "BertTokenizer", "model_max_length": config.n_ctx}
    return {
        "tokenizer.json": new.to_str().encode(),
        "tokenizer_config.json": as_json(settings).encode(),
    }


class Pairs(Words):
    """Words of which a share of the inputs is cut in two by a separator."""

    def batch(self, step, size, seed):
        """The Batch of a step, with types."""
        tokens, targets, _ = super().batch(step, size, seed)
        rng = np.random.default_rng((seed, step, 3))
        rows = np.flatnonzero(rng.random(size) < PAIRS)
        cuts = rng.integers(2, tokens.shape[1] - 2, len(rows))
        tokens[rows, cuts], targets[rows, cuts] = SEPARATOR, UNCOUNTED
        types = np.zeros_like(tokens)
        types[rows] = np.arange(tokens.shape[1]) > cuts[:, None]
        return Batch(tokens, targets, {"types": types})


# ---- plans

# Short inputs first: at context 32 the first layer learned to look at neighbours within 5 million
# tokens, at 128 not within 10 million. Heads that look at neighbours then pull new position rows
# into line.
RECIPES = {
    "tiny-roberta": Recipe(
        "tiny-roberta",
        (
            Row(4000, 32, 128, 2e-3, 4),
            Row(4000, 64, 64, 2e-3, 4),
            Row(4000, 128, 32, 2e-3, 4),
            Row(2000, 256, 32, 2e-3, 4),
            Row(1000, 256, 32, 1.5e-3, 4),
            Row(1200, 256, 32, 3.75e-4, 4),
            Row(800, 256, 32, 2.386e-4, 4),
            Row(500, 256, 32, 0.0, 4),
        ),
    ),
    "tiny-bert": Recipe(
        "tiny-bert",
        (
            Row(4000, 32, 128, 2e-3, 4),
            Row(2000, 64, 64, 2e-3, 4),
            Row(3000, 128, 32, 2e-3, 4),
            Row(500, 256, 32, 2e-3, 4),
            Row(1200, 256, 32, 4e-4, 4),
            Row(800, 256, 32, 2.4e-4, 4),
            Row(400, 256, 32, 0.0, 4),
        ),
        words=Pairs,
        learn=word_pieces,
    ),
    "tiny-gpt2": Recipe(
        "tiny-gpt2",
        (
            Row(1500, 64, 64, 2e-3, 4),
            Row(1500, 128, 32, 2e-3, 4),
            Row(1000, 256, 32, 1.2e-3, 4),
            Row(900, 256, 32, 0.0, 4),
        ),
    ),
}


def main():
    """Train, or go on training, one checkpoint and write it to --out."""
    given = options(__doc__, RECIPES).parse_args()
    make(RECIPES[given.name].scaled(given.steps_scale), given, given.out)


if __name__ == "__main__":
    main()
