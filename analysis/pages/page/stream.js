// Lengths: of the residual stream of each token, layer by layer, and of what is written to it.

const WRITTEN = [
  ["the stream", null],
  ["attention writes", "attn_out"],
  ["source writes", "cross_out"],
  ["MLP writes", "mlp_out"],
];

const stream = width => pair(() => streamOf(width));

function streamOf(width) {
  const lengths = made.writes[new Map(WRITTEN).get(state.written)] ?? made.stream;
  const n = made.labels.length,
    rows = lengths.length / n,
    first = lengths === made.stream ? 0 : 1;
  const palette = colours(),
    left = 50,
    step = Math.max((width - left - 8) / n, 9),
    every = Math.ceil(11 / step);
  const ends = d3.extent(lengths),
    mix = d3.scaleSequential(ends, d3.interpolateRgbBasis(palette.ramp));
  const high = Math.max(14, Math.min(26, 260 / rows)),
    y = {y1: -0.5, y2: rows - 0.5};
  const cells = d3
    .range(rows)
    .flatMap(l => d3.range(n).map(t => ({l, t, length: lengths[l * n + t]})));
  const key = {type: "linear", domain: ends, interpolate: mix.interpolator()};
  const when = l => (l + first ? say`layer ${l + first - 1}` : say("before all layers"));
  const label = d => say`${when(d.l)}, ${made.labels[d.t]} (${d.t})\nlength ${d.length.toFixed(2)}`;
  return [
    legend(width - left, say("length of the vector"), key, ends, ".3~g"),
    plot({
      width: left + step * n + 8,
      height: 70 + high * rows,
      marginLeft: left,
      marginTop: 66,
      marginRight: 8,
      marginBottom: 4,
      x: {domain: [-0.5, n - 0.5]},
      y: {domain: [rows - 0.5, -0.5], axis: null},
      marks: [
        Plot.raster(lengths, {
          width: n,
          height: rows,
          x1: -0.5,
          x2: n - 0.5,
          ...y,
          imageRendering: "pixelated",
          fill: mix,
        }),
        Plot.rect(d3.range(n).filter(isChosenToken), {
          x1: t => t - 0.5,
          x2: t => t + 0.5,
          ...y,
          fill: "none",
          stroke: palette.chosen,
          strokeWidth: 2,
        }),
        ...borders({x: secondToken()}),
        Plot.axisX({
          ticks: d3.range(n).filter(t => t % every === 0),
          anchor: "top",
          tickRotate: -60,
          textAnchor: "start",
          tickSize: 3,
          label: null,
          tickFormat: t => short(made.labels[t], 9),
          color: palette.text,
        }),
        rowNames(rows, l => stageName(l + first)),
        step < 18
          ? null
          : Plot.text(
              cells.filter(d => isChosenToken(d.t)),
              {
                x: "t",
                y: "l",
                text: d => d.length.toPrecision(3),
                fontSize: step < 24 ? 9 : 11,
                fill: d => onto(mix(d.length)),
              },
            ),
        Plot.tip(cells, Plot.pointer({x: "t", y: "l", ...tip(label)})),
      ],
    }),
  ];
}

export {stream, WRITTEN};
