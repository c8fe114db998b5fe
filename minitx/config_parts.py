"""Records inside a Config: how queries and keys are turned, and how a picture is cut up."""

from typing import NamedTuple


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
