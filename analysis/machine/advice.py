"""What `minitx doctor` says: what holds NumPy back on a machine, and what to set.

Reads what `doctor` measured and touches nothing else, so that any machine can be described to it.
Order: tables, what a processor should reach, the warnings, the text.
"""

import re
import textwrap

from .doctor import LIBRARIES, PINS, THREADS

# What the kernels of OpenBLAS use, and float32 operations per cycle of a core that runs them at
# their best; None where that depends on the processor, as it does for kernels without fused
# multiply-add.
KERNELS = {
    name: (vectors, cycle)
    for names, vectors, cycle in (
        ("skylakex cooperlake sapphirerapids", "avx512", 64),
        ("haswell zen", "avx2", 32),
        ("excavator", "avx2", None),
        ("sandybridge bulldozer piledriver steamroller", "avx", None),
        ("nehalem katmai prescott core2 penryn dunnington barcelona bobcat atom", "sse", None),
        ("neoversen1", "neon", 16),
        ("neoversev1", "sve", 32),
    )
    for name in names.split()
}
# kernels that use all of such a processor
TRY = {"avx512": "SkylakeX", "avx2": "Haswell", "avx": "Sandybridge"}
WIDTHS = ("sse", "avx", "avx2", "avx512")

# Processors with fewer units than their instructions suggest, by vendor, family, model and name:
# operations a cycle.
NARROW = (
    (r"AuthenticAMD 23 (\d|[1-3]\d|4[0-7]) ", 16),  # Zen 1
    (r"AuthenticAMD 25 ", 32),  # Zen 3 and 4
    (r"AuthenticAMD 26 (3[2-9]|4[0-7]|9[6-9]) ", 32),  # Zen 5 of laptops
    (r"GenuineIntel 6 (102|125|126|140|141|167) ", 32),  # AVX-512 of laptops and desktops
    (r"GenuineIntel 6 85 .*(Bronze|Silver|Gold 5)", 32),  # servers with one unit of two
)

NOTICED = 1.2  # times faster, from which it is reported: repeated runs differ by less
PLAIN = 15  # GFLOP/s of one thread that only an optimised BLAS reaches
NOT_MEASURED = dict.fromkeys(("busy", "all", "one", "cores", "unpinned"))


def per_cycle(facts, kernels):
    """float32 operations per cycle of a core with these kernels; None if unknown."""
    _, most = KERNELS.get(kernels.lower(), ("", None))
    if most is None:
        return None
    processor = f"{facts['family']} {facts['processor']}"
    narrow = [units for pattern, units in NARROW if re.match(pattern, processor)]
    return min([most, *narrow])


def room(facts):
    """Threads that can run at once: one a core, or fewer if a container allows fewer cores."""
    return max(1, min(facts["cores"], int(facts["quota"] or facts["cores"])))


def expected(facts, kernels, threads):
    """GFLOP/s of this number of threads at the clock that the system states.

    None if the clock, the kernels or the threads are unknown.
    """
    cycle, clock = per_cycle(facts, kernels), facts["clock"]
    if not (cycle and clock and threads):
        return None
    cores = min(facts["physical"] or facts["cores"], facts["quota"] or float("inf"))
    return cycle * clock * min(threads, cores)


def advice(facts, measured):
    """What holds NumPy back here and what to set: a list of texts, empty if nothing is known.

    facts: from `describe`; measured: from `measure`, or NOT_MEASURED.
    """
    texts = [warning(facts, measured) for warning in WARNINGS]
    return [text for text in texts if text]


def pinned(facts, measured):
    """The environment pins kernels or instructions that are not measured to be the faster ones."""
    pins = {name: value for name, value in facts["environment"].items() if name in PINS}
    now, free = measured["one"] or measured["all"], measured["unpinned"]
    if not pins or (now and free and free["gflops"] * NOTICED < now["gflops"]):
        return None
    if now and free:
        slower = free["gflops"] > NOTICED * now["gflops"] or now["tanh"] > NOTICED * free["tanh"]
        effect = "holds NumPy back" if slower else "makes no difference that could be measured"
        evidence = f", on one thread: {_speed(now)}; without it {_speed(free)}"
    elif narrower(facts["kernels"], facts["vectors"]):
        effect = "holds NumPy back"
        evidence = f": {facts['kernels']} kernels on a processor with {facts['vectors']}"
    else:
        effect, evidence = "may hold NumPy back", ""
    settings = " ".join(f"{name}={value}" for name, value in pins.items())
    remedy = f"To remove it: unset {' '.join(pins)}"
    return f"{settings} in the environment {effect}{evidence}. {remedy}"


