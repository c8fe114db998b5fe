// Tables whose columns sort: a button in each heading; without a program the rows stay as they are.
"use strict";

const value = (row, n) => {
  const text = row.cells[n].textContent.trim().replace("−", "-");
  const number = Number.parseFloat(text);
  return Number.isNaN(number) ? text : number;
};

const order = (a, b) =>
  typeof a === typeof b && typeof a === "number" ? a - b : `${a}`.localeCompare(`${b}`, undefined, { numeric: true });

function sort(table, n, heading) {
  const up = heading.ariaSort !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.ariaSort = up ? "ascending" : "descending";
  const rows = [...table.tBodies[0].rows].sort((a, b) => order(value(a, n), value(b, n)) * (up ? 1 : -1));
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sorts")) {
  [...table.tHead.rows[0].cells].forEach((heading, n) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(table, n, heading));
    heading.append(button);
  });
}
