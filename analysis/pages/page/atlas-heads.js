// The grid of all heads of a run: a small picture each, of how dense its points are. Pictures are
// drawn one after the other, as their points are opened; main.dataset.pending counts those that are
// still to be drawn.

const EDGE = 64; // pixels of a small picture
const FLAGS = {
  offset: "O",
  type: "T",
  position: "P",
  spiral: "S",
  line: "L",
  "same token": "=",
  induction: "I",
};
const FLAGS_OF_PICTURES = {offset: "O", position: "P", row: "R", column: "C"};
const lettersOf = run => (spaceOf(run).pictures ? FLAGS_OF_PICTURES : FLAGS);
const pending = {}; // run -> number of pictures to be drawn
const cellsKept = new Map();

class Grid {
  constructor(run) {
    this.run = run;
    this.box = make("div", {className: "grid", tabIndex: 0}, {role: "listbox"});
    this.box.setAttribute("aria-label", say("Heads. Arrow keys choose one."));
    this.box.addEventListener("keydown", event => this.key(event));
  }

  build() {
    // the heads of the space
    const {L, H} = spaceOf(this.run),
      cells = [make("span", {}, {"aria-hidden": "true"})];
    this.thumbs = [];
    this.box.style.setProperty("--across", H);
    for (let own = 0; own < H; own++) cells.push(heading("column-name", `H${own}`));
    for (let head = 0; head < L * H; head++) {
      if (head % H === 0) cells.push(heading("row-name", `L${head / H}`));
      cells.push(this.thumb(head));
    }
    this.box.replaceChildren(...cells);
  }

  thumb(head) {
    const {run} = this,
      box = make("div", {className: "thumb", id: `head-${run}-${head}`}, {role: "option"});
    const kinds = [...new Set(flagsOf(run, head).map(flag => flag.kind))];
    box.append(make("canvas", {width: EDGE, height: EDGE}, {"aria-hidden": "true"}));
    if (kinds.length) {
      const textContent = kinds.map(kind => lettersOf(run)[kind] ?? "!").join("");
      box.append(make("span", {className: "flag", textContent}, {"aria-hidden": "true"}));
    }
    box.title = [nameOf(run, head), ...kinds.map(kind => say(kind))].join(", ");
    box.setAttribute("aria-label", box.title);
    box.onclick = () => set({heads: state.heads.with(run, head)});
    return (this.thumbs[head] = box);
  }

  mark() {
    // the chosen head, and those that the filter leaves out
    this.thumbs.forEach((thumb, head) => {
      thumb.setAttribute("aria-selected", head === state.heads[this.run]);
      thumb.classList.toggle("out", !isListed(this.run, head));
    });
    this.box.setAttribute("aria-activedescendant", this.thumbs[state.heads[this.run]].id);
  }

