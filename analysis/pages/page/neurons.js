// The chosen query and one key element by element: what each of their products adds to the score,
// the largest first. A live page asks for the pair that is looked at.

const asked = new WeakMap(); // data -> Map of "head query key" -> answer, null while it is asked for
const MOST = isProjected ? 9 : 16; // elements that have a bar of their own
// biome-ignore lint/style/useConst: live.js sets it
export let askNeurons = null; // (run's name, layer, head, query, key) -> a promise of q, k, score

// heads of one stack on tokens: of an encoder-decoder, and of whole words, there is none
const hasNeurons = () =>
  Boolean(askNeurons) && !current.parts && made.word.length === T && !data.picture;

function pairShown() {
  const {i, j} = example();
  return {i, j: Math.min(state.partner ?? j, data.causal ? i : S - 1)};
}

function neuronsOf({i, j}) {
  // the answer; undefined while it is on its way, a text where there is none
  if (!asked.has(data)) asked.set(data, new Map());
  const known = asked.get(data),
    name = [state.head, i, j].join(" ");
  if (!known.has(name)) {
    const keep = answer => {
      known.set(name, answer);
      later(() => redraw("neurons"));
    };
    known.set(name, undefined);
    askNeurons(current.name, layerOf(state.head), state.head % H, i, j).then(keep, error =>
      error.status === 409 ? known.delete(name) : keep(error.message),
    );
  }
  return known.get(name);
}

const neurons = width => pair(() => neuronsShown(width));

function neuronsShown(width) {
  const shown = pairShown(),
    answer = neuronsOf(shown);
  if (typeof answer !== "object") return note(answer ?? say("Being computed …"));
  const {q, k, scale} = answer,
    all = q.map((x, e) => ({e, q: x, k: k[e], x: x * k[e] * scale}));
  const order = d3.sort(all, d => -Math.abs(d.x)),
    rest = order.slice(MOST);
  const rows = order.slice(0, MOST).map(d => ({...d, name: say`element ${d.e}`}));
  if (rest.length) rows.push({name: say`${rest.length} others`, x: d3.sum(rest, d => d.x)});
  return [
    keyChooser(shown),
    make("p", {className: "fact", textContent: addedUp(shown, answer, all)}),
    ...sharesSaid(answer),
    barsOf(rows, width),
  ];
}

function keyChooser({i, j}) {
  const select = make("select", {
    id: `key-of-${page.runs.indexOf(current)}`,
    onchange: () => set({partner: +select.value}),
  });
  const keys = places.key.filter(n => !hidden(i, n));
  select.replaceChildren(...keys.map(n => new Option(key(n), n, false, n === j)));
  return make("label", {className: "fact"}, {}, say`Query ${query(i)} with key `, select);
}

function addedUp({i, j}, {scale, score}, all) {
  const sum = d3.sum(all, d => d.x),
    added = score - sum;
  return (
    say`${all.length} products, each times ${scale.toFixed(3)}, add up to ${two(sum)}` +
    (Math.abs(added) < 0.005
      ? say`: the score, which makes a weight of ${two(at(i, j))}.`
      : say`; with ${two(added)} that the model adds, the score is ${two(score)}, a weight of ${two(at(i, j))}.`)
  );
}

function sharesSaid({shares}) {
  // of words (0), positions (1) and the rest (2)
  if (!shares) return [];
  const [[ww, wp], [pw, pp]] = shares,
    rest = d3.sum(shares.flat()) - ww - wp - pw - pp;
  const textContent = say`Of the sum, words with words make ${two(ww)}, words with positions ${two(wp + pw)}, positions with positions ${two(pp)}, and what layers and biases wrote ${two(rest)}.`;
  return [make("p", {className: "fact", textContent})];
}

function barsOf(rows, width) {
  const palette = colours(),
    signs = d => (d.q === undefined ? "" : `${two(d.q)} × ${two(d.k)}`),
    names = rows.map(d => d.name);
  return plot({
    width: Math.max(300, Math.min(width, 640)),
    height: 42 + 18 * rows.length,
    marginLeft: 190,
    marginTop: 38,
    marginRight: 44,
    marginBottom: 4,
    x: {axis: "top", ticks: 5, label: say("added to the score →"), labelOffset: 36},
    y: {domain: names, axis: null},
    marks: [
      Plot.barX(rows, {x: "x", y: "name", fill: d => (d.x < 0 ? palette.less : palette.more)}),
      Plot.ruleX([0], {stroke: palette.text}),
      Plot.text(rows, {
        y: "name",
        text: "name",
        frameAnchor: "left",
        dx: -186,
        textAnchor: "start",
      }),
      Plot.text(rows, {y: "name", text: signs, frameAnchor: "left", dx: -8, textAnchor: "end"}),
      Plot.text(rows, {
        y: "name",
        text: d => two(d.x),
        frameAnchor: "right",
        dx: 40,
        textAnchor: "end",
      }),
    ],
  });
}

export {hasNeurons, neurons};
