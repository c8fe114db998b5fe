"""What figures show is all there is to see: nothing cut off, left out, overlapping or empty."""

import gc
import re

import numpy as np
import pytest
from contrasts import from_grounds
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.legend import Legend
from matplotlib.patches import Circle
from matplotlib.text import Annotation, Text
from outcomes import SMALL, run

import minitx
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.drawing import curves, draw
from minitx.analysis.experiments import attribute, profiles
from minitx.analysis.maths import spectra
from minitx.analysis.measures import document_features, inputs, perplexities


@pytest.fixture(scope="module")
def deep():
    return minitx.load("deep-roberta")


@pytest.fixture(scope="module")
def undirected(bert):
    return document_features.untrained(bert, np.random.default_rng(0))


def drawn(name, r):
    """The figure of a result as an SVG has it, and a list of all its axes."""
    with draw.style():
        figure = registry.get(name).draw(r)
        draw.svg(figure)
    return figure, figure.findobj(Axes)


def figures(name, r):
    """The figures of a result, of at most three panels each."""
    with draw.style():
        return registry.get(name).figures(r)


def extents(figure, texts):
    """Left, bottom, right and top of each text, in points of the SVG: [n 4]."""
    figure.dpi = draw.SVG_DPI
    renderer = figure._get_renderer()
    return np.array([Text.get_window_extent(text, renderer).extents for text in texts])


def overlapping(figure, texts):
    """Pairs of texts of which one covers a part of the other."""
    boxes = extents(figure, texts)
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    pairs = np.argwhere(np.triu((high > low).all(axis=-1), 1)).tolist()
    return [(texts[i].get_text(), texts[j].get_text()) for i, j in pairs]


def written(figure):
    """All texts of a figure that can be seen."""
    texts = [text.get_text() for text in figure.findobj(Text) if text.get_visible()]
    return [text for text in texts if text.strip()]


@pytest.fixture(scope="module")
def looked(deep):
    return run("profiles", deep, documents=8)


@pytest.fixture(scope="module")
def drawn_profiles(looked):
    return drawn("profiles", looked)


def test_rings_mark_the_heads_with_a_direction_that_the_titles_count(looked, drawn_profiles):
    figure, _ = drawn_profiles
    rings = [x for x in figure.findobj(Circle) if not x.get_fill()]
    ringed = sorted((round(y), round(x)) for x, y in (ring.center for ring in rings))
    assert ringed == [tuple(place) for place in np.argwhere(looked["directed"]).tolist()]
    left = (looked["directed"] & (looked["best_offset"] < 0)).sum()
    (title,) = (text for text in written(figure) if "A ring" in text)
    assert f"{len(rings)} heads with\na direction, {left} to the left" in title
    # some of them are even as a cluster, which no colour of a pie tells
    even = [i for i, name in enumerate(looked["cluster_names"]) if name.startswith("even")]
    assert (looked["shares"][looked["directed"]].argmax(axis=1) == even).any()


def test_clusters_share_a_scale_or_say_how_much_they_are_enlarged(looked, drawn_profiles):
    _, all_axes = drawn_profiles
    panels = [axes for axes in all_axes if "% of profiles" in axes.get_title(loc="left")]
    heights = np.array([axes.get_ylim()[1] for axes in panels])
    enlarged = [axes.get_ylabel() for axes in panels]
    times = heights.max() / heights
    named = [f"enlarged {t:.0f} times" if t > 1.01 else "" for t in times]
    assert enlarged == named
    assert len({*named}) > 1  # the even ones
    for c, axes in enumerate(panels):
        assert profiles._curves(looked, c).max() <= axes.get_ylim()[1]


def test_clusters_have_colours_that_stand_out(looked):
    """The lighter of two was 1.7 : 1 on paper."""
    for k in (2, 6, 9):
        centres = np.repeat(looked["centres"], 2, axis=0)[:k]
        colors = profiles._colors(looked | {"centres": centres})
        assert min(min(from_grounds(color[:3])) for color in colors) >= 3


