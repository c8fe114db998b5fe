"""One page with every experiment on one model: index.html, which needs no other file.

The answers come before the explanations; report.json holds the same for programs. The page is there
with the first answers, and loads itself again until it has all. Figures are embedded as images, so
that a name inside one cannot clash with a name inside another; the page loads nothing, and runs one
program, which sorts tables.
"""

import base64
import hashlib
import sys
import time
from html import escape

import numpy as np

from ..contract import registry, results
from ..machine.files import as_json, write
from ..machine.language import count, current, filled, translated
from ..machine.progress import duration
from ..running import budget, many, settings, single
from . import assets, glossary, overview, parts, published, sketch, story, themes, tokens, verdicts
from .section import section

EVERY = 2  # seconds at least between two pages of a report that is not done
STYLE, (PROGRAM,) = assets.text("report.css"), assets.scripts("report.js")
STYLE = tokens.css() + STYLE
# results that several experiments have, each of its own documents and hidden tokens, in nats
UNCHANGED = "predict remove-positions scale-positions inject-positions shift projections notch dial"
UNCHANGED = dict.fromkeys([*UNCHANGED.split(), "mask-positions"], "loss") | {"probe": "loss_on"}
AT_ZERO = {"shift": "change_zero", "inject-positions": "without"}
AT_ZERO |= {"remove-positions": "loss_zero loss", "probe": "loss_off loss_on"}  # differences


def make(model, name, out, options=(), resume=False, n_processes=1, minutes=0.0):
    """Run every experiment, write index.html and report.json into the folder `out`.

    n_processes: experiments at work at once; with more than one the model is what the name says.
    minutes: in which all is to be done (0: no limit). Returns 1 if one failed, else 0.
    """
    start = time.monotonic()
    plan = planned(model, out, dict(options), resume, n_processes, minutes)
    written = start - EVERY  # the first page has the first answer
    experiments = [*registry.EXPERIMENTS.values()]
    given = name, dict(options), out, resume, n_processes, plan
    names = [*registry.EXPERIMENTS]
    runs = []
    for run in many.every(experiments, model, *given):
        runs.append(asked(model, run))
        runs.sort(key=lambda run: names.index(run[0].name))
        now = time.monotonic()
        if now - written >= EVERY and len(runs) < len(experiments):
            rows = published.rows(name, model, outcomes(runs))
            rows = [row for row in rows if row["verdict"] != "not measured"]
            to_come = len(experiments) - len(runs)
            write(out / "index.html", page(model, name, runs, rows, now - start, to_come, plan))
            written = time.monotonic()
    total = time.monotonic() - start
    rows = published.rows(name, model, outcomes(runs))
    write(out / "index.html", page(model, name, runs, rows, total, plan=plan))
    write(out / "report.json", as_json(record(model, name, runs, rows)) + "\n")
    print(f"{'all':18} {total:6.1f} s\n{out / 'index.html'}")
    return status(outcomes(runs))


def status(outcomes):
    """1 if one of {experiment: Outcome or Failure} failed, which is said on stderr, else 0."""
    failed = single.failed(outcomes)
    if failed:
        print(f"minitx: {failed} of {len(outcomes)} experiments failed", file=sys.stderr)
    return 1 if failed else 0


def planned(model, out, options, resume, n_processes, minutes):
    """The Plan of a report, said in a line; None without a limit.

    Of a report that goes on it is the plan that it began with.
    """
    plan = budget.of_model(model, minutes, n_processes, options)
    if plan is None:
        return None
    path = out / ".report.plan.json"
    if not resume:
        path.unlink(missing_ok=True)
    plan = budget.kept(path, plan)
    about = {"plan": budget.says(plan), "time": duration(plan.seconds)}
    print(filled("{plan}; about {time}", **about), flush=True)
    return plan


def asked(model, run):
    """A run with the Experiment that ran: on a model of pictures the one that asks of pictures."""
    experiment, outcome, seconds = run
    if not isinstance(outcome, single.Failure):
        experiment = registry.of_model(experiment, model)
    return experiment, outcome, seconds


def outcomes(runs):
    """{experiment: Outcome or Failure} of (experiment, outcome, seconds) of each."""
    return {experiment.name: outcome for experiment, outcome, _ in runs}


def page(model, name, runs, rows, seconds, to_come=0, plan=None):
    """The whole document.

    runs: (experiment, outcome, seconds) of each. rows: the claims, as published.rows gives them.
    to_come: how many experiments are at work still. plan: of a report that has a limit.
    """
    body = parts.typeset(content(model, name, runs, rows, seconds, to_come, plan))
    return document(name, f"{overview.contents(runs)}<main>{body}</main>", to_come)


