"""Claims about heads of GPT-2 small, on a random checkpoint of its form: run, and able to fail."""

import json

import analysis_models
import numpy as np
import pytest
import undrawn

from minitx.analysis import __main__ as cli
from minitx.analysis.pages import circuit_claims, claims, published
from minitx.analysis.texts import recipients

OF_EFFECTS = [claim for claim in circuit_claims.CLAIMS if claim.experiment == "paths"]


@pytest.fixture(scope="module")
def form(tmp_path_factory):
    """A folder called gpt2: 12 layers of 12 heads, 24 wide, random weights."""
    folder = tmp_path_factory.mktemp("form") / "gpt2"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis_models, "L", 12)
        patch.setattr(analysis_models, "H", 12)
        analysis_models.gpt2(folder)
    return folder


def run(folder, out, **options):
    """The rows of the circuits' claims, by what they are about."""
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "CLAIMS", circuit_claims.CLAIMS)
        undrawn.without_figures(patch)
        assert cli.main(["published", str(folder), *given, "--out", str(out)]) == 0
    return json.loads((out / "published.json").read_text(encoding="utf-8"))


def test_a_model_that_is_not_gpt2_is_not_judged(form, tmp_path):
    rows = run(form, tmp_path)
    assert {row["verdict"] for row in rows} == {"other checkpoint"}
    assert {row["reason"] for row in rows} == {"published for gpt2 only"}
    assert not [*tmp_path.glob("*/paths.json")] and not (tmp_path / "heads.json").exists()


def test_random_weights_in_its_place_have_no_such_heads(form, tmp_path, monkeypatch):
    """Every row is run as it is declared, and fails."""
    config = json.loads((form / "config.json").read_text())
    sizes = "gpt2", 12, config["n_embd"], config["vocab_size"]
    monkeypatch.setitem(claims.CHECKPOINTS, "gpt2", (sizes, ""))
    asked = circuit_claims.ASKED | {"n_pairs": 4}
    for claim in OF_EFFECTS:
        monkeypatch.setitem(claim.options, "n_pairs", 4)
    rows = run(form, tmp_path)
    assert [row["verdict"] for row in rows] == ["fail"] * 6
    assert all(row["ours"] <= row["null"] + 0.1 for row in rows)
    settings = json.loads((tmp_path / "paths-2/paths.json").read_text())["settings"]
    assert {key: settings["options"][key] for key in asked} == asked
    with np.load(tmp_path / "paths-2/paths.npz") as arrays:
        assert arrays["lost_by_through"].shape == (12, 12)
        assert arrays["writers"].tolist() == ["L9H6", "L9H9", "L10H0"]
        # heads of the writers' own layers, or behind them, reach none of them
        assert (arrays["lost_by_through"][10:] == 0).all() and arrays["lost_by_through"][9].any()


def planted(claim, heads):
    """The claim's row on arrays in which these heads have the largest effects and attention."""
    arrays = {}
    for name in ("lost_by_direct", "lost_by_through"):
        arrays[name] = np.random.default_rng(0).uniform(-0.1, 0.1, (12, 12))
        for i, head in enumerate(heads):
            arrays[name][head] = -1 if head in circuit_claims.NEGATIVE else 1 + 0.1 * i
    for kind in ("induction", "previous", "duplicate"):
        arrays[f"{kind}_of_heads"] = np.full((12, 12), 0.05)
        arrays[f"{kind}_of_heads_null"] = np.full((12, 12), 0.05)
        for head in heads:
            arrays[f"{kind}_of_heads"][head] = 0.3
    ours, null = claim.ours(arrays), claim.null(arrays)
    return claim.holds(ours, null), ours, null


PUBLISHED = {
    "induction heads": circuit_claims.INDUCTION,
    "previous heads": circuit_claims.PREVIOUS,
    "duplicate heads": circuit_claims.DUPLICATE,
    "name movers": circuit_claims.MOVERS,
    "negative name movers": circuit_claims.NEGATIVE,
    "S-inhibition heads": circuit_claims.INHIBITION,
}


@pytest.mark.parametrize("claim", circuit_claims.CLAIMS, ids=lambda claim: claim.published)
def test_a_claim_holds_of_the_published_heads_and_of_no_others(claim):
    heads = PUBLISHED[claim.published]
    assert planted(claim, heads)[0]
    others = [(11 - layer, head) for layer, head in heads]
    assert not set(heads) & set(others) and not planted(claim, others)[0]
    assert planted(claim, [*heads[:-1], others[-1]])[0] == (claim in OF_EFFECTS[::2])


def test_heads_are_sought_among_as_many_with_the_largest_effects():
    effects = {"effects": np.arange(12.0).reshape(3, 4)}
    assert circuit_claims.among("effects", [(2, 3), (2, 0)])(effects) == 0.5  # 11 and 8 of 11, 10
    assert circuit_claims.among("effects", [(0, 0), (0, 2)], sign=-1)(effects) == 0.5


def test_what_chance_gives_of_sets_of_heads():
    """Of 3 heads of 144 drawn at random, one is among a given 3 in 6 of 100 draws."""
    r = {"lost_by_direct": np.zeros((12, 12))}
    assert circuit_claims.drawn("lost_by_direct", circuit_claims.MOVERS)(r) == pytest.approx(1 / 3)
    rng = np.random.default_rng(0)
    draws = [(rng.choice(144, 3, replace=False) < 3).sum() for _ in range(4000)]
    assert np.quantile(draws, 0.99) == 1


def test_prompts_name_the_giver_twice_and_differ_in_people_alone():
    prompts = recipients.drawn(recipients.NAMES, 200, 0)
    orders = []
    for clean, corrupt, recipient, giver in prompts:
        assert clean.count(giver) == 2 and clean.count(recipient) == 1
        assert clean.endswith(" to") and recipient not in corrupt and giver not in corrupt
        orders.append(clean.index(recipient) < clean.index(giver))
        changed = [i for i, (a, b) in enumerate(zip(clean.split(), corrupt.split())) if a != b]
        assert len(changed) == 3
    assert 0.4 < np.mean(orders) < 0.6
    assert recipients.drawn(recipients.NAMES, 3, 1) != prompts[:3]
    assert len({prompt.clean for prompt in prompts}) > 190
