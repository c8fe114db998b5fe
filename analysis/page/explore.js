"use strict";
// The page of `minitx explore`. Order: data; state; what is shown of attention; one function for each view; the list of
// views; drawing; the text; mouse and keys; saving; the theme. Plot draws (observablehq.com/plot), d3 only mixes colours.

// data

const data = JSON.parse(document.getElementById("data").textContent);
const T = data.labels.length, L = data.layers, H = data.heads;
const [pattern, plane, columns, profile, share, weight] =
  ["pattern", "plane", "columns", "profile", "share", "weight"].map(name => unpack(data.arrays[name]));
const C = data.arrays.columns.shape[4], R = data.uniform.length, reach = (R - 1) / 2;
const positions = d3.range(T);

function unpack({low, high, data}) {  // 16-bit steps between the least and the greatest value of each part
  const codes = new Uint16Array(Uint8Array.from(atob(data), c => c.charCodeAt(0)).buffer);
  const size = codes.length / low.length;
  return Float32Array.from(codes, (code, i) => {
    const part = Math.floor(i / size);
    return low[part] + code * ((high[part] - low[part]) / 65535);
  });
}

// state

const state = {head: 0, token: null, side: "query", stage: "normalised", thumbs: "attention", dark: null};
const layerOf = head => Math.floor(head / H);
const nameOf = head => `L${layerOf(head)}H${head % H}`;
const PALETTES = {
  light: {text: "#1c1c1c", soft: "#5b5b58", back: "#ffffff", card: "#f7f7f5", line: "#d6d6d0", query: "#0067a8",
          key: "#b84a00", chosen: "#00785a", ramp: ["#ffffff", "#b9d9ee", "#4c97cb", "#10508f", "#07244d"]},
  dark: {text: "#ecece8", soft: "#adada7", back: "#141414", card: "#1f1f1e", line: "#42423e", query: "#6cc0ff",
         key: "#ff9d57", chosen: "#3ad6a6", ramp: ["#141414", "#173a5c", "#2673b3", "#7cc4f5", "#f4fbff"]}};
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => state.dark ?? systemDark.matches;
const colours = () => PALETTES[isDark() ? "dark" : "light"];

function set(changes) {
  Object.assign(state, changes);
  update();
}

// what is shown of attention

const ALL = 0.1, ONE = 0.01;  // least weight of a line, of all tokens and of the chosen one
const at = (i, j, head = state.head) => pattern[(head * T + i) * T + j];
const hidden = (i, j) => data.causal && j > i;
const other = side => side === "query" ? "key" : "query";
const strongest = (i, side = "query") => side === "query" ? d3.greatest(positions, j => at(i, j))
  : d3.greatest(positions, j => at(j, i));
const largest = head => d3.max(pattern.subarray(head * T * T, (head + 1) * T * T));
const number = x => x < 0.0005 ? "0.000" : x.toFixed(3);
const short = (label, most = 12) => label.length > most ? label.slice(0, most - 1) + "…" : label;
const quoted = i => `“${short(data.labels[i], 24)}” (${i})`;

function pairs() {  // the lines that are drawn: {i: query, j: key, w: weight}
  const {token, side} = state, found = [];
  if (token !== null) {
    for (const n of positions) {
      const [i, j] = side === "query" ? [token, n] : [n, token];
      if (at(i, j) >= ONE) found.push({i, j, w: at(i, j)});
    }
  } else {
    for (const i of positions) {
      const best = strongest(i);
      for (const j of positions) if (j === best || at(i, j) >= ALL) found.push({i, j, w: at(i, j)});
    }
  }
  return found;
}

function weightOf(n) {  // what token n gives to the chosen one, or gets of it; 0 if none is chosen
  const {token, side} = state;
  return token === null ? 0 : side === "query" ? at(token, n) : at(n, token);
}

