"""Perplexity by convention: the same losses give six numbers, so each has its name.

The mean is taken over all losses, over each document's perplexity, or over each token's; and the
base of the power of the nats is e, or 2, which mixes units. N documents, C conditions, n tokens of
a document.
"""

import numpy as np

CONVENTIONS = {  # name of the result -> what it is
    "perplexity": "e to the mean loss per token",
    "mean_perplexity": "mean over documents of e to each one's mean loss",
    "token_perplexity": "mean over tokens of e to each one's loss",
    "mixed_perplexity": "2 to the mean loss in nats",
    "mixed_mean_perplexity": "mean over documents of 2 to each one's mean loss in nats",
    "mixed_token_perplexity": "mean over tokens of 2 to each one's loss in nats",
}


def sums(costs):
    """What the conventions need of one document, from its losses [C n] in nats: [5 C].

    Rows: sum, number, e to the mean, sum of e to each, sum of 2 to each.
    """
    rows = []
    for x in costs:
        mean, powers = np.exp(x.mean()), (np.exp(x).sum(), np.exp2(x).sum())
        rows.append([x.sum(), len(x), mean, *powers])
    return np.transpose(rows)


def by_convention(sums):
    """{convention: perplexities [C]} from the sums of N documents [N 5 C]."""
    total, n, exp_mean, exp_sum, mixed_sum = sums.swapaxes(0, 1)
    loss = total.sum(axis=0) / n.sum(axis=0)
    result = {"perplexity": np.exp(loss)}
    result["mean_perplexity"] = exp_mean.mean(axis=0)
    result["token_perplexity"] = exp_sum.sum(axis=0) / n.sum(axis=0)
    result["mixed_perplexity"] = 2**loss
    result["mixed_mean_perplexity"] = np.exp2(total / n).mean(axis=0)
    result["mixed_token_perplexity"] = mixed_sum.sum(axis=0) / n.sum(axis=0)
    return result
