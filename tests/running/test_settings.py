"""Settings name everything that the numbers of a run depend on."""

import numpy as np

from minitx import weights
from minitx.analysis.contract import registry
from minitx.analysis.running import settings
from minitx.analysis.texts import formats


def test_settings_name_everything_that_the_numbers_depend_on(bundled):
    stated = settings.of_run(registry.get("profiles"), bundled, "tiny-roberta", {"documents": 7})
    folder = weights.find("tiny-roberta")
    assert stated["weights"] == {"model.safetensors": formats.sha256(folder / "model.safetensors")}
    options = {"text": "sample", "documents": 7, "tokens": 0, "clusters": 6, "seed": 0}
    options |= {"clustered": "attention", "reach": 10, "pairs": ""}
    assert stated["options"] == options
    digest = formats.sha256(formats.SAMPLE)
    assert stated["text"] == {"name": "sample.txt", "files": 1, "sha256": digest}
    assert stated["versions"]["numpy"] == np.__version__
    assert stated["model"] == "tiny-roberta"
    assert stated["revision"] is None


def test_a_download_is_named_by_its_commit(tmp_path):
    assert settings.revision(tmp_path / "snapshots" / "abc123") == "abc123"
