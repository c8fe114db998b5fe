// The page itself. Order: boxes for the views, drawing, the text, mouse and keys, saving, the
// theme, the start.

const main = byId("views"),
  readout = byId("readout"),
  list = byId("tokens"),
  facts = make("table");
const boxes = {},
  drawn = {};
const ABOUT_HEAD = ["joint", "lines", "columns", "matrix", "profile", "values", "picture"];
const isOfHead = id => VIEWS[id].depends.includes("head");
// the long list of guesses has a row of its own, and beside it what is short
const rowOfGuesses = make("div", {className: "row-of-guesses"}),
  nextToGuesses = make("div", {className: "beside"});
const STAND_BESIDE = ["profile", "values", "stream"];
const placeOf = id =>
  STAND_BESIDE.includes(id) ? nextToGuesses : id === "guesses" ? rowOfGuesses : main;

// boxes

const DRAWN = {
  larger: "M9.5 2H14v4.5M14 2 9 7M6.5 14H2V9.5M2 14l5-5",
  smaller: "M13.5 7H9V2.5M9 7l5-5M2.5 9H7v4.5M7 9l-5 5",
  save: "M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11",
};
const icon = name => `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${DRAWN[name]}"/></svg>`;

const SAID = {
  // above each list: a word of its whole name
  thumbs: say("pictures"),
  sort: say("order"),
  layer: say("layer"),
  kind: say("kind"),
  only: say("offset"),
  guess: say("guess"),
  stage: say("state"),
  colour: say("colours"),
  between: say("texts"),
  written: say("vectors"),
  way: say("measured"),
  chance: say("weights"),
};

// in a narrow window only the first views are open; the others open by their title
const isNarrow = !matchMedia("(min-width: 46rem)").matches;
const isUsuallyOpen = (id, n) => !["overview", "neurons"].includes(id) && (!isNarrow || n < 2);
const foldOf = id => boxes[id].parentElement;
const isUnfolded = id => isThere(id) && foldOf(id).open;

function unfoldChosen() {
  // what the address asks for
  for (const id of [state.view, state.step && "overview"].filter(Boolean)) foldOf(id).open = true;
}

Object.entries(VIEWS).forEach(([id, view], n) => {
  const figure = placeOf(id).appendChild(make("figure", {className: "view", id}));
  if (id === "guesses") main.append(rowOfGuesses);
  const fold = figure.appendChild(make("details", {open: isUsuallyOpen(id, n)}));
  const summary = make("summary", {onclick: () => later(update)}),
    box = (boxes[id] = make("div", {className: "plot"}));
  const controls = make("div", {className: "controls"}),
    choices = Object.entries(view.choices ?? {});
  summary.append(make("h2"));
  controls.append(...(view.hasTold ? [toldButtons(id)] : []), ...choices.map(chooser));
  fold.append(
    summary,
    iconsOf(id, view),
    ...(choices.length ? [controls] : []),
    box,
    make("p", {className: "hint"}),
  );
  // Plot would pin the hover text
  box.addEventListener("pointerdown", event => event.stopPropagation(), true);
  keepTipInside(box);
  box.addEventListener("click", ({target}) => {
    const found = [...box.children, target.closest("svg")]
      .map(child => child?.value)
      .find(value => value);
    if (found && view.pick) set(view.pick(found));
  });
});
rowOfGuesses.append(nextToGuesses);
boxes.joint.after(
  make(
    "details",
    {className: "rest"},
    {},
    make("summary", {textContent: say("In numbers")}),
    facts,
  ),
);
boxes.columns.after(
  make(
    "details",
    {className: "rest"},
    {},
    make("summary", {textContent: say("As a formula")}),
    make("p", {
      textContent: say(
        "Queries X U_Q and keys X U_K, where U_Q S U_Kᵀ is W_A = W_Q W_Kᵀ, the heaviest columns first (% of S², whose sum is ‖W_A‖²).",
      ),
    }),
  ),
);