def test_dashes_far_beyond_all_bars_are_cut_off_and_told():
    """One null of 7 beside bars of 0.7 made lines of all bars."""
    r = {"parts": np.array([0.7, -0.3]), "components": np.array(["mlp 0", "mlp 1"])}
    for null, is_cut in (np.array([7.0, 0.9]), True), (np.array([0.7, 0.09]), False):
        axes = draw.figure(4, 3).subplots()
        attribute._draw_parts(axes, r | {"parts_null": null, "target": " a"})
        texts = [text.get_text() for text in axes.get_legend().get_texts()]
        assert ("null beyond the axis: up to 7.0" in texts) == is_cut
        low, high = axes.get_xlim()
        assert 0.7 < high < 3 * 0.7 + 1e-9 and -high - 1e-9 < low < -0.3


def test_every_colour_of_what_peaks_are_made_of_is_explained(deep):
    first = figures("sources", run("sources", deep, documents=2))[0]
    explained = {
        to_hex(handle.get_facecolor())
        for legend in first.legends
        for handle in legend.legend_handles
    }
    assert {to_hex(bar.get_facecolor()) for bar in first.axes[0].patches} <= explained


def test_one_token_does_not_flatten_the_factors_of_the_norms(deep):
    """That of <s> is a thousandth of all others, and half of the panel was empty."""
    r = run("residual", deep, documents=2)
    S = r["scale_first"][r["read"]]
    assert S.min() < 0.01 * np.median(S)
    axes = figures("residual", r)[1].axes[1]
    low, high = axes.get_ylim()
    assert low > 0.5 * S[:, 1:-1].min() and high > S.max()
    assert f"down to {S.min():.2g} at {S.min(axis=0).argmin()}" in axes.get_title(loc="left")


def test_bands_that_are_as_high_are_drawn_in_columns_of_their_own(deep):
    """Peaks at 9 and, 0.95 as high, at 52 cycles: each head shows one column of either."""
    r = run("queries-keys", deep)
    height = spectra.mean_amplitude(inputs.reachable(deep))
    assert height[52] > 0.9 * height[9]
    assert r["bands"].tolist() == [[6, 13], [37, 64]]
    assert r["left_out"].tolist() == [14]
    assert r["frequency"] == 9
    for i in range(len(r["heads"])):
        assert len({*r["columns"][i].tolist()}) == 2
        for j, (low, high) in enumerate(r["column_bands"][i]):
            assert np.allclose(r["q_band"][i, j], spectra.bandpass(r["q"][i, j], low, high))
    # in the heads that attend by position, the columns differ in what they are made of
    lines = spectra.amplitude(r["q"][:2].reshape(4, -1).T)[spectra.DRIFT + 1 :]
    fastest = spectra.DRIFT + 1 + lines.argmax(axis=0)
    assert (fastest[[0, 2]] < 20).all() and (fastest[[1, 3]] > 37).all()
    texts = written(drawn("queries-keys", r)[0])
    assert sum("37 to 64 cycles in 128 tokens" in text for text in texts) == 3
    assert any("left out: 14 cycles" in text for text in texts)


def test_chosen_columns_have_the_band_that_they_carry(deep):
    r = run("queries-keys", deep, head="L0H3", columns="8,5,4")
    assert r["column_bands"].tolist() == [[[37, 64], [6, 13], [6, 13]]]
    one_band = run("queries-keys", deep, head="L0H3", low=37, high=64)
    assert one_band["bands"].tolist() == [[37, 64]]
    assert len({*one_band["columns"][0].tolist()}) == 2
    texts = written(drawn("queries-keys", one_band)[0])
    assert any("in the band chosen" in text for text in texts)


