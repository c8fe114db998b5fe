// What the page knows: its runs, and the state that all views share. A run is one model on one
// text; a page has one, or two to compare. Every run has parts: of an encoder-decoder encoder,
// decoder and cross, of others one, "". The page's program is the files that explore.py lists, one
// after the other. Plot draws; d3 counts and mixes colours.

export let page; // {runs: [run, ...], live: null, or what a server says of itself}
export let current; // the run that views read
export let version = 0; // counts what was shown: every view is drawn anew
export let data, T, S, L, H, C, R, reach, isCross, hasOffsets, labels, places, made;
export let pattern, plane, columns, profile, share, weight, values, total;
// of a pair of texts the first query and the first key of the second, {query, key}, query null in
// cross; else null
export let second;

// state: run is the number of the run that is looked at, or "difference"; head null asks for the
// sharpest one; mlp is the layer of the MLP whose writing is told instead of the head's, or null;
// token is the chosen one, or null; side is what is shown of it; between is which text of a pair
// looks at which; view is the one that takes the whole width; step is what the overview explains;
// sort, only, layer say which heads are listed; heads, which of a layer are shown; told, how it is
// shown where a guess comes from; rows, of which tokens guesses are listed; walk is the number of
// the step of the walk, 0 where there is none; partner is the key beside the chosen query, null
// the one with most weight; pushed is the token of whose guess it is told what it depends on, or
// null; dark is null while the system decides

const state = {
  run: 0,
  part: "",
  head: null,
  mlp: null,
  token: null,
  side: "query",
  view: null,
  step: null,
  walk: 0,
  partner: null,
  pushed: null,
  dark: null,
  thumbs: "attention",
  sort: "by layer",
  only: "all offsets",
  layer: "all layers",
  kind: "all kinds",
  heads: "",
  told: "flow",
  rows: "told",
  stage: "normalised",
  colour: "query and key",
  between: "all",
  written: "the stream",
  way: "integrated gradients",
  chance: "the model",
  guess: "likeliest guess",
};
const listeners = []; // each is called with the state after every change

const partsOf = run => run.parts ?? {"": run};
const partOf = (run, name = state.part) => partsOf(run)[name];
export let inside = false; // while a picture of two runs shows one of them
export let apart = ""; // why two runs cannot be subtracted: both are shown then, one below the other
const isPair = () => state.run === "difference" && !inside;
const isDifference = () => isPair() && !apart;
const isBoth = () => isPair() && Boolean(apart);
const titleOf = run => `${run.model}: ${run.text}`;

// arrays, unpacked when a part is first looked at

const opened = new WeakMap();

function open(part) {
  if (!opened.has(part)) opened.set(part, unpackAll(part.arrays));
  return opened.get(part);
}

function openOutputs(outputs) {
  // labels and numbers as they are; guesses: {pieces: [T G], p}
  if (!outputs || opened.has(outputs)) return opened.get(outputs);
  const result = {
    ...outputs,
    stream: unpack(outputs.stream),
    writes: unpackAll(outputs.writes),
    pieces: outputs.pieces?.map(readable),
    own: outputs.own?.map(readable),
  };
  for (const name of ["guesses", "lens"]) {
    if (outputs[name])
      result[name] = {
        ...outputs[name],
        p: unpack(outputs[name].p),
        n: outputs[name].p.shape.at(-1),
      };
  }
  const {pushes, written} = outputs;
  if (written) result.written = openWritten(written);
  if (pushes) result.pushes = openPushes(pushes);
  opened.set(outputs, result);
  return result;
}

const openPushes = pushes => ({
  ...pushes,
  tokens: unpack(pushes.tokens),
  heads: unpack(pushes.heads),
});
// a token of bytes, none of them a letter
const readable = piece => (/^�+$/.test(piece) ? say("part of a character") : piece);
const unpackAll = arrays =>
  Object.fromEntries(Object.entries(arrays).map(([name, packed]) => [name, unpack(packed)]));

function unpack({low, high, bits, shape, data}) {
  // whole steps between the least and the greatest value of each part
  const bytes = bytesOf(data),
    length = shape.reduce((a, b) => a * b, 1);
  const codes = {8: () => bytes, 12: () => inPairs(bytes), 16: () => new Uint16Array(bytes.buffer)}[
    bits
  ]();
  const size = length / low.length,
    numbers = new Float32Array(length);
  low.forEach((least, part) => {
    const step = (high[part] - least) / (2 ** bits - 1);
    for (let i = part * size; i < (part + 1) * size; i++) numbers[i] = least + codes[i] * step;
  });
  return numbers;
}