  key(event) {
    const {L, H} = spaceOf(this.run),
      head = state.heads[this.run],
      last = L * H - 1;
    const to = {
      ArrowLeft: head - 1,
      ArrowRight: head + 1,
      ArrowUp: head - H,
      ArrowDown: head + H,
      Home: 0,
      End: last,
    };
    const next = to[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (next < 0 || next > last) return;
    set({heads: state.heads.with(this.run, next)});
    this.thumbs[next].scrollIntoView({block: "nearest", inline: "nearest"});
  }

  async draw(wanted) {
    // every picture anew, those in the filter first; stops where other ones are wanted by then
    this.wanted = wanted;
    const heads = d3.sort(d3.range(headsOf(this.run)), head => !isListed(this.run, head));
    let start = performance.now();
    pending[this.run] = heads.length;
    await lightLasso(this.run);
    for (const head of heads) {
      const [cells, paint] = [await cellsOf(this.run, head), await paintOf(this.run, head)];
      if (this.wanted !== wanted) return;
      drawThumb(this.thumbs[head].firstChild, this.run, cells, paint);
      faintOf(cells, rangeOf(this.run)); // so that a search finds it there
      pending[this.run]--;
      if (performance.now() - start < 40) continue;
      await new Promise(requestAnimationFrame);
      start = performance.now();
    }
    tellPending();
  }
}

const heading = (className, textContent) =>
  make("span", {className, textContent}, {"aria-hidden": "true"});
const flagsOf = (run, head) => {
  const {flags, H} = spaceOf(run);
  return flags.filter(flag => flag.layer * H + flag.head === head);
};

function isListed(run, head) {
  if (state.only === "all heads") return true;
  return flagsOf(run, head).some(({kind}) => state.only === "flagged heads" || state.only === kind);
}

function firstHead(run) {
  // where a look begins: a flagged head
  const {flags, H} = spaceOf(run);
  return flags.length ? flags[0].layer * H + flags[0].head : 0;
}

function tellPending() {
  byId("panes").dataset.pending = d3.sum(seenRuns(), run => pending[run] ?? 0);
}

async function cellsOf(run, head) {
  // [points] the pixel of a small picture in which each point lies
  const id = `${run} ${state.space} ${projectionOf(run)} ${head}`;
  if (!cellsKept.has(id)) {
    const {axes, facts} = await placesOf(run, head),
      [x, y] = [0, 1].map(axis => extentOf(axes[axis], facts[axis]));
    cellsKept.set(id, cellsIn(axes, Math.max(x.span, y.span, 1), x.middle, y.middle));
  }
  return cellsKept.get(id);
}

function extentOf(codes) {
  // a plane keeps its shape: its axes have the same steps
  let [low, high] = [65535, 0];
  for (const code of codes) {
    if (code < low) low = code;
    if (code > high) high = code;
  }
  return {span: high - low, middle: (low + high) / 2};
}

function cellsIn([across, up], span, x, y) {
  const cells = new Uint16Array(across.length),
    by = (EDGE - 4) / span,
    half = EDGE / 2;
  for (let i = 0; i < cells.length; i++) {
    cells[i] = ((half - (up[i] - y) * by) | 0) * EDGE + ((half + (across[i] - x) * by) | 0);
  }
  return cells;
}

const sums = [0, 1, 2, 3].map(() => new Float32Array(EDGE * EDGE)); // red, green, blue, how many
const image = new ImageData(EDGE, EDGE);
const faintKept = new WeakMap(); // cells -> {sides: how faint each pixel is while something is lit}

function drawThumb(canvas, run, cells, {codes, colours: own}) {
  const lit = litList(run),
    {data} = image,
    range = rangeOf(run),
    [red, green, blue, many] = sums;
  for (const sum of sums) sum.fill(0);
  const add = i => {
    const cell = cells[i],
      colour = own[codes[i]];
    red[cell] += colour[0];
    green[cell] += colour[1];
    blue[cell] += colour[2];
    many[cell]++;
  };
  data.fill(0);
  if (lit) {
    const faint = faintOf(cells, range),
      grey = isDark() ? 190 : 90;
    for (let cell = 0; cell < faint.length; cell++)
      if (faint[cell]) put(data, 4 * cell, grey, grey, grey, faint[cell]);
    for (const i of lit) if (i >= range[0] && i < range[1]) add(i);
  } else {
    for (let i = range[0]; i < range[1]; i++) add(i);
  }
  const gain = lit ? 99 : gainOf(many);
  for (let cell = 0, at = 0; cell < many.length; cell++, at += 4) {
    const n = many[cell];
    if (n)
      put(
        data,
        at,
        red[cell] / n,
        green[cell] / n,
        blue[cell] / n,
        255 * (1 - Math.exp(-n * gain)),
      );
  }
  if (lit) widen(data, many);
  canvas.getContext("2d", {willReadFrequently: true}).putImageData(image, 0, 0);
}

function faintOf(cells, [from, to]) {
  // [pixels] all points of a head as a faint ground
  const kept = faintKept.get(cells) ?? {};
  faintKept.set(cells, kept);
  return (kept[state.sides] ??= (() => {
    const many = new Uint16Array(EDGE * EDGE);
    for (let i = from; i < to; i++) many[cells[i]]++;
    const gain = 0.4 * gainOf(many);
    return Uint8Array.from(many, n => 150 * (1 - Math.exp(-n * gain)));
  })());
}

function put(data, at, red, green, blue, alpha) {
  data[at] = red;
  data[at + 1] = green;
  data[at + 2] = blue;
  data[at + 3] = alpha;
}

function gainOf(many) {
  // so that a pixel with as many points as the mean of those that have any is well seen
  let [points, pixels] = [0, 0];
  for (const n of many) {
    points += n;
    pixels += n > 0;
  }
  return (1.3 * pixels) / Math.max(points, 1);
}

function widen(data, many) {
  // what is lit takes three pixels more, so that a single point is seen
  for (let cell = many.length - EDGE - 2; cell >= 0; cell--) {
    if (!many[cell]) continue;
    for (const next of [cell + 1, cell + EDGE, cell + EDGE + 1]) {
      if (!many[next]) data.copyWithin(4 * next, 4 * cell, 4 * cell + 4);
    }
  }
}

function rangeOf(run) {
  // the points that are shown: from, to
  const n = countOf(spaceOf(run).queries),
    all = pointsOf(spaceOf(run));
  return {queries: [0, n], keys: [n, all]}[state.sides] ?? [0, all];
}

export {firstHead, flagsOf, Grid, lettersOf, rangeOf};
