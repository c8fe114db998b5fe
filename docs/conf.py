"""Sphinx's settings of the documentation; those of pages are in minitx.lessons.sphinx."""

import ast
import inspect
import textwrap

import minitx
from docs import search
from minitx.lessons.sphinx import SETTINGS

globals().update(SETTINGS)
extensions = [*SETTINGS["extensions"], "sphinx.ext.autodoc"]
project = "minitx"
author = "minitx contributors"
version = release = minitx.__version__
html_title = f"minitx {version}"
root_doc = "index"
exclude_patterns = ["notebooks/*", "**/notebooks/*", "words.md"]
nitpicky = True
# types of other packages, whose pages are not here, and a record inside an autoencoder
nitpick_ignore = [("py:class", "minitx.research.sae_files.Settings")]
nitpick_ignore_regex = [(r"py:(class|data|obj)", r"(?!minitx).*")]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
default_role = "code"
toc_object_entries_show_parents = "hide"
smartquotes = False
html_search_language = "en-ja"
add_module_names = False


def language_of(app, pagename, templatename, context, doctree):
    """A page in Japanese says so to browsers and screen readers."""
    if pagename.startswith(("lessons/ja/", "ja/")):
        context["language"] = "ja"


def without_aliases(app, what, name, obj, options, lines):
    """What Python says of a named tuple's fields by itself tells nobody anything."""
    if lines and lines[0].startswith("Alias for field number"):
        lines[:] = []


def as_written(app, what, name, obj, options, signature, returns):
    """The signature of a function with its annotations as its file writes them."""
    if what not in ("function", "method"):
        return None
    function = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(obj)))).body[0]
    given = function.args
    for group in (given.posonlyargs, given.args):
        if what == "method" and group:
            group.pop(0)  # self
            break
    result = f" -> {ast.unparse(function.returns)}" if function.returns else None
    return f"({ast.unparse(given)})", result and result[4:]


def setup(app):
    """Called by Sphinx."""
    app.add_search_language(search.language())
    app.connect("html-page-context", language_of)
    app.connect("autodoc-process-signature", as_written)
    app.connect("autodoc-process-docstring", without_aliases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