function about(n, side) {  // what a pointer at a query or a key says
  const lines = [`${side} of ${short(data.labels[n], 24)}, position ${n}`], {token} = state;
  if (token !== null && side === other(state.side)) {
    lines.push(`weight ${number(weightOf(n))} of the attention ${side === "key" ? "of" : "to"} ${quoted(token)}`);
  } else if (side === "query") {
    const j = strongest(n);
    lines.push(`looks most at ${quoted(j)}: weight ${number(at(n, j))}`);
  } else {
    const i = strongest(n, "key");
    lines.push(`most looked at by ${quoted(i)}: weight ${number(at(i, n))}`);
  }
  return lines.join("\n");
}

function marked(n, side) {  // whether a query or key takes part in what is shown of the chosen token
  const {token} = state;
  return token === null || (side === state.side ? n === token : weightOf(n) >= ONE);
}

// views: each draws for a width, and gives back one plot or several

const tip = () => ({fill: colours().back, stroke: colours().line, fontSize: 12, lineHeight: 1.3});
const thickness = d => 0.6 + 4 * d.w;
const opacity = d => state.token === null ? 0.2 + 0.6 * d.w : 0.45 + 0.55 * d.w;

function plot(options) {
  return Plot.plot({style: {background: "transparent", color: colours().text, fontSize: "11px", overflow: "visible"},
                    color: {type: "identity"}, opacity: {type: "identity"}, ...options});
}

function thumb(head) {  // a head's picture in the grid, as a data URL
  const canvas = document.createElement("canvas"), palette = colours();
  if (state.thumbs === "attention") {
    canvas.width = canvas.height = T;
    const brush = canvas.getContext("2d"), image = brush.createImageData(T, T), ramp = shades(), most = largest(head);
    for (const i of positions) for (const j of positions) {
      image.data.set(hidden(i, j) ? [0, 0, 0, 0] : ramp(Math.sqrt(at(i, j, head) / most)), 4 * (i * T + j));
    }
    brush.putImageData(image, 0, 0);
  } else {
    canvas.width = canvas.height = 96;
    const brush = canvas.getContext("2d"), points = spots(head), {x, y} = frame(points, 96, 96, 8);
    brush.fillStyle = palette.back;
    brush.fillRect(0, 0, 96, 96);
    for (const p of points) {
      brush.fillStyle = palette[p.side];
      brush.fillRect((p.x - x[0]) / (x[1] - x[0]) * 96 - 1.5, (y[1] - p.y) / (y[1] - y[0]) * 96 - 1.5, 3, 3);
    }
  }
  return canvas.toDataURL();
}

function shades() {  // 0 ... 1 -> [r, g, b, 255]
  const mix = d3.interpolateRgbBasis(colours().ramp);
  const table = d3.range(256).map(n => { const c = d3.rgb(mix(n / 255)); return [c.r, c.g, c.b, 255]; });
  return t => table[Math.round(255 * t)];
}

function heads(width) {
  const cells = d3.range(L * H).map(head => ({head, x: head % H, y: layerOf(head), src: thumb(head)}));
  const left = 28, top = 34, size = Math.min((width - left - 4) / H, 110);
  const drawn = plot({
    width: left + 4 + size * H, height: top + size * L + 4, margin: 2, marginLeft: left, marginTop: top,
    x: {domain: d3.range(H), label: "head →", paddingInner: 0.08, paddingOuter: 0, axis: "top", tickSize: 0},
    y: {domain: d3.range(L), label: "↓ layer", labelAnchor: "top", paddingInner: 0.08, paddingOuter: 0, tickSize: 0},
    marks: [Plot.image(cells, {x: "x", y: "y", src: "src", width: size * 0.92, preserveAspectRatio: "none",
                               imageRendering: state.thumbs === "attention" ? "pixelated" : "auto"}),
            Plot.cell(cells, {x: "x", y: "y", fill: "none", stroke: colours().line, className: "cells",
                              ariaLabel: d => `${nameOf(d.head)}. ${character(d.head)}`}),
            Plot.tip(cells, Plot.pointer({x: "x", y: "y", title: d => `${nameOf(d.head)}\n${character(d.head)}`, ...tip()}))]});
  const boxes = [...drawn.querySelectorAll("rect[aria-label]")];
  boxes.forEach((box, head) => { box.id = `head${head}`; box.setAttribute("role", "option"); });
  return drawn;
}

