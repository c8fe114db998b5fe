"""What else a machine has: caches, and BLAS libraries beside the one that NumPy uses."""

import ctypes.util
import os
import re
import sys
from pathlib import Path

from .doctor import THREADS, elsewhere

# BLAS | its file: a NumPy may be built with it or, in conda, be switched to it
LIBRARIES = (
    ("MKL", "mkl_rt"),
    ("BLIS", "blis"),
    ("OpenBLAS", "openblas"),
)
# of a Mac, as sysctl calls them
MAC_CACHES = {
    "L1": "hw.l1dcachesize",
    "L2": "hw.l2cachesize",
    "L3": "hw.l3cachesize",
}


def caches(root=Path("/")):
    """Bytes of the caches that the first core reads data from, {"L1": 49152}; empty if unknown."""
    sizes = {}
    folder = root / "sys/devices/system/cpu/cpu0/cache"
    for index in sorted(folder.glob("index*")):
        files = [index / name for name in ("level", "type", "size")]
        if not all(file.is_file() for file in files):
            continue
        level, kind, size = (file.read_text(encoding="utf-8").strip() for file in files)
        if kind != "Instruction" and re.fullmatch(r"\d+K", size):
            sizes[f"L{level}"] = int(size[:-1]) << 10
    return sizes


def mac_caches(sysctl):
    """The same of a Mac; sysctl: name -> text, "" if there is no such name."""
    sizes = {}
    for level, name in MAC_CACHES.items():
        size = int(sysctl(name) or 0)
        if size:
            sizes[level] = size
    return sizes


def libraries(prefix=sys.prefix):
    """Files of the BLAS libraries that this machine has, {name: file}."""
    files = {}
    for name, stem in LIBRARIES:
        installed = sorted(Path(prefix, "lib").glob(f"lib{stem}.*"))
        file = installed[0] if installed else ctypes.util.find_library(stem)
        if file:
            files[name] = str(file)
    return files


def rates(seconds=0.2):
    """GFLOP/s of each library's products on one thread, {name: rate}; None where one fails."""
    one_thread = os.environ | dict.fromkeys(THREADS, "1")
    measured = {}
    for name, file in libraries().items():
        measured[name] = elsewhere(one_thread, seconds, file)
    return measured
