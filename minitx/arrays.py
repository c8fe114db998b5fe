"""A model in memory: its arrays by the names that papers give them. Axis letters: see model.py."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .config import Config
from .images import Images, Preprocessor, batch_of_images
from .inputs import Batch, Texts
from .machine import show
from .words.text import Tokenizer


class Arrays(show.Shown):
    """Arrays by name, as attributes; None for those that a model lacks."""

    _summary = show.weights

    def __init__(self, **arrays):
        vars(self).update(dict.fromkeys(type(self).__annotations__) | arrays)


class Weights(Arrays):
    """A model's arrays outside its layers."""

    W_E: np.ndarray  # [V E]: of pictures: special tokens, a bias, the numbers of a patch
    W_pos: np.ndarray  # [P E]
    W_rel: np.ndarray  # [R H]: what T5 adds to the scores
    W_dist: np.ndarray  # [R D]: what DeBERTa's queries and keys are compared with
    ln_dist_w: np.ndarray  # [D]
    ln_dist_b: np.ndarray
    W_type: np.ndarray  # [N E]
    ln_embed_w: np.ndarray  # [E]
    ln_embed_b: np.ndarray
    W_map: np.ndarray  # [E D]: from the embeddings to the stream (ALBERT)
    b_map: np.ndarray
    ln_final_w: np.ndarray  # [D]
    ln_final_b: np.ndarray
    W_head: np.ndarray  # [D E], or [D D] of a classifier; from here on the task head
    b_head: np.ndarray
    ln_head_w: np.ndarray  # [E]
    ln_head_b: np.ndarray
    W_U: np.ndarray  # [E V], or [D C]
    b_U: np.ndarray
    logit_scale: np.ndarray  # [1]: log of the factor on similarities (CLIP)


class Layer(Arrays):
    """The arrays of one layer. In a decoder `.cross` has those of cross-attention."""

    __slots__ = ("_known",)  # a SideBySide, which vars(layer), copies and pickles leave out

    index: int  # the layer's number
    W_Q: np.ndarray  # [D A]
    b_Q: np.ndarray
    W_K: np.ndarray  # [D K], K = A but where several heads share keys and values
    b_K: np.ndarray
    W_V: np.ndarray  # [D K]
    b_V: np.ndarray
    W_O: np.ndarray  # [A D]
    b_O: np.ndarray
    cross: "Cross"
    W_Q_pos: np.ndarray  # [D A]: from rows of W_dist to queries of distances
    b_Q_pos: np.ndarray
    W_K_pos: np.ndarray  # [D A]
    b_K_pos: np.ndarray
    ln_q_w: np.ndarray  # [d]: of each head's queries
    ln_q_b: np.ndarray
    ln_k_w: np.ndarray
    ln_k_b: np.ndarray
    ln_all_q_w: np.ndarray  # [A]: of the queries of all heads together
    ln_all_k_w: np.ndarray  # [K]
    W_gate: np.ndarray  # [D M]
    b_gate: np.ndarray
    W_in: np.ndarray  # [D M]
    b_in: np.ndarray
    W_out: np.ndarray  # [M D]
    b_out: np.ndarray
    ln1_w: np.ndarray  # [D]
    ln1_b: np.ndarray
    ln2_w: np.ndarray  # [D]
    ln2_b: np.ndarray
    attn_out_w: np.ndarray  # [D]: of the norm of what attention writes
    mlp_out_w: np.ndarray  # [D]

    def __getstate__(self):
        return vars(self)


class Cross(Arrays):
    """The arrays of one layer's cross-attention, with the norm before or after it."""

    index: int  # the layer's number
    W_Q: np.ndarray  # [D A]: from the decoder's stream
    b_Q: np.ndarray
    W_K: np.ndarray  # [D A]: from the encoder's
    b_K: np.ndarray
    W_V: np.ndarray  # [D A]
    b_V: np.ndarray
    W_O: np.ndarray  # [A D]
    b_O: np.ndarray
    ln_cross_w: np.ndarray  # [D]
    ln_cross_b: np.ndarray


@dataclass(frozen=True, repr=False)
class Model(show.Shown):
    """A checkpoint in memory. Arrays are read-only; matrices are used as x @ W.

    `.weights.W_pos`, `.layers[3].W_Q`: arrays by name, see Weights and Layer.
    `.tokenizer`: text to ids and back. `.encoder`: the Model of an encoder-decoder's encoder, with
    the source's tokenizer; None in a single stack. `.text`: the Model of CLIP's text encoder; the
    model itself reads pictures, which `.preprocessor` prepares.
    `.unused`: tensors of the file that were not read. `.missing`: tensors that a partial checkpoint
    lacks; they are None, and the model cannot run, but its other weights can be read.

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> model.config.n_ctx, model.weights.W_pos.shape, model.layers[3].W_Q.shape
    (256, (258, 128), (128, 128))
    >>> model.tokenizer.encode("A dog")
    array([  0,  37, 425,  75,   2])
    """

    config: Config
    weights: Weights
    layers: tuple[Layer, ...]
    tokenizer: Tokenizer = None  # type: ignore[assignment]  # minitx.load gives one
    unused: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    encoder: "Model | None" = None
    text: "Model | None" = None
    preprocessor: Preprocessor = None  # type: ignore[assignment]  # minitx.load gives one
    _summary = show.model

    def encode(
        self,
        texts: Texts | None = None,
        pad: Literal["left", "right"] = "right",
        *,
        is_split_into_words: bool = False,
        images: Images | None = None,
    ) -> Batch:
        """Texts, or pairs of texts -> Batch with .tokens .valid .types [B T]: a source's, too.

        is_split_into_words: the texts are already cut: each is a list of words that are encoded
        alone, a pair a tuple of two lists; `tokenizer.word_numbers` says of which word a token is.
        images: pictures, for a model of these: a path (with the extra `images`), an array
        [height width channels], of bytes or of numbers from 0 to 1, or several. They are resized,
        cropped and normalised as preprocessor_config.json says; .tokens are then [B T V], a row of
        numbers for each special token and each patch.
        Raises ValueError for pictures that cannot be read, or a model that reads none.
        """
        if (images is None) == (texts is None) or (images is None) != (self.config.picture is None):
            wanted = "texts" if self.config.picture is None else "images=…"
            raise ValueError(
                f"this model ({self.config.model_type}) reads {wanted}, and only these"
            )
        if images is not None:
            return batch_of_images(images, self.config.picture, self.preprocessor)
        assert texts is not None
        reader = self if self.encoder is None else self.encoder
        return reader.tokenizer.batch(texts, reader.config, pad, is_split_into_words)


def checked_scale(name, scale, w):
    """Each token's 1/std as it is; raises ValueError that names norm and layer unless all are > 0.

    It is 0 where the variance overflows: a norm would then give its bias alone, finite and wrong.
    To propagate NaN through a model: np.errstate(invalid="ignore").
    """
    if np.minimum.reduce(scale, axis=None) > 0 or np.geterr()["invalid"] == "ignore":
        return scale
    layer = f" of layer {w.index}" if hasattr(w, "index") else ""
    token = tuple(int(i) for i in np.argwhere(~(scale > 0))[0])
    raise ValueError(
        f"the stream before {name}{layer} is NaN, infinite, or overflows {scale.dtype} when it is "
        f"squared, first in token {token}; minitx.check(model) names weights that are not finite, "
        "dtype=float64 holds larger numbers"
    )
