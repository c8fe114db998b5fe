"""How long the live page waits for an answer, and what its server holds after many of them.

    python -m benchmarks.live [--changes N] [--requests N] [--out FILE.json]

`minitx serve` runs in a process of its own, and each request comes over a socket, as a browser's
does: a random change of the same text, of every kind that the page has. Cases: tiny-roberta with a
short text, and the shape of roberta-base with random weights and 63 tokens. Then as many requests
as `--requests` says to tiny-roberta, and how the server's memory went.

Order: the command, a case, its changes, the server.
"""

import argparse
import http.client
import json
import random
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from minitx import weights

from . import machine, rounds, shapes

SHORT = "He looked at her for a moment, and then he went out of the room."
LONG = " ".join((SHORT.split() * 4)[:44])  # 63 tokens of tiny-roberta's
ROUTE = {"Content-Type": "application/json"}
WARM = 3  # requests before the first that is timed


def main():
    """Measure, print a line for each case, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    record = {"machine": machine.described(1)["line"], "commit": machine.commit(), "cases": {}}
    with TemporaryDirectory() as folder:
        large = with_tokenizer(shapes.make(Path(folder), "roberta-base"))
        for case in (
            ("tiny-roberta", "tiny-roberta", SHORT, given.changes),
            ("roberta-base, long", str(large), LONG, given.changes),
            ("tiny-roberta, many", "tiny-roberta", SHORT, given.requests),
        ):
            name, *arguments = case
            record["cases"][name] = answers(*arguments)
            print(name, json.dumps(record["cases"][name]), flush=True)
    if given.out:
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def with_tokenizer(folder):
    """The folder, with tiny-roberta's tokenizer: its ids are among those of any vocabulary."""
    for path in weights.find("tiny-roberta").glob("tokenizer*.json"):
        shutil.copy(path, folder)
    return folder


def answers(model, text, n):
    """Milliseconds that n changes of a text took, and MiB of the server early and at the end."""
    dice = random.Random(0)
    milliseconds, mib = [], []
    with served(model) as (port, process):
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(WARM + n):
            begin = time.perf_counter()
            seed = {"seed": dice.randrange(10**6)}  # a run that is known is not computed again
            tokens = asked(line, text, seed | dice.choice(CHANGES)(dice))
            milliseconds.append(1000 * (time.perf_counter() - begin))
            mib.append(resident(process.pid))
    milliseconds, mib = milliseconds[WARM:], mib[WARM:]
    median, most = np.quantile(milliseconds, [0.5, 0.95])
    result = {"changes": n, "tokens": tokens}
    result |= {"median ms": round(float(median), 1), "95% within ms": round(float(most), 1)}
    result["longest ms"] = round(max(milliseconds), 1)
    result["MiB after a tenth"] = round(mib[max(0, n // 10 - 1)], 1)
    return result | {"MiB at the end": round(mib[-1], 1)}


def asked(line, text, changes):
    """Ask for one change, read the whole answer -> its number of tokens."""
    body = json.dumps({"page": "benchmark", "text": text, "changes": changes})
    line.request("POST", "/api/run", body, ROUTE)
    answer = line.getresponse()
    content = json.loads(answer.read())
    if answer.status != 200:
        raise RuntimeError(f"the live page answers {answer.status}: {content}")
    return content["live"]["tokens"]


def resident(pid):
    """MiB that a process holds (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


CHANGES = (  # dice -> the changes of a request; all models here have 4 layers and heads, or more
    lambda dice: {"positions": "zero"},
    lambda dice: {"positions": "shuffled"},
    lambda dice: {"positions": "shifted", "shift": dice.randrange(1, 150)},
    lambda dice: {"dial": dice.choice([-3, -2, -1, 1, 2, 3])},
    lambda dice: {"mask": {"family": "exponential", "values": [dice.uniform(1, 20)]}},
    lambda dice: {"heads_off": [[dice.randrange(4), dice.randrange(4)]]},
    lambda dice: {"layers_off": [dice.randrange(4)]},
)


@contextmanager
def served(model):
    """`minitx serve` of one model -> its port and process."""
    options = ["--no-browser", "--port", "0"]
    command = [sys.executable, "-m", "minitx.analysis", "serve", model, *options]
    env = rounds.environment(2)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        first = process.stdout.readline()
        yield int(re.search(r":(\d+)/", first)[1]), process
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    main()
