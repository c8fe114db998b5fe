"""Experiments on what a model computes, in rooms; each imports only from rooms above it here.

maths        arrays in, arrays out
texts        from files to documents of token ids
machine      what this computer is
runner       how any experiment is run: list, options, stream, files, figure style
measures     numbers from forward passes that several experiments share
experiments  one question a file; the file's name is the command's
pages        what people look at
commands     the command line, derived from the list of experiments
"""
