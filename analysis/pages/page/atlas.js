// The page itself. Order: panes, drawing, controls, what is said of a head and of all heads, the
// theme, the start.

// panes: one for each run, with its grid, its large picture and what is said of the head

const panes = page.runs.map((_run, n) => pane(n));

function pane(run) {
  const grid = new Grid(run),
    cloud = new Cloud(run),
    box = make("div", {className: "pane"});
  const heads = make("figure", {className: "view"}),
    large = make("figure", {className: "view"});
  const title = make("h2"),
    name = make("h2", {hidden: page.runs.length < 2, textContent: page.runs[run].name});
  const controls = make("div", {className: "controls"}),
    key = make("div", {className: "legend"});
  const about = make("div", {className: "about"}),
    bar = make("div", {className: "bar"});
  const hint = make("p", {className: "hint"}),
    keys = make("p", {className: "hint"});
  const button = (textContent, title, onclick) =>
    make("button", {type: "button", textContent, title, onclick});
  const lasso = button(
    say("lasso"),
    say("Draw around points to choose them; or drag with Shift"),
    () => {
      cloud.isLassoing = !cloud.isLassoing;
      lasso.setAttribute("aria-pressed", cloud.isLassoing);
      cloud.box.classList.toggle("lassoing", cloud.isLassoing);
    },
  );
  lasso.setAttribute("aria-pressed", false);
  controls.append(
    lasso,
    button(say("let go"), say("No point and no lasso is chosen"), () =>
      set({point: null, lasso: null}),
    ),
    button("+", say("Nearer"), () => cloud.zoom(1.4)),
    button("−", say("Farther"), () => cloud.zoom(1 / 1.4)),
    button(say("reset"), say("The whole picture"), () => cloud.home()),
    ...["svg", "png"].map(kind =>
      button(kind.toUpperCase(), say("Save this picture as a file"), () =>
        saveAs(kind, cloud, nameOf(run, state.heads[run]), seenIn(run), key),
      ),
    ),
  );
  heads.append(make("h2", {textContent: say("All heads")}), hint, grid.box);
  bar.append(title, controls);
  large.append(bar, keys, cloud.box, key, about);
  box.append(name, heads, large);
  return {run, grid, cloud, box, title, legend: key, about, hint, keys, drawn: {}};
}

const seenIn = run =>
  `${page.runs[run].name}, ${nameOf(run, state.heads[run])}, ${page.projections[projectionOf(run)]}`;

// drawing: a part is drawn anew when what it depends on has changed

function set(changes) {
  if ("space" in changes) Object.assign(changes, {point: null, lasso: null});
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
  const boxes = seenRuns().map(run => panes[run].box),
    shown = [...byId("panes").children];
  if (boxes.some((box, n) => box !== shown[n]) || boxes.length !== shown.length)
    byId("panes").replaceChildren(...boxes);
  for (const run of seenRuns()) drawPane(panes[run]);
  writeSearched();
  writeSentence();
  writeWords();
}

function wantedOf(run) {
  // what all pictures of a run depend on, as one text
  const {sides, search, lasso} = state;
  return [
    state.space,
    projectionOf(run),
    colourOf(run),
    sides,
    search.trim(),
    isDark(),
    lasso?.run === run ? [lasso.head, ...lasso.corners] : "",
  ].join("|");
}

