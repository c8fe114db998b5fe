"""`minitx doctor`: how fast NumPy is on this machine, and what holds it back."""

import json

from ..machine import advice, doctor
from . import flags


def declare(commands):
    """Its flags."""
    about = "how fast NumPy is on this machine, and what holds it back"
    command = flags.command(commands, "doctor", run, about)
    flags.in_json(command)


def run(arguments):
    """minitx doctor"""
    facts, measured = doctor.describe(), doctor.measure()
    if arguments.json:
        warnings = advice.advice(facts, measured)
        record = {"facts": facts, "measured": measured, "advice": warnings}
        print(json.dumps(record, indent=1))
    else:
        print(advice.text(facts, measured))
