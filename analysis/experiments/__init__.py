"""The experiments, in the order in which a report shows them."""

from . import positions, models, profiles, attention, waves, extraction, singular_values, components
from . import rotation, lags, residual, removal, norms, shift, mask_positions, probe, reviews, predict

__all__ = ["attention", "components", "extraction", "lags", "mask_positions", "models", "norms", "positions", "predict",
           "probe", "profiles", "removal", "residual", "reviews", "rotation", "shift", "singular_values", "waves"]
