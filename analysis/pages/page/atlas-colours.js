// What a colour says: each way of colouring gives a code 0 to 255 for each point of a head, the
// colour of each code, and a legend. A scale goes from the least to the greatest value; kinds have
// a colour each.

const KINDS = [
  "#4269d0",
  "#efb118",
  "#ff725c",
  "#6cc5b0",
  "#3ca951",
  "#ff8ab7",
  "#a463f2",
  "#97bbf5",
  "#9c6b4e",
  "#9498a0",
];
const SCALES = {
  // name of a colour that goes along a scale -> (table, row) -> value
  position: (table, row) => table.position[row],
  "position / length": (table, row) => table.position[row] / Math.max(1, table.length[row] - 1),
  "frequency (log)": (table, row) => Math.log10(Math.max(table.frequency[row], 1e-9)),
  row: (table, row, {columns}) => Math.floor(table.position[row] / columns),
  column: (table, row, {columns}) => table.position[row] % columns,
};

function colourNames(run) {
  const space = spaceOf(run),
    hasClasses = space.queries.word_classes.length || keysOf(space).word_classes.length;
  if (space.pictures)
    return ["query and key", "row", "column", "norm", ...(hasClasses ? ["class"] : []), "picture"];
  return [
    "query and key",
    "position",
    "position / length",
    "norm",
    "token type",
    "frequency (log)",
    "sentence",
    ...(hasClasses ? ["word class"] : []),
  ];
}

const colourOf = run => (colourNames(run).includes(state.colour) ? state.colour : "query and key");

async function paintOf(run, head) {
  // {codes: [points], colours: [[r g b], ...], legend} of a head
  const space = spaceOf(run),
    name = colourOf(run);
  if (name === "norm") return normPaint(run, head);
  const made = once(space, `codes of ${name}`, () => codesBy(space, name));
  return {codes: made.codes, ...coloursBy(made)};
}

function codesBy(space, name) {
  if (SCALES[name]) return scaleCodes(space, SCALES[name], name);
  const both = [space.queries, keysOf(space)];
  if (name === "query and key")
    return kindCodes(space, (_table, _row, side) => side, [say("query"), say("key")], true);
  if (name === "token type")
    return kindCodes(space, (table, row) => table.type[row], both[0].types);
  if (name === "word class" || name === "class") {
    const names = [...both[0].word_classes, say("no class")];
    return {
      ...kindCodes(
        space,
        (table, row) => (table.word_class[row] < 0 ? names.length - 1 : table.word_class[row]),
        names,
      ),
      isOpen: true,
    };
  }
  return kindCodes(space, (table, row) => table.sentence[row] % KINDS.length, null);
}

function everyPoint(space, value) {
  // [points] of value(table, row, side)
  const values = new Float32Array(pointsOf(space));
  let start = 0;
  [space.queries, keysOf(space)].forEach((table, side) => {
    for (let row = 0; row < countOf(table); row++) values[start + row] = value(table, row, side);
    start += countOf(table);
  });
  return values;
}

function kindCodes(space, kind, names, isSides = false) {
  // names: null of sentences, which take turns with the colours
  const inTurn = names ? "" : space.pictures ? say("Pictures") : say("Sentences");
  return {
    codes: Uint8Array.from(everyPoint(space, kind), k => Math.min(k, 254)),
    names: names ?? [],
    inTurn,
    isSides,
  };
}

function scaleCodes(space, value, label) {
  const values = everyPoint(space, (table, row) => value(table, row, space.pictures)),
    [low, high] = d3.extent(values),
    span = Math.max(high - low, 1e-12);
  return {
    codes: Uint8Array.from(values, x => Math.round(((x - low) / span) * 255)),
    low,
    high,
    label,
  };
}

async function normPaint(run, head) {
  // norms are of the head, in steps between its least and its greatest
  const codes = await codesOf(run, "norms", head),
    {low, step, steps} = spaceOf(run).packed.norms;
  const wide = (codes.wide ??= codes.map(code => Math.round((code * 255) / steps)));
  return {
    codes: wide,
    ...coloursBy({low: low[head], high: low[head] + steps * step[head], label: "norm"}),
  };
}

const KIND_MOST = 20; // kinds that a legend lists

function coloursBy({names, inTurn, isSides, isOpen, low, high, label}) {
  const of = colour => {
    const {r, g, b} = d3.rgb(colour);
    return [r, g, b];
  };
  if (names) {
    const own = isSides
      ? [colours().query, colours().key]
      : d3.range(256).map(k => KINDS[k % KINDS.length]);
    // the rest, which has no class, stands back
    if (isOpen) own[names.length - 1] = d3.interpolateRgb(colours().soft, colours().line)(0.7);
    return {colours: own.map(of), legend: {names: names.slice(0, KIND_MOST), inTurn, own}};
  }
  return {colours: d3.range(256).map(k => of(place(k, 256))), legend: {low, high, label}};
}

function legend({names, inTurn, own, low, high, label}) {
  // elements
  if (inTurn)
    return [make("span", {textContent: say`${inTurn} take turns with ${KINDS.length} colours.`})];
  if (names)
    return names.map((textContent, k) => {
      const item = make("span", {className: "item"}),
        mark = make("i", {className: "mark"}, {"aria-hidden": "true"});
      mark.style.background = own[k];
      item.append(mark, make("span", {className: "label", textContent}));
      return item;
    });
  const bar = make("i", {className: "ramp"}, {"aria-hidden": "true"});
  bar.style.background = `linear-gradient(to right, ${d3
    .range(9)
    .map(k => place(k * 32, 257))
    .join(", ")})`;
  const said = label.includes("log") ? x => number(10 ** x) : number;
  return [
    make("span", {textContent: `${say(label.replace(" (log)", ""))} ${said(low)}`}),
    bar,
    make("span", {textContent: said(high)}),
  ];
}

export {colourNames, colourOf, legend, paintOf};
