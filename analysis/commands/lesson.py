"""`minitx lesson`: a lesson in the browser."""

from ..machine import language
from ..machine.files import writable_file
from . import flags


def declare(commands):
    """Its flags; it takes no model."""
    about = "open a lesson in the browser; without N, list all lessons"
    command = flags.command(commands, "lesson", run, about)
    command.add_argument("n", nargs="?", type=int, metavar="N", help="its number")
    about = "write it as a notebook, .ipynb, in place of a page"
    command.add_argument("--notebook", metavar="FILE", help=about)
    about = "folder for the page where the documentation is not built (out/lessons)"
    command.add_argument("--out", help=about)
    about = "print where the page is, and open no browser"
    command.add_argument("--no-browser", action="store_true", help=about)


def run(arguments):
    """minitx lesson N"""
    from minitx.lessons import command

    if arguments.notebook is not None:
        writable_file(arguments.notebook)
    where = {"out": arguments.out, "browser": not arguments.no_browser}
    command.run(arguments.n, language.current(), arguments.notebook, **where)
