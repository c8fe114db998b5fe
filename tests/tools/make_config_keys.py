"""The keys that the reference library knows in a config.json: minitx/loading/families/keys.json.

    python tests/tools/make_config_keys.py          writes the file (needs torch and the library)
    python tests/tools/make_config_keys.py --check  says how the library differs from the file

For each model type {key: default}: fields of the library's config class; what its code asks the
config for by getattr, and what the class takes from other keys; for old spellings the key that they
stand for. Its keys.py refuses what is not at its default and not read. Exit status 1
where a key is new to a type that the file has: it must be read, or be in INERT, or stay refused.
"""

import argparse
import ast
import dataclasses
import importlib
import inspect
import json
import sys
from pathlib import Path

import transformers
from transformers.configuration_utils import PreTrainedConfig
from transformers.generation.configuration_utils import GenerationConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.processing_utils import ImagesKwargs

from minitx.images import KINDS
from minitx.loading.families import FAMILIES

FILE = Path(__file__).parents[2] / "minitx" / "families" / "keys.json"
BASE = {field.name for field in dataclasses.fields(PreTrainedConfig)}
# what the library's shared code, not that of one type, asks a config for, and that changes numbers
SHARED = {"is_causal": True, "per_layer_config": None}


def plain(value):
    """A default as JSON has it."""
    return json.loads(json.dumps(value, default=str))


def default_of(field):
    if field.default is not dataclasses.MISSING:
        return plain(field.default)
    factory = field.default_factory
    return None if factory is dataclasses.MISSING else plain(factory())


def literal(node):
    try:
        return plain(ast.literal_eval(node))
    except (ValueError, TypeError):
        return None


def calls(path, names):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in names:
                yield node


def asked(path):
    """{key: default} that code reads of a config by getattr or hasattr."""
    for call in calls(path, ("getattr", "hasattr")):
        if "config" in ast.unparse(call.args[0]) and isinstance(call.args[1], ast.Constant):
            yield call.args[1].value, literal(call.args[2]) if len(call.args) > 2 else None


def taken(path):
    """Keys that a config class takes out of what is no field of it."""
    for call in calls(path, ("pop", "get")):
        if "kwargs" in ast.unparse(call.func) and isinstance(call.args[0], ast.Constant):
            yield call.args[0].value, None


def computed(cls, fields):
    """Attributes that are no fields, that a class computes, and that a file may set."""
    config = cls()
    tree = ast.parse(Path(inspect.getfile(cls)).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
            if ast.unparse(node.value) == "self" and name not in fields and hasattr(config, name):
                yield name, None


def keys_of(cls):
    code = Path(inspect.getfile(cls))
    modeling = code.with_name(code.name.replace("configuration", "modeling"))
    fields = {f.name: default_of(f) for f in dataclasses.fields(cls)}
    more = {**dict(asked(modeling)), **dict(taken(code)), **dict(computed(cls, fields))}
    more = {key: x for key, x in more.items() if not key.startswith("_") and key not in fields}
    keys = more | SHARED | {key: x for key, x in fields.items() if key not in BASE}
    return {key: keys[key] for key in sorted(keys)}


def processor(kind):
    """{key: default} of one class that makes pictures ready."""
    module = f"transformers.models.{kind.lower()}.image_processing_pil_{kind.lower()}"
    cls = getattr(importlib.import_module(module), f"{kind}ImageProcessorPil")
    more = dict(taken(Path(inspect.getfile(cls))))
    keys = sorted(ImagesKwargs.__annotations__)
    return plain(more | {key: getattr(cls, key, None) for key in keys})


def table():
    """The whole file: {"types": {type: {key: default}}, "old": {type: {old key: key}}, …}."""
    classes = {name: CONFIG_MAPPING[name] for name in sorted(FAMILIES)}
    generation = vars(GenerationConfig()) | GenerationConfig._get_default_generation_params()
    types = {name: keys_of(cls) for name, cls in classes.items()}
    maps = {name: dict(sorted(cls.attribute_map.items())) for name, cls in classes.items()}
    old = {name: names for name, names in maps.items() if names}
    version = {"transformers": transformers.__version__}
    pictures = {kind: processor(kind) for kind in KINDS}
    more = {"generation": plain(generation), "pictures": pictures}
    return version | {"types": types, "old": old} | more


def grown(before, now):
    """Keys that types of the file did not have."""
    for name in before["types"].keys() & now["types"].keys():
        for key in now["types"][name].keys() - before["types"][name].keys():
            yield f"{name}: {key}"


def main():
    parser = argparse.ArgumentParser(description="The keys of config.json, from the library.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    now = table()
    before = json.loads(FILE.read_text()) if FILE.exists() else {"types": {}}
    if not check:
        FILE.write_text(json.dumps(now, separators=(",", ":")).replace('},"', '},\n"') + "\n")
    new = sorted(grown(before, now))
    print(*new, sep="\n")
    if check and before != now:
        print(f"{FILE.name} is of {before['transformers']}; the library gives another")
        sys.exit(1)
    sys.exit(bool(new))


if __name__ == "__main__":
    main()
