"""Numbers from forward passes that several experiments share."""
