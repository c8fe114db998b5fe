"""Models beside a model, of an experiment that takes several: the option `others`.

A name says a model that comes with the project, a folder, or a hub id; `bundled` and `zoo` all of a
kind.
"""

import minitx

from ..contract import sides
from ..running import settings


def others(names, model, partial=False):
    """The models that these names, joined by commas, say; of a list, all but the model itself.

    Raises FileNotFoundError for an unknown name.
    """
    folders = [folder for _, folder in settings.others(names)]
    if names in settings.LISTED:
        own = model.tokenizer.folder  # None: the model is in memory
        folders = [x for x in folders if own is None or x.resolve() != own.resolve()]
    return [sides.reader(minitx.load(folder, partial=partial)) for folder in folders]


def name(model):
    """Name of a model's folder, or of the hub's repository that it was fetched from."""
    if model.tokenizer.folder is None:
        return "in memory"
    folder = model.tokenizer.folder.resolve()
    if folder.parent.name == "snapshots":  # models--OWNER--NAME/snapshots/COMMIT
        return folder.parent.parent.name.split("--")[-1]
    return folder.name


def hashes(model):
    """sha256 of the weight files, or of the arrays in memory, in one string."""
    return " ".join(settings.origin(model)["weights"].values())
