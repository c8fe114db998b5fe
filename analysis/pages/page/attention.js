// What is said and shown of attention: names of heads and tokens, weights, the lines that are
// drawn, and which heads are sharp. Of a difference a weight is what the second run has more than
// the first.

// names

const layerOf = head => Math.floor(head / H);
const nameOf = head => `L${layerOf(head)}H${head % H}`;
const countedFrom1 = head =>
  say`counted from 1, as in papers: head(${layerOf(head) + 1},${(head % H) + 1})`;
const minus = text => text.replace("-", "−");
const number = x =>
  isNaN(x) ? "–" : isDifference() ? `${x > 0 ? "+" : ""}${minus(x.toFixed(3))}` : x.toFixed(3);
const signed = x => (x > 0 ? `+${x}` : minus(`${x}`));
const short = (label, most = 12) =>
  isolated(label.length > most ? `${label.slice(0, most - 1)}…` : label);
const quoted = (n, side) => `“${short(labels[side][n], 24)}” (${n})`;

// attention: i is the query's token, j the key's

const ALL = 0.1,
  ONE = 0.01; // least weight of a line, of all tokens and of the chosen one
const at = (i, j, head = state.head, of = pattern) => of[(head * T + i) * S + j];
const hidden = (i, j) => data.causal && j > i;
const other = side => (side === "query" ? "key" : "query");
const size = Math.abs; // a difference may be less than nothing
const largest = head => d3.max(pattern.subarray(head * T * S, (head + 1) * T * S), size) || 1;
const largests = new WeakMap(); // pattern -> the largest weight of all heads
const largestOfAll = () =>
  largests.get(pattern) ?? largests.set(pattern, d3.max(pattern, size) || 1).get(pattern);
const strongestKey = (i, head = state.head) => d3.greatest(places.key, j => size(at(i, j, head)));

// of a pair of texts, A and B, which looks at which

// of the tokens whose outputs are shown the first of the second text; -1: there is none
const secondToken = () => (isOfPair() ? made.word.findIndex(word => word >= second.query) : -1);
const isOfPair = () => second !== null && second.query !== null;
const BETWEEN = () => (isOfPair() ? ["all", "A → A", "A → B", "B → A", "B → B"] : ["all"]);
const textOf = (n, side) => (n < second[side] ? "A" : "B");
const isBetween = (i, j) =>
  state.between === "all" || state.between === `${textOf(i, "query")} → ${textOf(j, "key")}`;
const isShown = (i, j) => !hidden(i, j) && isBetween(i, j);
const strongestShown = (n, side, head = state.head) =>
  side === "query"
    ? d3.greatest(
        places.key.filter(j => isBetween(n, j)),
        j => size(at(n, j, head)),
      )
    : d3.greatest(
        places.query.filter(i => isBetween(i, n)),
        i => size(at(i, n, head)),
      );
const onlyBetween = () => (state.between === "all" ? "" : say` Only ${state.between} is shown.`);
const betweenHint = () =>
  second === null ? "" : say(" A line divides the two texts, A and B.") + onlyBetween();

function weightOf(n) {
  // what token n gets from the chosen one, or gives to it; 0 if none is chosen
  const {token, side} = state;
  const [i, j] = side === "query" ? [token, n] : [n, token];
  return token === null || !isBetween(i, j) ? 0 : at(i, j);
}

function marked(n, side) {
  // whether a query or key takes part in what is shown of the chosen token
  return (
    state.token === null || (side === state.side ? n === state.token : size(weightOf(n)) >= ONE)
  );
}

function pairs(head = state.head) {
  // the lines that are drawn: {i, j, w: weight}
  const {token, side} = state,
    line = (i, j) => ({i, j, w: at(i, j, head)});
  if (token !== null) {
    const lines = places[other(side)].map(n =>
      side === "query" ? line(token, n) : line(n, token),
    );
    return lines.filter(d => size(d.w) >= ONE && isBetween(d.i, d.j));
  }
  return places.query.flatMap(i => {
    const best = isDifference() ? -1 : strongestShown(i, "query", head);
    return places.key
      .map(j => line(i, j))
      .filter(d => isBetween(d.i, d.j) && (d.j === best || size(d.w) >= ALL));
  });
}

const named = (n, side) => say`${say(side)} of ${short(labels[side][n], 24)}, position ${n}`;

