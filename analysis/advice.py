"""What `minitx doctor` says: what holds NumPy back on a machine, each with what to set, and the page around it.

Reads what `doctor` found and touches nothing else, so that any machine can be described to it. Order: tables, what a
processor should reach, the warnings, the text.
"""

import re
import textwrap

from .doctor import LIBRARIES, PINS, THREADS

# What the kernels of OpenBLAS use, and float32 operations per cycle of a core that runs them at their best. Not
# stated where that hangs on the processor: kernels without fused multiply-add depend on its separate units.
KERNELS = {name: (vectors, cycle) for names, vectors, cycle in (
    ("skylakex cooperlake sapphirerapids", "avx512", 64), ("haswell zen", "avx2", 32), ("excavator", "avx2", None),
    ("sandybridge bulldozer piledriver steamroller", "avx", None),
    ("nehalem katmai prescott core2 penryn dunnington barcelona bobcat atom", "sse", None),
    ("neoversen1", "neon", 16), ("neoversev1", "sve", 32)) for name in names.split()}
TRY = {"avx512": "SkylakeX", "avx2": "Haswell", "avx": "Sandybridge"}  # kernels that use all of such a processor
WIDTHS = ("sse", "avx", "avx2", "avx512")

# Processors with fewer units than their instructions suggest, by vendor, family, model and name: operations a cycle.
NARROW = ((r"AuthenticAMD 23 (\d|[1-3]\d|4[0-7]) ", 16),                               # Zen 1
          (r"AuthenticAMD 25 ", 32), (r"AuthenticAMD 26 (3[2-9]|4[0-7]|9[6-9]) ", 32),  # Zen 3 and 4; Zen 5 of laptops
          (r"GenuineIntel 6 (102|125|126|140|141|167) ", 32),                          # AVX-512 of laptops and desktops
          (r"GenuineIntel 6 85 .*(Bronze|Silver|Gold 5)", 32))                         # servers with one unit of two

NOTICED = 1.2   # times faster, before it is worth a word: repeated runs differ by less
PLAIN = 15      # GFLOP/s of one thread that only an optimised BLAS reaches
NOT_MEASURED = dict.fromkeys(("busy", "all", "one", "cores", "unpinned"))


def per_cycle(facts, kernels):
    """float32 operations per cycle of a core with these kernels; None if unknown."""
    most = KERNELS.get(kernels.lower(), ("", None))[1]
    found = [units for pattern, units in NARROW if re.match(pattern, f"{facts['family']} {facts['processor']}")]
    return most and min([most, *found])


def room(facts):
    """Threads that can run at once: cores, or what of them a container allows."""
    return max(1, min(facts["cores"], int(facts["quota"] or facts["cores"])))


def expected(facts, kernels, threads):
    """GFLOP/s of so many threads at the clock that the system states; None if clock, kernels or threads are unknown."""
    cycle, cores = per_cycle(facts, kernels), min(facts["physical"] or facts["cores"], facts["quota"] or float("inf"))
    return cycle and facts["clock"] and threads and cycle * facts["clock"] * min(threads, cores)


def advice(facts, measured):
    """What holds NumPy back here, each with what to set: a list of texts, empty if nothing is known to.

    facts: from `describe`; measured: from `measure`, or NOT_MEASURED.
    """
    return [said for warning in WARNINGS if (said := warning(facts, measured))]


def pinned(facts, measured):
    """The environment chooses kernels or instructions; said unless they are measured to be the faster ones."""
    pins = {name: value for name, value in facts["environment"].items() if name in PINS}
    now, free = measured["one"] or measured["all"], measured["unpinned"]
    if not pins or (now and free and free["gflops"] * NOTICED < now["gflops"]):
        return None
    says, tried = "may hold NumPy back", ""
    if now and free:
        slower = free["gflops"] > NOTICED * now["gflops"] or now["tanh"] > NOTICED * free["tanh"]
        says = "holds NumPy back" if slower else "makes no difference that could be measured"
        tried = f", on one thread: {_speed(now)}; without it {_speed(free)}"
    elif narrower(facts["kernels"], facts["vectors"]):
        says, tried = "holds NumPy back", f": {facts['kernels']} kernels on a processor with {facts['vectors']}"
    listed = " ".join(f"{name}={value}" for name, value in pins.items())
    return f"{listed} in the environment {says}{tried}. To be rid of it: unset {' '.join(pins)}"


