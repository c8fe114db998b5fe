"""How the bundled checkpoints are trained: programs of a checkout, which no wheel holds.

recipe           what most of them share: stages of a model, books, files
train            the BERTs, the GPT-2
train_deep       deep-roberta, whose layers are added and left out
train_zoo        one model for each way to tell positions; zoo_measure, zoo_cards
train_dates      tiny-bart, on dates
train_recurrent  the recurrent copiers
train_induction  tiny-induction, on repeated rows
train_stories    tiny-stories, on stories of a grammar
train_vit        tiny-vit, on pictures that it draws
train_history    a training with its snapshots, and measures of others
"""
