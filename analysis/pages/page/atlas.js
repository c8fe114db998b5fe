"use strict";
// The page itself. Order: panes, drawing, controls, what is said of a head and of all heads, the theme, the start.

// panes: one for each run, with its grid, its large picture and what is said of the head

const panes = page.runs.map((run, n) => pane(n));

function pane(run) {
  const grid = new Grid(run), cloud = new Cloud(run), box = make("div", {className: "pane"});
  const heads = make("figure", {className: "view"}), large = make("figure", {className: "view"});
  const title = make("h2"), name = make("h2", {hidden: page.runs.length < 2, textContent: page.runs[run].name});
  const controls = make("div", {className: "controls"}), key = make("div", {className: "legend"});
  const about = make("div", {className: "about"}), bar = make("div", {className: "bar"});
  const hint = make("p", {className: "hint"}), keys = make("p", {className: "hint"});
  const button = (textContent, title, onclick) => make("button", {type: "button", textContent, title, onclick});
  const lasso = button("lasso", "Draw around points to choose them; or drag with Shift", () => {
    cloud.isLassoing = !cloud.isLassoing;
    lasso.setAttribute("aria-pressed", cloud.isLassoing);
    cloud.box.classList.toggle("lassoing", cloud.isLassoing);
  });
  lasso.setAttribute("aria-pressed", false);
  controls.append(lasso, button("let go", "No point and no lasso is chosen", () => set({point: null, lasso: null})),
                  button("+", "Nearer", () => cloud.zoom(1.4)), button("−", "Farther", () => cloud.zoom(1 / 1.4)),
                  button("reset", "The whole picture", () => cloud.home()));
  heads.append(make("h2", {textContent: "All heads"}), hint, grid.box);
  bar.append(title, controls);
  large.append(bar, keys, cloud.box, key, about);
  box.append(name, heads, large);
  return {run, grid, cloud, box, title, legend: key, about, hint, keys, drawn: {}};
}

// drawing: a part is drawn anew when what it depends on has changed

function set(changes) {
  if ("space" in changes) Object.assign(changes, {point: null, lasso: null});
  if ("projection" in changes) changes.lasso = null;
  Object.assign(state, changes);
  if ("space" in changes) state.heads = page.runs.map((_, run) => firstHead(run));
  if ("run" in changes && state.point && !seenRuns().includes(state.point.run)) state.point = null;
  update();
  keepAddress();
}

function update() {
  paint();
  writeControls();
  byId("panes").classList.toggle("both", seenRuns().length > 1);
  const boxes = seenRuns().map(run => panes[run].box), shown = [...byId("panes").children];
  if (boxes.some((box, n) => box !== shown[n]) || boxes.length !== shown.length) byId("panes").replaceChildren(...boxes);
  for (const run of seenRuns()) drawPane(panes[run]);
  writeSearched();
  writeSentence();
  writeWords();
}

function wantedOf(run) {  // what all pictures of a run depend on, as one text
  const {sides, search, lasso} = state;
  return [state.space, projectionOf(run), colourOf(run), sides, search.trim(), isDark(), lasso?.run === run ? [lasso.head, ...lasso.corners] : ""].join("|");
}

function drawPane(pane) {
  const {run, grid, drawn} = pane, head = state.heads[run], wanted = wantedOf(run);
  if (drawn.space !== state.space) {
    grid.build();
    drawn.space = state.space;
  }
  grid.mark();
  pane.title.textContent = nameOf(run, head);
  pane.hint.textContent = `${headsOf(run)} heads, a row for each layer; a letter is a flag (${
    Object.entries(FLAGS).map(([kind, letter]) => `${letter} ${kind}`).join(", ")}).`;
  const isDeep = isDeepIn(run);
  pane.keys.textContent = `${isDeep ? "Drag turns, " : "Drag pans, "}wheel zooms, Shift and drag is a lasso; with keys: arrows, + and −, 0 for all.`;
  pane.cloud.box.setAttribute("aria-label", `${nameOf(run, head)}, ${page.projections[projectionOf(run)]}: ${
    count(pointsOf(spaceOf(run)))} points. Arrow keys ${isDeep ? "turn" : "pan"}, plus and minus zoom, 0 shows all, Escape lets go. ` +
    "The sentence below has the same points as a list.");
  if (drawn.cloud !== `${wanted} ${head}`) {
    drawn.cloud = `${wanted} ${head}`;
    drawCloud(pane, head, drawn.cloud);
  } else {
    drawMarks(pane.cloud);
    writeAbout(pane);
  }
  if (drawn.grid !== wanted) {
    drawn.grid = wanted;
    byId("panes").dataset.pending = "some";
    grid.draw(wanted);
  }
}

