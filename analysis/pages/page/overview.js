"use strict";
// The whole pass, from tokens to guesses, as boxes with their shapes: the layers, inside the chosen layer what writes to
// the stream, inside the chosen head its products. A box explains itself with numbers of this text.

const by = (...sizes) => sizes.join(" × ");
const run = () => current;

function boxesOf() {  // three rows: [{title, boxes: [{step, name, shape, head}]}]
  const {d_model: D, d_mlp: M, n_vocab: V} = run().sizes, d = data.width, n = data.layers;
  const first = {step: "embed", name: "tokens → vectors", shape: by(T, D)};
  const last = made.guesses ? {step: "unembed", name: "vectors → guesses", shape: by(T, V)}
    : {step: "unembed", name: "the stream as it ends", shape: by(T, D)};
  const layers = d3.range(n).map(layer => ({step: `layer${layer}`, name: `layer ${layer}`, shape: by(T, D)}));
  const norm = run().sizes.rms_norm ? "RMS norm" : "norm";
  const attention = {step: "attention", name: `attention, ${H} heads`, shape: `${by(T, T)} each`};
  const source = page.runs[0].parts && state.part !== "encoder" ? [
    {step: "source", name: `attention to the source, ${H} heads`, shape: by(T, partsOf(run()).cross.keys.length)}] : [];
  const mlp = {step: "mlp", name: "MLP", shape: by(T, M)};
  const writers = [attention, ...source, mlp];
  const ordered = writers.flatMap(box => {
    const own = {step: `norm-${box.step}`, name: norm, shape: by(T, D)}, add = {step: `add-${box.step}`, name: "+ stream", shape: by(T, D)};
    return run().sizes.pre_norm ? [own, box, add] : [box, add, own];
  });
  const head = [{step: "q", name: "queries X W_Q", shape: by(T, d)}, {step: "k", name: "keys X W_K", shape: by(S, d)},
                {step: "scores", name: "scores Q Kᵀ / √d", shape: by(T, S)}, {step: "softmax", name: "weights A", shape: by(T, S)},
                {step: "v", name: "values V = X W_V", shape: by(S, d)}, {step: "mix", name: "mix A V", shape: by(T, d)},
                {step: "join", name: "all heads, W_O", shape: by(T, D)}];
  return [{title: "The whole pass", boxes: [first, ...layers, last]},
          {title: `Inside layer ${layerOf(state.head)}`, boxes: ordered},
          {title: `Inside head ${nameOf(state.head)}`, boxes: head}];
}

const overview = () => [...boxesOf().map(drawnRow), ...pair(explanation)];  // shapes are the same in both runs

function drawnRow({title, boxes}) {
  const row = make("div", {className: "row", role: "group"}, {"aria-label": title});
  row.append(make("h3", {textContent: title}), ...boxes.flatMap(({step, name, shape}, n) => {
    const isOpen = step === `layer${layerOf(state.head)}`, id = `step-${step}`;
    const button = make("button", {type: "button", className: "step", id, title: firstSentence(step),
                                   onclick: () => choose(step)}, {"aria-pressed": step === state.step || isOpen});
    if (isOpen) button.classList.add("open");
    button.append(make("span", {textContent: name}), make("small", {textContent: shape}));
    return [...(n ? [make("span", {className: "arrow", textContent: "→"}, {"aria-hidden": "true"})] : []), button];
  }));
  return row;
}

function choose(step) {  // a layer opens with the head of the same number in it
  const layer = /^layer(\d+)$/.exec(step), part = {attention: state.part === "cross" ? "decoder" : null, source: "cross"}[step];
  if (layer) return set({head: layer[1] * H + state.head % H, step: "layer"});
  set(part && part !== state.part ? {part, step} : {step: step === state.step ? null : step});
}

function firstSentence(step) {
  return explained(step).split(/(?<=[.:]) /)[0];
}

function explanation() {
  const text = state.step ? explained(state.step)
    : "Choose a box to see what is computed there, with numbers of this text; a layer opens its own row, a head below is chosen in “All heads”.";
  return make("p", {className: "explained", textContent: text}, {role: "status", "aria-live": "polite"});
}

// what is said of each box: sentences with this text's numbers. The example is the chosen query, else the one with the
// largest weight; its strongest key is j

function example() {
  const chosen = isQuery() && state.token < T ? state.token : null;
  const i = chosen ?? d3.greatest(places.query.slice(data.causal ? 1 : 0), n => at(n, strongestKey(n))) ?? 0;
  return {i, j: strongestKey(i), n: Math.max(0, made.word.indexOf(i))};
}

const score = (i, j) => Math.log(Math.max(at(i, j), 1e-30)) + total[state.head * T + i];  // softmax, read backwards
const two = x => minus(x.toFixed(2));

