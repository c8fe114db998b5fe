"""Every `minitx …` line of every document is run as it stands, on small models and files.

A line stands in a block of code, or between backticks in the text.
"""

import json
import shutil

import pytest
import rooms
from documented import documents, lines, split

from minitx import weights
from minitx.analysis import __main__ as cli
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.analysis.pages import paper, published
from minitx.analysis.running import many

SENTENCE = "The dog ran after the cat."
WORDS = {  # what a line may say -> what is there to run
    "MODEL": "tiny-roberta",
    "A": "tiny-roberta",
    "B": "tiny-bert",
    "[MODEL": "tiny-bert",
    "...]": "zoo/causal-learned",
    "…": "zoo/causal-learned",
    "EXPERIMENT": "profiles",
    "NAME": "profiles",
    "TEXT": SENTENCE,
    "CONFIG": "tiny-bert",
    "HISTORY": "histories/masked-learned",
    "N": "3",
    "FILE": "my-texts/a.txt",
    "FILE.safetensors": "recorded.safetensors",
    "REFERENCE": "reference.safetensors",
    "LABELS.csv": "own.csv",
    "gpt2": "tiny-gpt2",
    "roberta-base": "tiny-roberta",
    "path/to/model": "tiny-roberta",
    "zoo/NAME": "zoo/causal-learned",
    "s3://bucket/corpus/*.parquet": "corpus/*.jsonl",
}
OF_A_LINE = {  # the same, where one line means something else
    "minitx train config.json --text dates.txt --steps 400 --batch 16 --rate 0.01 --out my-dates": {
        "config.json": "tiny-gpt2",
        "dates.txt": "my-texts/a.txt",
    },
    'minitx explore my-dates "the 13th of May"': {"my-dates": "tiny-gpt2"},
    "minitx run NAME tiny-vit": {"NAME": "positions"},
    "minitx decode MODEL TEXT": {"MODEL": "tiny-bart", "TEXT": "3 May 1912"},
    'minitx decode MODEL "a text" --steps': {"MODEL": "tiny-bart", "a text": "3 May 1912"},
    "minitx attribute MODEL TEXT": {"MODEL": "tiny-gpt2"},
    "minitx scan MODEL TEXT": {"MODEL": "tiny-gpt2"},
    "minitx steer MODEL TEXT --towards TEXTS --away TEXTS": {
        "MODEL": "tiny-gpt2",
        "TEXTS": "pairs.txt",
    },
    'minitx steer tiny-stories "The dog was" --towards happy.txt --away sad.txt --lang ja': {
        "happy.txt": "texts.txt",
        "sad.txt": "notes.txt",
    },
    "minitx patch MODEL --pairs FILE": {"MODEL": "tiny-gpt2", "FILE": "pairs.txt"},
    "minitx patch tiny-stories --pairs FILE": {"FILE": "pairs.txt"},
    "minitx explore MODEL SOURCE": {"MODEL": "tiny-bart", "SOURCE": "3 May 1912"},
    "minitx trace MODEL TEXT --source SOURCE": {
        "MODEL": "tiny-bart",
        "TEXT": "1912",
        "SOURCE": "3 May 1912",
    },
    'minitx run joint-space MODEL --sentence "…" --pairs brown:capybara': {
        "…": "The brown capybara ran."
    },
    (
        "minitx compare tiny-gpt2 without --experiment profiles "
        "--documents 4 --tokens 64 --out compared"
    ): {"without": "my-tuned-gpt2"},
}
FEWER = {  # for longer runs
    "--documents": "4",
    "--random": "20",
    "--sample": "6",
    "--steps": "2",
    "--workers": "2",
    "--sentences": "12",
}
SHORT = {"--documents": "4", "--tokens": "64"}
SMALL = {  # flags that a command or an experiment gets where a line does not have them
    "profiles": SHORT,
    "profiles,lags,cca": {"--documents": "6", "--tokens": "64"},
    "projections": SHORT,
    "mechanisms": {"--documents": "6", "--tokens": "16", "--every": "4"},
    "dial": SHORT,
    "sources": SHORT,
    "attribution": {"--documents": "2", "--tokens": "16"},
    "patch": {"--n-pairs": "4"},
    "circuit": {"--n-pairs": "4", "--random": "20"},
    "report": SHORT,
    "paper": {"--documents": "4"},
    "published": SHORT,
    "train": {"--context": "16", "--batch": "2", "--steps": "2"},
    "forming": {"--documents": "8", "--shuffles": "9", "--every": "32"},
    "atlas": {"--sentences": "12"},
    "collect": {"--documents": "4"},
    "examples": {"--documents": "4"},
    "tune": {"--documents": "16", "--tokens": "32", "--batch": "2", "--steps": "2"},
    "toy": {"--sequences": "4"},
    "lesson": {"--notebook": "lesson.ipynb"},  # a page opens in a browser
}
STATUS = {"minitx published gpt2 --strict": 1}  # else 0: tiny-gpt2 fails claims
NOT_RUN = {  # lines, or how they begin (…), that are only parsed -> why
    "minitx fetch …": "it needs the network; tests/weights run it beside a stand-in",
    "minitx serve …": "it listens until it is ended; tests/live run it",
    "minitx record …": "it needs torch; tests/parity read what it wrote",
    (
        "minitx run profiles roberta-base --text wikitext/train.txt --documents 10000 --scheduler …"
    ): "it needs a cluster at that address; tests/running run it beside one",
    "minitx run profiles MODEL --text FOLDER": "it needs Pillow; profiles of tiny-vit are run",
    "minitx report MODEL": "half a minute each; the report on my-texts/ is run",
    "minitx report gpt2": "the same",
    "minitx report tiny-roberta": "the same",
    "minitx report deep-roberta --out report": "the same; .ci/run makes it",
}
LINES = lines(documents())


