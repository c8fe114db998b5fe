"""`minitx doctor`: how fast NumPy is on this machine, and what holds it back."""

import json
import sys

from minitx.kernels import TILE

from ..machine import advice, doctor, inventory
from . import flags


def declare(commands):
    """Its flags."""
    about = "how fast NumPy is on this machine, and what holds it back"
    command = flags.command(commands, "doctor", run, about)
    flags.in_json(command)


def run(arguments):
    """minitx doctor"""
    facts = doctor.describe()
    facts["tile"] = TILE
    is_mac = sys.platform == "darwin"
    facts["caches"] = inventory.mac_caches(doctor.sysctl) if is_mac else inventory.caches()
    measured = doctor.measure()
    measured["others"] = inventory.rates()
    if arguments.json:
        warnings = advice.advice(facts, measured)
        record = {"facts": facts, "measured": measured, "advice": warnings}
        print(json.dumps(record, indent=1))
    else:
        print(advice.text(facts, measured))