def _speed(rates):
    kernels = f"{rates['kernels']} kernels, " if rates["kernels"] else ""
    return f"{kernels}{rates['gflops']:.3g} GFLOP/s, {rates['tanh']:.2g} ns for a tanh"


def narrower(kernels, vectors):
    """Whether these kernels of OpenBLAS are known to use narrower registers than `vectors`."""
    used = KERNELS.get(kernels.lower(), ("",))[0]
    return used in WIDTHS and vectors in WIDTHS and WIDTHS.index(used) < WIDTHS.index(vectors)


def outdated(facts, measured):
    """Left to choose, OpenBLAS does not know this processor."""
    if "OPENBLAS_CORETYPE" in facts["environment"] or not narrower(facts["kernels"], facts["vectors"]):
        return None
    return (f"OpenBLAS {facts['version']} takes its {facts['kernels']} kernels on a processor with {facts['vectors']}. "
            f"A newer NumPy may know this processor; or try OPENBLAS_CORETYPE={TRY[facts['vectors']]} and look again")


def unoptimised(facts, measured):
    """No BLAS that is known to be fast, nor one that is seen to be."""
    rate = (measured["one"] or measured["all"] or {}).get("gflops")
    if facts["blas"] in [name for name, *_ in LIBRARIES] or (rate or 0) > PLAIN:
        return None
    seen = f" and {rate:.2g} GFLOP/s were measured" if rate else ""
    return (f"NumPy seems to have no optimised BLAS: its own name for it is {facts['blas']!r}{seen}. The wheels of "
            "NumPy bring one: pip install --force-reinstall numpy; on Debian and Ubuntu: apt install libopenblas0")


def oversubscribed(facts, measured):
    """More threads than can run at once."""
    if (facts["threads"] or 0) <= room(facts):
        return None
    limit = f" (the container may use {facts['quota']:g} of them)" if facts["quota"] else ""
    return (f"{facts['threads']} threads on {facts['cores']} cores{limit} wait for each other. "
            f"Set {variable(facts)}={room(facts)}")


def siblings(facts, measured):
    """One thread a core is faster than one for each of its hardware threads."""
    now, fewer = measured["all"], measured["cores"]
    if not (now and fewer) or fewer["gflops"] < NOTICED * now["gflops"]:
        return None
    return (f"{fewer['threads']} threads, one for each core, are faster than {now['threads']}: {fewer['gflops']:.3g} "
            f"GFLOP/s instead of {now['gflops']:.3g}. Set {variable(facts)}={facts['physical']}")


def idle(facts, measured):
    """Fewer threads than cores."""
    cores = min(room(facts), facts["physical"] or facts["cores"])
    if (facts["threads"] or cores) >= cores:
        return None
    others = {name for _, name, *_ in LIBRARIES} - {variable(facts), "OMP_NUM_THREADS"}
    names = [name for name in THREADS if name in facts["environment"] and name not in others]
    remedy = f"for one alone: unset {' '.join(names)}" if names else f"for one alone try {variable(facts)}={cores}"
    return f"{facts['threads']} of {cores} cores are used: right where several processes run side by side; {remedy}"


def busy(facts, measured):
    """Other work on the same cores; the load average, which forgets slowly, where nothing else is known."""
    now, slack = measured["busy"], 0.5
    if now is None:
        now, slack = facts["load"] or 0, facts["cores"] / 2
    threads = min(facts["threads"] or facts["cores"], facts["cores"])
    if now + threads <= facts["cores"] + slack:
        return None
    free = max(1, int(facts["cores"] - now + 0.5))
    remedy = f", or leave it its cores: {variable(facts)}={free}" if free < threads else ""
    return (f"Other work keeps {now:.1f} of {facts['cores']} cores busy, and a product is as slow as its slowest "
            f"thread. Wait for it to end{remedy}")


