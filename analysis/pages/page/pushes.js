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
  [LOST]: say(
    "what is lost without this part alone: a token has the mean embedding, a head or an MLP writes nothing",
  ),
};
const OF = ["the model", "random weights (chance)"];
const partsAdded = (array, n, way = state.way, of = state.chance) => {
  const first = (OF.indexOf(of) * 3 + Object.keys(WAYS).indexOf(way)) * n;
  return array.slice(first, first + n);
};
const most = values => d3.max(values, Math.abs);
const ranks = values => d3.rank([...values]);
const nats = x => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;

// Spearman's correlation of the tokens' parts with what is lost without each.
const agreementWithLoss = () =>
  rankCorrelation(
    ...[state.way, LOST].map(way => partsAdded(made.pushes.tokens, made.labels.length, way)),
  );

function rankCorrelation(...values) {
  const [a, b] = values.map(ranks),
    middle = (a.length - 1) / 2,
    covariance = d3.sum(a, (x, i) => (x - middle) * (b[i] - middle));
  return (
    covariance / Math.sqrt(d3.sum(a, x => (x - middle) ** 2) * d3.sum(b, x => (x - middle) ** 2))
  );
}

// biome-ignore lint/style/useConst: live.js sets it
export let askPushes = null; // of a live page: place -> a promise of what tokens and heads add
const askedPushes = new WeakMap(); // outputs -> Map of place -> why not; null while it is asked for
const NAMED = 4; // of the tokens, heads and MLPs

function askForTokens(outputs, place) {
  const asked = askedPushes.get(outputs) ?? new Map();
  askedPushes.set(outputs, asked.set(place, null));
  set({pushed: place});
  askPushes(place).then(
    packed => {
      asked.delete(place);
      partOf(page.runs[0]).outputs.pushes = packed;
      outputs.pushes = openPushes(packed);
      redraw("flow", "writers", "pushes");
    },
    error => {
      error.status === 409 ? asked.delete(place) : asked.set(place, error.message);
      redraw("flow", "writers");
    },
  );
  redraw("flow", "writers");
}

function tokensOfGuess() {
  // which tokens the guess that is shown depends on, by two ways; [] where nobody can say
  const place = guessPlace(),
    outputs = made,
    asked = askedPushes.get(made)?.get(place);
  if (made.pushes && (made.classes || made.pushes.place === place))
    return [tokensSaid(), ...partsSaid()];
  if (asked !== undefined) return [note(asked ?? say("Being computed …"))];
  if (made.word.length !== T) return [];
  if (!askPushes)
    return made.pushes
      ? [
          note(
            say`Which tokens it depends on is in this file for the guess at ${token(made.pushes.place)} alone.`,
          ),
        ]
      : [];
  if (current !== page.runs[0]) return [unchangedAlone()];
  // by an address; it is drawn in two views, and asked once
  if (state.pushed === place)
    later(() => askedPushes.get(outputs)?.has(place) || askForTokens(outputs, place));
  const textContent = say("Which tokens does it depend on? (takes seconds)");
  const button = {
    type: "button",
    textContent,
    onclick: () => askForTokens(outputs, place),
  };
  return [make("p", {}, {}, make("button", button))];
}

function unchangedAlone() {
  const button = make("button", {
    type: "button",
    className: "inline",
    textContent: say("show that run"),
    onclick: () => set({run: 0}),
  });
  const text = say("Which tokens it depends on is told of the model as it is: ");
  return make("p", {}, {}, text, button, ".");
}

