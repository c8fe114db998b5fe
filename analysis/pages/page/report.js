// Tables whose columns sort, what a phone folds, and large type on a projector; without a program
// rows stay as they are, and all is open.

// ?projector in the address: a picture fills the window, and Page Down shows the next
document.documentElement.classList.toggle(
  "projector",
  new URLSearchParams(location.search).has("projector"),
);

const value = (row, n) => {
  const text = row.cells[n].textContent.trim().replace("−", "-");
  const number = Number.parseFloat(text);
  return Number.isNaN(number) ? text : number;
};

const order = (a, b) =>
  typeof a === typeof b && typeof a === "number"
    ? a - b
    : `${a}`.localeCompare(`${b}`, undefined, {numeric: true});

function sort(table, n, heading) {
  const up = heading.ariaSort !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.ariaSort = up ? "ascending" : "descending";
  const rows = [...table.tBodies[0].rows].sort(
    (a, b) => order(value(a, n), value(b, n)) * (up ? 1 : -1),
  );
  table.tBodies[0].append(...rows);
}

function addButton(heading, act) {
  const button = document.createElement("button");
  button.append(...heading.childNodes);
  button.addEventListener("click", act);
  heading.append(button);
}

for (const table of document.querySelectorAll("table.sorts")) {
  [...table.tHead.rows[0].cells].forEach((heading, n) =>
    addButton(heading, () => sort(table, n, heading)),
  );
}

// what is wider than its box, such as the bar of sections on narrow screens: its sign stands there
// as long as more of it lies to the right
function watch(box, scrolls = box) {
  const mark = () =>
    box.classList.toggle(
      "end",
      scrolls.scrollLeft + scrolls.clientWidth >= scrolls.scrollWidth - 1,
    );
  scrolls.addEventListener("scroll", mark, {passive: true});
  new ResizeObserver(mark).observe(scrolls);
}

const bar = document.querySelector("nav");
watch(bar, bar.querySelector("ol"));
for (const figure of document.querySelectorAll("figure[data-wide]")) watch(figure);

// on a phone: the section of a question is hidden, and answers, published values and glossary are
// folded to headings; all opens by a link to what is in it, by a search in the page, and for print
const phone = matchMedia("(max-width: 40rem)");
const all = selector => [...document.querySelectorAll(selector)];
const sections = all(".experiment"),
  groups = all(".answers tbody"),
  folds = all(".whole").filter(x => !x.closest(".experiment"));

function open(group, is) {
  const button = group.querySelector("button");
  if (button) button.ariaExpanded = is;
  for (const row of [...group.rows].slice(1)) row.hidden = is ? false : "until-found";
}

const isFolded = group => group.querySelector("button")?.ariaExpanded === "false";

function lay(folded) {
  for (const section of sections) section.hidden = folded && "until-found";
  for (const fold of folds) fold.open = !folded;
  for (const group of groups) {
    const heading = group.rows[0].cells[0],
      button = heading.querySelector("button");
    if (folded && !button) addButton(heading, () => open(group, isFolded(group)));
    else if (!folded) button?.replaceWith(...button.childNodes);
    open(group, !folded);
  }
  for (const box of all(".wide")) {
    // which scroll there: also by keys
    if (folded) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

function show(hash) {
  const target = hash ? document.getElementById(hash.slice(1)) : null;
  const section = target?.closest("section");
  if (!section) return false;
  const group = target.closest(".answers tbody"),
    fold = section.querySelector(".whole");
  const shut = section.hidden || (fold && !fold.open) || (group && isFolded(group));
  section.hidden = false;
  if (fold) fold.open = true;
  if (group) open(group, true);
  return shut;
}

function fold() {
  lay(phone.matches);
  show(location.hash);
}

document.addEventListener("click", event => {
  const link = event.target.closest('a[href^="#"]');
  if (link) show(link.hash); // before the browser goes there
});
document.addEventListener("beforematch", event => {
  // one row is found, the browser opens it alone
  const group = event.target.closest(".answers tbody");
  if (group) open(group, true);
});
addEventListener("hashchange", () => {
  if (show(location.hash)) document.getElementById(location.hash.slice(1)).scrollIntoView();
});
addEventListener("beforeprint", () => lay(false));
addEventListener("afterprint", fold);
phone.addEventListener("change", fold);
fold();
