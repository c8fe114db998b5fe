"""A report within some minutes: what is planned of it from the seconds of a pass."""

import pytest
from planted import good, plant

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.commands import report as report_command
from minitx.analysis.contract import registry
from minitx.analysis.pages import report, themes
from minitx.analysis.running import budget
from minitx.loading.files import read_json

NAMES = [*registry.EXPERIMENTS]


def planned(of_128, **given):
    """A plan of ten minutes, where seconds of a pass grow a little faster than its tokens."""
    seconds = {T: of_128 * (T / 128) ** 1.1 for T in budget.lengths(512)}
    return budget.choose(seconds, NAMES, 10.0, 2, **given)


@pytest.mark.release
def test_before_a_release_every_experiment_has_a_cost_a_theme_and_a_short_name():
    assert {*budget.COSTS} == {*NAMES} == {*themes.SHORT}
    assert themes.OTHER not in map(themes.of, NAMES)


def test_what_reads_documents_has_a_cost_for_each():
    assert {*budget.COSTS} <= {*NAMES}  # of another experiment OTHERS
    counted = {"documents", "n_pairs"}
    for name, cost in budget.COSTS.items():
        numbers = [x.default for x in registry.get(name).options if x.name in counted]
        assert bool(cost.documents) <= bool(numbers), name
        if any(numbers) and name != "joint-grid":  # whose documents are joined
            assert cost.documents and cost.each, name


def test_a_small_model_is_read_as_without_a_limit():
    plan = planned(0.001)
    assert plan.is_whole and plan.seconds < 600
    assert all(plan.options(each) == {} for each in registry.EXPERIMENTS.values())


def test_documents_get_shorter_then_fewer_then_experiments_are_left_out():
    plans = [planned(0.001 * 1.1**i) for i in range(90)]
    whole = [(plan.documents, plan.tokens) for plan in plans if not plan.left_out]
    ways = [*budget.ways([512, 256, 128])]
    assert whole == sorted(whole, key=ways.index) and len({*whole}) > 4
    assert not any(plans[i].left_out for i in range(len(whole)))
    for plan in plans:
        assert plan.seconds <= 600 * budget.SPARE
        assert {*plan.left_out} < {*plan.expected} == {*NAMES}
    assert len(plans[-1].left_out) > len(plans[-20].left_out) > 0
    assert "relearn" in plans[-20].left_out and "models" not in plans[-1].left_out


def test_what_is_left_out_may_leave_time_for_more_documents():
    whole, part = (budget.choose({128: x}, ["relearn", "lags"], 10.0) for x in (0.254, 1.0))
    assert (whole.left_out, whole.documents) == ((), 16)
    assert part.left_out == ("relearn",) and part.options(registry.get("lags")) == {}


def test_hidden_tokens_take_a_pass_each_in_a_masked_model():
    masked, causal = (planned(0.001, kind=budget.Kind(x)).expected["shift"] for x in (True, False))
    own = budget.COSTS["shift"].seconds
    assert (masked - own) / (causal - own) == pytest.approx(16, rel=0.05)  # 512 tokens, every 32nd


def test_what_says_most_is_kept_if_both_do_not_fit():
    """Of two experiments that do not fit together the one that stands later in COSTS stays."""
    costs = [budget.COSTS[name] for name in ("relearn", "joint-grid")]
    of_pass = 600 * budget.SPARE / sum(cost.fixed for cost in costs)
    plan = budget.choose({128: of_pass}, ["relearn", "joint-grid"], 10.0)
    assert plan.left_out == ("relearn",)
    assert plan.seconds == pytest.approx(costs[1].seconds + costs[1].fixed * of_pass)


def test_no_interval_has_fewer_than_8_documents_and_what_a_user_gave_stays():
    assert min(N for N, _ in budget.ways([512, 256, 128]) if N) == 8
    plan = planned(0.5, documents=3)
    assert (plan.documents, plan.tokens) == (0, 0) and plan.left_out
    longer = planned(0.5, documents=30)
    assert {*longer.left_out} > {*plan.left_out}


