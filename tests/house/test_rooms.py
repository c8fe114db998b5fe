"""Rooms and floors: imports point down, no circles, heavy packages where they belong."""

import re

import pytest
import rooms

from minitx.analysis.experiments import IN_ORDER

MODULES = rooms.sources()
WORKERS = "minitx.analysis.running.cluster"  # on a cluster that the user chose
SENT = "minitx.analysis.running.shipping"
NETWORK = {"huggingface_hub", "requests", "httpx", "urllib", "socket", "fsspec", "aiohttp"}
# beside minitx.weights.fetch
ALLOWED = {
    "minitx.analysis.live.server": {"socket"},  # on this machine alone
    "minitx.analysis.texts.remote": {"fsspec"},  # where a user names a URL
}


def test_imports_between_rooms_point_down():
    floors = rooms.FLOORS
    assert [(a, b) for a, b in sorted(rooms.arrows()) if floors[b] >= floors[a]] == []


def test_there_are_few_rooms_and_no_circle():
    assert len(rooms.FLOORS) <= 23
    assert rooms.circle(rooms.arrows()) == []
    assert rooms.circle(rooms.module_arrows()) == []
    assert rooms.circle({("a", "b"), ("b", "c"), ("c", "b"), ("a", "c")}) == ["a", "b", "c"]


@pytest.mark.parametrize("pair", sorted(rooms.ON_CALL), ids=" -> ".join)
def test_what_is_imported_on_a_call_is_imported_inside_a_function(pair):
    module, target = pair
    assert target in rooms.imports(module, MODULES[module])
    assert target not in rooms.imports(module, MODULES[module], top_level_only=True)


def test_minitx_has_floors_inside():
    for module, target in rooms.module_arrows():
        if rooms.room(module) == rooms.room(target) == "minitx":
            assert rooms.floor(target) <= rooms.floor(module), f"{module} imports {target}"


def experiment(module):
    """The experiment whose name a module of analysis/experiments bears."""
    name = module.rpartition(".")[2].removeprefix("_")
    return next((x for x in IN_ORDER if f"{name}_".startswith(f"{x}_")), None)


def test_an_experiment_imports_none_but_files_that_bear_its_name():
    """_mechanisms_row.py serves mechanisms.py alone, and its other files."""
    package = "minitx.analysis.experiments."
    for importer, target in rooms.module_arrows():
        if target.startswith(package) and (importer.startswith(package) or "._" in target):
            assert "._" in target and experiment(importer) == experiment(target)


def test_maths_needs_numpy_and_scipy_alone():
    maths = "minitx.analysis.maths"
    out = [(a, b) for a, b in rooms.module_arrows() if rooms.room(a) == maths != rooms.room(b)]
    assert out == [] and maths in map(rooms.room, MODULES)


def test_heavy_packages_stay_where_they_belong():
    for module, path in MODULES.items():
        stays(module, path)


def stays(module, path):
    """Fails where a module imports what it may not."""
    top = {name.split(".")[0] for name in rooms.imports(module, path, top_level_only=True)}
    names = set(rooms.imports(module, path))
    anywhere = {name.split(".")[0] for name in names if not name.startswith("urllib.parse")}
    heavy = {"matplotlib", "torch", "transformers", "onnxruntime", "transformer_lens"}
    heavy |= {"dask", "distributed", "cloudpickle"}
    assert not top & heavy, module
    if module.startswith("minitx.weights"):
        assert not anywhere & {"torch", "transformers"}, module
    if rooms.room(module) == "minitx":
        assert "scipy" not in top, module
        assert not anywhere & {"matplotlib", "torch", "huggingface_hub"}, module
    if module != "minitx.weights.fetch":
        assert anywhere & NETWORK <= ALLOWED.get(module, set()), module
    if module not in (WORKERS, SENT, "benchmarks.workers"):
        assert not anywhere & {"dask", "distributed"}, module


def test_no_pickle_is_loaded():
    for module, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        if module == SENT:  # bytes that come over the wire of a cluster, never of a file
            text = text.replace("pickle.loads(package.content)", "", 1)
        assert not re.search(r"\bpickle\.|torch\.load|allow_pickle=True", text), module


def test_the_model_knows_no_families():
    text = MODULES["minitx.model"].read_text(encoding="utf-8")
    code = re.sub("^ +>>> .*", "", text, flags=re.M)  # comments name BERT and GPT-2, examples load
    assert not re.search("bert|gpt", code)