function character(head) {  // a head in a few words: the offset that gets most of its attention
  const own = profile.subarray(head * R, (head + 1) * R), best = d3.greatestIndex(own), offset = best - reach;
  return `most attention to offset ${offset > 0 ? "+" : ""}${offset}: ${number(own[best])} on average`;
}

function markHead(box) {
  box.querySelectorAll("rect[role=option]").forEach((cell, head) => {
    const chosen = head === state.head;
    cell.setAttribute("aria-selected", chosen);
    cell.setAttribute("stroke", chosen ? colours().chosen : colours().line);
    cell.setAttribute("stroke-width", chosen ? 3 : 1);
  });
  box.setAttribute("aria-activedescendant", `head${state.head}`);
}

function spots(head) {  // the points of the joint space: {n, side, x, y}
  const start = (head * 2 + (state.stage === "normalised")) * 4 * T;
  return ["query", "key"].flatMap((side, s) => positions.map(n => {
    const place = start + 2 * (s * T + n);
    return {n, side, x: plane[place], y: plane[place + 1]};
  }));
}

function frame(points, width, height, inset) {  // domains for which a step is as long across as it is up
  const [x, y] = [d3.extent(points, p => p.x), d3.extent(points, p => p.y)];
  const unit = Math.max((x[1] - x[0]) / (width - 2 * inset), (y[1] - y[0]) / (height - 2 * inset)) || 1;
  const around = (ends, size) => [-1, 1].map(sign => (ends[0] + ends[1]) / 2 + sign * unit * size / 2);
  return {x: around(x, width), y: around(y, height)};
}

function joint(width) {
  const points = spots(state.head), palette = colours(), height = Math.min(width * 0.8, 620), first = 2 * (2 * state.head +
    (state.stage === "normalised"));
  const {x, y} = frame(points, width - 54, height - 74, 22);
  const variance = n => `${["first", "second"][n]} principal component (${(100 * share[first + n]).toFixed(0)} % of the variance)`;
  const few = T <= 24 && state.token === null;
  const named = points.filter(p => few || (state.token !== null && marked(p.n, p.side) &&
    (p.side === state.side || weightOf(p.n) >= 0.05)));
  return plot({
    width, height, marginLeft: 48, marginBottom: 40, marginTop: 34, marginRight: 6,
    x: {domain: x, label: variance(0) + " →", ticks: 5}, y: {domain: y, label: "↑ " + variance(1), ticks: 5},
    symbol: {domain: ["query", "key"], range: ["circle", "diamond"]},
    marks: [Plot.frame({stroke: palette.line}),
            Plot.link(pairs(), {x1: d => points[d.i].x, y1: d => points[d.i].y, x2: d => points[T + d.j].x,
                                y2: d => points[T + d.j].y, stroke: state.token === null ? palette.soft : palette.chosen,
                                strokeWidth: thickness, strokeOpacity: opacity, strokeLinecap: "round"}),
            Plot.dot(points, {x: "x", y: "y", fill: p => palette[p.side], symbol: "side", r: 4.5, stroke: palette.card,
                              strokeWidth: 0.8, opacity: p => marked(p.n, p.side) ? 1 : 0.25}),
            Plot.text(named, {x: "x", y: "y", text: p => short(data.labels[p.n]), fill: p => palette[p.side], dy: -10,
                              stroke: palette.card, strokeWidth: 3}),
            Plot.tip(points, Plot.pointer({x: "x", y: "y", title: p => about(p.n, p.side), ...tip()}))]});
}

