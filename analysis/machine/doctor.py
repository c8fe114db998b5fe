"""What this machine and NumPy's BLAS are, and how fast: facts and rates, for `advice` to read.

Nothing is changed. The facts are those of this process (`describe`). Rates are measured in
processes of their own (`measure`), one for each way to set the environment, so that BLAS itself
says which kernels it picks when nothing pins them. Imports nothing of this project: it is also the
script that those processes run.
"""

import ctypes
import json
import os
import platform
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import threadpoolctl

# What sets the number of threads, the strongest first, and what pins kernels, caches or
# instructions.
THREADS = (
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_DEFAULT_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OMP_NUM_THREADS",
)
PINS = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "OPENBLAS_BLOCK_FACTOR",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",
    "BLIS_ARCH_TYPE",
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
)

# BLAS: the variable that sets its threads
LIBRARIES = {
    "OpenBLAS": "OPENBLAS_NUM_THREADS",
    "MKL": "MKL_NUM_THREADS",
    "BLIS": "BLIS_NUM_THREADS",
    "FlexiBLAS": "OMP_NUM_THREADS",
    "Accelerate": "VECLIB_MAXIMUM_THREADS",
    "NVPL": "OMP_NUM_THREADS",
    "ArmPL": "OMP_NUM_THREADS",
}

# numbers that a thread's elementwise work takes at a time
TILES = tuple(1 << n for n in range(13, 20))

# what /proc/cpuinfo calls it, the widest first
FLAGS = (
    ("avx512bw", "avx512"),
    ("avx2", "avx2"),
    ("avx", "avx"),
    ("sse2", "sse"),
    ("sve", "sve"),
    ("asimd", "neon"),
)
# what sysctl calls it, the widest first
MAC_VECTORS = (
    ("avx512", "avx512bw"),
    ("avx2", "avx2_0"),
    ("avx", "avx1_0"),
    ("neon", "arm64"),
)
ARM = {
    "0x41 0xd08": "Cortex-A72",
    "0x41 0xd0b": "Cortex-A76",
    "0x41 0xd0c": "Neoverse N1",
    "0x41 0xd40": "Neoverse V1",
    "0x41 0xd49": "Neoverse N2",
    "0x41 0xd4f": "Neoverse V2",
}


