"""What `minitx doctor` says: what holds NumPy back on a machine, and what to set.

Reads what `doctor` measured and touches nothing else, so that any machine can be described to it.
"""

import re
import textwrap

from .doctor import LIBRARIES, PINS, THREADS
from .language import filled, translated

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
NOT_MEASURED = dict.fromkeys(("busy", "all", "one", "cores", "unpinned")) | {"others": {}}


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
        kind = "slower" if slower else "alike"
    elif narrower(facts["kernels"], facts["vectors"]):
        kind = "narrower"
    else:
        kind = "unknown"
    values = {"kernels": facts["kernels"], "vectors": facts["vectors"], "names": " ".join(pins)}
    values["settings"] = " ".join(f"{name}={value}" for name, value in pins.items())
    values |= {"now": now and _speed(now), "free": free and _speed(free)}
    return f"{filled(PINNED[kind], **values)} {filled(REMEDY, **values)}"


PINNED = {  # what a setting of the environment does
    "slower": "{settings} in the environment holds NumPy back, on one thread: {now}; without it "
    "{free}.",
    "alike": "{settings} in the environment makes no difference that could be measured, on one "
    "thread: {now}; without it {free}.",
    "narrower": "{settings} in the environment holds NumPy back: {kernels} kernels on a processor "
    "with {vectors}.",
    "unknown": "{settings} in the environment may hold NumPy back.",
}
REMEDY = "To remove it: unset {names}"


def _speed(rates):
    kernels = filled("{kernels} kernels, ", **rates) if rates["kernels"] else ""
    return kernels + filled("{gflops:.3g} GFLOP/s, {tanh:.2g} ns for a tanh", **rates)


def narrower(kernels, vectors):
    """Whether these kernels of OpenBLAS are known to use narrower registers than `vectors`."""
    used = KERNELS.get(kernels.lower(), ("",))[0]
    return used in WIDTHS and vectors in WIDTHS and WIDTHS.index(used) < WIDTHS.index(vectors)


def outdated(facts, measured):
    """OpenBLAS, which chooses its kernels itself, does not know this processor."""
    kernels, vectors = facts["kernels"], facts["vectors"]
    if "OPENBLAS_CORETYPE" in facts["environment"] or not narrower(kernels, vectors):
        return None
    return filled(
        "OpenBLAS {version} uses its {kernels} kernels on a processor with {vectors}. A newer "
        "NumPy may know this processor; or try OPENBLAS_CORETYPE={other} and look again",
        other=TRY[vectors],
        **facts,
    )


def unoptimised(facts, measured):
    """No BLAS that is known, or measured, to be fast."""
    rate = (measured["one"] or measured["all"] or {}).get("gflops")
    if facts["blas"] in LIBRARIES or (rate or 0) > PLAIN:
        return None
    evidence = filled(" and {rate:.2g} GFLOP/s were measured", rate=rate) if rate else ""
    return filled(
        "NumPy seems to have no optimised BLAS: NumPy calls it {blas!r}{evidence}. The wheels of "
        "NumPy bring one: pip install --force-reinstall numpy; on Debian and Ubuntu: apt install "
        "libopenblas0",
        evidence=evidence,
        **facts,
    )


def oversubscribed(facts, measured):
    """More threads than can run at once."""
    if (facts["threads"] or 0) <= room(facts):
        return None
    limit = filled(" (the container may use {quota:g} of them)", **facts) if facts["quota"] else ""
    return filled(
        "{threads} threads on {cores} cores{limit} wait for each other. Set {name}={room}",
        limit=limit,
        name=variable(facts),
        room=room(facts),
        **facts,
    )


def siblings(facts, measured):
    """One thread a core is faster than one for each of its hardware threads."""
    now, fewer = measured["all"], measured["cores"]
    if not (now and fewer) or fewer["gflops"] < NOTICED * now["gflops"]:
        return None
    return filled(
        "{threads} threads, one for each core, are faster than {all}: {gflops:.3g} GFLOP/s instead "
        "of {all_gflops:.3g}. Set {name}={physical}",
        all=now["threads"],
        all_gflops=now["gflops"],
        name=variable(facts),
        physical=facts["physical"],
        **fewer,
    )


