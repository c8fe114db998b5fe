// The sentence of the chosen point: its tokens, shaded by the weights of the chosen query to its
// strongest keys (or of the queries that have the chosen key among theirs), and these keys for
// every query. Of a picture, its patches.

let sentenceWritten = ""; // what is written there, as one text

const lookedAt = () => state.point?.run ?? seenRuns()[0];
const sentenceNow = () =>
  state.point ? sentenceOf(spaceOf(lookedAt()), state.point.i) : firstSentence(lookedAt());
const firstSentence = run => spaceOf(run).queries.sentence[0];
const isCross = run => Boolean(spaceOf(run).keys) && spaceOf(run).name === "cross";

function linksOf(run, i, strongest) {
  // [[point, weight], ...] that the strongest keys tie to a point
  const space = spaceOf(run),
    n = countOf(space.queries),
    row = rowOf(space, i);
  if (isQuery(space, i)) return strongest(row).map(([key, weight]) => [n + key, weight]);
  return rowsOfSentence(space, "query", sentenceOf(space, i)).flatMap(query =>
    strongest(query)
      .filter(([key]) => key === row)
      .map(([, weight]) => [query, weight]),
  );
}

async function writeSentence() {
  const run = lookedAt(),
    head = state.heads[run],
    id = `${run} ${state.space} ${head}`;
  const strongest = await strongestOf(run, head);
  // another one is wanted by now
  if (id !== `${lookedAt()} ${state.space} ${state.heads[run]}`) return;
  const links = state.point ? linksOf(run, state.point.i, strongest) : [];
  const wanted = `${id} ${sentenceNow()} ${state.point?.i} ${isDark()}`;
  if (sentenceWritten !== wanted) {
    writeWhich(run);
    writeStrips(run, links);
    writeStrongest(run, strongest);
    drawPattern(run, strongest);
  }
  sentenceWritten = wanted;
  byId("readout").textContent = said(run, head, links);
  byId("sentence-hint").textContent = hintOf(run, head);
  panes[run].cloud.points && Object.assign(panes[run].cloud.points, {linked: links});
  panes.forEach(({cloud}) => drawMarks(cloud));
}

function hintOf(run, head) {
  const where =
      seenRuns().length > 1 ? `${page.runs[run].name}, ${nameOf(run, head)}` : nameOf(run, head),
    number = sentenceNow();
  if (spaceOf(run).pictures) {
    return say`Picture ${number} in ${where}. Choose a patch to see what its query attends to most, over the picture; arrow keys choose a patch, Space switches between its query and its key. Darker is more, up to the strongest that is seen.`;
  }
  return say`Sentence ${number} in ${where}. Choose a token to see what its query attends to most; Left and Right choose a token, Up and Down switch between its query and its key.`;
}

function writeWhich(run) {
  const select = byId("which"),
    {titles} = page.runs[run],
    space = spaceOf(run),
    id = `${run} ${state.space}`;
  if (select.dataset.of !== id) {
    const there = [...new Set(space.queries.sentence)];
    const short = text => (text.length > 80 ? `${text.slice(0, 79)}…` : text);
    select.replaceChildren(...there.map(n => new Option(`${n}: ${short(titles[n] ?? "")}`, n)));
    select.dataset.of = id;
  }
  select.value = sentenceNow();
}

byId("which").onchange = event => {
  const run = lookedAt(),
    [row] = rowsOfSentence(spaceOf(run), "query", +event.target.value);
  set({point: {run, i: row}});
};

function tokensOf(run, side, sentence) {
  // [{row: of the table, or null if it was not drawn, text, position}, ...]
  const space = spaceOf(run),
    table = side === "query" ? space.queries : keysOf(space);
  const rows = rowsOfSentence(space, side, sentence),
    own = new Map(rows.map(row => [table.position[row], row]));
  const texts = page.runs[run].sentences[sentence] ?? [];
  const isSame = rows.every(
    row => texts[table.position[row]] === table.vocabulary[table.token[row]],
  );
  if (!isSame)
    return rows.map(row => ({
      row,
      text: table.vocabulary[table.token[row]],
      position: table.position[row],
    }));
  return texts.map((text, position) => ({row: own.get(position) ?? null, text, position}));
}

