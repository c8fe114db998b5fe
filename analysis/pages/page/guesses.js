// The model's guesses: bars for one token, and a table with the best guess at each.

function guesses() {
  if (isDifference() && !isAlone(state.token, "query")) return [changedGuesses(), ...guessTable()];
  const lists = make("div", {className: "lists"});
  lists.append(...beside(pair(() => [lead(shownToken()), best(shownToken())])));
  if (isBoth()) return [lists, ...pair(guessTable)];
  return [lists, ...guessTable()];
}

// of a difference one list: what each run expects, and what the second gives more or less, in
// percentage points

const points = x => `${x < 0 ? "−" : "+"}${Math.abs(100 * x).toFixed(1)}`;

function changedGuesses() {
  const lists = d3.range(2).map(n =>
    within(n, () => ({
      title: lead(shownToken()).textContent,
      all: made.classes ? classGuesses() : withOwn(shownToken()),
    })),
  );
  const pieces = [
    ...new Set(
      [1, 0].flatMap(n => lists[n].all.filter(({isMore}) => !isMore).map(({piece}) => piece)),
    ),
  ];
  const rows = pieces.map(piece => ({piece, ends: lists.map(({all}) => endsOf(piece, all))})),
    most = d3.max(rows, ({ends}) => d3.max(ends.flat()));
  const table = make("table", {className: "changed-guesses"}),
    head = make("tr"),
    [before, after] = page.runs.map(run => short(say(run.name), 16));
  head.append(
    ...["", before, after, say("change in points"), ""].map(textContent =>
      make(textContent ? "th" : "td", {textContent}, textContent ? {scope: "col"} : {}),
    ),
  );
  table.append(head, ...rows.map(({piece, ends}) => changedRow(piece, ends, most)));
  const titles = [...new Set(lists.map(({title}) => title))].join(" | ");
  return make(
    "div",
    {},
    {},
    make("p", {className: "lead", textContent: say`${titles}: “${after}” less “${before}”`}),
    table,
  );
}

function withOwn(n) {
  // the five likeliest, the text's own token, and what a live page knows of the guesses of the
  // other run
  const told = page.live?.guesses?.places.find(({place}) => place === n)?.in_all ?? [],
    number = page.runs.indexOf(current);
  const more = told
    .map(([piece, p]) => ({piece: readable(piece), p: p[number]}))
    .filter((d, _, all) => all.filter(({piece}) => piece === d.piece).length === 1);
  const own = made.own[n] === null ? [] : [{piece: made.own[n], p: made.actual[n]}];
  return [...guessesAt(n), ...[...own, ...more].map(d => ({...d, isMore: true}))];
}

function endsOf(piece, all) {
  // between which its probability lies: one that is not among the likeliest has no more than the
  // last
  const own = all.find(guess => guess.piece === piece);
  return own
    ? [own.p, own.p]
    : [
        0,
        made.classes
          ? 0
          : d3.min(
              all.filter(guess => !guess.isMore),
              guess => guess.p,
            ),
      ];
}

function changedRow(piece, [before, after], most) {
  const [low, high] = [after[0] - before[1], after[1] - before[0]],
    change = low > 0 ? low : high < 0 ? high : 0;
  const said =
    low === high
      ? points(low)
      : low > 0
        ? `> ${points(low)}`
        : high < 0
          ? `< ${points(high)}`
          : `${points(low)} … ${points(high)}`;
  const share = ([least, most]) => (least === most ? percent(most) : `< ${percent(most)}`),
    bar = make("span", {className: "bar-of"});
  Object.assign(bar.style, {
    display: "block",
    width: `${(100 * Math.abs(change)) / most}%`,
    background: `var(--${change < 0 ? "less" : "more"})`,
  });
  const row = make("tr"),
    cell = make("td", {className: change < 0 ? "less" : "more", textContent: said});
  row.append(
    make("td", {textContent: piece}),
    make("td", {textContent: share(before)}),
    make("td", {textContent: share(after)}),
    cell,
    make("td", {}, {}, bar),
  );
  return row;
}

