// One guess from left to right: tokens, what heads and MLPs write towards it, layer after layer,
// and the guesses. A band is as wide as what is written, in logits (writers.js); a head's is split
// over the tokens by its attention.

const WRITERS_SHOWN = 12,
  SOURCES_SHOWN = 10; // the largest
const STAIR = 26,
  SEEN = 0.6; // pixels: a writer stands on a stair; a token with a thinner band is left out
const EMBEDDINGS = ["word", "position", "type"],
  COMPUTED = ["head", "cross_head", "mlp"];
const KIND_ORDER = ["embedding", "head", "cross_head", "mlp", "rest"];

function flowHint() {
  if (!isChanceOpen && partsShown().length && !partsShown().some(standsOut))
    return (
      say(
        "What each head and MLP writes towards the guess is compared with what it writes towards other tokens, which is chance.",
      ) + DIRECT
    );
  return (
    ofLogit() +
    say`Who writes towards “${escaped(guessed())}”${escaped(wherever())}, from left to right as the pass goes: the wider a band, the more logits. ` +
    say(
      "On the right, what is <b class=more>for it</b> stands above the line, what is <b class=less>against it</b> below, beside their <b>net</b>; pale is within what chance gives. What a head writes is split over the ",
    ) +
    say(
      "tokens by its attention; an MLP reads what stands in the stream by then, so its band has no token.",
    ) +
    DIRECT +
    SELECTED
  );
}

const DIRECT = say(
  " Only direct writing counts: a head that is at chance may act through later ones.",
);

const flow = width =>
  told(parts => {
    const writers = flowWriters(parts),
      isWide = width >= 900,
      clear = writers.filter(d => d.isClear).map(d => `${flowName(d)} ${logits(d.x)}`);
    const picture = make(
      "div",
      {className: "flow"},
      {},
      flowPicture(isWide ? width - 330 : width, writers),
      flowList(writers),
    );
    const shown = make("div", {}, {}, picture, writerChosen(parts));
    return standsOut(parts)
      ? [
          make("p", {
            className: "rest",
            textContent:
              say`Stands out: ${clear.join(", ")}. ${NO_MORE} All else is pale. ` +
              ofLargest(parts),
          }),
          shown,
        ]
      : folded(shown, clear, parts);
  });

const NO_MORE = say(
  "Compared with its usual output, no part writes this much towards any of 200 random tokens.",
); // as many as attribution.py draws

function ofLargest(parts) {
  // as a share of all of them: the measure of `minitx attribute`, of which this is one text
  const {w, row} = writtenHere(),
    own = parts.filter(d => COMPUTED.includes(d.name)),
    largest = d3.greatest(own, d => Math.abs(d.x));
  const [is, chance] = [
    Math.abs(largest.x) / (d3.sum(own, d => Math.abs(d.x)) || 1),
    w.most_null[row * w.guesses + NTH.indexOf(state.guess)],
  ];
  const size = say`${flowName(largest)} is ${percent(is)} of the size of all that heads and MLPs write (random tokens: up to ${percent(chance)}).`;
  return `${is < 0.5 || is <= chance ? say("No part alone makes the guess:") : say("One part writes most:")} ${size}`;
}

// a head or an MLP
const standsOut = parts => parts.some(d => d.isClear && !EMBEDDINGS.includes(d.name));
const partsShown = () =>
  (isPair() ? page.runs.map((_, n) => within(n, partsOfGuess)) : [partsOfGuess()]).filter(
    Array.isArray,
  );

let isChanceOpen = false; // the reader wants the picture of a guess whose parts are all at chance

function folded(picture, [itself], parts) {
  const says = make("p", {
    textContent:
      (itself
        ? say`Of this guess only ${itself} stands out: compared with its usual output, no head and no MLP writes more than parts do towards 200 random tokens. `
        : say(
            "No part of this guess stands out: compared with its usual output, none writes more than parts do towards 200 random tokens. ",
          )) +
      ofLargest(parts) +
      (isItself()
        ? say(" The model sees this token, so it can copy it; hidden, it has to be guessed.")
        : ""),
  });
  const fold = make(
    "details",
    {
      open: isChanceOpen,
      ontoggle: () => {
        isChanceOpen = fold.open;
        writeHead("flow", VIEWS.flow); // its caption speaks of what is seen
      },
    },
    {},
    make("summary", {textContent: say("Show the parts")}),
    picture,
  );
  return make("div", {}, {}, says, fold);
}