function writeStrips(run, links) {
  const space = spaceOf(run),
    n = countOf(space.queries),
    box = byId("strips"),
    weights = new Map(links);
  const chosen = state.point?.i ?? null,
    side = chosen === null || isQuery(space, chosen) ? "query" : "key";
  const strips = isCross(run) ? ["query", "key"] : [side],
    {pictures} = space;
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.side : null;
  box.replaceChildren(
    ...strips.map(own => {
      const strip = make("div", {className: "strip", tabIndex: 0}, {role: "listbox"});
      const ofCross = {
        query: say("Queries: the decoder's tokens"),
        key: say("Keys: the source's tokens"),
      };
      const what = isCross(run)
        ? ofCross[own]
        : pictures
          ? say("Patches of the picture")
          : say("Tokens of the sentence");
      strip.setAttribute("aria-label", what);
      strip.dataset.side = own;
      strip.append(
        ...tokensOf(run, own, sentenceNow()).map(token =>
          tokenBox(run, own, token, chosen, weights, side, n),
        ),
      );
      const marked = strip.querySelector("[aria-selected=true]");
      if (marked) strip.setAttribute("aria-activedescendant", marked.id);
      strip.addEventListener("keydown", event => stripKey(event, run, own));
      return strip;
    }),
  );
  if (pictures) drawPictures(run, box);
  if (focused)
    (box.querySelector(`[data-side=${side}]`) ?? box.firstChild)?.focus({preventScroll: true});
}

async function drawPictures(run, box) {
  // under the patches, and once more beside them
  const {pictures} = spaceOf(run),
    strip = box.firstChild,
    plain = make("div", {className: "plain"}, {"aria-hidden": "true"});
  strip.classList.add("patches");
  strip.style.setProperty("--columns", pictures.columns);
  box.style.setProperty("--shape", `${pictures.width} / ${pictures.height}`);
  box.prepend(plain);
  const url = (await pixelsOf(run, sentenceNow())).toDataURL();
  for (const each of [plain, strip]) each.style.backgroundImage = `url(${url})`;
}

function tokenBox(run, own, {row, text, position}, chosen, weights, side, n) {
  const place = placeOf(spaceOf(run), position),
    textContent = place ? "" : text;
  const box = make(
    "span",
    {className: "token", textContent, id: `token-${own}-${position}`},
    {role: "option"},
  );
  const i = row === null ? null : own === "query" ? row : n + row;
  const isChosen = i !== null && i === chosen;
  // the side that the weights are of
  const partner = row === null ? null : side === "query" ? n + row : row;
  const weight = own === side && isCross(run) ? 0 : (weights.get(partner) ?? 0);
  box.setAttribute("aria-selected", isChosen);
  const where = place
    ? say`row ${place.row}, column ${place.column}`
    : say`${text}, position ${position}`;
  const name = [
    where,
    ...(weight ? [say`weight ${percent(weight)}`] : []),
    ...(row === null ? [say("not among the points that are drawn")] : []),
  ].join(", ");
  box.title = name;
  box.setAttribute("aria-label", name);
  if (row === null) box.setAttribute("aria-disabled", "true");
  // over a picture the strongest is the darkest
  const most = place ? d3.max(weights.values()) || 1 : 1;
  box.style.setProperty("--weight", Math.sqrt(weight / most).toFixed(3));
  box.style.setProperty("--of", `var(--${side === "query" ? "key" : "query"})`);
  if (i !== null) box.onclick = () => set({point: {run, i}});
  return box;
}

function stripKey(event, run, own) {
  const space = spaceOf(run),
    n = countOf(space.queries),
    sentence = sentenceNow();
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const side =
    state.point && !isCross(run) ? (isQuery(space, state.point.i) ? "query" : "key") : own;
  const rows = rowsOfSentence(space, side, sentence),
    at = (row, of) => (of === "query" ? row : n + row);
  const now =
    state.point && isQuery(space, state.point.i) === (side === "query")
      ? rows.indexOf(rowOf(space, state.point.i))
      : -1;
  const go = k => ({point: {run, i: at(rows[Math.max(0, Math.min(rows.length - 1, k))], side)}});
  const other = side === "query" ? "key" : "query",
    others = rowsOfSentence(space, other, sentence);
  const turn = () => ({
    point: {run, i: at(others[Math.max(0, Math.min(now, others.length - 1))], other)},
  });
  const down = space.pictures?.columns,
    upAndDown = down
      ? {
          ArrowUp: () => go(now < down ? now : now - down),
          " ": turn,
          ArrowDown: () => go(now + down < rows.length ? now + down : now),
        }
      : {};
  const does = {
    ArrowRight: () => go(now + 1),
    ArrowLeft: () => go(now - 1),
    Home: () => go(0),
    End: () => go(rows.length - 1),
    ArrowUp: turn,
    ArrowDown: turn,
    Escape: () => ({point: null}),
    ...upAndDown,
  }[event.key];
  if (!does) return;
  event.preventDefault();
  set(does());
}

