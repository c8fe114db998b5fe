"""How any experiment is run: the list, options, the stream of documents, files, figure style."""
