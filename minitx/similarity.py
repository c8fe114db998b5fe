"""How well pictures and texts fit each other: the cosine of their vectors (CLIP)."""

import numpy as np

from .arrays import Model
from .heads import read_tokens
from .images import Images
from .inputs import Texts, as_batch, check_model
from .model import forward, logits


def similarity(model: Model, images: Images, texts: Texts) -> np.ndarray:  # [n m]
    """exp(logit_scale) cos(picture, text) of n pictures and m texts [n m]: CLIP's logits.

    images: as for `model.encode`, or what it returns. texts: a text, several, or ids that end in
    the end token, such as those of `model.text.encode`.
    A softmax along the last axis gives the probability of each text, along the first of each
    picture. Raises ValueError for a model without both encoders. Source: Radford et al. 2021.

        model = minitx.load("openai/clip-vit-base-patch32")     # fetched before
        minitx.similarity(model, "cat.png", ["a cat", "a dog"])     # [1 2]

    A model of texts alone is rejected:

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
