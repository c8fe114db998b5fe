"use strict";
// What the page knows: the data, the state that all views share, and what is shown of attention.
// The page's program is data.js, views.js, explore.js, one after the other. Plot draws; d3 counts and mixes colours.

const data = JSON.parse(document.getElementById("data").textContent);
const T = data.labels.length, L = data.layers, H = data.heads;
const [pattern, plane, columns, profile, share, weight] =
  ["pattern", "plane", "columns", "profile", "share", "weight"].map(name => unpack(data.arrays[name]));
const C = data.arrays.columns.shape[4], R = data.uniform.length, reach = (R - 1) / 2;
const positions = d3.range(T);

function unpack({low, high, data}) {  // 16-bit steps between the least and the greatest value of each part
  const codes = new Uint16Array(Uint8Array.from(atob(data), c => c.charCodeAt(0)).buffer);
  const size = codes.length / low.length;
  return Float32Array.from(codes, (code, i) => {
    const part = Math.floor(i / size);
    return low[part] + code * ((high[part] - low[part]) / 65535);
  });
}

// state: token is the chosen one, or null; side is what is shown of it; dark is null while the system decides

const state = {head: 0, token: null, side: "query", stage: "normalised", thumbs: "attention", dark: null};

function set(changes) {
  Object.assign(state, changes);
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
const quoted = n => `“${short(data.labels[n], 24)}” (${n})`;

// attention: i is the query's token, j the key's

const ALL = 0.1, ONE = 0.01;  // least weight of a line, of all tokens and of the chosen one
const at = (i, j, head = state.head) => pattern[(head * T + i) * T + j];
const hidden = (i, j) => data.causal && j > i;
const other = side => side === "query" ? "key" : "query";
const largest = head => d3.max(pattern.subarray(head * T * T, (head + 1) * T * T));
const strongestKey = i => d3.greatest(positions, j => at(i, j));
const strongestQuery = j => d3.greatest(positions, i => at(i, j));

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
    return positions.map(n => side === "query" ? line(token, n) : line(n, token)).filter(d => d.w >= ONE);
  }
  return positions.flatMap(i => {
    const best = strongestKey(i);
    return positions.map(j => line(i, j)).filter(d => d.j === best || d.w >= ALL);
  });
}

const named = (n, side) => `${side} of ${short(data.labels[n], 24)}, position ${n}`;

function about(n, side) {  // what is said of a query or a key under the pointer
  const name = named(n, side);
  if (state.token !== null && side === other(state.side)) {
    return `${name}\nweight ${number(weightOf(n))} ${side === "key" ? "from" : "to"} ${quoted(state.token)}`;
  }
  const [verb, best] = side === "query" ? ["looks most at", strongestKey(n)]
    : ["most looked at by", strongestQuery(n)];
  return `${name}\n${verb} ${quoted(best)}: weight ${number(side === "query" ? at(n, best) : at(best, n))}`;
}

function character(head) {  // a head in a few words: the offset that gets most of its attention
  const own = profile.subarray(head * R, (head + 1) * R), best = d3.greatestIndex(own);
  return `most attention to offset ${signed(best - reach)}: ${number(own[best])} on average`;
}
