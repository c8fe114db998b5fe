"""The experiments, in the order in which a report shows them."""

from . import positions, models, profiles, attention, waves, extraction, singular_values, components
from . import rotation, lags, residual, removal, norms, shift, mask_positions, probe, reviews
from . import joint_space, joint_grid, predict

__all__ = ["attention", "components", "extraction", "joint_grid", "joint_space", "lags", "mask_positions", "models",
           "norms", "positions", "predict", "probe", "profiles", "removal", "residual", "reviews", "rotation", "shift",
           "singular_values", "waves"]
