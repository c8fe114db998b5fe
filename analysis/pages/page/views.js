// One function for each view: it takes a width in pixels and gives back one plot or several. What can change without
// a new drawing (which head, which row) is marked by a function of its own. Order: what they share, views, their list.

function plot(options) {
  return Plot.plot({style: {background: "transparent", color: colours().text, fontSize: "11px", overflow: "visible"},
                    color: {type: "identity"}, opacity: {type: "identity"}, ...options});
}

const tip = title => ({title, fill: colours().back, stroke: colours().line, fontSize: 12, lineHeight: 1.3});
const thickness = d => 0.6 + 4 * d.w;
const opacity = d => state.token === null ? 0.2 + 0.6 * d.w : 0.45 + 0.55 * d.w;
const ink = () => state.token === null ? colours().soft : colours().chosen;

function keyed(entries, frameAnchor, dy) {  // a legend inside a figure: coloured words side by side
  const step = frameAnchor.endsWith("right") ? -1 : 1;
  let dx = 0;
  return entries.map(([text, fill]) => {
    const place = {frameAnchor, dx, dy, textAnchor: step < 0 ? "end" : "start"};
    dx += step * (text.length * 6.6 + 14);
    return Plot.text([text], {...place, fill, fontWeight: 600});
  });
}

const sides = dy => keyed([["◆ key", colours().key], ["● query", colours().query]], "top-right", dy);

function shades() {  // 0 ... 1 -> [r, g, b, 255]
  const mix = d3.interpolateRgbBasis(colours().ramp);
  const table = d3.range(256).map(n => d3.rgb(mix(n / 255))).map(c => [c.r, c.g, c.b, 255]);
  return t => table[Math.round(255 * t)];
}

// all heads

function heads(width) {
  const cells = d3.range(L * H).map(head => ({head, x: head % H, y: layerOf(head), src: thumb(head)}));
  const left = 28, top = 34, size = Math.min((width - left - 4) / H, 110);
  const band = {paddingInner: 0.08, paddingOuter: 0, tickSize: 0}, place = {x: "x", y: "y"};
  const drawn = plot({
    width: left + 4 + size * H, height: top + size * L + 4, margin: 2, marginLeft: left, marginTop: top,
    x: {domain: d3.range(H), label: "head →", axis: "top", ...band},
    y: {domain: d3.range(L), label: "↓ layer", labelAnchor: "top", ...band},
    marks: [Plot.image(cells, {...place, src: "src", width: size * 0.92, preserveAspectRatio: "none",
                               imageRendering: state.thumbs === "attention" ? "pixelated" : "auto"}),
            Plot.cell(cells, {...place, fill: "none", stroke: colours().line,
                              ariaLabel: d => `${nameOf(d.head)}. ${character(d.head)}`}),
            Plot.tip(cells, Plot.pointer({...place, ...tip(d => (
              `${nameOf(d.head)}, ${papersName(d.head)}\n${character(d.head)}`))}))]});
  drawn.querySelectorAll("rect[aria-label]").forEach((cell, head) => {
    cell.id = `head${head}`;
    cell.setAttribute("role", "option");
  });
  return drawn;
}