function iconsOf(id, view) {
  // the buttons in the heading of a view
  const icons = make("div", {className: "icons"}),
    button = properties => icons.appendChild(make("button", {type: "button", ...properties}));
  button({
    className: "larger",
    ariaLabel: say("larger"),
    onclick: () => {
      set({view: state.view === id ? null : id});
      byId(id).scrollIntoView({block: "nearest"});
    },
  });
  if (!view.isText)
    button({
      className: "save",
      innerHTML: `${icon("save")}SVG`,
      ariaLabel: say("save SVG"),
      onclick: () => save(id),
      title: say("Save this figure as a file that any drawing program opens"),
    });
  return icons;
}

function chooser([name, label]) {
  const select = make(
    "select",
    {onchange: () => set({[name]: select.value}), title: say(label)},
    {"aria-label": say(label), name},
  );
  return make("label", {}, {}, make("span", {textContent: SAID[name]}), select);
}

function writeChoosers() {
  for (const select of main.querySelectorAll(".controls select")) {
    const words = WORDS[select.name](),
      same = words.join() === [...select.options].map(option => option.value).join();
    if (!same) select.replaceChildren(...words.map(word => new Option(say(word), word)));
    select.value = state[select.name];
    if (select.name === "between") select.parentElement.hidden = words.length < 2;
  }
}

// drawing: a view is drawn anew when its width, the theme or what it depends on has changed. Those
// in sight are drawn at once, the others one by one when nothing else is to be done:
// main.dataset.pending counts them

const pending = new Set(),
  widths = {};
let waiting;

function update() {
  prepareWalk();
  paint();
  writeText();
  writeChoosers();
  for (const [id, view] of Object.entries(VIEWS)) writeHead(id, view);
  placeGuesses();
  // sizes are read before all drawing: the page is laid out once
  const there = Object.keys(VIEWS).filter(isUnfolded);
  // 0 while a window opens
  for (const id of there) widths[id] = Math.max(200, Math.floor(boxes[id].clientWidth));
  const seen = there.filter(inSight),
    stale = there.filter(id => drawn[id] !== wantedOf(id));
  pending.clear();
  for (const id of stale) seen.includes(id) ? drawNow(id) : pending.add(id);
  for (const id of there) if (!stale.includes(id)) markNow(id);
  wait();
  writeWalk();
  keepAddress();
}

function placeGuesses() {
  // a short list stands in a row like all, a long one beside two rows; both runs take a row of
  // their own
  rowOfGuesses.classList.toggle("wide", isPair());
  rowOfGuesses.classList.toggle(
    "short",
    !isPair() && (!made.guesses || !isThere("guesses") || rowsShown() <= SHORT_LIST),
  );
}

function writeHead(id, view) {
  const figure = byId(id),
    isLarge = state.view === id;
  figure.hidden = !isThere(id);
  if (figure.hidden) return;
  figure.classList.toggle("large", isLarge);
  figure.classList.toggle("off", ABOUT_HEAD.includes(id) && isOff(state.head));
  Object.assign(figure.querySelector("h2").dataset, {off: say("(off)")});
  figure.querySelector("h2").textContent = view.title();
  figure.querySelector(".hint").innerHTML =
    (figure.classList.contains("off") ? say`<b>${nameOf(state.head)} is ${OFF}.</b> ` : "") +
    view.hint();
  Object.assign(figure.querySelector(".larger"), {
    innerHTML: icon(isLarge ? "smaller" : "larger"),
    ariaLabel: isLarge ? say("smaller") : say("larger"),
    title: isLarge ? say("Back to its place") : say("Show this view over the whole width"),
  });
}

function redraw(...ids) {
  // what they show has arrived
  for (const id of ids) delete drawn[id];
  update();
}

function wantedOf(id) {
  // what the drawing of a view depends on, as one text
  const {run, part} = state;
  return [
    version,
    widths[id],
    isDark(),
    run,
    part,
    ...VIEWS[id].depends.map(name => state[name]),
  ].join("|");
}

function inSight(id) {
  const {top, bottom} = boxes[id].getBoundingClientRect();
  return bottom > -100 && top < innerHeight + 100;
}

