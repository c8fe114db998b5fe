"""How the bundled checkpoints were trained: programs of a checkout, which no wheel holds.

recipe           what recipes without torch share: stages of a model, books, files
train            the BERTs, the GPT-2; models, places, torches: the models in PyTorch
train_dates      tiny-bart, on dates, without torch
train_zoo        one model for each way to tell positions; zoo_files, zoo_measure, zoo_cards
train_recurrent  the recurrent copiers, without torch
train_deep       deep-roberta's stages, without torch
train_induction  tiny-induction, by the project's own gradients
"""
