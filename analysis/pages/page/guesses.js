"use strict";
// The model's guesses: bars for one token, and a table with the best guess at each.

function guesses() {
  const lists = make("div", {className: "lists"});
  lists.append(...beside(pair(() => [lead(shownToken()), best(shownToken())])));
  if (isBoth()) return [lists, ...pair(guessTable)];
  return [lists, guessTable()];
}

function lead(n) {
  const where = isCausal() ? say("behind") : say("at");
  const textContent = data.picture ? say("The classes of the picture")
    : made.classes ? say("The classes of the text") : say`Likeliest ${where} “${made.labels[n]}” (${n})`;
  return make("p", {className: "lead", textContent});
}

function shownToken() {  // the chosen token, else a hidden one, else the last; the last of a masked model is a mark
  const chosen = made.labels.findIndex((_, n) => isChosenToken(n));
  if (chosen >= 0) return chosen;
  const mask = made.labels.findIndex(isMask);
  return mask >= 0 ? mask : made.labels.length - (isCausal() ? 1 : 2);
}

const actualAt = (run, place, own) => run.own[place] === own ? percent(run.actual[place]) : "";

function best(n) {  // what is likeliest at one token, or which class a text is of
  const list = make("ol", {className: "bars"});
  const rows = made.classes ? classGuesses() : guessesAt(n).map((guess, nth) => ({...guess, guess: NTH[nth]}));
  list.append(...rows.map(({piece, p, guess}) => {
    const item = make("li", {onclick: () => guess && set({guess})}), bar = make("span", {className: "bar-of"});
    bar.style.width = `${100 * p}%`;
    item.append(make("span", {textContent: piece}), make("span", {textContent: percent(p)}), bar);
    return item;
  }));
  return list;
}

function beside(elements) {  // the names of two runs and their lists, as two groups
  const groups = [];
  for (const element of elements) {
    if (element.className === "run" || !groups.length) groups.push(make("div"));
    groups.at(-1).append(element);
  }
  return groups;
}

function guessTable() {  // of a difference the guesses of both runs, one beside the other
  if (!made.guesses) return null;
  const id = `guesses-of-${page.runs.indexOf(current)}`, table = make("table", {className: "guesses", id, tabIndex: 0});
  const head = make("tr"), {word} = made;
  const inText = isCausal() ? say("next in the text") : say("in the text");
  const outputs = isDifference() ? page.runs.map((_, n) => within(n, () => made)) : [made];
  const runs = outputs.map(of => [of, partners(of.labels, made.labels)]);
  const names = isDifference() ? page.runs.map(run => run.name) : [say("best guess")];
  const columns = [[say("token"), 1], ...names.map(name => [name, 2]), [inText, 1 + runs.length]];
  head.append(...columns.map(([title, colSpan]) => make("th", {textContent: short(title, 24), title, colSpan}, {scope: "col"})));
  table.append(head, ...made.labels.map((_, n) => Object.assign(guessRow(n, runs), {id: `${id}-${n}`})));
  const chosen = d3.range(word.length).filter(isChosenToken);  // of a word all its rows
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", say("Guesses at each token. Up and down choose one, Escape lets go."));
  table.setAttribute("aria-activedescendant", chosen.length ? `${id}-${chosen[0]}` : "");
  keys(table, () => rowKeys(word, chosen));
  return table;
}

function rowKeys(word, chosen) {  // the arrow keys, Home and End -> the token that they choose
  const last = word.length - 1, go = n => ({token: word[Math.max(0, Math.min(last, n))], side: "query"});
  return {ArrowDown: go(chosen.length ? chosen.at(-1) + 1 : 0), ArrowUp: go(chosen.length ? chosen[0] - 1 : last),
          Home: go(0), End: go(last), Escape: {token: null}};
}

function guessRow(n, runs) {  // runs: [[run, the numbers of these tokens in its text], ...]
  const token = tokenOf(n), own = made.own[n], row = make("tr", {onclick: () => set({token, side: "query"})});
  const cell = (textContent, className = "") => make("td", {textContent, className});
  row.append(cell(`${made.labels[n]} (${n})`));
  const there = runs.map(([run, numbers]) => [run, numbers[n]]);
  for (const [run, place] of there) {
    const {piece, p} = place < 0 ? {piece: "–"} : guessesAt(place, run.guesses, run.pieces)[0];
    row.append(cell(piece, piece === own ? "right" : ""), cell(place < 0 ? "" : percent(p)));
  }
  row.append(cell(own ?? "–"), ...there.map(([run, place]) => cell(own === null || place < 0 ? "" : actualAt(run, place, own))));
  row.setAttribute("aria-selected", isChosenToken(n));
  row.classList.toggle("shown", state.token === null && n === shownToken());
  row.title = own === null ? "" : say`“${own}” has ${percent(made.actual[n])} here`;
  return row;
}
