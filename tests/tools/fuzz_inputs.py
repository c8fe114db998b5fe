"""Ten thousand damaged files that are not checkpoints, and damaged requests: what comes of each?

    python tests/tools/fuzz_inputs.py [--cases N] [--seed N] [--case N] [--only KIND ...]

A case is a kind of input, whole at first, and one to six mutations (damage.py). What may come of it
is the same as of the whole input; one line of a ValueError or FileNotFoundError; or, where people
write a file themselves, something else. Anything else is a defect: another exception, a message of
several lines, a minute of the processor without an end, and something else that is read from a file
of minitx's own, as a state from which a run goes on. Exit code 0 only without a defect.

All cases run in this process; a crash of it would be one. Linux and macOS.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import damage
import folders
import numpy as np
import trained

import minitx
from minitx import images, weights
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.atlas import projections
from minitx.analysis.contract import registry
from minitx.analysis.live import server
from minitx.analysis.live.runs import Runs
from minitx.analysis.parity import reference
from minitx.analysis.running import single, stream
from minitx.analysis.texts import formats, pairs
from minitx.learning import saved
from minitx.weights import local
from minitx.words.text import UnknownWarning

SECONDS = 60  # of the processor that a case may take: 40 MB of empty lines take a quarter of it
LONGEST = 1000  # letters of a clear message
MODEL, SAYS = "tiny-roberta", "tiny-gpt2"
REPO = "org/name"
AGAIN = "computed again"  # what is not taken over is computed, and then the same


class Kind(NamedTuple):
    """An input: files {name: bytes}, and content(folder) -> what tells one content from another."""

    files: Callable
    content: Callable
    is_own: bool = False  # minitx wrote it: something else must not be read from it


class Result(NamedTuple):
    outcome: str  # "same", "clear", "changed", or the kind of defect
    message: str = ""

    @property
    def is_defect(self):
        return self.outcome not in ("same", "clear", "changed")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--only", nargs="+", choices=[*KINDS], default=[*KINDS])
    given = parser.parse_args(argv)
    numbers = range(given.cases) if given.case is None else [given.case]
    counts, defects = Counter(), 0
    begin = time.monotonic()
    for number in numbers:
        case = draw_case(given.seed, number, given.only)
        result = try_case(case)
        counts[case.base, result.outcome] += 1
        defects += result.is_defect
        if result.is_defect or given.case is not None:
            print(f"{number}: {case.base} {json.dumps(case.mutations):.300}")
            print(f"  {result.outcome}: {result.message:.400}", flush=True)
    print(table(counts))
    print(f"{len(numbers)} cases in {time.monotonic() - begin:.0f} s, {defects} defects")
    return 1 if defects else 0


def table(counts):
    """A line for each kind: how many cases came to what."""
    lines = []
    for kind in KINDS:
        parts = [f"{n} {outcome}" for (of, outcome), n in sorted(counts.items()) if of == kind]
        if parts:
            lines.append(f"{kind:>12}: {', '.join(parts)}")
    return "\n".join(lines)


# --- a case


def draw_case(seed, number, kinds):
    """A case by its number, up to its first pipe or link, which a reader may wait for."""
    case = damage.draw(seed, number, {kind: undamaged_files(kind) for kind in kinds})
    ordinary = takewhile(lambda mutation: mutation[0] != "special", case.mutations)
    return case._replace(mutations=[*ordinary])


@cache
def undamaged_files(kind):
    """{name: bytes} of an input that is not damaged."""
    return KINDS[kind].files()


@cache
def undamaged_content(kind):
    """What is read from it."""
    with tempfile.TemporaryDirectory(prefix="inputs-") as folder:
        return KINDS[kind].content(write_folder(undamaged_files(kind), folder))


def write_folder(files, folder):
    folder = Path(folder) / "input"
    folders.write(files, folder)
    return folder


def try_case(case):
    kind = KINDS[case.base]
    before = undamaged_content(case.base)
    parent = tempfile.mkdtemp(prefix="inputs-")
    usual = signal.signal(signal.SIGPROF, _late)
    try:
        folder = write_folder(damage.damaged(case, {case.base: undamaged_files(case.base)}), parent)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UnknownWarning)  # of one word, which texts here have
            now = kind.content(folder)
    except BaseException as error:
        return of_error(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, usual)
        shutil.rmtree(parent, ignore_errors=True)
    if now in (before, AGAIN):
        return Result("same")
    return Result("silent", "something else was read") if kind.is_own else Result("changed")


class Late(BaseException):
    """A case took too long."""


def _late(*_):
    raise Late


def of_error(error):
    """Whether an exception is one that a user can read."""
    message = str(error)
    name = type(error).__name__
    if type(error) not in (ValueError, FileNotFoundError):
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Result(name, f"{message} ({Path(last.filename).name}:{last.lineno})")
    if any(letter in message for letter in "\n\r\x1b\x00\u202e"):
        return Result("more than one line", message)
    return Result("clear" if len(message) <= LONGEST else "a long message", message)


# --- what is damaged


def files_left_by(write):
    """The files that write(folder) leaves, {name: bytes}."""
    with tempfile.TemporaryDirectory(prefix="inputs-") as name:
        write(Path(name))
        return folders.contents(Path(name))


def digest(*values):
    """One text for arrays, and for what JSON can say."""
    sha256 = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            sha256.update(f"{value.dtype.str} {value.shape}".encode() + value.tobytes())
        else:
            sha256.update(repr(value).encode(errors="surrogatepass"))
    return sha256.hexdigest()


PAIRS = [
    {"source": "3 May 1912", "target": "1912-05-03", "links": [[[0, 4], [6, 10]]]},
    {"source": "a dog", "target": "ein Hund"},
    {"source": "a cat ran"},
]
TEXTS = [{"text": "A dog ran.", "label": "x"}, {"text": "Bü, 二!", "label": None}]


def lines(records):
    """JSON Lines."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def picture(folder, form):
    from PIL import Image

    x = np.random.default_rng(0).integers(0, 256, (9, 12, 3), np.uint8)
    Image.fromarray(x).save(folder / f"x.{form}", quality=90)


