"""Learning: a checkpoint's arrays are moved against the gradients of a loss, on any text.

tensors    a checkpoint whose arrays may be changed and written, perhaps with new classes
batches    full documents with hidden or next words to predict, texts with a class
training   the loop in memory: a step, the loss on what is held out, what a NaN came from
saved      the loop in a folder: saved as it goes, taken up again to the same bytes
tune       the command `minitx tune`
"""