def document(name, body, to_come=0):
    """An HTML document with the report's style and program; body: HTML with #answers in it."""
    return (
        f'<!doctype html><html lang="{current()}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
        f"<title>minitx: {escape(name)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{again(to_come)}"
        f"<style>{STYLE}</style></head><body>"
        f'<a class="skip" href="#answers">{translated("To the answers")}</a>'
        f"{body}<script>{PROGRAM}</script></body></html>\n"
    )


def plain(name, body):
    """An HTML document with the report's style and no program."""
    return (
        f'<!doctype html><html lang="{current()}"><head><meta charset="utf-8">'
        f"<title>minitx: {escape(name)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}body {{ display: block }}</style></head>"
        f"<body><main>{parts.typeset(body)}</main></body></html>\n"
    )


def content(model, name, runs, rows, seconds, to_come=0, plan=None):
    """What the document says, of what `page` takes: the head, the answers, the sections."""
    title = filled("What {model} computes", model=escape(name))
    sections = "".join(
        section(run, name, outcome, time) for run, outcome, time in themes.sort(runs)
    )
    link = glossary.Linker()
    lines = story.lines_of(model, runs)
    beside = sketch.figure(runs), overview.leads(), story.in_short(lines, runs)
    sentences = story.section(lines, link, *beside)
    return (
        f"<header><h1>{title}</h1>{awaited(to_come)}{warning(runs)}{limited(plan, name)}"
        f"{about(model, runs, seconds)}</header>{sentences}"
        f"{overview.tally(runs, verdicts.line(rows))}{overview.answers(runs, link)}"
        f"{sections}{verdicts.section(rows, name)}{glossary.section()}"
    )


def policy():
    """What the page may load and run: the images inside it, this one style and this one program."""
    style, program = map(_digest, (STYLE, PROGRAM))
    allowed = f"img-src data:; style-src '{style}'; script-src '{program}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'"


