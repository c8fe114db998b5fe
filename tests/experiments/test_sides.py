"""What an experiment reads of an encoder-decoder: every experiment on every side of three families.

Each runs, or says in one sentence why not; nothing else.
"""

import json
from dataclasses import replace
from itertools import pairwise

import encoder_decoders
import numpy as np
import pytest
import untranslated

import minitx
from minitx import analysis
from minitx.analysis import commands
from minitx.analysis.contract import registry, sides
from minitx.analysis.experiments import profiles as experiment
from minitx.analysis.maths import profiles, spectra
from minitx.analysis.measures import decoder_texts, heads, inputs
from minitx.analysis.running import many, stream

SIDES = "encoder", "decoder", "cross", "both"
SMALL = {"documents": 2, "shuffles": 2, "compare": 2, "evaluations": 8, "losses": 2}
SMALL |= {"others": "tiny-induction", "n_pairs": 4, "random": 10}
NEED_A_TABLE = {
    "chain",
    "extraction",
    "lags",
    "models",
    "norms",
    "positions",
    "queries-keys",
    "remove-positions",
    "residual",
    "reviews",
    "singular-values",
}  # of positions, which t5 has not
BY_MECHANISM = {
    "dial",
    "rotation",
    "sources",
}  # partial checkpoints, too: a table, or what enters the scores
NEED_A_HEAD = {
    "shift",
    "scale-positions",
    "inject-positions",
    "mask-positions",
    "predict",
    "projections",
    "attribute",
    "patch",
    "paths",
    "circuit",
}  # which an encoder by itself has not


def options(experiment):
    """Options with which an experiment is done in a moment."""
    small = SMALL | {"documents": max(SMALL["documents"], experiment.least_documents)}
    return {name: x for name, x in small.items() if name in experiment.option_names}


def expected(experiment, family, side):
    """Part of the sentence with which an experiment refuses a side; "" where it runs."""
    name = experiment.name
    if side not in sides.of(experiment):
        return f"--side is {side}, but {name} "
    if name == "attribution" and side == "encoder":
        return "attribution needs a head that predicts words or classes"
    if name == "relearn":
        return "relearn needs a masked language model"
    if name in NEED_A_HEAD:
        head = "a masked or causal language model; this checkpoint's head is None"
        return "" if side == "both" else f"{name} needs {head}"
    if family == "t5" and name in NEED_A_TABLE:
        return "needs the position table, and t5 has none"
    if family == "t5" and name in BY_MECHANISM and side == "decoder":
        return "needs texts, since positions enter the scores, and a decoder reads no text"
    if family == "t5" and name == "bases" and side == "decoder":
        return "needs the position table, and t5 has none"
    return ""


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", analysis.EXPERIMENTS)
def test_every_experiment_reads_a_side_or_says_why_not(pair, name, side):
    experiment = analysis.EXPERIMENTS[name]
    refusal = expected(experiment, pair.config.model_type, side)
    if not refusal:
        result = analysis.run(name, pair, side=side, **options(experiment))
        assert result.settings["side"] == side
        assert result.says.startswith(sides.SENTENCES[side])
        assert result.title.endswith(f"({pair.config.model_type}, {side})")
        return
    with pytest.raises(registry.NotApplicable) as error:
        analysis.run(name, pair, side=side, **options(experiment))
    text = str(error.value)
    assert text.startswith(refusal) and "\n" not in text
    if side not in sides.of(experiment):
        assert f"; wanted {' or '.join(sides.of(experiment))} (--side {side} is read by " in text
        readers = {"encoder": "positions", "both": "parts"}
        assert readers.get(side, "attention") in text


@pytest.mark.release
@pytest.mark.parametrize("name", ["attribute", "circuit", "patch", "shapes"])
def test_figures_of_both_sides_are_in_japanese(bart, name):
    experiment = analysis.EXPERIMENTS[name]
    result = analysis.run(name, bart, side="both", **options(experiment))
    assert untranslated.words(experiment, result.arrays) == []


