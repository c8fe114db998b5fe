"""The notebook first_steps.ipynb, executed by a real kernel: what each cell shows.

The notebook is stored without outputs. The kernel talks over sockets of the file system, not of
any network, and its files lie in a folder that is deleted.
"""

import json
import os
import re
import tempfile
from pathlib import Path

import matplotlib.font_manager  # noqa: F401  (its cache is built here, not with words in a cell)
import nbformat
import numpy as np
import pytest
from elements import Elements
from nbclient import NotebookClient
from traitlets.config import Config

import minitx

ROOT = Path(__file__).parents[2]
NOTEBOOK = Path(__file__).with_name("first_steps.ipynb")
LINES = 6  # of a cell
# of all outputs: measured 1,339,000, of which the page is 829,000: 490,000 are D3 and Plot, 138,000
# its own program, which has grown with its views, 32,000 its picture for LaTeX, most of the rest
# numbers of the run; a result's picture for LaTeX is 60,000
BYTES = 1_350_000
PICTURE = "display_data", "image/png"
VALUE = "execute_result", "text/plain"
TABLE = "execute_result", "text/html"
PRINTED = "stream", "stdout"
SHOWN = {  # cell: kind of each output
    "load": [TABLE],
    "run": [TABLE],
    "attention": [PICTURE],
    "measure": [],
    "patch": [PRINTED],
    "sweep": [PICTURE],
    "heads": [VALUE],
    "ablate": [VALUE],
    "lens": [PRINTED],
    "experiment": [TABLE],
    "figure": [PRINTED, ("execute_result", "image/png")],
    "page": [TABLE],
}
KINDS = "text/html", "image/png", "text/plain"  # as Jupyter prefers them
PASSIVE = set("div p b small br img table thead tbody tr th td details summary iframe".split())


def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


def code_cells(notebook):
    """{id: cell} of those with code."""
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


@pytest.fixture(scope="module")
def executed():
    """The notebook after all cells ran; an error in one fails with its traceback."""
    notebook = stored()
    # a short path: the name of a socket has at most 104 bytes on macOS
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, folder)
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
        # a busy kernel sends what a cell prints in several messages
        settings = {"timeout": 200, "startup_timeout": 100, "coalesce_streams": True}
        client = NotebookClient(notebook, config=config, **settings)
        client.execute(env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=folder)
    return code_cells(notebook)


def kind(output):
    """(type, what Jupyter shows of it): ("stream", "stdout"), ("display_data", "image/png")."""
    if output.output_type == "stream":
        return "stream", output.name
    return output.output_type, next(name for name in KINDS if name in output.data)


def printed(cell):
    """The numbers with a sign that a cell prints."""
    return [float(number) for number in re.findall(r"[+-]\d+\.\d+", cell.outputs[0].text)]


def html(cell):
    return cell.outputs[-1].data["text/html"]


# the cells


def test_it_is_stored_without_outputs():
    for cell in code_cells(stored()).values():
        assert cell.outputs == [] and cell.execution_count is None


def test_no_cell_is_longer_than_six_lines():
    for name, cell in code_cells(stored()).items():
        assert len(cell.source.splitlines()) <= LINES, name
        assert "sys.path" not in cell.source


def test_every_cell_stands_behind_a_sentence_about_it():
    kinds = "".join(cell.cell_type[0] for cell in stored().cells)
    assert re.fullmatch("(mc)+", kinds)


def test_every_cell_shows_what_it_should_and_warns_of_nothing(executed):
    assert {name: [*map(kind, cell.outputs)] for name, cell in executed.items()} == SHOWN


def test_all_outputs_together_are_small(executed):
    outputs = {name: len(json.dumps(cell.outputs)) for name, cell in executed.items()}
    assert sum(outputs.values()) < BYTES
    assert sum(outputs.values()) - outputs["page"] < BYTES * 0.4


# what they show


def test_the_kernel_runs_this_minitx(executed):
    model = minitx.load("tiny-gpt2")
    assert executed["load"].outputs[0].data["text/plain"] == repr(model)
    assert html(executed["load"]) == model._repr_html_()
    trace = minitx.run(model, "and when she came home,")
    assert html(executed["run"]) == trace._repr_html_()


def test_the_patch_carries_the_preference_from_one_text_to_the_other(executed):
    of_she, of_he, patched = printed(executed["patch"])
    assert of_she > 0.5 and of_he < -0.5
    assert patched > 0.5


def test_the_sweep_over_heads_finds_two_in_the_last_layer(executed):
    effect = np.array(json.loads(re.sub(r"array|[()]|\s", "", text_of_array(executed["heads"]))))
    assert effect.shape == (4, 4)
    assert {*zip(*np.nonzero(effect > 0.5))} == {(3, 2), (3, 3)}


def text_of_array(cell):
    """NumPy writes -0. and 1. where JSON wants digits."""
    return re.sub(r"\.(?=\D)", ".0", cell.outputs[0].data["text/plain"])


def test_without_its_head_the_model_prefers_the_other_word(executed):
    text = executed["ablate"].outputs[0].data["text/plain"]
    assert float(re.search(r"-?\d+\.\d+", text)[0]) < -0.5


def test_the_last_layer_of_the_lens_is_the_model_itself(executed):
    values = printed(executed["lens"])
    assert len(values) == 4
    assert values[-1] == printed(executed["patch"])[0]
    assert max(values[:-1]) < 0  # decided in the last layer


def test_the_result_shows_figure_answer_and_numbers_beside_chance(executed):
    shown = html(executed["experiment"])
    assert shown.startswith('<div><img alt="Do heads attend to fixed relative positions')
    assert "data:image/svg+xml;base64," in shown and "<th>by chance</th>" in shown
    assert re.fullmatch(r"\d\.\d\d, by chance .*\n", executed["figure"].outputs[0].text)


def test_pictures_are_pictures(executed):
    for name in ("attention", "sweep", "figure"):
        png = executed[name].outputs[-1].data["image/png"]
        assert png.startswith("iVBORw0KGgo") and len(png) > 5000, name


def active(text):
    """What in a piece of HTML could run in the notebook's own page."""
    for tag, values, _ in Elements(text).elements:
        sandbox = values.get("sandbox", "allow-same-origin").split()
        shut_off = tag != "iframe" or "allow-same-origin" not in sandbox
        if tag not in PASSIVE or not shut_off:
            yield tag
        for name, value in values.items():
            if name.startswith("on") or re.match(r"\s*javascript:", value or "", re.I):
                yield f"{tag} {name}"


def test_nothing_runs_in_the_notebooks_own_page(executed):
    for name, cell in executed.items():
        for output in cell.outputs:
            data = output.get("data", {})
            assert not data.keys() - {*KINDS}, name  # no application/javascript
            assert [*active(data.get("text/html", ""))] == [], name
            assert "<script" not in data.get("text/html", "").lower(), name


@pytest.mark.parametrize(
    "text, what",
    [
        ("<p>a</p><script>1</script>", ["script"]),
        ('<img src="" onerror="1">', ["img onerror"]),
        ('<p style="" ONCLICK="1">', ["p onclick"]),
        ('<iframe src=" javascript:1" sandbox=""></iframe>', ["iframe src"]),
        ('<iframe srcdoc="a"></iframe>', ["iframe"]),
        ('<iframe srcdoc="a" sandbox="allow-scripts allow-same-origin"></iframe>', ["iframe"]),
        ('<iframe srcdoc="&lt;script>" sandbox="allow-scripts"></iframe>', []),
        ("<svg><a></a></svg>", ["svg", "a"]),
    ],
)
def test_the_check_can_tell(text, what):
    assert [*active(text)] == what