function lead(n) {
  const where = !made.classes && isCausal() && isOfWords() ? say("behind") : say("at");
  const textContent = data.picture
    ? say("The classes of the picture")
    : made.classes
      ? say("The classes of the text")
      : say`Likeliest ${where} “${made.labels[n]}” (${n})`;
  return make("p", {className: "lead", textContent});
}

function shownToken() {
  // the chosen token, else a hidden one, else the last; the last of a masked model is a mark
  const chosen = made.labels.findIndex((_, n) => isChosenToken(n));
  if (chosen >= 0) return chosen;
  const mask = made.labels.findIndex(isMask);
  return mask >= 0 ? mask : made.labels.length - (isCausal() ? 1 : 2);
}

const actualAt = (run, place, own) => (run.own[place] === own ? percent(run.actual[place]) : "");

function best(n) {
  // what is likeliest at one token, or which class a text is of
  const list = make("ol", {className: "bars"});
  const rows = made.classes
    ? classGuesses()
    : guessesAt(n).map((guess, nth) => ({...guess, guess: NTH[nth]}));
  list.append(
    ...rows.map(({piece, p, guess}) => {
      const item = make("li", {onclick: () => guess && set({guess})}),
        bar = make("span", {className: "bar-of"});
      bar.style.width = `${100 * p}%`;
      item.append(make("span", {textContent: piece}), make("span", {textContent: percent(p)}), bar);
      return item;
    }),
  );
  return list;
}

function beside(elements) {
  // the names of two runs and their lists, as two groups
  const groups = [];
  for (const element of elements) {
    if (element.className === "run" || !groups.length) groups.push(make("div"));
    groups.at(-1).append(element);
  }
  return groups;
}

function guessTable() {
  // of a difference the guesses of both runs, one beside the other, and how the text's token
  // changed
  if (!made.guesses) return [];
  const id = `guesses-of-${page.runs.indexOf(current)}`,
    table = make("table", {className: "guesses", id, tabIndex: 0});
  const head = make("tr"),
    {word} = made;
  const inText = isCausal() ? say("next in the text") : say("in the text");
  const outputs = isDifference() ? page.runs.map((_, n) => within(n, () => made)) : [made];
  const runs = outputs.map(of => [of, partners(of.labels, made.labels)]);
  const names = isDifference() ? page.runs.map(run => say(run.name)) : [say("best guess")];
  const each = names.map(name => [name, 2]),
    first = [say("token"), 1]; // of a difference the change comes first: a telephone shows it, too
  const columns = isDifference()
    ? [first, [say`${inText}: change`, 2], ...each]
    : [first, ...each, ...(isOfWords() ? [[inText, 2]] : [])];
  head.append(
    ...columns.map(([title, colSpan]) =>
      make("th", {textContent: short(title, 24), title, colSpan}, {scope: "col"}),
    ),
  );
  const told = toldRows(runs),
    isAll = state.rows === "all" || made.labels.length - told.length < FEW;
  const numbers = isAll ? d3.range(made.labels.length) : told;
  const border = secondToken(),
    begins = border < 0 ? -1 : numbers.find(n => n >= border); // of the second text
  table.append(head, ...numbers.map(n => Object.assign(guessRow(n, runs), {id: `${id}-${n}`})));
  table.querySelector(`#${id}-${begins}`)?.classList.add("border");
  const chosen = d3.range(word.length).filter(isChosenToken); // of a word all its rows
  table.setAttribute("role", "grid");
  table.setAttribute(
    "aria-label",
    say("Guesses at each token. Up and down choose one, Escape lets go."),
  );
  table.setAttribute("aria-activedescendant", chosen.length ? `${id}-${chosen[0]}` : "");
  keys(table, () => rowKeys(word, chosen));
  return [table, ...(made.labels.length - told.length < FEW ? [] : [restOfRows(told, isAll)])];
}

// of many tokens nothing is told: a masked model copies what it sees, and a change leaves a guess
// as it is