def _speed(rates):
    """Kernels and rates in one line."""
    kernels = f"{rates['kernels']} kernels, " if rates["kernels"] else ""
    return f"{kernels}{rates['gflops']:.3g} GFLOP/s, {rates['tanh']:.2g} ns for a tanh"


def narrower(kernels, vectors):
    """Whether these kernels of OpenBLAS are known to use narrower registers than `vectors`."""
    used = KERNELS.get(kernels.lower(), ("",))[0]
    return used in WIDTHS and vectors in WIDTHS and WIDTHS.index(used) < WIDTHS.index(vectors)


def outdated(facts, measured):
    """OpenBLAS, which chooses its kernels itself, does not know this processor."""
    kernels, vectors = facts["kernels"], facts["vectors"]
    if "OPENBLAS_CORETYPE" in facts["environment"] or not narrower(kernels, vectors):
        return None
    return (
        f"OpenBLAS {facts['version']} uses its {kernels} kernels on a processor with {vectors}. "
        "A newer NumPy may know this processor; "
        f"or try OPENBLAS_CORETYPE={TRY[vectors]} and look again"
    )


def unoptimised(facts, measured):
    """No BLAS that is known, or measured, to be fast."""
    rate = (measured["one"] or measured["all"] or {}).get("gflops")
    if facts["blas"] in [name for name, *_ in LIBRARIES] or (rate or 0) > PLAIN:
        return None
    evidence = f" and {rate:.2g} GFLOP/s were measured" if rate else ""
    return (
        "NumPy seems to have no optimised BLAS: "
        f"NumPy calls it {facts['blas']!r}{evidence}. "
        "The wheels of NumPy bring one: pip install --force-reinstall numpy; "
        "on Debian and Ubuntu: apt install libopenblas0"
    )


def oversubscribed(facts, measured):
    """More threads than can run at once."""
    if (facts["threads"] or 0) <= room(facts):
        return None
    limit = f" (the container may use {facts['quota']:g} of them)" if facts["quota"] else ""
    return (
        f"{facts['threads']} threads on {facts['cores']} cores{limit} wait for each other. "
        f"Set {variable(facts)}={room(facts)}"
    )


def siblings(facts, measured):
    """One thread a core is faster than one for each of its hardware threads."""
    now, fewer = measured["all"], measured["cores"]
    if not (now and fewer) or fewer["gflops"] < NOTICED * now["gflops"]:
        return None
    return (
        f"{fewer['threads']} threads, one for each core, are faster than {now['threads']}: "
        f"{fewer['gflops']:.3g} GFLOP/s instead of {now['gflops']:.3g}. "
        f"Set {variable(facts)}={facts['physical']}"
    )


def idle(facts, measured):
    """Fewer threads than cores."""
    cores = min(room(facts), facts["physical"] or facts["cores"])
    if (facts["threads"] or cores) >= cores:
        return None
    others = {name for _, name, *_ in LIBRARIES} - {variable(facts), "OMP_NUM_THREADS"}
    names = [name for name in THREADS if name in facts["environment"] and name not in others]
    remedy = f"for one alone try {variable(facts)}={cores}"
    if names:
        remedy = f"for one alone: unset {' '.join(names)}"
    return (
        f"{facts['threads']} of {cores} cores are used: "
        f"this is right if several processes run side by side; {remedy}"
    )


def busy(facts, measured):
    """Other work on the same cores.

    Where it was not measured the load average is taken, which forgets slowly.
    """
    now, slack = measured["busy"], 0.5
    if now is None:
        now, slack = facts["load"] or 0, facts["cores"] / 2
    threads = min(facts["threads"] or facts["cores"], facts["cores"])
    if now + threads <= facts["cores"] + slack:
        return None
    free = max(1, int(facts["cores"] - now + 0.5))
    remedy = f", or leave it its cores: {variable(facts)}={free}" if free < threads else ""
    return (
        f"Other work keeps {now:.1f} of {facts['cores']} cores busy, "
        f"and a product is as slow as its slowest thread. Wait for it to end{remedy}"
    )


def uneven(facts, measured):
    """Threads that bring less than half of what they might."""
    now, one_thread = measured["all"], measured["one"]
    cores = facts["physical"] or facts["cores"]
    threads = min(facts["threads"] or 1, cores, facts["quota"] or facts["cores"])
    if not (now and one_thread) or now["gflops"] > one_thread["gflops"] * threads / 2:
        return None
    speedup = now["gflops"] / one_thread["gflops"]
    return (
        f"{facts['threads']} threads are only {speedup:.2g} times as fast as one. "
        f"If other work, or other guests of the machine, hold the cores: {variable(facts)}=1"
    )


