// Queries and keys of one head in one space, with the numbers of their positions where these do not
// cover each other.

const stage = () => (state.stage === "normalised" ? 1 : 0);

function spots(head) {
  // {n, side, x, y}, the queries first
  return ["query", "key"].flatMap((side, s) =>
    places[side].map(n => {
      const start = 2 * ((head * 2 + stage()) * (T + S) + s * T + n);
      return {n, side, x: plane[start], y: plane[start + 1]};
    }),
  );
}

function frame(points, width, height, inset) {
  // domains in which a step across is as long as a step up
  const [x, y] = [d3.extent(points, p => p.x), d3.extent(points, p => p.y)];
  const unit =
    Math.max((x[1] - x[0]) / (width - 2 * inset), (y[1] - y[0]) / (height - 2 * inset)) || 1;
  const around = (ends, size) =>
    [-1, 1].map(sign => (ends[0] + ends[1]) / 2 + (sign * unit * size) / 2);
  return {x: around(x, width), y: around(y, height)};
}

const dotColour = p =>
  state.colour === "position" ? place(p.n, places[p.side].length) : colours()[p.side];

const joint = width => pair(() => [...space(width), nearestSaid()]);

function nearestSaid() {
  // how far the plane can be believed: in it, and in all dimensions, the nearest key is the
  // strongest
  const [, full, flat] = data.facts.map(({values}) => values[state.head].split(" → ")[stage()]);
  const chance = d3.mean(
    places.query.filter(i => i || !data.causal),
    i => 1 / (data.causal ? i + 1 : S),
  );
  return make("p", {
    className: "fact",
    textContent: say`The plane shows the nearest key rightly for ${flat} of the queries (full space: ${full}; chance: ${percent(chance)}).`,
  });
}

function space(width) {
  const points = spots(state.head),
    palette = colours(),
    height = Math.min(width * 0.8, 620);
  const inner = {width: width - 54, height: height - 86},
    {x, y} = frame(points, inner.width, inner.height, 22);
  const axis = n => {
    const part = (100 * share[(state.head * 2 + stage()) * 2 + n]).toFixed(0);
    return inner.width < 260
      ? say`component ${n + 1} (${part}% of the variance)`
      : say`${[say("first"), say("second")][n]} principal component (${part}% of the variance)`;
  };
  const where = {x: "x", y: "y"},
    text = p => `${p.n}`;
  const across = d3.scaleLinear(x, [0, inner.width]),
    up = d3.scaleLinear(y, [inner.height, 0]);
  const labelOf = p => ({p, x: across(p.x), y: up(p.y), width: 6.2 * text(p).length});
  const written = withoutOverlap(points.map(labelOf), inner);
  const fill = p => (state.colour === "position" ? palette.text : dotColour(p));
  const missing = points.filter(p => marked(p.n, p.side)).length - written.length,
    far = written.filter(d => SPOTS[d.spot].isFar);
  const names = Object.entries(SPOTS).map(([name, {dx, dy, textAnchor}]) =>
    Plot.text(
      written.filter(d => d.spot === name).map(d => d.p),
      {
        ...where,
        text,
        dx,
        dy,
        textAnchor,
        fill,
        stroke: palette.card,
        strokeWidth: 3,
      },
    ),
  );
  const drawn = plot({
    width,
    height,
    marginLeft: 48,
    marginBottom: 40,
    marginTop: 46,
    marginRight: 6,
    x: {domain: x, label: `${axis(0)} →`, ticks: 5},
    y: {domain: y, label: `↑ ${axis(1)}`, ticks: 5},
    symbol: {domain: ["query", "key"], range: ["circle", "diamond"]},
    marks: [
      Plot.frame({stroke: palette.line}),
      ...jointLegend(),
      Plot.link(pairs(), {
        x1: d => points[d.i].x,
        y1: d => points[d.i].y,
        x2: d => points[T + d.j].x,
        y2: d => points[T + d.j].y,
        stroke: ink,
        strokeWidth: thickness,
        strokeOpacity: opacity,
        strokeLinecap: "round",
      }),
      Plot.dot(points, {
        ...where,
        fill: dotColour,
        symbol: "side",
        r: 4.5,
        stroke: palette.card,
        strokeWidth: 0.8,
        opacity: p => (marked(p.n, p.side) ? 1 : 0.25),
      }),
      Plot.link(far, {
        x1: d => d.p.x,
        y1: d => d.p.y,
        x2: d => across.invert(d.x + 0.7 * SPOTS[d.spot].dx),
        y2: d => up.invert(d.y + 0.7 * SPOTS[d.spot].dy),
        stroke: palette.soft,
        strokeWidth: 0.7,
        className: "leaders",
      }),
      ...names,
      Plot.tip(points, Plot.pointer({...where, ...tip(p => about(p.n, p.side))})),
    ],
  });
  return [
    drawn,
    ...(missing
      ? [
          make("p", {
            className: "fact",
            textContent: say`${missing} of ${T + S} points have no room for their number; a larger view shows more.`,
          }),
        ]
      : []),
  ];
}

