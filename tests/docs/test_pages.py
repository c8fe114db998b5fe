"""What the documentation is made of: every experiment and name has its page; what is kept, and how.

The whole is built by `make docs`, which executes every cell and follows every link.
"""

import configparser
import re
import sys
from pathlib import Path

import pytest
import rooms

from docs import build, cache, gallery, notebooks, reference, works
from minitx import analysis
from minitx.analysis import commands
from minitx.analysis.pages import glossary

PAGES = rooms.ROOT / "docs/pages"
TEXTS = {path.relative_to(PAGES).as_posix(): path for path in sorted(PAGES.rglob("*.md"))}
RUN = {  # what a run of an experiment gives its page
    "answer": {"verdict": "partly", "measure": "a share", "value": "1 of 2", "chance": "0"},
    "says": "A `head` looks <there>.",
    "headline": {"share": {"value": 0.5, "means": "a share", "null": 0.25, "null_means": "drawn"}},
    "figures": ["<svg/>"],
    "thumbnail": "",
}


@pytest.mark.parametrize("name", analysis.EXPERIMENTS)
def test_each_experiment_has_its_page(name, tmp_path):
    experiment = analysis.EXPERIMENTS[name]
    gallery.write_page(name, RUN, tmp_path)
    text = (tmp_path / f"gallery/{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {gallery.plain(experiment.question)}\n")
    for option in experiment.options:
        row = re.search(rf"^\| `--{option.flag}` \|.*", text, re.M)[0]
        assert repr(option.default) in row and gallery.prose(option.help) in row
    assert "## How to read the figure" in text
    assert f"minitx run {name} {gallery.model_of(name)}" in text
    code = (tmp_path / f"gallery/source/{name}.md").read_text(encoding="utf-8")
    assert (rooms.ROOT / gallery.file_of(experiment)).read_text(encoding="utf-8") in code
    assert "nosearch: true" in code


def test_a_page_of_the_gallery_says_what_chance_gives():
    text = gallery.page(analysis.EXPERIMENTS["positions"], RUN)
    assert "<strong>1 of 2</strong> (<a" in text or "(chance: 0)" in text
    assert "drawn" in text and ">0.25<" in text
    assert "<code>head</code>" in text or "head</a>" in text
    assert "&lt;there&gt;" in text
    bare = RUN | {"headline": {"n": {"value": 2, "means": "a count"}}, "answer": None}
    assert "none has a null" in gallery.page(analysis.EXPERIMENTS["positions"], bare)


def test_the_gallery_has_a_card_for_each(tmp_path):
    (tmp_path / "gallery").mkdir()
    gallery.write_index(dict.fromkeys(analysis.EXPERIMENTS, RUN), tmp_path)
    text = (tmp_path / "gallery/index.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([\w-]+)\.md\)", text)
    assert sorted({*linked}) == sorted(analysis.EXPERIMENTS)


def test_each_public_name_has_an_entry():
    for package, about in reference.PACKAGES.items():
        text = reference.package_page(package, about)
        for name in reference.names(package):
            assert f"| [`{name}`](#{name}) |" in text
            assert re.search(
                rf"^\.\. (autoclass|autofunction|data):: {re.escape(name)}$", text, re.M
            )


def test_each_command_and_each_word_has_an_entry():
    text = reference.commands_page()
    for name in reference.below(commands.parser()):
        assert f"## minitx {name}\n" in text
    words = reference.words()
    assert all(f"(term-{term.slug})=" in words for term in glossary.TERMS)
    link = gallery.Linker()("the null")
    assert 'href="../numbers.html#term-null"' in link


def test_each_how_to_page_has_code_that_runs():
    pages = {page.place for page in notebooks.every()}
    how_to = {name.removesuffix(".md") for name in TEXTS if name.startswith("howto/")}
    assert how_to - {"howto/index"} <= pages and "start" in pages
    assert len(how_to) == 16


