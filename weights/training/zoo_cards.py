"""Measures models of the zoo, and writes their cards from the numbers.

    python -m minitx.weights.training.zoo_cards NAME --runs FOLDER --wikitext FILE --to FOLDER

--runs: where train_zoo.py wrote; --wikitext: WikiText-2's test part, raw; --to: weights/zoo. The
numbers go to measured.json in runs/NAME, and are not measured again where that file is newer than
the weights. Files, numbers and card go to --to/NAME, a row for every model that is there into
--to/README.md.
"""

import argparse
import hashlib
import math
import shutil
from pathlib import Path

import numpy as np
from safetensors import safe_open

from minitx.learning.saved import RECORD, as_json, write
from minitx.loading.families import from_hf
from minitx.loading.files import read_json
from minitx.weights.training import zoo_measure as zoo
from minitx.weights.training.recipe import HELD_OUT
from minitx.weights.training.train_zoo import RECIPES

MARK, END = "<!-- zoo -->\n", "<!-- end -->"
FILES = "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"
NUMBERS = "measured.json"
SAMPLE, WIKITEXT = "`analysis/texts/sample.txt`", "WikiText-2, test"
LOSS_TOKENS, LENGTH_TOKENS = 131072, 65536  # of a text; those on which lengths are compared
KINDS = {
    "causal": "A tiny causal language model",
    "masked": "A tiny masked language model (it sees both sides)",
}
PLACES = {
    "learned": "a learned table, whose row is added to the word",
    "sinusoidal": "a table of sines and cosines that is not trained, added to the word",
    "rotary": "queries and keys rotated by their position (base 10,000, the whole head)",
    "buckets": "a learned bias on the scores for each bucket of distances (32, up to 128), one a "
    "head, shared by the layers",
    "alibi": "a bias on the scores that falls with the distance, slopes 1/4, 1/16, 1/64, 1/256",
    "disentangled": "terms of the scores that compare a query with the key of its distance, and a "
    "key with the query of it (DeBERTa), beside that of query and key",
    "disentangled-buckets": "the same terms as in [masked-disentangled]"
    "(../masked-disentangled/README.md), in which far distances share rows (DeBERTa v2, as v3 has "
    "it: 16 to either side, up to 128)",
    "none": "none",
}
STORED = {
    "causal-learned": "`GPT2LMHeadModel`.",
    "causal-sinusoidal": "`GPT2LMHeadModel`; the rows of `wpe` are sinusoids of the size that a "
    "fresh learned table has (amplitude 0.113), and were held fixed.",
    "causal-rotary": "`GPTNeoXForCausalLM` with attention and MLP one after the other, the output "
    "tied to the embedding and GPT-2's gelu; otherwise identical to `causal-learned`.",
    "causal-alibi": "`BloomForCausalLM`. BLOOM has a norm behind the embedding, which the other "
    "causal models have not; its scale began at 0.08, so that the stream begins as large.",
    "causal-none": "`GPT2LMHeadModel` whose `wpe` is 0 and was held at 0: the causal mask alone "
    "tells one place from another.",
    "masked-learned": "`RobertaForMaskedLM`.",
    "masked-sinusoidal": "`RobertaForMaskedLM`; the rows of its position table are sinusoids of "
    "the size that a fresh learned table has (amplitude 0.113), held fixed, as is its token type "
    "at 0.",
    "masked-rotary": "`ModernBertForMaskedLM`, every layer of which sees the whole input. "
    "ModernBERT's norms stand before each part and have no bias, its matrices neither, and its MLP "
    "is gated: the one masked model here that differs in more than how a place enters.",
    "masked-buckets": "`MPNetForMaskedLM` whose position table is 0 and was held at 0: the bias "
    "alone says where a token is.",
    "masked-disentangled": "`DebertaForMaskedLM`: rows for the distances from -64 to 63, a matrix "
    "for their keys and one for their queries in each layer, no bias of keys. Nothing is added to "
    "the words.",
    "masked-disentangled-buckets": "`DebertaV2ForMaskedLM`: 32 rows, normed, that each layer reads "
    "by its matrices for words. Nothing is added to the words.",
    "masked-none": "`RobertaForMaskedLM` whose position table is 0 and was held at 0: it cannot "
    "tell one order of the words from another. A control.",
}
ASKED = {
    "learned": "The table has 64 rows. `again`: longer inputs repeat them from the start; "
    "`fresh`: they read untrained rows of standard deviation 0.02, as added in training.",
    "sinusoidal": "The file has 64 rows; the rows beyond are the same sinusoids, computed further.",
    "buckets": "Distances of 128 and more share the last bucket; those from 64 on were never "
    "trained. The rows of the table beyond 64 are 0 as all others.",
    "none": "The rows of the table beyond 64 are 0 as all others.",
    "disentangled": "Distances of 64 and more read the last row of their side; that of keys to the "
    "right was never trained.",
    "disentangled-buckets": "Distances of 128 and more share the last row; those from 64 on were "
    "never trained.",
}


