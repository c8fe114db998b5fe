"""A matrix that stays in its file: what is read of it becomes an array, and is let go after use.

A product reads it piece after piece (`linear` in kernels.py), an embedding by the rows that it
needs, so that a checkpoint runs in memory that it does not fill. Pieces, and so results, are those
of arrays. D, M: rows and columns of a matrix.
"""

import numpy as np

PIECE = 1 << 22  # numbers of a matrix that are read at once
KEPT = "its weights stay in their file (keep_dtype=True)"


class Mapped(np.lib.mixins.NDArrayOperatorsMixin):
    """A read-only matrix [D M] in a file: W.T, W[rows] and W[:, columns] are as those of an array.

    W.T is Mapped, too; an index gives an array in the model's dtype. Anything else asked of it, as
    W.mean() or x @ W, reads the whole matrix first: np.asarray(W) once is better.

    bits() gives what is stored, to_array(a part of it) the array. source: the same in W and W.T.
    """

    def __init__(self, bits, to_array, shape, dtype, source=None):
        self.bits, self.to_array, self.shape, self.dtype = bits, to_array, shape, dtype
        self.source = self if source is None else source
        self.ndim, self.size = len(shape), shape[0] * shape[1]
        self.itemsize = dtype.itemsize
        self.nbytes = self.size * self.itemsize  # of the array; in the file there may be fewer

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        D, M = self.shape
        return f"Mapped [{D} {M}], read from its file as {self.dtype}"

    @property
    def T(self):
        """The matrix the other way round."""
        shape = self.shape[::-1]
        return Mapped(lambda: self.bits().T, self.to_array, shape, self.dtype, self.source)

    @property
    def flags(self):
        """Those of the array that would be read."""
        return self.bits().flags

    def rows(self, where):
        """These rows, a slice or numbers, as a matrix that stays in the file."""
        shape = len(np.arange(len(self))[where]), self.shape[1]
        return Mapped(lambda: self.bits()[where], self.to_array, shape, self.dtype)

    def __getitem__(self, key):
        return self.to_array(self.bits()[key])

    def __array__(self, dtype=None, copy=None):
        return np.array(self[:], dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        arrays = (np.asarray(x) if isinstance(x, Mapped) else x for x in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __reduce__(self):
        raise TypeError(f"a model cannot be copied or sent: {KEPT}; load it where it is needed")


ARRAY = np.ndarray, Mapped  # what a model's weights are


def rows_of(x, where):
    """Rows of an array, or of a matrix that stays in its file; read-only if x is."""
    if isinstance(x, Mapped):
        return x.rows(where)
    own = x[where]
    own.flags.writeable = x.flags.writeable
    return own


def place_of(x):
    """What tells two arrays apart and is the same for a view of all of one: where they lie."""
    return id(x.source) if isinstance(x, Mapped) else x.ctypes.data


def pieces(x):
    """An array, or a matrix that stays in its file as arrays of some of its rows."""
    if not isinstance(x, Mapped):
        return [x]
    step = max(1, PIECE // x.shape[1])
    return (x[i : i + step] for i in range(0, len(x), step))


def stays_in_file(model):
    """Whether a model was loaded with keep_dtype=True."""
    return any(isinstance(x, Mapped) for x in vars(model.weights).values())


def require_arrays(model, what):
    """Raises ValueError for a model whose weights stay in their file; what: needs arrays."""
    if stays_in_file(model):
        raise ValueError(f"{what} needs the weights in memory; {KEPT}: load the model without")
