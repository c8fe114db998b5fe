"""What this machine and NumPy's BLAS are, and how fast: facts and rates, for `advice` to read. Nothing is changed.

The facts are those of this process (`describe`). Rates are measured in processes of their own (`measure`), one for
each way to set the environment, so that BLAS itself says which kernels it picks when nothing pins them. Order:
tables, facts, rates. Imports nothing of this project: it is also the script that those processes run.
"""

import ctypes
import json
import os
import platform
import re
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np

# What sets the number of threads, the strongest first, and what pins kernels, caches or instructions.
THREADS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS", "MKL_NUM_THREADS",
           "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")
PINS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_BLOCK_FACTOR", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR",
        "BLIS_ARCH_TYPE", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES")

# BLAS | the variable that sets its threads | its functions: number of threads, version, kernels
LIBRARIES = (
    ("OpenBLAS", "OPENBLAS_NUM_THREADS", "openblas_get_num_threads", "openblas_get_config", "openblas_get_corename"),
    ("MKL", "MKL_NUM_THREADS", "MKL_Get_Max_Threads", "mkl_get_version_string", None),
    ("BLIS", "BLIS_NUM_THREADS", "bli_thread_get_num_threads", "bli_info_get_version_str", None),
    ("FlexiBLAS", "OMP_NUM_THREADS", "flexiblas_get_num_threads", None, None),
    ("Accelerate", "VECLIB_MAXIMUM_THREADS", None, None, None),
    ("NVPL", "OMP_NUM_THREADS", None, None, None), ("ArmPL", "OMP_NUM_THREADS", None, None, None),
)

# what /proc/cpuinfo calls it, the widest first
FLAGS = (("avx512bw", "avx512"), ("avx2", "avx2"), ("avx", "avx"), ("sse2", "sse"), ("sve", "sve"), ("asimd", "neon"))
ARM = {"0x41 0xd08": "Cortex-A72", "0x41 0xd0b": "Cortex-A76", "0x41 0xd0c": "Neoverse N1", "0x41 0xd40": "Neoverse V1",
       "0x41 0xd49": "Neoverse N2", "0x41 0xd4f": "Neoverse V2"}


def describe():
    """Machine and NumPy as this process has them: a dictionary of numbers and names, None or "" where unknown.

    memory in bytes, clock in GHz, quota in cores; see `linux` and `library` for the rest.
    """
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    facts = mac(_sysctl) if sys.platform == "darwin" else linux(cpus)
    blas = library(ctypes.CDLL(_numpy_core()), np.show_config("dicts").get("Build Dependencies", {}).get("blas", {}))
    return facts | blas | {
        "cores": len(cpus), "memory": _memory(), "simd": simd(),
        "environment": {name: os.environ[name] for name in (*THREADS, *PINS) if name in os.environ},
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(), "numpy": np.__version__, "platform": platform.platform()}


def linux(cpus, root=Path("/")):
    """What the files under `root` say of the processor and of the time that this process may have of it."""
    first = _read(root / "proc/cpuinfo").partition("\n\n")[0]
    info = dict(re.findall(r"^(\S[^:\n]*?)\s*: (.*)$", first, re.M))
    flags = (info.get("flags") or info.get("Features", "")).split()
    part = f"{info.get('CPU implementer', '')} {info.get('CPU part', '')}".strip()
    cpu = root / "sys/devices/system/cpu"
    fastest = _read(cpu / f"cpu{cpus[0]}/cpufreq/cpuinfo_max_freq")
    siblings = {_read(cpu / f"cpu{n}/topology/thread_siblings_list") for n in cpus}
    return {"processor": info.get("model name") or ARM.get(part) or (f"Arm {part}" if part else "unknown"),
            "family": " ".join(info.get(key, "") for key in ("vendor_id", "cpu family", "model")).strip(),
            "vectors": next((name for flag, name in FLAGS if flag in flags), ""),
            "physical": None if "" in siblings else len(siblings), "quota": quota(root),
            "clock": float(fastest) / 1e6 if fastest else float(info.get("cpu MHz", 0)) / 1e3 or None}


def mac(sysctl):
    """The same of a Mac; sysctl: name -> text, "" where there is no such name."""
    wide = [name for name, key in (("avx512", "avx512bw"), ("avx2", "avx2_0"), ("avx", "avx1_0"), ("neon", "arm64"))
            if sysctl(f"hw.optional.{key}") == "1"]
    return {"processor": sysctl("machdep.cpu.brand_string") or "unknown", "family": "", "vectors": [*wide, ""][0],
            "physical": int(sysctl("hw.physicalcpu") or 0) or None, "quota": None,
            "clock": float(sysctl("hw.cpufrequency_max") or 0) / 1e9 or None}