function thumb(head) {  // a head's picture in the grid, as a data URL
  const canvas = document.createElement("canvas"), brush = canvas.getContext("2d");
  if (state.thumbs === "attention") {
    [canvas.width, canvas.height] = [S, T];
    const image = brush.createImageData(S, T), shade = shades(), most = largest(head);
    for (const i of places.query) for (const j of places.key) {
      image.data.set(hidden(i, j) ? [0, 0, 0, 0] : shade(Math.sqrt(at(i, j, head) / most)), 4 * (i * S + j));
    }
    brush.putImageData(image, 0, 0);
  } else {
    const points = spots(head), size = canvas.width = canvas.height = 96, {x, y} = frame(points, size, size, 8);
    brush.fillStyle = colours().back;
    brush.fillRect(0, 0, size, size);
    for (const p of points) {
      brush.fillStyle = colours()[p.side];
      brush.fillRect((p.x - x[0]) / (x[1] - x[0]) * size - 1.5, (y[1] - p.y) / (y[1] - y[0]) * size - 1.5, 3, 3);
    }
  }
  return canvas.toDataURL();
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

// queries and keys in one space

const stage = () => state.stage === "normalised" ? 1 : 0;

function spots(head) {  // {n, side, x, y}, the queries first
  return ["query", "key"].flatMap((side, s) => places[side].map(n => {
    const place = 2 * ((head * 2 + stage()) * (T + S) + s * T + n);
    return {n, side, x: plane[place], y: plane[place + 1]};
  }));
}

function frame(points, width, height, inset) {  // domains in which a step across is as long as a step up
  const [x, y] = [d3.extent(points, p => p.x), d3.extent(points, p => p.y)];
  const unit = Math.max((x[1] - x[0]) / (width - 2 * inset), (y[1] - y[0]) / (height - 2 * inset)) || 1;
  const around = (ends, size) => [-1, 1].map(sign => (ends[0] + ends[1]) / 2 + sign * unit * size / 2);
  return {x: around(x, width), y: around(y, height)};
}

function joint(width) {
  const points = spots(state.head), palette = colours(), height = Math.min(width * 0.8, 620);
  const {x, y} = frame(points, width - 54, height - 86, 22);
  const axis = n => `${["first", "second"][n]} principal component (${
    (100 * share[(state.head * 2 + stage()) * 2 + n]).toFixed(0)} % of the variance)`;
  const labelled = points.filter(p => state.token === null ? (T + S) <= 48
    : marked(p.n, p.side) && (p.side === state.side || weightOf(p.n) >= 0.05));
  const place = {x: "x", y: "y"}, fill = p => palette[p.side];
  return plot({
    width, height, marginLeft: 48, marginBottom: 40, marginTop: 46, marginRight: 6,
    x: {domain: x, label: axis(0) + " →", ticks: 5}, y: {domain: y, label: "↑ " + axis(1), ticks: 5},
    symbol: {domain: ["query", "key"], range: ["circle", "diamond"]},
    marks: [Plot.frame({stroke: palette.line}), ...sides(-18),
            Plot.link(pairs(), {x1: d => points[d.i].x, y1: d => points[d.i].y, x2: d => points[T + d.j].x,
                                y2: d => points[T + d.j].y, stroke: ink(), strokeWidth: thickness,
                                strokeOpacity: opacity, strokeLinecap: "round"}),
            Plot.dot(points, {...place, fill, symbol: "side", r: 4.5, stroke: palette.card, strokeWidth: 0.8,
                              opacity: p => marked(p.n, p.side) ? 1 : 0.25}),
            Plot.text(labelled, {...place, text: p => short(labels[p.side][p.n]), fill, dy: -10, stroke: palette.card,
                              strokeWidth: 3}),
            Plot.tip(points, Plot.pointer({...place, ...tip(p => about(p.n, p.side))}))]});
}

// who looks at whom

function lines(width) {
  const palette = colours(), most = Math.max(T, S), row = most > 32 ? 14 : 18, margin = (width - Math.max(width - 230, 90)) / 2;
  const end = (side, x) => places[side].map(n => ({n, side, x}));
  const names = (side, x) => Plot.text(end(side, x), {
    x: "x", y: "n", textAnchor: x ? "start" : "end", dx: x ? 8 : -8, fill: palette[side],
    text: d => x ? `${short(labels.key[d.n])}  ${d.n}` : `${d.n}  ${short(labels.query[d.n])}`,
    opacity: d => marked(d.n, d.side) ? 1 : 0.4});
  const title = (text, x, fill) => Plot.text([text], {x, y: -0.5, dy: -12, fill, fontWeight: 600});
  return plot({
    width, height: most * row + 40, marginLeft: margin, marginRight: margin, marginTop: 30, marginBottom: 8,
    x: {domain: [0, 1], axis: null}, y: {domain: [most - 0.5, -0.5], axis: null},
    marks: [Plot.link(pairs(), {x1: 0, x2: 1, y1: "i", y2: "j", strokeWidth: thickness, strokeOpacity: opacity,
                                stroke: ink(), strokeLinecap: "round"}),
            names("query", 0), names("key", 1),
            title("query", 0, palette.query), title("key", 1, palette.key),
            Plot.tip([...end("query", 0), ...end("key", 1)], Plot.pointer({
              x: "x", y: "n", maxRadius: 110, ...tip(d => about(d.n, d.side))}))]});
}

function markLine(box) {  // the chosen token's line, scrolled into sight
  const y = state.token === null ? 0 : box.lastChild.scale("y").apply(state.token);
  if (y < box.scrollTop || y > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
}

// the attention matrix, one image

function matrix(width) {
  const cells = places.query.flatMap(i => places.key.map(j => ({i, j}))).filter(d => !hidden(d.i, d.j));
  const palette = colours(), most = largest(state.head), mix = d3.interpolateRgbBasis(palette.ramp);
  const left = 84, top = 84, size = (width - left - 8) / S, every = Math.ceil(11 / size);
  const whole = {x1: -0.5, x2: S - 0.5, y1: -0.5, y2: T - 0.5};
  const ticks = side => ({ticks: places[side].filter(n => n % every === 0), tickSize: 3, label: null,
                          tickFormat: n => short(labels[side][n], 9), color: palette[side]});
  const corner = (text, fill, dx, dy) => Plot.text([text], {
    frameAnchor: "top-left", textAnchor: dx ? "end" : "start", dx, dy, fill, fontWeight: 600});
  return [scale(width, most, mix), plot({
    width, height: top + size * T + 8, marginLeft: left, marginTop: top, marginRight: 8, marginBottom: 8,
    x: {domain: [-0.5, S - 0.5]}, y: {domain: [T - 0.5, -0.5]},
    marks: [Plot.axisX({...ticks("key"), anchor: "top", tickRotate: -60, textAnchor: "start"}),
            Plot.axisY(ticks("query")),
            corner("key →", palette.key, 0, 10 - top), corner("↓ query", palette.query, -8, -14),
            Plot.raster(places.query.flatMap(i => places.key.map(j => hidden(i, j) ? NaN : at(i, j))), {
              width: S, height: T, ...whole, imageRendering: "pixelated",
              fill: w => isNaN(w) ? null : mix(Math.sqrt(w / most))}),
            Plot.frame({stroke: palette.line}),
            Plot.rect([0], {...whole, fill: "none", stroke: palette.chosen, strokeWidth: 2, className: "outline"}),
            Plot.tip(cells, Plot.pointer({x: "j", y: "i", ...tip(d => (
              `query ${quoted(d.i, "query")} → key ${quoted(d.j, "key")}\nweight ${number(at(d.i, d.j))}`))}))]})];
}

function scale(width, most, mix) {  // which shade is which weight
  return Plot.legend({width: Math.min(width - 84, 240), marginLeft: 14, marginRight: 16, height: 44,
                      label: "weight, up to this head's largest", tickFormat: ".3f", ticks: [0, most / 4, most],
                      color: {type: "sqrt", domain: [0, most], interpolate: mix},
                      style: {color: colours().text, fontSize: "11px"}});
}

function markRow(box) {  // the chosen token's row, as a query, or column, as a key
  const outline = box.querySelector(".outline rect"), {token, side} = state, drawn = box.lastChild;
  const [x, y] = ["x", "y"].map(name => drawn.scale(name).apply);
  const ends = (along, apply) => (along ? [-0.5, along - 0.5] : [token - 0.5, token + 0.5]).map(apply);
  const [[x1, x2], [y1, y2]] = [ends(side === "query" && S, x), ends(side === "key" && T, y)];
  const attributes = {visibility: token === null ? "hidden" : "visible", x: x1, width: x2 - x1, y: y1, height: y2 - y1};
  for (const [name, value] of Object.entries(attributes)) outline.setAttribute(name, value);
}

// columns of queries and keys against position

function waves(width) {
  const palette = colours();
  return d3.range(C).map(c => {
    const series = ["query", "key"].flatMap((side, s) => places[side].map(n => (
      {n, side, v: columns[(state.head * (T + S) + s * T + n) * C + c]})));
    const last = c === C - 1, place = {x: "n", y: "v"};
    return plot({
      width, height: last ? 136 : 104, marginLeft: 48, marginTop: 20, marginRight: 8, marginBottom: last ? 38 : 8,
      x: {domain: [0, Math.max(T, S) - 1], label: last ? `position (${data.unit}s) →` : null,
          ticks: last ? Math.min(Math.max(T, S) - 1, 8) : 0,
          tickFormat: "d"},
      y: {label: `↑ column ${c}, ${(100 * weight[state.head * C + c]).toFixed(0)} % of W_A`, ticks: 3},
      marks: [Plot.ruleY([0], {stroke: palette.line}), ...(c ? [] : sides(-13)),
              Plot.ruleX(state.token === null ? [] : [state.token], {stroke: palette.chosen, strokeWidth: 2}),
              Plot.lineY(series, {...place, z: "side", stroke: d => palette[d.side], strokeWidth: 1.6}),
              Plot.dot(series, {...place, r: T + S > 80 ? 1.5 : 2.2, fill: d => palette[d.side]}),
              Plot.tip(series, Plot.pointer({...place, ...tip(d => (
                `${named(d.n, d.side)}\ncolumn ${c}: ${d.v.toPrecision(3)}`))}))]});
  });
}

// relative positions

function offsets(width) {
  const palette = colours(), {token, side} = state;
  const own = d3.range(R).map(r => ({t: r - reach, w: profile[state.head * R + r], u: data.uniform[r]}));
  const chosen = token === null ? [] : places.key
    .map(n => ({t: side === "query" ? n - token : token - n, w: weightOf(n)}))
    .filter(d => Math.abs(d.t) <= reach && !(data.causal && d.t > 0));
  const most = d3.max([...own.flatMap(d => [d.w, d.u]), ...chosen.map(d => d.w)]);
  return plot({
    width, height: Math.min(width * 0.75, 460), marginLeft: 48, marginBottom: 62, marginTop: 26, marginRight: 8,
    x: {domain: [-reach - 0.6, reach + 0.6], label: `← left   offset: key − query (${data.unit}s)   right →`,
        labelAnchor: "center", ticks: Math.min(R, 11), tickFormat: signed},
    y: {domain: [0, 1.08 * most], label: "↑ mean weight on the key at that offset", ticks: 5},
    marks: [Plot.rectY(own, {x1: d => d.t - 0.38, x2: d => d.t + 0.38, y: "w", fill: palette.bar}),
            ...keyed([["■ this head", palette.bar], ["┅ uniform", palette.text],
                      ...(token === null ? [] : [["● chosen", palette.chosen]])], "bottom-left", 36),
            Plot.ruleX([0], {stroke: palette.line}), Plot.ruleY([0], {stroke: palette.line}),
            Plot.line(own, {x: "t", y: "u", stroke: palette.text, strokeDasharray: "4 3", strokeWidth: 1.3}),
            Plot.dot(chosen, {x: "t", y: "w", fill: palette.chosen, stroke: palette.card, r: 4}),
            Plot.tip(own, Plot.pointerX({x: "t", y: "w", ...tip(d => (
              `offset ${signed(d.t)} ${data.unit}s\nmean weight ${number(d.w)}\nuniform ${number(d.u)}`))}))]});
}

// the list: title, what to look at, how it is drawn, on which of the state the drawing depends, what a click chooses

const CHOICE = ["head", "token", "side"];
const isThere = id => id !== "profile" || !isCross;  // between two texts there is no distance
const VIEWS = {
  heads: {
    title: () => "All heads", draw: heads, mark: markHead, depends: [], pick: d => ({head: d.head}),
    choice: ["thumbs", "What the pictures show", ["attention", "joint space"]],
    hint: () => "One picture a head. " + (state.thumbs === "attention" ? "Its attention matrix: queries down, keys " +
      "across, shades up to its own largest weight." : "Its queries and keys in the plane.") +
      " Arrow keys move from head to head."},
  joint: {
    title: () => `${nameOf(state.head)}: queries and keys in one space`, draw: joint, depends: CHOICE,
    choice: ["stage", "State of queries and keys", ["normalised", "as in the model"]],
    pick: d => ({token: d.n, side: d.side}),
    hint: () => "<b class=query>●</b> queries and <b class=key>◆</b> keys in the plane in which they vary most" +
      `${data.distance === "cosine" ? ", by direction alone" : ""}. ${state.stage === "normalised" ? "Keys are moved " +
      "and both are scaled, so that what is near gets attention where possible; no weight changes by that. " : ""}` +
      "Wider lines are larger weights" + (state.token === null ? `: all from ${ALL} on, and each query's strongest.`
        : ".")},
  lines: {
    title: () => `${nameOf(state.head)}: who looks at whom`, draw: lines, mark: markLine, depends: CHOICE,
    pick: d => ({token: d.n, side: d.side}),
    hint: () => "From what looks, left, to what is looked at, right; wider is more. " +
      (state.token === null ? `Weights from ${ALL} on, and each query's strongest.` : `Weights from ${ONE} on.`)},
  columns: {
    title: () => `${nameOf(state.head)}: columns of queries and keys`, draw: waves, depends: ["head", "token"],
    pick: d => ({token: d.n, side: d.side}),
    hint: () => "<b class=query>Queries</b> X U_Q and <b class=key>keys</b> X U_K, where U_Q S U_Kᵀ is " +
      "W_A = W_Q W_Kᵀ, the heaviest columns first (% of S²). A regular wave, shifted between the two, looks a fixed " +
      "number of places away."},
  matrix: {
    title: () => `${nameOf(state.head)}: attention matrix`, draw: matrix, mark: markRow, depends: ["head"],
    pick: d => ({token: state.side === "query" ? d.i : d.j}),
    hint: () => "A row is a query and adds up to 1: how its attention is shared out over the keys." +
      (isCross ? " The query is of the token that was said last: it asks for the next." : "") +
      (data.causal ? " This model does not see to the right: the empty half." : "")},
  profile: {
    title: () => `${nameOf(state.head)}: relative positions`, draw: offsets, depends: CHOICE,
    hint: () => "Mean weight at each distance, beside a head that looks at everything alike (uniform: chance). A head that " +
      "knows positions stands out at one distance."}};
