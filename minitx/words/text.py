"""Text <-> token ids, over the `tokenizers` package; pieces for labels.

Truncation and padding stored in a tokenizer.json are switched off; folders without that file work
too.
"""

import contextlib
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..config import Config
from ..inputs import Batch, Texts, TooLong
from ..loading.files import check_length, listing, names_in, one_line, settings_in
from ..machine import show
from ..weights.states import check_content
from . import byte_pieces, japanese, pieces, tokenizer_kinds, tokenizer_settings

FILES = {  # that a tokenizer may be made of
    *("tokenizer.json", "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"),
    *("vocab.json", "merges.txt", "vocab.txt", "target_vocab.json"),
    *("spiece.model", "source.spm", "target.spm"),
}


ALONE = {  # not read: whose pieces they are
    "spm.model": "a DeBERTa v2",
    "sentencepiece.bpe.model": "an XLM-RoBERTa or CamemBERT",
    "tokenizer.model": "a Llama, Mistral or Gemma",
}


class UnknownWarning(UserWarning):
    """Words of a text that a vocabulary does not have: one token stands for all of them."""


_gathered: ContextVar[dict | None] = ContextVar("gathered", default=None)


@contextlib.contextmanager
def told_once():
    """Context, or decorator, in which unknown words of all texts make one warning, at the end.

    >>> import minitx, warnings
    >>> from minitx.words.text import told_once
    >>> encode = minitx.load("tiny-stories").encode
    >>> with warnings.catch_warnings(record=True, action="always") as caught, told_once():
    ...     for text in ("a zeppelin", "a robot"):
    ...         _ = encode([text])
    >>> [str(warning.message) for warning in caught]
    ["zeppelin, robot are not in this model's vocabulary; read as <unk>"]
    """
    if _gathered.get() is not None:  # a wider context tells them
        yield
        return
    words = {}
    token = _gathered.set(words)
    try:
        yield
    finally:
        _gathered.reset(token)
        for unknown in dict.fromkeys(words.values()):
            _warn([word for word in words if words[word] == unknown], unknown)


def _warn(words, unknown):
    are = "is" if len(words) == 1 else "are"
    more = f", … ({len(words)} in all)" if len(words) > 6 else ""
    shown = ", ".join(f"{word:.80}" for word in words[:6])
    text = f"{shown}{more} {are} not in this model's vocabulary"
    warnings.warn(f"{text}; read as {unknown}", UnknownWarning, stacklevel=4)