function lines(width) {
  const palette = colours(), row = T > 32 ? 14 : 18, apart = Math.max(width - 230, 90);
  const ends = ["query", "key"].flatMap((side, x) => positions.map(n => ({n, side, x})));
  return plot({
    width, height: T * row + 40, marginLeft: (width - apart) / 2, marginRight: (width - apart) / 2, marginTop: 30, marginBottom: 8,
    x: {domain: [0, 1], axis: null}, y: {domain: [T - 0.5, -0.5], axis: null},
    marks: [Plot.link(pairs(), {x1: 0, x2: 1, y1: "i", y2: "j", strokeWidth: thickness, strokeOpacity: opacity,
                                stroke: state.token === null ? palette.soft : palette.chosen, strokeLinecap: "round"}),
            ...["query", "key"].map((side, x) => Plot.text(ends.filter(e => e.side === side), {
              x: "x", y: "n", text: e => x ? `${short(data.labels[e.n])}  ${e.n}` : `${e.n}  ${short(data.labels[e.n])}`,
              textAnchor: x ? "start" : "end", dx: x ? 8 : -8, fill: palette[side],
              opacity: e => marked(e.n, e.side) ? 1 : 0.4})),
            Plot.text([["query: looks", 0], ["key: is looked at", 1]], {
              x: d => d[1], y: -0.5, dy: -12, text: d => d[0], fill: d => [palette.query, palette.key][d[1]], fontWeight: 600}),
            Plot.tip(ends, Plot.pointer({x: "x", y: "n", maxRadius: 110, title: e => about(e.n, e.side), ...tip()}))]});
}