def describe():
    """Machine and NumPy as this process has them, in numbers and names; None or "" if unknown.

    memory in bytes, clock in GHz, quota in cores; see `linux` and `library` for more.
    """
    cpus = own_cores()
    facts = mac(sysctl) if sys.platform == "darwin" else linux(cpus)
    facts |= blas()
    facts["cores"] = len(cpus)
    facts["memory"] = _memory()
    facts["simd"] = simd()
    variables = [name for name in (*THREADS, *PINS) if name in os.environ]
    facts["environment"] = {name: os.environ[name] for name in variables}
    facts["load"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    facts["python"] = platform.python_version()
    facts["numpy"] = np.__version__
    facts["platform"] = platform.platform()
    return facts


def own_cores():
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return range(os.cpu_count() or 1)


def linux(cpus, root=Path("/")):
    """What the files under `root` say about the processor and this process's share of it."""
    first = _content(root / "proc/cpuinfo").partition("\n\n")[0]
    info = dict(re.findall(r"^(\S[^:\n]*?)\s*: (.*)$", first, re.M))
    flags = (info.get("flags") or info.get("Features", "")).split()
    cpu = root / "sys/devices/system/cpu"
    siblings = {_content(cpu / f"cpu{n}/topology/thread_siblings_list") for n in cpus}
    fastest = _content(cpu / f"cpu{cpus[0]}/cpufreq/cpuinfo_max_freq")
    clock = float(fastest) / 1e6 if fastest else float(info.get("cpu MHz", 0)) / 1e3
    family = [info.get(key, "") for key in ("vendor_id", "cpu family", "model")]
    facts = {"processor": _processor(info), "family": " ".join(family).strip()}
    facts["vectors"] = next((name for flag, name in FLAGS if flag in flags), "")
    facts["physical"] = None if "" in siblings else len(siblings)
    facts["quota"] = quota(root)
    facts["clock"] = clock or None
    return facts


def _processor(info):
    """The processor's name from an entry of /proc/cpuinfo; Arm's have numbers only."""
    part = f"{info.get('CPU implementer', '')} {info.get('CPU part', '')}".strip()
    by_number = ARM.get(part) or (f"Arm {part}" if part else "unknown")
    return info.get("model name") or by_number


def mac(sysctl):
    """The same of a Mac; sysctl: name -> text, "" if there is no such name."""
    vectors = [name for name, key in MAC_VECTORS if sysctl(f"hw.optional.{key}") == "1"]
    facts = {"processor": sysctl("machdep.cpu.brand_string") or "unknown", "family": ""}
    facts["vectors"] = vectors[0] if vectors else ""
    facts["physical"] = int(sysctl("hw.physicalcpu") or 0) or None
    facts["quota"] = None
    facts["clock"] = float(sysctl("hw.cpufrequency_max") or 0) / 1e9 or None
    return facts


def quota(root=Path("/")):
    """Processor time that a container allows, in cores; None if there is no limit.

    It is the least of the limits of its own group and of all groups above it.
    """
    limits = []
    for line in _content(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            limits.append(_limit(folder))
            if folder == top:
                break
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(group):
    """Processor time that the files of one group allow, in cores; None if there is no limit."""
    text = _content(group / "cpu.max")
    if not text:
        files = group / "cpu.cfs_quota_us", group / "cpu.cfs_period_us"
        text = " ".join(_content(file) for file in files)
    if not re.fullmatch(r"\d+ \d+", text.strip()):
        return None
    time_allowed, period = map(int, text.split())
    return time_allowed / period


def blas():
    """NumPy's BLAS in this process, see `library`."""
    return library(threadpoolctl.threadpool_info(), np.show_config("dicts"))


def library(loaded, built):
    """Which BLAS NumPy's is: blas, version, kernels, threads.

    loaded: what threadpoolctl finds in this process; SciPy's wheels bring one of their own. built:
    what NumPy says that it was built with, which is believed only where no library answers: some
    distributions build against an interface and choose the library later.
    """
    own = [each for each in loaded if each["user_api"] == "blas"]
    own.sort(key=lambda each: "/scipy" in each["filepath"].rpartition("site-packages")[2])
    stated = built.get("Build Dependencies", {}).get("blas", {})
    known = own[0] if own else {"internal_api": stated.get("name") or "unknown"} | stated
    name = known["internal_api"]
    number = re.match(r"\d+(\.\d+)+", known.get("version") or "")
    name = next((each for each in LIBRARIES if each.lower() in name.lower()), name)
    facts = {"blas": name, "version": number[0] if number else ""}
    return facts | {"kernels": known.get("architecture", ""), "threads": known.get("num_threads")}


def simd():
    """The instructions that NumPy's own loops use beyond its baseline, names as NumPy's."""
    return list(np.show_config("dicts").get("SIMD Extensions", {}).get("found", []))


def _memory():
    """Bytes of memory; None if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def sysctl(name):
    """A setting of a Mac's system; "" if there is no such name."""
    command = ["/usr/sbin/sysctl", "-n", name]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _content(path):
    """The text of a file; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def measure(seconds=0.2):
    """Rates in processes of their own, and how busy the cores were just before.

    "all": as the environment has it; "one": one thread; "cores": one thread a core, where a core
    runs several; "unpinned": one thread without PINS (one, because threads that wait for a busy
    core hide everything else). Each is what `rates` gives, or None if there is no such case or it
    failed. seconds: for the products of each process, which takes about 1 s.
    """
    cases = _environments(describe())
    measured = {"busy": busy_cores()}
    for case, env in cases.items():
        measured[case] = env and elsewhere(env, seconds)
    return measured


def _environments(facts):
    """The environment of each case of `measure`; None if there is no such case."""
    env, physical, threads = dict(os.environ), facts["physical"], facts["threads"]
    one_thread = env | dict.fromkeys(THREADS, "1")
    unpinned = {name: value for name, value in one_thread.items() if name not in PINS}
    cases = {"all": env, "one": None, "cores": None, "unpinned": None}
    if threads != 1:
        cases["one"] = one_thread
    if physical and physical < (threads or 0):
        cases["cores"] = env | dict.fromkeys(THREADS, str(physical))
    if unpinned != one_thread:
        cases["unpinned"] = unpinned
    return cases


def elsewhere(env, seconds, *file):
    """`rates` of a new process with this environment, or the rate of a library's products.

    None if it fails or hangs.
    """
    command = [sys.executable, "-P", __file__, str(seconds), *file]
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=30, check=False
        )
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return None


def rates(seconds=0.2):
    """Rates of this process: GFLOP/s of a product, GB/s of a row times a matrix, ns per tanh.

    All are in float32, with kernels, threads and simd of `describe` beside them. The matrix has
    256 MB, more than caches hold, as the weights have when a text is continued token by token.
    "tiles": {size: ns an element} of elementwise work like GELU's. Each rate is the best of several
    runs.
    """
    facts = describe()
    measured = {key: facts[key] for key in ("kernels", "threads", "simd")}
    measured["gflops"] = _product_rate(seconds)
    row, weights = np.ones(8192, np.float32), np.full((8192, 8192), 1, np.float32)
    measured["bandwidth"] = 1e-9 * weights.nbytes / best(lambda: row @ weights, seconds / 3)
    x = np.linspace(-4, 4, 65536, dtype=np.float32)
    out = np.empty_like(x)
    measured["tanh"] = 1e9 * best(lambda: np.tanh(x, out=out), seconds / 5) / x.size
    measured["tiles"] = tile_times(seconds)
    return measured


def tile_times(seconds):
    """ns an element of work like GELU's, on one thread, in tiles of each size: {size: ns}."""
    x = np.linspace(-4, 4, TILES[-1], dtype=np.float32)
    times = {}
    for size in TILES:
        work = partial(_in_tiles, x, size)
        shortest = best(work, seconds / len(TILES))
        times[size] = 1e9 * shortest / x.size
    return times


def _in_tiles(x, size):
    """What GELU does with an array: a polynomial of the squares, tanh, products."""
    for start in range(0, x.size, size):
        tile = x[start : start + size]
        square = tile * tile
        y = square * 1e-3
        for _ in range(5):
            y += 1e-2
            y *= square
        y *= tile
        np.tanh(y, out=y)
        y *= tile


def _product_rate(seconds, multiply=np.matmul):
    """GFLOP/s of a float32 product.

    Its size is such that it takes a fifth of the time, so that many threads have enough to do.
    """
    n = 256
    a = np.ones((n, n), np.float32)
    shortest = best(partial(multiply, a, a), seconds / 20)
    while shortest * 8 < seconds / 5 and n < 4096:
        n *= 2
        a = np.ones((n, n), np.float32)
        shortest = best(partial(multiply, a, a), seconds / 20)
    shortest = min(shortest, best(partial(multiply, a, a), seconds))
    return 2e-9 * n**3 / shortest


def library_rate(seconds, file):
    """GFLOP/s of the same product by a BLAS library; it may end the process if it lacks a part."""
    sgemm = ctypes.CDLL(file).cblas_sgemm
    number, factor, array = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    matrices = [factor, array, number, array, number, factor, array, number]
    sgemm.argtypes = [number] * 6 + matrices
    by_row = 101
    as_it_is = 111

    def multiply(a, b):
        n = len(a)
        out = np.empty_like(a)
        sizes = [n] * 3
        left = a.ctypes.data, n
        right = b.ctypes.data, n
        result = out.ctypes.data, n
        sgemm(by_row, as_it_is, as_it_is, *sizes, 1.0, *left, *right, 0.0, *result)
        return out

    return _product_rate(seconds, multiply)


def best(work, seconds):
    """The shortest of the runs that fit into this time, two at least: the first one warms up."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def busy_cores(seconds=0.25, root=Path("/")):
    """How many of this process's cores other work keeps busy; None if the system does not tell."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    before = _ticks(root)
    time.sleep(seconds)
    return busy_between(before, _ticks(root), os.sched_getaffinity(0))


def _ticks(root):
    """{core: [user nice system idle iowait irq softirq steal]}, in ticks since the start."""
    cores = {}
    for core, ticks in re.findall(r"^cpu(\d+) (.*)$", _content(root / "proc/stat"), re.M):
        cores[int(core)] = [int(n) for n in ticks.split()[:8]]
    return cores


def busy_between(before, after, cpus):
    """Cores that were not idle between two readings of the ticks; None if none was counted."""
    spent = [np.subtract(after[n], before[n]) for n in cpus if n in before and n in after]
    spent = [ticks for ticks in spent if ticks.sum() > 0]
    return float(sum(1 - ticks[3:5].sum() / ticks.sum() for ticks in spent)) if spent else None


def line(facts):
    """The facts that a table of times needs beside it, in one line."""
    threads = f"{facts['threads']} threads" if facts["threads"] else "threads as it likes"
    kernels = f"{facts['kernels']} kernels" if facts["kernels"] else "kernels unknown"
    processor = f"{facts['processor']}, {facts['cores']} cores"
    blas = f"{facts['blas']} {facts['version']}, {kernels}, {threads}"
    versions = f"NumPy {facts['numpy']}, Python {facts['python']}, {facts['platform']}"
    return f"{processor}; {blas}; {versions}".replace(" ,", ",")


if __name__ == "__main__":
    seconds, *file = sys.argv[1:]
    work = library_rate if file else rates
    print(json.dumps(work(float(seconds), *file)))
