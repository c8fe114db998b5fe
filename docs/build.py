"""Puts the documentation together: what pages show, what Sphinx reads, links that lead somewhere.

Order: the command, what is computed, what Sphinx reads, Sphinx.
"""

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from minitx import analysis, weights
from minitx.analysis.machine.files import write
from minitx.lessons.sphinx import STRICT

from . import contents, gallery, links, notebooks, reference, works
from .cache import Kept

HERE = Path(__file__).parent
ROOT = HERE.parent
OUT = HERE / "_build"


def main(argv=None):
    """Build; exit code 1 if a cell or an experiment fails, Sphinx warns, or a link is broken."""
    parser = argparse.ArgumentParser("python -m docs", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder (docs/_build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes side by side")
    arguments = parser.parse_args(argv)
    start = time.monotonic()
    outcomes, failed = computed(arguments.out / "cache", arguments.jobs)
    source = written(arguments.out / "source", outcomes)
    html = arguments.out / "draft"
    warned = sphinx(source, html, arguments.out / "doctrees", arguments.jobs)
    if not (failed or warned):
        html = placed(html, arguments.out / "html")
    wrong = [*links.problems(html)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    seconds = time.monotonic() - start
    counts = f"{len(failed)} of {len(outcomes)} failed, {len(wrong)} broken links"
    print(f"{html / 'index.html'}: {seconds:.0f} s, {counts}")
    return bool(failed or warned or wrong)


def computed(folder, jobs):
    """({(kind, name): what was computed} of every page and experiment, keys of those that failed).

    What was kept of an earlier build is taken from there, the rest computed side by side. What
    failed says so in place of its outputs: the other pages are there to look at.
    """
    kept, outcomes, waiting, failed = Kept(folder), {}, {}, []
    with pool(jobs) as workers:
        for key, (what, work) in tasks().items():
            outcomes[key] = kept.get([*key, what])
            if outcomes[key] is None:
                waiting[workers.submit(timed, work)] = key, what
        for future in as_completed(waiting):
            key, what = waiting[future]
            try:
                outcomes[key], seconds = future.result()
            except Exception as error:  # the others are tried all the same
                failed.append(key)
                outcomes[key] = FAILED[key[0]](what, error)
                print(f"{' '.join(key)} failed: {error}", file=sys.stderr)
                continue
            kept.put([*key, what], outcomes[key])
            print(f"{' '.join(key)}: {seconds:.1f} s", flush=True)
    if not failed:
        kept.clean()
    return outcomes, failed


def no_outputs(code, error):
    """The outputs of a page that failed: the error below its first cell."""
    said = {"output_type": "stream", "name": "stderr", "text": f"This page failed: {error}\n"}
    return [[said], *([] for _ in code[1:])]


def no_numbers(model, error):
    """What a run that failed gives its page."""
    empty = {"figures": [""], "thumbnail": ""}
    return {"answer": None, "says": f"This experiment failed: {error}", "headline": {}} | empty


FAILED = {"page": no_outputs, "experiment": no_numbers}


def pool(jobs):
    """Processes that compute side by side, each with one thread for products."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


def tasks():
    """{(kind, name): (what it depends on beside the sources, function)}."""
    every = {}
    for page in notebooks.every():
        every.setdefault(("page", page.executed_as), (page.code, partial(notebooks.executed, page)))
    for name in analysis.EXPERIMENTS:
        every["experiment", name] = gallery.model_of(name), partial(gallery.computed, name)
    return every


def timed(work):
    """What a function returns, and how many seconds it took."""
    start = time.monotonic()
    return work(), time.monotonic() - start


def written(source, outcomes):
    """The folder that Sphinx reads, written anew."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE / "pages", source)
    for path in source.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        write(path, notebooks.linked(text, path.parent, source))
    for page in notebooks.every():
        (source / f"{page.place}.md").unlink(missing_ok=True)
        notebooks.write_page(page, outcomes["page", page.executed_as], source)
    runs = {name: outcomes["experiment", name] for name in analysis.EXPERIMENTS}
    for name, run in runs.items():
        gallery.write_page(name, run, source)
    gallery.write_index(runs, source)
    contents.write_pages(source)
    shutil.copy(ROOT / "analysis/example.svg", source)
    reference.write_pages(source)
    works.write_page(source)
    write(source / "tiny-stories.md", learned())
    return source


def learned():
    """The page of what tiny-stories learned and what not, which is its card."""
    card = (weights.find("tiny-stories") / "README.md").read_text(encoding="utf-8")
    card = card.replace("# tiny-stories\n", "# What tiny-stories learned, and what not\n", 1)
    return card.replace(
        "../../lessons/15-which-head-did-it.md", "lessons/15-which-head-did-it.ipynb"
    )


def sphinx(source, draft, doctrees, jobs):
    """Run Sphinx, warnings as errors, and return its exit status."""
    shutil.rmtree(draft, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", *STRICT, "--jobs", str(jobs)]
    command += ["-c", HERE, "-d", doctrees, "-E", source, draft]
    return subprocess.run([*map(str, command)], cwd=ROOT, check=False).returncode


def placed(draft, html):
    """The pages in place of those of an earlier build, which stay where one failed."""
    shutil.rmtree(html, ignore_errors=True)
    return draft.rename(html)
