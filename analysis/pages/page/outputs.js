"use strict";
// What the model makes of the text: its guesses, the guesses after every layer, lengths in the residual stream. These
// are of tokens, also where heads are shown of whole words: made.word says which token belongs to which.

const percent = p => p >= 0.995 ? "100 %" : p >= 0.1 ? `${(100 * p).toFixed(0)} %` : `${(100 * p).toFixed(1)} %`;
const isCausal = () => data.causal || isCross;
const isQuery = () => state.token !== null && (state.side === "query" || !isCross);
const tokenOf = n => made.word[n];  // what a click on token n chooses
const isChosenToken = n => isQuery() && tokenOf(n) === state.token;

function guessesAt(n, of = made.guesses) {  // the likeliest tokens at token n: [{piece, p}]
  return d3.range(of.n).map(g => ({piece: made.pieces[of.pieces[n * of.n + g]], p: of.p[n * of.n + g]}));
}

// guesses: a table, one row a token, and above it all that is kept of the chosen one

function shownToken() {  // the chosen token, else a hidden one, else the last; the last of a masked model is a mark
  const chosen = made.labels.findIndex((_, n) => isChosenToken(n));
  if (chosen >= 0) return chosen;
  const mask = made.labels.findIndex(label => /^(<mask>|\[MASK\])$/.test(label));
  return mask >= 0 ? mask : made.labels.length - (isCausal() ? 1 : 2);
}

function guesses() {
  const n = shownToken(), lists = make("div", {className: "lists"});
  lists.append(...pair(() => best(n)).reduce((groups, element) => {  // a name and its list side by side with the other
    if (element.className === "run" || !groups.length) groups.push(make("div"));
    groups.at(-1).append(element);
    return groups;
  }, []));
  const what = made.classes ? "The classes of the text" : `Likeliest ${isCausal() ? "behind" : "at"} “${made.labels[n]}” (${n})`;
  return [make("p", {className: "lead", textContent: what}), lists, ...(made.guesses ? [guessTable()] : [])];
}

function best(n) {  // bars: what is likeliest at one token, or which class a text is of
  const list = make("ol", {className: "bars"});
  const rows = made.classes ? made.classes.map((p, c) => ({piece: `class ${c}`, p})) : guessesAt(n);
  list.append(...rows.map(({piece, p}) => {
    const item = make("li"), bar = make("span", {className: "bar-of"});
    bar.style.width = `${100 * p}%`;
    item.append(make("span", {textContent: piece}), make("span", {textContent: percent(p)}), bar);
    return item;
  }));
  return list;
}

function guessTable() {  // of a difference the guesses of both runs, one beside the other
  const table = make("table", {className: "guesses"}), head = make("tr"), runs = isDifference() ? [0, 1] : [null];
  const of = run => run === null ? made : within(run, () => made), name = run => run === null ? "best guess" : runName(run);
  const columns = ["token", ...runs.flatMap(run => [name(run), ""]), isCausal() ? "next in the text" : "in the text",
                   ...runs.map(() => "")];
  head.append(...columns.map(textContent => textContent ? make("th", {textContent}, {scope: "col"}) : make("td")));
  const kept = runs.map(of);
  table.append(head, ...made.labels.map((label, n) => {
    const row = make("tr", {onclick: () => set({token: tokenOf(n), side: "query"})}), own = made.own[n];
    const cell = (textContent, isRight = false) => make("td", {textContent, className: isRight ? "right" : ""});
    const found = kept.map(of => ({piece: of.pieces[of.guesses.pieces[n * of.guesses.n]], p: of.guesses.p[n * of.guesses.n]}));
    row.append(cell(`${label} (${n})`), ...found.flatMap(({piece, p}) => [cell(piece, piece === own), cell(percent(p))]),
               cell(own ?? "–"), ...kept.map(of => cell(own === null ? "" : percent(of.actual[n]))));
    row.setAttribute("aria-selected", isChosenToken(n));
    row.title = own === null ? "" : `“${own}” has ${percent(made.actual[n])} here`;
    return row;
  }));
  return table;
}

// guesses after every layer (logit lens), layers downwards as the pass goes

const lens = width => pair(() => lensOf(width));
const stageName = l => l === 0 ? "embed" : `L${l - 1}`;

