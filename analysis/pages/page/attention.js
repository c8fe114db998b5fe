"use strict";
// What is said and shown of attention: names of heads and tokens, weights, the lines that are drawn.

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
