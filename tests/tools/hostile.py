"""Names and texts that want to be more: markup, shell, formulas, paths, control characters.

`write_model` makes a folder whose path closes every element that a page has, and whose tokenizer
has pieces and whose configuration has labels of the same kind. Whatever runs calls `hit()`, opens
a dialog, asks for an address or makes a file `hit`.
"""

import json
import shutil

from minitx import weights

MARKUP = (
    "</script><script>hit()</script><img src=x onerror=hit()><svg onload=hit()>"
    "</title></textarea></style><!-- ]]> --> \"'>` onmouseover=hit() javascript:hit() &lt;b&gt;"
)
SHELL = (
    "$(touch hit) `touch hit` ;touch hit; | touch hit {{7*7}} {% raw %} ${7*7} %s %n {0.__class__}"
)
FORMULA = "=cmd|'/C touch hit'!A0 @SUM(1) +1 -1 | a | b |"
PATHS = "../../hit ..\\..\\hit /hit \\\\host\\share file:///hit http://127.0.0.1:9/hit"
CONTROL = (
    "\x1b[31mred \x1b]0;title\x07 \x08\x0b\x7f\x85\u2028\u2029\u202eright to left\u2066\ufeff\ufffe"
)
TEXT = f"The dog {MARKUP} {SHELL} {FORMULA} {PATHS} {CONTROL} ran."
PIECE = "<img src=x onerror=hit()>\x1b[31m\u202e|]]>"
FOLDERS = (
    "m<",
    "script><script>hit()<",
    "script><img src=x onerror=hit()> \"' $(touch hit) {{7*7}} ]]>",
)
ODD = "\x1b[31m\u202e=1|\n"  # the last folder of another path


def write_model(folder, name, *parts):
    """A copy of a bundled model at a hostile path below `folder` -> the path from there."""
    path = folder.joinpath(*parts)
    shutil.copytree(weights.find(name), path)
    config = json.loads((path / "config.json").read_text())
    config |= {"id2label": {"0": MARKUP, "1": CONTROL}, "_name_or_path": MARKUP, "author": MARKUP}
    (path / "config.json").write_text(json.dumps(config))
    settings = json.loads((path / "tokenizer.json").read_text())
    add_piece(settings)
    (path / "tokenizer.json").write_text(json.dumps(settings))
    return path.relative_to(folder).as_posix()


def write_models(folder):
    """Two masked models, a causal one and one of two stacks -> their paths from `folder`."""
    places = {"n": ODD, "g": FOLDERS[-1], "b": FOLDERS[-1]}
    names = "tiny-roberta", "tiny-gpt2", "tiny-bart"
    paths = [write_model(folder, "tiny-roberta", *FOLDERS)]
    return paths + [write_model(folder, name, *x) for name, x in zip(names, places.items())]


def add_piece(settings):
    """Put a hostile piece in the place of a BPE vocabulary's last one."""
    vocabulary = settings["model"]["vocab"]
    last = max(vocabulary, key=vocabulary.get)
    number = vocabulary.pop(last)
    vocabulary[PIECE] = number
    merges = settings["model"]["merges"]
    settings["model"]["merges"] = [pair for pair in merges if "".join(pair) != last]
    added = {"id": number, "content": PIECE, "single_word": False, "special": False}
    added |= {"lstrip": False, "rstrip": False, "normalized": False}
    settings["added_tokens"].append(added)


SHORT = f"The {PIECE} {MARKUP[:60]}"
LONG = f"The dog {MARKUP} {PIECE} {CONTROL} {SHELL[:40]} ran."
CORPUS = ["--text", "text.txt", "--documents", "8", "--tokens", "24"]
A, B, C, PAIR = "<A>", "<B>", "<C>", "<PAIR>"  # where the paths of four models go; C is causal
COMMANDS = {
    "trace": ["trace", A, LONG, "--save", "out/trace.npz"],
    "trace, control characters": ["trace", B, f"{CONTROL}{PATHS}", "--keep", "q.L0"],
    "explore": ["explore", A, LONG, "--words"],
    "explore beside": ["explore", B, SHORT, "--beside", f"{SHORT} {FORMULA}"],
    "explore two stacks": ["explore", PAIR, "The <img src=x onerror=hit()>"],
    "run": ["run", "positions", A, "--shuffles", "3"],
    "run in png": ["run", "positions", B, "--shuffles", "3", "--format", "png"],
    "run in JSON": ["run", "shapes", B, "--sentence", LONG, "--json"],
    "run on a sentence": ["run", "predict", A, "--sentence", f"{SHORT}<mask>"],
    "run on a corpus": ["run", "norms", A, *CORPUS],
    "compare": ["compare", A, B, "--experiment", "profiles", *CORPUS],
    "report": ["report", A, *CORPUS, "--sentence", SHORT],
    "published": ["published", B, *CORPUS],
    "decode": ["decode", PAIR, SHORT[:30], "--steps", "--out", "out/decode.svg"],
    "decode in JSON": ["decode", PAIR, SHORT[:30], "--json"],
    "verify": ["verify", A, B, "--text", "text.txt", "--junit", "out/junit.xml"],
    "verify a record": ["verify", A, "record.safetensors", "--junit", "out/record.xml"],
    "an error of a model": ["run", "positions", TEXT],
    "an error of a name": ["run", f"{MARKUP}{CONTROL}", A],
    "an error of a point": ["trace", C, "a dog", "--keep", TEXT],
    "an error of an option": ["run", "positions", A, f"--{CONTROL}"],
    "an error of a file": ["run", "norms", A, "--text", f"{CONTROL}.txt"],
}


def commands(*models):
    """{what it writes: arguments}: COMMANDS on the paths of four models."""
    places = dict(zip((A, B, C, PAIR), models))
    return {what: [places.get(x, x) for x in words] for what, words in COMMANDS.items()}
