"""Names that results had in version 1.0: numbers that are arrays now, and arrays that went.

1.1 declares fewer numbers. One whose array stayed is read as before, with a warning; of one whose
array went, a KeyError says what it was made of.
"""

import warnings

from .options import near_matches

OF_JOINT = {
    "better": "the share of heads whose arrays['correlation'] is below ['correlation_before']",
    "c_mean": "np.exp(np.log(arrays['c']).mean())",
    "changed_products": "arrays['products_change'].max()",
    "correlation_moved_mean": "arrays['correlation_moved'].mean()",
    "first_mean": "arrays['first'].mean()",
    "first_plane_mean": "arrays['first_plane'].mean()",
    "mrr_plane_before_mean": "arrays['mrr_plane_before'].mean()",
    "mrr_plane_mean": "arrays['mrr_plane'].mean()",
    "mrr_turned_mean": "arrays['mrr_turned_null'].mean()",
    "n_bound": "the number of heads whose arrays['c'] is the smallest or largest that is tried",
}
WENT = {  # experiment -> {array of 1.0: what it was}
    "joint-grid": OF_JOINT,
    "joint-space": OF_JOINT | {"pair_attention": "the mean attention of the pairs"},
    "lags": {"agree_positions": "the share of heads whose attention peaks where positions do"},
    "positions": {
        "n_above": "len(arrays['above_all'])",
        "n_components": "1 + np.searchsorted(arrays['position_explained'], [0.5, 0.9, 0.99])",
        "n_peaks": "len(arrays['peaks'])",
        "peaks_listed": "arrays['peaks_away'] as words",
    },
    "remove-positions": {"loss_bits": "arrays['loss'] / np.log(2)"},
    "residual": {"peak_first": "the highest peak of arrays['spectra'] of what layer 0 reads"},
    "rotation": {
        "band_random": "the band of random weights",
        "fit_of_noise": "the fit of noise as wide as the model",
        "line_random": "the line of random weights",
        "modulus": "the mean modulus of the thin rotation",
        "offset_lapack": "arrays['compared_offsets'] of the completion lapack",
        "spread_random": "the spread of random weights",
        "zero": "the share of angles at zero in the smallest rotation",
    },
}


class Arrays(dict):
    """{name: array} of an experiment's result."""

    def __init__(self, arrays, experiment):
        super().__init__(arrays)
        self.experiment = experiment

    def __missing__(self, name):
        was = WENT.get(self.experiment, {}).get(str(name).removesuffix("_null"))
        if was:
            raise KeyError(f"{self.experiment} has no {name!r} since 1.1; it was {was}")
        raise KeyError(f"{self.experiment} has no {name!r}{near_matches(str(name), self)}")


class Numbers(dict):
    """{name: Number} that an experiment declares; its other arrays are numbers with a warning."""

    def __init__(self, numbers, arrays, kind):
        super().__init__(numbers)
        self.arrays, self.kind = arrays, kind

    def __missing__(self, name):
        value, null = self.arrays[name].tolist(), self.arrays.get(f"{name}_null")
        text = f"{self.arrays.experiment} declares no number {name!r} since 1.1"
        use = f"use result.arrays[{name!r}]"
        warnings.warn(f"{text}; {use}", DeprecationWarning, stacklevel=2)
        return self.kind(value, f"the array {name}", None if null is None else null.tolist())
