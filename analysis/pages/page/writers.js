// Who wrote a guess: the logit of one guess as the sum of what each head, each MLP and the rest
// wrote, and what the chosen head wrote towards other words. A static page has it of every place; a
// live page asks for the place that is looked at.

const NTH = ["likeliest guess", "second guess", "third guess", "fourth guess", "fifth guess"];
const CLEAR = 1.1; // times what drawn tokens reach: the margin of verdict.py
// outputs -> Map of place -> {w: written, row}, null while it is asked for
const askedFor = new WeakMap();
const untold = new WeakSet(); // outputs whose guesses are not attributed
// biome-ignore lint/style/useConst: live.js sets it
export let askWriters = null; // of a live page: (run's name, place) -> a promise of written

const TOLD = ["flow", "writers"]; // the two views of one card, which its buttons name
const TOLD_SAYS = {flow: say("from left to right"), writers: say("head by head")};

function toldButtons(id) {
  const box = make("div", {className: "told", role: "group", ariaLabel: say("How it is shown")});
  box.append(
    ...TOLD.map(told =>
      make(
        "button",
        {
          type: "button",
          id: `${id}-as-${told}`,
          textContent: TOLD_SAYS[told],
          onclick: () => {
            foldOf(told).open = true;
            set({told});
            byId(`${told}-as-${told}`).focus({preventScroll: true});
          },
        },
        {"aria-pressed": told === id},
      ),
    ),
  );
  return box;
}

const guessPlace = () => (made.classes ? 0 : shownToken());
const isSeen = x => Math.abs(x) >= 0.005; // with two digits
const exceeds = (x, chance) => isSeen(x) && Math.abs(x) > CLEAR * chance;
const logits = x => `${isSeen(x) ? (x < 0 ? "−" : "+") : ""}${Math.abs(x).toFixed(2)}`;
const line = (title, text) => {
  const made = make("p");
  made.append(make("b", {textContent: title}), ` ${text}`);
  return made;
};

function writtenHere(isWanted = false) {
  // {w, row} of the place that is looked at; null: it is not there (yet)
  const n = guessPlace();
  if (made.written) return {w: made.written, row: made.written.at.indexOf(n)};
  if (!askWriters) return null;
  if (!askedFor.has(made)) askedFor.set(made, new Map());
  const known = askedFor.get(made);
  if (!known.has(n) && isWanted) {
    const asked = made;
    known.set(n, null);
    askWriters(current.name, n).then(
      packed => {
        known.set(n, {w: openWritten(packed), row: 0});
        later(() => redraw("writers", "flow"));
      },
      error => {
        if (error.status !== 409) known.set(n, null);
        else known.delete(n);
        if (error.status === 400) untold.add(asked); // the server says that it never will
        later(() => redraw("writers", "flow"));
      },
    );
  }
  return known.get(n) ?? null;
}

function openWritten(written) {
  const numbers = Object.entries(written).filter(([, value]) => value?.data);
  const sizes = Object.fromEntries(numbers.map(([name, {shape}]) => [name, shape.at(-1)]));
  return {
    ...written,
    ...Object.fromEntries(numbers.map(([name, packed]) => [name, unpack(packed)])),
    sizes,
    guesses: written.parts.shape[1],
  };
}

function partsOfGuess() {
  // [{name, layer, head, x, chance, isClear}] of the chosen guess; null: not told
  const here = writtenHere(),
    guess = NTH.indexOf(state.guess);
  if (!here || guess >= here.w.guesses) return null;
  const {w, row} = here,
    C = w.components.length,
    start = (row * w.guesses + guess) * C;
  return w.components.map(([name, layer, head], c) => {
    const x = w.parts[start + c],
      chance = w.null[start + c];
    return {name, layer, head, c, x, chance, isClear: exceeds(x, chance)};
  });
}

const guessesHere = () =>
  made.classes ? classGuesses().filter(({guess}) => guess) : guessesAt(guessPlace());
