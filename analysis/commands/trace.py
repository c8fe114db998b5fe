"""`minitx trace`: every activation of one forward pass."""

import io
import time
from pathlib import Path

import numpy as np

import minitx
from minitx import weights
from minitx.circuits.measure import with_places
from minitx.heads import is_pooled, of_classes
from minitx.loading.labels import predicted
from minitx.points import key_of

from ..machine.files import writable_file, write
from ..machine.language import filled, translated
from . import flags, inputs, output


def declare(commands):
    """Its flags."""
    about = "list every activation of one forward pass"
    command = flags.command(commands, "trace", run, about, "MODEL", "TEXT")
    flags.of_second(command, of="TEXT, or with --source")
    flags.of_column(command)
    flags.of_split(command)
    about = "only these, joined by commas: q,k,pattern.L3 (all)"
    command.add_argument("--keep", metavar="POINTS", help=about)
    about = "what an encoder-decoder's encoder reads"
    command.add_argument("--source", metavar="TEXT", help=about)
    command.add_argument("--save", metavar="FILE.npz", help="write the recorded arrays")


def run(arguments):
    """minitx trace MODEL TEXT"""
    text = inputs.text_of(arguments.text, column=arguments.column)
    if arguments.save is not None:
        writable_file(arguments.save)
    model = minitx.load(weights.find(arguments.model))
    keep = arguments.keep and [key_of(name) for name in arguments.keep.split(",")]
    text, how, types, words = reading(arguments, model, text)
    estimate = minitx.cost(model, text, keep, source=how.get("source"))
    start = time.monotonic()
    trace = minitx.run(model, text, keep, **how)
    seconds = time.monotonic() - start
    if arguments.save is not None:  # first: whoever reads the table may stop before its end
        save(trace, Path(arguments.save), types)
    print(filled("{n} tokens: {pieces}", **pieces_of(model, trace.tokens)))
    if types is not None:
        print(filled("token types: {types}", types=" ".join(map(str, types[0]))))
    if trace.source is not None:
        source = pieces_of(model.encoder, trace.source)
        print(filled("{n} tokens of the source: {pieces}", **source))
    print()
    print_points(trace)
    print_classes(model, trace, words)
    sizes = {"size": trace.nbytes / 1e6, "estimate": estimate / 1e6}
    print("\n" + filled(RECORDED, seconds=seconds, **sizes))
    if arguments.save is not None:
        print(output.written(arguments.save))


def reading(arguments, model, text):
    """What is run: a text or ids, the keywords of `run`, token types of a pair, words or None."""
    source = arguments.source
    if source is not None:
        source = inputs.text_of(source, "--source")
    inputs.point_out_separator(model, text)
    if arguments.split:
        if arguments.second is not None or model.encoder is not None:
            raise ValueError("--split is for a single text, and for a model of a single stack")
        words = text.split()
        tokens, valid, types = model.encode([words], is_split_into_words=True)
        return tokens, {"valid": valid, "types": types}, None, words
    pair = [inputs.with_second(source or text, arguments.second)]
    text, source = (text, pair) if source else (pair, source)
    types = model.encode(text).types if arguments.second and not source else None
    return text, {"source": source}, types, None


RECORDED = "{size:.3f} MB recorded in {seconds:.3f} s (estimated beforehand: {estimate:.3f} MB)"


def pieces_of(model, tokens):
    """How many tokens [1 T] there are, and their pieces."""
    return {"n": tokens.size, "pieces": " | ".join(model.tokenizer.pieces(tokens[0]))}


TITLES = "point", "axes", "shape", "layers", "mean |x|", "meaning"


def print_points(trace):
    """A line for each recorded point: its axes, shape, layers, size, mean and meaning."""
    point, axes, shape, layers, mean, meaning = map(translated, TITLES)
    print(f"{point:16} {axes:9} {shape:18} {layers:>6} {'kB':>9} {mean:>10}  {meaning}")
    for name, (axes, meaning, *_) in minitx.POINTS.items():
        arrays = [x for key, x in trace.items() if name in (key, key[0])]
        if not arrays:
            continue
        shape = " ".join(map(str, arrays[0].shape))
        size = sum(x.nbytes for x in arrays) / 1e3
        mean = np.mean([np.abs(x[np.isfinite(x)]).mean() for x in arrays])
        numbers = f"{len(arrays):6} {size:9.1f} {mean:10.4g}"
        _, encoder, of_encoder = meaning.rpartition("encoder: ")
        what = translated(encoder) + translated(of_encoder)
        print(f"{name:16} {axes:9} {shape:18} {numbers}  {what}")


MOST = 20  # classes that are listed


def print_classes(model, trace, words=None):
    """Classes and their logits: of a text the largest first, of an answer the likeliest tokens.

    Of each token the class with the largest logit; of each word that of its first token.
    """
    if "logits" not in trace or not of_classes(model.config.task_head):
        return
    y = with_places(trace["logits"])[0]  # [T C]
    names = predicted(model, range(y.shape[1]))
    if is_pooled(model.config.task_head):
        order = np.argsort(-y[0], kind="stable")[:MOST]
        cells = [(0, c, names[c]) for c in order]
    else:
        labels = model.tokenizer.pieces(trace.tokens[0])
        best = [*enumerate(y.argmax(axis=1))]
        if words:
            numbers = model.tokenizer.word_numbers(words).tolist()
            labels = [words[number] for number in numbers]
            best = [(t, c) for t, c in best if numbers[t] >= 0 and numbers.index(numbers[t]) == t]
        if model.config.task_head == "question":
            best = [(t, c) for c, t in enumerate(y.argmax(axis=0))]
        cells = [(t, c, f"{t:4} {labels[t]}: {names[c]}") for t, c in best]
    print()
    for t, c, name in cells:
        print(f"{y[t, c]:10.4f}  {name}")


def save(trace, path, types=None):
    """Write tokens, valid, source, a pair's types and the recorded arrays, named as for --keep."""
    named = {} if trace.source is None else {"source": trace.source}
    if types is not None:
        named["types"] = types
    for key, x in trace.items():
        name = key if isinstance(key, str) else f"{key[0]}.L{key[1]}"
        named[name] = x
    arrays = io.BytesIO()
    np.savez(arrays, tokens=trace.tokens, valid=trace.valid, **named)
    write(path, arrays.getvalue())
