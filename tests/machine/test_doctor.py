"""What minitx doctor finds and says of described machines, whichever one runs the tests."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minitx.analysis import __main__ as cli
from minitx.analysis.machine import advice, doctor, inventory

ROOT = Path(__file__).parents[2]

EPYC = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 26
model\t\t: 2
model name\t: AMD EPYC 9005
cpu MHz\t\t: 2600.000
flags\t\t: fpu sse2 avx avx2 avx512f avx512bw

processor\t: 1
model name\t: another
"""
GRAVITON = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"

ZEN5 = {
    "processor": "AMD EPYC",
    "family": "AuthenticAMD 26 2",
    "vectors": "avx512",
    "cores": 2,
    "physical": 2,
    "quota": None,
    "clock": 2.5,
    "memory": 16 * 10**9,
    "caches": {"L1": 48 << 10, "L2": 1 << 20, "L3": 32 << 20},
    "tile": 1 << 17,
    "blas": "OpenBLAS",
    "version": "0.3.31",
    "kernels": "SkylakeX",
    "threads": 2,
    "simd": ["X86_V3", "X86_V4"],
    "environment": {},
    "load": 0.1,
    "python": "3.12.1",
    "numpy": "2.4.6",
    "platform": "Linux",
}
UNKNOWN = {"processor": "unknown", "family": "", "vectors": ""}
UNKNOWN |= dict.fromkeys(["physical", "quota", "clock"])
RATES = {
    "kernels": "SkylakeX",
    "threads": 2,
    "simd": ["X86_V4"],
    "gflops": 400.0,
    "bandwidth": 40.0,
    "tanh": 0.2,
    "tiles": {"16384": 1.3, "65536": 1.2, "131072": 1.25, "524288": 2.0},
}
ONE = RATES | {"threads": 1, "gflops": 210.0}
QUIET = {"busy": 0.0, "all": RATES, "one": ONE, "cores": None, "unpinned": None, "others": {}}
SLOW = {"kernels": "Haswell", "gflops": 110.0}


def files(root, texts):
    """Write a little system under `root`: {path: text}."""
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# Facts