function drawNow(id) {
  const box = boxes[id],
    focused = box.contains(document.activeElement) ? document.activeElement.id : "";
  pending.delete(id);
  drawn[id] = wantedOf(id);
  const draw = () => VIEWS[id].draw(widths[id]);
  box.replaceChildren(
    ...[isBoth() && VIEWS[id].isSingle ? pair(draw) : draw()].flat().filter(Boolean),
  );
  hideParts(box);
  if (focused) byId(focused)?.focus({preventScroll: true}); // what had it was replaced by its like
  markNow(id);
}

function markNow(id) {
  const box = boxes[id],
    hint = foldOf(id).querySelector(".hint").textContent;
  VIEWS[id].mark?.(box);
  if (id === "heads") return; // a list, not a picture
  later(() => {
    const right = box.scrollWidth > box.clientWidth,
      below = box.scrollHeight > box.clientHeight;
    box.tabIndex = right || below ? 0 : -1;
    box.classList.toggle("right", right); // there is more than is seen
    box.classList.toggle("below", below);
  });
  const isRegion = VIEWS[id].isText || VIEWS[id].hasText;
  box.setAttribute("role", isRegion ? "region" : "img");
  box.setAttribute(
    "aria-label",
    VIEWS[id].title() + (isRegion ? "" : `. ${hint} ${readout.textContent}`),
  );
}

function hideParts(box) {
  // the parts of a picture from those who hear the page: the picture itself has a name
  box.querySelectorAll("svg [aria-label]:not([role])").forEach(part => {
    if (part.querySelector("[role=option]")) part.removeAttribute("aria-label");
    else part.setAttribute("aria-hidden", "true");
  });
}

function wait(milliseconds = 150) {
  // a change that follows soon, as in typing, makes the others wait again
  main.dataset.pending = pending.size;
  clearTimeout(waiting);
  if (!pending.size) return;
  waiting = setTimeout(() => {
    const [id] = pending;
    pending.delete(id);
    wait(0); // before one is drawn: a fault in one view is no fault of the others
    drawNow(id);
  }, milliseconds);
}

function drawAll() {
  // all at once: before printing, and for those who want every view now
  for (const id of [...pending]) drawNow(id);
  wait();
}

// the text, and what is said of the chosen token and head

let options = []; // {n, side: which text it is of, null where there is only one, element}

function writeTokens() {
  // in cross the decoder's tokens, the queries, and below them those of the source, the keys
  const sides = isCross ? ["query", "key"] : [null];
  options = sides.flatMap(side =>
    labels[side ?? "query"].map((textContent, n) => {
      const id = `token${side === "key" ? T + n : n}`;
      const onclick = () => set(side ? {token: n, side} : {token: n});
      return {
        n,
        side,
        element: make("span", {className: "token", id, textContent, onclick}, {role: "option"}),
      };
    }),
  );
  const elements = options.map(option => option.element);
  if (isCross) elements.splice(T, 0, make("hr", {}, {"aria-hidden": "true"}));
  // before the second text of a pair
  const borders = isCross ? [[second?.key, T + 1]] : [[second?.query, 0]];
  for (const [n, before] of borders)
    if (n)
      elements.splice(before + n, 0, make("hr", {className: "border"}, {"aria-hidden": "true"}));
  list.replaceChildren(...elements);
}

function writeText() {
  const {token, side} = state,
    chosen = options.find(option => option.n === token && (option.side ?? side) === side);
  for (const {n, side: own, element} of options) {
    const weight = own === side ? 0 : weightOf(n),
      isWeighed = token !== null && own !== side;
    const name = say`${element.textContent}, position ${n}${isWeighed ? say`, weight ${number(weight)}` : ""}`;
    element.setAttribute("aria-selected", element === chosen?.element);
    element.setAttribute("aria-label", name);
    element.title = name;
    element.style.setProperty("--weight", Math.sqrt(Math.min(1, size(weight) || 0)).toFixed(3));
    element.style.setProperty(
      "--of",
      `var(--${isDifference() ? (weight > 0 ? "more" : "less") : other(side)})`,
    );
  }
  const shown = token === null && isOfToken() ? tokenOf(shownToken()) : -1;
  for (const {n, side: own, element} of options)
    element.classList.toggle("shown", n === shown && own !== "key");
  list.setAttribute("aria-activedescendant", chosen ? chosen.element.id : "");
  later(() => {
    if (chosen) scrollToOption(chosen.element);
    writeMore();
    keepBelowBand();
  });
  readout.textContent = said();
  byId("compared").textContent = acrossRuns();
  byId("precision").textContent = precision();
  for (const name of ["run", "part", "side"]) {
    for (const input of document.querySelectorAll(`input[name=${name}]`))
      input.checked = input.value === `${state[name]}`;
  }
  writeSide();
  facts.replaceChildren(...factRows());
}