function jointLegend() {
  if (state.colour !== "position") return sides(-18);
  const last = Math.max(T, S) - 1,
    steps = d3.range(5).map(n => Math.round((n * last) / 4));
  return keyed(
    [
      [say("◆ key"), colours().text],
      [say("● query"), colours().text],
      ...d3.reverse(steps).map(n => [`■ ${n}`, place(n, last + 1)]),
    ],
    "top-right",
    -18,
  );
}

// where a label may stand beside its point, the best place first
const SPOTS = {
  above: {dx: 0, dy: -11, textAnchor: "middle"},
  below: {dx: 0, dy: 12, textAnchor: "middle"},
  right: {dx: 8, dy: 0, textAnchor: "start"},
  left: {dx: -8, dy: 0, textAnchor: "end"},
  aboveRight: {dx: 6, dy: -9, textAnchor: "start"},
  belowLeft: {dx: -6, dy: 10, textAnchor: "end"},
  aboveLeft: {dx: -6, dy: -9, textAnchor: "end"},
  belowRight: {dx: 6, dy: 10, textAnchor: "start"},
  farAbove: {dx: 0, dy: -24, textAnchor: "middle", isFar: true},
  farBelow: {dx: 0, dy: 25, textAnchor: "middle", isFar: true},
  farRight: {dx: 22, dy: 0, textAnchor: "start", isFar: true},
  farLeft: {dx: -22, dy: 0, textAnchor: "end", isFar: true},
};

function withoutOverlap(wanted, inner) {
  // those labels for which there is room, each with its spot
  const rank = ({p: {n, side}}) =>
    side === state.side && n === state.token ? 2 : size(weightOf(n));
  const taken = wanted
      .filter(d => marked(d.p.n, d.p.side))
      .map(({x, y}) => [x - 4, y - 4, x + 4, y + 4]),
    written = [];
  const free = box =>
    box[0] >= -8 &&
    box[2] <= inner.width + 8 &&
    box[1] >= -14 &&
    box[3] <= inner.height + 14 &&
    !taken.some(b => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3]);
  const order = d3.sort(
    wanted.filter(d => marked(d.p.n, d.p.side)),
    d => -rank(d),
  );
  for (const d of order.slice(0, 120)) {
    // more would not find room
    const spot = Object.keys(SPOTS).find(name => free(boxOf(d, SPOTS[name])));
    if (!spot) continue;
    taken.push(boxOf(d, SPOTS[spot]));
    written.push({...d, spot});
  }
  return written;
}

function boxOf({x, y, width}, {dx, dy, textAnchor}) {
  // left, top, right, bottom of a label
  const left = x + dx - width * {start: 0, middle: 0.5, end: 1}[textAnchor];
  return [left, y + dy - 6, left + width, y + dy + 6];
}

export {dotColour, frame, joint, spots};
