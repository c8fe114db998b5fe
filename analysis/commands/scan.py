"""`minitx scan`: one prompt from every side, on one page."""

import time

from ..machine import files
from ..machine.language import translated
from ..measures import scanning
from ..pages import scan
from ..running import single
from . import flags, inputs, output


def declare(commands):
    """Its flags."""
    about = "one prompt on one page: guess, layers, tokens, parts, heads, what to ask on"
    command = flags.command(commands, "scan", run, about, "MODEL", "TEXT")
    about = "folder for scan.html (out/MODEL-scan); scan-2.html if that is there already, and so on"
    command.add_argument("--out", help=about)


def run(arguments):
    """minitx scan MODEL TEXT"""
    start = time.monotonic()
    out = files.unused(inputs.folder(arguments, "scan") / "scan.html")
    text = inputs.text_of(arguments.text)
    model, name = inputs.load(arguments.model), arguments.model
    scanned = scanning.scan(model, text)
    attributed = single.run("attribute", model, {"prompt": text})
    for heading, said in scan.words(model, scanned, attributed).items():
        print(f"{translated(heading)}: {said}\n")
    print(translated(scan.NEXT))
    for line in scan.commands(model, name, text, scanned):
        print(f"  {line}")
    files.write(out, scan.page(model, name, text, scanned, attributed))
    print(f"\n{output.written(out, start)}")