function writeStrongest(run, strongest) {
  const space = spaceOf(run),
    rows = rowsOfSentence(space, "query", sentenceNow()),
    keys = keysOf(space);
  const row = (cells, tag = "td") => {
    const line = make("tr");
    line.append(
      ...cells.map(textContent => make(tag, {textContent}, tag === "th" ? {scope: "col"} : {})),
    );
    return line;
  };
  const {most} = space.packed.strongest;
  const named = (table, of) =>
    table.vocabulary[table.token[of]] + (space.pictures ? "" : ` (${table.position[of]})`);
  const lines = rows.map(query => {
    const cells = strongest(query).map(([key, weight]) => `${named(keys, key)} ${percent(weight)}`);
    const line = row([
      named(space.queries, query),
      ...cells,
      ...Array(most - cells.length).fill("–"),
    ]);
    line.setAttribute("aria-selected", state.point?.i === query);
    return line;
  });
  const head = make("thead"),
    body = make("tbody");
  const first = space.pictures ? say("query (row, column)") : say("query (position)");
  head.append(
    row([first, ...d3.range(most).map(k => (k ? `${k + 1}.` : say("strongest key")))], "th"),
  );
  body.append(...lines);
  byId("strongest").replaceChildren(head, body);
}

// the attention of the sentence as a matrix: a row for each query, a column for each key

const CELL = [3, 12],
  WIDE = 420; // pixels of a cell, and of the matrix at most

function drawPattern(run, strongest) {
  const space = spaceOf(run),
    queries = rowsOfSentence(space, "query", sentenceNow()),
    keys = rowsOfSentence(space, "key", sentenceNow());
  const canvas = byId("pattern"),
    columns = new Map(keys.map((key, at) => [key, at])),
    {chosen, key: ink} = colours();
  const cell = Math.max(
    CELL[0],
    Math.min(CELL[1], Math.floor(WIDE / Math.max(keys.length, queries.length))),
  );
  const [width, height] = [keys.length * cell, queries.length * cell];
  Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
  const brush = fitted(canvas, width, height);
  brush.fillStyle = ink;
  queries.forEach((query, row) => {
    for (const [key, weight] of strongest(query)) {
      brush.globalAlpha = weight;
      brush.fillRect(columns.get(key) * cell, row * cell, cell, cell);
    }
  });
  brush.globalAlpha = 1;
  markChosen(brush, space, {queries, columns, cell, width, height}, chosen);
  canvas.setAttribute(
    "aria-label",
    say`Attention of ${nameOf(run, state.heads[run])} in ${unitOf(run)} ${sentenceNow()}: ${
      queries.length
    } queries down, ${keys.length} keys across, the 5 strongest keys of each query. The table has the same numbers.`,
  );
  canvas.onclick = event => {
    const i = queries[Math.floor(event.offsetY / cell)];
    if (i !== undefined) set({point: {run, i}});
  };
}

function markChosen(brush, space, {queries, columns, cell, width, height}, colour) {
  // the row or column of the chosen point
  if (!state.point) return;
  const row = rowOf(space, state.point.i),
    isRow = isQuery(space, state.point.i);
  Object.assign(brush, {strokeStyle: colour, lineWidth: 1.5});
  if (isRow) brush.strokeRect(0.75, queries.indexOf(row) * cell, width - 1.5, cell);
  else brush.strokeRect(columns.get(row) * cell, 0.75, cell, height - 1.5);
}

function said(run, head, links) {
  // the chosen point in a sentence
  const space = spaceOf(run),
    name = nameOf(run, head),
    {pictures} = space;
  if (!state.point)
    return pictures ? say`${name}. No patch is chosen.` : say`${name}. No token is chosen.`;
  const {i} = state.point,
    named = at => `“${labelOf(space, at)}”${pictures ? "" : ` (${positionOf(space, at)})`}`;
  const list = d3
    .sort(links, ([, weight]) => -weight)
    .slice(0, 5)
    .map(([at, weight]) => `${named(at)} ${percent(weight)}`)
    .join(", ");
  const self = pictures
    ? named(i)
    : say`“${labelOf(space, i)}” at position ${positionOf(space, i)}`;
  if (isQuery(space, i))
    return say`${name}: the query of ${self} gives most attention to ${list || say("no key that is drawn")}.`;
  return list
    ? say`${name}: the key of ${self} is among the 5 strongest of ${links.length} queries: ${list}.`
    : say`${name}: the key of ${self} is among the 5 strongest of no query that is drawn.`;
}

export {lookedAt, writeSentence};
