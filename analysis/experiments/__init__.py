"""The experiments, in the order in which a report shows them."""

from importlib import import_module

IN_ORDER = (
    "positions", "models", "profiles", "attention", "alignment", "queries_keys", "extraction",
    "singular_values", "bases", "components", "rotation", "lags", "conditions", "sources",
    "kernel", "residual", "cca", "dial", "chain", "notch",
    "scale_positions", "inject_positions", "remove_positions", "relearn", "norms",
    "shift", "mask_positions", "probe", "mechanisms", "reviews", "joint_space", "joint_grid",
    "predict", "attribution", "attribute", "heads", "patch", "paths", "circuit",
    "parts", "shapes", "mixing", "slices", "projections",
)  # fmt: skip

for name in IN_ORDER:
    import_module(f".{name}", __name__)

import_module(".pictures", __name__)
