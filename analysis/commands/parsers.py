"""The parser of the command line, and the language in which it tells."""

import argparse
import contextlib
import shlex

from ..contract.options import near_matches
from ..contract.registry import EXPERIMENTS
from ..machine import language
from ..machine.language import translated

OF_TEXTS = "text", "sentence"  # flags that take a text


class Parser(argparse.ArgumentParser):
    """A parser that takes flags by their whole names only; its commands are such parsers too.

    Helps are shown in the current language; argparse's own words too, within `in_language`.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, allow_abbrev=False, **options)

    def add_argument(self, *names, **options):
        if options.get("help"):
            options["help"] = translated(options["help"])
        return super().add_argument(*names, **options)

    def _check_value(self, action, value):
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = near_matches(str(value), action.choices)
            if value in EXPERIMENTS and "run" in action.choices:
                near = f"; it is an experiment: minitx run {value}"
            error.message += near
            raise

    def parse_known_args(self, args=None, namespace=None):
        """As argparse's; a flag that is close to one of this command is told with it."""
        known, extra = super().parse_known_args(args, namespace)
        flags = [word.partition("=")[0] for word in extra if word.startswith("--")]
        for flag in flags:
            if near := near_matches(flag, self._option_string_actions, 0.75):
                self.error(translated("unrecognized arguments: %s") % flag + near)
        return known, extra

    def parse_args(self, args=None, namespace=None):
        """The arguments; raises ValueError for a text that stands where none is read."""
        known, extra = self.parse_known_args(args, namespace)
        flags = [f"--{name}" for name in OF_TEXTS if hasattr(known, name)]
        if extra and flags and not any(each.startswith("-") for each in extra):
            raise ValueError(
                f"unrecognized arguments: {shlex.join(extra):.200}; a text goes to {flags[0]}: "
                f"{flags[0]} 'A dog ran.'"
            )
        return super().parse_args(args, namespace)


@contextlib.contextmanager
def in_language(tongue):
    """Context in which texts are in this language, with those of argparse.

    argparse asks gettext, which reads no .po file; the catalogue has its texts with the others.
    """
    before = argparse._, argparse.ngettext
    argparse._, argparse.ngettext = translated, language.plural
    try:
        with language.using(tongue):
            yield
    finally:
        argparse._, argparse.ngettext = before


def of_language(parser):
    """The flag that names the language of what people read; see `language_of`."""
    about = "language of texts, help and pages (MINITX_LANG, or the locale's)"
    parser.add_argument("--lang", choices=language.LANGUAGES, default=None, help=about)


def language_of(argv):
    """The language that these arguments name, known before a parser is made; else the user's."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--lang", nargs="?")  # without a value the parser itself refuses it
    given = first.parse_known_args(argv)[0].lang
    return given if given in language.LANGUAGES else language.of_environment()