function markLine(box) {  // the chosen token's line, scrolled into sight
  const y = state.token === null ? 0 : [...box.children].at(-1).scale("y").apply(state.token);
  if (y < box.scrollTop || y > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
}

function matrix(width) {
  const cells = positions.flatMap(i => positions.map(j => ({i, j}))).filter(d => !hidden(d.i, d.j));
  const palette = colours(), most = largest(state.head), mix = d3.interpolateRgbBasis(palette.ramp);
  const left = 84, top = 84, size = (width - left - 8) / T, every = Math.ceil(11 / size);
  const ticks = {ticks: positions.filter(n => n % every === 0), tickSize: 3, label: null,
                 tickFormat: n => short(data.labels[n], 9)};
  return [legend(width, most, mix), plot({
    width, height: top + size * T + 8, marginLeft: left, marginTop: top, marginRight: 8, marginBottom: 8,
    x: {domain: [-0.5, T - 0.5]}, y: {domain: [T - 0.5, -0.5]},
    marks: [Plot.axisX({...ticks, anchor: "top", tickRotate: -60, textAnchor: "start", color: palette.key}),
            Plot.axisY({...ticks, color: palette.query}),
            corner("key →", palette.key, -top + 10, 0), corner("↓ query", palette.query, -14, -8),
            Plot.raster(d3.range(T * T).map(n => hidden(Math.floor(n / T), n % T) ? NaN : at(Math.floor(n / T), n % T)), {
              width: T, height: T, x1: -0.5, x2: T - 0.5, y1: -0.5, y2: T - 0.5, imageRendering: "pixelated",
              fill: w => isNaN(w) ? null : mix(Math.sqrt(w / most))}),
            Plot.frame({stroke: palette.line}),
            Plot.rect([0], {x1: -0.5, x2: 0.5, y1: -0.5, y2: 0.5, fill: "none", stroke: palette.chosen, strokeWidth: 2,
                            className: "outline"}),
            Plot.tip(cells, Plot.pointer({x: "j", y: "i", title: d => `query ${quoted(d.i)} → key ${quoted(d.j)}\nweight ${
              number(at(d.i, d.j))}`, ...tip()}))]})];
}

function corner(text, fill, dy, dx) {  // the name of an axis at the matrix's upper left corner
  return Plot.text([text], {frameAnchor: "top-left", textAnchor: dx ? "end" : "start", dx, dy, fill, fontWeight: 600});
}

function legend(width, most, mix) {
  return Plot.legend({width: Math.min(width - 84, 240), marginLeft: 14, marginRight: 16, height: 44,
                      label: "weight, up to this head's largest", tickFormat: ".3f", ticks: [0, most / 4, most],
                      color: {type: "sqrt", domain: [0, most], interpolate: mix}, style: {color: colours().text, fontSize: "11px"}});
}

function markRow(box) {  // the chosen token's row (as query) or column (as key)
  const outline = box.querySelector(".outline rect"), {token, side} = state;
  if (!outline) return;
  const {x, y} = scales(box), across = side === "query";
  const [x1, x2] = across ? [-0.5, T - 0.5] : [token - 0.5, token + 0.5];
  const [y1, y2] = across ? [token - 0.5, token + 0.5] : [-0.5, T - 0.5];
  outline.setAttribute("visibility", token === null ? "hidden" : "visible");
  for (const [name, value] of Object.entries({x: x.apply(x1), width: x.apply(x2) - x.apply(x1), y: y.apply(y1),
                                              height: y.apply(y2) - y.apply(y1)})) outline.setAttribute(name, value);
}

const scales = box => { const drawn = [...box.children].at(-1); return {x: drawn.scale("x"), y: drawn.scale("y")}; };

function waves(width) {
  const palette = colours();
  return d3.range(C).map(c => {
    const series = ["query", "key"].flatMap((side, s) => positions.map(n => (
      {n, side, v: columns[((state.head * 2 + s) * T + n) * C + c]})));
    const last = c === C - 1;
    return plot({
      width, height: last ? 136 : 104, marginLeft: 48, marginTop: 20, marginRight: 8, marginBottom: last ? 38 : 8,
      x: {domain: [0, T - 1], label: last ? `position (${data.unit}s) →` : null, ticks: last ? Math.min(T - 1, 10) : 0, tickFormat: "d"},
      y: {label: `↑ column ${c}, ${(100 * weight[state.head * C + c]).toFixed(0)} % of W_A`, ticks: 3},
      marks: [Plot.ruleY([0], {stroke: palette.line}),
              Plot.ruleX(state.token === null ? [] : [state.token], {stroke: palette.chosen, strokeWidth: 2, strokeOpacity: 0.7}),
              Plot.lineY(series, {x: "n", y: "v", z: "side", stroke: d => palette[d.side], strokeWidth: 1.6,
                                  strokeDasharray: null}),
              Plot.dot(series, {x: "n", y: "v", r: T > 40 ? 1.5 : 2.2, fill: d => palette[d.side]}),
              Plot.tip(series, Plot.pointer({x: "n", y: "v", ...tip(),
                title: d => `${d.side} of ${short(data.labels[d.n], 24)}, position ${d.n}\ncolumn ${c}: ${d.v.toPrecision(3)}`}))]});
  });
}

function offsets(width) {
  const palette = colours(), own = d3.range(R).map(r => ({t: r - reach, w: profile[state.head * R + r], u: data.uniform[r]}));
  const {token, side} = state;
  const chosen = token === null ? [] : positions.map(n => ({t: side === "query" ? n - token : token - n, w: weightOf(n)}))
    .filter(d => Math.abs(d.t) <= reach && !(data.causal && d.t > 0));
  const title = d => `offset ${d.t > 0 ? "+" : ""}${d.t} ${data.unit}s`;
  return plot({
    width, height: Math.min(width * 0.75, 460), marginLeft: 48, marginBottom: 40, marginTop: 26, marginRight: 8,
    x: {domain: [-reach - 0.6, reach + 0.6], label: `← left   offset: key − query (${data.unit}s)   right →`, labelAnchor: "center",
        ticks: Math.min(R, 11), tickFormat: d => (d > 0 ? "+" : "") + d},
    y: {domain: [0, 1.08 * d3.max([...own.flatMap(d => [d.w, d.u]), ...chosen.map(d => d.w)])],
        label: "↑ mean weight on the key at that offset", ticks: 5},
    marks: [Plot.rectY(own, {x1: d => d.t - 0.38, x2: d => d.t + 0.38, y: "w", fill: palette.query, fillOpacity: 0.75}),
            Plot.ruleX([0], {stroke: palette.line}), Plot.ruleY([0], {stroke: palette.line}),
            Plot.line(own, {x: "t", y: "u", stroke: palette.text, strokeDasharray: "4 3", strokeWidth: 1.3}),
            Plot.dot(chosen, {x: "t", y: "w", fill: palette.chosen, stroke: palette.card, r: 4}),
            Plot.tip(own, Plot.pointerX({x: "t", y: "w", ...tip(),
              title: d => `${title(d)}\nmean weight ${number(d.w)}\nuniform attention ${number(d.u)}`}))]});
}

// the list of views: title, what to look at, how it is drawn, of what the drawing depends, what a click chooses

const VIEWS = {
  heads: {title: () => "All heads", draw: heads, mark: markHead, depends: [],
    choice: ["thumbs", "What the pictures show", ["attention", "joint space"]], pick: d => ({head: d.head}),
    hint: () => `One picture a head. ${state.thumbs === "attention" ? "Its attention matrix: queries down, keys across, " +
      "shades up to its own largest weight." : "Its queries and keys in the plane."} Arrow keys move from head to head.`},
  joint: {title: () => `${nameOf(state.head)}: queries and keys in one space`, draw: joint, depends: ["head", "token", "side"],
    choice: ["stage", "State of queries and keys", ["normalised", "as in the model"]],
    pick: p => ({token: p.n, side: p.side}),
    hint: () => "<b class=query>●</b> queries and <b class=key>◆</b> keys in the plane in which they vary most" +
      `${data.distance === "cosine" ? ", by direction alone" : ""}. ${state.stage === "normalised" ? "Keys are moved and both are scaled, " +
      "so that what is near gets attention where possible; no weight changes by that. " : ""}Wider lines are larger weights` +
      `${state.token === null ? `: all from ${ALL} on, and each query's strongest` : ""}.`},
  lines: {title: () => `${nameOf(state.head)}: who looks at whom`, draw: lines, mark: markLine, depends: ["head", "token", "side"],
    pick: p => ({token: p.n, side: p.side}),
    hint: () => "From the token that looks, left, to the token that is looked at, right; wider is more. " +
      (state.token === null ? `Weights from ${ALL} on, and each query's strongest.` : `Weights from ${ONE} on.`)},
  columns: {title: () => `${nameOf(state.head)}: columns of queries and keys`, draw: waves, depends: ["head", "token"],
    pick: d => ({token: d.n, side: d.side}),
    hint: () => "<b class=query>Queries</b> X U_Q and <b class=key>keys</b> X U_K, where U_Q S U_Kᵀ is W_A = W_Q W_Kᵀ, the heaviest " +
      "columns first (% of S²). A regular wave, shifted between the two, looks a fixed number of tokens away."},
  matrix: {title: () => `${nameOf(state.head)}: attention matrix`, draw: matrix, mark: markRow, depends: ["head"],
    pick: d => state.side === "query" ? {token: d.i} : {token: d.j},
    hint: () => "A row is a query and adds up to 1: how its attention is shared out over the keys." +
      (data.causal ? " This model does not see to the right: the empty half." : "")},
  profile: {title: () => `${nameOf(state.head)}: relative positions`, draw: offsets, depends: ["head", "token", "side"],
    hint: () => "Bars: mean weight at each distance. Dashed: a head that looks at everything alike (chance). A head that " +
      `knows positions stands out at one bar.${state.token === null ? "" : " <b class=chosen>●</b> The chosen token alone."}`}};

// drawing

const views = document.getElementById("views"), boxes = {}, drawn = {};
for (const id of Object.keys(VIEWS)) {
  const figure = views.appendChild(Object.assign(document.createElement("figure"), {className: "view", id}));
  figure.innerHTML = `<div class="bar"><h2></h2><div class="controls"></div></div><p class="hint"></p><div class="plot"></div>`;
  boxes[id] = figure.querySelector(".plot");
  if (VIEWS[id].choice) controls(figure).append(chooser(...VIEWS[id].choice));
  const larger = button("larger", "Show this view larger or smaller", () => {
    larger.textContent = figure.classList.toggle("large") ? "smaller" : "larger";
    update();
  });
  controls(figure).append(larger, button("save SVG", "Save this view as an SVG file", () => save(id)));
  boxes[id].addEventListener("pointerdown", event => event.stopPropagation(), true);  // Plot would pin the hover text
  boxes[id].addEventListener("click", event => {
    const found = [...event.currentTarget.children].map(child => child.value).find(value => value);
    if (found && VIEWS[id].pick) set(VIEWS[id].pick(found));
  });
}

function controls(figure) {
  return figure.querySelector(".controls");
}

function button(text, label, act) {
  const made = Object.assign(document.createElement("button"), {type: "button", textContent: text, onclick: act});
  made.setAttribute("aria-label", label);
  return made;
}

function chooser(name, label, options) {
  const made = Object.assign(document.createElement("select"), {onchange: () => set({[name]: made.value})});
  made.append(...options.map(option => new Option(option)));
  made.value = state[name];
  made.setAttribute("aria-label", label);
  return made;
}

function update() {
  paint();
  writeText();
  for (const [id, view] of Object.entries(VIEWS)) {
    const box = boxes[id], figure = box.parentElement, width = Math.floor(box.clientWidth);
    const key = JSON.stringify([width, isDark(), state.stage, state.thumbs, ...view.depends.map(name => state[name])]);
    figure.querySelector("h2").textContent = view.title();
    figure.querySelector(".hint").innerHTML = view.hint();
    if (key !== drawn[id]) box.replaceChildren(...[view.draw(width)].flat());
    drawn[id] = key;
    view.mark?.(box);
    if (id !== "heads") {
      box.setAttribute("role", "img");
      box.setAttribute("aria-label", `${view.title()}. ${figure.querySelector(".hint").textContent} ${readout.textContent}`);
    }
  }
}

// the text, and what is said of the chosen token and head

const readout = document.getElementById("readout"), list = document.getElementById("tokens");
const facts = boxes.heads.parentElement.appendChild(document.createElement("table"));
list.append(...data.labels.map((label, n) => {
  const made = Object.assign(document.createElement("span"), {className: "token", id: `token${n}`, textContent: label});
  made.setAttribute("role", "option");
  made.addEventListener("click", () => set({token: n}));
  return made;
}));

function writeText() {
  const {token, side} = state;
  [...list.children].forEach((option, n) => {
    option.setAttribute("aria-selected", n === token);
    option.setAttribute("aria-label", `${data.labels[n]}, position ${n}${token === null ? "" : `, weight ${number(weightOf(n))}`}`);
    option.title = option.getAttribute("aria-label");
    option.style.setProperty("--weight", Math.sqrt(weightOf(n)).toFixed(3));
    option.style.setProperty("--of", `var(--${other(side)})`);
  });
  list.setAttribute("aria-activedescendant", token === null ? "" : `token${token}`);
  list.children[token]?.scrollIntoView({block: "nearest"});
  readout.textContent = said();
  document.querySelectorAll("input[name=side]").forEach(input => { input.checked = input.value === side; });
  facts.replaceChildren(...[[`head (in the paper, counted from 1)`, `${nameOf(state.head)} (${layerOf(state.head) + 1},${state.head % H + 1})`], ...data.facts.map(f => [f.means, f.values[state.head]])].map(row => {
    const made = document.createElement("tr");
    made.append(...row.map(text => Object.assign(document.createElement("td"), {textContent: text})));
    return made;
  }));
}

function said() {
  const {token, side} = state, name = nameOf(state.head);
  if (token === null) return `${name}: ${character(state.head)}. No token is chosen.`;
  const most = d3.sort(positions, n => -weightOf(n)).slice(0, 4).filter(n => weightOf(n) >= ONE);
  const found = most.map(n => `${quoted(n)} ${number(weightOf(n))}`).join(", ") || `nothing with a weight of ${ONE} or more`;
  return side === "query" ? `${name}: ${quoted(token)} looks at ${found}` : `${name}: at ${quoted(token)} look ${found}`;
}

// mouse and keys

document.getElementById("release").onclick = () => set({token: null});
document.querySelectorAll("input[name=side]").forEach(input => { input.onchange = () => set({side: input.value}); });

function keys(element, act) {  // act(key) -> changes of the state, or nothing
  element.addEventListener("keydown", event => {
    const changes = act(event.key);
    if (changes) event.preventDefault();
    if (changes) set(changes);
  });
}

keys(list, key => {
  const move = to => ({token: Math.max(0, Math.min(T - 1, to))}), n = state.token;
  const none = n === null;
  return {ArrowRight: move(none ? 0 : n + 1), ArrowLeft: move(none ? T - 1 : n - 1), Home: move(0), End: move(T - 1),
          ArrowUp: {side: other(state.side)}, ArrowDown: {side: other(state.side)}, Escape: {token: null}}[key];
});

boxes.heads.tabIndex = 0;
boxes.heads.setAttribute("role", "listbox");
boxes.heads.setAttribute("aria-label", "Heads, one row a layer. Arrow keys choose one.");
keys(boxes.heads, key => {
  const x = state.head % H, y = layerOf(state.head), move = (x, y) => ({head: y * H + x});
  return {ArrowRight: move(Math.min(H - 1, x + 1), y), ArrowLeft: move(Math.max(0, x - 1), y),
          ArrowDown: move(x, Math.min(L - 1, y + 1)), ArrowUp: move(x, Math.max(0, y - 1)), Home: move(0, 0),
          End: move(H - 1, L - 1)}[key];
});

// saving: the plots of a view below each other, under a line that says what they show

function svgOf(id) {
  const space = "http://www.w3.org/2000/svg", palette = colours();
  const outer = document.createElementNS(space, "svg"), parts = [...boxes[id].querySelectorAll(":scope > svg, :scope > * > svg")];
  let y = 30, width = 0;
  for (const part of parts) {
    const copy = part.cloneNode(true), box = part.viewBox.baseVal;
    copy.querySelectorAll("[aria-label=tip]").forEach(hover => hover.remove());
    copy.setAttribute("x", 8);
    copy.setAttribute("y", y);
    copy.style.color = palette.text;
    outer.append(copy);
    y += box.height;
    width = Math.max(width, box.width + 16);
  }
  const back = document.createElementNS(space, "rect"), title = document.createElementNS(space, "text");
  for (const [name, value] of Object.entries({width, height: y + 8, viewBox: `0 0 ${width} ${y + 8}`})) outer.setAttribute(name, value);
  for (const [name, value] of Object.entries({width, height: y + 8, fill: palette.card})) back.setAttribute(name, value);
  for (const [name, value] of Object.entries({x: 8, y: 19, fill: palette.text, "font-size": 13})) title.setAttribute(name, value);
  title.textContent = `${VIEWS[id].title()} · ${data.model} · ${short(data.text, 60)}`;
  outer.setAttribute("font-family", "system-ui, sans-serif");
  outer.prepend(back, title);
  return new XMLSerializer().serializeToString(outer);
}

function save(id) {
  const address = URL.createObjectURL(new Blob([svgOf(id)], {type: "image/svg+xml"}));
  const name = [id, ...(id === "heads" ? [] : [nameOf(state.head)])].join("-");
  Object.assign(document.createElement("a"), {href: address, download: `${name}.svg`}).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// the theme: the system's until the button is used; then the first drawing

const theme = document.getElementById("theme");
theme.onclick = () => set({dark: !isDark()});

function paint() {
  const root = document.documentElement;
  for (const [name, value] of Object.entries(colours())) if (name !== "ramp") root.style.setProperty(`--${name}`, value);
  root.style.colorScheme = isDark() ? "dark" : "light";
  theme.textContent = isDark() ? "light colours" : "dark colours";
}

document.getElementById("model").textContent = data.model;
document.getElementById("precision").textContent = precision();
systemDark.addEventListener("change", update);
new ResizeObserver(() => requestAnimationFrame(update)).observe(views);

function precision() {
  const most = name => data.arrays[name].error.toPrecision(2);
  return `${L} layers × ${H} heads of width ${data.width}, ${T} ${data.unit}s. Normalising queries and keys changed no weight by ` +
    `more than ${data.moved.toPrecision(2)}. Numbers in this file are rounded to 16 bits between the ` +
    `least and the greatest of their head: weights within ${most("pattern")}, places in the plane within ${most("plane")}, ` +
    `columns within ${most("columns")}, mean weights within ${most("profile")}.`;
}