def test_an_x86_processor_is_read_from_its_first_entry(tmp_path):
    root = files(tmp_path, {"proc/cpuinfo": EPYC})
    for n, pair in enumerate(("0,2", "1,3", "0,2", "1,3")):
        files(root, {f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": pair})
    processor = {"processor": "AMD EPYC 9005", "family": "AuthenticAMD 26 2", "vectors": "avx512"}
    expected = UNKNOWN | processor | {"physical": 2, "clock": 2.6}
    assert doctor.linux([0, 1, 2, 3], root) == expected
    assert doctor.linux([0, 2], root)["physical"] == 1


def test_an_arm_processor_has_a_name_and_no_clock(tmp_path):
    facts = doctor.linux([0], files(tmp_path, {"proc/cpuinfo": GRAVITON}))
    assert facts == UNKNOWN | {"processor": "Neoverse V1", "vectors": "sve"}
    other = GRAVITON.replace("0xd40", "0xfff").replace(" sve", "")
    clock = {"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "2600000\n"}
    files(tmp_path, {"proc/cpuinfo": other} | clock)
    facts = doctor.linux([0], tmp_path)
    assert (facts["processor"], facts["vectors"], facts["clock"]) == ("Arm 0x41 0xfff", "neon", 2.6)


def test_a_system_without_such_files_is_unknown_not_an_error(tmp_path):
    assert doctor.linux([0], tmp_path) == UNKNOWN


def test_macs():
    m2 = {"machdep.cpu.brand_string": "Apple M2", "hw.optional.arm64": "1", "hw.physicalcpu": "8"}
    facts = doctor.mac(lambda name: m2.get(name, ""))
    assert facts == UNKNOWN | {"processor": "Apple M2", "vectors": "neon", "physical": 8}
    old = {
        "machdep.cpu.brand_string": "Intel(R) Core(TM) i5",
        "hw.optional.avx2_0": "1",
        "hw.optional.avx1_0": "1",
        "hw.optional.avx512bw": "0",
        "hw.cpufrequency_max": "2300000000",
    }
    facts = doctor.mac(lambda name: old.get(name, ""))
    assert (facts["vectors"], facts["clock"], facts["physical"]) == ("avx2", 2.3, None)


QUOTA, PERIOD = "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"


@pytest.mark.parametrize(
    "group, limits, cores",
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000"}, 2.0),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "50000 100000"}, 0.5),
        ("3:cpu,cpuacct:/docker/x\n0::/\n", {QUOTA: "400000\n", PERIOD: "100000\n"}, 4.0),
        ("3:cpu:/\n", {QUOTA: "-1\n", PERIOD: "100000\n"}, None),
        ("3:cpuset:/\n", {QUOTA: "100000", PERIOD: "100000"}, None),
    ],
)
def test_what_a_container_allows(tmp_path, group, limits, cores):
    limits = {f"sys/fs/cgroup/{name}": text for name, text in limits.items()}
    files(tmp_path, {"proc/self/cgroup": group} | limits)
    assert doctor.quota(tmp_path) == cores


def loaded(name, folder="numpy.libs", **more):
    """A BLAS as threadpoolctl finds it."""
    file = f"/env/lib/python3.12/site-packages/{folder}/lib{name}.so"
    return {"user_api": "blas", "internal_api": name, "filepath": file, **more}


def test_numpys_own_blas_is_told_from_scipys_and_from_other_libraries():
    others = [{"user_api": "openmp"}, loaded("openblas", "scipy.libs", version="0.3.30")]
    own = loaded("openblas", version="0.3.29.dev", num_threads=6, architecture="neoversen1")
    # conda and Debian choose the library after NumPy was built
    library = doctor.library([*others, own], built("blas", "3.9.0"))
    assert (library["blas"], library["version"]) == ("OpenBLAS", "0.3.29")
    assert (library["kernels"], library["threads"]) == ("neoversen1", 6)


def test_mkl_keeps_its_kernels_to_itself():
    own = loaded("mkl", "../..", version="2026.2-Product", num_threads=4)
    library = doctor.library([own], {})
    assert (library["blas"], library["version"]) == ("MKL", "2026.2")
    assert (library["kernels"], library["threads"]) == ("", 4)


def built(name="", version="", **more):
    """What NumPy says that it was built with."""
    return {"Build Dependencies": {"blas": {"name": name, "version": version, **more}}}


@pytest.mark.parametrize(
    "stated, blas, version",
    [
        (built("accelerate", "unknown", found=True), "Accelerate", ""),
        (built("mkl-dynamic-ilp64-tbb", "2024.2"), "MKL", "2024.2"),
        (built("blas", "3.12.0"), "blas", "3.12.0"),
        (built("none", found=False), "none", ""),
        ({}, "unknown", ""),
    ],
)
def test_a_library_that_does_not_answer_is_what_numpy_was_built_with(stated, blas, version):
    silent = {"threads": None, "kernels": ""}
    assert doctor.library([], stated) == {"blas": blas, "version": version} | silent


def test_this_process(monkeypatch):
    for name in (*doctor.THREADS, *doctor.PINS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    facts = json.loads(json.dumps(doctor.describe()))
    assert set(facts) | {"tile", "caches"} == set(ZEN5)
    assert facts["environment"] == {"OPENBLAS_CORETYPE": "Zen"} and facts["numpy"] == np.__version__
    assert facts["cores"] >= 1 and (facts["memory"] or 10**9) > 10**8
    assert facts["blas"] != "OpenBLAS" or (facts["kernels"] and facts["threads"] >= 1)


# Rates


def test_only_cores_of_this_process_count_as_busy(tmp_path):
    lines = "cpu  9 9 9 9 9 9 9 9 0 0", "cpu0 10 0 0 90 0 0 0 0 0 0", "cpu1 0 0 0 0 0 0 0 0 0 0"
    files(tmp_path, {"proc/stat": "".join(f"{line}\n" for line in lines)})
    before = doctor._ticks(tmp_path)
    assert before == {0: [10, 0, 0, 90, 0, 0, 0, 0], 1: [0] * 8}
    core_0 = [15, 0, 0, 98, 2, 0, 0, 10]  # 15 of 25 busy, stolen time included
    core_1 = [0, 0, 25, 0, 0, 0, 0, 0]
    after = {0: core_0, 1: core_1}
    assert doctor.busy_between(before, after, {0}) == pytest.approx(0.6)
    assert doctor.busy_between(before, after, {0, 1}) == pytest.approx(1.6)
    assert doctor.busy_between(before, before, {0, 1}) is None
    assert doctor.busy_between({}, {}, {0}) is None


def test_the_first_run_only_warms_up():
    runs = []

    def work():
        runs.append(0)
        return doctor.time.sleep(0.02 if len(runs) > 1 else 0)

    assert doctor.best(work, 0) >= 0.02 and len(runs) == 2


def test_each_case_is_an_environment_of_its_own(monkeypatch):
    tried = []
    monkeypatch.setattr(doctor, "elsewhere", lambda env, seconds: tried.append(env) or dict(RATES))
    monkeypatch.setattr(doctor, "busy_cores", lambda: 0.25)
    monkeypatch.setattr(doctor, "describe", lambda: ZEN5 | {"threads": 4, "physical": 2})
    for name in doctor.PINS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    measured = doctor.measure()
    expected = {"all": RATES, "one": RATES, "cores": RATES, "unpinned": None}
    assert measured == expected | {"busy": 0.25}
    now, single, cores = tried
    assert now == dict(os.environ)
    assert all(cores[name] == "2" for name in doctor.THREADS)
    assert all(single[name] == "1" for name in doctor.THREADS)
    assert set(single) == set(now) | set(doctor.THREADS)

    monkeypatch.setattr(doctor, "describe", lambda: ZEN5 | {"threads": 1})
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", "X86_V4")
    measured = doctor.measure()
    assert measured["one"] is None and measured["cores"] is None
    assert measured["unpinned"] == RATES
    assert "NPY_DISABLE_CPU_FEATURES" in tried[-2] and not set(doctor.PINS) & set(tried[-1])
    assert tried[-2]["OMP_NUM_THREADS"] == "4" and tried[-1]["OMP_NUM_THREADS"] == "1"


def test_a_process_that_measures_and_one_that_cannot_start():
    rates = doctor.elsewhere(os.environ | dict.fromkeys(doctor.THREADS, "1"), 0.001)
    assert set(rates) == set(RATES)
    assert min(rates["gflops"], rates["bandwidth"], rates["tanh"]) > 0
    assert rates["threads"] in (1, None)
    assert set(rates["tiles"]) == set(map(str, doctor.TILES)) and min(rates["tiles"].values()) > 0
    assert doctor.elsewhere(os.environ | {"PYTHONHOME": "/nowhere"}, 0.001) is None


def test_caches_of_data(tmp_path):
    core = "sys/devices/system/cpu/cpu0/cache/index"
    for n, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K")]
    ):
        values = {"level": level, "type": kind, "size": size}
        files(tmp_path, {f"{core}{n}/{name}": text for name, text in values.items()})
    assert inventory.caches(tmp_path) == {"L1": 48 << 10, "L2": 1 << 20}
    assert inventory.caches(tmp_path / "sys") == {}
    m2 = {"hw.l1dcachesize": "65536", "hw.l2cachesize": "4194304"}
    assert inventory.mac_caches(lambda name: m2.get(name, "")) == {"L1": 1 << 16, "L2": 1 << 22}


def test_other_libraries_are_found_and_multiply(tmp_path, monkeypatch):
    monkeypatch.setattr(inventory.ctypes.util, "find_library", lambda name: None)
    assert inventory.libraries(tmp_path) == {}
    files(tmp_path, {"lib/libmkl_rt.so.3": ""})
    given = {"MKL": str(tmp_path / "lib/libmkl_rt.so.3")}
    assert inventory.libraries(tmp_path) == given
    products = []

    def cblas_sgemm(*arguments):
        products.append(arguments)

    library = SimpleNamespace(cblas_sgemm=cblas_sgemm)
    monkeypatch.setattr(doctor.ctypes, "CDLL", lambda file: library)
    assert doctor.library_rate(0.001, "libmkl_rt.so.3") > 0
    order, *_, n = products[0][:6]
    assert order == 101 and n == 256 and len(products[0]) == len(cblas_sgemm.argtypes) == 14
    monkeypatch.undo()
    monkeypatch.setattr(inventory, "libraries", lambda: given)
    assert inventory.rates(0.001) == {"MKL": None}  # an empty file


# Advice


def said(facts=None, measured=None, **environment):
    """Advice for ZEN5 with other facts, measurements and environment."""
    facts = ZEN5 | {"environment": environment} | (facts or {})
    return advice.advice(facts, QUIET | (measured or {}))


ARM = {"family": "", "clock": None}
ACCELERATE = {"blas": "Accelerate", "version": "", "kernels": "", "threads": None}
APPLE = ACCELERATE | {"processor": "Apple M2", "vectors": "neon"}
PINNED = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "512"}


def test_a_machine_with_nothing_to_mend():
    assert said() == []
    assert "Nothing to mend." in advice.text(ZEN5, QUIET)


XEON = {"processor": "Intel(R) Xeon(R) Platinum 8481C", "family": "GenuineIntel 6 143"}


@pytest.mark.parametrize("processor", [{}, XEON])
def test_slower_kernels_than_the_processor_has(processor):
    collapsed = RATES | {"kernels": "Haswell", "gflops": 56.0}  # both threads on one free core
    measured = {"all": collapsed, "one": ONE | SLOW, "unpinned": ONE}
    warning = said(processor | {"kernels": "Haswell"}, measured, **PINNED)[0]
    pins = "OPENBLAS_CORETYPE=Haswell OPENBLAS_L2_SIZE=512"
    assert f"{pins} in the environment holds NumPy back" in warning
    assert "Haswell kernels, 110 GFLOP/s" in warning
    assert "without it SkylakeX kernels, 210 GFLOP/s" in warning
    assert warning.endswith("unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE")


def test_slower_kernels_where_nothing_could_be_measured():
    pin = {"OPENBLAS_CORETYPE": "Haswell"}
    (warning,) = said({"kernels": "Haswell"}, advice.NOT_MEASURED, **pin)
    assert "holds NumPy back: Haswell kernels on a processor with avx512" in warning
    (warning,) = said({"kernels": "Haswell", "vectors": "avx2"}, advice.NOT_MEASURED, **pin)
    assert "may hold NumPy back. To remove" in warning


def test_a_pin_that_changes_nothing_and_one_that_helps():
    (warning,) = said(measured={"unpinned": ONE | {"gflops": 220.0}}, OPENBLAS_L2_SIZE="512")
    assert "makes no difference that could be measured" in warning
    assert "unset OPENBLAS_L2_SIZE" in warning
    assert said(measured={"unpinned": ONE | SLOW}, OPENBLAS_CORETYPE="SkylakeX") == []


def test_slow_loops_of_numpy_count_too():
    measured = {"one": ONE | {"tanh": 8.9}, "unpinned": ONE}
    (warning,) = said(measured=measured, NPY_DISABLE_CPU_FEATURES="X86_V3")
    for part in ("holds NumPy back", "8.9 ns for a tanh", "0.2 ns for a tanh"):
        assert part in warning


def test_avx2_kernels_are_right_on_an_avx2_processor():
    facts = {"vectors": "avx2", "kernels": "Haswell", "family": "AuthenticAMD 23 49"}
    assert said(facts, {"all": RATES | SLOW | {"gflops": 214.0}, "one": ONE | SLOW}) == []
    (warning,) = said(facts | {"kernels": "Nehalem"})
    assert "uses its Nehalem kernels on a processor with avx2" in warning
    assert "OPENBLAS_CORETYPE=Haswell" in warning


def test_an_old_openblas_does_not_know_a_new_processor():
    (warning,) = said({"kernels": "Zen", "version": "0.3.18"})
    assert "OpenBLAS 0.3.18 uses its Zen kernels" in warning
    assert "OPENBLAS_CORETYPE=SkylakeX" in warning
    measured = {"one": ONE | SLOW, "unpinned": ONE}
    pinned = said({"kernels": "Haswell"}, measured, OPENBLAS_CORETYPE="Haswell")
    assert not [warning for warning in pinned if "newer NumPy" in warning]


@pytest.mark.parametrize(
    "facts",
    [
        ARM | {"vectors": "neon", "kernels": "NEOVERSEN1", "processor": "Neoverse N1"},
        ARM | {"vectors": "sve", "kernels": "armv8", "processor": "Arm 0x41 0xfff"},
        ARM | APPLE | {"simd": ["NEON"], "cores": 8, "physical": 8, "load": 1.8},
        {"kernels": "", "blas": "MKL", "version": "2026.2"},
    ],
)
def test_machines_whose_kernels_are_not_known_are_left_in_peace(facts):
    rates = RATES | {"kernels": facts["kernels"], "threads": (ZEN5 | facts)["threads"]}
    measured = {"all": rates, "one": rates | {"gflops": 210.0}, "busy": None}
    assert said(facts, measured) == []
    text = advice.text(ZEN5 | facts, QUIET | measured)
    assert re.search("GFLOP/s, expected +(unknown +unknown|40 +80)\n", text) and "None" not in text


def test_no_optimised_blas():
    plain = {"blas": "blas", "version": "3.12.0", "kernels": "", "threads": None}
    (warning,) = said(plain, {"all": RATES | {"gflops": 2.1}, "one": RATES | {"gflops": 2.1}})
    assert "'blas' and 2.1 GFLOP/s were measured" in warning
    assert "pip install --force-reinstall numpy" in warning
    (warning,) = said(plain, advice.NOT_MEASURED)
    assert "no optimised BLAS" in warning and "measured" not in warning
    assert said(plain) == []  # unknown, but fast: another good library
    small_board = {"all": RATES | {"gflops": 4.0}, "one": RATES | {"gflops": 2.2}}
    assert said({"clock": 1.5}, small_board) == []


@pytest.mark.parametrize(
    "blas, variable",
    [
        ("OpenBLAS", "OPENBLAS_NUM_THREADS"),
        ("MKL", "MKL_NUM_THREADS"),
        ("FlexiBLAS", "OMP_NUM_THREADS"),
        ("else", "OMP_NUM_THREADS"),
    ],
)
def test_more_threads_than_cores(blas, variable):
    (warning,) = said({"threads": 8, "blas": blas}, {"one": None})
    assert warning == f"8 threads on 2 cores wait for each other. Set {variable}=2"


@pytest.mark.parametrize("quota, threads, wanted", [(1.5, 2, 1), (0.5, 2, 1), (4.0, 8, 4)])
def test_more_threads_than_a_container_allows(quota, threads, wanted):
    facts = {"cores": 8, "physical": 8, "quota": quota}
    (warning,) = said(facts | {"threads": threads}, {"one": None})
    assert f"may use {quota:g} of them" in warning
    assert warning.endswith(f"Set OPENBLAS_NUM_THREADS={wanted}")
    assert said(facts | {"threads": wanted}, {"one": None}) == []


def test_hardware_threads_of_one_core():
    facts = {"cores": 4, "physical": 2, "threads": 4}
    four_threads = RATES | {"threads": 4}
    (warning,) = said(facts, {"all": four_threads, "cores": RATES | {"gflops": 520.0}})
    assert "2 threads, one for each core, are faster than 4: 520 GFLOP/s instead of 400" in warning
    assert warning.endswith("OPENBLAS_NUM_THREADS=2")
    assert said(facts, {"all": four_threads, "cores": RATES | {"gflops": 420.0}}) == []
    assert "2 that share no units" in advice.text(ZEN5 | facts, QUIET)


def test_fewer_threads_than_cores():
    (warning,) = said({"threads": 1}, {"one": None}, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    assert "1 of 2 cores" in warning and warning.endswith("unset OMP_NUM_THREADS")
    (warning,) = said({"threads": 64, "cores": 96, "physical": 96}, {"one": None})
    assert warning.endswith("try OPENBLAS_NUM_THREADS=96")
    assert said({"threads": 2, "cores": 4, "physical": 2}) == []  # one a core, as MKL does


def test_a_busy_machine():
    (warning,) = said(measured={"busy": 1.02})
    assert "1.0 of 2 cores busy" in warning and warning.endswith("OPENBLAS_NUM_THREADS=1")
    assert said(measured={"busy": 0.3}, facts={"load": 5.0}) == []  # the load of a minute ago
    (warning,) = said(measured={"busy": None}, facts={"load": 1.2})
    assert "1.2 of 2 cores busy" in warning
    single = {"cores": 1, "physical": 1, "threads": 1}
    (warning,) = said(single, {"busy": 1.0, "one": None})
    assert warning.endswith("Wait for it to end")
    # two are left for two threads
    assert said(measured={"busy": 1.0}, facts={"cores": 4, "physical": 2}) == []
    (warning,) = said(measured={"all": RATES | {"gflops": 5.0}})
    assert "2 threads are only 0.024 times as fast as one" in warning


# What is expected, and the page

INTEL = "GenuineIntel 6 85"


@pytest.mark.parametrize(
    "facts, kernels, threads, gflops",
    [
        ({}, "SkylakeX", 2, 320),
        ({}, "Haswell", 2, 160),
        ({}, "SkylakeX", 1, 160),
        ({}, "SkylakeX", 8, 320),
        ({"quota": 1.5}, "SkylakeX", 2, 240),
        ({"physical": 1}, "SkylakeX", 2, 160),
        ({"physical": None}, "Zen", 2, 160),
        ({"family": "AuthenticAMD 25 17"}, "Cooperlake", 2, 160),
        ({"family": "AuthenticAMD 23 1"}, "Zen", 2, 80),
        ({"family": "AuthenticAMD 23 49"}, "Zen", 2, 160),
        ({"family": "AuthenticAMD 26 36"}, "SkylakeX", 2, 160),
        ({"family": INTEL, "processor": "Intel(R) Xeon(R) Silver 4114"}, "SkylakeX", 2, 160),
        ({"family": INTEL, "processor": "Intel(R) Xeon(R) Gold 6130"}, "SkylakeX", 2, 320),
        ({"clock": None}, "SkylakeX", 2, None),
        ({}, "Nehalem", 2, None),
        ({}, "", 2, None),
        ({}, "Haswell", None, None),
        ({"family": "", "processor": "Neoverse N1"}, "NEOVERSEN1", 2, 80),
    ],
)
def test_expected_rates(facts, kernels, threads, gflops):
    assert advice.expected(ZEN5 | facts, kernels, threads) == gflops


def test_the_page_has_every_fact_and_every_case():
    pins = {"environment": PINNED, "kernels": "Haswell", "quota": 1.5}
    text = advice.text(ZEN5 | pins, QUIET | {"one": ONE | SLOW, "unpinned": ONE})
    for part in (
        "AMD EPYC, avx512",
        "1.5 allowed by the container",
        "16 GB",
        "OpenBLAS 0.3.31, kernels: Haswell",
        "OPENBLAS_CORETYPE=Haswell, OPENBLAS_L2_SIZE=512",
        "X86_V3 X86_V4",
        "0.0 of 2 cores busy, load 0.1",
        "2.50 GHz",
        "nothing pinned: 1",
        "OPENBLAS_NUM_THREADS is set.",
    ):
        assert part in text
    assert re.search(r"GFLOP/s, measured +110 +400 +210\n", text)
    assert re.search(r"tiles of 128 k +1.25 +1.25 +1.25\n", text)
    assert re.search(r"fastest tiles \(size\)( +1.20 \(64 k\)){3}\n", text)
    assert "L1 48 kB, L2 1 MB, L3 32 MB" in text and "none found" in text
    assert max(map(len, text.splitlines())) <= 110


def test_the_page_of_a_machine_of_which_nothing_is_known():
    nothing = {}
    for name, value in ZEN5.items():
        a_number = value is None or isinstance(value, (int, float))
        nothing[name] = None if a_number else type(value)()
    nothing |= {"cores": 1, "blas": "unknown"}
    text = advice.text(nothing, advice.NOT_MEASURED)
    assert "nothing could be measured" in text and "None" not in text


def test_the_line_beside_a_table():
    assert doctor.line(ZEN5) == (
        "AMD EPYC, 2 cores; OpenBLAS 0.3.31, SkylakeX kernels, 2 threads; NumPy 2.4.6, "
        "Python 3.12.1, Linux"
    )
    assert "; Accelerate, kernels unknown, threads as it likes; " in doctor.line(ZEN5 | ACCELERATE)


def test_a_faster_blas_of_this_machine_is_named():
    assert said(measured={"others": {"MKL": 215.0, "BLIS": None}}) == []
    (warning,) = said(measured={"others": {"MKL": 300.0, "BLIS": None}})
    assert "MKL on this machine multiplies at 300 GFLOP/s" in warning and "at 210" in warning
    text = advice.text(ZEN5, QUIET | {"others": {"MKL": 300.0, "BLIS": None}})
    assert "MKL: 300 GFLOP/s on one thread, BLIS: does not run" in text


def test_tiles_that_do_not_fit_the_caches_are_reported():
    slow = ONE | {"tiles": ONE["tiles"] | {"131072": 1.5}}
    (warning,) = said(measured={"one": slow})
    assert "tiles of 64 thousand numbers" in warning and "1.20 instead of 1.50 ns" in warning
    busy = {"one": slow, "busy": 1.0, "all": RATES | {"threads": 1}}
    assert not [text for text in said({"threads": 1}, busy) if "tiles" in text]


# The command


def test_the_command_describes_what_other_programs_get(tmp_path):
    env = {name: value for name, value in os.environ.items() if name not in doctor.THREADS}
    env["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-m", "minitx.analysis", "doctor", "--json"]
    process = subprocess.run(
        command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=200, check=False
    )
    report = json.loads(process.stdout)
    assert process.stderr == "" and set(report) == {"facts", "measured", "advice"}
    threads = {name for name in report["facts"]["environment"] if name in doctor.THREADS}
    assert threads == {"OMP_NUM_THREADS"}  # and not the one thread that other commands choose
    assert report["measured"]["all"]["gflops"] > 0


def test_the_command_prints_the_page(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "measure", lambda: dict(QUIET))
    monkeypatch.setattr(inventory, "rates", dict)
    assert cli.main(["doctor"]) == 0
    assert "GFLOP/s, measured" in capsys.readouterr().out
