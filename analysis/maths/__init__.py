"""Arrays in, arrays out: vectors, spectra and distances, with NumPy and SciPy only."""
