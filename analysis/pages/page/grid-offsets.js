// Relative positions in a picture: how much attention goes so many rows down and columns to the
// right.

// mean weights over the queries that have a patch there; offsets of more than half the grid have
// few
function byGridOffset() {
  const {rows, columns, first} = data.picture,
    patches = d3.range(rows * columns),
    row = n => Math.floor(n / columns);
  const pairs = patches.flatMap(i =>
    patches.map(j => ({i, j, down: row(j) - row(i), right: (j % columns) - (i % columns)})),
  );
  const near = pairs.filter(d => 2 * Math.abs(d.down) <= rows && 2 * Math.abs(d.right) <= columns);
  const weight = among => d3.mean(among, d => at(first + d.i, first + d.j));
  return d3
    .flatRollup(
      near,
      weight,
      d => d.down,
      d => d.right,
    )
    .map(([down, right, w]) => ({down, right, w}));
}

function gridOffsets(width) {
  const cells = byGridOffset(),
    palette = colours(),
    shade = shades(),
    most = d3.max(cells, d => size(d.w)) || 1;
  const [down, right] = ["down", "right"].map(name => d3.max(cells, d => d[name])),
    side = 52;
  const edge = Math.min((width - side - 8) / (2 * right + 1), 56);
  const about = d =>
    say`${signed(d.down)} down, ${signed(d.right)} right\nmean weight ${number(d.w)}\nuniform ${number(1 / S)}`;
  const cell = {
    x1: d => d.right - 0.5,
    x2: d => d.right + 0.5,
    y1: d => d.down - 0.5,
    y2: d => d.down + 0.5,
  };
  return [
    ofWeights(width - side, most, shade),
    plot({
      width: side + edge * (2 * right + 1) + 8,
      height: edge * (2 * down + 1) + 52,
      marginLeft: side,
      marginRight: 8,
      marginTop: 6,
      marginBottom: 46,
      x: {
        domain: [-right - 0.5, right + 0.5],
        label: say("columns to the right"),
        labelAnchor: "center",
        labelArrow: "none",
        ticks: d3.range(-right, right + 1),
        tickFormat: signed,
      },
      y: {
        domain: [down + 0.5, -down - 0.5],
        label: say("rows down"),
        labelAnchor: "center",
        labelArrow: "none",
        ticks: d3.range(-down, down + 1),
        tickFormat: signed,
      },
      marks: [
        Plot.rect(cells, {
          ...cell,
          fill: d => shade(d.w / most),
          stroke: palette.line,
          strokeOpacity: 0.4,
        }),
        Plot.rect([0], {
          x1: -0.5,
          x2: 0.5,
          y1: -0.5,
          y2: 0.5,
          fill: "none",
          stroke: palette.text,
          strokeDasharray: "3 2",
        }),
        Plot.tip(cells, Plot.pointer({x: "right", y: "down", ...tip(about)})),
      ],
    }),
  ];
}

export {byGridOffset, gridOffsets};
