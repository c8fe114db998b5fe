// The controls of the live page. What the reader wants stands in `wish`; every change of it is
// asked of the server, and the answer, runs as the static page has them, is shown by
// window.minitx.show. The newest wish wins. Order: the wish, its address, asking, the controls,
// those of changes, guesses, saving, the start.
const {minitx} = window,
  by = id => document.getElementById(`live-${id}`);
const start = JSON.parse(document.getElementById("data").textContent).live,
  {server} = start;
const pageId = crypto.randomUUID(); // by which the server knows what is newer
const plain = {
  model: start.model,
  text: start.text,
  second: start.second,
  target: null,
  words: false,
  hidden: [],
  changes: {},
  null: false,
  temperature: 1,
  top_k: null,
  top_p: null,
  other: null,
}; // other: the text it is patched with
const wish = structuredClone(plain);
let shown = {live: start, seconds: 0}; // the newest answer
// what a link says of the views, until there is what they are to show
let arrived = location.hash;
let waiting,
  asked = null; // the timer before a request, and the request that is on its way
// the control in which the reader types or slides: all of it is one step of the history
let typed = null;
const AGAIN = 2000; // milliseconds after which a server that did not answer is asked again

const model = () => server.models[wish.model];
const stack = () => wish.changes.stack ?? Object.keys(model().stacks)[0];
const sizes = () => model().stacks[stack()];
const isOfPictures = () => model().picture; // whose text is the name of a picture: sample:7
const isPair = () => "encoder" in model().stacks;
const signed = n => (n < 0 ? `−${-n}` : n ? `+${n}` : "0");
const nameOf = ([layer, head]) => `L${layer}H${head}`;

// the wish: what is changed goes to the address, to the controls, and to the server

function want(changes, {control = null, delay = 0, isStep = !control || control !== typed} = {}) {
  [typed, arrived] = [control, null];
  Object.assign(wish, changes);
  if (OF_TEXT.some(name => name in changes)) minitx.state.pushed = null;
  if (isPair() && !wish.changes.stack && (wish.null || isChanged()))
    wish.changes = {...wish.changes, stack: stack()};
  if (compared && compared !== patchable()) forgetPatched();
  writeControls();
  writeAddress(isStep);
  clearTimeout(waiting);
  waiting = setTimeout(ask, delay);
}

function change(changes, options) {
  // of the model; what changes nothing, or belongs to what is not chosen, is left out
  const next = {...wish.changes, ...changes};
  if (!next.stack) delete next.stack;
  for (const {name, nothing, of} of server.changes) {
    if (of.length && (next[of[0]] ?? null) !== of[1]) delete next[name];
    else if (of.length && next[name] === undefined) next[name] = by(name).valueAsNumber || 0;
    if (same(next[name] ?? nothing, nothing)) delete next[name];
  }
  want({changes: next}, options);
}

// what its button takes back
const RESET = ["changes", "null", "hidden", "temperature", "top_k", "top_p"];
// what its tokens are of: with another, they are asked for again
const OF_TEXT = ["model", "text", "second", "target", "words", "hidden"];
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

const isChanged = () =>
  server.edited || Object.keys(wish.changes).some(name => name !== "stack" && name !== "seed");

// the address: beside what the views keep there

const KEPT = Object.keys(plain),
  ALWAYS = ["model", "text"]; // with which another server may begin otherwise

function writeAddress(isStep) {
  // a step can be taken back by the browser's button
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of KEPT) {
    const value = JSON.stringify(wish[name]);
    if (value === JSON.stringify(plain[name]) && !ALWAYS.includes(name)) given.delete(name);
    else given.set(name, typeof wish[name] === "string" ? wish[name] : value);
  }
  // what will be looked at, once it is answered
  const isThere = shown.runs.some(run => run.name === "changed");
  if (isChanged() && !isThere && isStep) given.set("run", 1);
  else if (!isChanged() && isThere && isStep) given.delete("run");
  const isNew = isStep && `#${given}` !== (location.hash || "#");
  history[isNew ? "pushState" : "replaceState"](null, "", `#${given}`);
}

