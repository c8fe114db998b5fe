// Values: how long the vector is that each key offers, and how much of it is taken.

const lengthOf = j => values[state.head * S + j];

// by the chosen query, else by all on average: weight × length; of a head that is off nothing
const isTaken = () => (state.token === null || state.side === "query") && !isOff(state.head);
const takenOf = j =>
  lengthOf(j) * (state.token === null ? d3.mean(places.query, i => at(i, j)) : at(state.token, j));

const valuesOf = width => pair(() => [bars(width), ...mostTaken()]);

function mostTaken() {
  // in numbers: of which key most is taken
  if (!isTaken()) return [];
  const j = d3.greatest(places.key, takenOf),
    weight = state.token === null ? d3.mean(places.query, i => at(i, j)) : at(state.token, j);
  const said = say`${quoted(j, "key")}: weight ${weight.toFixed(3)} × length ${lengthOf(j).toFixed(2)} = ${takenOf(j).toFixed(2)}.`;
  return [
    make("p", {
      className: "fact",
      textContent:
        (state.token === null ? say("On average most is taken of ") : say("Most is taken of ")) +
        said,
    }),
  ];
}

function bars(width) {
  const palette = colours(),
    step = Math.max((width - 60) / S, 9),
    every = Math.ceil(11 / step);
  const rows = places.key.map(j => ({j, length: lengthOf(j), taken: isTaken() ? takenOf(j) : 0}));
  const ends = {x1: d => d.j - 0.4, x2: d => d.j + 0.4};
  return plot({
    width: Math.max(width, 60 + step * S),
    height: 260,
    marginLeft: 48,
    marginTop: 32,
    marginBottom: 84,
    marginRight: 8,
    x: {domain: [-0.6, S - 0.4], label: null},
    y: {
      label: say("↑ length of the value"),
      ticks: 4,
      domain: [0, 1.1 * d3.max(rows, d => d.length)],
    },
    marks: [
      Plot.rectY(rows, {...ends, y: "length", fill: palette.soft, fillOpacity: 0.35}),
      Plot.rectY(rows, {...ends, y: "taken", fill: palette.bar}),
      ...numbersAbove(rows, step),
      Plot.axisX({
        ticks: places.key.filter(j => j % every === 0),
        tickSize: 3,
        label: null,
        tickRotate: -60,
        textAnchor: "end",
        tickFormat: j => short(labels.key[j], 9),
        color: palette.key,
      }),
      Plot.ruleY([0], {stroke: palette.line}),
      ...keyed(
        [
          ...(isTaken()
            ? [[state.token === null ? say("■ taken on average") : say("■ taken"), palette.bar]]
            : []),
          [say("■ offered"), palette.soft],
        ],
        "top-right",
        -20,
      ),
      Plot.tip(rows, Plot.pointerX({x: "j", y: "length", ...tip(aboutValue)})),
    ],
  });
}

function numbersAbove(rows, step) {
  // the length of each where there is room, else of the longest
  const most = d3.max(rows, d => d.length),
    text = d => d.length.toFixed(step < 24 ? 0 : 1);
  return [
    Plot.text(
      rows.filter(d => step >= 14 || d.length === most),
      {x: "j", y: "length", dy: -6, fontSize: step < 24 ? 9 : 11, text, fill: colours().soft},
    ),
  ];
}

function aboutValue({j, length, taken}) {
  return say`value of ${quoted(j, "key")}\nlength ${length.toFixed(2)}${isTaken() ? say`, taken ${taken.toFixed(2)}` : ""}`;
}

export {lengthOf, valuesOf};