function writeSide() {
  // what is asked of the chosen token can be chosen once there is one
  const isNone = state.token === null;
  byId("side").querySelector("legend").textContent = isNone
    ? say`Once a ${data.unit} is chosen, show`
    : say`Of the chosen ${data.unit} show`;
  for (const control of byId("side").querySelectorAll("input")) control.disabled = isNone;
  byId("release").hidden = isNone;
}

function scrollToOption(element) {
  list.scrollTop = element.offsetTop - list.offsetTop - list.clientHeight / 2;
  list.scrollLeft = element.offsetLeft - list.offsetLeft - list.clientWidth / 2;
}

function keepBelowBand() {
  // a view that is scrolled to stands below what stays in sight: on a phone the strip alone
  const band = [byId("text"), byId("strip")].find(element => element.offsetHeight),
    isKept = getComputedStyle(band).position === "sticky";
  document.documentElement.style.setProperty("--band", `${isKept ? band.offsetHeight : 0}px`);
}

function writeMore() {
  // what the strip does not show of the text, and what a row of � stands for
  const {scrollHeight, clientHeight, scrollWidth, clientWidth} = list,
    scrolls = scrollHeight > clientHeight + 4 || scrollWidth > clientWidth + 4;
  const isCut = Object.values(labels)
    .flat()
    .some(label => label.includes("�"));
  list.classList.toggle("scrolls", scrolls);
  byId("more").textContent = [
    scrolls ? say`${options.length} ${data.unit}s: scroll for the others.` : "",
    isCut
      ? say(
          "� is part of a letter: this tokenizer reads bytes, and the bytes of that letter stand in several tokens.",
        )
      : "",
  ]
    .join(" ")
    .trim();
}

function factRows() {
  // what is measured of the chosen head; of two runs of both
  if (isBoth())
    return page.runs.flatMap((run, n) => [
      rowOf([run.name, ""], "th"),
      ...[within(n, factsOf)].flat(),
    ]);
  return factsOf();
}

function factsOf() {
  if (inside) return data.facts.map(({means, values}) => rowOf([means, values[state.head]]));
  const kept = isDifference() ? page.runs.map(run => partOf(run)) : [data];
  const names = isDifference() ? [["", ...page.runs.map(run => run.name)]] : [];
  const values = data.facts.map(({means}, n) => [
    means,
    ...kept.map(part => part.facts[n].values[state.head]),
  ]);
  return [...names.map(cells => rowOf(cells, "th")), ...values.map(cells => rowOf(cells))];
}

function rowOf(cells, tag = "td") {
  const row = make("tr");
  row.append(...cells.map(textContent => make(textContent ? tag : "td", {textContent})));
  return row;
}

// guesses of one token are shown
const isOfToken = () => isThere("guesses") && !made.classes && !data.picture;

function said() {
  const {head, token, side} = state,
    name = (isBoth() ? `“${runName(0)}”, ` : "") + nameOf(head);
  if (token === null)
    return (
      say`${name} ${inShort(head)}. All ${data.unit}s are shown: choose one to see it alone.` +
      (isOfToken() ? say` In a dashed frame: the token whose guess is shown.` : "")
    );
  const most = d3
    .sort(places[other(side)], n => -size(weightOf(n)))
    .slice(0, 4)
    .filter(n => size(weightOf(n)) >= ONE);
  const found = most.map(n => `${quoted(n, other(side))} ${number(weightOf(n))}`).join(", ");
  return (
    (isOff(head) ? `${say`${name} is ${OFF}.`} ` : "") +
    ofToken(name, quoted(token, side), found) +
    onlyBetween()
  );
}

