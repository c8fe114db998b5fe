// Queries and keys along the singular directions of W_A (columns of Q and K), against position: the
// waves by which a head finds a distance.

// a wave is told where noise has one as strong in less than one of a thousand texts
const RARE = 0.001;

const waves = width => pair(() => columnsOf(width));

function columnsOf(width) {
  const palette = colours();
  return d3.range(C).map(c => {
    const series = ["query", "key"].flatMap((side, s) =>
      places[side].map(n => ({n, side, v: columns[(state.head * (T + S) + s * T + n) * C + c]})),
    );
    const last = c === C - 1,
      wave = waveOf(c),
      where = {x: "n", y: "v"};
    return plot({
      width,
      height: last ? 136 : 104,
      marginLeft: 48,
      marginTop: 20,
      marginRight: 8,
      marginBottom: last ? 38 : 8,
      x: {
        domain: [0, Math.max(T, S) - 1],
        label: last ? say`position (${data.unit}s) →` : null,
        ticks: last ? Math.min(Math.max(T, S) - 1, 8) : 0,
        tickFormat: "d",
      },
      y: {
        label:
          say`↑ direction ${c}, ${(100 * weight[state.head * C + c]).toFixed(0)}% of ‖W_A‖²` +
          (wave ? say`: a wave of ${wave.toFixed(1)} ${data.unit}s` : ""),
        ticks: 3,
      },
      marks: [
        Plot.ruleY([0], {stroke: palette.line}),
        ...(c ? [] : sides(-13)),
        Plot.ruleX(state.token === null ? [] : [state.token], {
          stroke: palette.chosen,
          strokeWidth: 2,
        }),
        Plot.lineY(series, {...where, z: "side", stroke: d => palette[d.side], strokeWidth: 1.6}),
        Plot.dot(series, {...where, r: T + S > 80 ? 1.5 : 2.2, fill: d => palette[d.side]}),
        Plot.tip(
          series,
          Plot.pointer({
            ...where,
            ...tip(d => say`${named(d.n, d.side)}\ndirection ${c}: ${d.v.toPrecision(3)}`),
          }),
        ),
      ],
    });
  });
}

// Of a column the length of its wave, in tokens, if queries and keys have it and noise has not; 0
// for none. What runs through the whole text once is no wave. Probability of the strongest
// frequency in noise: Fisher 1929. In tiny- and deep-roberta, 64 tokens, 18 of 192 columns have
// one; with positions shuffled, six times, 0 of 1,152.
const knownWaves = new WeakMap(); // columns -> those that were asked for
function waveOf(c) {
  if (!knownWaves.has(columns)) knownWaves.set(columns, new Map());
  const known = knownWaves.get(columns),
    number = state.head * C + c;
  if (!known.has(number)) known.set(number, sharedWave(c));
  return known.get(number);
}

function sharedWave(c) {
  const sides = ["query", "key"].map((side, s) =>
    strongestWave(places[side].map(n => columns[(state.head * (T + S) + s * T + n) * C + c])),
  );
  const [{period, chance}, key] = sides;
  return !isCross && period === key.period && period < T && Math.max(chance, key.chance) < RARE
    ? period
    : 0;
}

function strongestWave(values) {
  // {period, chance: how often noise has one as strong}
  const n = values.length,
    mean = d3.mean(values),
    count = Math.floor((n - 1) / 2);
  const powers = d3.range(1, count + 1).map(k => {
    const part = turn => d3.sum(values, (x, t) => (x - mean) * turn((2 * Math.PI * k * t) / n));
    return part(Math.cos) ** 2 + part(Math.sin) ** 2;
  });
  const k = d3.greatestIndex(powers),
    share = powers[k] / d3.sum(powers);
  // no less than the exact one
  return {period: n / (k + 1), chance: Math.min(1, count * (1 - share) ** (count - 1))};
}

function columnsHint() {
  const waves = d3.range(C).filter(waveOf);
  return (
    say(
      "How <b class=query>queries</b> and <b class=key>keys</b> change from token to token, in the first singular directions of W_A = W_Q W_Kᵀ, the matrix by ",
    ) +
    say(
      "which a query scores a key. Percent: the direction’s share of ‖W_A‖², the sum of squared singular values. ",
    ) +
    (waves.length
      ? say`Regular waves, in queries and keys alike: direction ${waves.join(", ")}. A wave that is shifted between the two looks a fixed number of ${data.unit}s away.`
      : isCross
        ? ""
        : say(
            "A head that reads positions shows a regular wave here. None stands out from noise here.",
          ) + (T < 60 ? say(" A longer one, of 60 tokens or so, shows more.") : ""))
  );
}

export {columnsHint, waves};
