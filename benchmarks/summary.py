"""From raw seconds to ratios, tables and a figure: python -m benchmarks.summary benchmarks/results/DATE.json

A ratio is taken within a round, where both systems met the same machine; told are the median over all rounds of all
sets, and the quartiles. Nothing is computed from two runs.
"""
import json
import sys
from pathlib import Path

import numpy as np

from analysis import draw, results

from . import corpus, peers, rounds
from .cases import CASES, WANTED

MB = 1e6
PAGE = """# Speed and memory, {date}

{line}; two threads unless said otherwise. minitx at commit {commit}; {versions}.
Kernels of NumPy's BLAS: {kernels}, no environment variable pins them ({speed} in this run).
torch takes its AVX2 path on AMD processors and its AVX-512 path on Intel's: **a factor over the reference library
measured on AMD is not the factor on Intel.**

Every system runs in a process of its own, all in turn in each round, in a changing order, in {sets} of fresh
processes{quick}. Median and quartiles over rounds; ratios are taken within rounds, and above 1 they are in favour of
minitx. Random weights, the same for all; first outputs were compared before anything was timed (at most {agree} of
the largest entry apart). Without logits, for all, where the task does not name them.

"Reference library": Hugging Face transformers on PyTorch; `transformers` with its fused attention in inference mode,
`transformers-eager` with plain attention, all outputs, and hooks on queries, keys and values. `transformer-lens` is
`run_with_cache`: for `internals` with exactly those points named, for which it computes logits too; for
`internals_no_head` its head is emptied from outside. `onnxruntime` is the graph as exported, `-fused` with
norms, GELU and, where its tool finds it, attention fused: what counts is the faster of the two. `-mapped` starts as
fast as it can be made to, with nothing optimised or packed, and computes more slowly afterwards.

## What was wanted

{wanted}
## All cases

{tasks}
{cases}
## Documents per second

{corpus}
## Memory

Private: anonymous pages of a fresh process; a mapped file's clean pages belong to the page cache. Peak: resident.

{memory}
## Size on disk

{sizes}"""


def joined(sets, what="seconds"):
    """{peer: [rounds of all sets …]} of one case."""
    found = {}
    for told in sets.values():
        for peer, values in told[what].items():
            found.setdefault(peer, []).extend(values)
    return found


def quartiles(values):
    """Median, first and third quartile."""
    return tuple(float(x) for x in np.quantile(values, (0.5, 0.25, 0.75)))


def ratios(sets, over, under, factor=1.0):
    """factor * seconds(over) / seconds(under) of each round in which both took part."""
    pairs = [pair for told in sets.values() if over in told["seconds"] and under in told["seconds"]
             for pair in zip(told["seconds"][over], told["seconds"][under])]
    return [factor * a / b for a, b in pairs]


def fastest(sets, candidates):
    """The candidate with the least median; None if none took part."""
    seconds = joined(sets)
    there = [peer for peer in candidates if seconds.get(peer)]
    return min(there, key=lambda peer: np.median(seconds[peer]), default=None)


def reached(wanted, run):
    """(quartiles of what a wanted number came to, who was the other system), or None where it was not measured."""
    sets = run["cases"].get(wanted.case, {})
    if wanted.unit == "s":
        values = joined(sets).get(wanted.under)
    elif wanted.unit == "MB":
        values = [private / MB for _, private in joined(sets, "memory").get(wanted.under, ()) if private is not None]
    else:
        values = ratios(sets, fastest(sets, wanted.over), wanted.under, wanted.factor)
    return (quartiles(values), fastest(sets, wanted.over)) if values else None


def verdict(wanted, value):
    """'aim', 'yes' or 'no': whether the median reaches the aim, what must be, or neither."""
    sign = -1 if wanted.less else 1
    lines = ("aim", wanted.aim), ("yes", wanted.must)
    return next((word for word, line in lines if sign * value >= sign * line), "no")


def number(value):
    """Three significant digits."""
    return results.words(float(value), 3)


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
    rows = []
    for wanted in WANTED:
        found, unit = reached(wanted, run), f" {wanted.unit}" if len(wanted.unit) > 1 else wanted.unit
        limit = ("≤ " if wanted.less else "≥ ") + number(wanted.must) + unit
        told = ("not measured", "–") if found is None else (spread(found[0], unit=unit), verdict(wanted, found[0][0]))
        rows.append([wanted.what + (f" ({found[1].split('/')[0]})" if found and found[1] and
                                    "onnxruntime" in found[1] else ""), told[0], limit, number(wanted.aim), told[1]])
    return table(["case", "measured", "must reach", "aim", "reached"], rows)


def base(case, seconds):
    """{peer: the peer of minitx that does the same, or else the first}."""
    return {peer: same if (same := f"minitx/{peer.split('/')[1]}") in seconds else next(iter(seconds))
            for peer in seconds}


def case_rows(case, sets):
    """Rows of one case: peer, milliseconds, ratio to minitx doing the same."""
    seconds = joined(sets)
    against = base(case, seconds)
    for peer, values in seconds.items():
        alone = case.apart or peer == against[peer]
        ratio = "" if alone else spread(quartiles(ratios(sets, peer, against[peer])), unit="×")
        yield [peer, spread(quartiles(values), 1000, " ms"), ratio]