function ofToken(name, chosen, found) {
  // what the chosen token looks at in a head, or what looks at it
  const {token, side} = state,
    way = side === "query" ? say("from") : say("to");
  if (isAlone(token, side)) return say`${name}: ${chosen} stands in “${runName(1)}” alone.`;
  if (isDifference()) {
    const runs = say`${name}, “${say(runName(1))}” less “${say(runName(0))}”`;
    return found
      ? say`${runs}: weights ${way} ${chosen}: ${found}`
      : say`${runs}: no weight ${way} ${chosen} changes by ${ONE} or more.`;
  }
  if (!found) return say`${name}: no weight ${way} ${chosen} is ${ONE} or more.`;
  return (
    `${name}: ` +
    (side === "query" ? say`${chosen} looks at ${found}` : say`at ${chosen} look ${found}`)
  );
}

// mouse and keys

byId("release").onclick = () => {
  set({token: null});
  list.focus({preventScroll: true}); // the button itself is of no use now
};
document.querySelectorAll("input[name=side]").forEach(input => {
  input.onchange = () =>
    set({
      side: input.value,
      token: state.token === null ? null : Math.min(state.token, labels[input.value].length - 1),
    });
});

function keys(element, changes) {
  // changes() -> {key: what it does to the state}
  element.addEventListener("keydown", event => {
    const change = !event.ctrlKey && !event.metaKey && !event.altKey && changes()[event.key];
    if (!change) return;
    event.preventDefault();
    set(change);
  });
}

keys(list, () => {
  const n = state.token,
    side = other(state.side),
    last = labels[state.side].length - 1;
  const go = to => ({token: Math.max(0, Math.min(last, to))});
  const turn = {side, token: n === null ? null : Math.min(n, labels[side].length - 1)};
  return {
    ArrowRight: go(n === null ? 0 : n + 1),
    ArrowLeft: go(n === null ? last : n - 1),
    Home: go(0),
    End: go(last),
    ArrowUp: turn,
    ArrowDown: turn,
    Escape: {token: null},
  };
});

Object.assign(boxes.heads, {
  tabIndex: 0,
  role: "listbox",
  ariaLabel: say("Heads. Arrow keys choose one."),
});
keys(boxes.heads, headKeys);
byId("to-heads").onclick = () => {
  byId("heads").scrollIntoView();
  boxes.heads.focus({preventScroll: true});
};

const PARTS = {
  encoder: say("the encoder's"),
  decoder: say("the decoder's, to what it has said"),
  cross: say("the decoder's, to its source"),
};

// saving: the plots of a view one below the other, under what they show

function svgOf(id) {
  const space = "http://www.w3.org/2000/svg",
    palette = colours(),
    title = 42;
  const add = (tag, attributes, text = "") => {
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  if (pending.has(id)) drawNow(id);
  const parts = [...boxes[id].querySelectorAll("svg")],
    sizes = parts.map(part => part.viewBox.baseVal);
  const width = d3.max(sizes, size => size.width) + 16,
    height = Math.ceil(title + d3.sum(sizes, size => size.height) + 8);
  const outer = add("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": "system-ui, sans-serif",
  });
  outer.append(
    add("rect", {width, height, fill: palette.card}),
    add(
      "text",
      {x: 8, y: 18, fill: palette.text, "font-size": 13, "font-weight": 600},
      VIEWS[id].title(),
    ),
    add(
      "text",
      {x: 8, y: 34, fill: palette.soft, "font-size": 11},
      short(page.runs.map(titleOf).join(" | "), Math.floor(width / 6)),
    ),
  );
  parts.forEach((part, n) => {
    const copy = outer.appendChild(part.cloneNode(true));
    copy.querySelectorAll("[aria-label=tip]").forEach(hover => hover.remove());
    copy.setAttribute("x", 8);
    copy.setAttribute("y", title + d3.sum(sizes.slice(0, n), size => size.height));
    copy.style.color = palette.text;
  });
  return new XMLSerializer().serializeToString(outer);
}

