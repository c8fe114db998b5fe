"""Small models that are no transformers, each trained for one experiment and bundled."""
