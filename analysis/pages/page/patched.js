// What patches between two texts have shown: what each head, and the stream at each place, carries
// from one text into the other. A live page asks for it; a page that is saved has what was seen.

const PATCHED = {
  heads: say("head by head"),
  stream: say("the stream before each layer, by position"),
};
const STACKS = {
  "": "",
  encoder: say("encoder, "),
  decoder: say("decoder, "),
  cross: say("cross-attention, "),
};
const share = x => `${minus(`${Math.round(100 * x)}`)}%`;

function patchedSays({guesses: [own, other], probabilities, labels, parts, prefix, same}) {
  // what both texts make the model guess, what is measured, and what 100% are
  const [{heads}] = Object.values(parts),
    [before, after] = heads.differences;
  const guessed = probabilities?.map(percent);
  return (
    (labels.flat().includes("<unk>") ? say("<unk> is a word that the model does not know. ") : "") +
    (guessed
      ? say`The first text’s guess is “${own}”, ${guessed[0]}, the second’s “${other}”, ${guessed[1]}. `
      : "") +
    say("What one head, or one position, computes in one text is put into the run of the other. ") +
    say`Measured: logit of “${own}” minus logit of “${other}”${prefix ? say`, behind “${prefix.slice(1).join("")}”` : ""}: ` +
    say`${minus(before.toFixed(2))} in the first text, ${minus(after.toFixed(2))} in the second, with the model unchanged. 100% carries all of ` +
    say`the difference over, 0% nothing.${same ? say` Both guess “${same}” first; of their five guesses these tell them apart best.` : ""} Framed: 10 points or more beyond what an unrelated text does: as many of the same words, drawn at random.` +
    (Math.abs(before - after) < 1
      ? say(" The two texts barely differ in this: every share is one of less than 1 logit.")
      : "") +
    say(
      " Where nothing is framed, several parts may carry it together; or exchange a word that the guess depends on more, as “Which tokens does it depend on?” tells.",
    )
  );
}

const patchedMaps = patched =>
  Object.entries(patched.parts).flatMap(([part, maps]) =>
    Object.entries(maps).flatMap(([name, values]) =>
      ["into_second", "into_first"].map(way => patchMap(patched, part, name, way, values[way])),
    ),
  );

function patchMap(patched, part, name, way, {shares, null: chance}) {
  const cells = shares.flatMap((row, l) => row.map((x, n) => ({l, n, x, chance: chance[l][n]})));
  const clear = cells.filter(d => Math.abs(d.x) > d.chance + 0.1),
    best = d3.greatest(clear, d => d.x);
  const isHeads = name === "heads",
    places =
      (part === "decoder" && patched.prefix) || patched.labels[way === "into_second" ? 0 : 1];
  const label = d =>
    isHeads ? `L${d.l}H${d.n}` : say`before layer ${d.l}, “${places[d.n]}” (${d.n})`;
  const title = `${STACKS[part]}${PATCHED[name]}: ${way === "into_second" ? say("first text into the second") : say("second text into the first")}`;
  const largest = d3.greatest(cells, d => Math.abs(d.x));
  const most = best
    ? say`Most in a frame: ${label(best)}, ${share(best.x)}; by chance ${share(best.chance)}.`
    : say`None of ${cells.length} exceeds an unrelated text by 10 points: the largest effect is ${share(largest.x)}, of ${label(largest)}, that of the unrelated text ${share(largest.chance)}.`;
  const ofWord = isHeads
    ? ""
    : say(" By construction, the words that differ carry all of it before layer 0.");
  const box = make(
    "figure",
    {},
    {},
    make("figcaption", {}, {}, make("b", {textContent: title}), ` ${most}${ofWord}`),
  );
  const drawing = box.appendChild(make("div", {className: "map"}));
  drawing.append(
    ...patchPlot(
      cells,
      clear,
      label,
      isHeads,
      isHeads ? d3.range(shares[0].length).map(h => `H${h}`) : places,
    ),
  );
  drawing.setAttribute("role", "img");
  drawing.firstChild.setAttribute("aria-hidden", "true");
  drawing.ariaLabel = `${title}. ${most}`;
  // Plot would pin the hover text
  drawing.addEventListener("pointerdown", event => event.stopPropagation(), true);
  keepTipInside(drawing);
  if (isHeads)
    drawing.onclick = () => {
      const {value} = drawing.firstChild;
      if (value) set({...(part ? {part} : {}), head: value.l * shares[0].length + value.n});
    };
  return box;
}

function patchPlot(cells, clear, label, isHeads, columns) {
  const palette = colours(),
    mix = d3.interpolateRgbBasis(palette.change),
    top = isHeads ? 20 : 64,
    most = Math.max(
      1,
      d3.max(cells, d => Math.abs(d.x)),
    );
  const layers = d3.max(cells, d => d.l) + 1,
    step = Math.max(22, Math.min(56, 300 / columns.length)),
    text = step > 34;
  const shade = d => mix(0.5 + d.x / most / 2),
    ends = {x1: d => d.n - 0.48, x2: d => d.n + 0.48, y1: d => d.l - 0.46, y2: d => d.l + 0.46};
  const key = {type: "linear", domain: [-most, most], interpolate: mix},
    drawn = plot({
      width: 44 + step * columns.length,
      height: top + 6 + 22 * layers,
      marginLeft: 30,
      marginTop: top,
      marginRight: 14,
      marginBottom: 4,
      x: {domain: [-0.5, columns.length - 0.5], axis: null},
      y: {domain: [layers - 0.5, -0.5], axis: null},
      marks: [
        Plot.rect(cells, {...ends, fill: shade, stroke: palette.line, strokeWidth: 0.5}),
        Plot.rect(clear, {...ends, fill: "none", stroke: palette.text, strokeWidth: 1.5}),
        text
          ? Plot.text(cells, {
              x: "n",
              y: "l",
              text: d => minus(`${Math.round(100 * d.x)}`),
              fontSize: 10,
              fill: d => onto(shade(d)),
            })
          : null,
        Plot.text(
          columns.map((column, n) => [n, column]),
          {
            x: d => d[0],
            y: -0.5,
            dy: -6,
            text: d => short(d[1], 9),
            ...(isHeads ? {} : {rotate: -60, textAnchor: "start"}),
          },
        ),
        rowNames(layers, l => `L${l}`),
        Plot.tip(
          cells,
          Plot.pointer({
            x: "n",
            y: "l",
            ...tip(d => say`${label(d)}\n${share(d.x)}, by chance ${share(d.chance)}`),
          }),
        ),
      ],
    });
  return text
    ? [drawn]
    : [drawn, legend(250, say("share of the difference"), key, [-1, 0, 1], ".0%")];
}

export {patchedMaps, patchedSays};