function fromAddress() {
  // what the address says of the wish; what makes no sense is left out
  const given = new URLSearchParams(location.hash.slice(1)),
    changes = structuredClone(plain);
  for (const name of KEPT.filter(name => given.has(name))) {
    try {
      const isText =
        ["model", "text", "second", "target", "other"].includes(name) && given.get(name) !== "null";
      changes[name] = isText ? given.get(name) : JSON.parse(given.get(name));
    } catch {}
  }
  if (!(changes.model in server.models)) changes.model = plain.model;
  // an address that names a model alone begins with a text that this model reads
  if (changes.model !== plain.model && !given.has("text"))
    Object.assign(changes, {text: server.models[changes.model].first, second: null});
  return changes;
}

function follow() {
  // an address that was opened or typed
  const next = fromAddress();
  if (next.null || Object.keys(next.changes).length) by("change").open = true;
  const isOther = !same(next, wish);
  if (isOther) want(next, {isStep: false});
  else writeAddress(false);
  arrived = isOther ? location.hash : null;
  by("other").value = wish.other ?? "";
  if (wish.other === null || compared === patchable()) return;
  by("patch").open = true;
  patch();
}

// asking

async function post(path, body, signal) {
  // the answer, or an Error with what the server says
  const headers = {"Content-Type": "application/json"};
  const answer = await fetch(`/api/${path}`, {
    method: "POST",
    headers,
    signal,
    body: JSON.stringify(body),
  });
  if (answer.ok) return answer;
  const {error, cut} = await answer.json().catch(() => ({error: answer.statusText}));
  throw Object.assign(new Error(error), {status: answer.status, cut});
}

async function ask() {
  asked?.abort();
  const request = (asked = new AbortController());
  by("status").classList.add("waits");
  const began = performance.now(),
    wanted = sameWish();
  try {
    const answer = await (
      await post("run", {page: pageId, ...ofRun(wanted)}, request.signal)
    ).json();
    if (request !== asked) return;
    answered = wanted;
    showAnswer(answer, began);
  } catch (error) {
    if (request === asked && error.name !== "AbortError" && error.status !== 409) {
      complain(error);
    }
  }
  if (request === asked) by("status").classList.remove("waits");
}

const NO_ANSWER = say("No answer: is minitx serve still running?");

function complain(error) {
  const why = error instanceof TypeError ? NO_ANSWER : error.message;
  by("status").className = "failed";
  document.body.classList.add("refused"); // what is below is of another text
  if (by("status").firstChild?.data !== why) by("status").textContent = why; // which is read aloud
  const {cut} = error;
  if (cut && !by("status").querySelector("button"))
    by("status").append(" ", textButton(say("cut it to what fits"), cut));
  if (!(error instanceof TypeError)) return;
  clearTimeout(waiting);
  waiting = setTimeout(ask, AGAIN);
}

const textButton = (textContent, text) =>
  make("button", {type: "button", textContent, onclick: () => want({text, hidden: []})});

function showAnswer(answer, began) {
  const run = nextRun(answer.runs.map(run => run.name));
  // of another model the sharpest one
  if (answer.live.model !== shown.live.model) minitx.state.head = null;
  shown = answer;
  minitx.show(answer);
  if (run !== minitx.state.run) {
    minitx.set({run}, false);
    minitx.viewed(); // written at once
  }
  arrive();
  writeKind();
  askKinds(answer.live.model);
  writeGuesses();
  writeCurve();
  if (by("patch").open) countTokens(); // of what is now the first text
  by("status").className = "";
  document.body.classList.remove("refused");
  document.title = `${wish.model}: ${short(wish.text, 40)} · minitx`;
  const says = answer.live.says ? say`Changed: ${answer.live.says}` : say("Model unchanged");
  by("status").textContent =
    [says, lengths(answer.live), lasted(performance.now() - began)].join(" · ") +
    typedHint(answer.live.typed);
}

const lasted = ms => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

const typedHint = typed =>
  typed &&
  say` ${typed} inside a text makes no pair: all token types are 0. “Second text of a pair” reads one, with types 0 and 1.`;

const lengths = ({tokens, source}) =>
  source === null
    ? say`${tokens} tokens`
    : say`${source} tokens of the source, ${tokens} of the target`;

function arrive() {
  // of the model in the address only now the layers, heads and parts are known
  if (arrived === null) return;
  history.replaceState(null, "", arrived);
  arrived = null;
  dispatchEvent(new Event("popstate"));
}

