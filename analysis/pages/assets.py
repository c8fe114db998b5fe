"""The files of page/: as they stand, and programs as scripts, each a scope of its own.

A program is written as a module. What it exports the scripts behind it see, and nothing else of it:
`export {a, b};` at its end, and `export let c;` for what it changes later. A page needs no bundler,
and runs from a file, where browsers load no modules.
"""

import re
from pathlib import Path

PAGE = Path(__file__).parent / "page"
EXPORT = re.compile(r"^export \{(.*?)\};\n", re.M | re.S)
# what a page needs not: comments of a whole line, indents, line ends behind a sign that goes on
COMMENT = re.compile(r"^[ \t]*//.*\n|^ +|(?<=[,{(\[;])\n", re.M)
CHANGING = re.compile(r"^export (let [^;]*;)", re.M)


def text(file):
    """The text of a file of the folder page/."""
    return (PAGE / file).read_text(encoding="utf-8")


def script(program):
    """A program's text as the text of a script, in a scope of its own.

    >>> print(script("const one = 1;\\nexport let n = 0;\\nexport {one};\\n"))
    "use strict";
    let n = 0;
    const {one} = (() => {
    const one = 1;
    return {one};
    })();
    """
    names = " ".join(" ".join(EXPORT.findall(program)).split()).rstrip(", ")
    changing = CHANGING.findall(program)
    own = COMMENT.sub("", CHANGING.sub("", EXPORT.sub("", program)))
    lines = ['"use strict";', *changing, f"const {{{names}}} = (() => {{"]
    return "\n".join([*lines, f"{own}return {{{names}}};", "})();"])


def scripts(*files):
    """The texts of these programs as scripts, in order."""
    return [script(text(file)) for file in files]
