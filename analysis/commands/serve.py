"""`minitx serve`: a live page."""

from ..contract import options
from ..texts import formats
from . import flags, inputs

PORT = 8642  # of the live page
CHANGES = (
    "On the page, `Change the model` switches off heads, MLPs and layers, sets positions to zero, "
    "shuffles or shifts them, and masks attention by distance. `show the Python` shows the code "
    "that does the same."
)


def declare(commands):
    """`serve`, which takes several models."""
    about = "a live page: switch heads off, change positions, and see the effect"
    command = flags.command(commands, "serve", run, about, epilog=CHANGES)
    about = "bundled name, folder, or hub id"
    command.add_argument("models", nargs="+", metavar="MODEL", help=about)
    about = f"what the page starts with: {options.ITSELF}"
    command.add_argument("--text", help=about)
    flags.of_second(command, of="--text")
    flags.of_column(command)
    flags.of_split(command, of="a text of the page")
    about = f"where it listens on this machine ({PORT}; 0: a free one)"
    command.add_argument("--port", type=int, default=PORT, metavar="N", help=about)
    command.add_argument("--no-browser", action="store_true", help="open no browser")
    about = "also show what each token and head contributes to a prediction (takes longer)"
    command.add_argument("--attribution", action="store_true", help=about)


def run(arguments):
    """minitx serve MODEL [MODEL ...]"""
    try:
        from ..live import runs, server
    except ImportError as error:
        package = error.name.partition(".")[0]
        raise ValueError(f"minitx serve needs {package}: pip install 'minitx[live]'") from None
    for name in filter(formats.is_literal, arguments.models):
        raise ValueError(
            f"no model {name!r:.80}; a text goes to --text: minitx serve MODEL --text 'A dog ran.'"
        )
    models = {name: inputs.load(name) for name in arguments.models}
    if arguments.second is not None and arguments.text is None:
        raise ValueError("--second is read together with --text, which is not given")
    text = None
    if arguments.text is not None:
        given = inputs.text_of(arguments.text, "--text", arguments.column)
        text = inputs.with_second(given, arguments.second)
    kept = runs.Runs(models, attribution=arguments.attribution, split=arguments.split)
    server.serve(kept, arguments.port, text, not arguments.no_browser)