function nextRun(names) {
  // the run of that name as before; what was just changed is looked at
  const {run} = minitx.state,
    before = shown.runs.map(run => run.name);
  if (names.includes("changed") && !before.includes("changed")) return 1;
  if (run === "difference") return names.length > 1 ? run : 0;
  return Math.max(0, names.indexOf(before[run]));
}

// the controls

function fill(select, names, chosen) {
  const options = names.map(([value, text]) => new Option(text, value, false, value === chosen));
  select.replaceChildren(...options);
}

function writeControls() {
  const isCross = stack() === "cross";
  by("model").value = wish.model;
  if (typed !== by("text")) by("text").value = wish.text;
  if (typed !== by("second")) by("second").value = wish.second ?? "";
  if (typed !== by("target")) by("target").value = wish.target ?? "";
  if (typed !== by("picture")) by("picture").value = wish.text.split(":")[1] ?? 0;
  by("picture-label").hidden = !isOfPictures();
  for (const name of ["text-label", "words-label", "patch", "atlas"])
    by(name).hidden = isOfPictures();
  by("second-label").hidden = !model().pairs && wish.second === null;
  by("target-label").hidden = !isPair();
  writeKind();
  by("words").checked = wish.words;
  by("null").checked = wish.null;
  by("reset").hidden = RESET.every(name => same(wish[name], plain[name]));
  by("null").disabled = isCross;
  writeStack();
  for (const {box, name, reads_order: readsOrder, of_pictures: ofPictures} of server.changes) {
    box.hidden = ofPictures && !isOfPictures();
    box.disabled = (isCross && readsOrder) || (isOfPictures() && name === "mask");
  }
  writers.forEach(write => write());
}

function writeKind() {
  // what a model of one kind of text knows, and a word that no row of its table is for
  const {trained_on: kind, first} = model();
  by("kind").textContent =
    (kind && say`This model was trained on ${kind}, such as “${first}”. `) +
    (shown.live.unknown && shown.live.model === wish.model
      ? say("<unk> is a word that it does not know.")
      : "");
}

function writeStack() {
  // which stack of an encoder-decoder is changed
  by("stack").hidden = !isPair();
  by("stack")
    .querySelectorAll("label")
    .forEach(label => label.remove());
  for (const name of isPair() ? Object.keys(model().stacks) : []) {
    const onchange = () =>
      change({
        ...Object.fromEntries(Object.keys(wish.changes).map(key => [key, null])),
        stack: name,
      });
    const input = make("input", {
      type: "radio",
      name: "live-stack",
      checked: name === stack(),
      onchange,
    });
    by("stack").append(
      make("label", {}, {}, input, name === "cross" ? say(" cross-attention") : ` ${name}`),
    );
  }
}

// controls of changes: the server sends a record of each; DRAW has a function for each kind of
// control, which puts it into its box and returns what writes the wish into it

const DRAW = {choice, number, slider, mask, heads, layers};
const wishedValue = ({name, nothing}) => wish.changes[name] ?? nothing;
const filled = (words, name) => words.replace("{}", name);
let writers = [];

function drawChanges() {
  // what is switched off comes first: most try that first
  const boxes = {},
    isOff = ({kind}) => kind in {heads, layers};
  writers = d3
    .sort(server.changes, record => !isOff(record))
    .map(record => {
      const [owner] = record.of,
        legend = record.group || record.label;
      record.box = owner
        ? server.changes.find(({name}) => name === owner).box
        : (boxes[legend] ??= newBox(record, legend));
      return DRAW[record.kind](record);
    });
}

function newBox({title, note}, legend) {
  const isOfAll = title.includes("{}"),
    box = make(
      "fieldset",
      {},
      {},
      make("legend", {textContent: legend, title: isOfAll ? "" : title}),
    );
  // below all its controls
  if (note) later(() => box.append(make("small", {className: "note", textContent: note})));
  by("chance").before(box);
  return box;
}

function choice(record) {
  const {name, label, options, box} = record,
    onchange = () => change({[name]: select.value});
  const select = make("select", {id: `live-${name}`, ariaLabel: label, onchange});
  fill(select, options, record.nothing);
  box.append(select);
  return () => {
    select.value = wishedValue(record);
  };
}

