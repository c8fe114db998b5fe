"""Records inside a Config: how queries and keys are turned, a picture cut up, text generated."""

from typing import Any, NamedTuple


class Rotary(NamedTuple):
    """How a layer turns queries and keys by the position of their token (positions.py)."""

    frequencies: tuple[float, ...]  # of each pair of features: radians from token to token
    scale: float = 1.0  # factor on what is turned (YaRN)
    reach: int = 0  # the most positions of a text for which these are the frequencies; 0: any
    longer: tuple[float, ...] = ()  # those of a longer text (LongRoPE)
    growth: float = 0.0  # or how fast they fall with its length (dynamic NTK)

    def for_length(self, n: int) -> "Rotary":
        """How queries and keys are turned in a text of n positions."""
        frequencies = self.frequencies
        if self.reach and n > self.reach:
            frequencies = self.longer or self._slower(n)
        return Rotary(frequencies, self.scale)

    def _slower(self, n):
        growth = self.growth * n / self.reach - (self.growth - 1)
        last = len(self.frequencies) - 1
        return tuple(x * growth ** (-i / last) for i, x in enumerate(self.frequencies))


class Picture(NamedTuple):
    """How a model of pictures cuts one up (images.py)."""

    rows: int  # of patches
    columns: int
    channels: int  # of a pixel
    height: int  # of a patch, in pixels
    width: int
    specials: int = 1  # tokens before the patches: class, distillation

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of a picture, in pixels."""
        return self.rows * self.height, self.columns * self.width


class Generation(NamedTuple):
    """What a folder sets of generating texts, under the names of its file (constraints.py)."""

    repetition_penalty: float = 1.0  # 1: none
    no_repeat_ngram_size: int = 0  # 0: any tokens may come again
    bad_words_ids: tuple[tuple[int, ...], ...] = ()  # words that never come, each of some ids
    min_length: int = 0  # of a text, its prompt or start token included
    min_new_tokens: int | None = None  # the same without these; counts more
    forced_bos_token_id: int | None = None  # follows the start (mBART's language); None: anything
    forced_eos_token_id: int | None = None  # comes last where the length runs out
    renormalize_logits: bool = False  # scores are log-probabilities again in the end
    refused: str = ""  # why generate refuses the folder: a setting that it does not compute

    def replaced(self, *own: Any) -> "Generation":
        """These settings with those of ARGUMENTS that are not None in their place."""
        return self._replace(**{k: x for k, x in zip(ARGUMENTS, own) if x is not None})


NOTHING_SET = Generation()
ARGUMENTS = "repetition_penalty", "no_repeat_ngram_size", "min_new_tokens"  # of generate