async function drawCloud(pane, head, wanted) {
  const {run, cloud} = pane, {axes, facts} = await placesOf(run, head), own = await paintOf(run, head);
  await lightLasso(run);
  if (pane.drawn.cloud !== wanted) return;
  const places = placed(axes, facts), n = axes[0].length, isDeep = axes.length > 2;
  const points = {places, n, isDeep, split: countOf(spaceOf(run).queries), codes: own.codes, colours: own.colours};
  cloud.hover(null);
  const lit = litOf(run);
  cloud.show({...points, order: ordered(run, lit), lit});
  pane.legend.replaceChildren(...legend(own.legend));
  writeAbout(pane);
  writeSentence();
}

async function lightLasso(run) {  // what a lasso holds, also one that comes with an address
  const {lasso} = state;
  if (lasso?.run !== run || lasso.lit) return;
  const {axes, facts} = await placesOf(run, lasso.head);
  lasso.lit ??= inside(lasso, placed(axes, facts), axes[0].length, axes.length > 2, rangeOf(run));
}

function placed(axes, facts) {  // [3 n] codes to -1 ... 1 about the middle, all axes on one scale
  const n = axes[0].length, places = new Float32Array(3 * n);
  const ends = axes.map((codes, axis) => d3.extent(codes).map(code => facts[axis].low + code * facts[axis].step));
  const half = Math.max(...ends.map(([low, high]) => (high - low) / 2), 1e-30);
  axes.forEach((codes, axis) => {
    const {low, step} = facts[axis], middle = (ends[axis][0] + ends[axis][1]) / 2;
    for (let i = 0; i < n; i++) places[3 * i + axis] = (low + codes[i] * step - middle) / half;
  });
  return places;
}

function ordered(run, lit) {  // points in the order of drawing: mixed so that no side hides the other, lit last
  const [from, to] = rangeOf(run), n = to - from, order = new Uint32Array(n);
  let stride = Math.floor(n * 0.618) + 1, at = 0;
  while (divisor(stride, n) > 1) stride++;
  for (const isLit of lit ? [0, 1] : [0]) {
    for (let k = 0, i = 0; k < n; k++, i = (i + stride) % n) if (!lit || lit[from + i] === isLit) order[at++] = from + i;
  }
  return order;
}

const divisor = (a, b) => b ? divisor(b, a % b) : a;  // the greatest common one

// controls

const KINDS_OF_HEADS = () => ["all heads", "flagged heads",
                              ...new Set(page.runs.flatMap(run => run.spaces.flatMap(space => space.flags.map(flag => flag.kind))))];

function writeControls() {
  const run = seenRuns()[0];
  choices("projection", projectionsOf(run), projectionOf(run), name => page.projections[name]);
  choices("colour", colourNames(run), colourOf(run));
  choices("sides", SIDES, state.sides);
  choices("only", KINDS_OF_HEADS(), state.only);
  if (!typing) byId("search").value = state.search;
  radios("run", [...page.runs.map((each, n) => [n, each.name]), ...(page.runs.length > 1 ? [["both", "both, side by side"]] : [])]);
  radios("space", page.runs[run].spaces.map(({name}) => [name, {cross: "the decoder, to its source"}[name] ?? `the ${name}`]));
}

function choices(id, names, chosen, labelOf = name => name) {
  const select = byId(id);
  if ([...select.options].map(option => option.value).join("|") !== names.join("|")) {
    select.replaceChildren(...names.map(name => new Option(labelOf(name), name)));
  }
  select.value = chosen;
  select.onchange = () => set({[id]: select.value});
}

function radios(name, options) {  // where there is more than one to choose from
  const box = byId(name), id = options.join("|");
  box.hidden = options.length < 2;
  if (box.dataset.of !== id) {
    box.querySelectorAll("label").forEach(label => label.remove());
    for (const [value, text] of options) {
      const label = make("label"), input = make("input", {type: "radio", name, value, onchange: () => set({[name]: value})});
      label.append(input, ` ${text}`);
      box.append(label);
    }
    box.dataset.of = id;
  }
  box.querySelectorAll("input").forEach(input => { input.checked = input.value === `${state[name]}`; });
}