function number(record) {
  const {
    name,
    label,
    unit,
    usual,
    bounds: [min, max],
    of: [owner, wanted],
    box,
  } = record;
  const oninput = () => change({[name]: input.valueAsNumber || 0}, {control: input});
  const input = make("input", {
    id: `live-${name}`,
    type: "number",
    min,
    max: max ?? "",
    step: 1,
    value: usual,
    oninput,
  });
  const whole = make("label", {}, {}, `${label} `, input, ` ${unit}`);
  box.append(whole);
  return () => {
    whole.hidden = owner !== undefined && wish.changes[owner] !== wanted;
    if (typed !== input) input.value = wish.changes[name] ?? input.value;
  };
}

function slider(record) {
  const {
    name,
    label,
    bounds: [min, max, step = 1],
    box,
  } = record;
  const oninput = () => change({[name]: input.valueAsNumber}, {control: input});
  const input = make("input", {
    id: `live-${name}`,
    type: "range",
    min,
    max,
    step,
    ariaLabel: label,
    oninput,
  });
  const says = make("output", {htmlFor: input.id});
  box.append(input, says);
  return () => {
    input.value = wishedValue(record);
    says.textContent = min < 0 ? signed(wishedValue(record)) : wishedValue(record);
  };
}

// a mask by distance: its family, a number for each parameter, what its values do, and its curve

function mask({name, options: {families, meanings}, box}) {
  const put = (values, control) => change({[name]: {...wish.changes[name], ...values}}, {control});
  const family = make("select", {
    id: "live-family",
    ariaLabel: say("Family of the mask"),
    onchange: () =>
      family.value
        ? change({[name]: {family: family.value, meaning: meaning.value}})
        : change({[name]: null}),
  });
  const meaning = make("select", {
    id: "live-meaning",
    ariaLabel: say("What the mask does"),
    onchange: () => put({meaning: meaning.value}),
  });
  fill(family, [["", say("none")], ...Object.keys(families).map(name => [name, name])], "");
  fill(
    meaning,
    Object.entries(meanings).map(([name, [label]]) => [name, label]),
    "weights",
  );
  const values = make("span", {id: "live-values"}),
    curve = make("div", {id: "live-curve"});
  box.append(family, values, meaning, curve);
  return () => {
    const mask = wish.changes[name],
      parameters = families[mask?.family] ?? {};
    family.value = mask?.family ?? "";
    meaning.hidden = !mask;
    meaning.value = mask?.meaning ?? "weights";
    meaning.title = say`m is the mask, s the scores: ${meanings[meaning.value][1]}`;
    writeParameters(values, mask, parameters, put);
  };
}

function writeParameters(box, mask, parameters, put) {
  const names = Object.keys(parameters);
  if (box.dataset.names !== names.join()) {
    box.dataset.names = names.join();
    box.replaceChildren(...names.map(name => parameter(name, parameters[name])));
  }
  names.forEach((_name, n) => {
    const input = box.children[n].lastChild,
      values = names.map((each, i) => mask.values?.[i] ?? parameters[each][0]);
    const changed = () => values.map((value, i) => (i === n ? input.valueAsNumber : value));
    input.oninput = () => {
      if (!isNaN(input.valueAsNumber)) put({values: changed()}, input);
    };
    if (typed !== input) input.value = values[n];
  });
}

function parameter(name, [value, min, max]) {
  const step = name === "n" ? 1 : "any";
  return make(
    "label",
    {},
    {},
    `${name.replace("_", " ")} `,
    make("input", {type: "number", min, max, step, value}),
  );
}

function writeCurve() {
  // the mask by distance, a line for each head where they differ
  const curve = wish.changes.mask && shown.live.curve;
  by("curve").replaceChildren();
  if (!curve) by("curve").removeAttribute("role");
  if (!curve) return;
  const points = curve.flatMap((values, head) =>
    values.map((value, distance) => ({value, distance, head})),
  );
  const style = getComputedStyle(document.documentElement);
  by("curve").append(
    Plot.plot({
      width: 220,
      height: 74,
      marginLeft: 30,
      marginBottom: 28,
      marginTop: 6,
      marginRight: 8,
      style: {
        background: "transparent",
        color: style.getPropertyValue("--text"),
        fontSize: "10px",
      },
      x: {label: say("distance (tokens) →"), ticks: 5, tickFormat: "d"},
      y: {domain: [0, 1], ticks: 2, label: null},
      marks: [
        Plot.lineY(points, {
          x: "distance",
          y: "value",
          z: "head",
          stroke: style.getPropertyValue("--bar"),
        }),
      ],
    }),
  );
  // what it shows is the name of its box
  by("curve").firstChild.setAttribute("aria-hidden", "true");
  by("curve").role = "img";
  by("curve").ariaLabel = say`Mask by distance: ${curve[0]
    .slice(0, 6)
    .map(value => value.toFixed(2))
    .join(", ")} …`;
}

