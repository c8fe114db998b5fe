// The picture as the model reads it, and over it the attention of the chosen token, patch by patch.
// Tokens that stand for no patch have their cells above it.

const drawnPictures = new WeakMap(); // what a run says of its picture -> a data URL

function urlOf(given) {
  if (!drawnPictures.has(given)) {
    const bytes = bytesOf(given.pixels),
      {width, height} = given;
    drawnPictures.set(
      given,
      image(width, height, (x, y) => {
        const n = 3 * (y * width + x);
        return ((255 << 24) | (bytes[n + 2] << 16) | (bytes[n + 1] << 8) | bytes[n]) >>> 0;
      }),
    );
  }
  return drawnPictures.get(given);
}

// of the chosen token; where none is chosen, what each token gets on average
const heatOf = n => (state.token !== null ? weightOf(n) : d3.mean(places.query, i => at(i, n)));

function picture(width) {
  // side by side the picture, and the same under its cells; one below the other where it is narrow
  const {rows, columns, first, width: w, height: h} = data.picture,
    palette = colours(),
    isWide = width >= 260,
    gap = 12;
  const across = Math.min(isWide ? (width - gap) / 2 : width, 420),
    down = (across * h) / w,
    top = first ? 26 : 0;
  const plain = [0, isWide ? top : 0],
    under = isWide ? [across + gap, top] : [0, down + gap + top],
    [x, y] = under;
  const patch = (n, corner) => patchAt(n - first, corner, across / columns, down / rows);
  const special = n => ({x1: x + 52 * n, x2: x + 52 * n + 48, y1: y - 24, y2: y - 4});
  const heat = places.key.map(n => ({
    n,
    w: heatOf(n),
    ...(n < first ? special(n) : patch(n, under)),
  }));
  const cells = [...heat, ...heat.slice(first).map(d => ({...d, ...patch(d.n, plain)}))],
    most = d3.max(heat, d => size(d.w)) || 1;
  const one = palette[state.token === null ? "key" : other(state.side)];
  const fill = d => (!isDifference() ? one : d.w > 0 ? palette.more : palette.less);
  const ends = {x1: "x1", x2: "x2", y1: "y1", y2: "y2"},
    middle = {x: d => (d.x1 + d.x2) / 2, y: d => (d.y1 + d.y2) / 2};
  const src = urlOf(data.picture),
    height = y + down + 2;
  return plot({
    ...pixels(width, height),
    marks: [
      Plot.image([plain, under], {
        x: d => d[0] + across / 2,
        y: d => d[1] + down / 2,
        src: () => src,
        width: across,
        height: down,
        preserveAspectRatio: "none",
        imageRendering: w < 100 ? "pixelated" : "auto",
      }),
      Plot.rect(heat.slice(first), {...ends, fill: palette.card, fillOpacity: 0.5}),
      Plot.rect(heat, {
        ...ends,
        fill,
        fillOpacity: d => (0.9 * size(d.w)) / most,
        stroke: palette.line,
        strokeOpacity: 0.5,
      }),
      Plot.rect(
        cells.filter(d => d.n === state.token),
        {...ends, fill: "none", stroke: palette.chosen, strokeWidth: 3},
      ),
      Plot.text(heat.slice(0, first), {...middle, text: d => labels.key[d.n]}),
      Plot.tip(cells, Plot.pointer({...middle, ...tip(aboutPatch)})),
    ],
  });
}

function patchAt(patch, [x0, y0], w, h) {
  const {columns} = data.picture,
    x1 = x0 + (patch % columns) * w;
  const y1 = y0 + Math.floor(patch / columns) * h;
  return {x1, x2: x1 + w, y1, y2: y1 + h};
}

const aboutPatch = d => say`${quoted(d.n, "key")}\nweight ${number(d.w)}`;

function pictureHint() {
  const shades = say(
    " Stronger is more, up to the strongest that is seen here. Patches are named by row and column.",
  );
  if (state.token === null)
    return (
      say("How much each patch is looked at, the mean over all queries. Choose a patch.") + shades
    );
  return (
    (state.side === "query"
      ? say("What the chosen patch looks at, over the picture.")
      : say("What looks at the chosen patch, over the picture.")) + shades
  );
}

export {picture, pictureHint};