def cases_text(run):
    """A table for each case, with what got lost on the way and how busy the machine was while everybody waited."""
    parts = []
    for case in CASES.values():
        if case.apart or not (sets := run["cases"].get(case.name)):
            continue
        told = list(sets.values())
        counts = sorted({len(values) for one in told for values in one["seconds"].values()})
        notes = [f"{len(sets)} sets of {', '.join(map(str, counts))} rounds"]
        if distances := [one["distance"] for one in told if one["distance"] is not None]:
            notes.append(f"outputs agree within {max(distances):.0e}")
        if cores := [one["busy"] for one in told if one["busy"] is not None]:
            notes.append(f"cores busy while all waited: {max(cores):.2f}")
        notes += sorted({f"left out: {peer}: {why}" for one in told for peer, why in one["lost"].items()})
        parts.append(f"### {case.what}\n\n`{case.name}`: {'; '.join(notes)}.\n\n"
                     + table(["peer", "median (quartiles)", "over minitx"], case_rows(case, sets)))
    return "\n".join(parts)


def memory_table(run):
    """Peak and private memory of every case of fresh processes, medians."""
    rows = []
    for case in (case for case in CASES.values() if case.fresh and not case.apart):
        for peer, values in joined(run["cases"].get(case.name, {}), "memory").items():
            if all(None not in pair for pair in values) and values:
                peak, private = np.median(values, axis=0) / MB
                rows.append([case.what, peer, number(peak), number(private)])
    return table(["case", "peer", "peak, MB", "private, MB"], rows)


def tasks():
    """What each task gives, from its docstring; that of the first system that has it."""
    found = {}
    for name, peer in peers.PEERS.items():
        for task, method in vars(peer).items():
            if not task.startswith("_") and task != "seen" and callable(method) and method.__doc__:
                found.setdefault(task, method.__doc__.splitlines()[0])
    return table(["task", "what it gives"], [[f"`{task}`", what] for task, what in found.items()])


def speed(run):
    """GFLOP/s of the products and GB/s of the reading, as far as they were measured; for the head of the page."""
    m, n, k = peers.PRODUCT
    amounts = {"numpy/product": (2 * m * n * k * peers.PRODUCTS / 1e9, "GFLOP/s"),
               "numpy/read": (peers.READ / 1e9, "GB/s")}
    found = {peer: [s for sets in run["cases"].values() for s in joined(sets).get(peer, ())] for peer in amounts}
    return ", ".join(f"{number(amounts[peer][0] / np.median(values))} {amounts[peer][1]}"
                     for peer, values in found.items() if values) or "not measured"


def markdown(run, date):
    """The page of one run."""
    told = run["settings"]
    named = [f"{name} {version or 'not installed'}" for name, version in told["versions"].items()]
    sizes = [[name, number(size / MB) if size else "not installed"] for name, size in run["installed"].items()]
    return PAGE.format(
        date=date, line=told["machine"]["line"], kernels=told["machine"]["kernels"] or "unknown", speed=speed(run),
        commit=told["commit"] or "unknown", versions=", ".join(named), agree=rounds.AGREE,
        sets=f"up to {told['sets']} sets" if told["sets"] > 1 else "one set", quick=" (a quick run)" * told["quick"],
        wanted=wanted_table(run), tasks=tasks(), cases=cases_text(run), corpus=corpus.text(run, table),
        memory=memory_table(run), sizes=table(["installed", "MB"], sizes))


def figure(run):
    """The wanted ratios with quartiles, what must be reached and the aim, each over what must be."""
    rows = [(wanted, reached(wanted, run)[0]) for wanted in WANTED if reached(wanted, run)]
    with draw.style():
        fig = draw.figure(8, 1 + 0.27 * len(rows))
        ax = fig.add_subplot()
        for y, (wanted, three) in enumerate(rows):
            middle, low, high = sorted_scores(wanted, three)
            ax.plot([low, high], [y, y], color=draw.BLUE, lw=3, solid_capstyle="butt")
            ax.plot(middle, y, "o", color=draw.BLUE if middle >= 1 else draw.VERMILION, ms=5)
            ax.plot(sorted_scores(wanted, (wanted.aim,) * 3)[0], y, "|", color=draw.GREY, ms=9)
            ax.annotate(f"{number(three[0])} {wanted.unit}", (1.01, y), xycoords=("axes fraction", "data"), va="center",
                        fontsize=8)
        ax.axvline(1, color=draw.GREY, lw=0.8)
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.set_xticks([2.0 ** k for k in range(-5, 9) if low <= 2.0 ** k <= high])
        ax.xaxis.set_major_formatter(lambda x, _: number(x))
        ax.minorticks_off()
        ax.set(xlabel="measured, over what must be reached (grey: the aim)", ylim=(len(rows) - 0.4, -0.6))
        ax.set_yticks(range(len(rows)), [wanted.what for wanted, _ in rows])
        return draw.svg(fig)


def sorted_scores(wanted, three):
    """Median, low and high of a number over what must be reached; the other way round where less is better."""
    middle, low, high = (wanted.must / x if wanted.less else x / wanted.must for x in three)
    return middle, min(low, high), max(low, high)


def brief(case, found):
    """Lines for the terminal while a run goes on."""
    yield from (" ".join(cell for cell in row if cell) for row in case_rows(case, {"0": found}))
    yield from (f"left out: {peer}: {why}" for peer, why in found["lost"].items())


def write(path):
    """DATE.md and DATE.svg beside DATE.json."""
    run = json.loads(Path(path).read_text(encoding="utf-8"))
    results.write(path.with_suffix(".md"), markdown(run, path.stem))
    results.write(path.with_suffix(".svg"), figure(run))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
