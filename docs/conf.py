"""Sphinx's settings of the documentation; those of pages are in minitx.lessons.sphinx."""

import minitx
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
# types of other packages, whose pages are not here
nitpick_ignore_regex = [(r"py:(class|data|obj)", r"(?!minitx).*")]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
default_role = "code"
toc_object_entries = False


def language_of(app, pagename, templatename, context, doctree):
    """A page in Japanese says so to browsers and screen readers."""
    if pagename.startswith("lessons/ja/"):
        context["language"] = "ja"


def setup(app):
    """Called by Sphinx."""
    app.connect("html-page-context", language_of)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
