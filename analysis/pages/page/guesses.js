"use strict";
// The model's guesses: bars for one token, and a table with the best guess at each.

function guesses() {
  const lists = make("div", {className: "lists"});
  lists.append(...beside(pair(() => [lead(shownToken()), best(shownToken())])));
  return [lists, ...(made.guesses ? [guessTable()] : [])];
}

function lead(n) {
  const where = isCausal() ? "behind" : "at";
  const textContent = made.classes ? "The classes of the text" : `Likeliest ${where} “${made.labels[n]}” (${n})`;
  return make("p", {className: "lead", textContent});
}

function shownToken() {  // the chosen token, else a hidden one, else the last; the last of a masked model is a mark
  const chosen = made.labels.findIndex((_, n) => isChosenToken(n));
  if (chosen >= 0) return chosen;
  const mask = made.labels.findIndex(label => /^(<mask>|\[MASK\])$/.test(label));
  return mask >= 0 ? mask : made.labels.length - (isCausal() ? 1 : 2);
}

function best(n) {  // what is likeliest at one token, or which class a text is of
  const list = make("ol", {className: "bars"});
  const rows = made.classes ? made.classes.map((p, c) => ({piece: `class ${c}`, p})) : guessesAt(n);
  list.append(...rows.map(({piece, p}) => {
    const item = make("li"), bar = make("span", {className: "bar-of"});
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
  const table = make("table", {className: "guesses"}), head = make("tr");
  const inText = isCausal() ? "next in the text" : "in the text";
  const runs = isDifference() ? [0, 1].map(run => within(run, () => made)) : [made];  // of texts of one length
  const names = isDifference() ? [runName(0), runName(1)] : ["best guess"];
  const columns = ["token", ...names.flatMap(name => [name, ""]), inText, ...runs.map(() => "")];
  head.append(...columns.map(textContent => textContent ? make("th", {textContent}, {scope: "col"}) : make("td")));
  table.append(head, ...made.labels.map((_, n) => guessRow(n, runs)));
  return table;
}

function guessRow(n, runs) {
  const row = make("tr", {onclick: () => set({token: tokenOf(n), side: "query"})}), own = made.own[n];
  const cell = (textContent, className = "") => make("td", {textContent, className});
  row.append(cell(`${made.labels[n]} (${n})`));
  for (const run of runs) {
    const [{piece, p}] = guessesAt(n, run.guesses, run.pieces);
    row.append(cell(piece, piece === own ? "right" : ""), cell(percent(p)));
  }
  row.append(cell(own ?? "–"), ...runs.map(run => cell(own === null ? "" : percent(run.actual[n]))));
  row.setAttribute("aria-selected", isChosenToken(n));
  row.title = own === null ? "" : `“${own}” has ${percent(made.actual[n])} here`;
  return row;
}