// heads or layers: a button for each, pressed where its number is in the list; those of one box
// share a grid, a row a layer; the chosen head has a button of its own

const without = (list, name) => list.filter(other => String(other) !== String(name));
const has = (record, number) => wishedValue(record).some(other => String(other) === String(number));

function toggle(record, number) {
  change({
    [record.name]: has(record, number)
      ? without(wishedValue(record), number)
      : [...wishedValue(record), number],
  });
}

function heads(record) {
  const {
      box,
      words: [put, undo],
    } = record,
    button = make("button", {type: "button", id: `live-${record.name}`});
  gridOf(box).before(button);
  return () => {
    const {layers, heads} = sizes(),
      n = minitx.state.head ?? 0,
      pair = [Math.floor(n / heads), n % heads];
    const name = `${isPair() ? say`the ${stack()}'s ` : ""}${nameOf(pair)}`;
    button.hidden = pair[0] >= layers;
    button.textContent = filled(has(record, pair) ? undo : put, name);
    button.onclick = () => toggle(record, pair);
    writeCells(box);
  };
}

function layers({box}) {
  gridOf(box);
  return () => writeCells(box);
}

function gridOf(box) {
  // the details in which the grid of a box is
  const grid = box.querySelector("details");
  if (grid) return grid;
  const cells = make("div", {
    className: "cells",
    role: "group",
    ariaLabel: say("One row a layer: a button changes one, or undoes it"),
  });
  return box.appendChild(
    make(
      "details",
      {id: "live-grid", open: matchMedia("(min-width: 46rem)").matches},
      {},
      make("summary", {textContent: say("choose in a grid")}),
      cells,
      make("small", {
        textContent: say("L: a whole layer; M: its MLP; then its heads. Struck through: off."),
      }),
    ),
  );
}

function writeCells(box) {
  const {layers, heads} = sizes(),
    made = `${stack()} ${layers} ${heads}`,
    cells = box.querySelector(".cells");
  const own = kind => server.changes.filter(record => record.box === box && record.kind === kind);
  if (cells.dataset.made !== made) {
    cells.dataset.made = made;
    const columns = own("layers").length + own("heads").length * heads;
    cells.style.gridTemplateColumns = `repeat(${columns}, max-content)`;
    cells.replaceChildren(
      ...d3
        .range(layers)
        .flatMap(layer => [
          ...own("layers").map(record => layerCell(record, layer)),
          ...own("heads").flatMap(record =>
            d3.range(heads).map(head => headCell(record, [layer, head])),
          ),
        ]),
    );
  }
  for (const cell of cells.children) cell.write();
}

function cellOf(record, number, properties) {
  const cell = make("button", {
    type: "button",
    ...properties,
    onclick: () => toggle(record, number),
  });
  cell.write = () => cell.setAttribute("aria-pressed", has(record, number));
  return cell;
}

const layerCell = (record, layer) =>
  cellOf(record, layer, {
    className: "layer",
    textContent: filled(record.cell, layer),
    title: filled(record.label, layer),
  });

const headCell = (record, pair) =>
  cellOf(record, pair, {
    title: nameOf(pair),
    ariaLabel: `${nameOf(pair)} ${record.label}`,
    textContent: pair[1],
  });

// guesses: what the model says next, in place of what is hidden, or step by step

const visible = piece => piece.replaceAll(" ", "␣").replaceAll("\n", "⏎") || "∅";

function writeGuesses() {
  const {guesses} = shown.live,
    names = shown.runs.map(run => say(run.name));
  const {kind, places} = guesses,
    rows = {said: stepsTables, causal: nextRows, masked: hiddenRows}[kind] ?? (() => []);
  writeTools(kind);
  by("guesses").replaceChildren(...rows(places, names));
}

