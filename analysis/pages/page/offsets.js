// Relative positions: how much attention goes how far to the left or right.

function offsets(width) {
  const palette = colours(),
    {token, side} = state;
  const own = d3
    .range(R)
    .map(r => ({t: r - reach, w: profile[state.head * R + r], u: data.uniform[r]}));
  const chosen =
    token === null
      ? []
      : places.key
          .map(n => ({t: side === "query" ? n - token : token - n, w: weightOf(n)}))
          .filter(d => Math.abs(d.t) <= reach && !(data.causal && d.t > 0));
  const uniform = isDifference() ? [] : own.map(d => d.u);
  const most = d3.max([...own, ...chosen].map(d => d.w).concat(uniform), size) || 1;
  const about = d =>
    [
      say`offset ${signed(d.t)} ${data.unit}s`,
      say`mean weight ${number(d.w)}`,
      ...(isDifference() ? [] : [say`uniform ${number(d.u)}`]),
    ].join("\n");
  return plot({
    width,
    height: Math.min(width * 0.75, 460),
    marginLeft: isDifference() ? 60 : 48,
    marginBottom: 62,
    marginTop: 26,
    marginRight: 8,
    x: {
      domain: [-reach - 0.6, reach + 0.6],
      label: say`← left   offset: key − query (${data.unit}s)   right →`,
      labelAnchor: "center",
      ticks: Math.min(R, 11),
      tickFormat: signed,
    },
    y: {
      domain: [isDifference() ? -1.08 * most : 0, 1.08 * most],
      ticks: 5,
      label: isDifference()
        ? say("↑ change of the mean weight")
        : say("↑ mean weight on the key at that offset"),
    },
    marks: [
      Plot.rectY(own, {x1: d => d.t - 0.38, x2: d => d.t + 0.38, y: "w", fill: palette.bar}),
      ...keyed(
        [
          [say("■ this head"), palette.bar],
          ...(isDifference() ? [] : [[say("┅ uniform"), palette.text]]),
          ...(token === null ? [] : [[say("● chosen"), palette.chosen]]),
        ],
        "bottom-left",
        36,
      ),
      Plot.ruleX([0], {stroke: palette.line}),
      Plot.ruleY([0], {stroke: palette.line}),
      Plot.line(isDifference() ? [] : own, {
        x: "t",
        y: "u",
        stroke: palette.text,
        strokeDasharray: "4 3",
        strokeWidth: 1.3,
      }),
      Plot.dot(chosen, {x: "t", y: "w", fill: palette.chosen, stroke: palette.card, r: 4}),
      Plot.tip(own, Plot.pointerX({x: "t", y: "w", ...tip(about)})),
    ],
  });
}

export {offsets};