def test_a_translation_shows_the_outputs_of_its_original():
    pages = {page.place: page for page in notebooks.lesson_pages()}
    for place, page in pages.items():
        original = pages[page.executed_as]
        assert original.language == "en" and original.code == page.code
        assert ("mystnb" in page.notebook["metadata"]) == (page.language == "ja")
        assert any("ipynb" in link for link in page.beside), place  # each leads to the other
    tasks = build.tasks()
    assert not [key for key in tasks if "lessons/ja/" in key[1]]
    assert {("experiment", name) for name in analysis.EXPERIMENTS} <= {*tasks}


def test_a_page_is_written_with_its_outputs_and_as_it_is_offered(tmp_path):
    page = next(page for page in notebooks.every() if page.place == "howto/ci")
    shown = [{"output_type": "stream", "name": "stdout", "text": "seen"}]
    notebooks.write_page(page, [shown] * len(page.code), tmp_path)
    text = (tmp_path / "howto/ci.ipynb").read_text(encoding="utf-8")
    assert text.count('"seen"') == len(page.code) and "{download}" in text
    assert "seen" not in (tmp_path / "howto/notebooks/ci.ipynb").read_text(encoding="utf-8")


def test_links_to_pages_with_code_lead_to_notebooks(tmp_path):
    text = "[a](../start.md), [b](../limits.md#x), [c](own-text.md#top), [d](https://a.b/start.md)"
    wanted = text.replace("../start.md", "../start.ipynb").replace("text.md", "text.ipynb")
    assert notebooks.linked(text, tmp_path / "howto", tmp_path) == wanted


def test_what_was_computed_is_kept_until_a_source_changes(tmp_path, monkeypatch):
    kept = cache.Kept(tmp_path)
    kept.put(["experiment", "a"], {"value": 1})
    kept.put(["experiment", "b"], {"value": 2})
    again = cache.Kept(tmp_path)
    assert again.get(["experiment", "a"]) == {"value": 1}
    assert again.get(["experiment", "c"]) is None
    again.clean()
    assert cache.Kept(tmp_path).get(["experiment", "b"]) is None
    monkeypatch.setattr(cache, "sources", lambda kind: f"another {kind}")
    assert again.get(["experiment", "a"]) is None


def test_sources_are_all_that_numbers_depend_on():
    of_experiments, of_pages = (set(cache.files(kind)) for kind in ("experiment", "page"))
    wanted = {"analysis/experiments/dial.py", "minitx/model.py", "analysis/texts/sample.txt"}
    assert wanted | {"weights/tiny-bert/model.safetensors"} <= of_experiments
    assert {"analysis/pages/explore.py", "lessons/checks/__init__.py"} <= of_pages - of_experiments
    assert not [name for name in of_pages if name.endswith(".md") or "__pycache__" in name]


def test_a_page_that_fails_says_so_and_the_others_are_written(tmp_path, monkeypatch, capfd):
    """Not even one page was left of a build in which a cell had failed."""
    tasks = {("page", "sum"): (["sum()", "1"], sum), ("page", "list"): (1, list)}
    tasks["experiment", "lags"] = "tiny-bert", sum
    monkeypatch.setattr(build, "tasks", lambda: tasks)
    outcomes, failed = build.computed(tmp_path, 1)
    assert sorted(failed) == [("experiment", "lags"), ("page", "sum")]
    assert "page sum failed: sum() takes at least 1" in capfd.readouterr().err
    first, second = outcomes["page", "sum"]
    assert first[0]["text"].startswith("This page failed: sum() takes") and second == []
    page = gallery.page(analysis.EXPERIMENTS["lags"], outcomes["experiment", "lags"])
    assert "This experiment failed: sum() takes" in page and outcomes["page", "list"] == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_build_that_fails_leaves_the_pages_of_the_last_whole_one(tmp_path, monkeypatch, fails):
    def sphinx(source, draft, *others):
        draft.mkdir(parents=True)
        (draft / "index.html").write_text("new")
        return 0

    (tmp_path / "html").mkdir()
    (tmp_path / "html/index.html").write_text("old")
    monkeypatch.setattr(build, "sphinx", sphinx)
    monkeypatch.setattr(build, "written", lambda source, outcomes: source)
    monkeypatch.setattr(build, "computed", lambda *_: ({}, [("page", "a")] if fails else []))
    monkeypatch.setattr(build.links, "problems", lambda html: [])
    assert build.main(["--out", str(tmp_path)]) == fails
    assert (tmp_path / "html/index.html").read_text() == ("old" if fails else "new")
    assert (tmp_path / "draft/index.html").is_file() == fails


