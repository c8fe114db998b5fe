"""Texts to token ids and back, as the reference library cuts them."""
