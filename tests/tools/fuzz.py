"""Ten thousand damaged checkpoint folders: does each load well, or say clearly what is wrong?

    python tests/tools/fuzz.py [--cases N] [--seed N] [--case N] [--jobs N] [--keep] [--replay]

--case 4711: that case of the seed alone, with its mutations. --replay: the cases that once failed,
tests/golden/fuzz/*.json. --keep: write the defects there, with as few mutations as still show
them, a case for each place that they come from. Exit code 0 only without a defect.

A case is named by its seed and number, and is a base folder and a list of mutations (damage.py);
what may come of it is in ordeal.py. Linux only.

Order: the command line, the pool, one case, the table, the corpus.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: a fork has one thread
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RUST_BACKTRACE"] = "0"  # with it a panic that is caught takes 50 MB

import argparse
import json
import multiprocessing
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import damage
import folders
import ordeal

CORPUS = folders.GOLDEN / "fuzz"
LIMITS = ordeal.Limits()
SHOWN = 400  # characters of a message


def main(argv=None):
    """Try the cases; exit code 0 if none is a defect."""
    args = parser().parse_args(argv)
    if args.replay:
        cases = corpus()
    else:
        numbers = range(args.cases) if args.case is None else [args.case]
        cases = dict.fromkeys(numbers)
    begin = time.monotonic()
    results = run_all(cases, args.seed, args.jobs)
    print(table(results, time.monotonic() - begin))
    defects = {name: result for name, result in results.items() if result.is_defect}
    for name, result in sorted(first_of_each(defects).items(), key=str):
        if result.outcome == "not drawn":
            print(f"\n{name}: {result.message[:SHOWN]}")
            continue
        case = cases[name] or drawn(args.seed, name)
        print(f"\n{name}: {case.base} {json.dumps(case.mutations)[:SHOWN]}")
        print(f"  {result.outcome} in {result.stage}: {result.message[:SHOWN]}")
        if args.keep:
            keep(case, result, f"{args.seed}-{name}")
    if args.case is not None:
        print(drawn(args.seed, args.case), *results.values(), sep="\n")
    return 1 if defects else 0


def parser():
    """The command line."""
    new = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    new.add_argument("--cases", type=int, default=10_000)
    new.add_argument("--seed", type=int, default=1)
    new.add_argument("--case", type=int)
    new.add_argument("--jobs", type=int, default=2)
    new.add_argument("--keep", action="store_true")
    new.add_argument("--replay", action="store_true")
    return new


@cache
def bases():
    """The folders that are damaged."""
    return folders.bases()


def drawn(seed, number):
    """A case by its name."""
    return damage.draw(seed, number, bases())


def run_all(cases, seed=1, jobs=2):
    """{name: Result} of {name: Case, or None for its number}; of those so far at Ctrl-C."""
    warm_up()
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        run = partial(run_case, seed)
        results = {}
        try:
            for name, result in zip(cases, pool.map(run, cases.items(), chunksize=8)):
                results[name] = result
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
        return results


def warm_up():
    """Load one folder of each kind of tokenizer, so that no case has to import anything."""
    for name in ("tiny-bert", "bert-japanese", "marian-pieces"):
        result = run_case(0, (name, damage.Case(name, [])), ordeal.Limits(60, 60), fork=False)
        if result.is_defect:
            raise SystemExit(f"the undamaged {name} is not sound: {result}")


def run_case(seed, named, limits=LIMITS, fork=True):
    """The Result of one (name, Case or None)."""
    number, case = named
    try:
        folder = damage.damaged(case or drawn(seed, number), bases())
    except Exception as error:  # a fault of the fuzzer's own, which must not end a run
        return ordeal.Result("not drawn", repr(error))
    parent = tempfile.mkdtemp(prefix="fuzz-")
    path = Path(parent) / "model"
    try:
        if fork:
            return ordeal.tried(folder, path, limits)
        folders.write(folder, path)
        return ordeal.Result(**ordeal.judged(path))
    finally:
        shutil.rmtree(parent)


def first_of_each(defects):
    """The first defect of each kind and place."""
    seen = {}
    for name, result in defects.items():
        seen.setdefault(signature(result), name)
    return {name: defects[name] for name in seen.values()}


def signature(result):
    """What tells one defect from another: its kind, and where it comes from."""
    message = re.sub(r"/tmp/\S+|\d+|'[^']*'", "", result.message)
    place = message.rpartition("(")[2] if message.endswith(")") else message[:40]
    return result.outcome, result.stage, place


def table(results, seconds):
    """Outcomes and how many there are of each; the most memory, and the slowest."""
    counts = Counter(result.outcome for result in results.values())
    lines = [f"{len(results)} cases in {seconds:.0f} s"]
    lines += [f"{n:7} {outcome}" for outcome, n in counts.most_common()]
    slow, result = max(results.items(), key=lambda pair: pair[1].cpu)
    lines.append(f"slowest {slow}: {result.cpu:.2f} s of the processor, {result.clock:.2f} s")
    large, result = max(results.items(), key=lambda pair: pair[1].memory - 2 * pair[1].size)
    lines.append(f"most memory {large}: {result.memory:,} bytes, its folder {result.size:,}")
    return "\n".join(lines)


def corpus():
    """{name: Case} of those that once failed."""
    cases = {}
    for path in sorted(CORPUS.glob("*.json")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        cases[path.stem] = damage.Case(stored["base"], stored["mutations"])
    return cases


def keep(case, result, name):
    """Write a case to the corpus, without the mutations that its defect does not need."""
    mutations = list(case.mutations)
    for mutation in case.mutations:
        fewer = [other for other in mutations if other is not mutation]
        again = run_case(0, (name, damage.Case(case.base, fewer)))
        if signature(again) == signature(result):
            mutations = fewer
    stored = {"was": result.outcome, "base": case.base, "mutations": mutations}
    CORPUS.mkdir(exist_ok=True)
    path = CORPUS / f"{name}.json"
    path.write_text(json.dumps(stored) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
