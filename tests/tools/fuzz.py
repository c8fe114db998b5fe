"""Ten thousand damaged checkpoint folders: does each load well, or say clearly what is wrong?

    python tests/tools/fuzz.py [--cases N] [--large N] [--seed N] [--case NAME] [--jobs N] [--keep]
    python tests/tools/fuzz.py --replay

--large: as many cases beside, of folders of 44 to 70 MB (large_folders.py). --case 4711 or large-3:
that case of the seed alone, with its mutations. --replay: the cases that once failed,
tests/golden/fuzz/*.json. --keep: write the defects there, with as few mutations as still show
them, a case for each place that they come from. Exit code 0 only without a defect; Ctrl-C ends the
run at once, and what was tried is shown.

A case is named by its seed and number, and is a base folder and a list of mutations (damage.py);
what may come of it is in ordeal.py. Linux only.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: a fork has one thread
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RUST_BACKTRACE"] = "0"  # with it a panic that is caught takes 50 MB

import argparse
import contextlib
import json
import multiprocessing
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import damage
import folders
import large_folders
import ordeal

CORPUS = folders.GOLDEN / "fuzz"
LIMITS = ordeal.Limits()
SHOWN = 400  # characters of a message
STEP = 1000  # cases after which a line says how far a run is


def main(argv=None):
    new = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    new.add_argument("--cases", type=int, default=10_000)
    new.add_argument("--large", type=int, default=200)
    new.add_argument("--seed", type=int, default=1)
    new.add_argument(
        "--case", type=lambda name: name if large_folders.is_large(name) else int(name)
    )
    new.add_argument("--jobs", type=int, default=2)
    new.add_argument("--keep", action="store_true")
    new.add_argument("--replay", action="store_true")
    args = new.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as tempfile.tempdir:
        return tried(args)


def tried(args):
    """Try the cases; what is left in the folder for temporary files is removed by `main`."""
    cases = wanted(args)
    begin = time.monotonic()
    results = run_all(cases, args.seed, args.jobs)
    print(tables(results, len(cases), time.monotonic() - begin))
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
    return 1 if defects or len(results) < len(cases) else 0


def wanted(args):
    """{name: Case, or None for one that its name says}."""
    if args.replay:
        return corpus()
    if args.case is not None:
        return {args.case: None}
    large = [f"large-{i}" for i in range(args.large)]
    return dict.fromkeys([*range(args.cases), *large])


def bases_of(name):
    """The folders of a case, or of a folder's name."""
    return large_folders.bases() if large_folders.is_large(name) else folders.bases()


def drawn(seed, name):
    return damage.draw(seed, name, bases_of(name))


def run_all(cases, seed=1, jobs=2):
    """{name: Result} of {name: Case, or None for its name}; of those so far at Ctrl-C."""
    warm_up()
    if any(large_folders.is_large(case.base if case else name) for name, case in cases.items()):
        large_folders.bases()  # before there are processes, which would each write their own
    results = {}
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(jobs, context, initializer=os.setpgid, initargs=(0, 0))
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run = partial(run_case, seed)
        for name, result in zip(cases, pool.map(run, cases.items(), chunksize=8)):
            results[name] = result
            if result.is_defect:
                print(f"{name}: {result.outcome} in {result.stage}", file=sys.stderr, flush=True)
            if len(results) % STEP == 0:
                n = sum(result.is_defect for result in results.values())
                print(f"{len(results)} of {len(cases)}, {n} defects", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        end_at_once()
    finally:
        signal.signal(signal.SIGTERM, usual)
        pool.shutdown(cancel_futures=True)
    return results


def end_at_once():
    """End the processes of the pool, and the case that each has begun: they are a group each."""
    for worker in multiprocessing.active_children():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.kill()  # one that had no time yet to begin a group


def warm_up():
    """Load one folder of each kind of tokenizer, so that no case has to import anything."""
    for name in ("tiny-bert", "bert-japanese", "marian-pieces"):
        result = run_case(0, (name, damage.Case(name, [])), ordeal.Limits(60, 60), fork=False)
        if result.is_defect:
            raise SystemExit(f"the undamaged {name} is not sound: {result}")


def run_case(seed, named, limits=None, fork=True):
    """The Result of one (name, Case or None)."""
    name, case = named
    try:
        case = case or drawn(seed, name)
        folder = damage.damaged(case, bases_of(case.base))
    except Exception as error:  # a fault of the fuzzer's own, which must not end a run
        return ordeal.Result("not drawn", repr(error))
    parent = tempfile.mkdtemp(prefix="fuzz-")
    path = Path(parent) / "model"
    try:
        if fork:
            return ordeal.tried(folder, path, limits or limits_of(case))
        folders.write(folder, path)
        return ordeal.decided(ordeal.judged(path), path)
    finally:
        shutil.rmtree(parent)


def limits_of(case):
    """Numbers of 16 bits are copied as float32, alone twice the file: there SPARE is beside it."""
    return LIMITS._replace(beside=ordeal.SPARE) if large_folders.is_converted(case.base) else LIMITS


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


def tables(results, n, seconds):
    """A table of the small folders' cases, and one of the large ones'."""
    large = {name: result for name, result in results.items() if large_folders.is_large(name)}
    small = {name: result for name, result in results.items() if name not in large}
    stopped = "" if len(results) == n else f"stopped early: {len(results)} cases of {n}\n"
    parts = [table(part) for part in (small, large) if part]
    return stopped + "\n\n".join([*parts, f"{len(results)} cases in {seconds:.0f} s"])


def table(results):
    """Outcomes and how many there are of each; the slowest, and the most memory."""
    counts = Counter(result.outcome for result in results.values())
    kind = "of large folders " if large_folders.is_large(next(iter(results))) else ""
    lines = [f"{len(results)} cases {kind}"]
    lines += [f"{n:7} {outcome}" for outcome, n in counts.most_common()]
    for what in ("cpu", "clock", "memory"):
        name = max(results, key=lambda name: getattr(results[name], what))
        lines.append(f"most {what}: {results[name]} ({name})")
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
