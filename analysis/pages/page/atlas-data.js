// What the atlas knows: its runs, one atlas or two side by side, their spaces, and the state that
// all parts share. Points of a space are its queries, then its keys. Arrays of a head stand packed
// in elements of the page (pages/atlas.py) and are opened when they are first drawn. A head is the
// number layer * H + its place in the layer.

const page = JSON.parse(byId("data").textContent);

// state: run is a number, or "both"; heads has one for each run; point is {run, i} or null; lasso
// is {run, head, projection, corners: [[x, y], ...] in the turned picture, turn} or null; views has
// {x, y, k, a, e} for each run: middle, scale, two angles
const HOME = {x: 0, y: 0, k: 1, a: 0.6, e: 0.4};
const state = {
  run: 0,
  space: page.runs[0].spaces[0].name,
  heads: page.runs.map(() => 0),
  projection: "pca",
  colour: "query and key",
  sides: "queries and keys",
  only: "all heads",
  search: "",
  point: null,
  lasso: null,
  views: page.runs.map(() => ({...HOME})),
  drawing: "",
  dark: null,
};
const isDifference = () => false; // colours.js asks
const SIDES = ["queries and keys", "queries", "keys"];
const unitOf = run => (spaceOf(run).pictures ? say("picture") : say("sentence"));

const seenRuns = () => (state.run === "both" ? d3.range(page.runs.length) : [state.run]);
const spaceOf = run =>
  page.runs[run].spaces.find(space => space.name === state.space) ?? page.runs[run].spaces[0];
const spaceNumber = run => page.runs[run].spaces.indexOf(spaceOf(run));
const headsOf = run => spaceOf(run).L * spaceOf(run).H;
const nameOf = (run, head) => `L${Math.floor(head / spaceOf(run).H)}H${head % spaceOf(run).H}`;

// points: i counts the queries, then the keys

const keysOf = space => space.keys ?? space.queries;
const countOf = table => table.sentence.length;
const pointsOf = space => countOf(space.queries) + countOf(keysOf(space));
const isQuery = (space, i) => i < countOf(space.queries);
const tableOf = (space, i) => (isQuery(space, i) ? space.queries : keysOf(space));
const rowOf = (space, i) => (isQuery(space, i) ? i : i - countOf(space.queries));
const labelOf = (space, i) =>
  tableOf(space, i).vocabulary[tableOf(space, i).token[rowOf(space, i)]];
const sentenceOf = (space, i) => tableOf(space, i).sentence[rowOf(space, i)];
const positionOf = (space, i) => tableOf(space, i).position[rowOf(space, i)];
const placeOf = (space, position) =>
  space.pictures && {
    row: Math.floor(position / space.pictures.columns),
    column: position % space.pictures.columns,
  };

const kept = new WeakMap(); // space -> {name: what was made of its tables}
function once(space, name, work) {
  if (!kept.has(space)) kept.set(space, {});
  const own = kept.get(space);
  return (own[name] ??= work());
}

function rowsOfSentence(space, side, sentence) {
  // the rows of a sentence in a table, by position
  const all = once(space, `rows of ${side}`, () => {
    const table = side === "query" ? space.queries : keysOf(space);
    const rows = d3.group(d3.range(countOf(table)), row => table.sentence[row]);
    for (const own of rows.values()) own.sort((a, b) => table.position[a] - table.position[b]);
    return rows;
  });
  return all.get(sentence) ?? [];
}

function firstKeys(space) {
  // sentence -> the first row of its keys
  return once(space, "first keys", () => {
    const firsts = new Map();
    keysOf(space).sentence.forEach(
      (sentence, row) => firsts.has(sentence) || firsts.set(sentence, row),
    );
    return firsts;
  });
}

// arrays

const digits =
  "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;/=>?@^_`{|}~";
const worth = Object.fromEntries([...digits].map((digit, value) => [digit, value]));

