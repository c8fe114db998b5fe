"""From raw seconds to ratios, tables and a figure.

    python -m benchmarks.summary benchmarks/results/DATE-KIND.json

A ratio is computed within a round, in which both systems met the same conditions. The page gives
the median and the quartiles over all rounds of all sets. Nothing is computed from two runs.
"""

import json
import sys
from pathlib import Path

import numpy as np

from minitx.analysis.contract import wording
from minitx.analysis.drawing import draw
from minitx.analysis.machine import files

from . import corpus, peers, rounds
from .cases import CASES, PRODUCTS, WANTED

MB = 1e6
PAGE = """# Speed and memory, {date}

{line}; two threads unless said otherwise. minitx at commit {commit}; {versions}.
Kernels of NumPy's BLAS: {kernels}, no environment variable pins them ({speed} in this run).
torch takes its AVX2 path on AMD processors and its AVX-512 path on Intel's: **a factor over the \
reference library
measured on AMD is not the factor on Intel.**

Every system runs in a process of its own, all in turn in each round, in a changing order, in \
{sets} of fresh
processes{quick}. Median and quartiles over rounds; ratios are taken within rounds, and above 1 \
they are in favour of
minitx. Random weights, the same for all; first outputs were compared before anything was timed \
(at most {agree} of
the largest entry apart). Without logits, for all, where the task does not name them.

"Reference library": Hugging Face transformers on PyTorch; `transformers` with its fused \
attention in inference mode,
`transformers-eager` with plain attention, all outputs, and hooks on queries, keys and values. \
`transformer-lens` is
`run_with_cache`: for `internals` with exactly those points named, for which it computes logits \
too; for
`internals_no_head` its head is emptied from outside. `onnxruntime` is the graph as exported, \
`-fused` with
norms, GELU and, where its tool finds it, attention fused: what counts is the faster of the two. \
`-mapped` starts as
fast as it can be made to, with nothing optimised or packed, and computes more slowly afterwards.

## What was wanted

{wanted}
## How much of a pass is NumPy's products

The bare products of a pass with the same weights, over the whole pass; what is left of it is all \
that could be gained
without another library for products.

{shares}
## All cases

{tasks}
{cases}
## Documents per second

{corpus}
## Memory

Private: anonymous pages of a fresh process; a mapped file's clean pages belong to the page \
cache. Peak: resident.

{memory}
## Size on disk

{sizes}"""


def joined(sets, what="seconds"):
    """{peer: [rounds of all sets …]} of one case."""
    values = {}
    for record in sets.values():
        for peer, numbers in record[what].items():
            values.setdefault(peer, []).extend(numbers)
    return values


def quartiles(values):
    """Median, first and third quartile."""
    return tuple(float(x) for x in np.quantile(values, (0.5, 0.25, 0.75)))


def ratios(sets, over, under, factor=1.0):
    """factor * seconds(over) / seconds(under) of each round in which both took part."""
    pairs = []
    for record in sets.values():
        seconds = record["seconds"]
        if over in seconds and under in seconds:
            pairs += zip(seconds[over], seconds[under])
    return [factor * a / b for a, b in pairs]


def fastest(sets, candidates):
    """The candidate with the least median; None if none took part."""
    seconds = joined(sets)
    present = [peer for peer in candidates if seconds.get(peer)]
    return min(present, key=lambda peer: np.median(seconds[peer]), default=None)


def reached(wanted, run):
    """Quartiles of a wanted number and the other system; None where it was not measured."""
    sets = run["cases"].get(wanted.case, {})
    other = fastest(sets, wanted.over)
    if wanted.unit == "s":
        values = joined(sets).get(wanted.under)
    elif wanted.unit == "MB":
        pairs = joined(sets, "memory").get(wanted.under, ())
        values = [private / MB for _, private in pairs if private is not None]
    else:
        values = ratios(sets, other, wanted.under, wanted.factor)
    return (quartiles(values), other) if values else None


def verdict(wanted, value):
    """'aim', 'yes' or 'no': the median reaches the aim, the required value, or neither."""
    sign = -1 if wanted.less else 1
    lines = ("aim", wanted.aim), ("yes", wanted.must)
    return next((word for word, line in lines if sign * value >= sign * line), "no")


def number(value):
    """Three significant digits."""
    return wording.words(float(value), 3)


def spread(three, scale=1.0, unit=""):
    """'median (first – third quartile)'."""
    middle, low, high = (number(x * scale) for x in three)
    return f"{middle}{unit} ({low}–{high})"


