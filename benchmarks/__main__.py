"""The command `make bench`: every case, several sets of processes, results under benchmarks/results/.

    python -m benchmarks [--only CASE …] [--quick] [--resume] [--out FOLDER]

A whole run takes about 20 minutes on two cores, which should have nothing else to do. Every finished case is saved;
--resume goes on with the newest run in the folder if it is one of the same code on the same machine; without it a
second run of one day takes the place of the first.
"""
import argparse
import itertools
import json
import sys
import time
from pathlib import Path

from analysis import progress, results

from . import machine, rounds, shapes, summary
from .cases import CASES, must

ROOT = Path(__file__).parents[1]
SETS = 3


def parsed(argv):
    """The options; unknown cases end the program with a list of those that there are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="CASE", type=named, help="of these, or how some of them "
                        f"begin, or `must` for what is to be reached and nothing beside it: {', '.join(CASES)}")
    parser.add_argument("--peers", nargs="+", metavar="SYSTEM/TASK", help="only these of each case's peers")
    parser.add_argument("--quick", action="store_true", help="one set of processes, at most three rounds")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    parser.add_argument("--work", type=Path, default=ROOT / ".venv-bench/work", help="random weights, ONNX files")
    parser.add_argument("--out", type=Path, help="folder of the results; else benchmarks/results for a whole run, "
                        "and the work folder for one with --only, --peers or --quick")
    args = parser.parse_args(argv)
    args.work = args.work.resolve()
    whole = not (args.only or args.peers or args.quick)
    args.out = args.out or (ROOT / "benchmarks/results" if whole else args.work / "results")
    return args


def named(word):
    """The cases that a word of --only stands for; ArgumentTypeError, with the names, if there are none."""
    found = must() if word == "must" else [CASES[word]] if word in CASES else [
        case for name, case in CASES.items() if name.startswith(word)]
    if not found:
        raise argparse.ArgumentTypeError(f"no case is or begins with {word!r}; there are: must, {', '.join(CASES)}")
    return found


def plan(args):
    """The cases to run and the sets of processes, as the options say."""
    cases = list({case.name: case for some in args.only or [CASES.values()] for case in some}.values())
    if args.peers:
        cases = [case._replace(peers=chosen) for case in cases
                 if (chosen := tuple(peer for peer in case.peers if peer in args.peers))]
    if args.quick:
        cases = [case._replace(rounds=min(case.rounds, 3)) for case in cases]
    return cases, 1 if args.quick else SETS


def begun(args, settings):
    """(path of the run's JSON file, what is in it): a new one, or with --resume the newest; SystemExit if that is of
    another code or machine."""
    args.out.mkdir(parents=True, exist_ok=True)
    old = sorted(args.out.glob("????-??-??.json")) if args.resume else []
    if not old:
        return args.out / f"{machine.today()}.json", {"settings": settings, "cases": {}}
    run = json.loads(old[-1].read_text(encoding="utf-8"))
    if changed := [key for key in settings if run["settings"].get(key) != settings[key]]:
        sys.exit(f"{old[-1].name} cannot be resumed: it differs in {', '.join(changed)}")
    return old[-1], run


def made(work, cases):
    """Write the weights and, in a process of its own, the ONNX files that are not there yet."""
    for shape in dict.fromkeys(case.shape for case in cases):
        progress.show(f"{shape}: weights and ONNX files")
        shapes.made(work, shape)


def left(cases, sets, run):
    """[(set, case)] that a run still lacks: set by set, and in a set the cases together that share processes."""
    groups = list(dict.fromkeys(case.group for case in cases))
    together = sorted(cases, key=lambda case: groups.index(case.group))
    return [(k, case) for k in range(sets) for case in together
            if k < case.sets and str(k) not in run["cases"].get(case.name, {})]


def main(argv=None):
    """Run, save after every case, print; -> exit status."""
    args = parsed(argv)
    cases, sets = plan(args)
    told = {"machine": machine.described(2), "versions": machine.versions(), "commit": machine.commit(),
            "sets": sets, "quick": args.quick}
    path, run = begun(args, json.loads(json.dumps(told)))
    run.setdefault("installed", machine.installed())
    print(told["machine"]["line"], flush=True)
    made(args.work, cases)
    start = time.monotonic()
    for (k, (_, threads, _)), group in itertools.groupby(left(cases, sets, run), lambda pair: (pair[0], pair[1].group)):
        with rounds.Processes(args.work, threads) as processes:
            for _, case in group:
                found = rounds.measure(case, processes, case.rounds, k, progress.show)
                run["cases"].setdefault(case.name, {})[str(k)] = found
                results.write(path, json.dumps(run) + "\n")
                progress.show("")
                print(f"{time.monotonic() - start:5.0f} s  set {k + 1}/{sets}", *summary.brief(case, found),
                      sep="\n  ", flush=True)
    summary.write(path)
    print(path.with_suffix(".md"))


if __name__ == "__main__":
    sys.exit(main())