const guessed = () =>
  made.classes
    ? (classGuesses().find(({guess}) => guess === state.guess)?.piece ?? "")
    : (guessesAt(guessPlace())[NTH.indexOf(state.guess)]?.piece ?? "");
const wherever = () =>
  made.classes
    ? ""
    : isCausal()
      ? say` behind “${made.labels[guessPlace()]}” (${guessPlace()})`
      : say` at “${made.labels[guessPlace()]}” (${guessPlace()})`;

function writersHint() {
  return (
    ofLogit() +
    say`What each head, MLP and bias wrote towards “${escaped(guessed())}”${escaped(wherever())}, in logits, with all ` +
    say(
      "norms frozen. <b class=more>Purple</b> is for it, <b class=less>olive</b> against it; pale is within chance: what some part, ",
    ) +
    say(
      "measured by what it usually writes, gives one of 200 drawn tokens that are about as frequent. Choose a head or an MLP to see what it wrote.",
    ) +
    SELECTED
  );
}

// the guess was not drawn: measured at 364 guesses of models of random weights, of which up to 9 in
// 100 have such a part
const SELECTED = say(
  " The guess is the token with the largest sum, so some part of it is large more often than of a drawn token; and this is one text.",
);

function ofLogit() {
  // how much of the logit the parts are, which is to be known first
  const here = writtenHere(),
    guess = NTH.indexOf(state.guess);
  if (!here || guess >= here.w.guesses) return "";
  const {w, row} = here,
    logit = w.logits[row * w.guesses + guess],
    sum = d3.sum(partsOfGuess(), d => d.x);
  return w.linear
    ? say`The parts add up to the logit, ${logits(logit)}. `
    : say`The parts add up to ${logits(sum)} of the logit ${logits(logit)}: the output layer is not linear, each part counts by its ` +
        say("slope there, and the rest belongs to no part. ");
}

function partsChanged() {
  // of a difference: what each part writes more, or less, towards the guess in the second run
  const [before, after] = d3
    .range(2)
    .map(n => within(n, () => ({guess: guessed(), parts: partsOfGuess()})));
  if (!before.parts || !after.parts || before.parts.length !== after.parts.length) return [];
  const title = say`“${say(page.runs[1].name)}” less “${say(page.runs[0].name)}”:`;
  if (before.guess !== after.guess)
    return [
      line(
        title,
        say`the guesses are not the same, “${before.guess}” and “${after.guess}”, so their parts are not subtracted.`,
      ),
    ];
  const each = after.parts.map((d, n) => ({
    ...d,
    x: d.x - before.parts[n].x,
    isClear: d.isClear || before.parts[n].isClear,
  }));
  const isOwn = d => EMBEDDINGS.includes(d.name),
    all = [together("embedding", -1, each.filter(isOwn)), ...each.filter(d => !isOwn(d))];
  const largest = d3
    .sort(
      all.filter(d => isSeen(d.x)),
      d => -Math.abs(d.x),
    )
    .slice(0, CHANGES_SHOWN);
  const said =
    largest
      .map(d => `${partName(d)} ${logits(d.x)}${d.isClear ? "" : say(" (at chance in both)")}`)
      .join(", ") || say("nothing");
  return [line(title, say`${said}; all parts together ${logits(d3.sum(all, d => d.x))} logits.`)];
}

const CHANGES_SHOWN = 8; // parts that changed most
const PLACELESS = {
  word: say("words"),
  position: say("positions"),
  type: say("token types"),
  biases: say("last biases"),
};
const partName = d =>
  d.name !== "biases"
    ? flowName(d)
    : d.layer < 0
      ? PLACELESS.biases
      : say`biases of layer ${d.layer}`;

