"use strict";
// What the page knows: the data, the state that all views share, and what is shown of attention.
// The page's program is data.js, views.js, explore.js, one after the other. Plot draws; d3 counts and mixes colours.

const page = JSON.parse(document.getElementById("data").textContent);
const parts = page.parts ?? {"": page};  // encoder, decoder and cross of an encoder-decoder
let data, T, S, L, H, C, R, reach, isCross, labels, places, pattern, plane, columns, profile, share, weight;

function usePart(name) {  // the part that is shown: T queries, S keys; only in cross are they of different texts
  data = parts[name];
  isCross = "keys" in data;
  labels = {query: data.labels, key: data.keys ?? data.labels};
  [T, S, L, H] = [labels.query.length, labels.key.length, data.layers, data.heads];
  places = {query: d3.range(T), key: d3.range(S)};
  [pattern, plane, columns, share, weight] =
    ["pattern", "plane", "columns", "share", "weight"].map(name => unpack(data.arrays[name]));
  profile = isCross ? null : unpack(data.arrays.profile);
  C = data.arrays.columns.shape[3];
  R = isCross ? 0 : data.uniform.length;
  reach = (R - 1) / 2;
}

function unpack({low, high, data}) {  // 16-bit steps between the least and the greatest value of each part
  const codes = new Uint16Array(Uint8Array.from(atob(data), c => c.charCodeAt(0)).buffer);
  const size = codes.length / low.length;
  return Float32Array.from(codes, (code, i) => {
    const part = Math.floor(i / size);
    return low[part] + code * ((high[part] - low[part]) / 65535);
  });
}

// state: token is the chosen one, or null; side is what is shown of it; dark is null while the system decides

const state = {part: Object.keys(parts)[0], head: 0, token: null, side: "query", stage: "normalised",
               thumbs: "attention", dark: null};
usePart(state.part);

function set(changes) {
  const other = changes.part !== undefined && changes.part !== state.part;
  Object.assign(state, changes, other ? {head: 0, token: null, side: "query"} : {});
  if (other) {
    usePart(state.part);
    writeTokens();
  }
  update();
}

const PALETTES = {
  light: {text: "#1c1c1c", soft: "#5b5b58", back: "#ffffff", card: "#f7f7f5", line: "#d6d6d0", query: "#0067a8",
          key: "#b84a00", chosen: "#00785a", bar: "#3f8cc2",
          ramp: ["#ffffff", "#b9d9ee", "#4c97cb", "#10508f", "#07244d"]},
  dark: {text: "#ecece8", soft: "#adada7", back: "#141414", card: "#1f1f1e", line: "#42423e", query: "#6cc0ff",
         key: "#ff9d57", chosen: "#3ad6a6", bar: "#4f9bd6",
         ramp: ["#141414", "#173a5c", "#2673b3", "#7cc4f5", "#f4fbff"]}};
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => state.dark ?? systemDark.matches;
const colours = () => PALETTES[isDark() ? "dark" : "light"];

// names

const layerOf = head => Math.floor(head / H);
const nameOf = head => `L${layerOf(head)}H${head % H}`;
const papersName = head => `head(${layerOf(head) + 1},${head % H + 1}) in the paper`;
const number = x => x.toFixed(3);
const signed = x => x > 0 ? `+${x}` : `${x}`.replace("-", "−");
const short = (label, most = 12) => label.length > most ? label.slice(0, most - 1) + "…" : label;
const quoted = (n, side) => `“${short(labels[side][n], 24)}” (${n})`;

// attention: i is the query's token, j the key's

const ALL = 0.1, ONE = 0.01;  // least weight of a line, of all tokens and of the chosen one
const at = (i, j, head = state.head) => pattern[(head * T + i) * S + j];
const hidden = (i, j) => data.causal && j > i;
const other = side => side === "query" ? "key" : "query";
const largest = head => d3.max(pattern.subarray(head * T * S, (head + 1) * T * S));
const strongestKey = i => d3.greatest(places.key, j => at(i, j));
const strongestQuery = j => d3.greatest(places.query, i => at(i, j));

function weightOf(n) {  // what token n gets from the chosen one, or gives to it; 0 if none is chosen
  const {token, side} = state;
  return token === null ? 0 : side === "query" ? at(token, n) : at(n, token);
}

function marked(n, side) {  // whether a query or key takes part in what is shown of the chosen token
  return state.token === null || (side === state.side ? n === state.token : weightOf(n) >= ONE);
}

function pairs() {  // the lines that are drawn: {i, j, w: weight}
  const {token, side} = state, line = (i, j) => ({i, j, w: at(i, j)});
  if (token !== null) {
    return places[other(side)].map(n => side === "query" ? line(token, n) : line(n, token)).filter(d => d.w >= ONE);
  }
  return places.query.flatMap(i => {
    const best = strongestKey(i);
    return places.key.map(j => line(i, j)).filter(d => d.j === best || d.w >= ALL);
  });
}

const named = (n, side) => `${side} of ${short(labels[side][n], 24)}, position ${n}`;

function about(n, side) {  // what is said of a query or a key under the pointer
  const name = named(n, side);
  if (state.token !== null && side === other(state.side)) {
    return `${name}\nweight ${number(weightOf(n))} ${side === "key" ? "from" : "to"} ${quoted(state.token, state.side)}`;
  }
  const [verb, best] = side === "query" ? ["looks most at", strongestKey(n)]
    : ["most looked at by", strongestQuery(n)];
  return `${name}\n${verb} ${quoted(best, other(side))}: weight ${number(side === "query" ? at(n, best) : at(best, n))}`;
}

function character(head) {  // a head in a few words: the offset, in cross the key, that gets most of its attention
  if (isCross) {
    const most = d3.mean(places.query, i => d3.max(places.key, j => at(i, j, head)));
    return `weight of a query's strongest key: ${number(most)} on average, ${number(1 / S)} if all were alike`;
  }
  const own = profile.subarray(head * R, (head + 1) * R), best = d3.greatestIndex(own);
  return `most attention to offset ${signed(best - reach)}: ${number(own[best])} on average`;
}
