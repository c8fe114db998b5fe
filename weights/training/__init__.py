"""How the bundled checkpoints were trained: programs of a checkout, which no wheel holds.

train            the BERTs, the GPT-2; models, places, torches: the models in PyTorch
train_dates      tiny-bart, on dates
train_zoo        one model for each way to tell positions; zoo_files, zoo_measure, zoo_cards
train_recurrent  the recurrent copiers
train_deep       deep-roberta's stages, by minitx.training
train_induction  tiny-induction, by the project's own gradients
"""