def uneven(facts, measured):
    """Threads that bring less than half of what they might."""
    now, one = measured["all"], measured["one"]
    threads = min(facts["threads"] or 1, facts["physical"] or facts["cores"], facts["quota"] or facts["cores"])
    if not (now and one) or now["gflops"] > one["gflops"] * threads / 2:
        return None
    return (f"{facts['threads']} threads are only {now['gflops'] / one['gflops']:.2g} times as fast as one. If other "
            f"work, or other guests of the machine, hold the cores: {variable(facts)}=1")


WARNINGS = pinned, outdated, unoptimised, oversubscribed, siblings, idle, busy, uneven


def variable(facts):
    """The environment variable that sets the threads of this BLAS."""
    return next((name for blas, name, *_ in LIBRARIES if blas == facts["blas"]), "OMP_NUM_THREADS")


CASES = {"one": "threads: {}", "all": "threads: {}", "cores": "one a core: {}", "unpinned": "nothing pinned: {}"}
ROWS = (("GFLOP/s, measured", "gflops", ".0f"), ("GB/s, row times matrix", "bandwidth", ".0f"),
        ("ns for a tanh", "tanh", ".2f"))
COMMAND_LINE = ("This is what programs of your own get. The commands of minitx run OpenBLAS on one thread, as their "
                "documents run side by side, unless OPENBLAS_NUM_THREADS is set.")


def text(facts, measured):
    """Facts, rates and advice, to be read by people."""
    cores, physical, quota = facts["cores"], facts["physical"], facts["quota"]
    busy_now = "unknown" if measured["busy"] is None else f"{measured['busy']:.1f} of {cores} cores busy"
    rows = {"processor": (facts["processor"], facts["vectors"]),
            "cores": (str(cores), f"{physical} that share no units" * (physical not in (None, cores)),
                      f"{quota:g} allowed by the container" if quota else ""),
            "memory": (f"{facts['memory'] / 1e9:.0f} GB" if facts["memory"] else "unknown",),
            "BLAS": (f"{facts['blas']} {facts['version']}".strip(), f"kernels: {facts['kernels'] or 'unknown'}",
                     f"threads: {facts['threads'] or 'unknown'}"),
            "environment": [f"{name}={value}" for name, value in facts["environment"].items()] or ["nothing set"],
            "NumPy": (facts["numpy"], f"its own loops use {' '.join(facts['simd']) or 'its baseline'}"),
            "Python": (facts["python"], facts["platform"]),
            "other work": (busy_now, "" if facts["load"] is None else f"load {facts['load']:.1f}")}
    said = [_wrapped(f"! {warning}.") for warning in advice(facts, measured)] or ["Nothing to mend."]
    return "\n".join([*(f"{name:13}{', '.join(filter(None, row))}" for name, row in rows.items()), "",
                      *table(facts, measured), "", *said, "", _wrapped(COMMAND_LINE)])


def _wrapped(said):
    return textwrap.fill(said, 100, subsequent_indent="  " * said.startswith("!"), break_on_hyphens=False,
                         break_long_words=False)


def table(facts, measured):
    """Lines: what was measured, a column for each case, and what the processor's clock would give."""
    cases = {case: measured[case] for case in CASES if measured[case]}
    if not cases:
        return ["nothing could be measured"]
    rows = [["", *(CASES[case].format(x["threads"] or case) for case, x in cases.items())]]
    goals = [expected(facts, x["kernels"], x["threads"]) for x in cases.values()]
    rows += [["GFLOP/s, expected", *("unknown" if goal is None else f"{goal:.0f}" for goal in goals)]]
    rows += [[name, *(format(x[key], digits) for x in cases.values())] for name, key, digits in ROWS]
    clock = f"{facts['clock']:.2f} GHz, as the system states" if facts["clock"] else "the clock, not known here"
    return [*(f"{row[0]:30}" + "".join(f"{cell:>18}" for cell in row[1:]) for row in rows),
            f"(expected: cores x operations a cycle x {clock}; processors may run above it)"]
