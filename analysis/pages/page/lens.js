// Guesses after every layer (logit lens): layers downwards, as the pass goes.

const lens = width => pair(() => lensOf(width));

function lensOf(width) {
  const n = made.labels.length,
    layers = made.lens.pieces.length / made.lens.n / n,
    palette = colours(),
    left = 50;
  const step = Math.max((width - left - 8) / n, isProjected ? 46 : 58),
    most = Math.floor(step / 7);
  const mix = d3.interpolateRgbBasis(palette.ramp),
    shade = d => mix(0.85 * d.all[0].p);
  const cells = d3
    .range(layers)
    .flatMap(l => d3.range(n).map(t => ({l, t, all: guessesAt(l * n + t, made.lens)})));
  const where = {x: "t", y: "l"};
  const ends = {x1: d => d.t - 0.48, x2: d => d.t + 0.48, y1: d => d.l - 0.46, y2: d => d.l + 0.46};
  const chosen = cells.filter(d => isChosenToken(d.t)),
    frame = {fill: "none", stroke: palette.chosen, strokeWidth: 2};
  const key = {type: "linear", domain: [0, 1], interpolate: p => mix(0.85 * p)};
  return [
    legend(width - left, say("probability of the likeliest token"), key, [0, 0.5, 1], ".0%"),
    plot({
      width: left + step * n + 8,
      height: 30 + 26 * layers,
      marginLeft: left,
      marginTop: 26,
      marginRight: 8,
      marginBottom: 4,
      x: {domain: [-0.5, n - 0.5], axis: null},
      y: {domain: [layers - 0.5, -0.5], axis: null},
      marks: [
        Plot.rect(cells, {...ends, fill: shade}),
        Plot.rect(chosen, {...ends, ...frame}),
        Plot.text(cells, {
          ...where,
          text: d => short(d.all[0].piece, most),
          fill: d => onto(shade(d)),
        }),
        Plot.text(d3.range(n), {
          x: d => d,
          y: -0.5,
          dy: -9,
          text: d => short(made.labels[d], most),
        }),
        ...borders({x: secondToken()}),
        rowNames(layers, stageName),
        Plot.tip(cells, Plot.pointer({...where, ...tip(aboutCell)})),
      ],
    }),
  ];
}

function aboutCell({l, t, all}) {
  // what is said of a cell under the pointer
  const when = l ? say`after layer ${l - 1}` : say("before all layers");
  return [
    say`${when}, at ${made.labels[t]} (${t})`,
    ...all.map(({piece, p}) => `${piece}  ${percent(p)}`),
  ].join("\n");
}

export {lens};
