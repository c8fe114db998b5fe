"""One page with every experiment on one model: index.html, which needs nothing beside it.

Order: `make`, the page, a section of it, the words for numbers. Figures are embedded as images, so
that no name inside one can meet a name inside another.
"""

import base64
import shlex
import sys
import time
from html import escape
from urllib.parse import quote

from ..runner import registry, results
from ..runner.results import words
from . import published

STYLE = """
:root { color-scheme: light dark; --text: #1c1c1c; --soft: #595959; --back: #fff; --card: #f5f5f3;
  --line: #d9d9d4; --link: #0059a3; --bad: #a32c00 }
@media (prefers-color-scheme: dark) { :root { --text: #e9e9e6; --soft: #acaca6; --back: #161616;
  --card: #222220; --line: #3d3d39; --link: #7cc0ff; --bad: #ff9a70 } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 64rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { line-height: 1.2; margin-bottom: .4rem }
h2 { line-height: 1.25; margin: 0 0 .2rem }
h3 { font-size: 1rem; margin: 1.1rem 0 .2rem }
p { margin: .3rem 0 }
a { color: var(--link) }
.soft, summary { color: var(--soft) }
.bad { color: var(--bad) }
.times { white-space: nowrap }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 1.6rem }
figure { margin: 1rem 0; padding: .6rem; overflow-x: auto; background: #fff; \
border: 1px solid var(--line);
  border-radius: .5rem }
.wide { overflow-x: auto }
img { display: block; width: 100%; min-width: 44rem; height: auto }
table { border-collapse: collapse; width: 100%; font-size: .93rem }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid var(--line) }
td.n { overflow-wrap: anywhere; font-variant-numeric: tabular-nums }
pre, .facts { overflow-x: auto; padding: .7rem 1rem; background: var(--card); border-radius: .5rem;
  font-size: .85rem }
code, pre { font-family: ui-monospace, monospace }
.facts table { font-size: .9rem }
.facts tr:last-child > * { border: 0 }
"""


def make(model, name, out, options=(), resume=False):
    """Run every experiment and write index.html into the folder `out`; 1 if one failed, else 0."""
    start = time.monotonic()
    experiments = registry.EXPERIMENTS.values()
    outcomes, sections = {}, []
    for experiment, outcome, seconds in results.every(
        experiments, model, name, dict(options), out, resume
    ):
        outcomes[experiment.name] = outcome
        sections.append(section(experiment, name, body(experiment, outcome), seconds))
    failed = results.failed(outcomes)
    total = time.monotonic() - start
    results.write(out / "index.html", page(model, name, outcomes, sections, failed, total))
    print(f"{'all':18} {total:6.1f} s\n{out / 'index.html'}")
    if failed:
        print(f"minitx: {failed} of {len(sections)} experiments failed", file=sys.stderr)
    return 1 if failed else 0


def page(model, name, outcomes, sections, failed, seconds):
    """The whole document."""
    n = len(sections)
    warning = f'<p class="bad">{failed} of {n} experiments failed; see below.</p>' if failed else ""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>minitx: {escape(name)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style>"
        f"<h1>What {escape(name)} computes</h1>{warning}"
        f'<p class="soft">{n} experiments in {seconds:.0f} s. '
        "Layers and heads are counted from 0 (L0H0); the paper counts from 1 (head(1,1)).</p>"
        f'<div class="facts"><table>{fact_rows(model)}</table></div>'
        f"<nav><ol>{contents()}</ol></nav>"
        f"{claims(name, model, outcomes)}{''.join(sections)}</html>\n"
    )


def fact_rows(model):
    """Table rows of the facts about the model."""
    rows = [f"<tr><th>{key}</th><td>{escape(x)}</td></tr>" for key, x in facts(model).items()]
    return "".join(rows)


def facts(model):
    """What the header says about the model."""
    cfg, folder = model.config, model.tokenizer.folder
    files = sorted(folder.glob("*.safetensors"))
    size = sum(path.stat().st_size for path in files)
    sight = "causal" if cfg.causal else "bidirectional"
    order = "norm before each part" if cfg.pre_norm else "norm after each part"
    shape = f"{cfg.n_layers} layers × {cfg.n_heads} heads, width {cfg.d_model}"
    widths = f"({cfg.d_head} in a head, {cfg.d_mlp} in an MLP)"
    hashes = [f"{name} {digest}" for name, digest in results.hashes(folder).items()]
    return {
        "type": f"{cfg.model_type}, {cfg.task_head or 'no'} head, {sight}, {order}",
        "shape": f"{shape} {widths}, activation {cfg.act}",
        "input": f"at most {cfg.n_ctx} tokens, vocabulary {cfg.n_vocab}",
        "weights": f"{size / 1e6:.1f} MB on disk, computed in {results.dtype(model)}",
        "sha256": "; ".join(hashes),
    }


