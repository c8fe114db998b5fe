"""An array made of several tensors, or of none: a picture's W_E, a scaled matrix, ones."""

import numpy as np


def joined(array, tensor, prefix, stored):
    """What a Tensor's `join` makes of an array and others; read-only if the array is.

    stored: the Stored of the file. Raises ValueError where one of the others is missing.
    """
    names = [prefix + name for name in tensor.others]
    for name in names:
        if name not in stored.tensors:
            whole = prefix + tensor.names[0]
            raise ValueError(f"{name!r} is missing; {whole!r} needs it")
    stored.used.update(names)
    others = [np.asarray(stored.array(name)) for name in names]
    made_of = np.asarray(array), *others
    result = tensor.join(*made_of)
    result.flags.writeable = array.flags.writeable
    return result


def ones(width, dtype):
    """A gain that no file has; read-only, as arrays of a file are."""
    array = np.ones(width, dtype)
    array.flags.writeable = False
    return array
