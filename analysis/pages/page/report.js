// Tables whose columns sort, and sections that are folded on a phone; without a program rows stay as they are, and all is open.
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

// the bar of sections on narrow screens: its arrow stands there as long as more of it lies to the right
const bar = document.querySelector("nav");
const list = bar.querySelector("ol");
const mark = () => bar.classList.toggle("end", list.scrollLeft + list.clientWidth >= list.scrollWidth - 1);
list.addEventListener("scroll", mark, { passive: true });
addEventListener("resize", mark);
mark();

// sections: on a phone each is a line that opens by itself, by a link to what is in it, by a search, and for print
const phone = matchMedia("(max-width: 40rem)");
const sections = [...document.querySelectorAll("details.whole")];

function fold() {
  for (const section of sections) section.open = !phone.matches;
  for (const box of document.querySelectorAll(".wide")) {  // which scroll there: also by keys
    if (phone.matches) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
  show(location.hash);
}

function show(hash) {
  const target = hash && document.getElementById(hash.slice(1));
  const section = target && (target.closest(".whole") ?? target.querySelector(".whole"));
  if (!section || section.open) return false;
  section.open = true;
  return true;
}

document.addEventListener("click", event => {
  const link = event.target.closest('a[href^="#"]');
  if (link) show(link.hash);  // before the browser goes there
});
addEventListener("hashchange", () => {
  if (show(location.hash)) document.getElementById(location.hash.slice(1)).scrollIntoView();
});
addEventListener("beforeprint", () => { for (const section of sections) section.open = true; });
addEventListener("afterprint", fold);
phone.addEventListener("change", fold);
fold();
