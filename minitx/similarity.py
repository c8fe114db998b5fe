"""How well pictures and texts fit each other: the cosine of their vectors (CLIP)."""

import numpy as np

from .arrays import Model
from .heads import read_tokens
from .images import Images
from .inputs import Texts, as_batch, check_model
from .model import forward, logits


def similarity(model: Model, images: Images, texts: Texts) -> np.ndarray:  # [n m]
    """exp(logit_scale) cos(picture, text) of n pictures and m texts: the logits per picture.

    images: as for `model.encode`, or its rows of numbers. texts: a text, or several, or ids; these
    end in the end token, or are padded after it by `model.text.encode`.
    A softmax along an axis gives the probability of each text, or picture. Source: Radford et al.
    2021.
    Raises ValueError for a model without one of the two sides.

    >>> import minitx
    >>> minitx.similarity(minitx.load("tiny-bert"), [], "a cat")
    Traceback (most recent call last):
    ValueError: this model (bert) does not compare pictures with texts; wanted a CLIP
    """
    check_model(model)
    if model.text is None or model.weights.logit_scale is None:
        text = f"this model ({model.config.model_type}) does not compare pictures with texts"
        raise ValueError(f"{text}; wanted a CLIP")
    pictures = unit_vectors(model, images)
    of_texts = unit_vectors(model.text, texts)
    return np.exp(model.weights.logit_scale[0]) * (pictures @ of_texts.T)


def unit_vectors(model, given):  # -> [n C]
    """The projection of each picture or text, divided by its length."""
    batch = as_batch(model, given)
    x = forward(model, batch.tokens, valid=batch.valid)
    y = logits(model, x, valid=read_tokens(model.config, batch))
    return y / np.linalg.norm(y, axis=1, keepdims=True)