const STEPS = {
  embed: ({i}, {d_model: D, n_vocab: V, positions}) => `Each token is looked up in a table of ${V} rows: its vector of ${D} numbers.` +
    (positions ? " The row of its position in a second table is added." : " No row for its position is added: positions come in elsewhere.") +
    ` “${labels.query[i]}” (${i}) begins as a vector of length ${two(made.stream[i])}. Together they are ${T} × ${D} numbers, the residual stream.`,
  layer: ({n}, {d_model: D}) => `A layer reads the stream, ${T} × ${D}, and adds to it twice: what attention brings from other tokens, ` +
    `then what the MLP makes of each token by itself. After layer ${layerOf(state.head)} the vector of “${made.labels[n]}” (${n}) ` +
    `has length ${two(made.stream[(layerOf(state.head) + 1) * made.labels.length + n])}.`,
  norm: (_, {rms_norm, pre_norm}) => `The norm ${rms_norm ? "scales each token's vector to the same root mean square" :
    "moves each token's vector to mean 0 and scales it to spread 1"}, then multiplies by weights that were learned. ` +
    (pre_norm ? "It stands before what reads the stream." : "In this family it stands after each addition."),
  attention: ({i, j}) => `Each of ${H} heads mixes the vectors of tokens by weights of its own, ${T} × ${T} numbers. ` +
    `In ${nameOf(state.head)}, “${labels.query[i]}” (${i}) gives most, ${two(at(i, j))}, to “${labels.key[j]}” (${j}). It is the only place where tokens exchange anything.`,
  source: () => "The decoder's tokens look at the tokens of the source: queries come from the decoder, keys and values from the encoder.",
  mlp: ({n}, {d_model: D, d_mlp: M, act}) => `Each token by itself goes from ${D} numbers to ${M}, through ${act}, and back. ` +
    `In layer ${layerOf(state.head)} this adds a vector of length ${written("mlp_out", n)} at “${made.labels[n]}” (${n}).`,
  add: ({n}) => `What was computed is added to the stream: nothing is overwritten. Before this layer the vector of “${made.labels[n]}” (${n}) ` +
    `has length ${two(made.stream[layerOf(state.head) * made.labels.length + n])}.`,
  unembed: ({n}, {d_model: D, n_vocab: V, task_head}) => !made.guesses ? `The stream ends as ${T} × ${D} numbers` +
    (task_head ? "; a classifier reads one token of it." : "; this model has no table that turns it into guesses.")
    : `Each vector is multiplied by a table of ${D} × ${V}: a score for each of ${V} tokens, and by softmax a probability. ` +
      `At “${made.labels[n]}” (${n}) the likeliest is “${guessesAt(n)[0].piece}”, ${percent(guessesAt(n)[0].p)}.`,
  q: ({i}, {d_model: D}) => `What a token asks: its vector X, ${D} numbers, times W_Q, ${D} × ${data.width}, is its query, ${data.width} numbers. ` +
    `All ${T} tokens: ${by(T, D)} times ${by(D, data.width)} gives ${by(T, data.width)}. The example below is “${labels.query[i]}” (${i}).`,
  k: ({j}, {d_model: D}) => `What a token answers to: its vector times W_K, ${D} × ${data.width}, is its key. ` +
    `The key of “${labels.key[j]}” (${j}) fits the example's query best.`,
  scores: ({i, j}) => `How well each key fits each query: ${by(T, data.width)} times ${by(data.width, S)} gives ${by(T, S)} scores, ` +
    `divided by √${data.width}. Query “${labels.query[i]}” (${i}) with key “${labels.key[j]}” (${j}): ${two(score(i, j))}` +
    `${second(i, j)}.`,
  softmax: ({i, j}) => `Scores become weights that add up to 1 in each row: e to the score, over the sum of the row. ` +
    `e^${two(score(i, j))} / e^${two(total[state.head * T + i])} = ${two(at(i, j))}, the weight of “${labels.key[j]}” (${j}) for “${labels.query[i]}” (${i}).`,
  v: ({j}, {d_model: D}) => `What a token has to give: its vector times W_V, ${D} × ${data.width}. The value of “${labels.key[j]}” (${j}) has length ${two(lengthOf(j))}.`,
  mix: ({i}) => `Each query takes every value times its weight, and adds them up: ${by(T, S)} times ${by(S, data.width)} gives ${by(T, data.width)}. ` +
    `“${labels.query[i]}” (${i}) takes ${strongest(i).map(j => `${two(at(i, j))} of “${labels.key[j]}”`).join(", ")} …`,
  join: ({n}, {d_model: D}) => `The mixtures of all ${H} heads side by side, ${H} × ${data.width} numbers for each token, times W_O give ${by(T, D)}, ` +
    `which is added to the stream: at “${made.labels[n]}” (${n}) a vector of length ${written(isCross ? "cross_out" : "attn_out", n)}.`};

const strongest = i => d3.sort(places.key, j => -at(i, j)).slice(0, 3);
const written = (name, n) => two(made.writes[name][layerOf(state.head) * made.labels.length + n]);

function second(i, j) {
  const next = strongest(i).find(other => other !== j && !hidden(i, other));
  return next === undefined ? "" : `; with the next best, “${labels.key[next]}” (${next}): ${two(score(i, next))}`;
}

function explained(step) {
  const kind = step.replace(/^(layer|norm|add).*/, "$1");
  return STEPS[kind](example(), run().sizes);
}
