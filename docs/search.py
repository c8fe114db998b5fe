"""Words by which the documentation's search finds pages in English and in Japanese.

Japanese is written without blanks, so a whole phrase would be one word of the index. Each two
letters in a row are a word there, and each letter; a query is split in the same way, and a page is
found that has all of its pairs. Order: the index, the query, the same in the browser's language.
"""

import re

JAPANESE = r"[\u3005\u3040-\u30ff\u3400-\u9fff]+"
TOKEN = re.compile(rf"{JAPANESE}|(?:(?!{JAPANESE})\w)+")


def indexed(text):
    """What the index holds of a text.

    >>> indexed("重みとhead")
    ['重み', 'みと', '重', 'み', 'と', 'head']
    """
    return [part for token in TOKEN.findall(text) for part in _parts(token, alone=True)]


def asked(query):
    """What is looked for.

    >>> asked("重みと head"), asked("表")
    (['重み', 'みと', 'head'], ['表'])
    """
    return [part for token in TOKEN.findall(query) for part in _parts(token, alone=False)]


def _parts(token, alone):
    """A token, or the pairs of its letters if it is Japanese; with `alone` the letters, too."""
    if not re.match(JAPANESE, token):
        return [token]
    pairs = [token[n : n + 2] for n in range(len(token) - 1)]
    return pairs + list(token) if alone or not pairs else pairs


# `asked` as Sphinx's pages have it
SPLIT = """
function splitQuery(query) {
  const tokens = query.match(/JAPANESE|(?:(?!JAPANESE)[\\p{Letter}\\p{Number}_])+/gu) ?? [];
  return tokens.flatMap(token => {
    const letters = [...token];
    if (letters.length < 2 || !/^JAPANESE/u.test(token)) return [token];
    return letters.slice(1).map((letter, n) => letters[n] + letter);
  });
}
""".replace("JAPANESE", JAPANESE)


def language():
    """The class that Sphinx takes for it: English stems, and both ways to split."""
    from sphinx.search.en import SearchEnglish

    class Both(SearchEnglish):
        lang = "en-ja"  # `language_name` is the stemmer's
        js_splitter_code = SPLIT

        def split(self, text):
            return indexed(text)

    return Both
