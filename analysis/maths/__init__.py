"""Arrays in, arrays out: vectors, spectra and distances, with NumPy and SciPy only.

SciPy's parts are called by their whole names, scipy.fft.rfft, and so loaded by the first call: a
command that computes nothing, as `minitx --help`, starts in a third of the time.
"""