@pytest.mark.parametrize("name", analysis.EXPERIMENTS)
def test_a_single_stack_has_no_sides(bundled, name):
    with pytest.raises(registry.NotApplicable, match="this model \\(roberta\\) has a single stack"):
        analysis.run(name, bundled, side="encoder")
    if name != "alignment":
        assert sides.side_of(analysis.EXPERIMENTS[name], bundled) == ""
    with pytest.raises(ValueError, match="side is 'left'; wanted one of auto, encoder, decoder"):
        analysis.run(name, bundled, side="left")


def test_the_settings_of_a_single_stack_name_no_side(bundled):
    assert "side" not in analysis.run("positions", bundled, shuffles=2).settings


def test_each_side_has_its_own_table(bart):
    """Spectra of the encoder's and of the decoder's table, which differ."""
    heights = {}
    for side, stack in (("encoder", bart.encoder), ("decoder", bart)):
        result = analysis.run("positions", bart, side=side)
        mean, _ = spectra.summary(spectra.amplitude(inputs.reachable(stack)))
        assert np.array_equal(result.arrays["position_mean"], mean)
        heights[side] = mean
    assert abs(heights["encoder"] - heights["decoder"]).max() > 0.01  # measured 0.2
    default = analysis.run("positions", bart)
    assert default.settings["side"] == "encoder"
    assert np.array_equal(default.arrays["position_mean"], heights["encoder"])


def test_an_encoder_is_read_as_a_model_of_its_own(bart):
    named = analysis.run("profiles", bart, side="encoder", documents=2)
    alone = analysis.run("profiles", bart.encoder, documents=2)
    np.testing.assert_equal(named.arrays, alone.arrays)
    assert "changed" not in alone.settings


def test_arrays_that_were_changed_are_named_in_all_stacks(bart):
    def with_zeros(part, name):
        new = type(part)(**vars(part))
        setattr(new, name, np.zeros_like(getattr(part, name)))
        return new

    layer = bart.layers[1]
    crossed = type(layer)(**vars(layer) | {"cross": with_zeros(layer.cross, "W_Q")})
    encoder = replace(bart.encoder, weights=with_zeros(bart.encoder.weights, "W_pos"))
    layers = (bart.layers[0], crossed, *bart.layers[2:])
    changed = replace(bart, layers=layers, encoder=encoder)
    settings = analysis.run("singular-values", changed, side="decoder").settings
    assert settings["changed"] == ["cross_W_Q.L1", "encoder.W_pos"]
    assert "changed" not in analysis.run("singular-values", bart, side="decoder").settings


def test_a_decoder_by_itself_runs_no_text(bart):
    with pytest.raises(ValueError, match="--input is text, but a decoder reads no text without a"):
        analysis.run("queries-keys", bart, side="decoder", input="text")
    part = sides.part(analysis.EXPERIMENTS["lags"], bart, "decoder")
    with pytest.raises(ValueError, match="a partial checkpoint cannot run"):
        minitx.forward(part, [2, 5])


@pytest.mark.usefixtures("empty_figures")
def test_the_command_line_names_a_side(bart, tmp_path, capsys):
    folder = str(bart.tokenizer.folder)
    out = ["--out", str(tmp_path)]
    assert commands.run_command(["run", "positions", folder, "--side", "decoder", *out]) == 0
    assert "This is of the decoder." in capsys.readouterr().out
    settings = json.loads((tmp_path / "positions.json").read_text())["settings"]
    assert settings["side"] == "decoder"
    for given, wanted in (
        (["positions", folder, "--side", "cross"], "but positions is about one stack by itself"),
        (["conditions", folder, "--side", "decoder"], "but conditions runs texts, which a decoder"),
        (
            ["profiles", folder, "--pairs", "dates"],
            "pairs are for a decoder; wanted --side decoder",
        ),
        (["positions", "tiny-bert", "--side", "encoder"], "this model (bert) has a single stack"),
        (["alignment", "tiny-bert"], "alignment needs an encoder-decoder; this model (bert)"),
        (["alignment", folder, "--side", "encoder"], "is about how a decoder reads its source"),
        (["positions", folder, "--side", "left"], "side is 'left'; wanted one of auto, encoder"),
    ):
        assert commands.run_command(["run", *given, *out]) == 2
        error = capsys.readouterr().err
        assert wanted in error and error.count("\n") == 1