function writeTools(kind) {
  // those of a causal model stay while they are slid
  const box = by("tools");
  if (box.dataset.kind !== kind) box.replaceChildren(...(kind === "causal" ? sampler() : []));
  by("hide").replaceChildren(...(kind === "masked" && !wish.words ? hider() : []));
  box.dataset.kind = kind;
  if (kind === "causal")
    SAMPLING.forEach(({name, all}) => {
      const range = by(name);
      if (typed !== range) range.value = wish[name] ?? all;
      range.nextElementSibling.textContent = wish[name] ?? say("all");
    });
}

function guessRow(title, best, pick) {
  // a token each, its background as wide as its probability
  const tokens = best.map(([id, piece, p]) => {
    const content = [visible(piece), " ", make("small", {textContent: percent(p)})];
    const token = make(
      pick ? "button" : "span",
      pick ? {type: "button", title: APPENDS, onclick: () => pick(id)} : {},
      {},
      ...content,
    );
    token.className = "guess";
    token.style.setProperty("--p", `${100 * p}%`);
    return token;
  });
  return make("p", {}, {}, make("b", {textContent: title}), " ", ...tokens);
}

const nextRows = ([place], names) =>
  place.best.map((best, n) =>
    guessRow(names.length > 1 ? say`Next token, ${names[n]}` : say("Next token"), best, append),
  );
const APPENDS = say("A click appends it to the text");

const hiddenRows = (places, names) =>
  places.flatMap(place =>
    place.best.map((best, n) =>
      guessRow(say`Hidden token ${place.place}${names.length > 1 ? `, ${names[n]}` : ""}`, best),
    ),
  );

async function append(token) {
  // a token that was clicked, or null for one that is drawn
  try {
    const more = token === null ? {} : {token};
    const {text} = await (
      await post("next", {page: `${pageId}-n`, ...ofRun(wish), null: false, ...more})
    ).json();
    want({text, second: null, hidden: []});
  } catch (error) {
    complain(error);
  }
}

// how the next token is drawn, in the words of minitx.generate; at `all` none is left out
const SAMPLING = [
  {name: "temperature", label: say("Temperature "), min: 0, max: 2, step: 0.1},
  {name: "top_k", label: say("of the likeliest, top-k "), min: 1, max: 51, step: 1, all: 51},
  {
    name: "top_p",
    label: say("up to a probability of, top-p "),
    min: 0.05,
    max: 1,
    step: 0.05,
    all: 1,
  },
];

function sampler() {
  const draw = make("button", {
    type: "button",
    textContent: say("append one, drawn at random"),
    onclick: () => append(null),
  });
  const summary = make("summary", {textContent: say("How the next token is drawn")}),
    isUsed = SAMPLING.some(({name}) => wish[name] !== plain[name]);
  return [make("details", {open: isUsed}, {}, summary, ...SAMPLING.map(slide), draw)];
}

function slide({name, label, all, ...bounds}) {
  const oninput = () => {
    const value = range.valueAsNumber === all ? null : range.valueAsNumber;
    want({[name]: value}, {control: range, delay: 60});
    range.nextElementSibling.textContent = value ?? say("all");
  };
  const range = make("input", {id: `live-${name}`, type: "range", ...bounds, oninput});
  return make("label", {}, {}, label, range, make("output", {htmlFor: range.id}));
}

function hider() {
  // hides the chosen token of a masked model, else that whose guess is shown, or shows it again
  const token = minitx.state.token ?? tokenOf(shownToken()),
    isHidden = wish.hidden.includes(token),
    name = quoted(token, "query");
  const button = make("button", {
    type: "button",
    textContent: isHidden
      ? say`show token ${token} again`
      : say`hide ${name}: let the model guess it`,
    onclick: () => want({hidden: isHidden ? without(wish.hidden, token) : [...wish.hidden, token]}),
  });
  const all = make("button", {
    type: "button",
    textContent: say("show all"),
    onclick: () => want({hidden: []}),
  });
  return [button, ...(wish.hidden.length ? [all] : [])];
}

