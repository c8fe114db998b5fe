"use strict";
// Several heads of a layer in one view: who looks at whom, a colour for each head. Buttons take heads out and put them back.

const STRONG = 0.3;  // least weight of a line while no token is chosen: of all heads there would be too many
const layerHeads = () => d3.range(H).map(h => layerOf(state.head) * H + h);
const isWithout = h => state.without.split(",").includes(`${h}`);
const ofLayer = () => layerHeads().filter(head => !isWithout(head % H));
const headColour = head => d3.hcl(360 * (head % H) / H + 20, 62, isDark() ? 72 : 50).formatHex();

const layer = width => [layerButtons(), ...pair(() => linesBetween(width, layerLinks(), aboutInLayer, isMarkedInLayer))];
const inLayer = (n, head) => state.side === "query" ? at(state.token, n, head) : at(n, state.token, head);  // with the chosen token
const isMarkedInLayer = (n, side) => state.token === null || (side === state.side ? n === state.token : ofLayer().some(head => inLayer(n, head) >= ALL));

function layerLinks() {  // a line for each head, those between the same two tokens one beside the other
  const heads = ofLayer(), least = state.token === null ? STRONG : ONE;
  return heads.flatMap((head, n) => {
    const beside = (n - (heads.length - 1) / 2) * 0.6 / heads.length;
    return pairs(head).filter(d => d.w >= least).map(d => ({...d, i: d.i + beside, j: d.j + beside, colour: headColour(head)}));
  });
}

function layerButtons() {
  const box = make("div", {className: "heads-of-layer", role: "group", ariaLabel: say("Heads that are shown")});
  box.append(...layerHeads().map(head => {
    const said = `${nameOf(head)}. ${character(head)}`, onclick = () => set({without: toggled(head % H)});
    const button = make("button", {type: "button", id: `layer${head}`, onclick, title: said, ariaLabel: said}, {"aria-pressed": !isWithout(head % H)});
    const swatch = button.appendChild(make("span", {className: "swatch"}));
    swatch.style.background = headColour(head);
    button.append(`H${head % H}`);
    return button;
  }));
  return box;
}

function toggled(h) {
  const without = state.without.split(",").filter(Boolean), own = `${h}`;
  return (isWithout(h) ? without.filter(other => other !== own) : [...without, own]).sort((a, b) => a - b).join();
}

function aboutInLayer(n, side) {  // what each head makes of a token under the pointer
  const {token} = state, isAnswer = token !== null && side === other(state.side);
  const lines = ofLayer().map(head => {
    const best = side === "query" ? strongestKey(n, head) : strongestQuery(n, head);
    const [i, j] = isAnswer ? side === "key" ? [token, n] : [n, token] : side === "query" ? [n, best] : [best, n];
    return `H${head % H}  ${number(at(i, j, head))}${isAnswer ? "" : `  ${quoted(best, other(side))}`}`;
  });
  return [named(n, side), isAnswer ? say`weight with ${quoted(token, state.side)}` : side === "query" ? say("looks most at") : say("most looked at by"),
          ...lines].join("\n");
}
