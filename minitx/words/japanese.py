"""Japanese BERT's tokenizer: words by MeCab, then word pieces or single characters.

Japanese is written without blanks, so that a dictionary is needed to tell where a word ends. MeCab
and its dictionary IPADIC are the optional extra `japanese`.

Order: which tokenizers need it, the tokenizer, its words, MeCab.
"""

import unicodedata
from importlib import import_module

EXTRA = "python -m pip install 'minitx[japanese]'"
# dictionaries of MeCab that are packages, and the command that installs what each needs
DICTIONARIES = {
    "ipadic": EXTRA,
    "unidic_lite": "python -m pip install fugashi unidic-lite",
    "unidic": "python -m pip install fugashi unidic && python -m unidic download",
}


def splits(settings):
    """Whether a tokenizer with these settings splits words by a program before it cuts pieces."""
    by_class = "Japanese" in str(settings.get("tokenizer_class"))
    splitter = settings.get("word_tokenizer_type", "basic")
    pieces = settings.get("subword_tokenizer_type", "wordpiece")
    return by_class or splitter != "basic" or pieces != "wordpiece"


def packages(settings):
    """Names of the packages that split the words: MeCab and a dictionary, or none."""
    is_mecab = splits(settings) and settings.get("word_tokenizer_type") == "mecab"
    return ("fugashi", _dictionary(settings)) if is_mecab else ()


def tokenizer(folder, settings):
    """The tokenizer of a folder with a vocab.txt and these settings, over `tokenizers`.

    Raises ValueError if words or pieces are split otherwise than in the Japanese BERTs, or if MeCab
    or its dictionary is not installed: the error names the command to install it.
    """
    import tokenizers

    _check(folder, settings)
    vocab = tokenizers.models.WordPiece.read_file(str(folder / "vocab.txt"))
    of_characters = settings.get("subword_tokenizer_type") == "character"
    if of_characters:
        model = tokenizers.models.WordLevel(vocab, unk_token="[UNK]")
    else:
        model = tokenizers.models.WordPiece(vocab, unk_token="[UNK]")
    new = tokenizers.Tokenizer(model)
    new.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"])
    words = _Words(settings, of_characters)
    new.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(words)
    ends = [(token, vocab[token]) for token in ("[SEP]", "[CLS]")]
    new.post_processor = tokenizers.processors.BertProcessing(*ends)
    new.decoder = tokenizers.decoders.WordPiece(cleanup=False)
    return new


def _check(folder, settings):
    """Raise ValueError unless words are split by MeCab, into word pieces or characters."""
    splitter = settings.get("word_tokenizer_type")
    pieces = settings.get("subword_tokenizer_type", "wordpiece")
    if splitter != "mecab" or pieces not in ("wordpiece", "character"):
        splitter = splitter or "a tool it does not name"
        raise ValueError(
            f"{folder}: this tokenizer splits words with {splitter!r:.80} "
            f"into pieces by {pieces!r:.80}; minitx has 'mecab' with 'wordpiece' or 'character' "
            "(word_tokenizer_type, subword_tokenizer_type in tokenizer_config.json); "
            "pass token ids instead of text"
        )


class _Words:
    """A pre-tokenizer: the words of a text, or the characters in them."""

    def __init__(self, settings, of_characters):
        options = settings.get("mecab_kwargs") or {}
        self.tagger = _tagger(_dictionary(settings), options.get("mecab_option") or "")
        self.normalizes = options.get("normalize_text", True)
        self.lowers = settings.get("do_lower_case", False)
        self.of_characters = of_characters

    def pre_tokenize(self, text):
        """What the tokenizers package calls."""
        text.split(self._split)

    def _split(self, _, text):
        from tokenizers import NormalizedString

        return [NormalizedString(word) for word in self.words(str(text))]

    def words(self, text):
        """The words of a text, in the form in which the vocabulary has them."""
        if self.normalizes:
            text = unicodedata.normalize("NFKC", text)
        words = [word.surface for word in self.tagger(text)]
        if self.lowers:
            words = [word.lower() for word in words]
        if self.of_characters:
            return [character for word in words for character in word]
        return [part for word in words for part in word.split()]


def _dictionary(settings):
    """MeCab's dictionary; tokenizers that name none were trained when IPADIC was the only one."""
    return (settings.get("mecab_kwargs") or {}).get("mecab_dic", "ipadic")


def _tagger(dictionary, option):
    """MeCab with a dictionary; raises ValueError with the command that installs what is missing."""
    if dictionary not in DICTIONARIES:
        available = ", ".join(DICTIONARIES)
        raise ValueError(
            f"mecab_dic of this tokenizer is {dictionary!r:.80}; available: {available}"
        )
    try:
        from fugashi import GenericTagger

        folder = import_module(dictionary).DICDIR
    except ImportError as error:
        raise ValueError(
            f"this tokenizer splits Japanese words with MeCab and needs {error.name}: "
            f"{DICTIONARIES[dictionary]}; or pass token ids instead of text"
        ) from None
    return GenericTagger(f'-d "{folder}" -r "{folder}/mecabrc" {option}')
