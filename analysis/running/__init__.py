"""How experiments run: streams of documents, shared passes, threads, processes, a cluster."""
