// Several heads of a layer in one view: who looks at whom, a colour for each head. It starts with
// two; buttons bring the others.

// least weight of a line while no token is chosen: of all heads there would be too many
const STRONG = 0.3;
const layerHeads = () => d3.range(H).map(h => layerOf(state.head) * H + h);
const ofLayer = () =>
  state.heads
    ? layerHeads().filter(head => state.heads.split(",").includes(`${head % H}`))
    : twoOfLayer();
function twoOfLayer() {
  // the chosen head and the sharpest other one
  const others = layerHeads().filter(head => head !== state.head);
  return d3.sort([state.head, ...d3.sort(others, head => -sharpness(head)).slice(0, 1)]);
}

// hue and strength of colours that mean nothing else here: neither query nor key, chosen, more or
// less; one of them for each of four heads, and so for the next four, darker or lighter
const HUES = [
  [358, 62],
  [212, 38],
  [130, 45],
  [0, 0],
];

function headColour(head) {
  const n = head % H,
    [hue, chroma] = HUES[n % HUES.length],
    shade = Math.floor(n / HUES.length),
    last = Math.ceil(H / HUES.length) - 1;
  const [least, most] = isDark() ? [58, 88] : [28, 62];
  return d3.hcl(hue, chroma, least + (most - least) * (last ? shade / last : 0.6)).formatHex();
}

const layer = width => [
  layerButtons(),
  ...pair(() => linesBetween(width, layerLinks(), aboutInLayer, isMarkedInLayer)),
];
const inLayer = (n, head) =>
  // with the chosen token
  state.side === "query" ? at(state.token, n, head) : at(n, state.token, head);
const isMarkedInLayer = (n, side) =>
  state.token === null ||
  (side === state.side ? n === state.token : ofLayer().some(head => inLayer(n, head) >= ALL));

function layerLinks() {
  // a line for each head, those between the same two tokens one beside the other
  const heads = ofLayer(),
    least = state.token === null ? STRONG : ONE;
  return heads.flatMap((head, n) => {
    const beside = ((n - (heads.length - 1) / 2) * 0.6) / heads.length;
    return pairs(head)
      .filter(d => d.w >= least)
      .map(d => ({...d, i: d.i + beside, j: d.j + beside, colour: headColour(head)}));
  });
}

function layerButtons() {
  const box = make("div", {
    className: "heads-of-layer",
    role: "group",
    ariaLabel: say("Heads that are shown"),
  });
  const shown = ofLayer(),
    isAll = shown.length === H;
  box.append(
    ...layerHeads().map(head => {
      const said = `${nameOf(head)}. ${character(head)}`,
        onclick = () => set({heads: toggled(head, shown)});
      const button = make(
        "button",
        {type: "button", id: `layer${head}`, onclick, title: said, ariaLabel: said},
        {"aria-pressed": shown.includes(head)},
      );
      const swatch = button.appendChild(make("span", {className: "swatch"}));
      swatch.style.background = headColour(head);
      button.append(
        make("span", {className: isOff(head) ? "is-off" : "", textContent: `H${head % H}`}),
      );
      return button;
    }),
  );
  const onclick = () => set({heads: isAll ? "" : d3.range(H).join()});
  if (H > 2)
    box.append(
      make("button", {
        type: "button",
        id: "layer-all",
        onclick,
        textContent: isAll ? say("two heads") : say("all heads"),
      }),
    );
  return box;
}

function toggled(head, shown) {
  // without the last one it starts anew
  const next = shown.includes(head) ? shown.filter(other => other !== head) : [...shown, head];
  return d3.sort(next.map(head => head % H)).join();
}

function aboutInLayer(n, side) {
  // what each head makes of a token under the pointer
  const {token} = state,
    isAnswer = token !== null && side === other(state.side);
  const lines = ofLayer().map(head => {
    const best = strongestShown(n, side, head);
    if (best === undefined) return `H${head % H}  –`;
    const [i, j] = isAnswer
      ? side === "key"
        ? [token, n]
        : [n, token]
      : side === "query"
        ? [n, best]
        : [best, n];
    return `H${head % H}  ${number(at(i, j, head))}${isAnswer ? "" : `  ${quoted(best, other(side))}`}`;
  });
  return [
    named(n, side),
    isAnswer
      ? say`weight with ${quoted(token, state.side)}`
      : side === "query"
        ? say("looks most at")
        : say("most looked at by"),
    ...lines,
  ].join("\n");
}

export {headColour, layer, layerHeads, STRONG};