def is_a_name(line):
    """Whether a line only names a command that has to be told more."""
    words = split(line)
    return len(words) == 1 and words[0] not in ("list", "toy", "doctor", "lesson")


def stands_for(key, line):
    """Whether a key of NOT_RUN is a line, or how it begins."""
    return line == key or (key.endswith("…") and line.startswith(key.removesuffix("…")))


def arguments(line):
    """The arguments of a line with a model, a file or a small number for its words."""
    words = WORDS | OF_A_LINE.get(line, {})
    return [words.get(word, word) for word in split(line)]


def settled(argv):
    """The same with fewer documents, steps and workers, and with what SMALL adds."""
    known = next((SMALL[word] for word in argv if word in SMALL), {})
    if "tiny-vit" in argv:  # 64 small pictures, which have no --tokens
        known = {}
    added = [word for flag in known.items() if flag[0] not in argv for word in flag]
    fewer = {} if argv[0] == "plan" else FEWER  # a plan only tells what many would take
    pairs = zip(["", *argv], argv)
    return [fewer.get(flag, word) for flag, word in pairs] + added


def without_out(argv):
    """The same without where it writes."""
    return [word for flag, word in zip(["", *argv], argv) if "--out" not in (flag, word)]


NAMES = [line for line in LINES if is_a_name(line)]
RUN = {  # what is run: its line; lines that come to the same, wherever it is written, in whichever
    # language and order of flags, are run once
    frozenset(without_out(settled(arguments(line)))) - {"--lang", "ja"}: line
    for line in LINES
    if line not in NAMES and not any(stands_for(key, line) for key in NOT_RUN)
}
FEW = "positions", "profiles", "reviews"  # tests/pages reports, judges and draws all experiments


