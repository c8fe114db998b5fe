"""`minitx decode`: generate from a source text with an encoder-decoder."""

import minitx
from minitx import weights

from ..contract import options
from ..machine.files import as_json
from ..measures import decoding
from ..pages import decode
from ..texts import formats, ids, joined
from . import flags, inputs, output


def declare(commands):
    """Its flags."""
    about = "generate from a source text with an encoder-decoder"
    command = flags.command(commands, "decode", run, about, "MODEL")
    command.add_argument("text", nargs="?", metavar="TEXT", help=options.ITSELF)
    flags.of_second(command)
    flags.of_column(command)
    about = "token ids of the source in place of TEXT: the first line of a file"
    command.add_argument("--ids", metavar="FILE", help=about)
    about = "print each step: the query's token, where it attends in the source, its best tokens"
    command.add_argument("--steps", action="store_true", help=about)
    for name, default, about in (
        ("--n", 20, "tokens to generate, at most (20)"),
        ("--beams", 1, "width of the beam search; the best continuation is printed (1)"),
        ("--layer", -1, "decoder layer whose cross-attention the steps show, from 0 (the last)"),
        ("--head", None, "head whose cross-attention the steps show (the mean over all)"),
    ):
        command.add_argument(name, type=int, default=default, metavar="N", help=about)
    about = "power of the length that beams are divided by (1.0)"
    command.add_argument("--length-penalty", type=float, default=1.0, metavar="X", help=about)
    about = "generate without the folder's settings that are not supported"
    command.add_argument("--ignore-settings", action="store_true", help=about)
    about = "draw the steps: a map of attention, .svg or .png"
    command.add_argument("--out", metavar="FILE", help=about)
    flags.in_json(command)


def run(arguments):
    """minitx decode MODEL TEXT"""
    with_steps = arguments.steps or arguments.out is not None or arguments.json
    if with_steps and arguments.beams != 1:
        raise ValueError(f"--beams {arguments.beams}: --steps shows greedy decoding, with one beam")
    if arguments.out is not None:
        decode.check_file(arguments.out)
    if (arguments.text is None) == (arguments.ids is None):
        raise ValueError("wanted a TEXT or --ids FILE to decode, one of them")
    text = source_of(arguments)
    model = minitx.load(weights.find(arguments.model))
    decoding.check(model, arguments.layer, arguments.head)
    encode = model.encoder.tokenizer.encode
    source = ids_of(model, arguments.ids) if text is None else encode(*joined.parts(text))
    if with_steps:
        show_steps(arguments, model, source)
        return
    how = {"num_beams": arguments.beams, "length_penalty": arguments.length_penalty}
    how["ignore_settings"] = arguments.ignore_settings
    row = minitx.generate(model, n=arguments.n, source=source, **how)
    print(decode.text_of(model, row[1:]))


def source_of(arguments):
    """The text of the source, or the pair of it and --second; None where ids are given."""
    if arguments.text is None and arguments.second is not None:
        raise ValueError("--second is read together with TEXT, which is not given")
    if arguments.text is None:
        return None
    text = inputs.text_of(arguments.text, column=arguments.column)
    return inputs.with_second(text, arguments.second)


def ids_of(model, file):
    """The first line of a file of token ids, as the source of an encoder-decoder."""
    lines = ids.lines(formats.Text(file, is_ids=True), model.encoder.config)
    first = next(lines, None)
    if first is None:
        raise ValueError(f"--ids {file} has no token ids")
    return first.tokens


def show_steps(arguments, model, source):
    """Print and draw each step of greedy decoding."""
    where = {"layer": arguments.layer, "head": arguments.head}
    ignored = {"ignore_settings": arguments.ignore_settings}
    decoded = decoding.steps(model, source, arguments.n, **where, **ignored)
    text = decode.text_of(model, decoded.said)
    if arguments.out is not None:
        title = decode.titled(arguments.model, model.config, **where)
        decode.write(decoded, title, arguments.out)
    if arguments.json:
        print(as_json(decode.record(decoded, text)))
        return
    print(text)
    if arguments.steps:
        print(f"\n{decode.table(decoded)}\n\n{decode.says(decoding.naive(decoded))}")
    if arguments.out is not None:
        print(output.written(arguments.out))
