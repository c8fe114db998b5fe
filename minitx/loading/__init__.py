"""From a folder of files to a model: configs, families, tensors, what is missing or not finite."""
