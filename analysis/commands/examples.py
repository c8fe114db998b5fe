"""`minitx examples`: the texts in which a neuron, or a head, is largest, with their context."""

import minitx
from minitx.research.passes import reader

from ..machine.files import writable_file
from . import documents, flags, inputs, output


def declare(commands):
    """Its flags."""
    about = "texts in which a neuron or head is largest, beside tokens in random order"
    command = flags.command(commands, "examples", run, about, "MODEL")
    about = "point that is read: post.L3, z.L1, a hook of TransformerLens (post of the last layer)"
    command.add_argument("--point", metavar="POINT", help=about)
    about = "number of the neuron or head, or head,column (0)"
    command.add_argument("--feature", default="0", metavar="N", help=about)
    about = "texts to list (20)"
    command.add_argument("--n", type=int, default=20, metavar="N", help=about)
    documents.declare(command)
    command.add_argument("--out", metavar="FILE.html", help="write a page, with the histogram")


def run(arguments):
    """minitx examples MODEL"""
    if arguments.out is not None:
        writable_file(arguments.out)
    feature = feature_of(arguments.feature)
    model = reader(inputs.load(arguments.model))
    asked = "post", model.config.n_layers - 1
    if arguments.point is not None:
        asked = flags.point_of(arguments.point)
    rows = documents.of(arguments, model)
    result = minitx.top_examples(model, rows, asked, feature, arguments.n, untrained=True)
    print(result)
    if arguments.out is not None:
        result.save(arguments.out)
        print(output.written(arguments.out))


def feature_of(text):
    """ "17" -> 17, "1,3" -> (1, 3). Raises ValueError for anything else."""
    parts = text.split(",")
    if len(parts) > 2 or not all(part.strip().isdecimal() for part in parts):
        raise ValueError(f"--feature is {text!r}; wanted a number, or head,column")
    numbers = tuple(map(int, parts))
    return numbers if len(numbers) == 2 else numbers[0]