function about(n, side) {
  // what is said of a query or a key under the pointer
  const name = named(n, side);
  if (state.token !== null && side === other(state.side)) {
    const chosen = `${side === "key" ? say("from") : say("to")} ${quoted(state.token, state.side)}`;
    return say`${name}\nweight ${number(weightOf(n))} ${chosen}`;
  }
  const verb = side === "query" ? say("looks most at") : say("most looked at by"),
    best = strongestShown(n, side);
  const what = isDifference() ? say("the largest change:") : verb;
  if (best === undefined)
    return state.between === "all"
      ? say`${name}\nin one text alone`
      : say`${name}\nnot in ${state.between}`;
  const weight = side === "query" ? at(n, best) : at(best, n);
  return say`${name}\n${what} ${quoted(best, other(side))}: weight ${number(weight)}`;
}

// heads: how sharp they are, the offset that gets most of their attention, and in few words what
// they do

const sharpnesses = new WeakMap(); // pattern -> of each head

function sharpness(head) {
  // 0: looks at all alike, 1: at one key; of a difference: the share of attention that moved
  if (!sharpnesses.has(pattern))
    sharpnesses.set(pattern, d3.range(L * H).map(isDifference() ? moved : peaked));
  return sharpnesses.get(pattern)[head];
}

function peaked(head) {
  // 1 - entropy / log(keys that are seen), the mean over the queries that see several
  let sum = 0,
    count = 0;
  for (let i = data.causal ? 1 : 0; i < T; i++) {
    const start = (head * T + i) * S,
      seen = data.causal ? i + 1 : S;
    let entropy = 0;
    for (let j = start; j < start + seen; j++)
      if (pattern[j] > 0) entropy -= pattern[j] * Math.log(pattern[j]);
    if (seen > 1) [sum, count] = [sum + 1 - entropy / Math.log(seen), count + 1];
  }
  return count ? sum / count : 0;
}

const moved = head =>
  d3.sum(pattern.subarray(head * T * S, (head + 1) * T * S), size) /
  2 /
  (places.query.filter(i => !isAlone(i, "query")).length || 1);
const sharpest = () => d3.greatestIndex(d3.range(L * H), sharpness);
const profileOf = head => profile.subarray(head * R, (head + 1) * R);
const peakOf = head => (!hasOffsets ? null : d3.greatestIndex(profileOf(head), size) - reach);

// a head is above chance at an offset if it gives it more than a head would that looks at all
// alike, by more than three standard errors of the mean over the queries. Measured in runs with
// shuffled positions, where no offset is looked for: 6 of 816 peaks beside 0 are above chance, all
// 6 in a text of 8 tokens; 536 have twice what looking at all alike gives

const ERRORS = 3,
  FEWEST = 3; // standard errors, and queries from which one is estimated

function aboveChance(head, offset = peakOf(head)) {
  // of a difference: in one of the runs
  return (isDifference() ? page.runs.map(run => partOf(run)) : [data]).some(part =>
    isAbove(part, head, offset),
  );
}

function isAbove(part, head, offset) {
  const {pattern} = open(part),
    {length} = part.labels,
    even = part.uniform[offset + (part.uniform.length - 1) / 2];
  const queries = d3.range(length).filter(i => i + offset >= 0 && i + offset < length);
  const excesses = queries.map(
    i => pattern[(head * length + i) * length + i + offset] - 1 / (part.causal ? i + 1 : length),
  );
  const error = d3.deviation(excesses) / Math.sqrt(queries.length);
  return queries.length >= FEWEST && meanAt(part, head, offset) - even > ERRORS * error;
}

const OFF = say("off: what it reads is not written");
// switched off in this run; of a difference: in the second
const isOff = head => Boolean(data.off?.includes(head));

function inShort(head) {
  // a head in a sentence: what it looks at, whether it is off, its kinds
  const looks = [looksAt(head), kindsSaid(head)].filter(Boolean).join("; ");
  return isOff(head) ? say`is ${OFF}. It ${looks}` : looks;
}

const character = head =>
  inShort(head) + (isDifference() ? "" : say`; sharpness ${sharpness(head).toFixed(2)}`);

function looksAt(head) {
  // the offset, in cross the key, that gets most of its attention
  if (isDifference())
    return say`moves ${(100 * sharpness(head)).toFixed(0)}% of its attention elsewhere`;
  if (!hasOffsets) {
    const most = d3.mean(places.query, i => d3.max(places.key, j => at(i, j, head)));
    return say`gives the key that a query looks at most ${percent(most)} of its attention on average (all keys alike: ${percent(1 / S)})`;
  }
  const peak = peakOf(head),
    mean = percent(profileOf(head)[peak + reach]),
    even = percent(data.uniform[peak + reach]);
  if (!aboveChance(head))
    return say`has no offset that clearly gets more than chance: offset ${signed(peak)} gets most, on average over the ${data.unit}s ${mean} of its attention (chance ${even}), which so few tokens may give by chance`;
  const [, kind] = kindsOf(head).find(([kind]) => isSaid(head, kind)) ?? [];
  return (
    say`looks most at ${tokenAt(peak)}: on average over the ${data.unit}s ${mean} of its attention here (chance ${even})` +
    (kind ? say`, ${percent(kind.heads[head])} on random words (chance ${percent(kind.null)})` : "")
  );
}

