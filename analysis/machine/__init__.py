"""What this computer is and what holds NumPy back on it; nothing here knows models."""
