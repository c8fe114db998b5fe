"""Text of Marian and T5 without a tokenizer.json: the pieces that SentencePiece models cut.

The package that reads these models is the optional extra `sentencepiece`. Marian has two of them,
for the source and for the target, and numbers their pieces by files of its own; T5 has one, and a
piece's id is its place in it.

Order: which folders have them, the tokenizer, the two vocabularies, the pieces of a text.
"""

import re

from ..loading.files import names_in, read_json, settings_in

EXTRA = "python -m pip install 'minitx[sentencepiece]'"
MARIAN = {"source.spm", "target.spm", "vocab.json"}
T5 = {"spiece.model"}
N_EXTRA = 100  # T5's <extra_id_0> to <extra_id_99>, which stand for spans of text
SPECIAL = "</s>", "<unk>", "<pad>"
LANGUAGE = re.compile(">>.*?<<", re.DOTALL)  # what a source begins with: >>fra<< for French


def are_in(files):
    """Whether a folder with these files has the pieces of Marian or T5."""
    return files >= MARIAN or files >= T5


def has_target(folder):
    """Whether targets have a tokenizer of their own; no tokenizer.json has two vocabularies."""
    files = names_in(folder)
    return files >= MARIAN and ("tokenizer.json" not in files or separate(settings_in(folder)))


def separate(settings):
    """Whether Marian's source and target have each a vocabulary of their own."""
    return settings.get("separate_vocabs", False)


def tokenizer(folder, settings, target=False):
    """The tokenizer of a folder with these settings, over `tokenizers`; target: of the decoder.

    Raises ValueError if the package that reads the models is not installed: the error names the
    command to install it.
    """
    if (folder / "source.spm").is_file():
        processor = _processor(folder / ("target.spm" if target else "source.spm"))
        vocab = _marian(folder, settings, target)
        return _assembled(processor, vocab, language=LANGUAGE, pair="$A $B </s>")
    path = folder / "spiece.model"
    processor = _processor(path)
    vocab = _t5(processor, settings, path.name)
    return _assembled(processor, vocab, language=None, pair="$A </s> $B </s>")


def _assembled(processor, vocab, language, pair):
    """Special tokens, pieces and the end of a text, by the parts of the tokenizers package."""
    import tokenizers

    new = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="<unk>"))
    spans = [piece for piece in vocab if piece.startswith("<extra_id_")]
    new.add_special_tokens([piece for piece in (*SPECIAL, *spans) if piece in vocab])
    pieces = _Pieces(processor, language)
    new.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(pieces)
    template = tokenizers.processors.TemplateProcessing
    new.post_processor = template("$A </s>", pair, special_tokens=[("</s>", vocab["</s>"])])
    new.decoder = tokenizers.decoders.Decoder.custom(_Text())
    return new


def _marian(folder, settings, target):
    """{piece: id} of Marian's source or target, one file for both or two."""
    own = target and separate(settings)
    return read_json(folder / ("target_vocab.json" if own else "vocab.json"))


def _t5(processor, settings, name):
    """{piece: id} of T5: the model's pieces, then <extra_id_99> down to <extra_id_0>."""
    try:
        pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} has a piece that is not UTF-8: {error}") from None
    n_extra = settings.get("extra_ids", N_EXTRA)
    pieces += [f"<extra_id_{i}>" for i in reversed(range(n_extra))]
    return {piece: i for i, piece in enumerate(pieces)}


def _processor(path):
    """A SentencePiece model; raises ValueError with the command where the package is missing."""
    try:
        import sentencepiece
    except ImportError:
        raise ValueError(
            f"{path.name} is a SentencePiece model, which needs sentencepiece: {EXTRA}; "
            "or pass token ids instead of text"
        ) from None
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


class _Pieces:
    """A pre-tokenizer: the pieces of a text, in place of its words."""

    def __init__(self, processor, language):
        self.processor = processor
        self.language = language  # what a text may begin with, one token

    def pre_tokenize(self, text):
        """What the tokenizers package calls."""
        text.split(self._split)

    def _split(self, _, text):
        from tokenizers import NormalizedString

        return [NormalizedString(piece) for piece in self.pieces(str(text))]

    def pieces(self, text):
        """The pieces of a text behind its language, if it names one."""
        begin = self.language.match(text) if self.language else None
        code = [begin[0]] if begin else []
        rest = text[begin.end() :] if begin else text
        return code + self.processor.encode(rest, out_type=str)


class _Text:
    """A decoder: the text of pieces, in which a low line stands for a blank."""

    def decode_chain(self, pieces):
        """What the tokenizers package calls."""
        return ["".join(pieces).replace("▁", " ").strip()]
