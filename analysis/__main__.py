"""The command line: `minitx` is `python -m analysis`. Order: `main`, the parser, then each command."""

import os
import sys

# Documents run side by side; threads inside one small product would only wait for each other. The doctor describes
# what everybody else gets.
if sys.argv[1:2] != ["doctor"]:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np

import minitx
import weights

from . import advice, compare, corpus, data, doctor, explore, published, registry, report, results
from . import experiments  # noqa: F401  (fills the registry)


COMMON = (("text", str, "file or folder with one document or paragraph a line, - for standard input, or sample"),
          ("documents", int, "documents to read"), ("tokens", int, "length of each document"))


def main(argv=None):
    """Run one command; 0 or the number for the shell. What the user can mend is one line on stderr, and 2."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        if argv[:1] == ["run"] and argv[1:] and not argv[1].startswith("-"):
            registry.get(argv[1])  # argparse would list the names, but not the near ones
        arguments = parser(argv).parse_args(argv)
        return arguments.command(arguments) or 0
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        print(f"minitx: {plain(error)}", file=sys.stderr)
        return 2


def plain(error):
    """An error's text, without the operating system's number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {str(error.filename)!r}" if error.filename else error.strerror
    return str(error)


def parser(argv=()):
    """All commands; those of `run`, and their flags, come from the registry, as do the flags of `compare`."""
    top = argparse.ArgumentParser("minitx", description="See inside transformers with NumPy alone.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    add(commands, "list", list_, "experiments and models")
    run = commands.add_parser("run", help="one experiment on one model: figure, numbers, settings")
    names = run.add_subparsers(required=True, metavar="EXPERIMENT")
    for experiment in registry.EXPERIMENTS.values():
        one = add(names, experiment.name, run_, experiment.asks, "MODEL")
        one.set_defaults(experiment=experiment)
        flags(one, experiment)
        kept(one, f"out/MODEL-{experiment.name}")
    for name, function, about in (("report", report_, "every experiment on one model, on one page"),
                                  ("published", published_, "what was published, and what this model gives")):
        every = add(commands, name, function, about, "MODEL")
        for option, kind, text in COMMON:
            every.add_argument(f"--{option}", type=kind, help=f"{text}, for every experiment that reads texts")
        kept(every, f"out/MODEL-{name}")
    of_one_text(commands)
    of_two_models(commands, argv)
    fetch = add(commands, "fetch", fetch_, "download a model", "MODEL")
    fetch.add_argument("--revision", help="branch, tag or commit (the one fetched first, else main)")
    machine = add(commands, "doctor", doctor_, "how fast NumPy is on this machine, and what holds it back")
    machine.add_argument("--json", action="store_true", help="facts, rates and advice for a program to read")
    return top


def of_one_text(commands):
    """The commands that look at one short text."""
    trace = add(commands, "trace", trace_, "every point of one forward pass", "MODEL", "TEXT")
    trace.add_argument("--keep", metavar="POINTS", help="only these, joined by commas: q,k,pattern.L3 (all)")
    trace.add_argument("--save", metavar="FILE.npz", help="write the recorded arrays")
    page = add(commands, "explore", explore_, "a page to explore every head on one text", "MODEL", "TEXT")
    page.add_argument("--words", action="store_true", help="words, not pieces: sums over keys, means over queries")
    page.add_argument("--out", help="folder for explore.html (out/MODEL-explore)")


def of_two_models(commands, argv):
    """`compare`, with the flags of the experiment that these arguments name."""
    both = add(commands, "compare", compare_, "one experiment on two models, head by head", "A", "B")
    both.add_argument("--experiment", required=True, metavar="NAME", help="whose flags, as in `minitx run`, may follow")
    both.add_argument("--of", default="", metavar="MEASURES", help="only these, joined by commas (all that have a "
                      f"number for each head; the first {compare.DRAWN} are drawn)")
    kept(both, "out/A-B-NAME")
    if argv[:1] == ["compare"]:
        first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        first.add_argument("--experiment", nargs="?")
        if name := first.parse_known_args(argv)[0].experiment:
            flags(both, registry.get(name))


def flags(command, experiment):
    """A flag for each option of an experiment."""
    for option in experiment.options:
        command.add_argument(f"--{option.flag}", default=option.default, type=type(option.default),
                             help=f"{option.help} ({option.default!r})".replace("%", "%%"))


def kept(command, default):
    """The flags of a command that leaves a folder of results."""
    command.add_argument("--out", help=f"folder for the results ({default})")
    command.add_argument("--resume", action="store_true", help="go on with a run that was interrupted")


def add(commands, name, function, description, *positionals):
    """A command with its positional arguments."""
    command = commands.add_parser(name, help=description, description=description)
    command.set_defaults(command=function)
    model = "bundled name, folder, or hub id"
    helps = {"MODEL": model, "TEXT": "text to read", "A": model, "B": f"another {model}"}
    for positional in positionals:
        command.add_argument(positional.lower(), metavar=positional, help=helps[positional])
    return command


def load(name):
    """A model by name, its weights checked for NaN and infinities; what a partial one lacks is said on stderr."""
    model = minitx.load(weights.find(name), partial=True)
    minitx.check(model)
    if n := len(model.missing):
        some = ", ".join(model.missing[:6]) + (", …" if n > 6 else "")
        print(f"minitx: a partial checkpoint: {n} tensors are missing ({some}); "
              "only experiments that need nothing but weights will run", file=sys.stderr)
    return model


def folder(arguments, what):
    """The folder for results, made and tried out before any work, but not for a model that is not there."""
    weights.find(arguments.model)
    return results.writable(arguments.out or Path("out") / f"{Path(arguments.model).resolve().name}-{what}")


def list_(arguments):
    """minitx list"""
    print("experiments: minitx run EXPERIMENT MODEL")
    for experiment in registry.EXPERIMENTS.values():
        print(f"  {experiment.name:18} {experiment.asks}")
    print("\nmodels that come with the project")
    for name in weights.bundled():
        print(f"  {name}")
    print("\nmodels to download: minitx fetch MODEL (any other hub id works too)")
    for name, (_, purpose) in weights.KNOWN.items():
        print(f"  {name}: {purpose}")


def run_(arguments):
    """minitx run EXPERIMENT MODEL"""
    experiment, start = arguments.experiment, time.monotonic()
    options = {option.name: getattr(arguments, option.name) for option in experiment.options}
    out = folder(arguments, experiment.name)
    outcome = results.produce(experiment, load(arguments.model), arguments.model, options, out, arguments.resume)
    if outcome.says:
        print(f"{outcome.says}\n")
    for number in outcome.headline.values():
        null = f"   [{number['null_means']}: {results.words(number['null'])}]" if "null" in number else ""
        print(f"{number['means']}: {results.words(number['value'])}{null}")
    print(f"{out / experiment.name}.svg .npz .json written in {time.monotonic() - start:.1f} s")


def compare_(arguments):
    """minitx compare A B --experiment NAME"""
    names = arguments.a, arguments.b
    experiment = registry.get(arguments.experiment)
    options = {option.name: getattr(arguments, option.name) for option in experiment.options}
    stem = "-".join(weights.find(name).name for name in names)
    out = Path(arguments.out or Path("out") / f"{stem}-{experiment.name}")
    table = compare.make(experiment, [*map(load, names)], names, options, out, arguments.of, arguments.resume)
    print(f"{table.partition('| head |')[0].strip()}\n\n{out / 'compare'}.md .json .svg written")


def report_(arguments):
    """minitx report MODEL"""
    out, model = folder(arguments, "report"), load(arguments.model)
    return report.make(model, arguments.model, out, common(arguments, model), arguments.resume)


def published_(arguments):
    """minitx published MODEL"""
    out = folder(arguments, "published")
    model, name = load(arguments.model), arguments.model
    wanted = [registry.get(experiment) for experiment in dict.fromkeys(claim.experiment for claim in published.CLAIMS)]
    found = {experiment.name: outcome for experiment, outcome, _ in
             results.every(wanted, model, name, common(arguments, model), out, arguments.resume)}
    rows = published.rows(name, model, found)
    table = published.markdown(rows)
    results.write(out / "published.json", results.as_json(rows) + "\n")
    results.write(out / "published.md", f"# {name}\n\n{table}\n")
    print(f"\n{table}\n\n{out / 'published'}.md .json written")
    return 1 if results.failed(found) else 0


def common(arguments, model):
    """The options that all experiments share, where they were given; ValueError if the text cannot be read so."""
    given = {name: getattr(arguments, name) for name, _, _ in COMMON if getattr(arguments, name) is not None}
    if given and not model.missing and not results.no_tokenizer(model):
        corpus.documents(model, given.get("text", "sample"), given.get("documents", 0), given.get("tokens", 0))
    return given


def trace_(arguments):
    """minitx trace MODEL TEXT"""
    if arguments.save:
        results.writable(Path(arguments.save).parent)
    model = minitx.load(weights.find(arguments.model))
    data.valid(arguments.text, "the text")
    keep = arguments.keep and [point(name) for name in arguments.keep.split(",")]
    estimate = minitx.cost(model, arguments.text, keep)
    start = time.monotonic()
    trace = minitx.run(model, arguments.text, keep)
    seconds = time.monotonic() - start
    print(f"{trace.tokens.size} tokens: {' | '.join(model.tokenizer.pieces(trace.tokens[0]))}\n")
    print(f"{'point':16} {'axes':9} {'shape':18} {'layers':>6} {'kB':>9} {'mean |x|':>10}  meaning")
    for name, (axes, meaning) in minitx.POINTS.items():
        found = [x for key, x in trace.values.items() if name == key or name == key[0]]
        if found:
            shape, size = " ".join(map(str, found[0].shape)), sum(x.nbytes for x in found) / 1e3
            mean = np.mean([np.abs(x[np.isfinite(x)]).mean() for x in found])
            print(f"{name:16} {axes:9} {shape:18} {len(found):6} {size:9.1f} {mean:10.4g}  {meaning}")
    print(f"\n{trace.nbytes / 1e6:.3f} MB recorded in {seconds:.3f} s"
          f" (estimated beforehand: {estimate / 1e6:.3f} MB)")
    if arguments.save:
        save(trace, Path(arguments.save))


def point(name):
    """'q' -> 'q', 'pattern.L3' -> ('pattern', 3)."""
    stem, dot, layer = name.strip().partition(".L")
    return (stem, int(layer)) if dot and layer.isdecimal() else name.strip()


def save(trace, path):
    """Write tokens, valid and the recorded arrays, named as for --keep."""
    named = {key if isinstance(key, str) else f"{key[0]}.L{key[1]}": x for key, x in trace.values.items()}
    arrays = io.BytesIO()
    np.savez(arrays, tokens=trace.tokens, valid=trace.valid, **named)
    results.write(path, arrays.getvalue())
    print(f"{path} written")


def explore_(arguments):
    """minitx explore MODEL TEXT"""
    start, page = time.monotonic(), folder(arguments, "explore") / "explore.html"
    size = explore.write(load(arguments.model), arguments.model, arguments.text, page, arguments.words)
    print(f"{page} written: {size / 1e6:.2f} MB in {time.monotonic() - start:.1f} s; open it in a browser")


def fetch_(arguments):
    """minitx fetch MODEL"""
    print(weights.fetch(arguments.model, arguments.revision))


def doctor_(arguments):
    """minitx doctor"""
    facts, measured = doctor.describe(), doctor.measure()
    found = {"facts": facts, "measured": measured, "advice": advice.advice(facts, measured)}
    print(json.dumps(found, indent=1) if arguments.json else advice.text(facts, measured))


if __name__ == "__main__":
    sys.exit(main())
