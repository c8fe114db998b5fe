"""Types of the public surface: annotated, held to by a type checker, which can refuse a slip.

mypy comes with the extra `lint`; without it only the annotations are looked at.
"""

import inspect
import os
import subprocess
import sys

import pytest
import rooms

import minitx
from minitx import analysis, circuits, weights
from minitx.analysis import Result

RIGHT = """
import numpy as np
import minitx
from minitx import analysis, circuits, weights

model = minitx.load("tiny-gpt2", dtype=np.float64)
W_pos: np.ndarray = model.weights.W_pos
width: int = model.layers[-1].W_Q.shape[0] // model.config.n_heads
trace = minitx.run(model, "A dog", ["q", ("pattern", -1)], edits={"pos_embed": np.zeros_like})
minitx.run("tiny-gpt2", "A dog")
minitx.run(model, [1, 2, 3], edits={("z", 0): lambda z: z * 0}, mask=lambda q, k: abs(q - k) < 8)
pattern: np.ndarray = trace["pattern", -1]
both: bool = "q" in trace and trace.stack("q").shape == trace.labels.shape
x = minitx.forward(model, model.encode(["A dog", "A cat"]).tokens, cache=minitx.Cache())
y: np.ndarray = minitx.logits(model, minitx.final_norm(model, x))
text: str = model.tokenizer.decode(minitx.generate(model, "A dog", 4, temperature=0.5))
swept = minitx.sweep(model, "A dog", "A cat", lambda logits: logits[0, -1].max()).mean()
table = circuits.logit_attribution(model, "A man", " he", " she")
part: np.ndarray = table["logits"] + table.null
scores: float = circuits.detect_heads(model)["induction"].max()
pairs = ["He was", "His house"], ["She was", "Her house"]
effects = circuits.patch(model, *pairs, [(" he", " she"), (3, 4)], at="z")
wide: np.ndarray = effects.intervals[1] - effects.effects
circuits.path_patch(model, *pairs, (3, 4), sender=(0, 1), receiver=("q", 1, 2), mlps="recomputed")
circuits.attribute(model, *pairs, lambda logits: logits[:, -1, 3], by="node", steps=4)
answer: str = circuits.find(model, [("He was", "She was")], (" he", " she")).answer
result = analysis.run("rotation", model, gauge=4, text=weights.find("tiny-gpt2"))
more: bool = result.numbers["agree"].value > 0.5 and "share" in result.arrays
written: bool = result.save("out").exists()
result.figure().savefig(f"{[*analysis.EXPERIMENTS][0]}.png")
"""
WRONG = {  # a line of a user's program -> the kind of mistake that it is
    "minitx.run(model, 3.5)": "arg-type",
    'minitx.forward("tiny-gpt2", [1, 2])': "arg-type",
    'minitx.run(model, "A dog", keep=[3])': "list-item",
    'minitx.run(model, "A dog", kep=["q"])': "call-arg",
    'minitx.load("tiny-gpt2", partial="yes")': "arg-type",
    'minitx.generate(model, "A dog", "4")': "arg-type",
    'minitx.logits(model, "A dog")': "arg-type",
    "model.weights.W_poss": "attr-defined",
    "model.layers[0].w_q": "attr-defined",
    "model.config.n_head": "attr-defined",
    "model.config.n_layers = 3": "misc",
    "model.tokenizer.encode([3])": "list-item",
    'minitx.run(model, "A dog").stack(3)': "arg-type",
    'minitx.run(model, "A dog")["q", "1"]': "index",
    "minitx.Cache().lenght": "attr-defined",
    'analysis.run("rotation", model).number': "attr-defined",
    'analysis.run("rotation", 3)': "arg-type",
    'analysis.run("rotation", model, gauge=[4])': "arg-type",
    "analysis.EXPERIMENT": "attr-defined",
    "weights.find(3)": "arg-type",
    'circuits.detect_heads(model, ["inducing"])': "list-item",
    'circuits.patch(model, "A dog", "A cat", 3)': "arg-type",
    'circuits.attribute(model, "A dog", "A cat", (3, 4), by="head")': "arg-type",
    'circuits.patch(model, "A dog", "A cat", (3, 4)).effect': "attr-defined",
    "minitx.runn": "attr-defined",
}


def checked(*arguments):
    """What mypy prints of these files or options, and its status."""
    pytest.importorskip("mypy", reason="comes with the extra `lint`")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, arguments)]
    env = os.environ | {"MYPYPATH": str(rooms.ROOT)}
    done = subprocess.run(
        command, cwd=rooms.ROOT, env=env, capture_output=True, text=True, timeout=500, check=False
    )
    return done.stdout + done.stderr, done.returncode


def test_the_surface_is_what_its_annotations_say():
    assert checked() == ("", 0)


def test_a_users_slip_is_refused_and_right_use_is_accepted(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(RIGHT + "\n".join(WRONG) + "\n")
    output, status = checked(file)
    first = RIGHT.count("\n") + 1
    wanted = dict(enumerate(WRONG.values(), first))
    given = {}
    for line in output.splitlines():
        _, number, rest = line.split(":", 2)
        if "error:" in rest:
            given[int(number)] = rest.rpartition("[")[2].rstrip("]")
    assert (given, status) == (wanted, 1)


SURFACE = {f"minitx.{name}": getattr(minitx, name) for name in minitx.__all__}
SURFACE |= {f"weights.{name}": getattr(weights, name) for name in weights.__all__}
SURFACE |= {f"circuits.{name}": getattr(circuits, name) for name in circuits.__all__}
SURFACE |= {"analysis.run": analysis.run, "analysis.Result": Result}
SURFACE |= {"Config": minitx.config.Config, "Tokenizer": minitx.words.text.Tokenizer}
INSIDE = "minitx.Cache.with_new", "minitx.Cache.append"  # what a forward pass calls


def public_functions():
    """{name: function} of the surface: functions, and methods and properties of its classes."""
    for name, value in SURFACE.items():
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            for key, member in vars(value).items():
                # of a property, or a cached one, its function
                function = getattr(member, "fget", None) or getattr(member, "func", member)
                if inspect.isfunction(function) and not key.startswith("_"):
                    yield f"{name}.{key}", function


@pytest.mark.parametrize("name, function", [*public_functions()])
def test_public_functions_are_annotated(name, function):
    if name in INSIDE:
        return
    signature = inspect.signature(function)
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters.values():
        assert parameter.name == "self" or parameter.annotation is not parameter.empty, parameter


def test_users_get_the_annotations():
    setup = (rooms.ROOT / "setup.cfg").read_text(encoding="utf-8")
    assert (rooms.ROOT / "minitx/py.typed").is_file() and "minitx = py.typed" in setup