class Tokenizer(show.Shown):
    """The tokenizer of a checkpoint folder; its files are read when it is first used.

    target: that of what an encoder-decoder says, which in Marian is not that of its source.
    """

    _summary = show.tokenizer

    def __init__(self, folder: Path | None, model_type: str, target: bool = False) -> None:
        self.folder = folder
        self.model_type = model_type
        self.target = target

    @cached_property
    def _tokenizer(self):
        with _named(self.folder, "load"):
            tokenizer = _load(self.folder, self.model_type, self.target)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @property
    def packages(self) -> tuple[str, ...]:
        """Names of the packages that the ids of a text depend on."""
        form = _form(self.folder, self.target)
        more = japanese.packages(settings_in(self.folder)) if form == "vocab.txt" else ()
        return ("tokenizers", *(["sentencepiece"] if form == "pieces" else more))

    def encode(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        special: bool = True,
    ) -> np.ndarray:
        """Text -> ids [T], with the special tokens that the tokenizer adds unless special=False.

        text, pair: texts, or lists of the words that they were cut into, each of which is encoded
        alone: `word_numbers` says of which word each token is.

        >>> import minitx
        >>> tokenizer = minitx.load("tiny-bert").tokenizer
        >>> words = ["The", "dogs", "ran"]
        >>> len(tokenizer.encode(words)) == len(tokenizer.word_numbers(words))
        True
        """
        return np.array(self._encoding(text, pair, special).ids, np.intp)

    def word_numbers(self, words: Sequence[str]) -> np.ndarray:
        """The number of the word that each token of `encode(words)` is of [T]; -1: a special token.

        >>> import minitx
        >>> minitx.load("tiny-bert").tokenizer.word_numbers(["The", "dog", "ran"])[[0, 1, -1]]
        array([-1,  0, -1])
        """
        if not isinstance(words, list | tuple):
            raise ValueError(f"words are {words!r:.80}; expected a list of words")
        numbers = self._encoding(words).word_ids
        return np.array([-1 if n is None else n for n in numbers], np.intp)

    def spans(self, text: str) -> np.ndarray:
        """The characters of each token of a text: [T 2], the first, and the one after the last.

        Both are 0 for special tokens. A blank that belongs to a token counts as its character.
        Raises ValueError where another package cuts the text: its tokens say no place.
        """
        if others := self.packages[1:]:
            text = f"{others[0]} tokenizes the texts of {self.folder}, and provides no offsets"
            raise ValueError(f"{text}; spans needs a folder with a tokenizer.json")
        return np.array(self._encoding(text).offsets, np.intp).reshape(-1, 2)

    def sequences(self, text: str, pair: str) -> np.ndarray:
        """The text of each token of encode(text, pair) [T]: 0, 1, and -1 of special tokens."""
        numbers = self._encoding(text, pair).sequence_ids
        return np.array([-1 if number is None else number for number in numbers], np.intp)

    def decode(self, ids: ArrayLike, special: bool = False) -> str:
        """Ids [T] -> text, special tokens left out unless special=True."""
        try:
            numbers = np.ravel(ids).tolist()
        except ValueError:
            text = "ids have rows of different lengths"
            raise ValueError(f"{text}; expected those of one text: decode row by row") from None
        with _named(self.folder, "decode"):
            text = self._tokenizer.decode(numbers, skip_special_tokens=not special)
        suffix = getattr(self._tokenizer.model, "end_of_word_suffix", None)  # CLIP's </w>
        return text.replace(suffix, " ").strip() if suffix else text

    def pieces(self, ids: ArrayLike) -> list[str]:
        """Ids [T] -> a readable label for each: byte-level pieces as text, WordPiece with ##.

        A letter that several tokens make together has its part in each: 東 1/3, 東 2/3, 東 3/3.
        """
        with _named(self.folder, "decode"):
            return byte_pieces.labels(self._tokenizer, np.ravel(ids).tolist())

    @property
    def unknown_id(self) -> int | None:
        """The id that stands for every word that is not in the vocabulary; None: there is none."""
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        return self._tokenizer.token_to_id(unknown) if unknown else None

    def warn_of_unknown(self, text: str) -> None:
        """Warn (UnknownWarning) of words for which the vocabulary has one token in common."""
        self._warn_of_unknown([self._encoding(text)], [(text,)])

    def _warn_of_unknown(self, rows, texts):
        """The same of Encodings, and of the texts, or pairs, that they are of."""
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        if not unknown or len(self.packages) > 1:  # another package gives no characters
            return
        words = {}
        for row, parts in zip(rows, texts):
            for token, part, (begin, end) in zip(row.tokens, row.sequence_ids, row.offsets):
                if token == unknown and part is not None:
                    words[parts[part][begin:end]] = None
        words.pop(unknown, None)
        gathered = _gathered.get()
        if gathered is not None:
            gathered |= dict.fromkeys(words, unknown)
        elif words:
            _warn([*words], unknown)

    def batch(
        self,
        texts: Texts,
        config: Config,
        pad: Literal["left", "right"] = "right",
        is_split_into_words: bool = False,
    ) -> Batch:
        """Texts, or pairs of texts -> Batch. Raises ValueError for one that is too long.

        is_split_into_words: each text is a list of words, a pair a tuple of two lists.
        """
        if pad not in ("left", "right"):
            raise ValueError(f"pad is {pad!r}; wanted 'left' or 'right'")
        if not isinstance(texts, list | tuple | np.ndarray) or not len(texts):
            raise ValueError(f"texts is {texts!r:.80}; wanted a list of at least one text")
        parts = _words_and_pair if is_split_into_words else _text_and_pair
        rows = [self._encoding(*parts(text)) for text in texts]
        lengths = [len(row) for row in rows]
        T = max(lengths)
        if config.n_pos and T > config.n_ctx:  # T5 has no table of positions
            i = lengths.index(T)
            text = f"text {i} is {T} tokens long; this model reads at most {config.n_ctx}"
            raise TooLong(text)
        if not is_split_into_words:
            self._warn_of_unknown(rows, [parts(text) for text in texts])
        for row in rows:
            row.pad(T, direction=pad, pad_id=config.pad_id)
        tokens = np.array([row.ids for row in rows], np.intp)
        valid = np.array([row.attention_mask for row in rows], bool)
        if config.default_type is None:  # there are none, or (GPT-2) each 0 would add a word
            return Batch(tokens, valid, None)
        types = np.array([row.type_ids for row in rows], np.intp)
        return Batch(tokens, valid, types.clip(0, config.n_types - 1))

    def _encoding(self, text, pair=None, special=True):
        of_words = isinstance(text, list | tuple)
        if pair is not None and isinstance(pair, list | tuple) != of_words:
            raise ValueError("one of two texts is cut into words; wanted both, or none")
        given = [text] if pair is None else [text, pair]
        if of_words:
            given = [word for part in given for word in part]
        for part in given:
            check_text(part, "a word" if of_words else "text")
        with _named(self.folder, "read this text"):
            return self._tokenizer.encode(text, pair, of_words, special)


