"""The commands of `minitx`. Order: `run_command`, the parser, then each command."""

import argparse
import contextlib
import io
import json
import os
import shlex
import sys
import time
from pathlib import Path

import numpy as np

import minitx
from minitx import interrupt, weights
from minitx.weights.tune import tune as training

from . import experiments  # noqa: F401  (fills the registry)
from .machine import advice, doctor
from .measures import decoding
from .pages import compare, decode, explore, published, report
from .parity import compare as parity
from .parity import junit, models, record, reference
from .runner import cluster, cost, escapes, many, registry, results, sides
from .runner.options import Size, understand
from .texts import corpus, formats, ids
from .toys import recurrent

PORT = 8642  # of the live page
TEXT = "file or folder with one document or paragraph a line, - for standard input, or sample"
COMPONENTS = "attribute", "heads", "patch", "circuit"  # `minitx heads` is `minitx run heads`
COMMON = (  # options that `report` and `published` pass on to every experiment that has them
    understand("text", str, "sample", TEXT),
    understand("documents", Size, 0, "documents to read"),
    understand("tokens", Size, 0, "length of each document"),
)


def run_command(argv):
    """Run one command and return its exit status: 0, or 2 for an error that the user can mend.

    Such an error is one line on stderr. An interruption is one, too, and its status is 130.
    """
    out = sys.stdout if "--json" in argv else escapes.for_people(sys.stdout)
    errors = escapes.for_people(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        return status_of(argv)


def status_of(argv):
    """The same, on streams that show control characters as escapes."""
    arguments = None
    try:
        interrupt.raise_again()
        if argv[:1] == ["run"]:
            check_experiment(argv[1:])  # argparse would list the names, but not the near ones
        arguments = parser(argv).parse_args(argv)
        with workers_of(arguments):
            return arguments.command(arguments) or 0
    except BrokenPipeError:  # the reader has stopped, as `head` does after ten lines
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:  # Ctrl-C
        print(f"minitx: {interruption(arguments)}", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"minitx: {plain(error)}", file=sys.stderr)
        return 2


def workers_of(arguments):
    """What measures documents, for a command that reads many: see runner/cluster.py."""
    if not hasattr(arguments, "workers"):
        return contextlib.nullcontext()
    return cluster.workers_for(arguments.workers, arguments.scheduler)


def check_experiment(argv):
    """Raise ValueError if the first argument of `run` is neither a flag nor an experiment."""
    if not argv or argv[0].startswith("-"):
        return
    later = [name for name in argv[1:] if name in registry.EXPERIMENTS]
    if argv[0] not in registry.EXPERIMENTS and later:
        raise ValueError(
            f"{later[0]} is an experiment and comes before the model: "
            f"minitx run {later[0]} {argv[0]}"
        )
    registry.get(argv[0])


def interruption(arguments):
    """What an interrupted command says: how to go on with it, if it can."""
    can_resume = hasattr(arguments, "resume")
    return "interrupted" + ("; the same command with --resume goes on" if can_resume else "")


def plain(error):
    """An error's text, without the operating system's number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {str(error.filename)!r}" if error.filename else error.strerror
    return str(error)


class Parser(argparse.ArgumentParser):
    """A parser that takes flags by their whole names only; its commands are such parsers too."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, allow_abbrev=False, **options)


def parser(argv=()):
    """The parser of all commands.

    The experiments that `run` takes, and the flags of `run` and `compare`, come from the registry.
    """
    top = Parser("minitx", description="See inside transformers with NumPy alone.")
    top.add_argument("--version", action="version", version=f"minitx {minitx.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    in_json(add(commands, "list", list_, "experiments and models"))
    of_one_experiment(commands)
    of_components(commands)
    of_plans(commands)
    of_all_experiments(commands)
    of_one_text(commands)
    of_the_live_page(commands)
    of_two_models(commands, argv)
    of_parity(commands)
    fetch = add(commands, "fetch", fetch_, "download a model", "MODEL")
    fetch.add_argument(
        "--revision", help="branch, tag or commit (the one fetched first, else main)"
    )
    of_tuning(commands)
    of_the_toy(commands)
    of_lessons(commands)
    about = "how fast NumPy is on this machine, and what holds it back"
    in_json(add(commands, "doctor", doctor_, about))
    return top


def of_one_experiment(commands):
    """`run`, with a command for each experiment."""
    run = commands.add_parser("run", help="one experiment on one model: figure, numbers, settings")
    names = run.add_subparsers(required=True, metavar="EXPERIMENT")
    for experiment in registry.EXPERIMENTS.values():
        command = add(names, experiment.name, run_, experiment.question, "MODEL")
        of_run(command, experiment)


def of_run(command, experiment):
    """What a command that runs one experiment takes beside the model."""
    command.set_defaults(experiment=experiment)
    of_further_models(command, experiment)
    flags(command, experiment)
    of_results(command, f"out/MODEL-{experiment.name}")
    of_workers(command)
    of_figure(command)
    in_json(command)


def of_components(commands):
    """The experiments on which component did it, each as a command of its own."""
    for name in COMPONENTS:
        experiment = registry.EXPERIMENTS.get(name)
        if experiment is None:  # the list is another one
            continue
        function = attribute_ if name == "attribute" else run_
        command = add(commands, name, function, experiment.question, "MODEL")
        if function is attribute_:
            about = "text to read, a file of it, or -; the same as --prompt (random words)"
            command.add_argument("text", nargs="?", metavar="TEXT", help=about)
        of_run(command, experiment)


def of_further_models(command, experiment):
    """Models after the first, in place of --others, where an experiment takes several."""
    if any(option.name == "others" for option in experiment.options):
        about = "more of them, beside the first; the same as --others, joined by commas"
        command.add_argument("further", nargs="*", metavar="MODEL", help=about)


def of_plans(commands):
    """`plan`, with a command for each experiment that reads documents."""
    about = "what a long run will take: hours, memory, bytes; a few documents are measured here"
    plan = commands.add_parser("plan", help=about, description=about)
    names = plan.add_subparsers(required=True, metavar="EXPERIMENT")
    for experiment in registry.EXPERIMENTS.values():
        if any(option.name == "documents" for option in experiment.options):
            command = add(names, experiment.name, plan_, experiment.question, "MODEL")
            command.set_defaults(experiment=experiment)
            flags(command, experiment)
            about = "workers that measure documents side by side (1)"
            command.add_argument("--n-workers", "--workers", type=int, default=1, help=about)
            in_json(command)


def of_all_experiments(commands):
    """The commands that run every experiment on one model."""
    for name, function, about in (
        ("report", report_, "every experiment on one model, on one page"),
        ("published", published_, "what was published, and what this model gives"),
    ):
        command = add(commands, name, function, about, "MODEL")
        for option in COMMON:
            help_ = f"{option.help}, for every experiment that reads texts"
            command.add_argument(f"--{option.flag}", help=help_)
        of_side(command)
        of_ids(command)
        if function is report_:
            help_ = "a short text, for every experiment that draws one"
            command.add_argument("--sentence", help=help_)
        of_results(command, f"out/MODEL-{name}")
        of_workers(command)
        in_json(command)
        if function is published_:
            of_published_texts(command)
            help_ = "status 1 if a claim about any model or about this checkpoint fails"
            command.add_argument("--strict", action="store_true", help=help_)


def of_published_texts(command):
    """A flag for each text that a number was published on."""
    for text in published.TEXTS.values():
        help_ = f"{text.what}, for the numbers published on it"
        command.add_argument(f"--{text.flag}", metavar="TEXT", help=help_)


def of_one_text(commands):
    """The commands that look at one short text."""
    trace = add(commands, "trace", trace_, "every point of one forward pass", "MODEL", "TEXT")
    trace.add_argument(
        "--keep", metavar="POINTS", help="only these, joined by commas: q,k,pattern.L3 (all)"
    )
    trace.add_argument("--source", metavar="TEXT", help="what an encoder-decoder's encoder reads")
    trace.add_argument("--save", metavar="FILE.npz", help="write the recorded arrays")
    about = "a page to explore every head on one text"
    page = add(commands, "explore", explore_, about, "MODEL", "TEXT")
    page.add_argument(
        "--words",
        action="store_true",
        help="whole words: attention summed over a key's pieces, averaged over a query's",
    )
    help_ = "what an encoder-decoder says of TEXT, its source (its own greedy output)"
    page.add_argument("--target", metavar="TEXT", help=help_)
    help_ = "a second text beside the first, with the difference where both are of one length"
    page.add_argument("--beside", metavar="TEXT", help=help_)
    help_ = "a second model beside the first, on the same text or on that of --beside"
    page.add_argument("--beside-model", metavar="MODEL", help=help_)
    help_ = "what each token and each head adds to a guess, too, beside random weights"
    page.add_argument("--attribution", action="store_true", help=help_)
    page.add_argument("--out", help="folder for explore.html (out/MODEL-explore)")
    of_a_source(add(commands, "decode", decode_, "what an encoder-decoder says of a text", "MODEL"))


def of_the_live_page(commands):
    """`serve`, which takes several models."""
    about = "a live page: change a model, see what follows"
    serve = add(commands, "serve", serve_, about)
    serve.add_argument("models", nargs="+", metavar="MODEL", help="bundled name, folder, or hub id")
    serve.add_argument("--text", help="text that the page starts with, a file of it, or -")
    about = f"where it listens on this machine ({PORT}; 0: a free one)"
    serve.add_argument("--port", type=int, default=PORT, metavar="N", help=about)
    serve.add_argument("--no-browser", action="store_true", help="open no browser")
    help_ = "what each token and each head adds to a guess, too (takes longer)"
    serve.add_argument("--attribution", action="store_true", help=help_)


def of_a_source(command):
    """The flags of `decode`."""
    command.add_argument(
        "text", nargs="?", metavar="TEXT", help="source to read, a file of it, or -"
    )
    about = "token ids of the source in place of TEXT: the first line of a file"
    command.add_argument("--ids", metavar="FILE", help=about)
    about = "each step: whose query asks, where it looks in the source, its best tokens"
    command.add_argument("--steps", action="store_true", help=about)
    for name, default, about in (
        ("--n", 20, "tokens to generate, at most (20)"),
        ("--beams", 1, "continuations side by side, of which the best is printed (1)"),
        ("--layer", -1, "whose cross-attention the steps show, counted from 0 (the last)"),
        ("--head", None, "the same for a head (the mean over all)"),
    ):
        command.add_argument(name, type=int, default=default, metavar="N", help=about)
    about = "power of the length that beams are divided by (1.0)"
    command.add_argument("--length-penalty", type=float, default=1.0, metavar="X", help=about)
    about = "draw the steps: a map of attention, .svg or .png"
    command.add_argument("--out", metavar="FILE", help=about)
    in_json(command)


def of_two_models(commands, argv):
    """`compare`, with the flags of the experiment that these arguments name."""
    about = "one experiment on two models, head by head"
    compare_both = add(commands, "compare", compare_, about, "A", "B")
    compare_both.add_argument(
        "--experiment",
        required=True,
        metavar="NAME",
        help=f"one of {', '.join(compare.comparable())}; its flags, as in `minitx run`, may follow",
    )
    compare_both.add_argument(
        "--of",
        default="",
        metavar="MEASURES",
        help="only these, joined by commas (all that have a "
        f"number for each head; the first {compare.DRAWN} are drawn)",
    )
    of_results(compare_both, "out/A-B-NAME")
    of_workers(compare_both)
    of_figure(compare_both)
    name = named_experiment(argv)
    if name:
        flags(compare_both, registry.get(name))


def of_parity(commands):
    """`record` and `verify`."""
    about = "what the reference library computes, in a small file (needs the extra torch)"
    recorded = add(commands, "record", record_, about, "MODEL")
    recorded.add_argument("--out", required=True, metavar="FILE.safetensors", help="file to write")
    for name, default in record.How._field_defaults.items():
        kind, help_ = type(default), record.HELPS[name]
        if name != "points":
            recorded.add_argument(
                f"--{name}", type=kind, default=default, help=f"{help_} ({default})"
            )
    recorded.add_argument("--points", help=f"{record.HELPS['points']}")
    about = "is a model what was recorded, or what another checkpoint is? status 1 if not"
    verify = add(commands, "verify", verify_, about, "MODEL")
    about = "a file that `minitx record` wrote, or another model"
    verify.add_argument("reference", metavar="REFERENCE", help=about)
    help_ = "largest difference, as a share of a point's largest value (by dtype)"
    verify.add_argument("--bound", type=float, metavar="X", help=help_)
    choices = ("float64", "float32")
    verify.add_argument("--dtype", choices=choices, default=choices[0], help="of both (float64)")
    verify.add_argument("--text", default="sample", help=f"{TEXT}; for two models (sample)")
    verify.add_argument("--junit", metavar="FILE.xml", help="write the outcome for a CI service")
    in_json(verify)


def of_the_toy(commands):
    """The command of the recurrent toy, which takes no model."""
    about = "a fixed context vector, or attention: a recurrent toy copies sequences"
    toy = add(commands, "toy", toy_, about)
    flags(toy, recurrent.EXPERIMENT)
    toy.add_argument("--out", help="folder for the results (out/toy)")
    of_figure(toy)
    in_json(toy)


def of_tuning(commands):
    """`tune`, whose flags are the options of learning."""
    command = add(commands, "tune", tune_, "a checkpoint learns on from a text", "MODEL")
    of_options(command, training.EXPERIMENT)
    of_ids(command, {option.name for option in training.EXPERIMENT.options})
    of_results(command, "out/MODEL-tune")
    in_json(command)


def of_lessons(commands):
    """The command of the lessons, which takes no model."""
    lesson = add(commands, "lesson", lesson_, "a lesson in the browser; without N the list of them")
    lesson.add_argument("n", nargs="?", type=int, metavar="N", help="its number")
    about = "language of the prose (en)"
    lesson.add_argument("--lang", choices=("en", "ja"), default="en", help=about)
    about = "write it as a notebook, .ipynb, in place of a page"
    lesson.add_argument("--notebook", metavar="FILE", help=about)
    about = "folder for the page where the documentation is not built (out/lessons)"
    lesson.add_argument("--out", help=about)
    about = "say where the page is, and open no browser"
    lesson.add_argument("--no-browser", action="store_true", help=about)


def named_experiment(argv):
    """The --experiment of `compare`; None if these arguments have none."""
    if argv[:1] != ["compare"]:
        return None
    first = Parser(add_help=False)
    first.add_argument("--experiment", nargs="?")
    return first.parse_known_args(argv)[0].experiment


def flags(command, experiment):
    """The flags of an experiment: its options, what it reads of an encoder-decoder, ids."""
    of_options(command, experiment)
    if not sides.has_own(experiment):
        of_side(command)
    if experiment.reads_texts:
        of_ids(command, {option.name for option in experiment.options})


def of_options(command, experiment):
    """A flag for each option of an experiment: a switch for a bool, else a text, checked later."""
    for option in experiment.options:
        limits = f"; {option.range}" if option.range else ""
        about = f"{option.help} ({option.default!r}{limits})".replace("%", "%%")
        how = {"metavar": f"{{{','.join(option.choices)}}}"} if option.choices else {}
        if option.kind is bool:
            how = {"action": argparse.BooleanOptionalAction if option.default else "store_true"}
        command.add_argument(f"--{option.flag}", default=None, help=about, **how)


def of_side(command):
    """The flag that names what is read of an encoder-decoder."""
    names = f"{{{','.join(sides.OPTION.choices)}}}"
    flag, default = f"--{sides.OPTION.flag}", sides.OPTION.default
    command.add_argument(flag, default=default, metavar=names, help=sides.OPTION.help)


def of_ids(command, own=()):
    """The flags that name a file of token ids, a sample and a column; own: options there are."""
    about = "token ids in place of a text: a file with one document a line, or -"
    command.add_argument("--ids", metavar="FILE", help=about)
    for option in registry.OF_TEXTS:
        if option.name not in own:
            command.add_argument(f"--{option.flag}", default=None, help=option.help)


def of_results(command, default):
    """The flags of a command that writes a folder of results."""
    command.add_argument("--out", help=f"folder for the results ({default})")
    command.add_argument(
        "--resume", action="store_true", help="go on with a run that was interrupted"
    )


def of_workers(command):
    """The flags of a command that measures documents."""
    about = "processes on this machine that read documents side by side (threads of this one)"
    command.add_argument("--workers", type=int, default=0, metavar="N", help=about)
    about = "in their place the workers of a Dask cluster: its scheduler, as tcp://HOST:8786"
    command.add_argument("--scheduler", default="", metavar="ADDRESS", help=about)


def of_figure(command):
    """The flag of a command that writes a figure."""
    formats_ = results.FORMATS
    about = f"file format of the figure ({formats_[0]})"
    command.add_argument("--format", choices=formats_, default=formats_[0], help=about)


def in_json(command):
    """The flag of a command whose answer a program can read."""
    about = "only JSON on standard output, for a program to read"
    command.add_argument("--json", action="store_true", help=about)


def add(commands, name, function, description, *positionals):
    """A command with its positional arguments."""
    command = commands.add_parser(name, help=description, description=description)
    command.set_defaults(command=function)
    model = "bundled name, folder, or hub id"
    helps = {
        "MODEL": model,
        "TEXT": "text to read, a file of it, or - for standard input",
        "A": model,
        "B": f"another {model}",
    }
    for positional in positionals:
        command.add_argument(positional.lower(), metavar=positional, help=helps[positional])
    return command


def load(name):
    """A model by name, its weights checked for NaN and infinities.

    If it is a partial checkpoint, a line on stderr tells what it lacks.
    """
    model = minitx.load(weights.find(name), partial=True)
    minitx.check(model)
    n = len(model.missing)
    if n:
        names = ", ".join(model.missing[:6]) + (", …" if n > 6 else "")
        print(
            f"minitx: a partial checkpoint: {n} tensors are missing ({names}); "
            "only experiments that need nothing but weights will run",
            file=sys.stderr,
        )
    return model


def folder(arguments, what):
    """The folder for results, made and tried out before any work.

    Raises FileNotFoundError, and makes no folder, if there is no such model.
    """
    weights.find(arguments.model)
    default = Path("out") / f"{place(arguments.model)}-{what}"
    return results.writable(arguments.out or default)


def place(name):
    """Where a model's results go below out/: its name, or its folder's path from here.

    The whole path for a folder elsewhere, so that two folders of the same name have two places.
    """
    path, here = Path(name).resolve(), Path.cwd()
    if path == here:
        return path.name
    return path.relative_to(here if path.is_relative_to(here) else path.anchor).as_posix()


def options_of(experiment, arguments):
    """The options of an experiment as they were given, checked, and the side: {name: value}."""
    given = own_options(experiment, arguments)
    if arguments.side is None:  # an option of its own, which was not given
        return given
    return given | {sides.OPTION.name: sides.OPTION.parsed(arguments.side)}


def own_options(experiment, arguments):
    """The options of an experiment as they were given, checked: {name: value}."""
    named = {option.name: getattr(arguments, option.name) for option in experiment.options}
    given = {name: value for name, value in named.items() if value is not None}
    further = getattr(arguments, "further", [])
    if further and "others" in given:
        raise ValueError(f"--others {given['others']} and {further[0]}: name models in one way")
    if further:
        given["others"] = ",".join(further)
    if experiment.reads_texts:
        given |= of_text(arguments)
    return experiment.checked(given, is_text=True)


def of_text(arguments):
    """What was given beside the name of a text: `ids`, a sample and its seed, a column."""
    names = "ids", *(option.name for option in registry.OF_TEXTS)
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def list_(arguments):
    """minitx list"""
    if arguments.json:
        print(results.as_json(listed()))
        return
    print("experiments: minitx run EXPERIMENT MODEL")
    for experiment in registry.EXPERIMENTS.values():
        print(f"  {experiment.name:18} {experiment.question}")
    print("\nmodels that come with the project")
    for name in weights.bundled():
        print(f"  {name}")
    print("\ntiny models that differ in how a place enters: weights/zoo/README.md")
    for name in weights.zoo():
        print(f"  {name}")
    print("\nmodels to download: minitx fetch MODEL (any other hub id works too)")
    for name, (_, purpose) in weights.KNOWN.items():
        print(f"  {name}: {purpose}")


def listed():
    """What `minitx list` shows, and the options of each experiment with their defaults."""
    listing = {}
    for experiment in registry.EXPERIMENTS.values():
        options = {option.flag: option.default for option in experiment.options}
        listing[experiment.name] = {"question": experiment.question, "options": options}
    known = {name: purpose for name, (_, purpose) in weights.KNOWN.items()}
    return {"experiments": listing, "bundled": weights.bundled()} | {
        "zoo": weights.zoo(),
        "to_download": known,
    }


def run_(arguments):
    """minitx run EXPERIMENT MODEL"""
    start = time.monotonic()
    experiment = arguments.experiment
    options = options_of(experiment, arguments)
    out = folder(arguments, experiment.name)
    model, name = load(arguments.model), arguments.model
    how = {"resume": arguments.resume, "format": arguments.format}
    outcome = results.produce(experiment, model, name, options, out, **how)
    if arguments.json:
        print((out / f"{experiment.name}.json").read_text(encoding="utf-8"), end="")
        return
    if outcome.answer:
        print(f"{experiment.question} {results.sentence(outcome.answer)}\n")
    if outcome.says:
        print(f"{outcome.says}\n")
    for number in outcome.headline.values():
        print(headline(number))
    written = f"{out / experiment.name}.{arguments.format} .npz .json written"
    print(f"{written} in {time.monotonic() - start:.1f} s")


def attribute_(arguments):
    """minitx attribute MODEL TEXT"""
    if arguments.text is not None:
        if arguments.prompt is not None:
            raise ValueError("a TEXT and --prompt: wanted one of them")
        arguments.prompt = text_of(arguments.text)
    return run_(arguments)


def plan_(arguments):
    """minitx plan EXPERIMENT MODEL"""
    experiment, n_workers = arguments.experiment, arguments.n_workers
    if n_workers < 1:
        raise ValueError(f"--workers is {n_workers}; wanted 1 or more")
    documents = whole_number("documents", arguments.documents)
    arguments.documents = None
    options = options_of(experiment, arguments)
    with results.one_thread_of_blas():
        expected = cost.plan(experiment, load(arguments.model), options, documents)
    if arguments.json:
        seconds = cost.seconds_with(expected, n_workers)
        print(results.as_json(expected._asdict() | {"workers": n_workers, "all": seconds}))
    else:
        print(cost.says(expected, n_workers))


def whole_number(name, given):
    """A number of 1 or more as people write large ones: 1e6."""
    try:
        value = float(given or "nan")
    except ValueError:
        value = 0.0
    if not (1 <= value < 1e18 and value == int(value)):
        raise ValueError(f"--{name} is {given!r}; wanted a whole number such as 1000000 or 1e6")
    return int(value)


def headline(number):
    """The line of one headline number, with its null if it has one."""
    text = f"{number['means']}: {results.labelled(number)}"
    if "null" in number:
        text += f"   [{number['null_means']}: {results.words(number['null'])}]"
    return text


def compare_(arguments):
    """minitx compare A B --experiment NAME"""
    names = arguments.a, arguments.b
    experiment = registry.get(arguments.experiment)
    compare.check(experiment)
    defaults = {option.name: option.default for option in experiment.options}
    options = defaults | options_of(experiment, arguments)  # the same text for both
    stem = "-".join(place(name).replace("/", "-") for name in names)
    out = Path(arguments.out or Path("out") / f"{stem}-{experiment.name}")
    models = [load(name) for name in names]
    how = {"only": arguments.of, "resume": arguments.resume, "format": arguments.format}
    table = compare.make(experiment, models, names, options, out, **how)
    print(table.partition("| head |")[0].strip())
    print(f"\n{out / 'compare'}.md .json .{arguments.format} written")


def report_(arguments):
    """minitx report MODEL"""
    out, model = folder(arguments, "report"), load(arguments.model)
    options = common(arguments, model)
    with progress_beside(arguments.json):
        n = many.n_processes(options)
        status = report.make(model, arguments.model, out, options, arguments.resume, n)
    if arguments.json:
        print((out / "report.json").read_text(encoding="utf-8"), end="")
    return status


def progress_beside(json):
    """With `json`, lines of progress go to stderr, so that stdout has only JSON."""
    return contextlib.redirect_stdout(sys.stderr if json else sys.stdout)


def published_(arguments):
    """minitx published MODEL"""
    out = folder(arguments, "published")
    model, name = load(arguments.model), arguments.model
    given = {text: getattr(arguments, spec.flag) for text, spec in published.TEXTS.items()}
    texts = {text: location for text, location in given.items() if location is not None}
    options = common(arguments, model)
    with progress_beside(arguments.json):
        outcomes = published.outcomes(name, model, options, texts, out, arguments.resume)
    rows = published.rows(name, model, outcomes)
    record, table = results.as_json(rows), published.markdown(rows)
    results.write(out / "published.json", record + "\n")
    title = escapes.in_markdown(name)
    results.write(out / "published.md", f"# {title}\n\n{published.tally(rows)}\n\n{table}\n")
    if arguments.json:
        print(record)
    else:
        print(f"\n{table}\n\n{published.tally(rows)}")
        print(f"{out / 'published'}.md .json written")
    is_refuted = arguments.strict and any(row["verdict"] == "fail" for row in rows)
    return 1 if is_refuted or results.failed(outcomes) else 0


def common(arguments, model):
    """The options in COMMON, `sentence` and `ids`, where they were given.

    Raises ValueError if the text cannot be read with them.
    """
    given = {}
    side = sides.OPTION.parsed(arguments.side)
    for option in COMMON:
        value = getattr(arguments, option.name)
        if value is not None:
            given[option.name] = option.parsed(value)
    if getattr(arguments, "sentence", None) is not None:
        given["sentence"] = arguments.sentence
    given = registry.with_text(given | of_text(arguments), is_text=True)
    text = given.get("text", "sample")
    can_read = formats.is_ids(text) or not results.no_tokenizer(sides.reader(model))
    if given and not model.missing and can_read:
        formats.not_empty(text, "--text")
        formats.filled(text)
        reader = sides.reader(model)
        corpus.documents(reader, text, given.get("documents", 0), given.get("tokens", 0))
    return given if side == sides.AUTO else given | {sides.OPTION.name: side}


def trace_(arguments):
    """minitx trace MODEL TEXT"""
    text = text_of(arguments.text)
    if arguments.save:
        results.writable(Path(arguments.save).parent)
    model = minitx.load(weights.find(arguments.model))
    keep = arguments.keep and [point(name) for name in arguments.keep.split(",")]
    source = arguments.source and text_of(arguments.source)
    estimate = minitx.cost(model, text, keep, source=source)
    start = time.monotonic()
    trace = minitx.run(model, text, keep, source=source)
    seconds = time.monotonic() - start
    if arguments.save:  # first: whoever reads the table may stop before its end
        save(trace, Path(arguments.save))
    print_tokens(model, "tokens", trace.tokens)
    if trace.source is not None:
        print_tokens(model.encoder, "tokens of the source", trace.source)
    print()
    print_points(trace)
    print(
        f"\n{trace.nbytes / 1e6:.3f} MB recorded in {seconds:.3f} s"
        f" (estimated beforehand: {estimate / 1e6:.3f} MB)"
    )
    if arguments.save:
        print(f"{arguments.save} written")


def print_tokens(model, what, tokens):
    """A line with the number of the tokens [1 T], and their pieces."""
    print(f"{tokens.size} {what}: {' | '.join(model.tokenizer.pieces(tokens[0]))}")


def text_of(given):
    """The text that TEXT stands for: the text of a file, standard input for -, or TEXT itself.

    Raises ValueError if it is empty.
    """
    formats.valid(given, "the text")
    if given != "-" and not os.path.isfile(given):
        formats.not_empty(given, "the text")
        return given
    text = corpus.whole_text(given)
    formats.not_empty(text, f"the text {given!r}")
    return text


def print_points(trace):
    """A line for each recorded point: its axes, shape, layers, size, mean and meaning."""
    print(f"{'point':16} {'axes':9} {'shape':18} {'layers':>6} {'kB':>9} {'mean |x|':>10}  meaning")
    for name, (axes, meaning, *_) in minitx.POINTS.items():
        arrays = [x for key, x in trace.items() if name in (key, key[0])]
        if not arrays:
            continue
        shape = " ".join(map(str, arrays[0].shape))
        size = sum(x.nbytes for x in arrays) / 1e3
        mean = np.mean([np.abs(x[np.isfinite(x)]).mean() for x in arrays])
        numbers = f"{len(arrays):6} {size:9.1f} {mean:10.4g}"
        print(f"{name:16} {axes:9} {shape:18} {numbers}  {meaning}")


def point(name):
    """'q' -> 'q', 'pattern.L3' -> ('pattern', 3)."""
    stem, dot, layer = name.strip().partition(".L")
    return (stem, int(layer)) if dot and layer.isdecimal() else name.strip()


def save(trace, path):
    """Write tokens, valid, source and the recorded arrays, named as for --keep."""
    named = {} if trace.source is None else {"source": trace.source}
    for key, x in trace.items():
        name = key if isinstance(key, str) else f"{key[0]}.L{key[1]}"
        named[name] = x
    arrays = io.BytesIO()
    np.savez(arrays, tokens=trace.tokens, valid=trace.valid, **named)
    results.write(path, arrays.getvalue())


def explore_(arguments):
    """minitx explore MODEL TEXT"""
    start = time.monotonic()
    text = text_of(arguments.text)
    page = folder(arguments, "explore") / "explore.html"
    model, name = load(arguments.model), arguments.model
    target = arguments.target and text_of(arguments.target)
    beside = ()
    if arguments.beside or arguments.beside_model:
        other = arguments.beside_model or name
        second = load(other) if arguments.beside_model else model
        beside = second, other, text_of(arguments.beside or arguments.text)
    given = arguments.words, target, beside, arguments.attribution
    megabytes = explore.write(model, name, text, page, *given) / 1e6
    seconds = time.monotonic() - start
    print(f"{page} written: {megabytes:.2f} MB in {seconds:.1f} s; open it in a browser")


def serve_(arguments):
    """minitx serve MODEL [MODEL ...]"""
    try:
        from .live import runs, server
    except ImportError as error:
        package = error.name.partition(".")[0]
        raise ValueError(f"minitx serve needs {package}: pip install 'minitx[live]'") from None
    models = {name: load(name) for name in arguments.models}
    text = None if arguments.text is None else text_of(arguments.text)
    kept = runs.Runs(models, attribution=arguments.attribution)
    server.serve(kept, arguments.port, text, not arguments.no_browser)


def tune_(arguments):
    """minitx tune MODEL"""
    start = time.monotonic()
    given = own_options(training.EXPERIMENT, arguments)
    out = folder(arguments, "tune")
    with progress_beside(arguments.json):
        record = training.tune(arguments.model, out, arguments.resume, **given)
    if arguments.json:
        print(results.as_json(record))
        return
    first, last = record["held_out"][0], record["held_out"][-1]
    print(
        f"held-out loss {first['loss']:.4f} nats before, {last['loss']:.4f} after {last['step']} "
        f"steps; {len(record['learned'])} arrays learned"
    )
    print(f"{out} written in {time.monotonic() - start:.1f} s: load it as any model")


def toy_(arguments):
    """minitx toy"""
    experiment = recurrent.EXPERIMENT
    options = own_options(experiment, arguments)
    out = results.writable(arguments.out or Path("out") / "toy")
    result = recurrent.run(**options)
    result.save(out, arguments.format)
    if arguments.json:
        print((out / f"{experiment.name}.json").read_text(encoding="utf-8"), end="")
        return
    print(f"{experiment.question} {results.sentence(result.answer)}\n\n{result.says}\n")
    for number in result.headline.values():
        print(headline(number))
    print(f"{out / experiment.name}.{arguments.format} .npz .json written")


def lesson_(arguments):
    """minitx lesson N"""
    from minitx.lessons import command

    if arguments.notebook is not None:
        results.writable(Path(arguments.notebook).parent)
    where = {"out": arguments.out, "browser": not arguments.no_browser}
    command.run(arguments.n, arguments.lang, arguments.notebook, **where)


def decode_(arguments):
    """minitx decode MODEL TEXT"""
    with_steps = arguments.steps or arguments.out is not None or arguments.json
    if with_steps and arguments.beams != 1:
        raise ValueError(f"--beams {arguments.beams}: steps are those of one beam, greedy decoding")
    if arguments.out is not None:
        decode.check_file(arguments.out)
    if (arguments.text is None) == (arguments.ids is None):
        raise ValueError("wanted a TEXT or --ids FILE to decode, one of them")
    text = None if arguments.text is None else text_of(arguments.text)
    model = minitx.load(weights.find(arguments.model))
    decoding.check(model, arguments.layer, arguments.head)
    source = ids_of(model, arguments.ids) if text is None else model.encoder.tokenizer.encode(text)
    if with_steps:
        show_steps(arguments, model, source)
        return
    width = {"num_beams": arguments.beams, "length_penalty": arguments.length_penalty}
    row = minitx.generate(model, n=arguments.n, source=source, **width)
    print(decode.text_of(model, row[1:]))


def ids_of(model, file):
    """The first line of a file of token ids, as the source of an encoder-decoder."""
    lines = ids.lines(f"{formats.IDS}{file}", model.encoder.config)
    first = next(lines, None)
    if first is None:
        raise ValueError(f"--ids {file} has no token ids")
    return first.tokens


def show_steps(arguments, model, source):
    """Print and draw each step of greedy decoding."""
    where = {"layer": arguments.layer, "head": arguments.head}
    decoded = decoding.steps(model, source, arguments.n, **where)
    text = decode.text_of(model, decoded.said)
    if arguments.out is not None:
        title = decode.titled(arguments.model, model.config, **where)
        decode.write(decoded, title, arguments.out)
    if arguments.json:
        print(results.as_json(decode.record(decoded, text)))
        return
    print(text)
    if arguments.steps:
        print(f"\n{decode.table(decoded)}\n\n{decode.says(decoding.naive(decoded))}")
    if arguments.out is not None:
        print(f"{arguments.out} written")


def record_(arguments):
    """minitx record MODEL"""
    given = {name: getattr(arguments, name) for name in record.How._fields}
    given["points"] = given["points"] and given["points"].split(",")
    path = Path(arguments.out)
    recorded, size = record.make(weights.find(arguments.model), path, record.How(**given))
    n, points = len(recorded.batches), sum(map(len, recorded.arrays))
    print(f"{path} written: {n} batches, {points} arrays, {size / 1e6:.2f} MB")
    command = shlex.join(["minitx", "verify", arguments.model, str(path)])
    print(f"in CI, without torch: {command}")


def verify_(arguments):
    """minitx verify MODEL REFERENCE"""
    if arguments.junit:
        results.writable(Path(arguments.junit).parent)
    outcome, moved = compared(arguments)
    if arguments.junit:
        results.write(Path(arguments.junit), junit.xml(outcome, arguments.model))
    return show_parity(outcome, moved, arguments.json)


def compared(arguments):
    """(the Parity of a model with a reference file, None) or with another model, and its weights.

    The second are the weights that moved.
    """
    if Path(arguments.reference).is_file():
        recorded = reference.read_file(arguments.reference)
        model = minitx.load(weights.find(arguments.model), arguments.dtype)
        return parity.verify(model, recorded, arguments.bound), None
    names = arguments.model, arguments.reference
    both = [minitx.load(weights.find(name), arguments.dtype) for name in names]
    return models.verify(*both, text=arguments.text, bound=arguments.bound)


def show_parity(outcome, moved, in_json):
    """Print a Parity, and of two models the weights that moved; 0 if all is equal."""
    if in_json:
        stated = [entry._asdict() for entry in moved or []]
        print(results.as_json(parity.as_dict(outcome) | {"moved": stated}))
    else:
        print(f"{parity.table(outcome)}\n\n{parity.says(outcome)}", *outcome.notes, sep="\n")
        if moved is not None:
            print(models.says(moved))
    return 0 if outcome.agrees else 1


def fetch_(arguments):
    """minitx fetch MODEL"""
    print(weights.fetch(arguments.model, arguments.revision))


def doctor_(arguments):
    """minitx doctor"""
    facts, measured = doctor.describe(), doctor.measure()
    if arguments.json:
        warnings = advice.advice(facts, measured)
        record = {"facts": facts, "measured": measured, "advice": warnings}
        print(json.dumps(record, indent=1))
    else:
        print(advice.text(facts, measured))
