"""Makes tests/golden/parity: what `minitx record` writes for one golden model of each family.

Needs torch, as make_golden.py does. tests/parity tries conversions with a mistake against them; the
page on CI, howto/ci.md, has a model of its own.
"""

import contextlib
import re
import tempfile
from pathlib import Path

from minitx import weights
from minitx.analysis.parity import record

GOLDEN = Path(__file__).parents[1] / "golden"
PAGE = GOLDEN.parents[1] / "docs/pages/howto/ci.md"
VARIANTS = """
    bert-masked roberta-masked distilbert-masked gpt2-causal bart-causal marian-shared t5-gated
    bert-sequence bert-question bert-choice electra-replaced mpnet-masked t5-sequence
""".split()
HOW = record.How(texts=3, tokens=12, sample=24)


def main():
    folders = {name: GOLDEN / name for name in VARIANTS}
    folders["tiny-roberta"] = weights.find("tiny-roberta")  # with texts
    program = re.search(r"%%writefile make_model.py\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1]
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        exec(program, {})
        folders["page-on-ci"] = Path("path/to/model")
        for name, folder in folders.items():
            _, size = record.make(folder, GOLDEN / "parity" / f"{name}.safetensors", HOW)
            print(f"{name:20} {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