def test_two_models_are_compared_on_one_side(bart, tmp_path):
    folder = str(bart.tokenizer.folder)
    for side, layers in (("encoder", 2), ("decoder", 3)):
        out = tmp_path / side
        given = ["compare", folder, folder, "--experiment", "singular-values"]
        given += ["--side", side, "--out", str(out)]
        assert commands.run_command(given) == 0
        record = json.loads((out / "compare.json").read_text())
        assert record["A"]["side"] == side
        assert {len(measure["a"]) for measure in record["measures"].values()} == {layers}


@pytest.mark.usefixtures("empty_figures")
def test_the_report_is_of_the_encoder_and_what_reads_it(bart, tmp_path, monkeypatch):
    few = {name: analysis.EXPERIMENTS[name] for name in ("positions", "alignment", "predict")}
    monkeypatch.setattr(registry, "EXPERIMENTS", few)
    monkeypatch.setattr(many, "n_processes", lambda options: 1)  # another has not this list
    given = ["report", str(bart.tokenizer.folder), "--documents", "2", "--out", str(tmp_path)]
    assert commands.run_command(given) == 0
    record = json.loads((tmp_path / "report.json").read_text())
    sentences = {name: entry["says"] for name, entry in record["experiments"].items()}
    assert sentences["positions"].startswith(sides.SENTENCES["encoder"])
    assert sentences["alignment"].startswith(sides.SENTENCES["cross"])
    assert record["experiments"]["predict"]["verdict"] == "left out"
    shape = "encoder: 2 layers × 3 heads, width 24 and decoder: 3 layers × 3 heads, width 24"
    assert record["facts"]["shape"] == shape
    assert commands.run_command([*given, "--side", "decoder"]) == 0
    record = json.loads((tmp_path / "report.json").read_text())
    assert record["experiments"]["positions"]["says"].startswith(sides.SENTENCES["decoder"])
    assert record["experiments"]["alignment"]["verdict"] == "left out"


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_models_without_a_stored_table_load_as_partial_checkpoints(family, tmp_path):
    model = minitx.load(encoder_decoders.MAKERS[family](tmp_path / family), partial=True)
    assert not model.missing and model.encoder is not None


@pytest.mark.parametrize("side", ["decoder", "cross"])
def test_maps_are_those_of_the_forward_pass(pair, side):
    source, target = "A dog ran over there.", "The cat sat on"
    given = dict(side=side, source=source, target=target, head="L2H1,L0H0", show=64)
    r = analysis.run("attention", pair, **given).arrays
    said = pair.tokenizer.encode(target)
    tokens = [pair.config.start_id, *said[:-1]]
    point = "pattern" if side == "decoder" else "cross_pattern"
    trace = minitx.run(pair, tokens, point, source=source)
    wanted = np.array([trace[point, 2][0, 1], trace[point, 0][0, 0]])
    assert np.array_equal(r["pattern"], wanted)
    pieces = pair.tokenizer.pieces
    if side == "decoder":
        assert r["pieces"].tolist() == pieces(tokens) and "source_pieces" not in r
        return
    steps = [f"{a}→{b}" for a, b in zip(pieces(tokens), pieces(said))]
    assert r["pieces"].tolist() == steps
    assert r["source_pieces"].tolist() == pieces(pair.tokenizer.encode(source))
    assert r["strongest"] == pytest.approx(wanted.max(axis=-1).mean(axis=-1))
    assert r["strongest_null"] == 1 / wanted.shape[-1]
    assert sorted(r["source_pieces_shuffled"]) == sorted(r["source_pieces"])
    assert r["source_pieces_shuffled"].tolist() != r["source_pieces"].tolist()
    assert abs(r["pattern_shuffled"] - wanted).max() > 1e-3


