"""PyTorch, which training needs and nothing else does, or a word on how to get it."""

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    raise SystemExit(
        "training a checkpoint needs PyTorch, which is not installed: pip install torch"
    ) from error

__all__ = ["F", "torch"]
