"""`minitx published`: what was published, and what a model gives."""

from ..pages import published
from ..runner import escapes, results
from . import every_experiment, inputs, shown


def declare(commands):
    """Its flags, with one for each text that a number was published on."""
    about = "what was published, and what this model gives"
    command = every_experiment.declare(commands, "published", run, about)
    for text in published.TEXTS.values():
        about = f"{text.what}, for the numbers published on it"
        command.add_argument(f"--{text.flag}", metavar="TEXT", help=about)
    about = "status 1 if a claim about any model or about this checkpoint fails"
    command.add_argument("--strict", action="store_true", help=about)


def run(arguments):
    """minitx published MODEL"""
    out = inputs.folder(arguments, "published")
    model, name = inputs.load(arguments.model), arguments.model
    given = {text: getattr(arguments, spec.flag) for text, spec in published.TEXTS.items()}
    texts = {text: location for text, location in given.items() if location is not None}
    options = every_experiment.options(arguments, model)
    with shown.progress_beside(arguments.json):
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
