"""What a section says at first sight: whole sentences, of a number of words that one reads at once.

The others stay, word for word, where a summary is opened.
"""

import re

MOST = 40  # words
CJK = "\u3040-\u30ff\u3400-\u9fff"  # letters of Japanese, two of which count as a word
END = re.compile(r"(?<=[.?!])(?<!\.[a-z]\.)\s+(?=[A-Z0-9“(])|(?<=。)\s*")
PART = re.compile(r"(?<=;)\s+|(?<=\uff1b)\s*")
WORD = re.compile(rf"[{CJK}]{{1,2}}|[^\s{CJK}]*\w[^\s{CJK}]*")


def n_words(text):
    """How many words a text has.

    >>> n_words("R² is 0.89 (random weights: 0.27)."), n_words("位置を読む")
    (6, 3)
    """
    return len(WORD.findall(text))


def cut(text, most=MOST):
    """A text in two: its first sentences, as many as have `most` words together, and the others.

    Of a first sentence that is longer, as many parts between semicolons; "…" stands for the others.

    >>> cut("16 of 32 heads look there. By chance 4 do. The others look elsewhere.", most=9)
    ('16 of 32 heads look there.', 'By chance 4 do. The others look elsewhere.')
    >>> cut("L0H0 is first (of 2; or 3); L0H1 is second; L0H2 is third.", most=9)
    ('L0H0 is first (of 2; or 3); …', '… L0H1 is second; L0H2 is third.')
    """
    ends = [match.span() for match in END.finditer(text)] + [(len(text), len(text))]
    shown, rest = _last(text, ends, most)
    if shown:
        return text[:shown], text[rest:]
    ends = [match.span() for match in PART.finditer(text) if _is_outside(text[: match.start()])]
    shown, rest = _last(text, ends, most)
    return (f"{text[:shown]} …", f"… {text[rest:]}") if shown else ("", text)


def _last(text, ends, most):
    """The last of these (end, start of what follows) before which a text has `most` words."""
    return max((pair for pair in ends if n_words(text[: pair[0]]) <= most), default=(0, 0))


def _is_outside(text):
    """Whether what follows a text stands in no parentheses that are open."""
    return all(text.count(a) == text.count(b) for a, b in ("()", "\uff08\uff09"))
