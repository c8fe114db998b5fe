"""Texts that documents and defaults give to bundled models are words to them, no letters."""

import ast
import re
from functools import cache

from documented import documents, lines, split

from minitx import load, weights
from minitx.analysis import commands
from minitx.analysis.contract import own_texts
from minitx.analysis.texts import corpus

OF_LETTERS = "tiny-bart"  # reads dates, letter by letter
MODELS = {*weights.local.bundled()} - {OF_LETTERS}
CELL = re.compile(r"^```(?:\{code-cell\} )?python\n(.*?)^```", re.M | re.S)
SHELL = re.compile(r"^%%", re.M)
NO_CODE = re.compile(r"^(?::tags:|%|!).*$", re.M)
TEXT = re.compile(r"[A-Z][A-Za-z,.'<>|\[\]? ]+")  # a sentence, or its beginning
GIVEN = "text", "sentence", "second", "source", "prompt"  # arguments of commands
IN_PIECES = {  # documents in which words are to be cut -> why
    "lessons/08-turn-the-dial.md": "some heads of the model look at the next piece of a word",
    "lessons/20-tokens.md": "it is about pieces",
}


def of_defaults():
    """(where, model, text) of what is read where a user names no text."""
    for name in sorted(MODELS):
        own = {"sentence": corpus.SENTENCE} | own_texts.OWN.get(name, {})
        yield from ((f"default {x}", name, own[x]) for x in ("sentence", "prompt") if x in own)


def of_commands():
    """(where, model, text) of the documents' command lines that name a bundled model."""
    for line, (where, *_) in lines(documents()).items():
        model = next((word for word in split(line) if word in MODELS), None)
        if model and len(split(line)) > 1:
            given = vars(commands.parser(split(line)).parse_args(split(line)))
            texts = [given.get(name) for name in GIVEN]
            yield from ((where, model, x) for x in texts if isinstance(x, str) and " " in x)


def of_code():
    """(where, models, text) of sentences in Python, with the models that its file names."""
    for where, text in documents().items():
        cells = (cell for cell in CELL.findall(text) if not SHELL.search(cell))
        code = "\n".join(NO_CODE.sub("", cell) for cell in cells)
        strings = in_strings(code)
        named = sorted(MODELS & strings)
        for said in sorted(x for x in strings if named and is_text(x)):
            yield where, named, said


def in_strings(code):
    """Strings of a program, without docstrings and what is printed or written on a figure."""
    every = [*ast.walk(ast.parse(code))]
    left_out = {id(x) for node in every if is_told(node) for x in ast.walk(node)}
    strings = (x for x in every if isinstance(x, ast.Constant) and isinstance(x.value, str))
    return {x.value for x in strings if x.value in MODELS or id(x) not in left_out}


def is_told(node):
    """Whether a node of a program is a docstring, a keyword, or something that is printed."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    is_print = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    return is_print or isinstance(node, ast.JoinedStr | ast.keyword)


def is_text(x):
    return len(x.split()) > 2 and TEXT.fullmatch(x)


@cache
def tokenizer(name):
    return load(name).tokenizer


def cut(model, text):
    """Words of a text that a model reads in more than one piece, or not at all."""
    its = tokenizer(model)
    first, *others = re.findall(r"[\w']+", text.replace("<mask>", ""))
    spelled = [first, *(f" {word}" for word in others)]
    return [x.strip() for x in spelled if len(its.encode(x, special=False)) > 1 or is_lost(its, x)]


def is_lost(its, word):
    return its.decode(its.encode(word, special=False)).strip().lower() != word.strip().lower()


@cache
def shown():
    """(where, models, text) of every text."""
    alone = ((where, [model], text) for where, model, text in (*of_defaults(), *of_commands()))
    return [*alone, *of_code()]


def test_a_text_is_words_to_a_model_that_its_document_names():
    of_words = [(models, text) for where, models, text in shown() if where not in IN_PIECES]
    assert not [text for models, text in of_words if all(cut(model, text) for model in models)]


def test_the_texts_that_are_shown_are_found():
    texts = {(where, text) for where, _, text in shown()}
    assert ("README.md", "The old man came to the house.") in texts
    assert ("lessons/09-without-positions.md", "The man told the child.") in texts
    assert {where for where, _, text in shown() if text == own_texts.STORY} > {"default prompt"}
    for where in IN_PIECES:
        assert any(cut(models[0], text) for name, models, text in shown() if name == where)


def test_letters_are_noticed():
    assert cut("tiny-gpt2", "The dog ran after the man.") == ["dog", "ran"]
    assert cut("tiny-stories", "The dog ate the oar") == ["oar"]
    assert in_strings('"""A docstring."""\nprint("A line")\nx = "The old man"') == {"The old man"}
