"""This computer: what holds NumPy back on it, its files and its terminal; no models."""
