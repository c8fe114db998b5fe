"""The experiments, in the order in which a report shows them."""

from . import positions, models, profiles, attention, waves, extraction, singular_values, components
from . import rotation, lags, residual, removal, mask_positions, reviews, predict

__all__ = ["attention", "components", "extraction", "lags", "mask_positions", "models", "positions", "predict",
           "profiles", "removal", "residual", "reviews", "rotation", "singular_values", "waves"]