function stepsTables(places, names) {
  const head = [
    say("step"),
    say("reads"),
    say("says"),
    ...names.map(name => `${name}: p`),
    ...names.slice(1).map(name => say`${name}: prediction`),
  ];
  const rows = places.map((place, n) => {
    const others = place.best.slice(1).map(best => `${visible(best[0][1])} ${percent(best[0][2])}`);
    const cells = [
      n + 1,
      visible(place.asks),
      visible(place.said),
      ...place.of_said.map(percent),
      ...others,
    ];
    return make("tr", {}, {}, ...cells.map(textContent => make("td", {textContent})));
  });
  const heads = make(
    "tr",
    {},
    {},
    ...head.map(textContent => make("th", {textContent, scope: "col"})),
  );
  return [
    make(
      "details",
      {open: isOpen()},
      {},
      make("summary", {textContent: say("What it says, step by step")}),
      make("table", {}, {}, heads, ...rows),
    ),
  ];
}

const isOpen = () => by("guesses").querySelector("details")?.open ?? false;

// patching: what each head, and the stream at each place, carries from one text into the other

let patched = null, // the newest answer, and its model
  compared = null; // the model and texts of which it is, or which were refused

const patchable = () =>
  JSON.stringify([wish.model, wish.text, wish.second, wish.words, wish.hidden, wish.other]);

function forgetPatched() {
  // its maps, or why there are none, are of texts that are no longer there
  patched = compared = null;
  by("patch-says").classList.remove("failed");
  by("patch-maps").replaceChildren();
  by("patch-says").textContent = say("The text or the model is another one now: compare again.");
}

async function patch() {
  const {model, text, second, words, hidden, other} = wish,
    of = patchable();
  by("patch-says").classList.add("waits");
  try {
    const answer = await (
      await post("patch", {
        page: `${pageId}-t`,
        model,
        text,
        second,
        words,
        hidden,
        other: other ?? "",
      })
    ).json();
    if (of !== patchable()) return;
    patched = answer;
    writePatched();
  } catch (error) {
    if (of !== patchable()) return;
    patched = null;
    by("patch-maps").replaceChildren();
    by("patch-says").textContent = error instanceof TypeError ? NO_ANSWER : error.message;
  }
  compared = of;
  by("patch-says").classList.toggle("failed", !patched);
  by("patch-says").classList.remove("waits");
}

let counting; // the timer before it

async function countTokens() {
  // of the second text, while it is typed: both need as many
  const {model, text, second, words, hidden} = wish,
    other = by("other").value;
  try {
    const body = {page: `${pageId}-l`, model, text, second, words, hidden, other};
    const {lengths, differ, fits} = await (await post("lengths", body)).json();
    if (other !== by("other").value) return; // it is another one now
    by("fits").replaceChildren(
      ...(fits.length ? [say("Of as many tokens: ")] : []),
      ...fits.map(text => fitButton(text)),
    );
    const [n, m] = lengths;
    if (m === undefined || other === wish.other) return; // what is compared says more
    by("patch-says").classList.remove("failed");
    by("patch-says").textContent =
      n === m
        ? say`${m} tokens, as many as the first text.`
        : say`${m} tokens; the first text has ${n}, and as many are needed.${differ ? apartAt(differ) : ""}`;
  } catch {} // comparing says why
}

const apartAt = differ => {
  const [a, b] = differ.map(
    pieces => `${pieces.map(piece => `“${visible(piece)}”`).join(" ") || "∅"} (${pieces.length})`,
  );
  return say` They differ in ${a} and ${b}.`;
};

const fitButton = textContent =>
  make("button", {
    type: "button",
    textContent,
    onclick: () => {
      by("other").value = textContent;
      compare();
    },
  });

function compare() {
  // with the text that is typed: a step of the history
  wish.other = by("other").value;
  writeAddress(true);
  patch();
}

function writePatched() {
  if (!patched) return;
  by("patch-says").textContent = patchedSays(patched);
  by("patch-maps").replaceChildren(...patchedMaps(patched));
}

// who wrote a guess, and the kinds of heads: asked for when a view wants them, kinds once for
// each model

const ofRun = ({other, ...run}) => run; // what the server computes a run from
const sameWish = () => ({...wish, changes: structuredClone(wish.changes)});
let answered = sameWish(); // the wish that the page shows

const askWriters = async (run, place) =>
  (await post("writers", {page: `${pageId}-w${run}`, ...ofRun(answered), run, place})).json();