def furnish(folder):
    """The files and models that the documents' lines name, in a folder."""
    paragraphs = ["The bell rang twice, and nobody came to the door of the house. " * 40] * 24
    text = "\n".join(paragraphs)
    for name in ("my-texts/a.txt", "books/a.txt", "wikitext/train.txt", "texts.txt", "notes.txt"):
        write(folder / name, text)
    for place in ("reviews", "aclImdb/test"):
        for i in range(12):
            write(folder / place / f"pos/{i}.txt", "A good film, and a kind one. " * 8)
            write(folder / place / f"neg/{i}.txt", "A bad film, and a dull one. " * 8)
    write(folder / "pairs.txt", "He said that|She said that| he| she\n" * 4)
    subjects = "girl boy dog man king cat woman bird".split()
    labelled = [f"the {word} was {x},{x},{x}\n" for word in subjects for x in ("sad", "happy")]
    write(folder / "own.csv", "".join(["text,label,pronoun\n", *labelled]))
    questions = [f"What is {i}?,It is {i}.\n" for i in range(8)]
    write(folder / "TruthfulQA.csv", "Question,Best Answer\n" + "".join(questions))
    rows = [json.dumps({"body": paragraph}) + "\n" for paragraph in paragraphs]
    write(folder / "corpus/a.jsonl", "".join(rows))
    recorded = rooms.ROOT / "tests/golden/parity/tiny-roberta.safetensors"
    shutil.copy(recorded, folder / "reference.safetensors")
    (folder / "my-tuned-model").symlink_to(weights.find("tiny-roberta"))
    (folder / "my-tuned-gpt2").symlink_to(weights.find("tiny-gpt2"))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def status(argv):
    """The status of a command, which --help ends by itself."""
    try:
        return cli.main(argv)
    except SystemExit as ended:
        return ended.code


@pytest.mark.usefixtures("empty_figures")
@pytest.mark.parametrize("line", RUN.values())
def test_a_line_of_a_document_runs(line, tmp_path, monkeypatch, capsys):
    furnish(tmp_path)
    monkeypatch.chdir(tmp_path)
    argv = settled(arguments(line))
    if argv[0] == "report":
        few = {name: registry.get(name) for name in FEW}
        monkeypatch.setattr(registry, "EXPERIMENTS", few)
    figures = {n: figure for n, figure in paper.FIGURES.items() if figure.experiment in FEW}
    monkeypatch.setattr(paper, "FIGURES", figures)
    # tests/running has them side by side
    monkeypatch.setattr(many, "n_processes", lambda options: 1)
    of_few = [claim for claim in published.CLAIMS if claim.experiment in FEW]
    monkeypatch.setattr(published, "CLAIMS", of_few)
    assert status(argv) == STATUS.get(line, 0), capsys.readouterr().err
    assert capsys.readouterr().out


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_document_is_one_that_the_command_takes(line):
    argv = split(line) if line in NAMES else arguments(line)
    if line in NAMES or "--help" in argv:
        with pytest.raises(SystemExit):
            commands.parser().parse_args([argv[0], "--help"])
    else:
        assert commands.parser(argv).parse_args(argv).handler


def test_what_is_not_run_is_named_once_and_still_shown():
    for key in NOT_RUN:
        assert any(stands_for(key, line) for line in LINES), key
    assert not [line for line in RUN.values() if line in NOT_RUN]
    assert len(RUN) > 40


def test_what_stands_for_words_still_stands_for_some():
    said = {word for line in LINES for word in split(line)}
    assert {*WORDS} <= said
    assert {*OF_A_LINE, *STATUS} <= {*LINES}
    assert {*SMALL, *FEWER} <= {word for line in LINES for word in arguments(line)}
    used = {word for words in RUN for word in words}
    assert not [word for word in used if word.isupper() and len(word) > 1], "a word for nothing"


def test_lines_are_those_that_a_reader_types():
    text = """```
minitx list   # all
- run: minitx verify A B --junit \\
    x.xml | tail
```
and `minitx run
profiles MODEL`, but minitx toy
"""
    assert lines({"a.md": text, "b.md": "`minitx list`"}) == {
        "minitx list": ["a.md", "b.md"],
        "minitx verify A B --junit x.xml": ["a.md"],
        "minitx run profiles MODEL": ["a.md"],
    }
