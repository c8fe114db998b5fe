"""The measured tables of docs/pages/results.md, from reports of the models that they compare.

    minitx report deep-roberta --out report
    python tests/tools/tables.py report [FOLDER ...]          writes the columns of these models
    python tests/tools/tables.py --check report [FOLDER ...]  compares them; status 1 if one is off

A table stands between `<!-- measured: name -->` and `<!-- end -->`. BLAS kernels round otherwise,
so a number may be off by one unit of its last printed digit.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

import documents
import numpy as np

DOCUMENT = Path(__file__).parents[2] / "docs/pages/results.md"
DEFAULT = "deep-roberta"  # the model that `make report` takes
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


class Report(NamedTuple):
    """What one report of a model measured."""

    model: str
    claims: list
    numbers: dict  # {"experiment.name": {"value": …, "null": …}}, two lists from the arrays

    def __getitem__(self, name):
        """The value of "experiment.name", or its null with " null" behind; NaN where it has none.

        A digit behind it is a place in a list: "dial.layer_slope 0".
        """
        stem, *more = name.split()
        number = self.numbers.get(stem, {})
        value = number.get("null" if "null" in more else "value", math.nan)
        places = [int(word) for word in more if word.isdigit()]
        return value[places[0]] if places and isinstance(value, list) else value

    def interval(self, name, *places):
        """The two ends of NAME_interval."""
        ends = self[f"{name}_interval"]
        for place in places:
            ends = ends[place]
        return ends


def report_in(folder):
    """The Report in a folder that `minitx report` wrote."""
    record = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    numbers = {}
    for experiment, entry in record["experiments"].items():
        for name, number in (entry["numbers"] or {}).items():
            numbers[f"{experiment}.{name}"] = number
    for experiment in ("scale-positions", "inject-positions"):
        with np.load(Path(folder) / f"{experiment}.npz") as arrays:
            for name in ("losses", "losses_null"):
                numbers[f"{experiment}.{name}"] = {"value": arrays[name].tolist()}
    return Report(record["model"], record["claims"], numbers)


# --- cells


def plain(x, digits=2):
    """A number as it is printed; a dash for none."""
    if x is None or (isinstance(x, float) and math.isnan(x)):
        return "–"
    if isinstance(x, int):
        return f"{x:,}"
    text = f"{x:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def value(name, digits=2):
    return lambda r: plain(r[name], digits)


def between(name, digits=2):
    """A cell with a number and its interval."""

    def cell(r):
        low, high = r.interval(name)
        return f"{plain(r[name], digits)} ({plain(low, digits)} to {plain(high, digits)})"

    return cell


def beside(name, digits=2):
    """A cell with a number and its null."""
    return lambda r: f"{plain(r[name], digits)} ({plain(r[f'{name} null'], digits)})"


def listed(name, digits=2):
    return lambda r: " ".join(plain(x, digits) for x in r[name])


def shifted(r):
    """Heads × shifts of layer 0 that follow."""
    return f"{r['dial.layer_n_exact 0']} of {r['dial.layer_n_cells 0']}"


def shifted_behind(r):
    """The same behind layer 0."""
    exact, cells = r["dial.layer_n_exact"], r["dial.layer_n_cells"]
    return f"{sum(exact[1:])} of {sum(cells[1:])}"


def rates(r):
    """Perplexity with positions and at zero, with the intervals of both."""
    texts = []
    for i in (0, 1):
        low, high = r.interval("remove-positions.perplexity", i)
        texts.append(f"{r[f'remove-positions.perplexity {i}']:.3g} ({low:.3g} to {high:.3g})")
    return "; ".join(texts)


def percent(*names):
    return lambda r: ", ".join(f"{100 * r[name]:.1f}%" for name in names)


def claim(beginning, has_null=False):
    """A cell with what the claim whose text begins so gave."""

    def cell(r):
        row = next(row for row in r.claims if row["what"].startswith(beginning))
        return plain(row["ours"]) + (f" ({plain(row['null'])})" if has_null else "")

    return cell


TABLES = {
    "causes": {
        "`dial`: heads × shifts that follow the moved positions exactly, layer 0": shifted,
        "… slope, -1 if attention follows": value("dial.layer_slope 0"),
        "… deeper layers": shifted_behind,
        "`chain`: pairs in which shifting a head's attention halves a deeper head's": (
            lambda r: f"{plain(r['chain.n_lost'])} of {plain(r['chain.n_pairs'])}"
        ),
        "… in which a tenth or more moves along (null: random sides)": beside("chain.n_moved"),
        "`notch`: heads that read positions, lose half without a band (null: only evenly)": (
            lambda r: (
                f"{plain(r['notch.n_lost'])} of {plain(r['notch.n_need'])} "
                f"({plain(r['notch.n_lost null'])})"
            )
        ),
        "… kept by the best band alone": value("notch.alone"),
    },
    "paper": {
        "directions in the layer with fewest": claim("directions of the stream"),
        "after the last layer (before layer 0)": claim("directions that follow", has_null=True),
        "keep their direction, words shuffled (chance)": claim(
            "heads with a direction that keep half", has_null=True
        ),
        "… on positions alone": claim("heads with a direction behind the first layer"),
        "correlation of columns, words alone (on the text)": claim(
            "those heads: columns'", has_null=True
        ),
        "highest at the offset on words alone (chance)": claim(
            "those heads: mean score", has_null=True
        ),
    },
    "sizes": {
        "`scale-positions`: loss": listed("scale-positions.losses"),
        "… rows shuffled": listed("scale-positions.losses_null"),
        "… attention of heads with a direction to their offset": listed("scale-positions.sharp"),
        "`inject-positions`: loss": listed("inject-positions.losses"),
        "… with rows shuffled": listed("inject-positions.losses_null"),
        "… attention of heads with a direction": listed("inject-positions.sharp"),
        "… attention with rows shuffled": listed("inject-positions.sharp null"),
    },
    "without": {
        "`remove-positions`: cosine of final features with and without positions": between(
            "remove-positions.cosine", 3
        ),
        "… null: two tokens of one document": value("remove-positions.cosine null", 3),
        "… perplexity, e to the mean loss per token, positions on; at zero": rates,
        "`mask-positions`: perplexity on; off; off, the best mask": listed(
            "mask-positions.perplexity", 1
        ),
        "… linear mask as the library read it in 2023: distance of a token's loss from that of "
        "seeing itself alone, at most (without a mask)": beside("mask-positions.hypothesis"),
        "… gain of the mask with the least loss on other documents, nats": between(
            "mask-positions.gain"
        ),
        "… of it due to the order of the keys, nats": between("mask-positions.order"),
        "`probe`: R² of a token's position, best layer, positions on": between("probe.r2_on", 3),
        "… off": between("probe.r2_off", 3),
        "… off, causal mask alone": between("probe.r2_causal", 3),
        "… random weights, positions on": value("probe.r2_random", 3),
        "… random weights, positions off": value("probe.r2_random_off", 3),
        "`norms`: R² of the position of a held-out row from its norm": value(
            "norms.r2_norm_rows", 3
        ),
        "… from its direction": value("norms.r2_direction_rows", 3),
        "`shift`: largest change of the loss, all positions moved, nats": between("shift.worst", 3),
        "… null: signs of the changes at random, 99%": value("shift.worst null", 3),
        "`reviews`: a text or its words in random order, classified correctly: on; off": percent(
            "reviews.accuracy", "reviews.accuracy_zero"
        ),
        "… labels shuffled, 99%": percent("reviews.accuracy null"),
    },
    "swapped": {
        "W_K and W_V swapped": between("projections.rise"),
        "null: W_K and W_V of the next head": value("projections.rise_next"),
        "W_Q and W_K swapped": value("projections.rise_qk"),
        "W_Q and W_V swapped": value("projections.rise_qv"),
        "W_Q and W_K rotated together": value("projections.rise null"),
    },
}


def claims(report):
    """The table of claims about any model: each beside what was measured, and by chance."""
    rows = [row for row in report.claims if row["verdict"] in ("pass", "fail")]
    n = sum(row["verdict"] == "pass" for row in rows)
    said = f"On `{report.model}` {n} of {len(rows)} claims that are made about any such model hold:"
    heads, lines = ["claim", "where", "measured", "chance, or beside it", "holds"], []
    for row in rows:
        measured, chance = row["ours"], row["null"]
        is_close = plain(measured) == plain(chance)
        cells = [plain(x, 3 if is_close else 2) for x in (measured, chance)]
        holds = "yes" if row["verdict"] == "pass" else "**no**"
        lines.append([row["what"], row["source"], *cells, holds])
    return f"{said}\n\n{documents.table(heads, lines)}"


# --- columns


def filled(text, reports):
    """A document with the columns of these reports' models made again; claims are DEFAULT's."""
    for name, rows in TABLES.items():
        start, end = place(text, name)
        text = documents.filled(text, f"measured: {name}", columns(text[start:end], rows, reports))
    for report in reports:
        if report.model == DEFAULT:
            text = documents.filled(text, "measured: claims", f"{claims(report)}\n")
    return text


def place(text, name):
    return documents.place(text, f"measured: {name}")


def columns(table, rows, reports):
    """A table with the columns of these reports' models made again, others as they are."""
    lines = [line.strip("| ").split(" | ") for line in table.strip().splitlines()]
    head, old = lines[0], {line[0]: line[1:] for line in lines[2:]}
    models = [cell.strip("`") for cell in head[1:]]
    known = {report.model: report for report in reports}
    table_rows = []
    for label, cell in rows.items():
        kept = (old.get(label, []) + ["–"] * len(models))[: len(models)]
        cells = [cell(known[m]) if m in known else kept[i] for i, m in enumerate(models)]
        table_rows.append([label, *cells])
    return documents.table(head, table_rows) + "\n"


# --- comparison


def differences(old, new):
    """Lines of two texts that differ by more than a unit of a number's last printed digit."""
    lines = old.splitlines(), new.splitlines()
    if len(lines[0]) != len(lines[1]):
        return ["the tables have other rows"]
    return [f"{a}\n    now: {b}" for a, b in zip(*lines) if not is_near(a, b)]


def is_near(a, b):
    """Whether two lines have the same words, and numbers within one unit of the last digit."""
    if NUMBER.sub("0", a) != NUMBER.sub("0", b):
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b))
    return all(abs(number(x) - number(y)) <= 1.001 * unit(x) for x, y in pairs)


def number(text):
    return float(text.replace(",", ""))


def unit(text):
    """One unit of the last digit that a number is printed with."""
    digits, _, power = text.partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders of minitx report")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args(argv)
    old = DOCUMENT.read_text(encoding="utf-8")
    new = filled(old, [report_in(folder) for folder in arguments.folders])
    if not arguments.check:
        DOCUMENT.write_text(new, encoding="utf-8")
        return 0
    lines = differences(old, new)
    if lines:
        print(*lines, "python tests/tools/tables.py report writes them", sep="\n", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