def measure(name, runs, texts):
    """The numbers of one model: a dictionary that JSON can hold."""
    place = name.partition("-")[2]
    model = zoo.Zoo(runs / name, place)
    ways = ("again", "fresh") if place == "learned" else ("again",)
    numbers = {}
    for title, path in texts.items():
        ids = model.encode(path.read_text(encoding="utf-8"))[:LOSS_TOKENS]
        model.lengthen(model.trained, "again")
        losses = model.losses(ids, model.trained)
        predicted = losses[~np.isnan(losses)]
        rows = {how: zoo.against_length(model, ids[:LENGTH_TOKENS], how) for how in ways}
        heads = zoo.sharp(model.looks(ids))
        numbers[title] = {"tokens": len(ids), "predicted": len(predicted), "heads": heads}
        numbers[title] |= {"loss": float(predicted.mean()), "length": as_numbers(rows)}
    return numbers


def as_numbers(rows):
    """{how: [[length, loss, difference, low, high]]} in Python's own floats."""
    return {how: [[n, *map(float, r)] for n, r in table.items()] for how, table in rows.items()}


def training_loss(run):
    """Mean loss of the last steps of a model's training."""
    return float(np.mean(read_json(run / RECORD)["losses"][-200:]))


PROGRAM = "minitx.weights.training.train_zoo"
TEMPLATE = """# zoo/{name}

{kind}, whose position mechanism is {place}. {stored}

One of a [zoo](../README.md) of models with the same text, tokenizer, sizes, steps, order of data
and seed. {layers} layers, width {width}, {heads} heads, {vocabulary:,} pieces, trained on
inputs of {trained} tokens; {weights:,} weights in float16 ({size:.2f} MiB).

| | |
|---|---|
| made by | `python -m {PROGRAM} {name} --text FOLDER --out FOLDER`, one core |
| seed | 0 |
| training text | that of [tiny-roberta](../../tiny-roberta/README.md); not the texts below |
| tokens trained on | {tokens:,}, in {steps:,} steps |
| training loss | {loss:.3f}, mean of the last 200 steps |
| licence | the weights and the tokenizer: CC0 1.0 |
| sha256 | `{sha256}` |

AdamW as for the other bundled models, learning rate 0.002, in the last stage decaying to 0. New
layers are copies of the first; then all outputs are scaled by a third. Matrices that write to the
stream were initialized at 0.2 of the usual size.

{stages}

## Measured

With minitx, in float32, from the file. Loss: nats per predicted token, the first
131,072 tokens of a text cut into consecutive windows of the trained length{rule}

{losses}

## Loss against length

The first {length_tokens:,} tokens of each text, cut into windows of each length. In brackets: the
increase of the loss, compared with {trained}, of the tokens predicted at both lengths, with
a 95 % interval (bootstrap over stretches of 1,024 tokens). {asked}

{lengths}

## Heads that look at one fixed offset

Mean attention from a token to the one at that offset, over 100 inputs of the sample (in brackets:
of WikiText-2), where it is above 0.3 and the offset is not 0.

{sharp}

## Limits

Made to compare position mechanisms on a laptop, in seconds, not for use as a language model. One
seed, short training, inputs of 64 tokens: differences between two models of the zoo may be chance
in training, which intervals over text do not include. The text is old, with the prejudices of its
books.
"""


def card(name, numbers, loss, folder):
    """The text of README.md."""
    kind, _, place = name.partition("-")
    plan, file = RECIPES[name].plan, folder / "model.safetensors"
    config = from_hf(read_json(folder / "config.json"))
    words = {"kind": KINDS[kind], "place": PLACES[place], "stored": STORED[name]}
    words |= {"rule": RULE[kind], "asked": ASKED.get(place, "Longer inputs need no new rows.")}
    tables = {"losses": losses(numbers), "lengths": lengths(numbers), "sharp": heads(numbers)}
    values = {"trained": config.n_ctx, "length_tokens": LENGTH_TOKENS, "loss": loss}
    values |= {"layers": config.n_layers, "width": config.d_model, "heads": config.n_heads}
    values |= {"vocabulary": config.n_vocab, "weights": n_weights(file)}
    values |= {"size": file.stat().st_size / 2**20, "stages": stages(plan)}
    values |= {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    values |= {"steps": sum(row.steps for row in plan)}
    values |= {"tokens": sum(row.steps * row.context * row.batch for row in plan)}
    return TEMPLATE.format(PROGRAM=PROGRAM, name=name, **words, **tables, **values)


def n_weights(file):
    """The number of weights in a file."""
    with safe_open(file, framework="np") as tensors:
        return sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())


