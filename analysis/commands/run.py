"""`minitx run`: one experiment on one model, or several that share their passes over a text."""

import json
import sys
import time

from ..contract import registry, wording
from ..machine.files import as_json
from ..machine.language import filled, translated
from ..running import many, single
from . import flags, inputs, output

SEVERAL = "several, separated by commas (profiles,lags,cca), in one pass over the documents"


def declare(commands):
    """`run`, with a command for each experiment."""
    about = f"one experiment on one model: figure, numbers, settings; or {SEVERAL}"
    about = translated(about)
    top = commands.add_parser("run", help=about, description=about)
    names = top.add_subparsers(required=True, metavar="EXPERIMENT")
    top.set_defaults(names=names)
    for experiment in registry.EXPERIMENTS.values():
        flags.command(names, experiment.name, run, experiment.question, "MODEL")


def of_the_experiment(commands, argv):
    """The flags of the experiment that these arguments name, without arguments of all."""
    for name, command in commands.choices["run"].get_default("names").choices.items():
        if name in argv or not argv:
            of_run(command, registry.get(name))


def declare_several(commands, argv):
    """`run A,B,C`, for the experiments that these arguments name."""
    if argv[:1] != ["run"] or "," not in "".join(argv[1:2]):
        return
    experiments = [registry.get(name) for name in argv[1].split(",")]
    names = commands.choices["run"].get_default("names")
    command = flags.command(names, argv[1], run_several, SEVERAL, "MODEL")
    command.set_defaults(experiments=experiments)
    flags.of_experiments(command, experiments)
    flags.of_results(command, "out/MODEL-EXPERIMENT for each")
    flags.of_workers(command)
    flags.of_figure(command)
    flags.in_json(command)


def of_run(command, experiment):
    """What a command that runs one experiment takes beside the model."""
    command.set_defaults(experiment=experiment)
    of_further_models(command, experiment)
    flags.of_experiment(command, experiment)
    flags.of_results(command, f"out/MODEL-{experiment.name}")
    flags.of_workers(command)
    flags.of_figure(command)
    flags.in_json(command)


def of_further_models(command, experiment):
    """Models after the first, in place of --others, where an experiment takes several."""
    if any(option.name == "others" for option in experiment.options):
        about = "more of them, beside the first; the same as --others, joined by commas"
        command.add_argument("further", nargs="*", metavar="MODEL", help=about)


def check(argv):
    """Raise ValueError if the first argument of `run` is neither a flag nor experiments."""
    if not argv or argv[0].startswith("-"):
        return
    later = [name for name in argv[1:] if name in registry.EXPERIMENTS]
    names = argv[0].split(",")
    if later and not any(name in registry.EXPERIMENTS for name in names):
        raise ValueError(
            f"{later[0]} is an experiment and comes before the model: "
            f"minitx run {later[0]} {argv[0]}"
        )
    for name in names:
        registry.get(name)
    if len({*names}) < len(names):
        raise ValueError(f"{argv[0]} names an experiment twice")


def run(arguments):
    """minitx run EXPERIMENT MODEL"""
    start = time.monotonic()
    experiment = arguments.experiment
    options = flags.options_of(experiment, arguments)
    out = inputs.folder(arguments, experiment.name)
    model, name = inputs.load(arguments.model), arguments.model
    how = {"resume": arguments.resume, "format": arguments.format}
    outcome = single.produce(experiment, model, name, options, out, **how)
    if arguments.json:
        print((out / f"{experiment.name}.json").read_text(encoding="utf-8"), end="")
        return
    show(registry.of_model(experiment, model), outcome)
    print(output.written(f"{out / experiment.name}.{arguments.format} .npz .json", start))


def show(experiment, outcome):
    """Print what an experiment answers and says, and its numbers."""
    if outcome.answer:
        print(f"{translated(experiment.question)} {wording.sentence(outcome.answer)}\n")
    if outcome.says:
        print(f"{outcome.says}\n")
    for number in outcome.headline.values():
        print(output.headline(number))


def run_several(arguments):
    """minitx run A,B,C MODEL"""
    start = time.monotonic()
    name = arguments.model
    jobs = []
    for experiment in arguments.experiments:
        options = flags.options_of(experiment, arguments)
        out = inputs.folder(arguments, experiment.name)
        given = name, options, "", out, arguments.resume, arguments.format
        jobs.append(many.Job(experiment.name, many.function_of(experiment), *given))
    model = inputs.load(name)
    done = many.together(jobs, model)
    failures = {name: x.outcome for name, x in done.items() if isinstance(x.outcome, many.Failure)}
    for failed, failure in failures.items():
        print(f"minitx: {failed}: {failure.reason}", file=sys.stderr)
    finished = [job for job in jobs if job.experiment not in failures]
    if arguments.json:
        paths = {job.experiment: job.out / f"{job.experiment}.json" for job in finished}
        record = {name: json.loads(path.read_text("utf-8")) for name, path in paths.items()}
        print(as_json(record))
        return 2 if failures else 0
    for job in finished:
        asked = registry.of_model(registry.get(job.experiment), model)
        show(asked, done[job.experiment].outcome)
        files = f"{job.out / job.experiment}.{arguments.format} .npz .json"
        print(f"{output.written(files)}\n")
    numbers = {"n": len(finished), "all": len(jobs), "seconds": time.monotonic() - start}
    print(filled("{n} of {all} in {seconds:.1f} s", **numbers))
    return 2 if failures else 0