def contents():
    """List items that lead to the sections."""
    items = ""
    for experiment in registry.EXPERIMENTS.values():
        link = f'<a href="#{experiment.name}">{escape(experiment.question)}</a>'
        items += f'<li>{link} <span class="soft">{escape(experiment.figure)}</span></li>'
    return items


def claims(name, model, outcomes):
    """Table of the published values and claims, and what this model gives."""
    rows = published.rows(name, model, outcomes)
    if not rows:
        return ""
    head = "".join(f"<th>{title}</th>" for title in published.TITLES)
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in published.cells(row)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return (
        '<section id="published"><h2>What was published, and what this model gives</h2>'
        '<p class="soft">A claim is put to every model; a number is compared only for the '
        "checkpoint that it was published for. "
        f"<code>minitx published {escape(shlex.quote(name))}</code></p>"
        f'<div class="wide"><table>{head}{body}</table></div></section>'
    )


def section(experiment, name, body, seconds):
    """One experiment's part of the page."""
    command = escape(f"minitx run {experiment.name} {shlex.quote(name)}")
    figure = f"{escape(experiment.figure)} · " if experiment.figure else ""
    return (
        f'<section id="{experiment.name}"><h2>{escape(experiment.question)}</h2>'
        f'<p class="soft">{figure}{escape(experiment.summary)} '
        f"<code>{command}</code>, {seconds:.1f} s</p>{body}</section>"
    )


def body(experiment, outcome):
    """Figure, texts, headline figures, links and settings; or why there are none."""
    if isinstance(outcome, results.Failure):
        return absence(outcome)
    svg = base64.b64encode(outcome.svg.encode()).decode()
    source = f"data:image/svg+xml;base64,{svg}"
    return (
        f'<figure><img alt="{escape(experiment.question)}" src="{source}"></figure>'
        + paragraph("What to look at", experiment.look)
        + paragraph("Published", experiment.published)
        + f"<h3>This model</h3><p>{escape(outcome.says)}</p>{numbers(outcome.headline)}"
        f"<h3>Files</h3><p>{links(experiment)}</p><details><summary>Settings</summary>"
        f"<pre>{escape(results.as_json(outcome.settings))}</pre></details>"
    )


def absence(failure):
    """Why an experiment has no results."""
    if failure.left_out:
        return f'<p class="soft">Left out for this model: {escape(failure.reason)}</p>'
    return f'<p class="bad">This experiment failed: {escape(failure.reason)}</p>'


def paragraph(title, text):
    """A heading and its text, or nothing."""
    return f"<h3>{title}</h3><p>{escape(text)}</p>" if text else ""


def links(experiment):
    """Links to the files of an experiment."""
    name = experiment.name
    endings = ".svg", ".npz", ".json"
    return " · ".join(f'<a href="{quote(name)}{end}">{name}{end}</a>' for end in endings)


def numbers(headline):
    """Table of the headline figures, each beside its null."""
    rows = ""
    for number in headline.values():
        value = f"<b>{escape(words(number['value']))}</b>{times(number)}"
        cells = f'<td class="n">{value}</td><td class="n">{null_cell(number)}</td>'
        rows += f"<tr><td>{escape(number['means'])}</td>{cells}</tr>"
    head = "<tr><th>figure</th><th>this model</th><th>null: chance, or the text alone</th></tr>"
    return f"<table>{head}{rows}</table>"


def null_cell(number):
    """The null of a headline figure and what it means, if it has one."""
    if "null" not in number:
        return ""
    return f'{words(number["null"])}<br><span class="soft">{escape(number["null_means"])}</span>'


def times(number):
    """How many times its null a measure is, where both are numbers."""
    value, null = number["value"], number.get("null")
    if not (isinstance(value, float) and isinstance(null, float) and null > 0):
        return ""
    return f'<br><span class="soft times">{words(value / null)} times the null</span>'
