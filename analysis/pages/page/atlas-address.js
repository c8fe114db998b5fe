// The state in the page's address, behind #: a link or a reload comes back to what was seen, and
// Back to what was seen before. Panning and zooming change the address, but are no step of their
// own.

const ONE_OF = {
  // part of the state that is one of a few words, and the words
  space: () => [...new Set(page.runs.flatMap(run => run.spaces.map(space => space.name)))],
  projection: () => Object.keys(page.projections),
  colour: () => [...new Set(d3.range(page.runs.length).flatMap(colourNames))],
  sides: () => SIDES,
  drawing: () => ["canvas"],
};
const usual = structuredClone(state); // what the address need not say
const rounded = x => +x.toFixed(4);
let writing;
export let written = "";

function fromAddress() {
  // the whole state that the address says; what makes no sense is left out
  const given = new URLSearchParams(location.hash.slice(1)),
    next = structuredClone(usual);
  for (const [name, words] of Object.entries(ONE_OF)) {
    if (words().includes(given.get(name))) next[name] = given.get(name);
  }
  const run = given.get("run");
  if (page.runs.length > 1 && ["0", "1", "both"].includes(run))
    next.run = run === "both" ? run : +run;
  next.search = given.get("find") ?? "";
  next.only = given.get("only") ?? usual.only;
  Object.assign(state, {space: next.space}); // heads are counted in the space
  next.heads = page.runs.map((_, n) => headFrom(n, given.get(`head${n || ""}`)));
  next.views = page.runs.map((_, n) => viewFrom(given.get(`view${n || ""}`)));
  next.point = pointFrom(given.get("point"));
  const drawnIn = given.get("drawn"); // where it is not the projection that is shown
  next.lasso = lassoFrom(
    given.get("lasso"),
    projectionsOf(0).includes(drawnIn) ? drawnIn : next.projection,
  );
  if (["dark", "light"].includes(given.get("theme"))) next.dark = given.get("theme") === "dark";
  return next;
}

function headFrom(run, text) {
  const parts = /^L(\d+)H(\d+)$/.exec(text ?? ""),
    {L, H} = spaceOf(run);
  return parts && +parts[1] < L && +parts[2] < H ? parts[1] * H + +parts[2] : firstHead(run);
}

const numbersOf = text => (text ?? "").split(",").map(x => (x === "" ? NaN : +x));

function viewFrom(text) {
  const [x, y, k, a, e] = numbersOf(text),
    all = {x, y, k, a, e};
  return Object.values(all).every(Number.isFinite) && k > 0 ? all : {...HOME};
}

function pointFrom(text) {
  const [run, i] = numbersOf(text);
  return page.runs[run] && Number.isInteger(i) && i >= 0 && i < pointsOf(spaceOf(run))
    ? {run, i}
    : null;
}

function lassoFrom(text, projection) {
  // run,head,a,e,x,y,x,y,...
  const [run, head, a, e, ...flat] = numbersOf(text),
    isHead = Number.isInteger(head) && head >= 0;
  if (!page.runs[run] || !isHead || head >= headsOf(run) || flat.length < 6 || flat.length % 2)
    return null;
  return [a, e, ...flat].every(Number.isFinite)
    ? {run, head, projection, turn: {a, e}, corners: inTwos(flat)}
    : null;
}

const inTwos = flat => d3.range(flat.length / 2).map(n => [flat[2 * n], flat[2 * n + 1]]);

function addressOf() {
  // [what a step of Back goes over, the whole]
  const given = new URLSearchParams(),
    put = (name, value) => value === null || given.set(name, value);
  put("run", state.run === 0 ? null : state.run);
  for (const name of [...Object.keys(ONE_OF), "only"])
    put(name, state[name] === usual[name] ? null : state[name]);
  state.heads.forEach((head, n) => put(`head${n || ""}`, nameOf(n, head)));
  put("find", state.search.trim() || null);
  put("point", state.point && `${state.point.run},${state.point.i}`);
  const {lasso} = state;
  put(
    "lasso",
    lasso &&
      [lasso.run, lasso.head, lasso.turn.a, lasso.turn.e, ...lasso.corners.flat()]
        .map(rounded)
        .join(),
  );
  put("drawn", lasso && lasso.projection !== state.projection ? lasso.projection : null);
  const steps = `${given}`;
  state.views.forEach((view, n) => {
    const {x, y, k, a, e} = view,
      isHome = Object.keys(HOME).every(name => view[name] === HOME[name]);
    put(`view${n || ""}`, isHome ? null : [x, y, k, a, e].map(rounded).join());
  });
  put("theme", state.dark === null ? null : state.dark ? "dark" : "light");
  return [steps, `${given}`];
}

function toAddress() {
  const [steps, whole] = addressOf();
  const step = written && steps !== written ? "pushState" : "replaceState";
  written = steps;
  try {
    if (`#${whole}` !== location.hash) history[step](null, "", `#${whole}`);
  } catch {} // a notebook's frame has no address of its own
}

function keepAddress() {
  // a step at once; panning soon: browsers refuse too many changes in a short time
  clearTimeout(writing);
  if (addressOf()[0] !== written) toAddress();
  else writing = setTimeout(toAddress, 250);
}

addEventListener("popstate", () => {
  // Back, Forward, and an address that is typed
  clearTimeout(writing);
  Object.assign(state, fromAddress());
  [written] = addressOf();
  update();
});

export {addressOf, fromAddress, keepAddress};