const askPair = async (run, layer, head, query, key) =>
  (
    await post("neurons", {
      page: `${pageId}-q${run}`,
      ...ofRun(answered),
      run,
      layer,
      head,
      query,
      key,
    })
  ).json();

const askTokens = async place =>
  (await post("pushes", {page: `${pageId}-g`, ...ofRun(answered), place})).json();

const known = new Set();

async function askKinds(model) {
  if (known.has(model)) return;
  known.add(model);
  try {
    minitx.learnKinds(
      model,
      await (await post("kinds", {page: `${pageId}-k`, model, text: plain.text})).json(),
    );
  } catch {
    known.delete(model);
  }
}

// saving and the Python

async function save() {
  try {
    const page = await (
      await post("save", {
        page: `${pageId}-s`,
        ...ofRun(wish),
        view: minitx.viewed(),
        ...(patched ? {other: wish.other} : {}),
        place: minitx.pushedAt(),
      })
    ).blob();
    const href = URL.createObjectURL(page);
    make("a", {href, download: "explore.html"}).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  } catch (error) {
    complain(error);
  }
}

async function showPython() {
  try {
    const {code} = await (
      await post("code", {
        page: `${pageId}-c`,
        ...ofRun(wish),
        place: minitx.placed(),
        ...(wish.words ? {} : {shown: minitx.looked()}),
      })
    ).json();
    by("code").querySelector("pre").textContent = code + (patched ? `\n\n${patched.code}` : "");
    if (!by("code").open) by("code").show();
    by("code").scrollIntoView({block: "nearest"});
  } catch (error) {
    complain(error);
  }
}

// the start

fill(
  by("model"),
  Object.keys(server.models).map(name => [name, name]),
  wish.model,
);
by("text").maxLength = server.limits.text;
document.getElementById("strip").prepend(by("change")); // which stays in sight with the tokens
document.getElementById("side").append(by("hide")); // what is done to the chosen token

by("model").onchange = ({target: {value}}) => {
  const {picture, first} = server.models[value],
    isOwn = wish.text !== model().first;
  const text = isOwn && picture === isOfPictures() ? wish.text : first;
  want({
    model: value,
    text,
    second: isOwn && !picture ? wish.second : null,
    hidden: [],
    changes: {},
    target: null,
    words: wish.words && !picture,
  });
};
by("picture").oninput = ({target}) =>
  want({text: `sample:${target.valueAsNumber || 0}`}, {control: target, delay: 120});
by("text").oninput = ({target}) =>
  want({text: target.value, hidden: []}, {control: target, delay: 120});
by("second").oninput = ({target}) =>
  want({second: target.value || null, hidden: []}, {control: target, delay: 120});
by("target").oninput = ({target}) =>
  want({target: target.value || null}, {control: target, delay: 120});
by("words").onchange = event => want({words: event.target.checked});
by("null").onchange = event => want({null: event.target.checked});
by("reset").onclick = () =>
  want(Object.fromEntries(RESET.map(name => [name, structuredClone(plain[name])])));
by("save").onclick = save;
by("python").onclick = showPython;
by("code").querySelector(".close").onclick = () => by("code").close();
by("code").querySelector(".copy").onclick = () =>
  navigator.clipboard.writeText(by("code").querySelector("pre").textContent);
by("patch-go").onclick = compare;
by("patch").ontoggle = () => by("patch").open && countTokens(); // examples
by("other").oninput = () => {
  clearTimeout(counting);
  counting = setTimeout(countTokens, 120);
};
by("other").onkeydown = event => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  compare();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", writePatched);
minitx.onchange(() => {
  writers.forEach(write => write());
  if (isDark() !== wasDark) writePatched();
  wasDark = isDark();
  if (shown.live.guesses.kind === "masked") writeGuesses();
});
addEventListener("keydown", ({key}) => {
  if (key === "Escape") by("code").close();
});
addEventListener("change", () => {
  typed = null;
});
addEventListener("popstate", follow);
let wasDark = isDark();
minitx.onAsk(askWriters, askPair, askTokens);
askKinds(start.model);
Object.assign(shown, {runs: JSON.parse(document.getElementById("data").textContent).runs});
drawChanges();
writeControls();
writeGuesses();
follow();