def test_an_experiment_never_reads_more_than_by_itself():
    plan = planned(0.3)
    few, many = (plan.options(registry.get(name)) for name in ("slices", "lags"))
    assert few == {"tokens": 128} and many == {"documents": 8, "tokens": 128}
    assert plan.options(registry.get("probe")) == {"tokens": 128}  # rows for its features
    assert plan.options(registry.get("profiles")) == {"tokens": 128}  # the text may hold fewer
    assert plan.options(registry.get("cca")) == {"tokens": 128}  # as for probe
    assert plan.options(registry.get("reviews")) == plan.options(registry.get("joint-grid")) == {}
    assert plan.options(registry.get("attribution")) == {}  # 32 tokens are fewer than 128
    assert plan.options(registry.get("mask-positions")) == {"documents": 8}  # 64
    assert plan.options(registry.get("patch")) == {"n_pairs": 8}


def test_more_cores_do_more_and_shared_passes_are_on_half_of_them():
    expected = {"dial": 100.0, "shift": 20.0}
    assert budget.side_by_side(expected, 1) == 120
    assert budget.side_by_side(expected, 2) == 100 and budget.side_by_side(expected, 8) == 25


def test_nothing_ends_before_its_longest_experiment():
    expected = {"joint-space": 300.0, "remove-positions": 40.0, "lags": 90.0}
    assert budget.side_by_side(expected, 2) == 300.0
    assert budget.side_by_side(expected | {"remove-positions": 290.0}, 2) == 340.0


def test_the_time_left_follows_what_the_finished_ones_took():
    """The 100 s that were expected count as true beside what is known; no core is always busy."""
    plan = planned(0.001)._replace(expected={"dial": 60.0, "lags": 40.0}, left_out=(), cores=1)
    assert budget.time_left(plan, ["dial", "lags"], {}, 10.0) == pytest.approx(100)
    took = {"lags": 80.0, "alignment": 0.0}
    assert budget.time_left(plan, ["dial"], took, 80.0) == pytest.approx(110 * 180 / 140 - 80)
    assert budget.time_left(plan, ["dial"], {"lags": 4.0}, 90.0) == 0


def test_of_what_is_left_out_the_time_left_counts_what_will_be_taken_in():
    """Ten minutes; what ends within nine is taken in, what says most, the last, first."""
    expected = {"dial": 60.0, "lags": 40.0, "shift": 50.0, "patch": 400.0}
    plan = planned(0.001)._replace(expected=expected, left_out=("patch", "shift"), cores=1)
    for coming in (["dial", "lags"], ["dial", "lags", "shift"]):
        assert budget.time_left(plan, coming, {}, 10.0) == pytest.approx(155)
    turned = plan._replace(left_out=("shift", "patch"))
    assert budget.time_left(turned, ["dial", "lags"], {}, 10.0) == pytest.approx(540)


def test_losses_of_a_causal_model_take_its_logits():
    masked = planned(0.1, kind=budget.Kind()).expected
    causal = planned(0.1, kind=budget.Kind(is_masked=False, logits=3.0)).expected
    assert causal["lags"] == masked["lags"]
    assert causal["scale-positions"] > 2 * masked["scale-positions"]
    assert causal["notch"] > 10 * masked["notch"]


def test_without_a_table_of_positions_some_experiments_ask_less():
    table, none = (planned(0.1, kind=budget.Kind(has_table=x)).expected for x in (True, False))
    less = {name for name in NAMES if none[name] < 0.5 * table[name]}
    by_places = {"circuit", "joint-grid", "paths", "inject-positions", "rotation"}
    assert less == by_places | {"dial", "notch"}
    rotary, learned = (minitx.load(f"zoo/{x}") for x in ("causal-rotary", "masked-learned"))
    assert not budget.kind_of(rotary).has_table and budget.kind_of(learned).has_table


def test_nothing_is_planned_for_what_a_model_does_not_have():
    rotary = minitx.load("zoo/causal-rotary")
    plan = budget.of_model(rotary, 10.0, 2, {})
    needless = {*NAMES} - {*plan.expected} - {*plan.left_out}
    assert needless == budget.OF_TABLE | {"alignment"}
    for name in budget.OF_TABLE:
        with pytest.raises(registry.NotApplicable):
            registry.get(name).run(rotary)


