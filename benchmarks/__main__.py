"""The command: python -m benchmarks [--only CASE …] [--quick]."""
import argparse
import sys
import time
from pathlib import Path

import numpy as np

from . import rounds, shapes
from .cases import CASES

WORK = Path(".venv-bench/work")


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="CASE", help=f"of: {', '.join(CASES)}")
    parser.add_argument("--peers", nargs="+", metavar="SYSTEM/TASK", help="only these")
    parser.add_argument("--quick", action="store_true", help="one set of processes, three rounds")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for random weights and ONNX files")
    args = parser.parse_args(argv)
    sets = 1 if args.quick else 3
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    for name in args.only or CASES:
        case = CASES[name]
        if args.peers:
            case = case._replace(peers=tuple(args.peers))
        shapes.make(work, case.shape)
        for k in range(sets):
            start = time.time()
            processes = {s: rounds.Process(s, work, case.threads) for s in dict.fromkeys(p.split("/")[0] for p in case.peers)}
            try:
                found = rounds.measure(case, processes, work, 3 if args.quick else case.rounds, k)
            finally:
                for p in processes.values():
                    p.end()
            print(name, f"distance {found['distance']:.1e}, {time.time() - start:.0f} s", *found["lost"].items(), sep="\n  ")
            base = found["seconds"].get("minitx/internals") or next(iter(found["seconds"].values()))
            for peer, s in found["seconds"].items():
                print(f"  {peer:32} {np.median(s) * 1000:8.1f} ms  ({min(s) * 1000:.1f}-{max(s) * 1000:.1f})  "
                      f"x{np.median(np.array(s) / base):.2f} of the first", flush=True)


if __name__ == "__main__":
    sys.exit(main())