function save(id) {
  const href = URL.createObjectURL(new Blob([svgOf(id)], {type: "image/svg+xml"}));
  const names = [state.part, id, isOfHead(id) ? nameOf(state.head) : ""];
  make("a", {href, download: `${names.filter(Boolean).join("-")}.svg`}).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

// the theme: the system's until the button is used

byId("theme").onclick = () => set({dark: !isDark()});
systemDark.addEventListener("change", update);

function paint() {
  const {style} = document.documentElement;
  for (const [name, value] of Object.entries(colours())) {
    if (!Array.isArray(value)) style.setProperty(`--${name}`, value);
  }
  style.colorScheme = isDark() ? "dark" : "light";
  // the token's text stays readable
  style.setProperty("--strong", isDark() ? "45%" : isDifference() ? "55%" : "75%");
  byId("theme").textContent = isDark() ? say("light colours") : say("dark colours");
}

// the start

function precision() {
  const most = name => data.arrays[name].error.toPrecision(2);
  const counted = isCross ? say`${T} queries and ${S} keys` : say`a text of ${T} ${data.unit}s`;
  return (
    say`${L} layers × ${H} heads of width ${data.width}, ${counted}. Normalising queries and keys changed ` +
    say`no weight by more than ${data.moved.toPrecision(2)}. Numbers in this file are rounded to 65,536 steps, places ` +
    say("and columns to 4,096, between the least and the greatest of their head: weights within ") +
    say`${most("pattern")}, places in the plane within ${most("plane")}, columns within ${most("columns")}` +
    (!hasOffsets ? "." : say`, mean weights within ${most("profile")}.`)
  );
}

function writePage() {
  // what changes with the data alone
  byId("model").textContent = [...new Set(page.runs.map(run => run.model))].join(say(" and "));
  writeSigns();
  byId("changed").textContent =
    `${page.says ? say`Changed: ${page.says}.` : ""} ${page.patched?.sentence ?? ""}`.trim();
  const runs = page.runs.map((run, n) => [n, say(run.name)]);
  if (runs.length > 1)
    runs.push(["difference", apart ? say`both (no difference: ${apart})` : say("the difference")]);
  writeChoice("run", runs, run => set({run}));
  writeParts();
}

const SIGNS = {"⏎": say(" ⏎ is a line break."), "⇥": say(" ⇥ is a tab.")};

function writeSigns() {
  // beside that of a space, those that stand in a text or a guess
  const texts = page.runs
    .flatMap(run => Object.values(partsOf(run)))
    .flatMap(part => [
      ...part.labels,
      ...(part.keys ?? []),
      ...(part.outputs?.pieces ?? []),
      ...(part.outputs?.written?.pieces ?? []),
    ]);
  const there = Object.keys(SIGNS).filter(sign => texts.some(text => text.includes(sign)));
  byId("signs").textContent = there.map(sign => SIGNS[sign]).join("");
}

function writeParts() {
  const names = Object.keys(partsOf(page.runs[state.run === "difference" ? 0 : state.run]));
  writeChoice(
    "part",
    names.map(name => [name, PARTS[name] ?? name]),
    part => set({part}),
  );
}

function writeChoice(name, options, choose) {
  // radio buttons, where there is more than one to choose from
  const box = byId(name);
  box.querySelectorAll("label").forEach(label => label.remove());
  box.hidden = options.length < 2;
  for (const [value, text] of options) {
    const input = make("input", {type: "radio", name, value, onchange: () => choose(value)}),
      label = make("label");
    label.append(input, ` ${text}`);
    box.append(label);
  }
}

export {
  drawAll,
  foldOf,
  isOfToken,
  keys,
  main,
  redraw,
  unfoldChosen,
  update,
  writeHead,
  writePage,
  writeParts,
  writeTokens,
};