def stages(plan):
    """A row for each stage."""
    rows = ["| layers | context | inputs per step | steps | rate |", "|---|---|---|---|---|"]
    before = plan[0].rate
    for steps, context, inputs, last, depth in plan:
        rate = f"{before:g}" if before == last else f"{before:g} → {last:g}"
        rows.append(f"| {depth} | {context} | {inputs} | {steps:,} | {rate} |")
        before = last
    return "\n".join(rows)


RULE = {
    "causal": ", so the first tokens of a window have little context.",
    "masked": ", 15 % of the tokens masked.",
}


def losses(numbers):
    """A row for each text."""
    rows = ["| text | tokens | predicted | loss |", "|---|---|---|---|"]
    for title, n in numbers.items():
        rows.append(f"| {title} | {n['tokens']:,} | {n['predicted']:,} | {n['loss']:.3f} |")
    return "\n".join(rows)


def lengths(numbers):
    """A row for each text and way of asking, a column for each length."""
    columns = [row[0] for row in next(iter(numbers.values()))["length"]["again"]]
    rows = ["| text | " + " | ".join(map(str, columns)) + " |", "|---" * (len(columns) + 1) + "|"]
    for title, n in numbers.items():
        for how, table in n["length"].items():
            named = f"{title}, `{how}`" if len(n["length"]) > 1 else title
            rows.append(f"| {named} | " + " | ".join(map(cell, table)) + " |")
    return "\n".join(rows)


def cell(row):
    """One length: its loss, and the difference with its interval."""
    _, loss, difference, low, high = row
    if difference == low == high == 0:
        return f"{loss:.3f}"
    return f"{loss:.3f} ({difference:+.3f}, {low:+.3f} to {high:+.3f})"


def heads(numbers):
    """A row for each head of the first text, with what it gives there in the second."""
    first, second = ({(h, o): a for h, o, a in n["heads"]} for n in numbers.values())
    if not first:
        return "No head."
    rows = ["| head | offset | attention |", "|---|---|---|"]
    for (head, offset), attention in first.items():
        again = f"{second[head, offset]:.2f}" if (head, offset) in second else "less"
        rows.append(f"| {head} | {offset:+d} | {attention:.2f} ({again}) |")
    return "\n".join(rows)


def table(to):
    """A row for every model that has been written."""
    rows = ["| model | sample | at 128 | at 256 | sharpest heads |", "|---" * 5 + "|"]
    for name in RECIPES:
        if (to / name / "README.md").exists():
            measured = read_json(to / name / NUMBERS)[SAMPLE]
            longer = [cell(row) for row in measured["length"]["again"][2:]]
            best = sorted(measured["heads"], key=lambda head: -head[2])[:4]
            sharpest = ", ".join(f"{head} {offset:+d} {a:.2f}" for head, offset, a in best)
            values = [f"{measured['loss']:.3f}", *longer, sharpest or "none"]
            rows.append(f"| [{name}]({name}/README.md) | " + " | ".join(values) + " |")
    return "\n".join(rows)


def put_table(path, rows):
    """Replace what stands between the two marks."""
    head, _, rest = path.read_text(encoding="utf-8").partition(MARK)
    tail = rest.partition(END)[2]
    path.write_text(f"{head}{MARK}{rows}\n{END}{tail}", encoding="utf-8")


def main():
    """Measure one model, copy its files and write its card."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", choices=RECIPES)
    for option in ("runs", "wikitext", "to"):
        parser.add_argument(f"--{option}", required=True, type=Path)
    given = parser.parse_args()
    run, out = given.runs / given.name, given.to / given.name
    kept = run / NUMBERS
    if not kept.exists() or kept.stat().st_mtime < (run / FILES[1]).stat().st_mtime:
        texts = {SAMPLE: HELD_OUT, WIKITEXT: given.wikitext}
        write(kept, as_json(measure(given.name, given.runs, texts)))
    measured = read_json(kept)
    numbers = {title: measured[title] for title in (SAMPLE, WIKITEXT)}
    out.mkdir(parents=True, exist_ok=True)
    for file in (*FILES, NUMBERS):
        shutil.copyfile(run / file, out / file)
    (out / "README.md").write_text(card(given.name, numbers, training_loss(run), run))
    put_table(given.to / "README.md", table(given.to))
    print(f"{given.name}: written to {out}")


if __name__ == "__main__":
    main()
