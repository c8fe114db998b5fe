"""From files to documents of token ids."""
