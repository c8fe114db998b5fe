// A walk through the model in ten steps: one token on its way, in the chosen head, with the numbers
// of this text. Each step lights the view that it speaks of. A step of which the model has nothing
// is left out.

// title; what is said of the example (steps.js); the view that is lit; what the views show for it
const WALK = [
  {title: say("embedding"), says: lookedUpAs, lights: () => "tokens"},
  {title: say("position"), says: placedAt, lights: () => (hasTable() ? "stream" : "profile")},
  {title: say("query and key of a head"), says: asks, lights: () => "joint"},
  {
    title: say("their product"),
    says: STEPS.scores,
    lights: () => (isThere("neurons") ? "neurons" : "overview"),
    step: "scores",
  },
  {title: say("softmax"), says: STEPS.softmax, lights: () => "matrix"},
  {title: say("mixture"), says: STEPS.mix, lights: () => "values"},
  {
    title: say("residual stream"),
    says: (...of) => `${STEPS.join(...of)} ${STEPS.add(...of)}`,
    lights: () => "stream",
    written: () => (isCross ? "source writes" : "attention writes"),
  },
  {title: "MLP", says: STEPS.mlp, lights: () => "stream", written: () => "MLP writes"},
  {
    title: say("logit lens"),
    says: byLayer,
    lights: () => "lens",
    isThere: () => Boolean(made.lens),
  },
  {
    title: say("guess"),
    says: guessed,
    lights: () => (isThere("guesses") ? "guesses" : "stream"),
    written: () => "the stream",
  },
];
const hasTable = () => made.rows.pos_embed !== undefined || !hasOffsets;
const walkBox = byId("walk"),
  [backward, onward, ending] = ["back", "next", "end"].map(name =>
    walkBox.querySelector(`.${name}`),
  );
const stepsOfWalk = () => WALK.filter(({isThere}) => !isThere || isThere());
const SOFTMAX = WALK.findIndex(({says}) => says === STEPS.softmax) + 1;
let tokenOfWalk = null, // it was chosen for a step, and is let go at the end
  stepShown = 0,
  litShown; // whose view is lit, and the view

function lookedUpAs(of, sizes) {
  const {embed} = made.rows;
  return `${lookedUp(of, sizes)} ${say`That of ${token(of.n)} has length ${two(embed[of.n])}.`}`;
}

function placedAt(of, sizes) {
  // without a table: what the head looks at, by distance
  const says = positioned(of, sizes);
  return hasTable()
    ? `${says} ${say`${token(of.n)} enters layer 0 with length ${lengthAfter(0, of.n)}: the first row of the picture.`}`
    : `${says} ${say`Head ${nameOf(state.head)} ${inShort(state.head)}.`}`;
}

function asks({i, j}, {d_model: D}) {
  return (
    say`Head ${nameOf(state.head)} makes two vectors of ${data.width} numbers of each token's ${D}: a query, what it asks, and a key, what it answers to. ` +
    say`Of all keys, that of ${key(j)} gets the most weight of the query of ${query(i)}.`
  );
}

function byLayer({n}) {
  // the likeliest token after up to five layers, and from where on it is the guess itself
  const rows = made.labels.length,
    last = made.lens.pieces.length / made.lens.n / rows - 1,
    at = l => guessesAt(l * rows + n, made.lens)[0];
  const from = d3.range(last + 1).findLastIndex(l => at(l).piece !== at(last).piece) + 1;
  const layers =
    last > 5 ? [0, last / 3, (2 * last) / 3, last].map(Math.round) : d3.range(last + 1);
  const shown = layers.map(
    l =>
      say`${l ? say`after layer ${l - 1}` : say("before all layers")} “${at(l).piece}” (${percent(at(l).p)})`,
  );
  return (
    say`If the model stopped early, its output table would say at ${token(n)}: ${shown.join(", ")}. ` +
    (from
      ? say`From layer ${from - 1} on, “${at(last).piece}” stays likeliest.`
      : say`“${at(last).piece}” is likeliest from the start.`)
  );
}

function guessed(of, sizes) {
  const [best] = made.classes ? d3.sort(classGuesses(), ({p}) => -p) : [];
  return (
    STEPS.unembed(of, sizes) +
    (best ? say` The likeliest class is “${best.piece}”, ${percent(best.p)}.` : "") +
    (isOfToken() && isItself() ? say(" The model sees the token itself there.") : "")
  );
}

function prepareWalk() {
  // what the views show for a step that is new: its token, and what it speaks of
  const steps = stepsOfWalk();
  state.walk = Math.min(state.walk, steps.length);
  if (!state.walk) {
    tokenOfWalk = null;
    return;
  }
  if (state.token === null) {
    tokenOfWalk = isOfToken() ? tokenOf(shownToken()) : example().i;
    Object.assign(state, {token: tokenOfWalk, side: "query"});
  }
  if (state.walk === stepShown) return;
  const {step, written} = steps[state.walk - 1];
  if (step) state.step = step;
  if (written && WORDS.written().includes(written())) state.written = written();
}

function writeWalk() {
  const steps = stepsOfWalk(),
    {title, says, lights} = steps[state.walk - 1] ?? {},
    lit = lights?.();
  for (const id of ["tokens", ...Object.keys(VIEWS)]) byId(id).classList.toggle("lit", id === lit);
  const focused = walkBox.contains(document.activeElement) ? document.activeElement : null;
  if (!lit && focused) byId("to-walk").focus();
  walkBox.hidden = !lit;
  // where a token looks is told when the walk comes to it
  document.body.classList.toggle("ahead", Boolean(lit) && state.walk < SOFTMAX);
  if (!lit) stepShown = 0;
  if (!lit) return;
  const [heading, text] = walkBox.querySelectorAll("h2, p"),
    own = within(runNumber(), () => says(example(), run().sizes));
  put(heading, say`Step ${state.walk} of ${steps.length}: ${title}`);
  put(text, own.textContent ?? own);
  backward.disabled = state.walk === 1;
  onward.hidden = state.walk === steps.length;
  if (focused?.disabled || focused?.hidden) (onward.hidden ? ending : onward).focus();
  if (state.walk !== stepShown || lit !== litShown) later(() => scrollToStep(lit));
  [stepShown, litShown] = [state.walk, lit];
}

// what is the same is not read aloud again
const put = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

function scrollToStep(lit) {
  if (lit !== "tokens" && !foldOf(lit).open) {
    foldOf(lit).open = true;
    update();
  }
  drawAll(); // nothing above it grows later
  byId(lit).scrollIntoView();
}

byId("to-walk").onclick = () => {
  set({walk: 1});
  onward.focus({preventScroll: true});
};
backward.onclick = () => set({walk: state.walk - 1});
onward.onclick = () => set({walk: state.walk + 1});
const end = () => ({walk: 0, token: state.token === tokenOfWalk ? null : state.token});
ending.onclick = () => set(end());
keys(walkBox, () => ({
  ArrowRight: {walk: Math.min(state.walk + 1, stepsOfWalk().length)},
  ArrowLeft: {walk: Math.max(state.walk - 1, 1)},
  Escape: end(),
}));

export {prepareWalk, writeWalk};
