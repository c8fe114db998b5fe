"""`minitx published`: compare published values with a model's."""

from ..machine import escapes
from ..machine.files import as_json, write
from ..pages import published
from ..running import single
from . import every_experiment, inputs, output


def declare(commands):
    """Its flags, with one for each text that a number was published on."""
    about = "compare published values with this model's"
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
    with output.progress_beside(arguments.json):
        outcomes = published.outcomes(name, model, options, texts, out, arguments.resume)
    rows = published.rows(name, model, outcomes)
    record, table = as_json(rows), published.markdown(rows)
    write(out / "published.json", record + "\n")
    title = escapes.in_markdown(name)
    write(out / "published.md", f"# {title}\n\n{published.tally(rows)}\n\n{table}\n")
    if arguments.json:
        print(record)
    else:
        print(f"\n{table}\n\n{published.tally(rows)}")
        print(output.written(f"{out / 'published'}.md .json"))
    is_refuted = arguments.strict and any(row["verdict"] == "fail" for row in rows)
    return 1 if is_refuted or single.failed(outcomes) else 0