def training(folder):
    """The state of a training after three steps."""
    loop = trained.loop_of("gpt2", steps=9)
    for _ in range(3):
        loop.step()
    saved.Folder(folder, {"steps": 9}, {}).save(loop)


def take_up(folder):
    """The end of a training that goes on from a state, or begins anew where there is none."""
    loop = trained.loop_of("gpt2", steps=9)
    saved.Folder(folder, {"steps": 9}, {}).take_up(loop)
    while loop.done < 9:
        loop.step()
    return digest(loop.losses, loop.optimizer.steps, *saved.state_of(loop).values())


def history():
    """The record of a bundled training, without its snapshots."""
    return {saved.RECORD: (weights.find(weights.histories()[0]) / saved.RECORD).read_bytes()}


def of_history(folder):
    record = saved.Folder(folder, {}, {}).ended()
    return digest(record and {name: record[name] for name in saved.RIGHT})


@cache
def model():
    return minitx.load(MODEL)


def state(folder):
    """What an interrupted run over nine documents left after three."""
    run = stream.Run(folder, "x", "key")
    run._save(run._state("documents"), 3, {"sum": np.full(4, 3.0), "each": np.arange(3)})


def go_on(folder):
    """The sums of the run that goes on from there."""
    run = stream.Run(folder, "x", "key", resume=True)

    def measure(number, document):
        return {"sum": np.ones(4), "each": np.asarray(number)}

    return digest(*run.gather(measure, np.zeros((9, 1), int), "documents", ("each",)).values())


@cache
def settings():
    """The settings of a run that takes little time."""
    return single._stated(registry.get("singular-values"), model(), MODEL, {})[1]


def results(folder):
    single.produce(registry.get("singular-values"), model(), MODEL, {}, folder)


def read_results(folder):
    """The arrays that another run takes over; the same where it would compute them anew."""
    arrays = single.finished(registry.get("singular-values"), settings(), folder)
    return AGAIN if arrays is None else digest(*arrays.values())


def points(folder):
    """Points of a projection, as the cache of atlases keeps them."""
    projections.keep(folder / "x.npz", "key", np.arange(12, dtype=np.float32).reshape(1, 6, 2))


def points_again(folder):
    """The same, or that they are computed again."""
    xy = projections.restored(folder / "x.npz", "key", (1, 6, 2))
    return AGAIN if xy is None else digest(xy)