function bytesOf(base64) {
  const text = atob(base64),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function inPairs(bytes) {
  // 12-bit codes, two in three bytes, the lower bits first
  const codes = new Uint16Array((bytes.length / 3) * 2);
  for (let pair = 0; 3 * pair < bytes.length; pair++) {
    const both = bytes[3 * pair] | (bytes[3 * pair + 1] << 8) | (bytes[3 * pair + 2] << 16);
    codes[2 * pair] = both & 4095;
    codes[2 * pair + 1] = both >> 12;
  }
  return codes;
}

// T queries, S keys, L layers, H heads, C columns, R offsets; only in cross are queries and keys of
// different texts

function look(run) {
  // makes a run's part the one that views read
  current = run;
  data = partOf(run);
  isCross = "keys" in data;
  second = data.second ?? null;
  hasOffsets = "uniform" in data; // not between two texts, nor in a picture
  labels = {query: data.labels, key: data.keys ?? data.labels};
  [T, S, L, H] = [labels.query.length, labels.key.length, data.layers, data.heads];
  places = {query: d3.range(T), key: d3.range(S)};
  ({pattern, plane, columns, share, weight, values, total} = open(data));
  // in cross the queries are the decoder's
  made = openOutputs(data.outputs ?? run.parts.decoder.outputs);
  profile = !hasOffsets ? null : open(data).profile;
  C = data.arrays.columns.shape[3];
  R = !hasOffsets ? 0 : data.uniform.length;
  reach = (R - 1) / 2;
}

function within(n, draw) {
  // what `draw` gives while views read one run of two
  const {head, token} = state,
    [layer, own] = [layerOf(head), head % H];
  const place =
    token !== null && n === 0 && isDifference()
      ? differences(page.runs[0]).aligned[state.side][token]
      : token;
  inside = true;
  try {
    if (!partOf(page.runs[n])) return note(say("This model has no such part."));
    look(page.runs[n]);
    if (layer >= L || own >= H) return note(say`This model has no head L${layer}H${own}.`);
    Object.assign(state, {
      head: layer * H + own,
      token: place >= 0 && place < labels[state.side].length ? place : null,
    });
    return draw();
  } finally {
    inside = false;
    Object.assign(state, {head, token});
    lookAtState();
  }
}

const note = textContent => make("p", {className: "none", textContent});

function lookAtState() {
  // of a difference: the second run, its attention less that of the first
  look(page.runs[runNumber()]);
  if (isDifference()) ({pattern, profile} = differences(page.runs[0]));
}

const runNumber = () => (state.run !== "difference" ? state.run : apart ? 0 : 1);

// part of the second run -> its arrays less those of the first, and who stands for whom
const subtracted = new WeakMap();

function differences(first) {
  if (!subtracted.has(data)) {
    const part = partOf(first),
      of = side => partners((side === "key" && part.keys) || part.labels, labels[side]);
    const aligned = {query: of("query"), key: of("key")};
    subtracted.set(data, {
      pattern: lessPattern(part, aligned),
      profile: lessProfile(part),
      aligned,
    });
  }
  return subtracted.get(data);
}

function whyNoDifference() {
  // "" where weights can be subtracted one by one
  const [a, b] = page.runs.map(run => partOf(run));
  if (!a || !b) return say("the two models have different parts");
  const same = (x, y) => x.join() === y.join();
  if (!same([a.layers, a.heads], [b.layers, b.heads]))
    return say("the two models have different heads");
  if (a.picture && !same(a.arrays.pattern.shape, b.arrays.pattern.shape))
    return say("the two pictures have different patches");
  return "";
}

// changes

function set(changes, isStep = true) {
  // isStep: the browser's back button comes back to what was before
  const other = changes.part !== undefined && changes.part !== state.part,
    isRun = "run" in changes;
  Object.assign(
    state,
    "head" in changes || other ? {mlp: null, partner: null} : {},
    "token" in changes ? {partner: null} : {},
    other ? {head: null, token: null, side: "query"} : {},
    changes,
  );
  if (other || isRun || "head" in changes || "token" in changes) settle();
  if (!("head" in changes) && ("only" in changes || "layer" in changes)) chooseListed();
  if (isRun) writeParts();
  if (other || isRun) writeTokens();
  isNewStep ||= isStep;
  update();
  if (isStep) keepChoice();
  listeners.forEach(listener => listener(state));
}

function chooseListed() {
  // the sharpest of the heads that are listed, if the chosen one is not among them
  const heads = listed();
  if (heads.length && !heads.includes(state.head)) state.head = d3.greatest(heads, sharpness);
}

function show(next) {
  // other data in place of all; what was chosen stays, where it is still there
  page = next;
  version++;
  settle();
  writePage();
  writeTokens();
  update();
}

function settle() {
  // looks at what the state says, or at the nearest that there is
  const numbers = [...page.runs.keys(), ...(page.runs.length > 1 ? ["difference"] : [])];
  if (!numbers.includes(state.run)) state.run = 0;
  const names = Object.keys(partsOf(page.runs[state.run === "difference" ? 0 : state.run]));
  if (!names.includes(state.part)) state.part = names[0];
  apart = page.runs.length > 1 ? whyNoDifference() : "";
  lookAtState();
  if (!(state.head >= 0 && state.head < L * H) || state.head === null) state.head = sharpest();
  if (state.mlp >= L) state.mlp = null;
  if (!BETWEEN().includes(state.between)) state.between = "all";
  if (state.token !== null) state.token = Math.min(state.token, labels[state.side].length - 1);
}

export {
  bytesOf,
  differences,
  isBoth,
  isDifference,
  isPair,
  listeners,
  note,
  open,
  openPushes,
  partOf,
  partsOf,
  readable,
  runNumber,
  set,
  settle,
  show,
  state,
  titleOf,
  unpack,
  within,
};