@pytest.mark.parametrize("page", [page.place for page in notebooks.written_pages()])
def test_cells_import_what_an_installation_with_its_docs_has(page):
    """Not what a checkout has beside the package, nor packages of other extras."""
    (code,) = (other.code for other in notebooks.written_pages() if other.place == page)
    given = configparser.ConfigParser()
    given.read(rooms.ROOT / "setup.cfg")
    texts = given["options"]["install_requires"], given["options.extras_require"]["docs"]
    known = {re.split(r"[<>=;]", line)[0] for text in texts for line in text.split()}
    known |= {"minitx", *sys.stdlib_module_names}
    known |= {"IPython", "yaml"}  # ipykernel and myst-parser bring them
    lines = [line for cell in code if not cell.startswith("%%") for line in cell.splitlines()]
    used = {word[1] for line in lines if (word := re.match(r"\s*(?:from|import) (\w+)", line))}
    used |= {"pytest" for cell in code if cell.startswith("%%") and "pytest" in cell}
    assert used <= known


def test_the_first_steps_count_the_bundled_models():
    small = [
        *rooms.ROOT.glob("weights/*/config.json"),
        *rooms.ROOT.glob("weights/pictures/*/c*.json"),
    ]
    small = [path for path in small if "recurrent" not in str(path)]
    tiny = [*rooms.ROOT.glob("weights/zoo/*/config.json")]
    numbers = {8: "Eight", 12: "twelve"}
    said = f"{numbers[len(small)]} small models and {numbers[len(tiny)]} tiny ones are bundled"
    assert said in TEXTS["start.md"].read_text(encoding="utf-8")


def test_front_page_and_limits_name_the_same_types():
    lists = [
        re.search(r"<!-- families -->\n(.*?)<!-- end", TEXTS[name].read_text("utf-8"), re.S)[1]
        for name in ("index.md", "limits.md")
    ]
    assert lists[0] == lists[1] and "`deberta-v2`" in lists[0]


def test_pages_name_no_place_of_their_making():
    for path in TEXTS.values():
        assert not re.search(r"/(home|work|tmp|root)/", path.read_text(encoding="utf-8")), path
    assert Path(build.OUT).relative_to(rooms.ROOT).as_posix() == "docs/_build"


def test_each_figure_of_a_source_leads_to_its_work_and_back(tmp_path):
    works.write_page(tmp_path)
    page = (tmp_path / "cite.md").read_text(encoding="utf-8")
    for name, experiment in analysis.EXPERIMENTS.items():
        if experiment.figure:
            work = works.work_of(experiment.figure)
            assert f"](gallery/{name}.md)" in page
            assert f"cite.html#{work.name}" in works.link(experiment.figure)
    assert page.count("\n(") == len(works.WORKS) and "@software{minitx," in page
    with pytest.raises(ValueError, match="'plate 1' is a figure of none of paper, emnlp"):
        works.work_of("plate 1")


def test_the_contents_have_the_four_parts_of_documentation():
    index = TEXTS["index.md"].read_text(encoding="utf-8")
    parts = re.findall(r"^:caption: (.*)$", index, re.M)
    assert parts == ["Tutorial", "How-to", "Explanation", "Reference", "日本語"]


def test_what_tiny_stories_learned_is_a_page_of_the_contents():
    text = build.learned()
    assert "\ntiny-stories\n" in TEXTS["index.md"].read_text(encoding="utf-8")
    assert "](../" not in text and "(lessons/15-which-head-did-it.ipynb)" in text
    for part in ("Measured", "Heads and edges of each kind", "Where it cheats"):
        assert f"\n## {part}\n" in text
