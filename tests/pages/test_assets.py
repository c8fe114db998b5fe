"""The programs of the pages: each a scope of its own, which hands on names that no other has."""

import re
from collections import Counter
from pathlib import Path

import pytest

from minitx.analysis.live import server
from minitx.analysis.pages import assets, atlas, explore, forming

PROGRAMS = {
    "explore": (*explore.PROGRAM, *server.PROGRAM),
    "atlas": atlas.PROGRAM,
    "forming": forming.PROGRAM,
}


def handed_on(program):
    """The names that scripts behind this one see."""
    names = ",".join(assets.EXPORT.findall(program)).split(",")
    changing = ",".join(line[4:-1] for line in assets.CHANGING.findall(program)).split(",")
    return [name.partition("=")[0].strip() for name in (*names, *changing) if name.strip()]


@pytest.mark.parametrize("files", PROGRAMS.values(), ids=PROGRAMS)
def test_no_two_programs_of_a_page_hand_on_one_name(files):
    every = Counter(name for file in files for name in handed_on(assets.text(file)))
    assert [name for name, n in every.items() if n > 1] == []


def test_what_a_program_hands_on_another_one_or_a_check_reads():
    checks = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("checks*.py"))
    texts = {file: assets.text(file) for files in PROGRAMS.values() for file in files}
    for file, text in texts.items():
        others = " ".join([checks, *(other for name, other in texts.items() if name != file)])
        words = {*re.findall(r"[\w$]+", others)}
        assert [name for name in handed_on(text) if name not in words] == [], file
    assert sum(map(len, map(handed_on, texts.values()))) > 200


def test_a_script_keeps_what_it_does_not_hand_on():
    text = assets.script(
        "  // why\n  const own = 1;\nexport let n = own;\nconst two = 2;\nexport {\n  two,\n};\n"
    )
    first, *rest = text.splitlines()
    assert first == '"use strict";' and rest[0] == "let n = own;"
    assert rest[1] == "const {two} = (() => {" and rest[-2:] == [
        "const two = 2;return {two};",
        "})();",
    ]
    assert "export" not in text and "why" not in text and "\nconst own = 1;\n" in text