def _digest(text):
    """What a policy names a style or a program by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def again(to_come):
    """Loads the page again as long as experiments are to come."""
    return f'<meta http-equiv="refresh" content="{2 * EVERY}">' if to_come else ""


def awaited(to_come):
    """A line on the experiments that are to come, if any are."""
    experiments = count(to_come, "experiment")
    text = "{experiments} to come; until then this page loads itself again."
    return f'<p class="failed">{filled(text, experiments=experiments)}</p>' if to_come else ""


def warning(runs):
    """A line on experiments that failed, if any did."""
    failed = single.failed(outcomes(runs))
    text = filled("{n} of {all} experiments failed; see below.", n=failed, all=len(runs))
    return f'<p class="failed">{text}</p>' if failed else ""


def limited(plan, name):
    """What a plan left out, and how to run it; "" where it left out nothing."""
    if plan is None or plan.is_whole:
        return ""
    text = (
        "Planned for {minutes:g} minutes, this report {plan}. Without a limit: {all}; one: {one}."
    )
    commands = {"all": f"minitx report {name} --minutes 0", "one": f"minitx run NAME {name}"}
    commands = {key: f"<code>{escape(command)}</code>" for key, command in commands.items()}
    said = filled(text, minutes=plan.minutes, plan=escape(budget.says(plan)), **commands)
    return f'<p class="soft">{said}</p>'


def about(model, runs, seconds):
    """What the model is: one line, with more that opens behind it."""
    stated = facts(model)
    rows = [(escape(translated(key)), escape(text)) for key, text in stated.items()]
    counting = translated("counted from 0 (L0H0); Yamamoto and Matsuzaki count from 1 (head(1,1))")
    rows.append((translated("layers and heads"), counting))
    left_out = sum(getattr(outcome, "left_out", False) for _, outcome, _ in runs)
    experiments = count(len(runs) - left_out, "experiment")
    took = filled("{experiments} in {seconds:.0f} s", experiments=experiments, seconds=seconds)
    rows.append((translated("this page"), took))
    both = {translated("loss of the unchanged model, nats"): UNCHANGED}
    both[translated("rise of the loss with positions at zero, nats")] = AT_ZERO
    rows += [(title, text) for title, fields in both.items() if (text := several(runs, fields))]
    summary = f"{stated['type']}: {stated['shape']}; {stated['weights']}"
    return parts.fold(summary, parts.table(("fact", "this model"), rows, "facts"), "about")


def several(runs, fields):
    """What experiments measured of one quantity, equal values together; "" if none did.

    fields: {experiment: its result, or two, of which the second is taken off}.
    """
    names = {}
    for experiment, outcome, _ in runs:
        wanted = fields.get(experiment.name, "").split()
        if wanted and not isinstance(outcome, single.Failure) and {*wanted} <= {*outcome.result}:
            first, *others = (float(outcome.result[name]) for name in wanted)
            key = f"{first - sum(others):.2f}", _texts_read(outcome.result)
            names.setdefault(key, []).append(experiment.name)
    text = "; ".join(f"{value} ({', '.join(names[value, n])}: {n})" for value, n in sorted(names))
    why = "They differ: each reads as many documents, and hides those tokens, that it needs."
    return f"{text}. {translated(why)}" if len({value for value, _ in names}) > 1 else text


def _texts_read(result):
    """How many documents a loss is of, in words; of several groups the last."""
    n = result.get("loss_documents", result.get("documents"))
    return translated("one sentence") if n is None else count(int(np.ravel(n)[-1]), "document")


def facts(model):
    """What the head of the page says about the model."""
    cfg, folder = model.config, model.tokenizer.folder
    files = sorted(folder.glob("*.safetensors"))
    size = sum(path.stat().st_size for path in files) / 1e6
    hashes = [f"{name} {digest}" for name, digest in settings.hashes(folder).items()]
    shapes = translated(" and ").join(shape(name, stack) for name, stack in stacks(model).items())
    stated = {"type": kind(cfg), "shape": shapes, "widths": widths(cfg)}
    limits = {"n_ctx": cfg.n_ctx, "n_vocab": cfg.n_vocab}
    stated["input"] = filled("at most {n_ctx} tokens, vocabulary {n_vocab}", **limits)
    weights = {"size": size, "dtype": settings.dtype(model)}
    stated["weights"] = filled("{size:.1f} MB on disk, computed in {dtype}", **weights)
    return stated | {"sha256": "; ".join(hashes)}


def kind(cfg):
    """What a model is: its type, its head, and which tokens a token sees."""
    head = filled("{name} head", name=translated(cfg.task_head or "no"))
    seen = translated("causal attention" if cfg.causal else "bidirectional attention")
    return f"{cfg.model_type}, {head}, {seen}"


def widths(cfg):
    """How wide heads and MLPs are, and where norms stand."""
    text = "{d_head} in a head, {d_mlp} in an MLP; activation {act}"
    sizes = filled(text, d_head=cfg.d_head, d_mlp=cfg.d_mlp, act=cfg.act)
    return f"{sizes}, {translated('pre-norm' if cfg.pre_norm else 'post-norm')}"


def stacks(model):
    """{name: config} of an encoder-decoder's two stacks; {"": config} of a single stack."""
    if model.encoder is None:
        return {"": model.config}
    both = {"encoder: ": model.encoder.config, "decoder: ": model.config}
    return {translated(name): cfg for name, cfg in both.items()}


def shape(name, cfg):
    """How large a stack is."""
    text = "{layers} layers × {heads} heads, width {width}"
    return name + filled(text, layers=cfg.n_layers, heads=cfg.n_heads, width=cfg.d_model)


def record(model, name, runs, rows):
    """What the page says, for JSON; arrays and settings are in the files of each experiment."""
    entries = {experiment.name: answered(experiment, outcome) for experiment, outcome, _ in runs}
    keys = "topic", "text", "experiment"
    lines = story.lines_of(model, runs)
    lines = [dict(zip(keys, (topic, story.plain(text), of))) for topic, text, of in lines]
    whole = {"format": results.FORMAT, "model": str(name), "facts": facts(model), "story": lines}
    whole |= {"experiments": entries, "claims": rows}
    return whole | {"files": ["index.html", "report.json"]}


def answered(experiment, outcome):
    """What one experiment gave: the same keys for a Failure, which says why there is nothing."""
    verdict, *answer = overview.answer_of(outcome)
    entry = {"question": translated(experiment.question), "verdict": verdict}
    if isinstance(outcome, single.Failure):
        nothing = {
            "answer": None,
            "sensitivity": {},
            "says": "",
            "note": "",
            "numbers": {},
            "files": [],
        }
        return entry | {"reason": outcome.reason} | nothing
    entry |= {"reason": "", "answer": dict(zip(("measure", "value", "chance"), answer))}
    entry["sensitivity"] = overview.sensitivity_of(experiment, outcome)
    entry |= {"says": outcome.says, "note": outcome.note, "numbers": outcome.headline}
    return entry | {"files": [f"{experiment.name}{ending}" for ending in results.ENDINGS]}