// several parts as one
const together = (name, layer, of) => ({
  name,
  layer,
  head: -1,
  count: of.length,
  x: d3.sum(of, d => d.x),
  isClear: of.some(d => d.isClear),
});

function flowWriters(parts) {
  // the embedding, the largest heads and MLPs in the order of the pass, and all others as one
  const isOwn = d => EMBEDDINGS.includes(d.name),
    large = parts.filter(d => /head|mlp/.test(d.name) && isSeen(d.x));
  const kept = d3.sort(large, d => -Math.abs(d.x)).slice(0, WRITERS_SHOWN);
  const others = parts.filter(
    d => !isOwn(d) && !kept.includes(d) && (isSeen(d.x) || isSeen(d.chance)),
  );
  const all = [
    together("embedding", -1, parts.filter(isOwn)),
    ...kept,
    together("rest", L, others),
  ];
  return d3
    .sort(all, d => d.layer * 1e4 + KIND_ORDER.indexOf(d.name) * 1e3 + d.head)
    .filter(d => d.count !== 0);
}

function flowName({name, layer, head, count}) {
  return (
    {embedding: say("the token itself"), mlp: say`MLP ${layer}`, rest: say`${count} others`}[
      name
    ] ??
    `L${layer}H${head}${name === (isCross ? "cross_head" : "head") ? "" : isCross ? say(" (to itself)") : say(" (to the source)")}`
  );
}

function sourcesOfWriter(d) {
  // [{j, share}]: of what is written, what is taken from token j; [] where that is not told
  const i = made.classes ? (isCausal() ? T - 1 : 0) : tokenOf(guessPlace());
  if (d.name === "embedding") return isCross ? [] : [{j: i, share: 1}];
  return isMine(d) ? places.key.map(j => ({j, share: at(i, j, d.layer * H + d.head)})) : [];
}

// where everything stands, in pixels: writers on stairs, tokens left of them, what they add up to
// on the right

function flowLayout(width, writers) {
  const top = 24,
    down = writers.length * STAIR,
    left = width < 500 ? 74 : 104,
    right = width - (width < 500 ? 104 : 150);
  const scale = Math.min(
    (0.6 * down) / d3.sum(writers, d => Math.abs(d.x)),
    (0.8 * STAIR) / d3.max(writers, d => Math.abs(d.x)),
  );
  const column = d3.scaleLinear([-1, L], [left + 34, right - (width < 500 ? 66 : 96)]);
  const nodes = writers.map((d, n) => ({
    ...d,
    w: Math.max(scale * Math.abs(d.x), 1),
    at: column(d.layer),
    y: top + (n + 0.5) * STAIR,
  }));
  const tokens = flowTokens(nodes),
    step = down / (tokens.length || 1);
  tokens.forEach((token, k) => Object.assign(token, {at: left, y: top + (k + 0.5) * step}));
  const [above, below] = [1, -1].map(sign => d3.sum(nodes, d => (d.x * sign > 0 ? d.w : 0))),
    zero = top + (down + above - below) / 2;
  return {
    width,
    height: top + Math.max(down + 8, 200),
    top,
    left,
    right,
    column,
    nodes,
    tokens,
    middle: top + down / 2,
    bands: flowBands(nodes, tokens, right, zero - above, zero),
    sums: {above, below, zero, net: scale * d3.sum(writers, d => d.x)},
  };
}

function flowTokens(nodes) {
  // the tokens from which most comes, in the order of the text: {j, w}
  const taken = nodes.flatMap(node =>
    sourcesOfWriter(node).map(({j, share}) => ({j, w: share * node.w})),
  );
  const sums = d3
      .rollups(
        taken,
        all => d3.sum(all, d => d.w),
        d => d.j,
      )
      .map(([j, w]) => ({j, w})),
    whole = d3.sum(sums, d => d.w);
  const kept = d3
    .sort(sums, d => -d.w)
    .slice(0, SOURCES_SHOWN)
    .filter(d => d.w > Math.max(whole / 100, SEEN));
  return d3.sort(kept, d => d.j);
}