const told = draw => [
  ...(isDifference() ? partsChanged() : []),
  ...[
    pair(() => {
      // what `draw` makes of the parts of the guess, or why there are none
      const here = writtenHere(true),
        parts = partsOfGuess();
      if (!here) return note(askWriters ? say("Being computed …") : say("Not in this file."));
      if (!parts)
        return note(say("Of a text this long only the likeliest guesses are in the file."));
      return [...tokensOfGuess(), draw(parts)].flat();
    }),
  ].flat(),
];

const writers = width =>
  told(parts => [writersGrid(width, parts), writersRest(parts), writerChosen(parts)]);

const isMine = d => d.name === (isCross ? "cross_head" : "head");
const choosing = d =>
  // what a click on a part changes
  d.name === "mlp" ? {mlp: d.layer} : isMine(d) ? {head: d.layer * H + d.head} : null;
const isChosenWriter = d =>
  state.mlp === null
    ? isMine(d) && d.layer * H + d.head === state.head
    : d.name === "mlp" && d.layer === state.mlp;

function writersGrid(width, parts) {
  // a row for each layer: its heads, its MLP, its biases
  const palette = colours(),
    left = 44,
    step = Math.min((width - left - 8) / (H + 2.3), 90),
    text = step > 34;
  const x = {mlp: H + 0.3, biases: H + 1.3};
  const cells = parts
    .filter(d => d.layer >= 0 && (isMine(d) || d.name in x))
    .map(d => ({...d, at: x[d.name] ?? d.head}));
  const most = d3.max(cells, d => Math.abs(d.x)) || 1,
    mix = d3.interpolateRgbBasis(palette.change);
  const full = d => mix(0.5 + d.x / most / 2),
    shade = d => (d.isClear ? full(d) : d3.interpolateRgb(palette.card, full(d))(0.2));
  const ends = {
    x1: d => d.at - 0.48,
    x2: d => d.at + 0.48,
    y1: d => d.layer - 0.46,
    y2: d => d.layer + 0.46,
  };
  const fontSize = step < 46 ? 9 : 11;
  const titles = [
    ...d3.range(H).map(h => [h, `H${h}`]),
    [x.mlp, "MLP"],
    [x.biases, step > 40 ? "biases" : "b"],
  ];
  return plot({
    width: left + step * (H + 2.3) + 8,
    height: 26 + 26 * L,
    marginLeft: left,
    marginTop: 22,
    marginRight: 8,
    marginBottom: 4,
    x: {domain: [-0.5, H + 1.8], axis: null},
    y: {domain: [L - 0.5, -0.5], axis: null},
    marks: [
      Plot.rect(cells, {...ends, fill: shade, stroke: palette.line, strokeWidth: 0.5}),
      Plot.rect(cells.filter(isChosenWriter), {
        ...ends,
        fill: "none",
        stroke: palette.chosen,
        strokeWidth: 2,
      }),
      Plot.text(text ? cells : cells.filter(d => d.isClear), {
        x: "at",
        y: "layer",
        text: d => (text ? logits(d.x) : d.x < 0 ? "−" : "+"),
        fontSize,
        fill: d => (d.isClear ? onto(shade(d)) : palette.soft),
      }),
      Plot.text(titles, {x: d => d[0], y: -0.5, dy: -9, text: d => d[1], fontSize}),
      rowNames(L, l => `L${l}`),
      Plot.tip(cells, Plot.pointer({x: "at", y: "layer", ...tip(aboutWriter)})),
    ],
  });
}

function aboutWriter(d) {
  const name = isMine(d)
    ? [
        `L${d.layer}H${d.head}`,
        kindsOf(d.layer * H + d.head)
          .map(([kind]) => kind)
          .join(", "),
      ]
    : [say`${d.name === "mlp" ? "MLP" : say("biases")} of layer ${d.layer}`, ""];
  return [
    name.filter(Boolean).join(", "),
    say`${logits(d.x)} logits`,
    say`by chance within ±${d.chance.toFixed(2)}`,
  ].join("\n");
}

