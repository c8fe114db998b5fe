// The start of the page: the data stand in it, the state in its address. A live page calls
// show(data) again and again.

page = JSON.parse(byId("data").textContent);
state.part = addressed().get("part");
settle(); // the part, its layers and heads are known from here on
Object.assign(state, fromAddress());
unfoldChosen();
show(page);
addEventListener("beforeprint", drawAll);
window.minitx = {
  show,
  state,
  set,
  drawAll,
  learnKinds,
  looked,
  viewed,
  placed,
  onAsk: (ask, askPair, askTokens) => {
    askWriters = ask;
    askPushes = askTokens;
    askNeurons = askPair;
    update();
  },
  onchange: listener => listeners.push(listener),
};
new ResizeObserver(() => requestAnimationFrame(update)).observe(main);