function drawPane(pane) {
  const {run, grid, drawn} = pane,
    head = state.heads[run],
    wanted = wantedOf(run);
  if (drawn.space !== state.space) {
    grid.build();
    drawn.space = state.space;
  }
  grid.mark();
  pane.title.textContent = nameOf(run, head);
  pane.hint.textContent = say`${headsOf(run)} heads, a row for each layer; a letter is a flag (${Object.entries(
    lettersOf(run),
  )
    .map(([kind, letter]) => `${letter} ${say(kind)}`)
    .join(", ")}).`;
  const isDeep = isDeepIn(run);
  if (isDeep) pane.hint.textContent += say(" They show two of the three dimensions.");
  const named = `${nameOf(run, head)}, ${page.projections[projectionOf(run)]}`,
    points = count(pointsOf(spaceOf(run)));
  pane.keys.textContent = isDeep
    ? say(
        "Drag turns, wheel zooms, Shift and drag is a lasso; with keys: arrows, + and −, 0 for all.",
      )
    : say(
        "Drag pans, wheel zooms, Shift and drag is a lasso; with keys: arrows, + and −, 0 for all.",
      );
  const does = isDeep
    ? say("Arrow keys turn, plus and minus zoom, 0 shows all, Escape lets go.")
    : say("Arrow keys pan, plus and minus zoom, 0 shows all, Escape lets go.");
  pane.cloud.box.setAttribute(
    "aria-label",
    say`${named}: ${points} points. ${does} The ${unitOf(run)} below has the same points as a list.`,
  );
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
  const {run, cloud} = pane,
    {axes, facts} = await placesOf(run, head),
    own = await paintOf(run, head);
  await lightLasso(run);
  if (pane.drawn.cloud !== wanted) return;
  const places = placed(axes, facts),
    n = axes[0].length,
    isDeep = axes.length > 2;
  const points = {
    places,
    n,
    isDeep,
    split: countOf(spaceOf(run).queries),
    codes: own.codes,
    colours: own.colours,
  };
  cloud.hover(null);
  const lit = litOf(run);
  cloud.show({...points, order: ordered(run, lit), lit});
  pane.legend.replaceChildren(...legend(own.legend));
  writeAbout(pane);
  writeSentence();
}

async function lightLasso(run) {
  // what a lasso holds, also one that comes with an address
  const {lasso} = state;
  if (lasso?.run !== run || lasso.lit) return;
  const {axes, facts} = await placesOf(run, lasso.head, lasso.projection);
  lasso.lit ??= inside(lasso, placed(axes, facts), axes[0].length, axes.length > 2, rangeOf(run));
}

function placed(axes, facts) {
  // [3 n] codes to -1 ... 1 about the middle, all axes on one scale
  const n = axes[0].length,
    places = new Float32Array(3 * n);
  const ends = axes.map((codes, axis) =>
    d3.extent(codes).map(code => facts[axis].low + code * facts[axis].step),
  );
  const half = Math.max(...ends.map(([low, high]) => (high - low) / 2), 1e-30);
  axes.forEach((codes, axis) => {
    const {low, step} = facts[axis],
      middle = (ends[axis][0] + ends[axis][1]) / 2;
    for (let i = 0; i < n; i++) places[3 * i + axis] = (low + codes[i] * step - middle) / half;
  });
  return places;
}

function ordered(run, lit) {
  // points in the order of drawing: mixed so that no side hides the other, lit last
  const [from, to] = rangeOf(run),
    n = to - from,
    order = new Uint32Array(n);
  let stride = Math.floor(n * 0.618) + 1,
    at = 0;
  while (divisor(stride, n) > 1) stride++;
  for (const isLit of lit ? [0, 1] : [0]) {
    for (let k = 0, i = 0; k < n; k++, i = (i + stride) % n)
      if (!lit || lit[from + i] === isLit) order[at++] = from + i;
  }
  return order;
}

const divisor = (a, b) => (b ? divisor(b, a % b) : a); // the greatest common one

// controls

const KINDS_OF_HEADS = () => [
  "all heads",
  "flagged heads",
  ...new Set(
    page.runs.flatMap(run => run.spaces.flatMap(space => space.flags.map(flag => flag.kind))),
  ),
];

function writeControls() {
  const run = seenRuns()[0];
  choices("projection", projectionsOf(run), projectionOf(run), name => page.projections[name]);
  choices("colour", colourNames(run), colourOf(run));
  choices("sides", SIDES, state.sides);
  choices("only", KINDS_OF_HEADS(), state.only);
  if (!typing) byId("search").value = state.search;
  radios("run", [
    ...page.runs.map((each, n) => [n, each.name]),
    ...(page.runs.length > 1 ? [["both", say("both, side by side")]] : []),
  ]);
  radios(
    "space",
    page.runs[run].spaces.map(({name}) => [name, SPACES[name] ? say(SPACES[name]) : name]),
  );
}