def record_of_download():
    """The record of a repository whose files were fetched."""
    commit, files = "a" * 40, {"config.json": {"size": 3, "sha256": "b" * 64}}
    record = {"repo": REPO, "pinned": commit, "revisions": {"main": commit}}
    text = json.dumps(record | {"files": {commit: files}})
    return {local.record_path(REPO).name: text.encode()}


def of_downloads(folder):
    os.environ["HF_HOME"] = str(folder.parent)
    folder.rename(folder.with_name("minitx"))
    return digest(local.read_record(REPO))


def read_golden_reference():
    """A reference as `minitx record` leaves it."""
    return {"x.safetensors": (folders.GOLDEN / "parity" / "bert-masked.safetensors").read_bytes()}


def of_reference(folder):
    batches, arrays, samples, about = reference.read_file(folder / "x.safetensors")
    numbers = [x for part in (*arrays, *samples) for x in part.values()]
    return digest(*(x for inputs in batches for x in inputs if x is not None), *numbers, about)


@cache
def live():
    return server.Live(Runs({MODEL: model(), SAYS: minitx.load(SAYS)}), "A dog ran.")


def request(name, **values):
    body = {"text": "A dog ran.", "page": "x", "changes": {}, **values}
    return lambda: {"body.json": json.dumps(body).encode()}


def answer_to(name):
    """What the server answers to the request in a folder."""

    def answer(folder):
        values = server._values((folder / "body.json").read_bytes())
        server._page(values)
        getattr(live(), name)(values, lambda: None)
        return "an answer"

    return answer


CHANGED = {"positions": "shifted", "shift": 2, "heads_off": [[0, 1]], "layers_off": [1]}
REQUESTS = {
    "run": request("run", null=True, hidden=[1], changes=CHANGED),
    "save": request("save"),
    "code": request("code", shown={"part": "", "layer": 0, "head": 1, "offset": -1}),
    "following": request("following", model=SAYS, temperature=0.5, top_k=3, top_p=0.9, seed=1),
    "writers": request("writers", run="as is", place=2),
    "kinds": request("kinds"),
    "patch": request("patch", hidden=[1], other="A cat ran."),
}
FORMS = "png", "jpg", "gif", "bmp", "webp", "tiff", "ppm"


def as_lines(files):
    """Files of one object each, which are joined to JSON Lines."""
    return lambda: {f"{i}.json": line for i, line in enumerate(lines(files).splitlines())}


def of_joined_lines(function):
    """function(path) of the JSON Lines that a folder's files make."""

    def of_folder(folder):
        path = folder.parent / "x.jsonl"
        path.write_bytes(b"\n".join(file.read_bytes() for file in sorted(folder.iterdir())))
        return digest(*function(path))

    return of_folder


def of_text(name):
    """What is read of a corpus."""
    return lambda folder: digest(*(tuple(x)[:2] for x in formats.records(str(folder / name))))


KINDS = {
    "pairs": Kind(as_lines(PAIRS), of_joined_lines(lambda path: pairs.pairs(str(path), 9))),
    "corpus .jsonl": Kind(
        as_lines(TEXTS), of_joined_lines(lambda path: formats.records(str(path)))
    ),
    "corpus .csv": Kind(lambda: {"x.csv": b'text,label\n"A dog, ran",1\nB,2\n'}, of_text("x.csv")),
    "corpus .txt": Kind(lambda: {"x.txt": b" = A = \n\n a dog\n\n = B = \nb\n"}, of_text("x.txt")),
    "corpus .gz": Kind(lambda: {"x.txt.gz": gzip.compress(b"a dog\nran\n")}, of_text("x.txt.gz")),
    **{
        f"picture .{form}": Kind(
            lambda form=form: files_left_by(lambda folder: picture(folder, form)),
            lambda folder, form=form: digest(images.read_image(folder / f"x.{form}", 3)),
        )
        for form in FORMS
    },
    "reference": Kind(read_golden_reference, of_reference),
    "training": Kind(lambda: files_left_by(training), take_up, is_own=True),
    "history": Kind(history, of_history),
    "state": Kind(lambda: files_left_by(state), go_on, is_own=True),
    "results": Kind(lambda: files_left_by(results), read_results, is_own=True),
    "projection": Kind(lambda: files_left_by(points), points_again, is_own=True),
    "downloads": Kind(record_of_download, of_downloads),
    **{f"request {name}": Kind(files, answer_to(name)) for name, files in REQUESTS.items()},
}

if __name__ == "__main__":
    sys.exit(main())