def test_no_panel_is_empty_and_what_leaves_one_is_marked(deep):
    r = run("extraction", deep, documents=2)
    assert r["is_fast"].all()  # no slow peak to follow
    figure, all_axes = drawn("extraction", r)
    assert not [axes for axes in all_axes if not axes.has_data() and axes.axison]
    assert not any("no slow peaks" in text for text in written(figure))
    panels = [axes for axes in all_axes if "layer 0" in axes.get_title(loc="left")]
    for axes, name in zip(panels, "xqk", strict=True):
        top = axes.get_ylim()[1]
        curves = np.vstack([r[name], r[name + "_text"][:1]])[:, 1:]
        is_cut = (curves > top).any(axis=0)
        marks = [line for line in axes.lines if line.get_marker() == "^"]
        assert sum(len(line.get_xdata()) for line in marks) == is_cut.sum()
        said = f"cut off: up to {curves.max():.0f}" in axes.get_title(loc="left")
        assert said == is_cut.any()
    assert (r["q"][:, 1:] > panels[1].get_ylim()[1]).any()


@pytest.fixture(scope="module")
def turned(deep):
    return run("rotation", deep, gauge=2, compare=4)


@pytest.fixture(scope="module")
def drawn_maps(turned):
    return drawn("rotation", turned)


@pytest.mark.parametrize("name", ["chain", "conditions", "dial", "lags", "notch", "relearn"])
def test_without_heads_with_a_direction_a_chart_says_so_and_has_no_axes(undirected, name):
    _, charts = drawn(name, run(name, undirected, **SMALL[name]))
    reason = re.compile("no (pair of heads with|head has) a direction")
    [without, *_] = [x for x in charts if any(reason.match(t.get_text()) for t in x.texts)]
    assert not [*without.get_xticks(), *without.get_yticks()] and not without.get_title()
    for axes in charts:
        assert axes.texts or axes.lines or axes.images or axes.patches or axes.collections


def test_lines_of_one_shift_have_the_papers_name_and_the_keys_offset(turned, drawn_maps):
    """Delta > 0 is attention to the left, at key offset -Delta."""
    texts = [text.strip() for text in written(drawn_maps[0])]
    n = len(turned["heads"])
    for delta in (-3, -2, -1, 1, 2, 3):
        assert texts.count(f"Δ {delta:+d} ({-delta:+d})".replace("-", "−")) == n
    left = turned["heads"].tolist().index("L0H3")
    assert turned["attention_offset"][left] == turned["line_shift"][left] == -1
    assert sum("line Δ +1, key −1: " in text for text in texts) >= 1


def test_a_colour_bar_stands_right_below_its_maps(turned, drawn_maps):
    figure, all_axes = drawn_maps
    maps = [axes for axes in all_axes if axes.images and axes.get_ylabel()]
    bars = [axes for axes in all_axes if axes.get_xlabel() == "amplitude / largest"]
    figure.dpi = draw.SVG_DPI
    for axes, bar in zip(maps, bars, strict=True):  # of each head
        gap = axes.get_window_extent().y0 - bar.get_window_extent().y1
        assert 0 < gap < 0.9 * draw.SVG_DPI
    assert len(maps) == len(turned["heads"])  # no map of noise beside them


@pytest.mark.parametrize("name", ["lags", "dial"])
def test_legends_stay_inside_the_figure(deep, name):
    r = run(name, deep, documents=2)
    r["n_directed"] = np.array(144)  # numbers as long as they get
    figure, _ = drawn(name, r | {"agree_directed_null": np.array(1.0)})
    texts = [text for legend in figure.findobj(Legend) for text in legend.get_texts()]
    assert any("on the line" in text.get_text() for text in texts) == (name == "lags")
    boxes = extents(figure, texts)
    assert boxes[:, :2].min() >= 0
    assert (boxes[:, 2:] <= figure.get_size_inches() * draw.SVG_DPI).all()


def as_bert(r):
    """The results of a model as if it had twelve layers of twelve heads."""
    L, H = r["kernel"].shape[:2]

    def more(x):
        is_by_head = np.ndim(x) >= 2 and np.shape(x)[:2] == (L, H)
        return np.resize(x, (12, 12, *np.shape(x)[2:])) if is_by_head else x

    return {name: more(x) for name, x in r.items()}