def idle(facts, measured):
    """Fewer threads than cores."""
    cores = min(room(facts), facts["physical"] or facts["cores"])
    if (facts["threads"] or cores) >= cores:
        return None
    others = {*LIBRARIES.values()} - {variable(facts), "OMP_NUM_THREADS"}
    names = [name for name in THREADS if name in facts["environment"] and name not in others]
    remedy = "for one alone: unset {names}" if names else "for one alone try {name}={cores}"
    values = {"names": " ".join(names), "name": variable(facts), "cores": cores}
    return filled(
        "{threads} of {cores} cores are used: this is right if several processes run side by side; "
        "{remedy}",
        threads=facts["threads"],
        cores=cores,
        remedy=filled(remedy, **values),
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
    remedy = ", or leave it its cores: {name}={free}" if free < threads else ""
    return filled(
        "Other work keeps {now:.1f} of {cores} cores busy, and a product is as slow as its slowest "
        "thread. Wait for it to end{remedy}",
        now=now,
        cores=facts["cores"],
        remedy=filled(remedy, name=variable(facts), free=free),
    )


def uneven(facts, measured):
    """Threads that bring less than half of what they might."""
    now, one_thread = measured["all"], measured["one"]
    cores = facts["physical"] or facts["cores"]
    threads = min(facts["threads"] or 1, cores, facts["quota"] or facts["cores"])
    if not (now and one_thread) or now["gflops"] > one_thread["gflops"] * threads / 2:
        return None
    speedup = now["gflops"] / one_thread["gflops"]
    return filled(
        "{threads} threads are only {speedup:.2g} times as fast as one. If other work, or other "
        "guests of the machine, hold the cores: {name}=1",
        threads=facts["threads"],
        speedup=speedup,
        name=variable(facts),
    )


def slower_blas(facts, measured):
    """Another BLAS of this machine is faster than NumPy's."""
    own = measured["one"] or measured["all"]
    rates = {name: rate for name, rate in measured["others"].items() if rate}
    fastest = max(rates, key=rates.get, default=None)
    if not (own and fastest) or rates[fastest] < NOTICED * own["gflops"]:
        return None
    return filled(
        "{fastest} on this machine multiplies at {rate:.3g} GFLOP/s on one thread, NumPy's own "
        "{blas} at {gflops:.3g}. A NumPy that uses it would be faster: conda installs one, or "
        "build NumPy from its source",
        fastest=fastest,
        rate=rates[fastest],
        gflops=own["gflops"],
        blas=facts["blas"],
    )


def other_tiles(facts, measured):
    """Elementwise work in tiles of another size is faster; known only on idle cores."""
    own = measured["one"] or measured["all"]
    if not own or (measured["busy"] or 0) > 0.5:
        return None
    tile, now, fastest, least = of_tiles(facts["tile"], own)
    if now < NOTICED * least:
        return None
    return filled(
        "In tiles of {fastest} thousand numbers work as in GELU is faster than in the {tile} "
        "thousand of a pass: {least:.2f} instead of {now:.2f} ns on one thread. The size is a "
        "constant in minitx/kernels.py: report that it does not fit this processor",
        fastest=fastest >> 10,
        tile=tile >> 10,
        least=least,
        now=now,
    )


def of_tiles(tile, rates):
    """The size of a pass's tiles and ns an element in them; the same of the fastest tiles."""
    times = {int(size): ns for size, ns in rates["tiles"].items()}
    fastest = min(times, key=times.get)
    return tile, times[tile], fastest, times[fastest]


WARNINGS = (
    pinned,
    outdated,
    unoptimised,
    slower_blas,
    oversubscribed,
    siblings,
    idle,
    busy,
    uneven,
    other_tiles,
)


def variable(facts):
    """The environment variable that sets the threads of this BLAS."""
    return LIBRARIES.get(facts["blas"], "OMP_NUM_THREADS")


CASES = {
    "one": "threads: {n}",
    "all": "threads: {n}",
    "cores": "one a core: {n}",
    "unpinned": "nothing pinned: {n}",
}
# names of lines that are words
KNOWN = "processor", "cores", "caches", "memory", "other BLAS", "environment", "other work"
ROWS = {
    "gflops": ("GFLOP/s, measured", ".0f"),
    "bandwidth": ("GB/s, row times matrix", ".0f"),
    "tanh": ("ns for a tanh", ".2f"),
}
COMMAND_LINE = (
    "This is what programs of your own get. The commands of minitx run OpenBLAS on one thread, "
    "as their documents run side by side, unless OPENBLAS_NUM_THREADS is set."
)


def text(facts, measured):
    """Facts, rates and advice, to be read by people."""
    lines = []
    for name, row in described(facts, measured).items():
        lines.append(f"{translated(name):13}{', '.join(filter(None, row))}")
    warnings = [_wrapped(f"! {warning}.") for warning in advice(facts, measured)]
    lines += ["", *table(facts, measured), ""]
    lines += [
        *(warnings or [translated("Nothing to mend.")]),
        "",
        _wrapped(translated(COMMAND_LINE)),
    ]
    return "\n".join(lines)


def described(facts, measured):
    """What is known of the machine: {name: texts}, "" for what is unknown."""
    rows = {"processor": [facts["processor"], facts["vectors"]], "cores": _cores(facts)}
    unknown = translated("unknown")
    rows["caches"] = [f"{level} {_size(n)}" for level, n in facts["caches"].items()] or [unknown]
    rows["memory"] = [f"{facts['memory'] / 1e9:.0f} GB" if facts["memory"] else unknown]
    kernels = filled("kernels: {kernels}", kernels=facts["kernels"] or unknown)
    threads = filled("threads: {n}", n=facts["threads"] or unknown)
    rows["BLAS"] = [f"{facts['blas']} {facts['version']}".strip(), kernels, threads]
    rows["other BLAS"] = _other_blas(measured)
    variables = [f"{name}={value}" for name, value in facts["environment"].items()]
    rows["environment"] = variables or [translated("nothing set")]
    simd = " ".join(facts["simd"]) or translated("its baseline")
    loops = filled("its own loops use {simd}", simd=simd)
    rows["NumPy"] = [facts["numpy"], loops]
    rows["Python"] = [facts["python"], facts["platform"]]
    rows["other work"] = _other_work(facts, measured)
    return rows


def _size(n):
    return f"{n >> 20} MB" if n >> 20 else f"{n >> 10} kB"


def _other_blas(measured):
    """Rates of the other libraries of this machine."""
    texts = []
    for name, rate in measured["others"].items():
        said = "{name}: {rate:.0f} GFLOP/s on one thread" if rate else "{name}: does not run"
        texts.append(filled(said, name=name, rate=rate))
    return texts or [translated("none found")]


def _cores(facts):
    """How many cores there are, how many of them share no units, and what a container allows."""
    cores, physical, quota = facts["cores"], facts["physical"], facts["quota"]
    texts = [str(cores)]
    if physical not in (None, cores):
        texts.append(filled("{physical} that share no units", physical=physical))
    if quota:
        texts.append(filled("{quota:g} allowed by the container", quota=quota))
    return texts


def _other_work(facts, measured):
    """How busy the cores were, and the load average."""
    texts = [translated("unknown")]
    if measured["busy"] is not None:
        values = {"busy": measured["busy"], "cores": facts["cores"]}
        texts = [filled("{busy:.1f} of {cores} cores busy", **values)]
    if facts["load"] is not None:
        texts.append(filled("load {load:.1f}", load=facts["load"]))
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
        return [translated("nothing could be measured")]
    titles = [filled(CASES[case], n=rates["threads"] or case) for case, rates in cases.items()]
    goals = [expected(facts, rates["kernels"], rates["threads"]) for rates in cases.values()]
    texts = [translated("unknown") if goal is None else f"{goal:.0f}" for goal in goals]
    rows = [["", *titles], [translated("GFLOP/s, expected"), *texts]]
    for key, (name, digits) in ROWS.items():
        rows.append([translated(name), *(format(rates[key], digits) for rates in cases.values())])
    rows += tile_rows(facts["tile"], cases.values())
    lines = [f"{row[0]:30}" + "".join(f"{cell:>18}" for cell in row[1:]) for row in rows]
    clock = "{clock:.2f} GHz, as the system states" if facts["clock"] else NO_CLOCK
    return [*lines, filled(EXPECTED, clock=filled(clock, clock=facts["clock"]))]


def tile_rows(tile, cases):
    """Two rows: GELU in the tiles of a pass, and in the fastest."""
    times = [of_tiles(tile, rates) for rates in cases]
    titles = (
        filled("ns as in GELU, tiles of {n} k", n=tile >> 10),
        translated("in the fastest tiles (size)"),
    )
    own = [f"{now:.2f}" for _, now, _, _ in times]
    fastest = [f"{least:.2f} ({size >> 10} k)" for _, _, size, least in times]
    return [titles[0], *own], [titles[1], *fastest]


NO_CLOCK = "the clock, not known here"
EXPECTED = "(expected: cores x operations a cycle x {clock}; processors may run above it)"