WARNINGS = pinned, outdated, unoptimised, oversubscribed, siblings, idle, busy, uneven


def variable(facts):
    """The environment variable that sets the threads of this BLAS."""
    return next((name for blas, name, *_ in LIBRARIES if blas == facts["blas"]), "OMP_NUM_THREADS")


CASES = {
    "one": "threads: {}",
    "all": "threads: {}",
    "cores": "one a core: {}",
    "unpinned": "nothing pinned: {}",
}
ROWS = (
    ("GFLOP/s, measured", "gflops", ".0f"),
    ("GB/s, row times matrix", "bandwidth", ".0f"),
    ("ns for a tanh", "tanh", ".2f"),
)
COMMAND_LINE = (
    "This is what programs of your own get. The commands of minitx run OpenBLAS on one thread, "
    "as their documents run side by side, unless OPENBLAS_NUM_THREADS is set."
)


def text(facts, measured):
    """Facts, rates and advice, to be read by people."""
    lines = []
    for name, row in described(facts, measured).items():
        lines.append(f"{name:13}{', '.join(filter(None, row))}")
    warnings = [_wrapped(f"! {warning}.") for warning in advice(facts, measured)]
    lines += ["", *table(facts, measured), ""]
    lines += [*(warnings or ["Nothing to mend."]), "", _wrapped(COMMAND_LINE)]
    return "\n".join(lines)


def described(facts, measured):
    """What is known of the machine: {name: texts}, "" for what is unknown."""
    rows = {"processor": [facts["processor"], facts["vectors"]], "cores": _cores(facts)}
    rows["memory"] = [f"{facts['memory'] / 1e9:.0f} GB" if facts["memory"] else "unknown"]
    kernels = f"kernels: {facts['kernels'] or 'unknown'}"
    threads = f"threads: {facts['threads'] or 'unknown'}"
    rows["BLAS"] = [f"{facts['blas']} {facts['version']}".strip(), kernels, threads]
    variables = [f"{name}={value}" for name, value in facts["environment"].items()]
    rows["environment"] = variables or ["nothing set"]
    loops = f"its own loops use {' '.join(facts['simd']) or 'its baseline'}"
    rows["NumPy"] = [facts["numpy"], loops]
    rows["Python"] = [facts["python"], facts["platform"]]
    rows["other work"] = _other_work(facts, measured)
    return rows


def _cores(facts):
    """How many cores there are, how many of them share no units, and what a container allows."""
    cores, physical, quota = facts["cores"], facts["physical"], facts["quota"]
    texts = [str(cores)]
    if physical not in (None, cores):
        texts.append(f"{physical} that share no units")
    if quota:
        texts.append(f"{quota:g} allowed by the container")
    return texts


def _other_work(facts, measured):
    """How busy the cores were, and the load average."""
    texts = ["unknown"]
    if measured["busy"] is not None:
        texts = [f"{measured['busy']:.1f} of {facts['cores']} cores busy"]
    if facts["load"] is not None:
        texts.append(f"load {facts['load']:.1f}")
    return texts


def _wrapped(paragraph):
    """A paragraph in lines of at most 100 characters; those of a warning are indented."""
    return textwrap.fill(
        paragraph,
        100,
        subsequent_indent="  " if paragraph.startswith("!") else "",
        break_on_hyphens=False,
        break_long_words=False,
    )


def table(facts, measured):
    """Lines: the rates, a column for each case, and what the processor's clock would give."""
    cases = {case: measured[case] for case in CASES if measured[case]}
    if not cases:
        return ["nothing could be measured"]
    titles = [CASES[case].format(rates["threads"] or case) for case, rates in cases.items()]
    goals = [expected(facts, rates["kernels"], rates["threads"]) for rates in cases.values()]
    texts = ["unknown" if goal is None else f"{goal:.0f}" for goal in goals]
    rows = [["", *titles], ["GFLOP/s, expected", *texts]]
    for name, key, digits in ROWS:
        rows.append([name, *(format(rates[key], digits) for rates in cases.values())])
    lines = [f"{row[0]:30}" + "".join(f"{cell:>18}" for cell in row[1:]) for row in rows]
    clock = "the clock, not known here"
    if facts["clock"]:
        clock = f"{facts['clock']:.2f} GHz, as the system states"
    formula = f"cores x operations a cycle x {clock}"
    return [*lines, f"(expected: {formula}; processors may run above it)"]