const SPACES = {
  encoder: "the encoder",
  decoder: "the decoder",
  cross: "the decoder, to its source",
};

function choices(id, names, chosen, labelOf = name => say(name)) {
  const select = byId(id);
  if ([...select.options].map(option => option.value).join("|") !== names.join("|")) {
    select.replaceChildren(...names.map(name => new Option(labelOf(name), name)));
  }
  select.value = chosen;
  select.onchange = () => set({[id]: select.value});
}

function radios(name, options) {
  // where there is more than one to choose from
  const box = byId(name),
    id = options.join("|");
  box.hidden = options.length < 2;
  if (box.dataset.of !== id) {
    box.querySelectorAll("label").forEach(label => label.remove());
    for (const [value, text] of options) {
      const label = make("label"),
        input = make("input", {type: "radio", name, value, onchange: () => set({[name]: value})});
      label.append(input, ` ${text}`);
      box.append(label);
    }
    box.dataset.of = id;
  }
  box.querySelectorAll("input").forEach(input => {
    input.checked = input.value === `${state[name]}`;
  });
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

function writeTokens() {
  // what can be searched: the most frequent tokens
  const {queries} = spaceOf(seenRuns()[0]),
    many = d3.rollup(
      queries.token,
      rows => rows.length,
      token => token,
    );
  const most = d3.sort(many.keys(), token => -many.get(token)).slice(0, 400);
  byId("tokens-there").replaceChildren(...most.map(token => new Option(queries.vocabulary[token])));
}

function writeSearched() {
  const words = state.search.trim(),
    parts = words ? seenRuns().map(run => searchedIn(run, words)) : [];
  byId("searched").textContent = parts.join(" · ");
}

function searchedIn(run, words) {
  const space = spaceOf(run),
    points = litList(run),
    {same} = once(space, `searched ${words}`, () => litBy(space, words));
  const queries = points.filter(i => isQuery(space, i)).length;
  const sentences = new Set(points.map(i => sentenceOf(space, i))).size;
  const where = seenRuns().length > 1 ? `${page.runs[run].name}: ` : "",
    keys = count(points.length - queries);
  if (!points.length)
    return (
      where +
      (space.pictures
        ? say`no patch here is “${words}”; wanted row,column.`
        : say`no token here is or contains “${words}”.`)
    );
  const many = say`${count(queries)} queries and ${keys} keys`,
    lit = space.pictures
      ? say`in ${count(sentences)} pictures, lit in all heads.`
      : say`in ${count(sentences)} sentences, lit in all heads.`;
  const what = space.pictures
    ? say`patches “${words}”`
    : same
      ? say`tokens that are “${words}”`
      : say`no token is, but some contain “${words}”`;
  return `${where}${what}: ${many} ${lit}`;
}

// what is said of the chosen head

function writeAbout({run, about}) {
  const head = state.heads[run],
    flags = flagsOf(run, head),
    space = spaceOf(run),
    list = make("ul");
  list.append(...flags.map(flag => make("li", {textContent: flag.words})));
  const parts = [
    make("p", {
      textContent: flags.length
        ? say("Exceeds chance:")
        : say("No flag: nothing that is tested here exceeds chance."),
    }),
    list,
    make("p", {textContent: trustOf(run, head)}),
    make("p", {textContent: movedOf(run, head)}),
  ];
  const {misleads} = space.lie;
  if (misleads && misleads.layer * space.H + misleads.head === head) {
    const p = make("p");
    p.append(
      make("b", {textContent: say("The picture misleads most here:")}),
      ` ${misleads.words}`,
    );
    parts.push(p);
  }
  if (state.lasso?.run === run && state.lasso.lit)
    parts.unshift(make("p", {textContent: lassoed(run)}));
  about.replaceChildren(...parts);
}

function trustOf(run, head) {
  // how far the picture of a head can be trusted, in the projection that is shown
  const {lie} = spaceOf(run),
    name = projectionOf(run),
    other = lie.others[name];
  const [shown, shuffled] = (other ?? [lie.near_plane, lie.near_plane_null]).map(values =>
    percent(values[head]),
  );
  const isDeep = isDeepIn(run),
    where =
      name === "pca"
        ? say("the plane")
        : isDeep
          ? say("these three dimensions")
          : say`the plane of ${page.projections[name]}`;
  return say`How far to trust this picture: of the strongest keys, ${shown} are among the 10 keys of their ${unitOf(run)} that are nearest in ${
    where
  } (keys shuffled: ${shuffled}), ${percent(lie.near_space[head])} in the whole space (${percent(lie.near_space_null[head])}).`;
}

const SHARED = {head: "the head's own", layer: "shared by the layer", model: "shared by all heads"};

function movedOf(run, head) {
  // how products follow distances, before and after queries and keys are moved and scaled
  const {moves} = spaceOf(run),
    at = name => signed(moves[name][head]),
    shared = SHARED[page.runs[run].scope];
  return say`Scale c = ${number(moves.c[head])} (${shared ? say(shared) : "–"}): products and distances correlate ${at(
    "after",
  )} after queries and keys are translated and scaled, ${at("before")} before (queries rotated at random: ${at("after_null")} and ${at(
    "before_null",
  )}).`;
}

const LISTED = 8; // tokens that are named of a lasso

function lassoed(run) {
  // what the points in the lasso are
  const space = spaceOf(run),
    {head, projection} = state.lasso,
    points = litList(run);
  if (!points.length) return say("The lasso holds no point.");
  const queries = points.filter(i => isQuery(space, i)).length,
    many = d3.rollup(
      points,
      own => own.length,
      i => labelOf(space, i),
    );
  const tokens = d3
    .sort(many, ([, n]) => -n)
    .slice(0, LISTED)
    .map(([token, n]) => `“${token}” ${n}`)
    .join(", ");
  const keys = count(points.length - queries),
    of = count(new Set(points.map(i => sentenceOf(space, i))).size),
    isElsewhere = projection !== projectionOf(run),
    name = nameOf(run, head) + (isElsewhere ? ` (${page.projections[projection]})` : "");
  const all = space.pictures
    ? say`The lasso, drawn in ${name}, holds ${count(queries)} queries and ${keys} keys of ${of} pictures, lit in all heads.`
    : say`The lasso, drawn in ${name}, holds ${count(queries)} queries and ${keys} keys of ${of} sentences, lit in all heads.`;
  const where = space.pictures
    ? ["row", "column"]
        .map(
          axis =>
            `${say(axis)}: ${spread(points, i => placeOf(space, positionOf(space, i))[axis])}.`,
        )
        .join(" ")
    : say`Positions: ${spread(points, i => positionOf(space, i))}.`;
  return `${all} ${where} ${say`Most frequent: ${tokens}.`}`;
}

function spread(points, of) {
  const [low, middle, high] = [0.1, 0.5, 0.9].map(share => number(d3.quantile(points, share, of)));
  return say`half are up to ${middle}, four in five from ${low} to ${high}`;
}

// what is said of all heads: for those who hear the page, and as a list to choose from

function writeWords() {
  const id = `${seenRuns()} ${state.space} ${state.only}`;
  if (byId("words").dataset.of === id) return;
  byId("words").dataset.of = id;
  byId("summary").replaceChildren(...seenRuns().flatMap(inWords));
  writeFlags();
}

function inWords(run) {
  // what is said of an atlas: paragraphs
  const space = spaceOf(run),
    {flags, lie} = space,
    mean = name => percent(d3.mean(lie[name]));
  const kinds = d3
    .rollups(
      flags,
      own => own.length,
      flag => flag.kind,
    )
    .map(([kind, n]) => `${say(kind)} ${n}`)
    .join(", ");
  const heads = new Set(flags.map(flag => nameOf(run, flag.layer * space.H + flag.head))).size;
  const said = [
    `${say`${page.runs[run].name}: ${count(headsOf(run))} heads in ${space.L} layers.`} ${
      heads
        ? say`Heads that exceed chance: ${heads}; by kind: ${kinds}.`
        : say("None exceeds chance by any kind that is tested.")
    }`,
    say`How far to trust the plane: over all heads, ${mean("near_plane")} of the strongest keys are among the 10 keys of their ${unitOf(
      run,
    )} that are nearest in the plane (keys shuffled: ${mean("near_plane_null")}), ${mean("near_space")} in the whole space (${mean("near_space_null")}).`,
  ];
  return [
    ...said.map(textContent => make("p", {textContent})),
    ...(lie.misleads ? [misleading(run, lie.misleads)] : []),
  ];
}

function toHead(run, head) {
  // a button that chooses a head
  const onclick = () => {
    set({heads: state.heads.with(run, head)});
    panes[run].box.scrollIntoView();
  };
  const where = seenRuns().length > 1 ? `${page.runs[run].name}, ` : "";
  return make("button", {
    type: "button",
    className: "inline",
    textContent: where + nameOf(run, head),
    onclick,
  });
}

function misleading(run, {layer, head, words}) {
  const p = make("p");
  p.append(
    `${say("Where the picture misleads most:")} `,
    toHead(run, layer * spaceOf(run).H + head),
    `. ${words}`,
  );
  return p;
}

function writeFlags() {
  const body = make("tbody"),
    top = make("thead"),
    line = make("tr"),
    all = seenRuns().flatMap(run => spaceOf(run).flags.map(flag => ({...flag, run})));
  const columns = [say("head"), say("flag"), say("value"), say("by chance"), say("in words")];
  line.append(...columns.map(textContent => make("th", {textContent}, {scope: "col"})));
  top.append(line);
  for (const flag of all.filter(({kind}) =>
    ["all heads", "flagged heads", kind].includes(state.only),
  )) {
    const row = make("tr"),
      cell = make("td");
    cell.append(toHead(flag.run, flag.layer * spaceOf(flag.run).H + flag.head));
    row.append(
      cell,
      ...[say(flag.kind), number(flag.value), number(flag.null), flag.words].map(textContent =>
        make("td", {textContent}),
      ),
    );
    body.append(row);
  }
  byId("flags").replaceChildren(...(all.length ? [top, body] : []));
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
  style.setProperty("--strong", isDark() ? "45%" : "75%"); // the token's text stays readable
  byId("theme").textContent = isDark() ? say("light colours") : say("dark colours");
}

// the start

function precision() {
  const {steps} = spaceOf(0).packed.strongest;
  return say`Coordinates in this file are rounded to 4,096 steps between the least and the greatest of their head (the third axis to 256), norms to 64, weights within ${percent(1 / steps)}.`;
}

function introduction() {
  // with the words query and key in their colours
  const text = spaceOf(0).pictures
    ? say`Every head as one picture: each patch of each picture is a ${"\u0001"}, drawn as a disc, and a ${"\u0002"}, drawn as a diamond. Choose a head in the grid, then a point in its picture, by mouse or with Tab and the arrow keys; the picture of the point follows. Layers, heads, rows and columns count from 0.`
    : say`Every head as one picture: each token of each sentence is a ${"\u0001"}, drawn as a disc, and a ${"\u0002"}, drawn as a diamond. Choose a head in the grid, then a point in its picture, by mouse or with Tab and the arrow keys; the sentence of the point follows. Layers, heads and positions count from 0.`;
  const named = {
    "\u0001": make("b", {className: "query", textContent: say("query")}),
    "\u0002": make("b", {className: "key", textContent: say("key")}),
  };
  return text.split(/([\u0001\u0002])/).map(part => named[part] ?? part);
}

function writeNames() {
  // what is named after what is shown: sentences or pictures
  if (!spaceOf(lookedAt()).pictures) return;
  const names = {
    "search-name": say("Find a patch"),
    "sentence-name": say("The picture"),
    "which-name": say("Picture"),
  };
  for (const [id, name] of Object.entries(names)) byId(id).textContent = name;
}

function start() {
  byId("model").textContent = document.title;
  byId("sampled").textContent = page.runs
    .map(run => (page.runs.length > 1 ? `${run.name}: ` : "") + run.sampled[2])
    .join(" ");
  byId("settings").textContent = page.runs.map(run => run.settings).join(" | ");
  byId("intro").append(...introduction());
  writeNames();
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

export {lightLasso, panes, set, update};
