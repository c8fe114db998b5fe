// The whole pass, from tokens to guesses, as boxes with their shapes: the layers, inside the chosen
// layer what writes to the stream, inside the chosen head its products. steps.js says what each box
// does.

const by = (...sizes) => sizes.join(" × ");
const run = () => current;

function boxesOf() {
  // three rows: [{title, boxes: [{step, name, shape}]}]
  return [
    {title: say("The whole pass"), boxes: passBoxes()},
    {title: say`Inside layer ${layerOf(state.head)}`, boxes: layerBoxes()},
    {title: say`Inside head ${nameOf(state.head)}`, boxes: headBoxes()},
  ];
}

function passBoxes() {
  const {d_model: D, n_vocab: V} = run().sizes;
  const last = made.guesses
    ? {name: say("vectors → guesses"), shape: by(T, V)}
    : {name: say("the stream as it ends"), shape: by(T, D)};
  return [
    {
      step: "embed",
      name: data.picture ? say("patches → vectors") : say("tokens → vectors"),
      shape: by(T, D),
    },
    ...d3
      .range(L)
      .map(layer => ({step: `layer${layer}`, name: say`layer ${layer}`, shape: by(T, D)})),
    {step: "unembed", ...last},
  ];
}

function layerBoxes() {
  const {d_model: D, d_mlp: M, rms_norm, pre_norm} = run().sizes,
    readsSource = run().parts && state.part !== "encoder";
  const writers = [
    {step: "attention", name: say`attention, ${H} heads`, shape: say`${by(T, T)} each`},
    {step: "mlp", name: "MLP", shape: by(T, M)},
  ];
  if (readsSource) {
    const shape = by(T, run().parts.cross.keys.length);
    writers.splice(1, 0, {
      step: "source",
      name: say`attention to the source, ${H} heads`,
      shape: say`${shape} each`,
    });
  }
  return writers.flatMap(box => {
    const norm = {
      step: `norm-${box.step}`,
      name: rms_norm ? say("RMS norm") : say("norm"),
      shape: by(T, D),
    };
    const add = {step: `add-${box.step}`, name: say("+ stream"), shape: by(T, D)};
    return pre_norm ? [norm, box, add] : [box, add, norm];
  });
}

function headBoxes() {
  const {d_model: D, scaled} = run().sizes,
    d = data.width;
  return [
    {step: "q", name: say("queries Q = X W_Q"), shape: by(T, d)},
    {step: "k", name: say("keys K = X W_K"), shape: by(S, d)},
    {step: "scores", name: say`scores Q Kᵀ${scaled ? " / √d" : ""}`, shape: by(T, S)},
    {step: "softmax", name: say("weights A, by softmax"), shape: by(T, S)},
    {step: "v", name: say("values V = X W_V"), shape: by(S, d)},
    {step: "mix", name: say("mixture A V"), shape: by(T, d)},
    {step: "join", name: say("all heads, times W_O"), shape: by(T, D)},
  ];
}

// shapes are those of one run; of a difference they are the same in both
const overview = () => [
  ...within(runNumber(), () => boxesOf().map(drawnRow)),
  ...(state.step ? pair(explanation) : [explanation()]),
];

function drawnRow({title, boxes}) {
  const row = make("div", {className: "row", role: "group"}, {"aria-label": title}),
    rest = make("div");
  rest.append(
    ...boxes.flatMap((box, n) => {
      const arrow = make("span", {className: "arrow", textContent: "→"}, {"aria-hidden": "true"});
      return n ? [arrow, button(box)] : [button(box)];
    }),
  );
  row.append(make("h3", {textContent: title}), rest);
  return row;
}

function button({step, name, shape}) {
  const isOpen = step === `layer${layerOf(state.head)}`,
    isChosen = step === state.step;
  const made = make(
    "button",
    {
      type: "button",
      className: isOpen ? "step open" : "step",
      id: `step-${step}`,
      title: firstSentence(step),
      onclick: () => choose(step),
    },
    {"aria-pressed": isChosen || isOpen},
  );
  made.append(make("span", {textContent: name}), make("small", {textContent: shape}));
  return made;
}

function choose(step) {
  // a layer opens with the head of the same number in it; attention, in its own part
  const layer = /^layer(\d+)$/.exec(step);
  if (layer) return set({head: layer[1] * H + (state.head % H), step: "layer"});
  const part = {attention: state.part === "cross" ? "decoder" : null, source: "cross"}[step];
  set(part && part !== state.part ? {part, step} : {step: step === state.step ? null : step});
}

function explanation() {
  const text = state.step
    ? explained(state.step)
    : say("Choose a box to see what is computed there, with numbers of this ") +
      say("text. A layer opens its own row; a head is chosen in “All heads”.");
  return make(
    "p",
    {className: "explained", textContent: text},
    {role: "status", "aria-live": "polite"},
  );
}

export {by, overview, run};
