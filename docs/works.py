"""The page on citing: minitx itself, and the works whose figures the experiments reproduce.

Order: the works, the work of an experiment's figure, the page.
"""

from html import escape
from pathlib import Path
from typing import NamedTuple

import yaml

from minitx import analysis
from minitx.analysis.machine.files import write

CITATION = Path(__file__).parents[1] / "CITATION.cff"


class Work(NamedTuple):
    """A work: the name of its paragraph, how the names of its figures begin, what it is, where."""

    name: str
    begins: tuple
    title: str
    address: str = ""


WORKS = (
    Work(
        "paper",
        ("figure", "section", "raised in the paper"),
        "Yuji Yamamoto and Takuya Matsuzaki 2023: "
        "自己注意機構における注意の集中が相対位置に依存する仕組み. NLP2023",
        "https://www.anlp.jp/proceedings/annual_meeting/2023/pdf_dir/C3-3.pdf",
    ),
    Work(
        "emnlp",
        ("EMNLP",),
        "Yuji Yamamoto and Takuya Matsuzaki 2023: Absolute Position Embedding Learns Sinusoid-like "
        "Waves for Attention Based on Relative Position. EMNLP 2023",
        "https://openreview.net/forum?id=zpayaLaUhL",
    ),
    Work(
        "blog",
        ("blog post", "raised in the blog post"),
        "Yuji Yamamoto 2023: 卒研の経緯, the blog post behind the paper",
    ),
    Work("slides", ("slides",), "平田蓮: 位置エンコーディング周りの諸検証, slides"),
    Work(
        "attentionviz",
        ("AttentionViz",),
        "Catherine Yeh et al. 2023: AttentionViz: A Global View of Transformer Attention",
        "https://arxiv.org/abs/2305.03210",
    ),
)


def work_of(figure):
    """The Work whose figure an experiment reproduces.

    >>> work_of("EMNLP, figure 4").name, work_of("figure 7").name
    ('emnlp', 'paper')
    """
    for work in WORKS:
        if figure.startswith(work.begins):
            return work
    raise ValueError(f"{figure!r} is a figure of none of {', '.join(x.name for x in WORKS)}")


def link(figure, page="../cite.html"):
    """HTML: the name of a figure, which leads to its work."""
    return f'<a href="{page}#{work_of(figure).name}">{escape(figure)}</a>'


def write_page(source):
    """Write the page below the folder `source`."""
    about = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    parts = ["# How to cite", about["message"], bibtex(about), *map(paragraph, WORKS)]
    write(source / "cite.md", "\n\n".join(parts) + "\n")


def bibtex(about):
    """An entry for minitx."""
    fields = {"title": f"{{{about['title']}}}", "author": "{{minitx contributors}}"}
    fields |= {"version": f"{{{about['version']}}}", "year": f"{{{about['date-released'][:4]}}}"}
    fields["url"] = f"{{{about['url']}}}"
    lines = [f"  {name} = {value}," for name, value in fields.items()]
    return "\n".join(["```bibtex", "@software{minitx,", *lines, "}", "```"])


def paragraph(work):
    """A work, and the experiments that reproduce its figures."""
    where = f" <{work.address}>" if work.address else ""
    rows = ["| figure | experiment |", "|---|---|"]
    for name, experiment in analysis.EXPERIMENTS.items():
        if experiment.figure and work_of(experiment.figure) == work:
            page = f"[{experiment.question}](gallery/{name}.md)"
            rows.append(f"| {experiment.figure} | `{name}`: {page} |")
    return f"({work.name})=\n## {work.title}\n\n{where.strip()}\n\n" + "\n".join(rows)
