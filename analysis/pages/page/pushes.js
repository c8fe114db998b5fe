// What a guess comes from: how much each token, and each head, adds to its log-probability.

const LOST = "lost without it";
const WAYS = {
  "integrated gradients":
    say("the slope of the log-probability, its mean on the way from no words (their mean ") +
    say(
      "embedding) or silent heads to what is there, times that way; the parts add up to the whole change",
    ),
  "gradient × input":
    say(
      "the slope where the text is, times the way from no words or silent heads; quick, and the ",
    ) + say("parts need not add up"),
  [LOST]: say("what is lost when this part alone is taken away"),
};
const OF = ["the model", "random weights (chance)"];
const partsAdded = (array, n, way = state.way) => {
  const first = (OF.indexOf(state.chance) * 3 + Object.keys(WAYS).indexOf(way)) * n;
  return array.slice(first, first + n);
};
const ranks = values => d3.rank([...values]);
const nats = x => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;

// Spearman's correlation of the tokens' parts with what is lost without each.
function agreementWithLoss() {
  const n = made.labels.length,
    [a, b] = [state.way, LOST].map(way => ranks(partsAdded(made.pushes.tokens, n, way)));
  const middle = (n - 1) / 2,
    covariance = d3.sum(a, (x, i) => (x - middle) * (b[i] - middle));
  return (
    covariance / Math.sqrt(d3.sum(a, x => (x - middle) ** 2) * d3.sum(b, x => (x - middle) ** 2))
  );
}

function pushHint() {
  if (!made.pushes) return "";
  const {what, place, gap, hidden} = made.pushes,
    where = say`token ${place}, “${escaped(made.labels[place])}”`;
  const whole = made.classes ? "" : isCausal() ? say` behind ${where}` : say` at ${where}`;
  const most = (100 * gap[OF.indexOf(state.chance)]).toPrecision(2);
  return (
    say`What each token, and each head, adds to the log-probability of the guess “${escaped(what)}”${whole}` +
    say`${hidden ? say(", which is hidden for it") : ""}, in nats (+0.69 makes it twice as likely). <b class=more>Purple</b>, ` +
    say`upwards, adds; <b class=less>olive</b>, downwards, takes away. <b>${state.way}</b>: ${WAYS[state.way]}` +
    (state.way === Object.keys(WAYS)[0]
      ? say`, up to a gap of ${most} % of the largest part.`
      : ".") +
    (state.way === LOST
      ? ""
      : say` Over the tokens of this text it agrees with what is lost without each by a rank ` +
        say`correlation of ${agreementWithLoss().toFixed(2)}.`) +
    (state.chance === OF[0]
      ? ""
      : say(" With random weights nothing was learned: what is still seen comes from the method."))
  );
}

const pushes = width =>
  pair(() =>
    made.pushes
      ? [addedByTokens(width), addedByHeads(width)]
      : note(say("Not computed for this run.")),
  );

function addedByTokens(width) {
  const palette = colours(),
    n = made.labels.length,
    step = Math.max((width - 60) / n, 9),
    every = Math.ceil(11 / step);
  const rows = [...partsAdded(made.pushes.tokens, n)].map((x, t) => ({t, x}));
  const ends = {x1: d => d.t - 0.4, x2: d => d.t + 0.4, y: "x"};
  return plot({
    width: Math.max(width, 60 + step * n),
    height: 230,
    marginLeft: 48,
    marginTop: 20,
    marginBottom: 84,
    marginRight: 8,
    x: {domain: [-0.6, n - 0.4], label: null},
    y: {label: say("↑ nats, by token"), ticks: 4, nice: true},
    marks: [
      Plot.rectY(rows, {...ends, fill: d => (d.x < 0 ? palette.less : palette.more)}),
      Plot.rectY(
        rows.filter(d => isChosenToken(d.t)),
        {...ends, fill: "none", stroke: palette.chosen, strokeWidth: 2},
      ),
      Plot.axisX({
        anchor: "bottom",
        ticks: d3.range(n).filter(t => t % every === 0),
        tickSize: 3,
        label: null,
        tickRotate: -60,
        textAnchor: "end",
        tickFormat: t => short(made.labels[t], 9),
        color: palette.text,
      }),
      Plot.ruleY([0], {stroke: palette.line}),
      Plot.tip(
        rows,
        Plot.pointerX({
          x: "t",
          y: "x",
          ...tip(d => say`${made.labels[d.t]} (${d.t})\n${nats(d.x)} nats`),
        }),
      ),
    ],
  });
}

function addedByHeads(width) {
  const palette = colours(),
    cells = [...partsAdded(made.pushes.heads, L * H)].map((x, head) => ({
      head,
      x,
      l: Math.floor(head / H),
      h: head % H,
    }));
  const most = d3.max(cells, d => Math.abs(d.x)) || 1,
    mix = d3.interpolateRgbBasis(palette.change),
    left = 44;
  const shade = d => mix(0.5 + d.x / most / 2),
    step = Math.min((width - left - 8) / H, 90),
    text = step > 34;
  const ends = {x1: d => d.h - 0.48, x2: d => d.h + 0.48, y1: d => d.l - 0.46, y2: d => d.l + 0.46};
  return plot({
    width: left + step * H + 8,
    height: 40 + 26 * L,
    marginLeft: left,
    marginTop: 36,
    marginRight: 8,
    marginBottom: 4,
    x: {domain: [-0.5, H - 0.5], axis: null},
    y: {domain: [L - 0.5, -0.5], axis: null},
    marks: [
      Plot.rect(cells, {...ends, fill: shade}),
      Plot.rect(
        cells.filter(d => d.head === state.head),
        {...ends, fill: "none", stroke: palette.chosen, strokeWidth: 2},
      ),
      Plot.text(text ? cells : cells.filter(d => Math.abs(d.x) > most / 4), {
        x: "h",
        y: "l",
        text: d => (text ? nats(d.x) : d.x < 0 ? "−" : "+"),
        fill: d => onto(shade(d)),
      }),
      Plot.text([say("nats, by head")], {frameAnchor: "top-left", dx: -40, dy: -28}),
      Plot.text(d3.range(H), {x: d => d, y: -0.5, dy: -9, text: h => `H${h}`}),
      Plot.text(d3.range(L), {x: -0.5, y: d => d, dx: -6, textAnchor: "end", text: l => `L${l}`}),
      Plot.tip(
        cells,
        Plot.pointer({x: "h", y: "l", ...tip(d => say`${nameOf(d.head)}\n${nats(d.x)} nats`)}),
      ),
    ],
  });
}

export {OF, pushes, pushHint, WAYS};
