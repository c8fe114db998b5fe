// Who looks at whom: the tokens twice, side by side, and a line for each weight.

const lines = width =>
  linesBetween(
    width,
    pairs().map(d => ({...d, colour: ink(d)})),
    about,
  );

function linesBetween(width, links, about, isMarked = marked) {
  const palette = colours(),
    most = Math.max(T, S),
    row = Math.max(14, Math.min(72, 430 / most)); // up to 34 tokens are seen whole
  const margin = (width - Math.max(width - 230, 90)) / 2;
  const end = (side, x) => places[side].map(n => ({n, side, x}));
  const names = (side, x) =>
    Plot.text(end(side, x), {
      x: "x",
      y: "n",
      textAnchor: x ? "start" : "end",
      dx: x ? 8 : -8,
      fill: palette[side],
      text: d => (x ? `${short(labels.key[d.n])}  ${d.n}` : `${d.n}  ${short(labels.query[d.n])}`),
      opacity: d => (isMarked(d.n, d.side) ? 1 : 0.4),
    });
  const title = (text, x, fill) => Plot.text([text], {x, y: -0.5, dy: -12, fill, fontWeight: 600});
  const drawn = plot({
    width,
    height: most * row + 40,
    marginLeft: margin,
    marginRight: margin,
    marginTop: 30,
    marginBottom: 8,
    x: {domain: [0, 1], axis: null},
    y: {domain: [most - 0.5, -0.5], axis: null},
    marks: [
      Plot.link(links, {
        x1: 0,
        x2: 1,
        y1: "i",
        y2: "j",
        strokeWidth: thickness,
        strokeOpacity: opacity,
        stroke: "colour",
        strokeLinecap: "round",
      }),
      names("query", 0),
      names("key", 1),
      ...border(margin),
      title(say("query"), 0, palette.query),
      title(say("key"), 1, palette.key),
      Plot.tip(
        [...end("query", 0), ...end("key", 1)],
        Plot.pointer({
          x: "x",
          y: "n",
          maxRadius: 110,
          ...tip(d => about(d.n, d.side)),
        }),
      ),
    ],
  });
  const isCut = most > 34 && !["lines", "layer"].includes(state.view);
  return isCut ? [tooMany(say`${most} tokens are taller than this box`), drawn] : [drawn];
}

function border(margin) {
  // between two texts; in cross only the keys are of two
  if (second === null) return [];
  return borders({y: second.key, insetLeft: isOfPair() ? -margin : 0, insetRight: -margin});
}

function markLine(box) {
  // the chosen token's line, scrolled into sight
  if (isBoth()) return;
  const y = state.token === null ? 0 : box.lastChild.scale("y").apply(state.token);
  later(() => {
    if (y < box.scrollTop || y > box.scrollTop + box.clientHeight)
      box.scrollTop = y - box.clientHeight / 2;
  });
}

export {lines, linesBetween, markLine};