const SHORT_LIST = 7; // rows of a table that is no higher than the cards beside it
// of a single run
const rowsShown = () => (state.rows === "all" ? made.labels.length : toldRows([]).length);
const FEW = 3,
  SAME = 0.01; // rows that are not worth leaving out; a probability that is counted as the same

function toldRows(runs) {
  return d3
    .range(made.labels.length)
    .filter(
      n =>
        isChosenToken(n) ||
        n === shownToken() ||
        (isDifference()
          ? isOther(n, runs)
          : isCausal() || isMask(made.labels[n]) || made.own[n] !== guessesAt(n)[0].piece),
    );
}

function isOther(n, runs) {
  // whether two runs expect something else there
  const [before, after] = runs.map(([run, numbers]) => ({run, place: numbers[n]}));
  if (before.place < 0) return true;
  const [a, b] = [before, after].map(
    ({run, place}) => guessesAt(place, run.guesses, run.pieces)[0],
  );
  return a.piece !== b.piece || Math.abs(a.p - b.p) >= SAME;
}

function restOfRows(told, isAll) {
  const rest = d3.range(made.labels.length).filter(n => !told.includes(n)),
    ends = d3.extent(rest, n => guessesAt(n)[0].p).map(percent);
  const button = make("button", {
    type: "button",
    id: "rows",
    textContent: isAll ? say("show fewer") : say`show all ${made.labels.length}`,
    onclick: () => set({rows: isAll ? "told" : "all"}),
  });
  const says = isDifference()
    ? say`At ${rest.length} other tokens the best guess and its probability stay as they are, to a percentage point. `
    : say`At ${rest.length} other tokens the best guess is the token itself, which the model sees (${ends[0]} to ${ends[1]}). `;
  return make("p", {className: "fact"}, {}, says, button);
}

function rowKeys(word, chosen) {
  // the arrow keys, Home and End -> the token that they choose
  const last = word.length - 1,
    go = n => ({token: word[Math.max(0, Math.min(last, n))], side: "query"});
  return {
    ArrowDown: go(chosen.length ? chosen.at(-1) + 1 : 0),
    ArrowUp: go(chosen.length ? chosen[0] - 1 : last),
    Home: go(0),
    End: go(last),
    Escape: {token: null},
  };
}

function changeOf(own, [before, after]) {
  // of the probability of the text's token, in points
  const [a, b] = [before, after].map(([run, place]) =>
    place >= 0 && own !== null && run.own[place] === own ? run.actual[place] : null,
  );
  const change = a === null || b === null ? null : b - a;
  return make("td", {
    textContent: change === null ? "–" : points(change),
    className: change === null || Math.abs(change) < 5e-4 ? "" : change < 0 ? "less" : "more",
    title: change === null ? "" : `${percent(a)} → ${percent(b)}`,
  });
}

function guessRow(n, runs) {
  // runs: [[run, the numbers of these tokens in its text], ...]
  const token = tokenOf(n),
    own = made.own[n],
    row = make("tr", {onclick: () => set({token, side: "query"})});
  const cell = (textContent, className = "") => make("td", {textContent, className});
  const there = runs.map(([run, numbers]) => [run, numbers[n]]),
    ofText = cell(own ?? "–");
  row.append(
    cell(`${isolated(made.labels[n])} (${n})`),
    ...(isDifference() ? [ofText, changeOf(own, there)] : []),
  );
  for (const [run, place] of there) {
    const {piece, p} = place < 0 ? {piece: "–"} : guessesAt(place, run.guesses, run.pieces)[0];
    row.append(cell(piece, piece === own ? "right" : ""), cell(place < 0 ? "" : percent(p)));
  }
  if (!isDifference() && isOfWords())
    row.append(ofText, cell(own === null ? "" : actualAt(...there[0], own)));
  row.setAttribute("aria-selected", isChosenToken(n));
  row.classList.toggle("shown", state.token === null && n === shownToken());
  row.title = own === null ? "" : say`“${own}” has ${percent(made.actual[n])} here`;
  return row;
}

export {guesses, rowsShown, SHORT_LIST, shownToken};
