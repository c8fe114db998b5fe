"""Parity as a product: what the reference library computes, recorded once and compared anywhere."""