function bytesOf(text) {
  // base 85: five digits are four bytes, the first of them the highest; a last group may be shorter
  const n = Math.floor((text.length * 4) / 5),
    bytes = new DataView(new ArrayBuffer(n + 4));
  for (let i = 0; i < text.length; i += 5) {
    let number = 0;
    for (let j = i; j < i + 5; j++) number = 85 * number + (worth[text[j]] ?? 84);
    bytes.setUint32((i / 5) * 4, number);
  }
  return new Uint8Array(bytes.buffer, 0, n);
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const opened = new Map(); // id of an element -> the codes in it, or the promise of them

function codesOf(run, name, head) {
  // codes of a head, a promise until they are open
  const id = `${run}.${spaceNumber(run)}.${name}.${head}`;
  if (!opened.has(id)) opened.set(id, open(id, spaceOf(run).packed[name].steps > 255));
  return opened.get(id);
}

async function open(id, isWide) {
  const bytes = await inflated(bytesOf(byId(id).textContent)),
    n = bytes.length / 2;
  byId(id).textContent = ""; // kept once, not twice
  if (!isWide) return keep(id, bytes);
  const codes = new Uint16Array(n);
  for (let i = 0; i < n; i++) codes[i] = bytes[i] | (bytes[n + i] << 8);
  return keep(id, codes);
}

function keep(id, codes) {
  opened.set(id, codes);
  return codes;
}

const projectionOf = run =>
  projectionsOf(run).includes(state.projection) ? state.projection : projectionsOf(run)[0];
function projectionsOf(run) {
  const {packed} = spaceOf(run);
  return Object.keys(page.projections).filter(
    name => packed[name] || (name === "pca3" && packed.third),
  );
}
const isDeepIn = run => projectionOf(run).endsWith("3"); // in three dimensions

async function placesOf(run, head, name = projectionOf(run)) {
  // {axes: [codes, ...], facts: [{low, step}, ...]} of a head in a projection
  const {packed} = spaceOf(run),
    isThird = name === "pca3" && !packed.pca3;
  const flat = await codesOf(run, isThird ? "pca" : name, head),
    facts = packed[isThird ? "pca" : name];
  const n = pointsOf(spaceOf(run)),
    axes = d3.range(facts.shape[0]).map(axis => flat.subarray(axis * n, (axis + 1) * n));
  const own = axes.map(() => ({low: facts.low[head], step: facts.step[head]}));
  if (isThird) {
    axes.push(await codesOf(run, "third", head));
    own.push({low: packed.third.low[head], step: packed.third.step[head]});
  }
  return {axes, facts: own};
}

async function strongestOf(run, head) {
  // (query row) -> [[key row, weight], ...]
  const space = spaceOf(run),
    n = countOf(space.queries),
    codes = await codesOf(run, "strongest", head);
  const {steps, shape, most} = space.packed.strongest,
    firsts = firstKeys(space),
    isWide = shape[0] > 2 * most;
  const keyAt = at => codes[at] | (isWide ? codes[2 * most * n + at] << 8 : 0),
    none = isWide ? 65535 : 255;
  return row =>
    d3
      .range(most)
      .map(k => k * n + row)
      .filter(at => keyAt(at) !== none)
      .map(at => [
        firsts.get(space.queries.sentence[row]) + keyAt(at),
        (codes[most * n + at] / steps) ** 2,
      ]);
}

async function pixelsOf(run, number) {
  // a canvas with a picture, drawn once
  const {width, height} = spaceOf(run).pictures,
    id = `${run}.${spaceNumber(run)}.picture.${number}`;
  if (!opened.has(id))
    opened.set(
      id,
      open(id, false).then(bytes => keep(id, canvasWith(bytes, width, height))),
    );
  return opened.get(id);
}

function canvasWith(bytes, width, height) {
  // red, green and blue of each pixel
  const canvas = make("canvas", {width, height}),
    image = new ImageData(width, height);
  for (let i = 0; i < width * height; i++)
    image.data.set([...bytes.subarray(3 * i, 3 * i + 3), 255], 4 * i);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// the search: which points light up

const plain = label => label.toLowerCase().replace(/^(##|[␣ĠĊ▁]+)(?=.)/u, "");

function litBy(space, words) {
  // [points] 1 where the token is the one that is searched, and how it was compared
  const sought = plain(words.trim().replaceAll(" ", "␣"));
  const same =
    space.queries.vocabulary.some(label => plain(label) === sought) ||
    keysOf(space).vocabulary.some(label => plain(label) === sought);
  const fits = label => (same ? plain(label) === sought : plain(label).includes(sought));
  const lit = new Uint8Array(pointsOf(space));
  let start = 0;
  for (const table of [space.queries, keysOf(space)]) {
    const own = table.vocabulary.map(fits);
    table.token.forEach((token, row) => {
      lit[start + row] = own[token];
    });
    start += countOf(table);
  }
  return {lit, same};
}

function litOf(run) {
  // what is lit: the tokens that are searched, or else those in the lasso; null: nothing is
  const space = spaceOf(run);
  const words = state.search.trim();
  if (words) return once(space, `searched ${words}`, () => litBy(space, words)).lit;
  return state.lasso?.run === run ? (state.lasso.lit ?? null) : null;
}

const lists = new WeakMap();
function litList(run) {
  // the points that are lit, or null
  const lit = litOf(run);
  if (lit && !lists.has(lit))
    lists.set(
      lit,
      d3.range(lit.length).filter(i => lit[i]),
    );
  return lit && lists.get(lit);
}

// numbers as they are said

const percent = share =>
  share === null
    ? "–"
    : share > 0 && share < 0.0005
      ? "< 0.1%"
      : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
const number = x =>
  x === null ? "–" : Math.abs(x) >= 1000 ? d3.format(",.0f")(x) : `${+x.toPrecision(3)}`;
const signed = x => (x === null ? "–" : x.toFixed(2).replace("-", "−"));
const count = n => d3.format(",")(n);

export {
  codesOf,
  count,
  countOf,
  headsOf,
  HOME,
  isDeepIn,
  isDifference,
  isQuery,
  keysOf,
  labelOf,
  litBy,
  litList,
  litOf,
  nameOf,
  number,
  once,
  page,
  percent,
  pixelsOf,
  placeOf,
  placesOf,
  pointsOf,
  positionOf,
  projectionOf,
  projectionsOf,
  rowOf,
  rowsOfSentence,
  seenRuns,
  sentenceOf,
  SIDES,
  signed,
  spaceOf,
  state,
  strongestOf,
  tableOf,
  unitOf,
};