function writersRest(parts) {
  // what stands in no layer, and the heads of the other attention of a decoder
  const rest = parts
    .filter(d => d.layer < 0 && (isSeen(d.x) || isSeen(d.chance)))
    .map(d => `${PLACELESS[d.name]} ${logits(d.x)}`);
  const others = parts.filter(d => /head/.test(d.name) && !isMine(d));
  if (others.length)
    rest.push(
      `${isCross ? say("heads that look at what was said") : say("heads that look at the source")} ${logits(d3.sum(others, d => d.x))}`,
    );
  return make("p", {className: "rest", textContent: say`Beside the layers: ${rest.join(", ")}.`});
}

function writerChosen(parts) {
  // what the chosen head or MLP wrote; of a head also towards which words, from where
  const {w, row} = writtenHere(),
    own = parts.find(isChosenWriter);
  if (!own) return note(say`This model has no MLP ${state.mlp}.`); // beside another model that has
  const isSilent = own.name !== "mlp" && isOff(state.head),
    most = own.chance.toFixed(2),
    chance = own.isClear
      ? say`more than by chance, ±${most}`
      : say`no more than by chance, ±${most}; it may still act through later layers`;
  const box = make("div", {className: "written", role: "status"}, {"aria-live": "polite"});
  box.append(
    line(
      say`${flowName(own)} wrote ${logits(own.x)}`,
      say`towards “${guessed()}”${wherever()}: ${isSilent ? say("off: what it reads is not written") : chance}.`,
    ),
  );
  if (isSilent) return box;
  if (own.name === "mlp") {
    box.append(...aboutMlp(own));
    return box;
  }
  const k = w.heads
    ? d3.range(w.sizes.heads).find(k => Math.round(w.heads[row * w.sizes.heads + k]) === own.c)
    : undefined;
  if (k !== undefined) box.append(...wordsOf(w, row * w.sizes.heads + k));
  else if (w.heads)
    box.append(
      line(
        say("Its words"),
        say`are not in this file, which has those of the ${w.sizes.heads} heads that wrote most here.`,
      ),
    );
  return box;
}

function aboutMlp({c}) {
  // an MLP reads the stream at one token, and its words are not in the data
  const {w, row} = writtenHere(),
    others = guessesHere()
      .slice(0, w.guesses)
      .map(
        ({piece}, n) =>
          `“${piece}” ${logits(w.parts[(row * w.guesses + n) * w.components.length + c])}`,
      );
  return [
    ...(others.length > 1 ? [line(say("Towards each guess"), `${others.join(", ")}.`)] : []),
    line(
      say("It reads"),
      say("the stream at this token only. Which words it raises is told of heads, not of MLPs."),
    ),
  ];
}

function wordsOf(w, i) {
  const n = w.sizes.words,
    W = n / 2;
  const word = j => `“${w.pieces[Math.round(w.words[i * n + j])]}” ${logits(w.raised[i * n + j])}`;
  const source = r => {
    const s = Math.round(w.sources[i * w.sizes.sources + r]),
      label = isCross ? labels.key[s] : made.labels[s];
    return `“${label}” (${s}) ${logits(w.taken[i * w.sizes.taken + r])}`;
  };
  const taken = d3.range(w.sizes.sources).filter(r => isSeen(w.taken[i * w.sizes.taken + r]));
  const from = taken.map(source).join(", ") || say("nowhere in particular");
  return [
    line(say("Raises most"), `${d3.range(W).map(word).join(", ")}.`),
    line(say("Lowers most"), `${d3.range(W, n).map(word).join(", ")}.`),
    ...(state.guess === NTH[0] ? [line(say("Took that from"), `${from}.`)] : []),
  ];
}

export {
  choosing,
  exceeds,
  guessed,
  guessPlace,
  isChosenWriter,
  isMine,
  isSeen,
  line,
  logits,
  NTH,
  ofLogit,
  openWritten,
  partsOfGuess,
  SELECTED,
  TOLD,
  told,
  toldButtons,
  untold,
  wherever,
  writerChosen,
  writers,
  writersHint,
  writtenHere,
};