function tokensSaid() {
  const {what, place, tokens, hidden} = made.pushes,
    n = made.labels.length;
  const [along, without, alongNull, withoutNull] = OF.flatMap(of =>
    [Object.keys(WAYS)[0], LOST].map(way => partsAdded(tokens, n, way, of)),
  );
  const isClear = (t, values, random) => exceeds(values[t], most(random));
  const named = (values, random) =>
    d3
      .sort(d3.range(n), t => -Math.abs(values[t]))
      .slice(0, NAMED)
      .map(t => {
        const chance = isClear(t, values, random) ? "" : say(" (at chance)");
        return `“${made.labels[t]}” (${t}) ${nats(values[t])}${chance}`;
      })
      .join(", ");
  const clear = d3
    .range(n)
    .filter(t => isClear(t, along, alongNull) && isClear(t, without, withoutNull));
  const [alike, byChance] = [
    rankCorrelation(along, without),
    rankCorrelation(alongNull, withoutNull),
  ];
  const said = line(
    say("Tokens:"),
    (clear.length
      ? say`above a model of random weights by both measures: ${clear.map(token).join(", ")}. `
      : say("none is above a model of random weights by both measures. ")) +
      say`In nats (+0.69: twice as likely), of the log-probability of “${what}”${hidden ? say` with token ${place} hidden` : ""}. Integrated gradients (the slope of the log-probability, summed on the way from no words to these): ${named(along, alongNull)} (random weights: up to ${most(alongNull).toFixed(2)}). ` +
      say`Lost without each alone: ${named(without, withoutNull)} (random weights: up to ${most(withoutNull).toFixed(2)}). ` +
      say`The two rank the ${n} tokens alike by ${two(alike)}, with random weights by ${two(byChance)} (Spearman’s correlation; 1 is the same order).` +
      (alike > byChance ? "" : say(" Random weights agree more: read the largest, not the order.")),
  );
  const onclick = () => {
    foldOf("pushes").open = true;
    update();
    byId("pushes").scrollIntoView();
  };
  const textContent = say("See them as bars");
  said.append(
    " ",
    make("button", {type: "button", className: "inline", textContent, onclick}),
    ".",
  );
  return said;
}

function partsSaid() {
  // the heads and MLPs without which the guess loses most, beside what they write towards it
  const lost = OF.map(of => partsAdded(made.pushes.heads, L * H, LOST, of)),
    headOf = d => (isMine(d) ? d.layer * H + d.head : null),
    mlpOf = d => (d.name === "mlp" ? d.layer : null);
  return [
    lostSaid(say("Heads:"), lost, nameOf, headOf),
    lostSaid(say("MLPs:"), made.pushes.mlps, layer => say`MLP ${layer}`, mlpOf),
  ];
}

function lostSaid(title, [lost, byChance], name, numberOf) {
  const isClear = n => exceeds(lost[n], most(byChance)),
    chance = n => (isClear(n) ? "" : say(" (at chance)"));
  const largest = d3.sort(d3.range(lost.length), n => -Math.abs(lost[n])).slice(0, NAMED),
    named = largest.map(n => `${name(n)} ${nats(lost[n])}${chance(n)}`).join(", ");
  const written = (state.guess === NTH[0] ? (partsOfGuess() ?? []) : [])
    .map(d => ({n: numberOf(d), x: d.x, isClear: d.isClear}))
    .filter(d => d.n !== null);
  const indirect = written.filter(d => !d.isClear && largest.includes(d.n) && isClear(d.n)),
    spared = written.filter(d => d.isClear && d.x > 0 && !isClear(d.n)),
    names = list => list.map(d => name(d.n)).join(", ");
  return line(
    title,
    say`lost without each alone: ${named} (random weights: up to ${most(byChance).toFixed(2)}).` +
      (indirect.length
        ? say` At chance in what they write towards the guess themselves, so that they act through later parts: ${names(indirect)}.`
        : "") +
      (spared.length
        ? say` Clear in what they write, yet at chance in what is lost without each: ${names(spared)}; other parts make up for it, or the guess is certain without.`
        : ""),
  );
}

// the token of whose guess it is told in the first run, or null
const pushedAt = () => partOf(page.runs[0])?.outputs?.pushes?.place ?? null;

function pushHint() {
  if (!made.pushes) return "";
  const {what, place, gap, hidden} = made.pushes,
    where = say`token ${place}, “${escaped(made.labels[place])}”`;
  const whole = made.classes ? "" : isCausal() ? say` behind ${where}` : say` at ${where}`;
  const rest = (100 * gap[OF.indexOf(state.chance)]).toPrecision(2);
  return (
    say`What each token, and each head, adds to the log-probability of the guess “${escaped(what)}”${whole}` +
    say`${hidden ? say(", which is hidden for it") : ""}, in nats (+0.69 makes it twice as likely). <b class=more>Purple</b>, ` +
    say`upwards, adds; <b class=less>olive</b>, downwards, takes away. <b>${state.way}</b>: ${WAYS[state.way]}` +
    (state.way === Object.keys(WAYS)[0]
      ? say`, up to a gap of ${rest}% of the largest part.`
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
      rowNames(L, l => `L${l}`),
      Plot.tip(
        cells,
        Plot.pointer({x: "h", y: "l", ...tip(d => say`${nameOf(d.head)}\n${nats(d.x)} nats`)}),
      ),
    ],
  });
}

export {OF, pushedAt, pushes, pushHint, tokensOfGuess, WAYS};