let typing = null;
byId("search").oninput = event => {
  const search = event.target.value;
  clearTimeout(typing);
  typing = setTimeout(() => {
    typing = null;
    set({search, lasso: null});
  }, 40);
};

function writeTokens() {  // what can be searched: the most frequent tokens
  const {queries} = spaceOf(seenRuns()[0]), many = d3.rollup(queries.token, rows => rows.length, token => token);
  const most = d3.sort(many.keys(), token => -many.get(token)).slice(0, 400);
  byId("tokens-there").replaceChildren(...most.map(token => new Option(queries.vocabulary[token])));
}

function writeSearched() {
  const words = state.search.trim(), parts = words ? seenRuns().map(run => searchedIn(run, words)) : [];
  byId("searched").textContent = parts.join(" · ");
}

function searchedIn(run, words) {
  const space = spaceOf(run), points = litList(run), {same} = once(space, `searched ${words}`, () => litBy(space, words));
  const queries = points.filter(i => isQuery(space, i)).length;
  const sentences = new Set(points.map(i => sentenceOf(space, i))).size;
  const where = seenRuns().length > 1 ? `${page.runs[run].name}: ` : "", rest = points.length - queries;
  if (!points.length) return `${where}no token here is or contains “${words}”.`;
  return `${where}${same ? "tokens that are" : "no token is, but some contain"} “${words}”: ${count(queries)} queries and ${
    count(rest)} keys in ${count(sentences)} sentences, lit in all heads.`;
}

// what is said of the chosen head

function writeAbout({run, about}) {
  const head = state.heads[run], flags = flagsOf(run, head), space = spaceOf(run), list = make("ul");
  list.append(...flags.map(flag => make("li", {textContent: flag.words})));
  const parts = [make("p", {textContent: flags.length ? "Exceeds chance:" : "No flag: nothing that is tested here exceeds chance."}), list,
                 make("p", {textContent: trustOf(run, head)}), make("p", {textContent: movedOf(run, head)})];
  const {misleads} = space.lie;
  if (misleads && misleads.layer * space.H + misleads.head === head) {
    const p = make("p");
    p.append(make("b", {textContent: "The picture misleads most here: "}), misleads.words);
    parts.push(p);
  }
  if (state.lasso?.run === run && state.lasso.lit) parts.unshift(make("p", {textContent: lassoed(run)}));
  about.replaceChildren(...parts);
}

function trustOf(run, head) {  // how far the picture of a head can be trusted, in the projection that is shown
  const {lie} = spaceOf(run), name = projectionOf(run), other = lie.others[name];
  const [shown, shuffled] = (other ?? [lie.near_plane, lie.near_plane_null]).map(values => percent(values[head]));
  return `How far to trust this picture: of the strongest keys, ${shown} are among the 10 keys of their sentence that are nearest in ${
    IN_PICTURE[name] ?? `the plane of ${page.projections[name]}`} (keys shuffled: ${shuffled}), ${percent(lie.near_space[head])} in the whole space (${
    percent(lie.near_space_null[head])}).`;
}

const SHARED = {head: ", the head's own", layer: ", shared by the layer", model: ", shared by all heads"};
const IN_PICTURE = {pca: "the plane", pca3: "these three dimensions"};

function movedOf(run, head) {  // how products follow distances, before and after queries and keys are moved and scaled
  const {moves} = spaceOf(run), at = name => signed(moves[name][head]);
  return `Scale c = ${number(moves.c[head])}${SHARED[page.runs[run].settings.scope] ?? ""}: products and distances correlate ${
    at("after")} after queries and keys are translated and scaled, ${at("before")} before (queries turned at random: ${at("after_null")} and ${
    at("before_null")}).`;
}

const LISTED = 8;  // tokens that are named of a lasso