const NEAR = {"-1": say("the token before"), 0: say("the token itself"), 1: say("the next token")};
const tokenAt = offset =>
  NEAR[offset] ??
  (offset < 0 ? say`the token ${-offset} to the left` : say`the token ${offset} to the right`);

// of its attention: a head that gives an offset so much has it as a number in its picture
const HALF = 0.5;
const ownOffset = head =>
  hasOffsets &&
  !isDifference() &&
  profileOf(head)[peakOf(head) + reach] >= HALF &&
  aboveChance(head)
    ? signed(peakOf(head))
    : "";

function looked() {
  // the chosen head, and the offset that it looks at most in the first run: what acrossRuns() tells
  // of
  const {head} = state,
    part = state.part ?? "",
    where = {part, layer: layerOf(head), head: head % H};
  if (!hasOffsets) return {...where, offset: null};
  const first = partOf(page.runs[0]),
    {length} = first.uniform;
  return {
    ...where,
    offset:
      d3.greatestIndex(open(first).profile.subarray(head * length, (head + 1) * length)) -
      (length - 1) / 2,
  };
}

function acrossRuns() {
  // the chosen head in every run: what it gives the offset that it looks at most in the first
  if (isBoth())
    return say`Tokens and heads are those of “${runName(0)}”; the other views show both.`;
  if (page.runs.length < 2 || !hasOffsets || apart) return "";
  const {offset} = looked(),
    {uniform} = partOf(page.runs[0]);
  const which =
    {"-1": say(", the token before"), 0: say(", the token itself"), 1: say(", the next token")}[
      offset
    ] ?? "";
  const given = page.runs.map(run => {
    const part = partOf(run),
      mean = meanAt(part, state.head, offset).toFixed(3);
    const off = part.off?.includes(state.head)
      ? say(" (it is off there: what it reads is not written)")
      : "";
    return `“${run.name}” ${mean}${isAbove(part, state.head, offset) ? "" : say(" (at chance)")}${off}`;
  });
  return (
    say`Of its attention ${nameOf(state.head)} gives offset ${signed(offset)}${which}: ${given.join(", ")}; ` +
    say`uniform ${uniform[offset + (uniform.length - 1) / 2].toFixed(3)}.`
  );
}

// which heads are listed, and in which order

const SORTS = {
  "by layer": head => head,
  "sharpest first": head => -sharpness(head),
  "by offset": head => peakOf(head),
};
const ONLY = {
  "all offsets": () => true,
  "look left": peak => peak < 0,
  "token before (−1)": peak => peak === -1,
  "itself (0)": peak => peak === 0,
  "next token (+1)": peak => peak === 1,
  "look right": peak => peak > 0,
};

function listed() {
  // numbers of the heads, in their order
  const isOfOffset = head =>
    !hasOffsets || isAnywhere() || (ONLY[state.only](peakOf(head)) && aboveChance(head));
  const kept = d3
    .range(L * H)
    .filter(
      head =>
        isOfOffset(head) &&
        isKind(head) &&
        (state.layer === "all layers" || state.layer === `layer ${layerOf(head)}`),
    );
  return d3.sort(kept, head =>
    !hasOffsets && state.sort === "by offset" ? head : SORTS[state.sort](head),
  );
}

const isAnywhere = () => state.only === "all offsets";
const isGrid = () => state.sort === "by layer" && listed().length === L * H; // one row a layer

export {
  about,
  aboveChance,
  acrossRuns,
  ALL,
  at,
  BETWEEN,
  betweenHint,
  character,
  countedFrom1,
  hidden,
  inShort,
  isAnywhere,
  isGrid,
  isOff,
  isOfPair,
  isShown,
  largest,
  largestOfAll,
  layerOf,
  listed,
  looked,
  marked,
  minus,
  named,
  nameOf,
  number,
  OFF,
  ONE,
  ONLY,
  onlyBetween,
  other,
  ownOffset,
  pairs,
  peakOf,
  quoted,
  secondToken,
  sharpest,
  sharpness,
  short,
  signed,
  size,
  SORTS,
  strongestKey,
  strongestShown,
  weightOf,
};