function lensOf(width) {
  const n = made.labels.length, layers = made.lens.pieces.length / made.lens.n / n, palette = colours(), left = 44;
  const step = Math.max((width - left - 8) / n, 58), mix = d3.interpolateRgbBasis(palette.ramp);
  const cells = d3.range(layers).flatMap(l => d3.range(n).map(t => ({l, t, all: guessesAt(l * n + t, made.lens)})));
  const text = d => d.all[0].piece, shade = d => mix(0.85 * d.all[0].p);
  const ends = {x1: d => d.t - 0.48, x2: d => d.t + 0.48, y1: d => d.l - 0.46, y2: d => d.l + 0.46}, where = {x: "t", y: "l"};
  return plot({
    width: left + step * n + 8, height: 30 + 26 * layers, marginLeft: left, marginTop: 26, marginRight: 8, marginBottom: 4,
    x: {domain: [-0.5, n - 0.5], axis: null}, y: {domain: [layers - 0.5, -0.5], axis: null},
    marks: [Plot.rect(cells, {...ends, fill: shade}),
            Plot.rect(cells.filter(d => isChosenToken(d.t)), {...ends, fill: "none", stroke: palette.chosen, strokeWidth: 2}),
            Plot.text(cells, {...where, text: d => short(text(d), Math.floor(step / 7)),
                              fill: d => d3.lab(shade(d)).l > 55 ? "#111111" : "#ffffff"}),
            Plot.text(d3.range(n), {x: d => d, y: -0.5, dy: -9, text: d => short(made.labels[d], Math.floor(step / 7)),
                                    fill: palette.query}),
            Plot.text(d3.range(layers), {x: -0.5, y: d => d, dx: -6, textAnchor: "end", text: stageName}),
            Plot.tip(cells, Plot.pointer({...where, ...tip(d => [
              `${d.l ? `after layer ${d.l - 1}` : "before all layers"}, at ${made.labels[d.t]} (${d.t})`,
              ...d.all.map(guess => `${guess.piece}  ${percent(guess.p)}`)].join("\n"))}))]});
}

// lengths: of the residual stream, and of what is written to it

const WRITTEN = [["the stream", null], ["attention writes", "attn_out"], ["source writes", "cross_out"], ["MLP writes", "mlp_out"]];

function lengthsOf() {  // [rows T] of what is chosen
  const name = new Map(WRITTEN).get(state.written);
  return made.writes[name] ?? made.stream;
}

const stream = width => pair(() => streamOf(width));

function streamOf(width) {
  const n = made.labels.length, lengths = lengthsOf(), rows = lengths.length / n, first = lengths === made.stream ? 0 : 1;
  const palette = colours(), left = 44, step = Math.max((width - left - 8) / n, 9), every = Math.ceil(11 / step);
  const ends = d3.extent(lengths), mix = d3.scaleSequential(ends, d3.interpolateRgbBasis(palette.ramp)), high = Math.max(14, Math.min(26, 260 / rows));
  const cells = d3.range(rows).flatMap(l => d3.range(n).map(t => ({l, t, length: lengths[l * n + t]})));
  const whole = {x1: -0.5, x2: n - 0.5, y1: -0.5, y2: rows - 0.5};
  const label = "length of the vector", key = {type: "linear", domain: ends, interpolate: mix.interpolator()};
  return [legend(width - left, label, key, ends, ".3~g"), plot({
    width: left + step * n + 8, height: 70 + high * rows, marginLeft: left, marginTop: 66, marginRight: 8, marginBottom: 4,
    x: {domain: [-0.5, n - 0.5]}, y: {domain: [rows - 0.5, -0.5], axis: null},
    marks: [Plot.raster(lengths, {width: n, height: rows, ...whole, imageRendering: "pixelated", fill: mix}),
            Plot.rect(d3.range(n).filter(isChosenToken), {x1: t => t - 0.5, x2: t => t + 0.5, y1: -0.5, y2: rows - 0.5,
                                                        fill: "none", stroke: palette.chosen, strokeWidth: 2}),
            Plot.axisX({ticks: d3.range(n).filter(t => t % every === 0), anchor: "top", tickRotate: -60, textAnchor: "start",
                        tickSize: 3, label: null, tickFormat: t => short(made.labels[t], 9), color: palette.query}),
            Plot.text(d3.range(rows), {x: -0.5, y: d => d, dx: -6, textAnchor: "end", text: l => stageName(l + first)}),
            Plot.tip(cells, Plot.pointer({x: "t", y: "l", ...tip(d => (
              `${d.l + first ? `layer ${d.l + first - 1}` : "before all layers"}, ${made.labels[d.t]} (${d.t})\nlength ${d.length.toFixed(2)}`))}))]})];
}