function flowBands(nodes, tokens, right, ...ends) {
  // from tokens to heads, from writers to the guess: {x1, y1, x2, y2, w, of}
  const bands = [],
    // ends: where the next for it, against it ends
    used = new Map(tokens.map(token => [token.j, token.y - token.w / 2]));
  for (const node of nodes) {
    let start = node.y - node.w / 2;
    for (const {j, share} of sourcesOfWriter(node)) {
      const w = share * node.w,
        token = tokens.find(token => token.j === j);
      if (token && w > SEEN / 4)
        bands.push({
          x1: token.at + 6,
          y1: used.get(j) + w / 2,
          x2: node.at - 5,
          y2: start + w / 2,
          w,
          of: node,
        });
      if (token) used.set(j, used.get(j) + w);
      start += w;
    }
    const side = node.x < 0 ? 1 : 0;
    bands.push({
      x1: node.at + 5,
      y1: node.y,
      x2: right,
      y2: ends[side] + node.w / 2,
      w: node.w,
      of: node,
    });
    ends[side] += node.w;
  }
  return bands;
}

const flowGuesses = () =>
  made.classes
    ? classGuesses().filter(({guess}) => guess)
    : guessesAt(guessPlace()).map((guess, nth) => ({...guess, guess: NTH[nth]}));

function flowPicture(width, writers) {
  const palette = colours(),
    {height, left, right, column, nodes, tokens, middle, bands, sums} = flowLayout(width, writers);
  const ink = d => (d.x < 0 ? palette.less : palette.more),
    halo = {fill: palette.text, stroke: palette.card, strokeWidth: 4};
  const box = {
    x1: d => d.at - 5,
    x2: d => d.at + 5,
    y1: d => d.y - Math.max(d.w, 4) / 2,
    y2: d => d.y + Math.max(d.w, 4) / 2,
  };
  const every = Math.ceil(24 / (column(1) - column(0)));
  const guesses = flowGuesses().map((d, n, all) => ({
    ...d,
    at: right + 14,
    y: middle + (n - (all.length - 1) / 2) * 34,
  }));
  const titles = [
    {at: left, text: say("tokens"), anchor: "end"},
    {at: right + 14, text: say("guesses"), anchor: "start"},
  ];
  const text = (data, options) => Plot.text(data, {x: "at", y: "y", text: d => d.text, ...options});
  return plot({
    ...pixels(width, height),
    marks: [
      Plot.link(bands, {
        x1: "x1",
        x2: "x2",
        y1: "y1",
        y2: "y2",
        curve: "bump-x",
        strokeWidth: d => Math.max(d.w, 0.7),
        stroke: d => ink(d.of),
        strokeOpacity: d => (d.of.isClear ? 0.6 : 0.2),
        strokeLinecap: "butt",
      }),
      Plot.rect(nodes, {
        ...box,
        fill: ink,
        fillOpacity: d => (d.isClear ? 1 : 0.45),
        stroke: d => (isChosenWriter(d) ? palette.chosen : palette.card),
        strokeWidth: d => (isChosenWriter(d) ? 3 : 1),
      }),
      Plot.rect(tokens, {
        x1: d => d.at,
        x2: d => d.at + 6,
        y1: box.y1,
        y2: box.y2,
        fill: palette.key,
      }),
      ...flowSums(right, guesses.at(-1).y + 34, sums, nodes),
      text(nodes, {
        dx: 9,
        text: d => `${flowName(d)} ${logits(d.x)}`,
        textAnchor: "start",
        fontWeight: d => (d.isClear ? 600 : 400),
        ...halo,
        fill: d => (d.isClear ? palette.text : palette.soft),
      }),
      text(tokens, {
        dx: -5,
        text: d => `${short(labels.key[d.j], width < 500 ? 6 : 10)} ${d.j}`,
        textAnchor: "end",
        fill: palette.key,
      }),
      Plot.text(
        d3.range(L).filter(l => l % every === 0),
        {x: l => column(l), y: 9, text: l => `L${l}`, fill: palette.soft},
      ),
      ...titles.map(({anchor, ...d}) =>
        text([{...d, y: 9}], {textAnchor: anchor, fill: palette.soft}),
      ),
      ...flowBars(guesses, width, palette),
      Plot.tip(
        [...nodes, ...guesses],
        Plot.pointer({x: "at", y: "y", maxRadius: 60, ...tip(aboutFlow)}),
      ),
    ],
  });
}

