// What the theme leaves to readers by keyboard or by ear: boxes that scroll take the focus, side
// columns have names.

for (const box of document.querySelectorAll(
  "article :is(pre, .cell_output:has(img, svg), .cell_output table, math[display=block])",
))
  box.tabIndex = 0;

const named = [
  [".sidebar-drawer", ".sidebar-brand-text"],
  [".toc-drawer", ".toc-title"],
];
for (const [column, title] of named) {
  const text = document.querySelector(title)?.textContent.trim();
  if (text) document.querySelector(column)?.setAttribute("aria-label", text);
}

// ?projector in the address: large, without columns beside it, and a figure fills the window
document.documentElement.classList.toggle(
  "projector",
  new URLSearchParams(location.search).has("projector"),
);
