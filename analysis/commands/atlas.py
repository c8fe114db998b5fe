"""`minitx atlas`: every head as one scatter of the queries and keys of hundreds of sentences."""

import time
from pathlib import Path
from typing import get_args

from minitx import weights

from .. import atlas
from ..atlas import heads, patches
from ..contract import own_texts
from ..machine.language import filled, translated
from ..measures import joint_fit
from ..pages import atlas as page
from ..running import settings, stream
from ..texts import corpus, formats
from . import flags, inputs

FILE = "atlas.html"
COUNTED = (
    "sentences, or pictures, to read (200 sentences, or all of a text that has fewer; at most "
    "64 pictures; 0: all)"
)
NUMBERS = (
    ("--sentences", None, COUNTED),
    ("--tokens", 0, "tokens of a sentence, at most (64, or the model's longest)"),
    ("--seed", 0, "of what is drawn and shuffled (0)"),
)
BESIDE_PCA = (
    "beside PCA: tsne, umap, and in three dimensions tsne3, umap3, joined by commas; they need "
    "a package, take long, and are kept"
)
WRITTEN = "{path} written: {size:.2f} MB in {seconds:.1f} s; open it in a browser"
ALIKE = "No head's plane differs from the whole space beyond chance."
NEAR = (
    "{name}, {L} x {H} heads: of the strongest keys {plane:.0%} are among the {n} nearest in the "
    "plane, {space:.0%} in the whole space (keys shuffled: {by_chance:.0%})."
)


def declare(commands):
    """Its flags."""
    about = "a page with the queries and keys of hundreds of sentences as points, head by head"
    command = flags.command(commands, "atlas", run, about, "MODEL")
    about = f"{flags.TEXT}; of a model of pictures a folder of them, or sample (the model's own)"
    command.add_argument("--text", metavar="FILE", help=about)
    flags.of_column(command)
    about = "column of such a file with the second text of each pair of sentences"
    command.add_argument("--second", default="", metavar="NAME", help=about)
    about = "token ids in place of a text: a file with one sentence per line, or -"
    command.add_argument("--ids", metavar="FILE", help=about)
    for name, default, about in NUMBERS:
        command.add_argument(name, type=int, default=default, metavar="N", help=about)
    for name, kind in (("distance", joint_fit.Distance), ("scope", joint_fit.Scope)):
        choices, about = get_args(get_args(kind)[0]), get_args(kind)[1]
        about = f"{about} ({choices[0]})"
        command.add_argument(f"--{name}", choices=choices, default=choices[0], help=about)
    command.add_argument("--projection", default="pca", metavar="NAMES", help=BESIDE_PCA)
    about = "a file with a word, a tab and its class in each line, to colour points by"
    command.add_argument("--word-classes", default="", metavar="FILE", help=about)
    about = "a second model beside the first, on the same text or on that of --beside-text"
    command.add_argument("--beside", metavar="MODEL", help=about)
    about = "a second text beside the first, read by the same model or by that of --beside"
    command.add_argument("--beside-text", metavar="FILE", help=about)
    flags.of_results(command, "out/MODEL-atlas")
    flags.of_workers(command)


def run(arguments):
    """minitx atlas MODEL --text FILE"""
    start = time.monotonic()
    pairs = pairs_of(arguments)
    how = how_of(arguments)
    models = {name: inputs.load(name) for name, _ in pairs}
    pairs = [(name, text or own_texts.text(models[name])) for name, text in pairs]
    for name, text in pairs:
        check(models[name], name, text)
    folder = inputs.folder(arguments, "atlas")
    titles = titles_of(pairs)
    key = settings.key(stated(pairs, models, how))
    computed = []
    with stream.resumable(folder, "atlas", key, arguments.resume) as kept:
        for number, (name, text) in enumerate(pairs):
            part = heads.Part(kept, f"atlas {number}") if number else kept
            each = atlas.compute(models[name], text, how, part, name)
            computed.append(each._replace(name=titles[number]))
        size = page.write(computed[0]._replace(beside=(*computed[1:], None)[0]), folder / FILE)
    show(computed, folder / FILE, size, time.monotonic() - start)


