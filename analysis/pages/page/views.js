// The list of views: title, what to look at, how it is drawn, on which of the state the drawing
// depends, what a click chooses; `choices` are the lists above it, by the part of the state that
// they choose.

const CHOICE = ["head", "token", "side"];
const isThere = id => THERE[id]?.() ?? true;
const hasWriters = () =>
  state.part !== "encoder" &&
  Boolean(
    made.written ||
      (askWriters && !untold.has(made) && (made.guesses || made.classes) && !data.picture),
  );
const THERE = {
  profile: () => hasOffsets || Boolean(data.picture),
  neurons: hasNeurons,
  picture: () => Boolean(data.picture),
  guesses: () => Boolean(made.guesses || made.classes),
  lens: () => Boolean(made.lens),
  writers: () => hasWriters() && state.told === "writers",
  flow: () => hasWriters() && state.told === "flow",
  pushes: () => page.runs.some(run => partOf(run)?.outputs?.pushes),
  patched: () => Boolean(page.patched), // of a page that is saved
};
const runName = n => page.runs[n].name;
const escaped = text => text.replace(/[&<>"]/g, sign => `&#${sign.charCodeAt(0)};`); // hints are HTML, names are not

const isUnequal = () =>
  page.runs
    .slice(0, 2)
    .map(run => partOf(run))
    .some(({labels: own, keys}) => own.length !== T || (keys && keys.length !== S));

function compared() {
  if (isBoth()) return say` There is no difference to show: ${apart}.`;
  if (!isDifference()) return "";
  const [before, after] = page.runs.map(run => escaped(short(run.name, 40)));
  return (
    say` Shown is “${after}” less “${before}”: <b class=more>purple</b> is more, <b class=less>olive</b> is less.` +
    (isUnequal()
      ? say(
          " Tokens of the two texts are aligned; what one text alone has is left blank, so rows need not add up.",
        )
      : "")
  );
}

const ofPair = {between: say("Which text of a pair looks at which")};
const flowTitle = () => say`How the guess${wherever()} comes about`;

const VIEWS = {
  heads: {
    title: () => say("All heads"),
    draw: heads,
    mark: markHead,
    depends: ["sort", "only", "layer", "kind", "thumbs", "between"],
    pick: d => ({head: d.head}),
    choices: {
      thumbs: say("What the pictures show"),
      sort: say("In which order"),
      layer: say("Only heads of one layer"),
      kind: say("Only heads of one kind"),
      only: say("Only heads whose attention peaks at this offset"),
      ...ofPair,
    },
    hint: () =>
      say("One picture a head. ") +
      (state.thumbs === "attention"
        ? say("Its attention matrix: queries down, keys ") +
          (isDifference()
            ? say("across. One scale for all heads: a stronger colour is a larger change.")
            : isDark()
              ? say("across. One scale for all heads: bright is a large weight in each of them.")
              : say("across. One scale for all heads: dark is a large weight in each of them."))
        : say("Its queries and keys in the plane.")) +
      `<span class=by-keys>${say(" Arrow keys move from head to head.")}</span>` +
      marksHint() +
      (isDifference()
        ? ""
        : say(" Sharpness: 0 is a head that looks at all tokens alike, 1 at one of them.")) +
      (isAnywhere() || !hasOffsets
        ? ""
        : say(" Heads are left out whose mean there is within three standard errors of chance.")) +
      (isBoth() ? say` These are the heads of “${escaped(short(runName(0), 40))}”.` : "") +
      betweenHint() +
      compared(),
  },
  matrix: {
    title: () => say`${nameOf(state.head)}: attention matrix`,
    draw: matrix,
    mark: markRow,
    isSingle: true,
    depends: ["head", "between"],
    choices: ofPair,
    pick: d => ({token: state.side === "query" ? d.i : d.j}),
    hint: () =>
      (isDifference() && !isUnequal()
        ? say(
            "A row is a query and adds up to 0: what it gives more to one key it gives less to ",
          ) + say("others.")
        : say(
            "A row is a query and adds up to 1: how its attention is shared out over the keys. Numbers are positions.",
          )) +
      (isCross ? say(" The query is of the token that was said last: it asks for the next.") : "") +
      (data.causal ? say(" This model does not see to the right: the empty half.") : "") +
      betweenHint() +
      compared(),
  },
  picture: {
    title: () => say`${nameOf(state.head)}: attention over the picture`,
    draw: picture,
    depends: CHOICE,
    isSingle: true,
    pick: d => ({token: d.n}),
    hint: () => pictureHint() + compared(),
  },
  lines: {
    title: () => say`${nameOf(state.head)}: who looks at whom`,
    draw: lines,
    mark: markLine,
    depends: [...CHOICE, "between"],
    isSingle: true,
    choices: ofPair,
    pick: d => ({token: d.n, side: d.side}),
    hint: () =>
      say("From what looks, left, to what is looked at, right; wider is more. ") +
      (state.token === null
        ? isDifference()
          ? say`Weights from ${ALL} on.`
          : say`Weights from ${ALL} on, and each query’s strongest.`
        : say`Weights from ${ONE} on.`) +
      betweenHint() +
      compared(),
  },
  flow: {
    title: flowTitle,
    draw: flow,
    hasTold: true,
    depends: ["head", "mlp", "token", "side", "guess"],
    hasText: true,
    pick: d => (d.guess ? {guess: d.guess} : (choosing(d) ?? {})),
    choices: {guess: say("Which guess")},
    hint: flowHint,
  },
  writers: {
    title: flowTitle,
    draw: writers,
    hasTold: true,
    depends: ["head", "mlp", "token", "side", "guess"],
    hasText: true,
    pick: d => choosing(d) ?? {},
    choices: {guess: say("Which guess")},
    hint: writersHint,
  },
  layer: {
    title: () => say`Layer ${layerOf(state.head)}: its heads in one view`,
    draw: layer,
    depends: [...CHOICE, "heads", "between"],
    hasText: true,
    choices: ofPair,
    pick: d => ({token: d.n, side: d.side}),
    hint: () =>
      say(
        "Who looks at whom, a colour for each head. Buttons bring the layer's other heads, or take one out. ",
      ) +
      (layerHeads().some(isOff) ? say("Struck through: switched off. ") : "") +
      (state.token === null
        ? say`Weights from ${STRONG} on; choose a token to see all from ${ONE} on.`
        : say`Weights from ${ONE} on.`) +
      betweenHint(),
  },
  joint: {
    title: () => say`${nameOf(state.head)}: queries and keys in one space`,
    draw: joint,
    depends: [...CHOICE, "stage", "colour", "between"],
    choices: {stage: say("State of queries and keys"), colour: say("What colours mean")},
    pick: d => ({token: d.n, side: d.side}),
    hint: () =>
      say(
        "<b class=query>●</b> queries and <b class=key>◆</b> keys in the plane in which they vary most",
      ) +
      `${data.distance === "cosine" ? say(", by direction alone. ") : ". "}${
        state.stage === "normalised"
          ? say("Keys are moved ") +
            say(
              "and both are scaled, so that what is near gets attention where possible; no weight changes by that. ",
            )
          : ""
      }` +
      say(
        "Numbers are positions; point at one, or tap it, to see its token. Wider lines are larger weights",
      ) +
      (state.token === null ? say`: all from ${ALL} on, and each query's strongest.` : "."),
  },
  columns: {
    title: () => say`${nameOf(state.head)}: queries and keys by singular direction`,
    draw: waves,
    depends: ["head", "token"],
    pick: d => ({token: d.n, side: d.side}),
    hint: columnsHint,
  },
  guesses: {
    title: () => say("The model's guesses"),
    draw: guesses,
    mark: showRow,
    depends: ["token", "side", "rows"],
    isText: true,
    hint: () =>
      (isDifference()
        ? say(
            "Changes are in percentage points. “<” stands for a token that is not among the five likeliest of a run: this page has no probability of it, which is no more than that of the fifth; the change is then at least, or between, what is said. ",
          )
        : "") +
      (data.picture
        ? say("How likely the model finds each class for the whole picture.")
        : made.classes
          ? say("How likely the model finds each class for the whole text.")
          : isCausal()
            ? say(
                "What the model expects behind each token, beside what really comes; a best guess that is right is ",
              ) + say("bold, with a ✓.")
            : say(
                "What the model finds likeliest at each place. It sees the token itself, unless it is a mask; so most guesses ",
              ) + say("are that token. Write a mask into the text to make it guess.")),
  },
  profile: {
    title: () => say`${nameOf(state.head)}: relative positions`,
    depends: CHOICE,
    isSingle: true,
    draw: width => (data.picture ? gridOffsets(width) : offsets(width)),
    hint: () =>
      data.picture
        ? say(
            "Mean weight of patches on the patch so many rows below and columns to the right (minus: above, to the left). A ",
          ) +
          say(
            "head that finds patches by their position has one cell that stands out. The dashed cell is the patch itself.",
          ) +
          compared()
        : say(
            "Mean weight at each distance, beside a head that looks at everything alike (uniform: chance). A head that ",
          ) +
          say("knows positions stands out at one distance.") +
          compared(),
  },
  values: {
    title: () => say`${nameOf(state.head)}: values`,
    draw: valuesOf,
    depends: CHOICE,
    pick: d => ({token: d.j, side: "key"}),
    hint: () =>
      say("Bars: how long the vector is that each key offers, its value V = X W_V. ") +
      (state.token === null
        ? say(
            "Blue is what queries take of it on average, weight × length; choose a token to see what it takes.",
          )
        : state.side === "query"
          ? say(
              "Blue is what the chosen query takes of it: weight × length. A large weight on a short value brings little.",
            )
          : say(
              "Choose what the token looks at to see how much of each it takes: weight × length.",
            )),
  },
  stream: {
    title: () => say("Lengths in the residual stream"),
    draw: stream,
    mark: showColumn,
    depends: ["token", "side", "written"],
    pick: d => ({token: tokenOf(d.t), side: "query"}),
    choices: {written: say("Of which vectors")},
    hint: () =>
      say(
        "How long the vector of each token is, layer by layer downwards: of the stream itself, or of what attention ",
      ) +
      say("or the MLP adds to it.") +
      (run().sizes.pre_norm
        ? ""
        : say(" This family norms the stream after each addition, so its lengths differ little.")),
  },
  lens: {
    title: () => say("Guesses after every layer"),
    draw: lens,
    mark: showColumn,
    depends: ["token", "side"],
    pick: d => ({token: tokenOf(d.t), side: "query"}),
    hint: () =>
      say(
        "What the model would say if it stopped after this layer (the logit lens): the likeliest token, in a ",
      ) +
      say(
        "stronger colour where it is more certain. Early layers are read with the output table, which they were not made for: ",
      ) +
      say("their rows may be no guess of the model."),
  },
  pushes: {
    title: () => say("What a guess comes from"),
    draw: pushes,
    mark: showColumn,
    depends: ["head", "token", "side", "way", "chance"],
    pick: d => ("t" in d ? {token: tokenOf(d.t), side: "query"} : {head: d.head}),
    choices: {way: say("How it is measured"), chance: say("Of which weights")},
    hint: pushHint,
  },
  patched: {
    title: () => say("What a second text carries over"),
    draw: () => [make("div", {className: "patched"}, {}, ...patchedMaps(page.patched))],
    depends: [],
    hasText: true,
    hint: () => patchedSays(page.patched),
  },
  neurons: {
    title: () => say`${nameOf(state.head)}: a query times a key, element by element`,
    draw: neurons,
    depends: [...CHOICE, "partner"],
    hasText: true,
    hint: () =>
      say(
        "A score is a sum: of each element of the query times the same one of the key. The largest come first; right of the line they raise the weight, left of it they lower it.",
      ),
  },
  overview: {
    title: () => say("The whole pass, step by step"),
    draw: overview,
    depends: [...CHOICE, "step"],
    isText: true,
    hint: () =>
      say(
        "From tokens to guesses: every box is one computation, the numbers below it are rows × columns of what ",
      ) +
      say`comes out. T = ${T} ${data.unit}s here. Choose a box to see what it does to this text.` +
      (isPair() ? say` Shapes are those of “${escaped(short(runName(runNumber()), 40))}”.` : ""),
  },
};

export {escaped, isThere, runName, VIEWS};
