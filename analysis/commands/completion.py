"""`minitx --print-completion bash`: the script with which a shell completes commands and flags."""

import argparse

SHELLS = "bash", "zsh", "tcsh"


class Print(argparse.Action):
    """Prints the script for a shell, from the parser that `const` makes, and ends."""

    def __call__(self, parser, namespace, values, option_string=None):
        try:
            import shtab
        except ImportError:
            text = "--print-completion needs shtab: pip install 'minitx[completion]'"
            raise ValueError(text) from None
        print(shtab.complete(self.const(), shell=values))
        parser.exit()


def declare(parser, whole):
    """Its flag; whole: makes the parser with all flags of all commands."""
    about = "print a script that completes commands and flags in this shell"
    parser.add_argument("--print-completion", action=Print, choices=SHELLS, const=whole, help=about)