def pairs_of(arguments):
    """The model and text of each atlas: one, or two side by side."""
    ids, column = arguments.ids, arguments.column
    if ids is not None and arguments.text is not None:
        raise ValueError(f"--text {arguments.text} and --ids {ids}: wanted one of them")
    text = ids or arguments.text
    if arguments.second and (arguments.text is None or formats.is_literal(text)):
        raise ValueError("--second names a column of the table that --text names; there is none")
    if text is not None:
        text = formats.Text(text, ids is not None, column, label=arguments.second)
    pairs = [(arguments.model, text)]
    if arguments.beside or arguments.beside_text is not None:
        other = text
        if arguments.beside_text is not None:
            other = arguments.beside_text
            formats.not_empty(other, "--beside-text")
        pairs.append((arguments.beside or arguments.model, other))
    for each in (each for _, each in pairs if each is not None):
        formats.valid(formats.of(each).name, "--text")
    return pairs


def titles_of(pairs):
    """What each atlas is called: its model, and its text where two are of one model."""
    is_one = len({name for name, _ in pairs}) < len(pairs)
    return [f"{name}, {formats.shown(text)}" if is_one else name for name, text in pairs]


def how_of(arguments):
    """The options of the computation, as they were given."""
    for name in ("sentences", "tokens", "seed"):
        value = getattr(arguments, name)
        if value is not None and value < 0:
            raise ValueError(f"--{name} is {value}; wanted 0 or more")
    names = atlas.How._fields
    return atlas.How(**{name: getattr(arguments, name) for name in names})


def check(model, name, text):
    """Raise ValueError for a model that cannot run, or that cannot read what is given."""
    if model.missing:
        raise ValueError(f"{name} lacks {len(model.missing)} tensors; an atlas needs all of them")
    if model.config.picture is not None:
        patches.check(name, text)
        return
    formats.not_empty(formats.of(text).name, "--text")
    reader = model if model.encoder is None else model.encoder
    if not formats.is_ids(text) and not corpus.has_tokenizer(reader):
        raise ValueError(f"{name} has no tokenizer that minitx can use; --ids takes token ids")


def stated(pairs, models, how):
    """All that an atlas depends on, for the key of its states."""
    files = [settings.model_files(Path(weights.find(name))) for name, _ in pairs]
    texts = [described(models[name], text) for name, text in pairs]
    classes = how.word_classes and formats.described(how.word_classes)
    record = {"models": files, "texts": texts, "classes": classes, "options": how._asdict()}
    of_texts = [model for model in models.values() if model.config.picture is None]
    packages = of_texts[0].tokenizer.packages if of_texts else ()
    return record | {"pairs": pairs, "versions": settings.versions(packages)}


def described(model, text):
    """What a model reads, by its content."""
    return (formats if model.config.picture is None else patches).described(text)


def show(computed, path, size, seconds):
    """Print what stands out, and where the page is."""
    for each in computed:
        print(f"{each.name}: {each.sampled[2]}")
        for side in each.sides:
            print(summary(side))
    print(filled(WRITTEN, path=path, size=size / 1e6, seconds=seconds))


def summary(side):
    """What is said of one space: its flags, and how far its planes lie."""
    flagged = [f"L{flag.layer}H{flag.head} {flag.words}" for flag in side.flags]
    values = {"plane": side.lie.near_plane, "space": side.lie.near_space}
    values["by_chance"] = side.lie.near_plane_null
    means = {name: x.mean() for name, x in values.items()}
    said = filled(NEAR, name=side.name, L=side.L, H=side.H, n=heads.NEAREST, **means)
    misleads = side.lie.misleads
    lines = [
        f"{said} {misleads.words if misleads else translated(ALIKE)}",
        *(flagged or [translated("no head stands out beyond chance")]),
    ]
    return "\n  ".join(lines)