def table(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def wanted_table(run):
    """Every wanted number beside what was measured."""
    rows = [wanted_row(wanted, reached(wanted, run)) for wanted in WANTED]
    return table(["case", "measured", "must reach", "aim", "reached"], rows)


def wanted_row(wanted, result):
    """The cells of one wanted number; result: from `reached`."""
    unit = f" {wanted.unit}" if len(wanted.unit) > 1 else wanted.unit
    limit = ("≤ " if wanted.less else "≥ ") + number(wanted.must) + unit
    what = wanted.what
    measured, word = "not measured", "–"
    if result:
        three, other = result
        measured, word = spread(three, unit=unit), verdict(wanted, three[0])
        if other and "onnxruntime" in other:  # one of several: name it
            what += f" ({other.split('/')[0]})"
    return [what, measured, limit, number(wanted.aim), word]


def base(case, seconds):
    """{peer: the peer of minitx that does the same, or else the first}."""
    first = next(iter(seconds), None)
    bases = {}
    for peer in seconds:
        same = f"minitx/{peer.split('/')[1]}"
        bases[peer] = same if same in seconds else first
    return bases


def case_rows(case, sets):
    """Rows of one case: peer, milliseconds, ratio to minitx on the same task."""
    seconds = joined(sets)
    against = base(case, seconds)
    for peer, values in seconds.items():
        alone = case.apart or peer == against[peer]
        ratio = "" if alone else spread(quartiles(ratios(sets, peer, against[peer])), unit="×")
        yield [peer, spread(quartiles(values), 1000, " ms"), ratio]


def share_of_products(run):
    """{case: quartiles of NumPy's bare products over minitx's whole pass}, where both were run."""
    by_case = {}
    for name, sets in run["cases"].items():
        values = ratios(sets, PRODUCTS, "minitx/nothing")
        if values:
            by_case[name] = quartiles(values)
    return by_case


def shares_table(run):
    """A row for each size."""
    rows = [[CASES[name].what, spread(three)] for name, three in share_of_products(run).items()]
    return table(["case", "share (quartiles)"], rows)


def cases_text(run):
    """A section with a table for each case that was measured."""
    head = ["peer", "median (quartiles)", "over minitx"]
    parts = []
    for case in CASES.values():
        sets = run["cases"].get(case.name)
        if sets and not case.apart:
            notes = "; ".join(case_notes(sets))
            rows = table(head, case_rows(case, sets))
            parts.append(f"### {case.what}\n\n`{case.name}`: {notes}.\n\n{rows}")
    return "\n".join(parts)


def case_notes(sets):
    """Rounds, agreement of outputs, how busy the machine was by itself, and what was left out."""
    records = list(sets.values())
    counts = sorted({len(values) for record in records for values in record["seconds"].values()})
    notes = [f"{len(sets)} sets of {', '.join(map(str, counts))} rounds"]
    distances = [record["distance"] for record in records if record["distance"] is not None]
    if distances:
        notes.append(f"outputs agree within {max(distances):.0e}")
    cores = [record["busy"] for record in records if record["busy"] is not None]
    if cores:
        notes.append(f"cores busy while all waited: {max(cores):.2f}")
    lost = {item for record in records for item in record["lost"].items()}
    return notes + sorted(f"left out: {peer}: {why}" for peer, why in lost)


def memory_table(run):
    """Peak and private memory of every case of fresh processes, medians."""
    rows = []
    for case in (case for case in CASES.values() if case.fresh and not case.apart):
        memory = joined(run["cases"].get(case.name, {}), "memory")
        for peer, pairs in memory.items():
            if pairs and all(None not in pair for pair in pairs):
                peak, private = np.median(pairs, axis=0) / MB
                rows.append([case.what, peer, number(peak), number(private)])
    return table(["case", "peer", "peak, MB", "private, MB"], rows)


def tasks():
    """What each task gives: the first line of its docstring in the first system that has it."""
    lines = {}
    for peer in peers.PEERS.values():
        for task, method in vars(peer).items():
            public = not task.startswith("_") and task != "seen"
            if public and callable(method) and method.__doc__:
                lines.setdefault(task, method.__doc__.splitlines()[0])
    return table(["task", "what it gives"], [[f"`{task}`", line] for task, line in lines.items()])


def speed(run):
    """GFLOP/s of the products and GB/s of the reading, for the head of the page."""
    m, n, k = peers.PRODUCT
    rates = []
    for peer, amount, unit in (
        ("numpy/product", 2 * m * n * k * peers.PRODUCTS / 1e9, "GFLOP/s"),
        ("numpy/read_all", peers.READ / 1e9, "GB/s"),
    ):
        seconds = [x for sets in run["cases"].values() for x in joined(sets).get(peer, ())]
        if seconds:
            rates.append(f"{number(amount / np.median(seconds))} {unit}")
    return ", ".join(rates) or "not measured"


def markdown(run, date):
    """The page of one run."""
    n_sets = max(map(len, run["cases"].values()), default=0)  # fewer than wanted, if it was ended
    facts = settings_texts(run["settings"] | {"sets": n_sets})
    facts |= {"speed": speed(run), "agree": rounds.AGREE}
    return PAGE.format(date=date[:10], **facts, **sections(run))


def settings_texts(settings):
    """What the page says about the settings of a run."""
    versions = settings["versions"].items()
    texts = {"line": settings["machine"]["line"], "commit": settings["commit"] or "unknown"}
    texts["kernels"] = settings["machine"]["kernels"] or "unknown"
    texts["versions"] = ", ".join(f"{name} {x or 'not installed'}" for name, x in versions)
    texts["sets"] = f"up to {settings['sets']} sets" if settings["sets"] > 1 else "one set"
    texts["quick"] = " (a quick run)" if settings["quick"] else ""
    return texts


def sections(run):
    """The tables of the page."""
    parts = {"wanted": wanted_table(run), "shares": shares_table(run)}
    parts |= {"tasks": tasks(), "cases": cases_text(run)}
    parts["corpus"] = corpus.text(run, table)
    parts["memory"] = memory_table(run)
    parts["sizes"] = sizes_table(run)
    return parts


def sizes_table(run):
    """Megabytes on disk of every system."""
    rows = []
    for name, size in run["installed"].items():
        rows.append([name, number(size / MB) if size else "not installed"])
    return table(["installed", "MB"], rows)


def figure(run):
    """The wanted numbers with quartiles and aim, each divided by the required value."""
    measured = [(wanted, reached(wanted, run)) for wanted in WANTED]
    rows = [(wanted, result[0]) for wanted, result in measured if result]
    with draw.style():
        fig = draw.figure(8, 1 + 0.27 * len(rows))
        ax = fig.add_subplot()
        for y, (wanted, three) in enumerate(rows):
            plot_row(ax, y, wanted, three)
        ax.axvline(1, color=draw.GREY, lw=0.8)
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.set_xticks([2.0**k for k in range(-5, 9) if low <= 2.0**k <= high])
        ax.xaxis.set_major_formatter(lambda x, _: number(x))
        ax.minorticks_off()
        label = "measured, over what must be reached (grey: the aim)"
        ax.set(xlabel=label, ylim=(len(rows) - 0.4, -0.6))
        ax.set_yticks(range(len(rows)), [wanted.what for wanted, _ in rows])
        return draw.svg(fig)


def plot_row(ax, y, wanted, three):
    """One wanted number: its quartiles, its aim and its value."""
    middle, low, high = sorted_scores(wanted, three)
    aim = sorted_scores(wanted, (wanted.aim,) * 3)[0]
    colour = draw.BLUE if middle >= 1 else draw.VERMILION
    ax.plot([low, high], [y, y], color=draw.BLUE, lw=3, solid_capstyle="butt")
    ax.plot(middle, y, "o", color=colour, ms=5)
    ax.plot(aim, y, "|", color=draw.GREY, ms=9)
    text, place = f"{number(three[0])} {wanted.unit}", ("axes fraction", "data")
    ax.annotate(text, (1.01, y), xycoords=place, va="center", fontsize=8)


def sorted_scores(wanted, three):
    """Median, low and high of a number over its required value; inverted where less is better."""
    middle, low, high = (wanted.must / x if wanted.less else x / wanted.must for x in three)
    return middle, min(low, high), max(low, high)


def brief(case, record):
    """Lines for the terminal while a run goes on."""
    for row in case_rows(case, {"0": record}):
        yield " ".join(cell for cell in row if cell)
    for peer, why in record["lost"].items():
        yield f"left out: {peer}: {why}"


def write(path):
    """Write the page and the figure beside the JSON file of a run."""
    run = json.loads(Path(path).read_text(encoding="utf-8"))
    files.write(path.with_suffix(".md"), markdown(run, path.stem))
    files.write(path.with_suffix(".svg"), figure(run))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