def test_three_heads_have_charts_and_all_are_one_map(deep):
    """It was a chart for each: 32 of them here, and 1.9 MB on the shape of BERT-base."""
    r = as_bert(run("kernel", deep, documents=2))
    with draw.style():
        first, figure = registry.get("kernel").figures(r)
        assert len(draw.svg(figure)) < 400_000
    sharpest = np.sort(r["attention"].max(axis=-1).ravel())[-3:]
    assert sharpest.min() > 0.5 and len([axes for axes in first.axes if axes.get_xlabel()]) == 3
    [axes] = [axes for axes in figure.findobj(Axes) if axes.get_title(loc="left")]
    values = np.asarray(axes.images[0].get_array())
    assert len(values) == 144 and abs(np.median(values, axis=1)).max() < 1e-9
    low, high = axes.images[0].get_clim()
    assert low == -high  # 0 is white
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names[:2] == ["L0H0", "L0H3"]
    rings = axes.lines[0].get_xdata()
    assert (rings == r["offset_of_heads"].ravel()).all()


def test_many_curves_are_drawn_as_pixels(deep):
    """64 columns of three heads were 1.6 MB of lines."""
    r = run("lags", deep, documents=2)
    for name, axis in ("xcorr", -1), ("parts", 1), ("singular", -1):
        r[name] = np.repeat(r[name], -(-64 // r[name].shape[axis]), axis=axis)
    with draw.style():
        sizes = [len(draw.svg(figure)) for figure in registry.get("lags").figures(r)]
    assert sum(sizes) < 750_000  # 1.8 MB as lines


def test_lines_are_as_bold_as_their_attention_and_fill_their_panels(deep):
    r = run("dial", deep, documents=2, losses=0)
    _, all_axes = drawn("dial", r)
    panels = [axes for axes in all_axes if "exact, slope" in axes.get_title(loc="left")]
    drawn_ = [line for axes in panels for line in axes.lines if line.get_marker() == "o"]
    lines = [line for line in drawn_ if ": " in line.get_label()]
    attention = [float(line.get_label().split(": ")[1]) for line in lines]
    assert max(attention) > 0.9
    assert min(attention) < 0.3
    for style in ("linewidth", "markersize"):
        values = [getattr(line, f"get_{style}")() for line in lines]
        assert np.corrcoef(attention, values)[0, 1] > 0.99
        assert max(values) > 1.5 * min(values)
    top, bottom = panels[0].get_ylim()[1], panels[0].get_ylim()[0]
    highest = max(np.max(line.get_ydata()) for line in lines)
    assert (highest - bottom) / (top - bottom) > 0.9  # a third was empty


def test_of_many_heads_and_layers_six_have_a_colour(deep):
    """All twelve layers had one, and all twelve heads of a layer, on the shape of BERT-base."""
    r = run("dial", deep, documents=2, losses=1)
    L, H = r["directed"].shape
    for name, x in r.items():
        if x.shape[:1] == (L,) and name != "loss_shifts":
            r[name] = np.resize(x, (12, *x.shape[1:]))
    for axis, names in (1, ("directed", "offset")), (2, ("told", "expected", "attended")):
        for name in (*names, *["attention", "weight", "weight_dealt"][: 3 * (axis == 2)]):
            r[name] = np.repeat(r[name], -(-12 // H), axis=axis)
    r["directed"] = np.ones_like(r["directed"])
    panels = [axes for figure in figures("dial", r) for axes in figure.axes if axes.get_visible()]
    assert len(panels) == 9 + 2  # a layer without a head that has a direction has none
    for axes in panels:
        lines = [line for line in axes.lines if line.get_marker() == "o"]
        assert len(lines) >= 9
        assert len({line.get_color() for line in lines} - {draw.GREY}) == 6


@pytest.mark.parametrize("n, named", [(6, "012345"), (12, ["0", "2", "4", "7", "9", "11"])])
def test_of_many_curves_six_have_a_colour_and_a_name(n, named):
    r = {"x": np.arange(3.0 * n).reshape(n, 3), "names": np.arange(n)}
    axes = draw.figure(4, 3).subplots()
    curves("x", names="names")(axes, r)
    lines = {line.get_label(): line for line in axes.lines if len(line.get_ydata()) == 3}
    assert [*lines][-6:] == [*named] and len(axes.lines) == n + 1  # and the line at 0
    assert len({lines[name].get_color() for name in named} - {draw.GREY}) == 6
    assert ("the others" in lines) == (n > 6)


def test_all_six_perplexities_are_drawn(bert):
    r = run("remove-positions", bert, documents=2, ways="shuffled")
    _, all_axes = drawn("remove-positions", r)
    (panel,) = (axes for axes in all_axes if "by convention" in axes.get_xlabel())
    by_way = {line.get_label(): line.get_xdata() for line in panel.lines}
    for i, way in enumerate(r["tables"].tolist()):
        assert np.array_equal(by_way[way], [r[name][i] for name in perplexities.CONVENTIONS])
    assert len(panel.get_yticklabels()) == len(perplexities.CONVENTIONS) == 6


@pytest.mark.parametrize(
    "name, code",
    [
        ("attribute", "b_"),
        ("attribute", "ln1"),
        ("attribute", "_b"),
        ("conditions", "xcorr"),
        ("lags", "xcorr"),
        ("components", "pca"),
    ],
)
def test_axes_and_legends_have_no_names_of_the_code(bert, name, code):
    options = {} if name == "attribute" else {"documents": 2}
    figure, _ = drawn(name, run(name, bert, **options))
    texts = written(figure)
    assert len(texts) > 5 and [text for text in texts if code in text] == []


@pytest.fixture(scope="module", params=[{}, {"documents": 4, "tokens": 30}], ids=["one", "many"])
def joined(request, bert):
    return run("joint-space", bert, **request.param)


@pytest.fixture(scope="module")
def drawn_planes(joined):
    return drawn("joint-space", joined)


def test_labels_in_a_plane_cover_neither_each_other_nor_leave_it(joined, drawn_planes):
    figure, all_axes = drawn_planes
    planes = [axes for axes in all_axes if "strongest key" in axes.get_title(loc="left")]
    assert len(planes) == 6
    for axes in planes:
        texts = [x for x in axes.findobj(Annotation) if x.get_text()]
        assert len(texts) == 2 * len(joined["pieces"])
        assert overlapping(figure, texts) == []
        boxes, panel = extents(figure, texts), axes.get_window_extent()
        assert (boxes[:, :2] >= (panel.x0 - 1, panel.y0 - 1)).all()
        assert (boxes[:, 2:] <= (panel.x1 + 1, panel.y1 + 1)).all()


def test_titles_and_names_of_axes_of_the_joint_space_do_not_meet(drawn_planes):
    figure, all_axes = drawn_planes
    titles = [axes._left_title for axes in all_axes]
    names = [axis.label for axes in all_axes for axis in (axes.xaxis, axes.yaxis)]
    texts = [text for text in titles + names if text.get_text()]
    assert overlapping(figure, texts) == []


def test_pieces_carry_their_words_name_and_an_extreme_scale_says_so(bert, joined, drawn_planes):
    numbers = "₁₂₃₄₅₆"
    assert joined["labels"][4:10].tolist() == [f"cap{number}" for number in numbers]
    assert joined["labels"][[1, 10]].tolist() == ["the", "is"]
    meaning = "cap = capybara = ca + ##p + ##y + ##b + ##ar + ##a"
    texts = written(drawn_planes[0])
    assert sum(meaning in text for text in texts) == 3  # of each head
    at_end = np.isin(joined["scale"], (0.125, 8))
    said = sum("at the end of the range tried (0.125 to 8)" in text for text in texts)
    assert said == 2 * at_end.sum() > 0  # above the planes, and above the clouds
    two_words = run("joint-space", bert, sentence="capybara capybole", head="L0H0")
    assert {label[:-1] for label in two_words["labels"].tolist()} >= {"capyba", "capybo"}


def test_garbage_is_looked_for_again_once_a_figure_is_drawn():
    with draw.style(), draw.style():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with draw.style():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
