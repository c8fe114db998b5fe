"""What a section says at first sight: whole sentences, of a number of words that one reads at once.

The others stay, word for word, where a summary is opened.
"""

import re

MOST = 40  # words
CJK = "\u3040-\u30ff\u3400-\u9fff"  # letters of Japanese, two of which count as a word
END = re.compile(r"(?<=[.?!])(?<!\.[a-z]\.)\s+(?=[A-Z0-9“(])|(?<=。)\s*")
WORD = re.compile(rf"[{CJK}]{{1,2}}|[^\s{CJK}]*\w[^\s{CJK}]*")


def n_words(text):
    """How many words a text has.

    >>> n_words("R² is 0.89 (random weights: 0.27)."), n_words("位置を読む")
    (6, 3)
    """
    return len(WORD.findall(text))


def cut(text, most=MOST):
    """A text in two: its first sentences, as many as have `most` words together, and the others.

    >>> cut("16 of 32 heads look there. By chance 4 do. The others look elsewhere.", most=9)
    ('16 of 32 heads look there.', 'By chance 4 do. The others look elsewhere.')
    """
    ends = [match.span() for match in END.finditer(text)] + [(len(text), len(text))]
    shown, rest = 0, 0
    for end, start in ends:
        if n_words(text[:end]) > most:
            break
        shown, rest = end, start
    return text[:shown], text[rest:]
