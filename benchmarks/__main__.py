"""The command `make bench`: every case, several sets of processes, results under
benchmarks/results/.

    python -m benchmarks [--only CASE …] [--quick] [--resume] [--out FOLDER]

A whole run takes about 20 minutes on two cores, which should have nothing else to do. Every
finished case is saved; --resume continues the newest run of this kind of machine in the folder, if
it has the same code. Results are named by the date and the kind of machine: a second run on the
same day and kind replaces the first, and those of other kinds stay.
"""

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

from minitx.analysis.machine import progress
from minitx.analysis.machine.files import write

from . import machine, rounds, shapes, summary
from .cases import CASES, must

ROOT = Path(__file__).parents[1]
SETS = 3


def parsed(argv):
    """The options; for unknown cases the program ends with a list of all cases."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    choosing_options(parser)
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    parser.add_argument(
        "--work", type=Path, default=ROOT / ".venv-bench/work", help="random weights, ONNX files"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of the results; else benchmarks/results for a whole run, "
        "and the work folder for one with --only, --peers or --quick",
    )
    args = parser.parse_args(argv)
    args.work = args.work.resolve()
    if not args.out:
        whole = not (args.only or args.peers or args.quick)
        args.out = ROOT / "benchmarks/results" if whole else args.work / "results"
    return args


def choosing_options(parser):
    """The options that choose what is measured."""
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="CASE",
        type=named,
        help="of these, or how some of them "
        f"begin, or `must` for what is to be reached and nothing beside it: {', '.join(CASES)}",
    )
    parser.add_argument(
        "--peers", nargs="+", metavar="SYSTEM/TASK", help="only these of each case's peers"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one set of processes, at most three rounds"
    )


def named(word):
    """The cases that a word of --only stands for.

    Raises ArgumentTypeError, with the names of all cases, if there is none.
    """
    if word == "must":
        return must()
    if word in CASES:
        return [CASES[word]]
    cases = [case for name, case in CASES.items() if name.startswith(word)]
    if not cases:
        raise argparse.ArgumentTypeError(
            f"no case is or begins with {word!r}; available: must, {', '.join(CASES)}"
        )
    return cases


def plan(args):
    """The cases to run and the number of sets of processes, as the options say."""
    cases = {}
    for group in args.only or [CASES.values()]:
        cases |= {case.name: case for case in group}
    cases = list(cases.values())
    if args.peers:
        cases = [case._replace(peers=wanted_peers(case, args.peers)) for case in cases]
        cases = [case for case in cases if case.peers]
    if args.quick:
        cases = [case._replace(rounds=min(case.rounds, 3)) for case in cases]
    return cases, 1 if args.quick else SETS


def wanted_peers(case, names):
    """The peers of a case that are among these names."""
    return tuple(peer for peer in case.peers if peer in names)


def begun(args, settings):
    """Path and content of the run's JSON file: a new one or, with --resume, the newest.

    Raises SystemExit if that run has other code or versions.
    """
    args.out.mkdir(parents=True, exist_ok=True)
    kind = machine.kind(settings["machine"])
    old = sorted(args.out.glob(f"????-??-??-{kind}.json")) if args.resume else []
    if not old:
        return args.out / f"{machine.today()}-{kind}.json", {"settings": settings, "cases": {}}
    run = json.loads(old[-1].read_text(encoding="utf-8"))
    changed = [key for key in settings if run["settings"].get(key) != settings[key]]
    if changed:
        sys.exit(f"{old[-1].name} cannot be resumed: it differs in {', '.join(changed)}")
    return old[-1], run


def write_shapes(work, cases):
    """Write the weights and, in a process of its own, the ONNX files that are still missing."""
    for shape in dict.fromkeys(case.shape for case in cases):
        progress.show(f"{shape}: weights and ONNX files")
        shapes.ensure(work, shape)


def left(cases, sets, run):
    """The pairs (set, case) that a run still lacks, set by set.

    Within a set, cases that share processes come together.
    """
    groups = list(dict.fromkeys(case.group for case in cases))
    together = sorted(cases, key=lambda case: groups.index(case.group))
    pairs = []
    for k in range(sets):
        for case in together:
            finished = run["cases"].get(case.name, {})
            if k < case.sets and str(k) not in finished:
                pairs.append((k, case))
    return pairs


def main(argv=None):
    """Run, save after every case, print; return the exit status."""
    args = parsed(argv)
    cases, sets = plan(args)
    settings = described(sets, args.quick)
    path, run = begun(args, json.loads(json.dumps(settings)))
    run.setdefault("installed", machine.installed())
    print(settings["machine"]["line"], flush=True)
    write_shapes(args.work, cases)
    measure_left(path, run, left(cases, sets, run), sets, args.work)
    summary.write(path)
    print(path.with_suffix(".md"))


def described(sets, quick):
    """What a run was measured on, and how."""
    return {
        "machine": machine.described(2),
        "versions": machine.versions(),
        "commit": machine.commit(),
        "sets": sets,
        "quick": quick,
    }


def measure_left(path, run, pairs, sets, work):
    """Measure these (set, case); after each of them save the run and print a summary."""
    start = time.monotonic()
    for (k, (_, threads, _)), group in itertools.groupby(pairs, lambda x: (x[0], x[1].group)):
        with rounds.Processes(work, threads) as processes:
            for _, case in group:
                record = rounds.measure(case, processes, case.rounds, k, progress.show)
                run["cases"].setdefault(case.name, {})[str(k)] = record
                write(path, json.dumps(run) + "\n")
                progress.show("")
                lines = [f"{time.monotonic() - start:5.0f} s  set {k + 1}/{sets}"]
                lines += summary.brief(case, record)
                print(*lines, sep="\n  ", flush=True)


if __name__ == "__main__":
    sys.exit(main())
