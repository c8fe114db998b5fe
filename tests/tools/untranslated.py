"""Texts of a figure that are English in another language: words of two Latin letters or more.

Names stay in every language: of arrays, of points of the pass, of models, of masks, of methods, and
tokens of a text.
"""

import re

import numpy as np
from matplotlib.axis import Axis
from matplotlib.text import Text

from minitx import weights
from minitx.analysis.drawing import draw
from minitx.analysis.machine import language
from minitx.analysis.maths import masks
from minitx.loading import families

METHODS = "MLP LayerNorm RMSNorm RoPE ALiBi softmax log CCA SVD FFT ID pca umap tsne"
MODELS = [*weights.bundled(), *families.FAMILIES, *weights.KNOWN, "clean", "corrupt"]
NAMES = ["Hugging Face", *MODELS, *METHODS.split(), *masks.FAMILIES]
LATIN = re.compile("[A-Za-z]{2}")
STAYS = re.compile(
    r"\$\\mathdefault\{.*?\}+\$"  # a number as matplotlib writes it
    r"|“.*?”"  # a token
    r"|<0x[0-9A-F]{2}>"  # a byte that is no letter by itself
    r"|head\(\d+,\d+\)"  # a head as the paper names it
    r"|\w+ ?\([\w=., -]*\)"  # a mask with its parameters
    r"|[A-Za-z]\w*_\w+"  # an array
    rf"|(?<![A-Za-z])(?:{'|'.join(map(re.escape, NAMES))})(?![A-Za-z])"
)


def words(experiment, arrays, tongue="ja"):
    """Texts of an experiment's figure in a language that have words, names aside, in English."""
    with language.using(tongue), draw.style():
        figure = experiment.draw({key: np.asarray(value) for key, value in arrays.items()})
        draw.translate(figure)
        return [text for text in shown(figure) if LATIN.search(STAYS.sub("", text))]


def shown(figure):
    """What can be read in a figure, without tokens of a text."""
    axes = [axis for axis in figure.findobj(Axis) if axis.get_visible()]
    of_ticks = {tick: axis for axis in axes for tick in axis.get_ticklabels()}
    for text in figure.findobj(Text):
        holder = of_ticks.get(text, text)
        if text.get_visible() and not getattr(holder, "has_tokens", False):
            yield text.get_text()
