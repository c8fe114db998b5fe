"""Formulas as MathML, which browsers draw themselves: docutils translates them, no script runs.

An extension of Sphinx: its own renderers load a script from elsewhere, or need LaTeX.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def visit_inline(writer, node):
    """Write a formula inside a line."""
    write(writer, node, as_block=False)


def visit_block(writer, node):
    """Write a formula on lines of its own."""
    write(writer, node, as_block=True)


def write(writer, node, as_block):
    """Write a formula; one that cannot be translated is a warning, and stands as it was typed."""
    try:
        writer.body.append(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        LOGGER.warning("formula %r: %s", node.astext(), error, location=node)
        writer.body.append(writer.encode(node.astext()))
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
