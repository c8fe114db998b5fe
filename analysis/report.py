"""One page with every experiment on one model: index.html, which needs no network and no other file.

Order: `make`, the page, a section of it, the words for numbers. Figures are embedded as images, so that no
name inside one can meet a name inside another.
"""

import base64
import shlex
import sys
import time
from html import escape
from urllib.parse import quote

from . import published, registry, results
from .results import words

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
figure { margin: 1rem 0; padding: .6rem; overflow-x: auto; background: #fff; border: 1px solid var(--line);
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
    """Run every experiment, write index.html into the folder `out`; 1 if one of them failed, else 0."""
    start, sections, found = time.monotonic(), [], {}
    for experiment, outcome, seconds in results.every(
            registry.EXPERIMENTS.values(), model, name, dict(options), out, resume):
        found[experiment.name] = outcome
        sections.append(section(experiment, name, shown(experiment, outcome), seconds))
    failed = results.failed(found)
    total = time.monotonic() - start
    results.write(out / "index.html", page(model, name, found, sections, failed, total))
    print(f"{'all':18} {total:6.1f} s\n{out / 'index.html'}")
    if failed:
        print(f"minitx: {failed} of {len(sections)} experiments failed", file=sys.stderr)
    return 1 if failed else 0


def page(model, name, found, sections, failed, seconds):
    """The whole document."""
    contents = "".join(f'<li><a href="#{e.name}">{escape(e.asks)}</a> <span class="soft">{escape(e.figure)}</span></li>'
                       for e in registry.EXPERIMENTS.values())
    n = len(sections)
    warning = f'<p class="bad">{failed} of {n} experiments failed; see below.</p>' if failed else ""
    rows = "".join(f"<tr><th>{key}</th><td>{escape(value)}</td></tr>" for key, value in facts(model).items())
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>minitx: {escape(name)}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style>'
            f'<h1>What {escape(name)} computes</h1>{warning}'
            f'<p class="soft">{n} experiments in {seconds:.0f} s. Layers and heads are counted from 0 (L0H0); '
            f'the paper counts from 1 (head(1,1)).</p>'
            f'<div class="facts"><table>{rows}</table></div><nav><ol>{contents}</ol></nav>'
            f'{claims(name, model, found)}{"".join(sections)}</html>\n')


def claims(name, model, found):
    """Table of the published values and claims, and what this model gives."""
    rows = published.rows(name, model, found)
    if not rows:
        return ""
    head = "".join(f"<th>{title}</th>" for title in published.TITLES)
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in published.cells(row)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return (f'<section id="published"><h2>What was published, and what this model gives</h2><p class="soft">A claim '
            'is put to every model; a number is compared only for the checkpoint that it was published for. <code>'
            f'minitx published {escape(shlex.quote(name))}</code></p>'
            f'<div class="wide"><table>{head}{body}</table></div></section>')


def facts(model):
    """What the header says about the model."""
    cfg, folder = model.config, model.tokenizer.folder
    files = sorted(folder.glob("*.safetensors"))
    size = sum(path.stat().st_size for path in files)
    sight = "causal" if cfg.causal else "bidirectional"
    order = "norm before each part" if cfg.pre_norm else "norm after each part"
    return {"type": f"{cfg.model_type}, {cfg.head or 'no'} head, {sight}, {order}",
            "shape": f"{cfg.n_layers} layers × {cfg.n_heads} heads, width {cfg.d_model} "
                     f"({cfg.d_head} in a head, {cfg.d_mlp} in an MLP), activation {cfg.act}",
            "input": f"at most {cfg.n_ctx} tokens, vocabulary {cfg.n_vocab}",
            "weights": f"{size / 1e6:.1f} MB on disk, computed in {results.dtype(model)}",
            "sha256": "; ".join(f"{name} {digest}" for name, digest in results.hashes(folder).items())}


def section(experiment, name, body, seconds):
    """One experiment's part of the page."""
    command = escape(f"minitx run {experiment.name} {shlex.quote(name)}")
    where = f"{escape(experiment.figure)} · " if experiment.figure else ""
    return (f'<section id="{experiment.name}"><h2>{escape(experiment.asks)}</h2><p class="soft">{where}'
            f'{escape(experiment.summary)} <code>{command}</code>, {seconds:.1f} s</p>{body}</section>')


def shown(experiment, outcome):
    """Figure, texts, headline figures, settings and links; or why there are none."""
    if isinstance(outcome, results.Failure):
        said, kind = ("Left out for this model", "soft") if outcome.left_out else ("This experiment failed", "bad")
        return f'<p class="{kind}">{said}: {escape(outcome.reason)}</p>'
    picture = base64.b64encode(outcome.svg.encode()).decode()
    links = " · ".join(f'<a href="{quote(experiment.name)}{end}">{experiment.name}{end}</a>'
                       for end in (".svg", ".npz", ".json"))
    source = f"data:image/svg+xml;base64,{picture}"
    return (f'<figure><img alt="{escape(experiment.asks)}" src="{source}"></figure>'
            + told("What to look at", experiment.look) + told("Published", experiment.published) +
            f"<h3>This model</h3><p>{escape(outcome.says)}</p>{numbers(outcome.headline)}"
            f"<h3>Files</h3><p>{links}</p><details><summary>Settings</summary>"
            f"<pre>{escape(results.as_json(outcome.settings))}</pre></details>")


def told(title, text):
    """A heading and its text, or nothing."""
    return f"<h3>{title}</h3><p>{escape(text)}</p>" if text else ""


def numbers(headline):
    """Table of the headline figures, each beside its null."""
    rows = ""
    for number in headline.values():
        null = f'{words(number["null"])}<br><span class="soft">{escape(number["null_means"])}</span>' \
            if "null" in number else ""
        value = f'<b>{escape(words(number["value"]))}</b>{times(number)}'
        cells = f'<td class="n">{value}</td><td class="n">{null}</td>'
        rows += f'<tr><td>{escape(number["means"])}</td>{cells}</tr>'
    head = "<tr><th>figure</th><th>this model</th><th>null: chance, or the text alone</th></tr>"
    return f"<table>{head}{rows}</table>"


def times(number):
    """How many times its null a measure is."""
    value, null = number["value"], number.get("null")
    return f'<br><span class="soft times">{words(value / null)} times the null</span>' \
        if isinstance(value, float) and isinstance(null, float) and null > 0 else ""