function flowSums(right, y, {above, below, zero, net}, nodes) {
  // what is for the guess above a line, what is against it below, their net beside it
  const palette = colours(),
    [plus, minus] = [1, -1].map(sign => d3.sum(nodes, d => Math.max(0, sign * d.x)));
  const words = [
    [say`for ${logits(plus)}`, palette.more],
    [say`against ${logits(-minus)}`, palette.less],
    [say`net ${logits(plus - minus)}`, palette.text],
  ];
  return [
    Plot.rect(
      [
        [zero - above, zero, palette.more],
        [zero, zero + below, palette.less],
      ],
      {
        x1: right,
        x2: right + 4,
        y1: d => d[0],
        y2: d => d[1],
        fill: d => d[2],
      },
    ),
    Plot.rect([0], {
      x1: right + 5,
      x2: right + 10,
      y1: Math.min(zero, zero - net),
      y2: Math.max(zero, zero - net),
      fill: palette.text,
    }),
    Plot.ruleY([zero], {x1: right - 26, x2: right + 11, stroke: palette.text, strokeWidth: 1.5}),
    Plot.text(words, {
      x: right + 14,
      y: (_, n) => y + 15 * n,
      text: d => d[0],
      fill: d => d[1],
      textAnchor: "start",
      fontWeight: 600,
    }),
  ];
}

function flowBars(guesses, width, palette) {
  // each guess above its bar; that which is written towards in the colour of choice
  const long = width - guesses[0].at - 8,
    fill = d => (d.guess === state.guess ? palette.chosen : palette.bar);
  return [
    Plot.text(guesses, {
      x: "at",
      y: "y",
      dy: -3,
      textAnchor: "start",
      text: d => `${short(d.piece, 11)}  ${percent(d.p)}`,
      fill: d => (d.guess === state.guess ? palette.chosen : palette.text),
    }),
    Plot.rect(guesses, {
      x1: "at",
      x2: d => d.at + Math.max(2, long * d.p),
      y1: d => d.y + 4,
      y2: d => d.y + 11,
      fill,
    }),
  ];
}

const aboutFlow = d =>
  d.guess
    ? say`“${d.piece}”, ${percent(d.p)}`
    : [
        flowName(d),
        say`${logits(d.x)} logits`,
        ...(d.chance === undefined ? [] : [say`by chance within ±${d.chance.toFixed(2)}`]),
      ].join("\n");

function flowList(writers) {
  // the same in words, heads and MLPs as buttons
  const list = make("ol", {
    className: "writers-list",
    ariaLabel: say("What is written, in the order of the pass"),
  });
  list.append(
    ...writers.map(d => {
      const item = make("li", {className: d.isClear ? "clear" : ""}),
        id = `flow${page.runs.indexOf(current)}-${d.c}`;
      const name = choosing(d)
        ? make(
            "button",
            {
              type: "button",
              id,
              className: "inline",
              textContent: flowName(d),
              onclick: () => set(choosing(d)),
            },
            {"aria-pressed": isChosenWriter(d)},
          )
        : flowName(d);
      item.append(name, ` ${logits(d.x)}${d.isClear ? "" : say(" (at chance)")}${takenFrom(d)}`);
      return item;
    }),
  );
  return list;
}

function takenFrom(d) {
  if (!isMine(d)) return "";
  const most = d3
    .sort(sourcesOfWriter(d), s => -s.share)
    .slice(0, 2)
    .filter(s => s.share >= ALL);
  return most.length
    ? say`, looks at ${most.map(({j, share}) => `${quoted(j, "key")} ${percent(share)}`).join(", ")}`
    : "";
}

export {EMBEDDINGS, flow, flowHint, flowName, together};
