"""The flags of commands that read whole documents, and the documents that they name."""

from ..contract import own_texts, registry
from ..texts import corpus
from . import flags


def declare(command):
    """Their flags."""
    command.add_argument("--text", metavar="TEXT", help=flags.TEXT)
    flags.of_ids(command)
    about = "documents to read, one a line or row (0: all)"
    command.add_argument("--documents", type=int, default=0, metavar="N", help=about)
    about = "tokens of a document that are read at most (0: as many as the model reads)"
    command.add_argument("--tokens", type=int, default=0, metavar="N", help=about)


def of(arguments, model):
    """The documents that were asked for, as rows of token ids."""
    given = flags.of_text(arguments)
    if arguments.text is not None:
        given["text"] = arguments.text
    elif arguments.ids is None:
        given["text"] = own_texts.text(model)
    text = registry.with_text(given, is_text=True)["text"]
    longest = arguments.tokens or model.config.n_ctx
    return corpus.texts(model, text, arguments.documents, longest)