class Wrapped(Tokenizer):
    """A tokenizer that is in memory already, of no folder: a `tokenizers.Tokenizer`."""

    packages = ("tokenizers",)

    def __init__(self, tokenizer, model_type: str) -> None:
        super().__init__(None, model_type)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    def as_json(self) -> str:
        """All that its ids depend on, as a tokenizer.json."""
        return self._tokenizer.to_str()


def check_text(text, name="text"):
    """Raises ValueError for what is no text, and for half of a character, as of a cut emoji."""
    if not isinstance(text, str):
        raise ValueError(f"{name} is {text!r:.80}; wanted a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        wrong = f"has {half!r} at character {error.start}: half of a character (a lone surrogate)"
        raise ValueError(f"{name} {wrong}; split texts between characters") from None


def _text_and_pair(text):
    """A text, or a pair of texts, as a tuple."""
    is_pair = isinstance(text, list | tuple)
    if is_pair and len(text) != 2:
        raise ValueError(f"a pair of texts is {text!r:.80}; wanted two")
    return tuple(text) if is_pair else (text,)


def _words_and_pair(text):
    """The words of a text, or of both texts of a pair, as a tuple of lists."""
    is_pair = isinstance(text, tuple) and len(text) == 2
    pair = text if is_pair and not isinstance(text[0], str) else (text,)
    for words in pair:
        if not isinstance(words, list | tuple) or not len(words):
            raise ValueError(
                f"a text is {words!r:.80}; with is_split_into_words each text is a list of words, "
                "and a pair a tuple of two lists"
            )
    return pair


@contextlib.contextmanager
def _named(folder, what):
    """Inside this context what the tokenizers package raises becomes a ValueError with the folder.

    It raises no closer type than Exception, and for what it did not expect a PanicException, which
    is none: that would end a whole report.
    """
    try:
        yield
    except (ValueError, OSError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        text = f"does not {what}: {one_line(error)}"
        if folder is None:
            raise ValueError(f"the tokenizer in memory {text}") from None
        files = listing(names_in(folder) & FILES)
        raise ValueError(f"the tokenizer in {folder} {text} (its files: {files})") from None


def of_stacks(folder, model_type):
    """The tokenizers of what is read, and of what an encoder-decoder says: most often the same."""
    source = Tokenizer(folder, model_type)
    if not pieces.has_target(folder):
        return source, source
    return source, Tokenizer(folder, model_type, target=True)


def _load(folder, model_type, target):
    """A tokenizer from the newest form of files that a folder has, as its settings change it."""
    import tokenizers

    for name in names_in(folder) & FILES:
        check_content(folder / name)
    form = _form(folder, target)
    settings = settings_in(folder)
    if form != "tokenizer.json":  # which is read without Python's objects, and may be longer
        for name in names_in(folder) & FILES:
            check_length(folder / name)
    if form == "tokenizer.json":
        new = tokenizers.Tokenizer.from_file(str(folder / form))
    elif form == "merges.txt":
        new = _byte_bpe(tokenizers, folder, settings, model_type)
    elif form == "vocab.txt" and japanese.splits(settings):
        new = japanese.tokenizer(folder, settings)
    elif form == "vocab.txt":
        settings = {"do_lower_case": not _has_capitals(folder / form), **settings}
        new = _wordpiece(tokenizers, folder, settings, model_type)
    elif form == "pieces":
        new = pieces.tokenizer(folder, settings, target)
    else:
        raise _no_tokenizer(folder)
    if form != "pieces":
        new = tokenizer_settings.settled(new, folder, settings, model_type)
    tokenizer_settings.check_ids(new, folder, settings)
    return new


def _no_tokenizer(folder):
    """The error for a folder without tokenizer."""
    for path in folder.iterdir():
        if path.name in FILES and (path.is_dir() or not path.exists()):
            what = f"a link to {path.readlink()}" if path.is_symlink() else "a folder"
            return FileNotFoundError(f"{path} is no file but {what}: get it again")
    for name, whose in ALONE.items():
        if (folder / name).is_file():
            check_content(folder / name)
            text = f"{folder} has {name}, the pieces of {whose}, which is not read alone"
            return FileNotFoundError(
                f"{text}; wanted the tokenizer.json that the reference library saves"
            )
    if (folder / "preprocessor_config.json").is_file():
        text = f"{folder} has no tokenizer: its model reads pictures, not texts"
        return FileNotFoundError(f"{text}; give model.encode(images=…) a path or an array")
    return FileNotFoundError(
        f"no tokenizer in {folder}: wanted tokenizer.json, vocab.json with merges.txt or with "
        "source.spm and target.spm, vocab.txt, or spiece.model; available: "
        f"{listing(file.name for file in folder.iterdir())}"
    )


def _form(folder, target):
    """The newest form of tokenizer that a folder has, by its main file; None: there is none."""
    files = names_in(folder)
    if "tokenizer.json" in files and not (target and pieces.has_target(folder)):
        return "tokenizer.json"
    if {"vocab.json", "merges.txt"} <= files:
        return "merges.txt"
    if "vocab.txt" in files:
        return "vocab.txt"
    return "pieces" if pieces.are_in(files) else None


def _byte_bpe(tokenizers, folder, settings, model_type):
    """A byte-level BPE of vocab.json and merges.txt, for the classes that are made of these."""
    kinds = tokenizer_kinds.KINDS
    of_bytes = [name for name, kind in kinds.items() if kind.model == "BPE" and not kind.fuse]
    name = tokenizer_kinds.of(settings, model_type, of_bytes=True)
    if name not in of_bytes:
        named = settings.get("tokenizer_class", "not set")
        text = f"{folder} has vocab.json and merges.txt, which do not say how words are cut"
        raise ValueError(
            f"{text} (model_type {model_type!r}, tokenizer_class {named!r:.80}); wanted a "
            "tokenizer.json, or one of these classes in tokenizer_config.json: "
            f"{', '.join(of_bytes)}"
        )
    files = str(folder / "vocab.json"), str(folder / "merges.txt")
    return tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*files))


def _wordpiece(tokenizers, folder, settings, model_type):
    """The word pieces of a vocab.txt, for the classes that are made of it."""
    kind = tokenizer_kinds.KINDS.get(tokenizer_kinds.of(settings, model_type, of_bytes=False))
    if kind is None or kind.model != "WordPiece":
        named = settings.get("tokenizer_class", "not set")
        text = f"{folder} has a vocab.txt alone, but is no BERT"
        raise ValueError(
            f"{text} (model_type {model_type!r}, tokenizer_class {named!r:.80}); wanted a "
            "tokenizer.json, or BertTokenizer as tokenizer_class in tokenizer_config.json"
        )
    path = str(folder / "vocab.txt")
    return tokenizers.Tokenizer(tokenizers.models.WordPiece.from_file(path))


def _has_capitals(path):
    """Whether a BERT's vocabulary has capitals: then it reads them, where no setting says so.

    Raises ValueError for a file that is not UTF-8.
    """
    try:
        vocab = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not valid UTF-8: byte {error.start} ({error.reason})"
        ) from None
    return any(piece != piece.lower() for piece in vocab.split("\n") if not piece.startswith("["))