function lassoed(run) {  // what the points in the lasso are
  const space = spaceOf(run), {head} = state.lasso, points = litList(run);
  if (!points.length) return "The lasso holds no point.";
  const queries = points.filter(i => isQuery(space, i)).length, many = d3.rollup(points, own => own.length, i => labelOf(space, i));
  const tokens = d3.sort(many, ([, n]) => -n).slice(0, LISTED).map(([token, n]) => `“${token}” ${n}`).join(", ");
  const [low, middle, high] = [0.1, 0.5, 0.9].map(share => d3.quantile(points, share, i => positionOf(space, i)));
  return `The lasso, drawn in ${nameOf(run, head)}, holds ${count(queries)} queries and ${count(points.length - queries)} keys of ${
    count(new Set(points.map(i => sentenceOf(space, i))).size)} sentences, lit in all heads. Positions: half are up to ${number(middle)}, ` +
    `four in five from ${number(low)} to ${number(high)}. Most frequent: ${tokens}.`;
}

// what is said of all heads: for those who hear the page, and as a list to choose from

function writeWords() {
  const run = lookedAt(), space = spaceOf(run), {flags, lie} = space, id = `${run} ${state.space} ${state.only}`;
  if (byId("words").dataset.of === id) return;
  byId("words").dataset.of = id;
  const kinds = d3.rollups(flags, own => own.length, flag => flag.kind).map(([kind, n]) => `${kind} ${n}`).join(", ");
  const heads = new Set(flags.map(flag => nameOf(run, flag.layer * space.H + flag.head))).size;
  const mean = name => percent(d3.mean(lie[name]));
  const said = [
    `${page.runs[run].name}: ${count(headsOf(run))} heads in ${space.L} layers. ${heads ? `${heads} ${heads > 1 ? "exceed" : "exceeds"} chance by kind: ${kinds}.`
      : "None exceeds chance by any kind that is tested."}`,
    `How far to trust the plane: over all heads, ${mean("near_plane")} of the strongest keys are among the 10 keys of their sentence ` +
      `that are nearest in the plane (keys shuffled: ${mean("near_plane_null")}), ${mean("near_space")} in the whole space (${mean("near_space_null")}).`];
  byId("summary").replaceChildren(...said.map(textContent => make("p", {textContent})));
  if (lie.misleads) byId("summary").append(misleading(run, lie.misleads));
  writeFlags(run, flags);
}

function toHead(run, head) {  // a button that chooses a head
  const onclick = () => {
    set({heads: state.heads.with(run, head)});
    panes[run].box.scrollIntoView();
  };
  return make("button", {type: "button", className: "inline", textContent: nameOf(run, head), onclick});
}

function misleading(run, {layer, head, words}) {
  const p = make("p");
  p.append("Where the picture misleads most: ", toHead(run, layer * spaceOf(run).H + head), `. ${words}`);
  return p;
}

function writeFlags(run, flags) {
  const body = make("tbody"), top = make("thead"), line = make("tr");
  line.append(...["head", "flag", "value", "by chance", "in words"].map(textContent => make("th", {textContent}, {scope: "col"})));
  top.append(line);
  for (const flag of flags.filter(({kind}) => ["all heads", "flagged heads", kind].includes(state.only))) {
    const row = make("tr"), cell = make("td");
    cell.append(toHead(run, flag.layer * spaceOf(run).H + flag.head));
    row.append(cell, ...[flag.kind, number(flag.value), number(flag.null), flag.words].map(textContent => make("td", {textContent})));
    body.append(row);
  }
  byId("flags").replaceChildren(...(flags.length ? [top, body] : []));
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
  style.setProperty("--strong", isDark() ? "45%" : "75%");  // the token's text stays readable
  byId("theme").textContent = isDark() ? "light colours" : "dark colours";
}

// the start

function precision() {
  const {steps} = spaceOf(0).packed.strongest;
  return "Coordinates in this file are rounded to 4,096 steps between the least and the greatest of their head (the third axis to 256), " +
    `norms to 64, weights within ${percent(1 / steps)}.`;
}

function start() {
  byId("model").textContent = page.runs.map(run => run.name).join(" and ");
  byId("sampled").textContent = page.runs.map(run => (page.runs.length > 1 ? `${run.name}: ` : "") + run.sampled[2]).join(" ");
  byId("settings").textContent = page.runs.map(run => Object.entries(run.settings).map(([key, value]) => `${key}: ${value}`).join(", ")).join(" | ");
  byId("precision").textContent = precision();
  Object.assign(state, fromAddress());
  update();
  writeTokens();
  [written] = addressOf();
  keepAddress();
}

paint();
if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
else start();
window.atlas = {state, set, panes, page};