def quota(root=Path("/")):
    """Cores' worth of time that a container allows, the least from its own group up to the top; None: no limit."""
    found = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
            here = top / path.lstrip("/")
            for folder in (here, *here.parents):
                limit = _read(folder / "cpu.max") or " ".join(
                    _read(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
                if re.fullmatch(r"\d+ \d+", limit.strip()):
                    found.append(int(limit.split()[0]) / int(limit.split()[1]))
                if folder == top:
                    break
    return min(found, default=None)


def library(handle, built):
    """Which BLAS answers in NumPy's own library -> blas, version, kernels, threads.

    handle: ctypes.CDLL of NumPy's core; built: what NumPy says that it was built with, which is believed only where
    no library answers: some distributions build against an interface and choose the library later.
    """
    for name, _, *functions in LIBRARIES:
        threads, version, kernels = (_function(handle, function) for function in functions)
        if threads:
            said = version and _text(version)
            number = re.search(r"\d+(\.\d+)+", said or "")
            return {"blas": name, "version": number[0] if number else "", "threads": threads(),
                    "kernels": _text(kernels) if kernels else ""}
    stated = str(built.get("name", "")) or "unknown"
    known = next((name for name, *_ in LIBRARIES if name.lower() in stated.lower()), stated)
    version = str(built.get("version", ""))
    return {"blas": known, "version": "" if version == "unknown" else version, "kernels": "", "threads": None}


def _function(handle, name):
    """A library's function, whatever the builder put before and behind its name."""
    found = (getattr(handle, before + (name or "?") + after, None)
             for before, after in product(("", "scipy_"), ("", "64_", "_64")))
    return next((function for function in found if function), None)


def _text(function):
    """What a function says: it returns a text or, as MKL's does, fills a buffer."""
    if "mkl" not in function.__name__:
        function.restype = ctypes.c_char_p
        return function().decode(errors="replace")
    buffer = ctypes.create_string_buffer(200)
    function(buffer, len(buffer))
    return buffer.value.decode(errors="replace")


def _numpy_core():
    names = "numpy._core._multiarray_umath", "numpy.core._multiarray_umath"
    return next(sys.modules[name].__file__ for name in names if name in sys.modules)


def simd():
    """The instructions that NumPy's own loops use beyond its baseline, names as NumPy's."""
    return list(np.show_config("dicts").get("SIMD Extensions", {}).get("found", []))


def _memory():
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _sysctl(name):
    done = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True)
    return done.stdout.strip()


def _read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def measure(seconds=0.2):
    """Rates in processes of their own, and how busy the cores were just before; about 1 s for each process.

    "all": as the environment has it; "one": one thread; "cores": one thread a core, where a core runs several;
    "unpinned": one thread without PINS (one, because threads that wait for a busy core hide everything else). Each is
    what `rates` gives, or None if there is no such case or it failed. seconds: for the products of each process.
    """
    env, facts = dict(os.environ), describe()
    cores = facts["physical"] if facts["physical"] and facts["physical"] < (facts["threads"] or 0) else None
    alone = env | dict.fromkeys(THREADS, "1")
    free = {name: value for name, value in alone.items() if name not in PINS}
    cases = {"all": env, "one": alone if facts["threads"] != 1 else None,
             "cores": env | dict.fromkeys(THREADS, str(cores)) if cores else None,
             "unpinned": free if free != alone else None}
    busy = busy_cores()
    return {"busy": busy} | {case: env and _elsewhere(env, seconds) for case, env in cases.items()}


def _elsewhere(env, seconds):
    """`rates` of a new process with this environment; None if it fails or hangs."""
    command = [sys.executable, "-P", __file__, str(seconds)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30)
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return None


def rates(seconds=0.2):
    """This process: kernels, threads, simd; GFLOP/s of a float32 product, GB/s of a row times a matrix, ns per tanh.

    The product is as large as takes a fifth of the time, so that many threads have enough to do; the matrix has 256
    MB, more than caches hold, as the weights have when a text is continued token by token. The best of several.
    """
    facts, n = describe(), 256
    a = np.ones((n, n), np.float32)
    while (took := best(lambda: a @ a, seconds / 20)) * 8 < seconds / 5 and n < 4096:
        n *= 2
        a = np.ones((n, n), np.float32)
    took = min(took, best(lambda: a @ a, seconds))
    row, weights = np.ones(8192, np.float32), np.full((8192, 8192), 1, np.float32)
    x = np.linspace(-4, 4, 65536, dtype=np.float32)
    out = np.empty_like(x)
    return {"kernels": facts["kernels"], "threads": facts["threads"], "simd": facts["simd"],
            "gflops": 2e-9 * n ** 3 / took,
            "bandwidth": 1e-9 * weights.nbytes / best(lambda: row @ weights, seconds / 3),
            "tanh": 1e9 * best(lambda: np.tanh(x, out=out), seconds / 5) / x.size}


def best(work, seconds):
    """The shortest of as many runs as fit into so many seconds, two at least: the first one warms up."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def busy_cores(seconds=0.25, root=Path("/")):
    """How many of this process's cores others keep busy, over so many seconds; None where the system does not say."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    before = _ticks(root)
    time.sleep(seconds)
    return busy_between(before, _ticks(root), os.sched_getaffinity(0))


def _ticks(root):
    """{core: [user nice system idle iowait irq softirq steal]}, in ticks since the start."""
    return {int(core): [int(n) for n in ticks.split()[:8]]
            for core, ticks in re.findall(r"^cpu(\d+) (.*)$", _read(root / "proc/stat"), re.M)}


def busy_between(before, after, cpus):
    """Cores that were not idle between two readings of the ticks, as a number of cores; None if none was counted."""
    spent = [np.subtract(after[n], before[n]) for n in cpus if n in before and n in after]
    spent = [ticks for ticks in spent if ticks.sum() > 0]
    return float(sum(1 - ticks[3:5].sum() / ticks.sum() for ticks in spent)) if spent else None


def line(facts):
    """The facts that a table of times needs beside it, in one line."""
    threads = f"{facts['threads']} threads" if facts["threads"] else "threads as it likes"
    kernels = f"{facts['kernels']} kernels" if facts["kernels"] else "kernels unknown"
    return (f"{facts['processor']}, {facts['cores']} cores; {facts['blas']} {facts['version']}, {kernels}, {threads}; "
            f"NumPy {facts['numpy']}, Python {facts['python']}, {facts['platform']}").replace(" ,", ",")


if __name__ == "__main__":
    print(json.dumps(rates(float(sys.argv[1]))))