def test_no_minutes_are_no_limit_and_a_small_model_needs_none(causal):
    assert budget.of_model(causal, 0, 2, {}) is None
    assert budget.of_model(causal, 10.0, 2, {}).is_whole


def test_of_pictures_fewer_are_read_then_experiments_are_left_out(monkeypatch):
    model = minitx.load("tiny-vit")
    assert {*budget.OF_PICTURES} == {*registry.OF_PICTURES}
    assert budget.of_model(model, 10.0, 2, {}).is_whole
    monkeypatch.setattr(budget, "_timed", lambda model, T, n: 0.3)
    plan = budget.of_model(model, 10.0, 2, {})
    assert budget.says(plan).startswith("reads 24 pictures for each") and not plan.left_out
    of = {name: plan.options(each) for name, each in registry.OF_PICTURES.items()}
    assert of["dial"] == {"documents": 24} and of["cca"] == of["positions"] == {}  # rows for all
    monkeypatch.setattr(budget, "_timed", lambda model, T, n: 3.0)
    left_out = "joint-space", "dial", "sources", "conditions"
    assert budget.of_model(model, 10.0, 2, {}).left_out == left_out


def test_a_slow_model_is_timed_at_its_shortest_length_alone(monkeypatch):
    timed = []
    monkeypatch.setattr(budget, "_timed", lambda model, T, n: timed.append(T) or T / 512)
    assert budget._of_lengths(None, [512, 256, 128], 2) == pytest.approx(
        {128: 0.25, 256: 0.55, 512: 1.21}
    )
    assert timed == [128]


@pytest.fixture
def slow(monkeypatch, tmp_path):
    """A report of two planted experiments on a machine where a pass takes seconds."""
    plant(monkeypatch, good)
    model = minitx.load("tiny-roberta")
    monkeypatch.setattr(budget, "COSTS", {"good": budget.Cost(0, 100)})
    monkeypatch.setattr(budget, "_timed", lambda model, T, n: 10.0)

    def make(name="my-model", minutes=10.0, resume=False):
        report.make(model, name, tmp_path, {}, resume, 1, minutes)
        return (tmp_path / "index.html").read_text("utf-8")

    return make


def test_the_page_says_once_what_was_left_out_and_how_to_run_it(slow, capsys, tmp_path):
    text = slow()
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("reads as many documents as each")
    assert "leaves out, unless time is left: good" in first
    assert text.count("minitx report my-model --minutes 0") == 1
    assert "Left out: 1 experiment for lack of time." in text and "0 experiments in " in text
    entry = read_json(tmp_path / "report.json")["experiments"]["good"]
    assert entry["verdict"] == "left out"
    assert entry["reason"] == "does not fit into 10 minutes beside the others"


def test_a_report_that_goes_on_keeps_its_plan(slow, monkeypatch, capsys):
    slow()
    monkeypatch.setattr(budget, "_timed", lambda model, T, n: 1e-6)
    capsys.readouterr()
    slow(resume=True)
    assert "leaves out, unless time is left: good" in capsys.readouterr().out
    assert "--minutes 0" not in slow()
    assert "leaves out nothing" in capsys.readouterr().out


def test_no_limit_is_as_it_was(slow, capsys):
    assert "--minutes" not in slow(minutes=0.0)
    assert "leaves out" not in capsys.readouterr().out


def test_a_bundled_model_has_a_limit_where_minutes_are_named():
    assert report_command._minutes(None, "my-model") == budget.USUAL
    assert report_command._minutes(None, "tiny-roberta") == 0.0
    assert report_command._minutes("0.5", "tiny-roberta") == 0.5
    assert report_command._minutes("0", "my-model") == 0.0


@pytest.mark.parametrize("given", ["-1", "nan", "soon"])
def test_minutes_that_are_none_are_said(given, capsys):
    assert cli.main(["report", "tiny-gpt2", "--minutes", given]) == 2
    said = capsys.readouterr().err
    assert "minutes is" in said and "wanted" in said
