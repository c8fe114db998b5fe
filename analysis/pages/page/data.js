"use strict";
// What the page knows: its runs, and the state that all views share. A run is one model on one text; a page has one,
// or two to compare. Every run has parts: of an encoder-decoder encoder, decoder and cross, of others one, "".
// The page's program is the files that explore.py lists, one after the other. Plot draws; d3 counts and mixes colours.

let page;  // {runs: [run, ...], live: null, or what a server says of itself}
let version = 0;  // counts what was shown: every view is drawn anew
let data, T, S, L, H, C, R, reach, isCross, labels, places, pattern, plane, columns, profile, share, weight;

// state: run is the number of the run that is looked at, or "difference"; token is the chosen one, or null; side is
// what is shown of it; dark is null while the system decides

const state = {run: 0, part: "", head: 0, token: null, side: "query", stage: "normalised", thumbs: "attention",
               dark: null};
const listeners = [];  // each is called with the state after every change

const partsOf = run => run.parts ?? {"": run};
const partOf = (run, name = state.part) => partsOf(run)[name];
const isDifference = () => state.run === "difference";
const titleOf = run => `${run.model}: ${run.text}`;

// arrays, unpacked when a part is first looked at

const opened = new WeakMap();

function open(part) {
  if (!opened.has(part)) {
    const arrays = Object.entries(part.arrays).map(([name, packed]) => [name, unpack(packed)]);
    opened.set(part, Object.fromEntries(arrays));
  }
  return opened.get(part);
}

function unpack({low, high, data}) {  // 16-bit steps between the least and the greatest value of each part
  const codes = new Uint16Array(Uint8Array.from(atob(data), c => c.charCodeAt(0)).buffer);
  const size = codes.length / low.length, values = new Float32Array(codes.length);
  low.forEach((least, part) => {
    const step = (high[part] - least) / 65535;
    for (let i = part * size; i < (part + 1) * size; i++) values[i] = least + codes[i] * step;
  });
  return values;
}

// T queries, S keys, L layers, H heads, C columns, R offsets; only in cross are queries and keys of different texts

function look(run) {  // makes a run's part the one that views read
  data = partOf(run);
  isCross = "keys" in data;
  labels = {query: data.labels, key: data.keys ?? data.labels};
  [T, S, L, H] = [labels.query.length, labels.key.length, data.layers, data.heads];
  places = {query: d3.range(T), key: d3.range(S)};
  ({pattern, plane, columns, share, weight} = open(data));
  profile = isCross ? null : open(data).profile;
  C = data.arrays.columns.shape[3];
  R = isCross ? 0 : data.uniform.length;
  reach = (R - 1) / 2;
}

function within(run, draw) {  // what `draw` gives while views read another run
  look(page.runs[run]);
  const result = draw();
  lookAtState();
  return result;
}

function lookAtState() {  // of a difference: the second run, its attention less that of the first
  look(page.runs[isDifference() ? 1 : state.run]);
  if (!isDifference()) return;
  const before = open(partOf(page.runs[0]));
  pattern = pattern.map((weight, i) => weight - before.pattern[i]);
  profile = profile && profile.map((weight, i) => weight - before.profile[i]);
}

function whyNoDifference() {  // "" where weights can be subtracted one by one
  if (page.runs.length < 2) return "there is one run";
  const [a, b] = page.runs.map(run => partOf(run));
  if (!a || !b) return "the two models have different parts";
  const same = (x, y) => x.join() === y.join();
  if (!same([a.layers, a.heads], [b.layers, b.heads])) return "the two models have different heads";
  if (!same(a.arrays.pattern.shape, b.arrays.pattern.shape)) return "the two texts differ in length";
  return "";
}

// changes

function set(changes) {
  const other = changes.part !== undefined && changes.part !== state.part;
  Object.assign(state, changes, other ? {head: 0, token: null, side: "query"} : {});
  if (other || "run" in changes) settle();
  update();
  listeners.forEach(listener => listener(state));
}

function show(next) {  // other data in place of all; what was chosen stays, where it is still there
  page = next;
  version++;
  settle();
  writePage();
  update();
}

function settle() {  // looks at what the state says, or at the nearest that there is
  const numbers = [...page.runs.keys(), ...(page.runs.length > 1 ? ["difference"] : [])];
  if (!numbers.includes(state.run)) state.run = 0;
  const names = Object.keys(partsOf(page.runs[isDifference() ? 1 : state.run]));
  if (!names.includes(state.part)) state.part = names[0];
  if (isDifference() && whyNoDifference()) state.run = 1;
  lookAtState();
  if (state.head >= L * H) state.head = 0;
  if (state.token !== null) state.token = Math.min(state.token, labels[state.side].length - 1);
  writeTokens();
}
