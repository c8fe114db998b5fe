"use strict";
// Columns of queries and keys against position: the waves by which a head finds a distance.

const waves = width => pair(() => columnsOf(width));

function columnsOf(width) {
  const palette = colours();
  return d3.range(C).map(c => {
    const series = ["query", "key"].flatMap((side, s) => places[side].map(n => (
      {n, side, v: columns[(state.head * (T + S) + s * T + n) * C + c]})));
    const last = c === C - 1, where = {x: "n", y: "v"};
    return plot({
      width, height: last ? 136 : 104, marginLeft: 48, marginTop: 20, marginRight: 8, marginBottom: last ? 38 : 8,
      x: {domain: [0, Math.max(T, S) - 1], label: last ? say`position (${data.unit}s) →` : null,
          ticks: last ? Math.min(Math.max(T, S) - 1, 8) : 0,
          tickFormat: "d"},
      y: {label: say`↑ column ${c}, ${(100 * weight[state.head * C + c]).toFixed(0)} % of W_A`, ticks: 3},
      marks: [Plot.ruleY([0], {stroke: palette.line}), ...(c ? [] : sides(-13)),
              Plot.ruleX(state.token === null ? [] : [state.token], {stroke: palette.chosen, strokeWidth: 2}),
              Plot.lineY(series, {...where, z: "side", stroke: d => palette[d.side], strokeWidth: 1.6}),
              Plot.dot(series, {...where, r: T + S > 80 ? 1.5 : 2.2, fill: d => palette[d.side]}),
              Plot.tip(series, Plot.pointer({...where, ...tip(d => (
                say`${named(d.n, d.side)}\ncolumn ${c}: ${d.v.toPrecision(3)}`))}))]});
  });
}
