// The start of the page: the data stand in it, the state in its address. A live page calls
// show(data) again and again.

page = JSON.parse(byId("data").textContent);
state.part = addressed().get("part");
settle(); // the part, its layers and heads are known from here on
Object.assign(state, fromAddress());
unfoldChosen();
show(page);
addEventListener("beforeprint", drawAll);
byId("enlarge").onclick = ({target}) => keepState(target, "?projector");
if (isProjected) {
  const [back, next, whole] = byId("turn").children;
  byId("turn").hidden = false;
  whole.onclick = () => keepState(whole, "?");
  back.onclick = () => turnPage(-1);
  next.onclick = () => turnPage(1);
  addEventListener("keydown", event => {
    const by = {PageDown: 1, PageUp: -1}[event.key];
    if (event.key === "Escape" && !state.walk) whole.click();
    if (!by) return;
    event.preventDefault();
    turnPage(by);
  });
}

// a link to this page in another size, with what is seen now
const keepState = (link, address) => Object.assign(link, {href: address + location.hash});

function turnPage(by) {
  // the next view, of the walk the next step; these are the keys of a remote control for slides.
  // Before the other views all heads stand below what is asked of the model
  if (state.walk) return set({walk: Math.max(1, state.walk + by)});
  const views = Object.keys(VIEWS).filter(id => isThere(id) && id !== "heads"),
    there = [null, ...views],
    at = Math.max(0, there.indexOf(state.view)) + by;
  set({view: there[Math.max(0, Math.min(at, there.length - 1))]});
  unfoldChosen();
  update();
  scrollTo(0, 0);
}
window.minitx = {
  show,
  state,
  set,
  drawAll,
  learnKinds,
  looked,
  viewed,
  placed,
  pushedAt,
  onAsk: (ask, askPair, askTokens) => {
    askWriters = ask;
    askPushes = askTokens;
    askNeurons = askPair;
    update();
  },
  onchange: listener => listeners.push(listener),
};
new ResizeObserver(() => requestAnimationFrame(update)).observe(main);
