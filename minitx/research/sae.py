"""Sparse autoencoders as SAELens writes them: features of a point, and what they leave out.

    h = (x - b_dec) W_enc + b_enc,   f = act(h),   x' = f W_dec + b_dec

standard: relu(h). jumprelu: relu(h) where h > threshold (Rajamanoharan et al. 2024). topk: relu of
the k largest (Gao et al. 2024). gated: relu of h with W_enc exp(r_mag) and b_mag, where h with
b_gate is above 0. D numbers of the point, F features.

Order: the autoencoder, `load_sae`, how well it reconstructs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..arrays import Model
from ..machine import show
from ..points import Key
from ..words.text import told_once
from .sae_files import Settings, read_sae
from .sae_kinds import ENCODERS, NORMS, at_random, explained
from .sae_texts import Features, Recovered, features_of, recovered_of

EPS = 1e-5  # of SAELens's layer_norm


class Reconstruction(NamedTuple):
    """How well features stand for x: `.explained` beside `.null`, `.l0`, `.dead`.

    explained: share of the variance. null: that of random unit vectors, as many and as many active
    in each row, with one scale fitted. l0: mean number of active features. dead: share of the
    features that are never active on these rows.
    """

    explained: float
    null: float
    l0: float
    dead: float


@dataclass(frozen=True, repr=False)
class SparseAutoencoder(show.Shown):
    """A sparse autoencoder: `.encode(x)` [... F], `.decode(f)` [... D], `.edits({feature: scale})`.

    `.features(model, text)` tells those of a text; `.measure(x)` and `.recovered(model, documents)`
    how much they keep of a point, and of what the model predicts, beside random vectors.

    `.point` is what it reads, `.architecture` its kind, `.arrays` its arrays by SAELens's names.
    """

    settings: Settings
    arrays: dict[str, np.ndarray]

    @property
    def architecture(self) -> str:
        """standard, gated, jumprelu or topk."""
        return self.settings.architecture

    @property
    def point(self) -> Key:
        """The point that it was trained on. Raises ValueError where the file does not say it."""
        return self.settings.point()

    def encode(self, x: ArrayLike) -> np.ndarray:
        """x [... D] -> features [... F]; heads stand side by side, as `collect` writes them."""
        x, _, _ = self._normed(x)
        if self.settings.apply_b_dec_to_input:
            x = x - self.arrays["b_dec"]
        return ENCODERS[self.architecture](x, self.arrays, self.settings)

    def decode(self, f: ArrayLike, x: ArrayLike | None = None) -> np.ndarray:
        """Features [... F] -> their sum [... D]; x: what they are of, if its norm is taken off.

        Raises ValueError where x is needed.
        """
        y = self._written(np.asarray(f)) + self.arrays["b_dec"]
        if x is None:
            if self.settings.normalize != "none":
                text = f"the input is normalized ({self.settings.normalize})"
                raise ValueError(f"{text}: expected decode(f, x), with the x that they are of")
            return y
        _, mean, scale = self._normed(x)
        return y * scale + mean

    def reconstruct(self, x: ArrayLike) -> np.ndarray:
        """decode(encode(x)): [... D]."""
        return self.decode(self.encode(x), x)

    def edits(self, scales: Mapping[int, float]) -> dict[Key, object]:
        """Edits that multiply features, and leave all that the dictionary does not explain.

        scales: {feature: scale}; 0 takes a feature out, 1 changes nothing. For `run`, `generate`
        and others. Raises ValueError for a feature that it does not have.
        """
        F = len(self.arrays["W_dec"])
        for feature in scales:
            if not isinstance(feature, int | np.integer) or not 0 <= feature < F:
                raise ValueError(f"feature {feature!r:.80} is none of 0 to {F - 1}")
        own = [*scales]
        change = np.array([scales[feature] for feature in own]) - 1

        def edit(x):
            by_token = x
            if x.ndim == 4:  # heads stand side by side
                by_token = x.swapaxes(1, 2).reshape(len(x), x.shape[2], -1)
            _, _, scale = self._normed(by_token)
            f = np.zeros((*by_token.shape[:2], F), by_token.dtype)
            f[..., own] = self.encode(by_token)[..., own] * change
            added = self._written(f) * scale
            if x.ndim == 4:
                n_texts, H, T, d = x.shape
                added = added.reshape(n_texts, T, H, d).swapaxes(1, 2)
            return (x + added).astype(x.dtype)

        return {self.point: edit}

    def measure(self, x: ArrayLike, seed: int = 0) -> Reconstruction:
        """How well it reconstructs x [N D], beside random unit vectors."""
        x = np.asarray(x, np.float64)
        f = self.encode(x)
        active = f > 0
        l0 = float(active.sum(axis=-1).mean())
        null = explained(x, at_random(x, f.shape[-1], round(l0), seed))
        is_dead = ~active.reshape(-1, f.shape[-1]).any(axis=0)
        share = explained(x, self.decode(f, x))
        return Reconstruction(share, null, l0, float(is_dead.mean()))

    @told_once()
    def features(self, model: Model | str | PathLike[str], text: Any, seed: int = 0) -> Features:
        """The features of each token of a text, beside random unit vectors; they save as a page.

        >>> import minitx
        >>> features = minitx.load_sae("tiny-stories-sae").features("tiny-stories", "Tom was sad.")
        >>> features.tokens, features.values.shape
        (['tom', 'was', 'sad', '.'], (4, 256))
        """
        return features_of(self, model, text, seed)

    @told_once()
    def recovered(
        self, model: Model | str | PathLike[str], documents: Iterable[Any], seed: int = 0
    ) -> Recovered:
        """The loss of the model with the reconstruction in place of the point, beside chance.

        documents: texts or rows of ids. Raises ValueError for a model that does not predict the
        next token.

        >>> import minitx
        >>> texts = [minitx.weights.stories.story(3, seed) for seed in range(4)]
        >>> recovered = minitx.load_sae("tiny-stories-sae").recovered("tiny-stories", texts)
        >>> recovered.null < recovered.share < 1
        True
        """
        return recovered_of(self, model, documents, seed)

    def _written(self, f):
        W_dec = self.arrays["W_dec"]
        if self.settings.rescale:
            f = f / np.linalg.norm(W_dec, axis=1)
        return f @ W_dec

    def _normed(self, x):
        """x as it is encoded, and the mean and scale that were taken off."""
        x = np.asarray(x)
        D = len(self.arrays["b_dec"])
        if not x.ndim or x.shape[-1] != D:
            raise ValueError(f"x is {list(x.shape)}; expected [... {D}]")
        mean, scale = NORMS[self.settings.normalize](x)
        if self.settings.is_centred:
            mean = x.mean(axis=-1, keepdims=True)
        eps = EPS if self.settings.normalize == "layer_norm" else 0.0
        return (x - mean) / (scale + eps), mean, scale

    def _summary(self):
        F, D = self.arrays["W_dec"].shape
        title = f"Sparse autoencoder ({self.architecture}): {F} features of {D} numbers"
        hook = self.settings.hook_name or "not stated"
        rows = [("point", hook), ("normalized", self.settings.normalize)]
        lines = [f"{name}: {value}" for name, value in rows]
        return show.Summary(title, lines, ("what", "value"), rows)


def load_sae(folder: str | PathLike[str], dtype: DTypeLike = "float32") -> SparseAutoencoder:
    """A sparse autoencoder from a folder with cfg.json and sae_weights.safetensors (SAELens).

    folder: a path, or "tiny-stories-sae", the bundled one of tiny-stories.
    architecture: standard, gated, jumprelu or topk. Raises FileNotFoundError for missing files, and
    ValueError for another architecture, missing arrays, or settings that are not read.

    >>> import json, minitx, numpy as np, tempfile
    >>> from pathlib import Path
    >>> from safetensors.numpy import save_file
    >>> cfg = {"architecture": "standard", "d_in": 2, "d_sae": 4}
    >>> W = np.array([[1, -1, 0, 0], [0, 0, 1, -1]], np.float32)
    >>> arrays = {"W_enc": W, "W_dec": W.T.copy(), "b_enc": 0 * W[0], "b_dec": 0 * W[:, 0]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "cfg.json").write_text(json.dumps(cfg))
    ...     save_file(arrays, Path(folder, "sae_weights.safetensors"))
    ...     sae = minitx.load_sae(folder)
    >>> sae.encode([[3.0, -2.0]]), sae.reconstruct([[3.0, -2.0]])
    (array([[3., 0., 0., 2.]]), array([[ 3., -2.]]))
    """
    return SparseAutoencoder(*read_sae(folder, dtype))
