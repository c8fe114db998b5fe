// The attention matrix: one image, a row for each query, a column for each key.

function matrix(width) {
  const cells = places.query
    .flatMap(i => places.key.map(j => ({i, j})))
    .filter(d => isShown(d.i, d.j));
  const palette = colours(),
    most = largest(state.head),
    shade = shades();
  const left = 92,
    edge = Math.max((width - left - 8) / S, 2.5),
    hasWords = edge >= 40,
    top = hasWords ? 58 : 44;
  const whole = {x1: -0.5, x2: S - 0.5, y1: -0.5, y2: T - 0.5};
  const ticks = (side, space, tickFormat) => ({
    ticks: places[side].filter(n => n % Math.ceil(space / edge || 1) === 0),
    tickSize: 3,
    label: null,
    tickFormat,
    color: palette[side],
  });
  const corner = (text, fill, dx, dy) =>
    Plot.text([text], {
      frameAnchor: "top-left",
      textAnchor: dx ? "end" : "start",
      dx,
      dy,
      fill,
      fontWeight: 600,
    });
  return [
    ofWeights(width - left, most, shade),
    edge > 2.5 ? null : tooMany(say`${S} keys are wider than this box`),
    plot({
      width: left + edge * S + 8,
      height: top + edge * T + 8,
      marginLeft: left,
      marginTop: top,
      marginRight: 8,
      marginBottom: 8,
      x: {domain: [-0.5, S - 0.5]},
      y: {domain: [T - 0.5, -0.5]},
      marks: [
        Plot.axisX({
          ...ticks("key", hasWords ? 0 : 10 + 7 * `${S}`.length, n =>
            hasWords ? `${short(labels.key[n], Math.floor(edge / 7))}\n${n}` : `${n}`,
          ),
          anchor: "top",
        }),
        Plot.axisY(ticks("query", 12, n => `${short(labels.query[n], 9)}  ${n}`)),
        corner(say("key →"), palette.key, 0, 10 - top),
        corner(say("↓ query"), palette.query, -8, -14),
        Plot.raster(
          places.query.flatMap(i => places.key.map(j => (isShown(i, j) ? at(i, j) : NaN))),
          {
            width: S,
            height: T,
            ...whole,
            imageRendering: "pixelated",
            fill: w => (isNaN(w) ? null : shade(w / most)),
          },
        ),
        ...borders({x: second?.key, y: second?.query}),
        Plot.frame({stroke: palette.line}),
        Plot.rect([0], {
          ...whole,
          fill: "none",
          stroke: palette.chosen,
          strokeWidth: 2,
          className: "outline",
        }),
        Plot.tip(
          cells,
          Plot.pointer({
            x: "j",
            y: "i",
            ...tip(
              d =>
                say`query ${quoted(d.i, "query")} → key ${quoted(d.j, "key")}\nweight ${number(at(d.i, d.j))}`,
            ),
          }),
        ),
      ],
    }),
  ];
}

function ofWeights(width, most, shade) {
  // the legend
  if (isDifference()) {
    const color = {type: "linear", domain: [-most, most], interpolate: t => shade(2 * t - 1)};
    return legend(
      width,
      say`weight, “${short(say(runName(1)))}” less “${short(say(runName(0)))}”`,
      color,
      [-most, 0, most],
      "+.3f",
    );
  }
  const color = {type: "linear", domain: [0, most], interpolate: shade};
  return legend(width, say("weight, up to this head's largest"), color, [0, most / 4, most], ".3f");
}

function markRow(box) {
  // the chosen token's row, as a query, or column, as a key
  if (isBoth()) return box.querySelectorAll(".outline").forEach(outline => outline.remove());
  const outline = box.querySelector(".outline rect"),
    {token, side} = state,
    drawn = box.lastChild;
  const [x, y] = ["x", "y"].map(name => drawn.scale(name).apply);
  const ends = (along, apply) =>
    (along ? [-0.5, along - 0.5] : [token - 0.5, token + 0.5]).map(apply);
  const [[x1, x2], [y1, y2]] = [ends(side === "query" && S, x), ends(side === "key" && T, y)];
  const attributes = {
    visibility: token === null ? "hidden" : "visible",
    x: x1,
    width: x2 - x1,
    y: y1,
    height: y2 - y1,
  };
  for (const [name, value] of Object.entries(attributes)) outline.setAttribute(name, value);
}

export {markRow, matrix, ofWeights};