def test_profiles_of_a_decoder_are_those_of_what_it_says(bart):
    """From the definition: its own patterns on its own greedy output, all cut to one length."""
    text = ["A dog ran over there.", "The cat sat.", "He looked at her for a moment."]
    sources = [bart.encoder.tokenizer.encode(line) for line in text]
    given = [decoder_texts.Task(source) for source in sources]
    said = [decoder_texts.greedy(bart, source) for source in sources]
    T = 6
    texts = decoder_texts.outputs(bart, given, T)
    kept = [x for x in said if len(x.inputs) >= T]
    how = "attention", profiles.REACH, 0, stream.UNSAVED
    measured = experiment._measure(bart, texts, *how)["plain"][:, 0]  # [N L H R]
    assert len(texts) == len(kept) and texts.left_out == len(said) - len(kept)
    for i, (tokens, of_sentence) in enumerate(zip(texts, kept)):
        assert tokens.tolist() == of_sentence.inputs[:T].tolist()
        trace = minitx.run(bart, tokens, ["pattern"], source=of_sentence.source)
        wanted = profiles.profile(trace.stack("pattern")[:, 0])
        own = heads.head_profiles(bart, tokens, source=of_sentence.source)
        np.testing.assert_allclose(own, wanted, rtol=1e-6)
        np.testing.assert_allclose(measured[i], wanted, rtol=1e-5, atol=1e-7)
        mixed = texts.shuffled(i, tokens, seed=0)
        assert mixed[0] == bart.config.start_id and sorted(mixed) == sorted(tokens)
    other = heads.head_profiles(bart, tokens, source=sources[0][::-1])
    assert abs(other - own).max() > 1e-6  # deeper layers see what another source writes


def test_the_third_panel_of_appendix_c_can_be_drawn():
    """Scores before the mask of a decoder, in two clusters; here on what it was trained to say."""
    options = {"clustered": "scores", "clusters": 2, "reach": 6, "documents": 12}
    result = analysis.run("profiles", "tiny-bart", side="decoder", pairs="dates", **options)
    r = result.arrays
    assert r["profiles"].shape == (12, 2, 4, 13) and r["T"] >= 10
    assert (r["profiles"][..., 7:] == 0).all()  # a decoder looks at no token to the right
    assert (abs(r["centres"][:, 7:]) > 0).all()  # but its scores are there
    assert "tokens each of what the decoder says of 12 sources" in result.says
    assert result.settings["side"] == "decoder" and "<svg" in result.svg
    encoder = analysis.run("profiles", "tiny-bart", side="encoder", documents=2).arrays
    assert "left_out" not in encoder and (encoder["profiles"][..., 11:] > 0).any()


def test_outputs_of_a_length_that_none_has_are_refused(bart):
    given = [decoder_texts.Task(bart.encoder.tokenizer.encode("A dog ran."))]
    with pytest.raises(ValueError, match=r"--tokens is 65; wanted 3 to \d+, the longest that the"):
        decoder_texts.outputs(bart, given, 65)


def test_without_a_target_it_is_the_models_own_output(bart):
    r = analysis.run("attention", bart, side="cross", source="A dog ran.", show=64).arrays
    tokens = bart.tokenizer.encode("A dog ran.")
    row = minitx.generate(bart, n=len(r["pieces"]), source=tokens)
    pieces = bart.tokenizer.pieces(row)
    assert r["pieces"].tolist() == [f"{a}→{b}" for a, b in pairwise(pieces)]


def test_too_long_or_empty_texts_are_refused(bart):
    with pytest.raises(ValueError, match=r"has \d+ tokens; this model reads at most 64"):
        analysis.run("attention", bart, side="cross", source="now " * 90)
    with pytest.raises(ValueError, match="--source is empty; wanted a text to read"):
        analysis.run("attention", bart, side="cross", source=" ")
