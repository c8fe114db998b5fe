"""Experiments on what a model computes, in rooms; each imports only from rooms above it here.

maths        arrays in, arrays out
texts        from files to documents of token ids
machine      this computer: its threads, its files, its terminal
drawing      how results are shown: sentences, panels, the style of figures
contract     what an experiment is: options, numbers with their nulls, answers, Result
running      how experiments run: streams of documents, shared passes, processes, a cluster
measures     numbers from forward passes that several experiments share
toys         small models that are no transformers
experiments  one question a file; the file's name is the command's
pages        what people look at
commands     the command line, derived from the list of experiments

From Python, `run` gives what the command `minitx run` writes; EXPERIMENTS has them all:

    from minitx import analysis
    result = analysis.run("rotation", "tiny-roberta", gauge=4)
    result.numbers["agree"].value, result.arrays["share"], result.figure(), result.save("out")
"""

from os import PathLike
from typing import TYPE_CHECKING, Any

from minitx import Model

from .contract.registry import Experiment
from .contract.results import Result

__all__ = ["EXPERIMENTS", "Result", "run"]
EXPERIMENTS: dict[str, Experiment]  # {name: Experiment}, see __getattr__


def run(
    experiment: str,
    model: Model | str | PathLike[str],
    /,
    *,
    client: Any = None,
    progress: bool = False,
    **options: str | float | PathLike[str],
) -> Result:
    """Run an experiment on a model; in a notebook the Result displays itself.

    experiment: a name of EXPERIMENTS. model: a Model, or a bundled name, folder, or hub id.
    options: as for the command, such as `documents=20`; those not given have their defaults.
    client: of a Dask cluster whose workers measure the documents.
    progress: a bar for each loop over documents, in notebooks, too.
    `side="encoder"`, "decoder" or "cross" selects the part of an encoder-decoder. If
    arrays of a Model differ from its files, the Result's settings name them under "changed". Raises
    ValueError for an unknown experiment, option, or type of an option, before any work, and
    NotApplicable, a ValueError, if the model lacks what the experiment needs.

    >>> from minitx import analysis
    >>> analysis.EXPERIMENTS["positions"].question
    'Do position embeddings have spectral peaks away from frequency 0?'
    >>> result = analysis.run("positions", "tiny-roberta")
    >>> result.answer.verdict, result.numbers["peak_at"].value
    ('yes', 89)
    """
    from . import experiments  # noqa: F401  (fills the list; with SciPy)
    from .machine.progress import bars
    from .running import single

    with bars(progress):
        return single.run(experiment, model, options, client)


if not TYPE_CHECKING:  # a type checker would take any name for one that there is

    def __getattr__(name):
        """EXPERIMENTS, filled when it is first asked for, because this imports SciPy."""
        if name != "EXPERIMENTS":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import experiments  # noqa: F401
        from .contract import registry

        return registry.EXPERIMENTS
