"""Fonts for labels in scripts that matplotlib's own font lacks, Japanese first of all.

An SVG keeps text as text, which the viewer's fonts show. The text of a PNG is measured and drawn
here, and needs a font of this machine. The fonts of common systems are known by name.
"""

import contextlib
import functools
import warnings
from pathlib import Path

# families, and how the names of their files begin
KNOWN = {
    "Noto Sans CJK JP": "NotoSansCJK",  # most Linux systems: fonts-noto-cjk
    "Noto Sans JP": "NotoSansJP",
    "IPAexGothic": "ipaexg",
    "IPAGothic": "ipag.",  # fonts-ipafont-gothic
    "TakaoGothic": "TakaoGothic",
    "VL Gothic": "VL-Gothic",
    "Hiragino Sans": "ヒラギノ角ゴシック W3",  # macOS
    "Hiragino Maru Gothic Pro": "ヒラギノ丸ゴ",
    "Yu Gothic": "YuGoth",  # Windows
    "Meiryo": "meiryo",
    "MS Gothic": "msgothic",
}
HOW = "apt-get install fonts-noto-cjk (Debian, Ubuntu), or IPAexGothic from moji.or.jp"


def cover(picture):
    """Give each text of a figure the fonts of this machine that have its characters.

    Texts that matplotlib's own font can write are left as they are. Returns the characters that no
    known font here has, as a sorted text.
    """
    from matplotlib.text import Text

    lacking = set()
    for words in picture.findobj(Text):
        characters = _lacking(words.get_text())
        if characters:
            words.set_fontfamily([*_default(), *installed()])
            lacking |= characters
    return "".join(sorted(x for x in lacking if not any(_has(name, x) for name in installed())))


def warn(characters):
    """Warn that a picture shows these characters as boxes, and name what would mend it."""
    if characters:
        shown = characters[:10] + ("…" if len(characters) > 10 else "")
        warnings.warn(
            f"no font on this machine has {shown!r}: a PNG shows boxes instead. Install one ({HOW})"
            ", or write SVG, whose text the viewer's fonts show",
            stacklevel=2,
        )


@contextlib.contextmanager
def without_warnings():
    """Context in which matplotlib does not warn of characters that a font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from ")
        yield


def _lacking(text):
    """The characters of a text that matplotlib's own font lacks."""
    if text.isascii():
        return set()
    return {x for x in text if x.isprintable() and not _has(_default()[0], x)}


def _default():
    """The families that figures have anyway."""
    from matplotlib import rcParams

    return rcParams["font.family"]


@functools.cache
def _has(family, character):
    from matplotlib.font_manager import findfont, get_font

    return get_font(findfont(family)).get_char_index(ord(character)) != 0


@functools.cache
def installed():
    """The known families that this machine has, in their order.

    matplotlib lists the fonts of a machine once and for all; where its list has none of these, the
    files are looked for, so that a font installed since then is seen.
    """
    from matplotlib.font_manager import findSystemFonts, fontManager

    names = _listed()
    if not names:
        for path in sorted(findSystemFonts()):
            if Path(path).name.startswith((*KNOWN.values(),)):
                fontManager.addfont(path)
        names = _listed()
    return names


def _listed():
    """The known families that matplotlib's list has."""
    from matplotlib.font_manager import fontManager

    listed = {font.name for font in fontManager.ttflist}
    return [name for name in KNOWN if name in listed]
