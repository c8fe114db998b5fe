// All heads: one small picture each, in one row a layer, or sorted and filtered one after the
// other. Shades mean the same in all of them.

let shown = [],
  across = 1; // the heads in the order of their pictures, and how many stand in a row

function heads(width) {
  shown = listed();
  if (!shown.length)
    return note(isAnywhere() ? say("No matching heads.") : say("No head exceeds chance there."));
  const left = isGrid() ? 28 : 4,
    top = isGrid() ? 34 : 22;
  across = isGrid() ? H : Math.max(1, Math.min(shown.length, Math.floor((width - left) / 60)));
  const down = Math.ceil(shown.length / across),
    edge = Math.min((width - left - 4) / across, 110);
  const row = isGrid() ? edge : edge + 14; // below a picture its name, where no grid says it
  const cells = shown.map((head, n) => ({
    head,
    mark: marks(head),
    x: left + (n % across) * edge,
    y: top + Math.floor(n / across) * row,
  }));
  const inner = 0.92 * edge,
    ends = {x1: "x", x2: d => d.x + inner, y1: "y", y2: d => d.y + inner};
  const middle = {x: d => d.x + inner / 2, y: d => d.y + inner / 2},
    height = top + down * row + 4;
  const whole = Math.max(left + 4 + edge * across, Math.min(width, 300));
  // which are layers is said beside them, or, where that has no room, by their letter
  const numbers = (count, at, letter) =>
    isGrid()
      ? Plot.text(d3.range(count), {...at, text: n => `${whole < 290 ? letter : ""}${n}`})
      : null;
  const drawn = plot({
    ...pixels(whole, height),
    marks: [
      Plot.image(cells, {
        ...middle,
        src: d => thumb(d.head),
        width: inner,
        height: inner,
        opacity: d => (isOff(d.head) ? 0.25 : 1),
        preserveAspectRatio: "none",
        imageRendering: state.thumbs === "attention" ? "pixelated" : "auto",
      }),
      Plot.rect(cells, {
        ...ends,
        fill: "transparent",
        stroke: colours().line,
        ariaLabel: d => `${nameOf(d.head)}. ${character(d.head)}`,
      }),
      ...(state.thumbs === "attention" ? thumbBorders(cells, inner) : []),
      isGrid()
        ? null
        : Plot.text(cells, {x: middle.x, y: d => d.y + inner + 8, text: d => nameOf(d.head)}),
      Plot.text(
        cells.filter(d => d.mark),
        {
          x: d => d.x + inner - 3, // where no diagonal runs below a minus
          y: d => d.y + 4,
          text: "mark",
          textAnchor: "end",
          lineAnchor: "top",
          fontWeight: 700,
          fontSize: edge < 40 ? 9 : 12,
          fill: colours().text,
          stroke: colours().card,
          strokeWidth: 4,
        },
      ),
      Plot.text(
        cells.filter(d => isOff(d.head)),
        {
          ...middle,
          text: () => say("(off)"),
          fontWeight: 700,
          fill: colours().text,
          stroke: colours().card,
          strokeWidth: 5,
        },
      ),
      numbers(H, {x: n => left + n * edge + inner / 2, y: top - 8}, "H"),
      numbers(L, {x: left - 8, y: n => top + n * edge + inner / 2}, "L"),
      Plot.text(
        whole < 290
          ? []
          : [isGrid() ? say("layer ↓   head →") : say`${shown.length} of ${L * H} heads`],
        {
          x: 2,
          y: 8,
          textAnchor: "start",
          fill: colours().soft,
        },
      ),
      ...headsLegend(whole - 4),
      Plot.tip(
        cells,
        Plot.pointer({
          ...middle,
          maxRadius: edge,
          ...tip(
            d =>
              `${nameOf(d.head)}, ${countedFrom1(d.head)}\n${character(d.head).replaceAll("; ", "\n")}`,
          ),
        }),
      ),
    ],
  });
  drawn.querySelectorAll("rect[aria-label]").forEach((cell, n) => {
    cell.id = `head${shown[n]}`;
    cell.setAttribute("role", "option");
  });
  return drawn;
}

function thumbBorders(cells, inner) {
  // the lines between two texts
  const stroke = {stroke: colours().soft, strokeOpacity: 0.7, className: "border"},
    key = second && (inner * second.key) / S;
  const query = isOfPair() ? (inner * second.query) / T : null;
  return [
    key === null
      ? null
      : Plot.link(cells, {
          x1: d => d.x + key,
          x2: d => d.x + key,
          y1: "y",
          y2: d => d.y + inner,
          ...stroke,
        }),
    query === null
      ? null
      : Plot.link(cells, {
          x1: "x",
          x2: d => d.x + inner,
          y1: d => d.y + query,
          y2: d => d.y + query,
          ...stroke,
        }),
  ];
}

const BAR = {wide: 70, high: 8, steps: 35}; // of the legend, in pixels, and shades in it

function headsLegend(right) {
  // what dark means; of points, which are queries and which keys
  const palette = colours(),
    where = {y: 8, textAnchor: "end", fill: palette.soft};
  if (state.thumbs !== "attention") {
    const [query, key] =
      state.colour === "position" ? [palette.text, palette.text] : [palette.query, palette.key];
    return [
      Plot.text([say("key")], {...where, x: right, fill: key, fontWeight: 600}),
      Plot.text([say("query")], {...where, x: right - 34, fill: query, fontWeight: 600}),
    ];
  }
  const shade = shades(),
    most = largestOfAll(),
    least = isDifference() ? -1 : 0,
    end = right - 40,
    start = end - BAR.wide;
  const steps = d3.range(BAR.steps),
    at = n => start + (n * BAR.wide) / BAR.steps,
    format = isDifference() ? "+.2f" : ".2f";
  const said = x => minus(d3.format(format)(x));
  return [
    Plot.rect(steps, {
      x1: at,
      x2: n => at(n + 1) + 0.5,
      y1: 8 - BAR.high / 2,
      y2: 8 + BAR.high / 2,
      className: "scale",
      fill: n => shade(least + ((1 - least) * n) / (BAR.steps - 1)),
    }),
    Plot.rect([0], {
      x1: start,
      x2: end,
      y1: 8 - BAR.high / 2,
      y2: 8 + BAR.high / 2,
      fill: "none",
      stroke: palette.line,
    }),
    Plot.text([say`weight  ${least ? said(-most) : "0"}`], {...where, x: start - 4}),
    Plot.text([said(most)], {...where, x: end + 4, textAnchor: "start"}),
  ];
}

const thumbs = new Map(); // of one pattern, theme and kind of picture: head -> data URL
let thumbsOf = "";

function thumb(head) {
  const kind = [
    version,
    state.run,
    state.part,
    isDark(),
    state.thumbs,
    state.stage,
    state.between,
  ].join();
  if (kind !== thumbsOf) thumbs.clear();
  thumbsOf = kind;
  if (!thumbs.has(head))
    thumbs.set(head, state.thumbs === "attention" ? smallMatrix(head) : smallSpace(head));
  return thumbs.get(head);
}

function smallMatrix(head) {
  // of many tokens the largest weight of each block: what stands out stays seen
  const least = isDifference() ? -1 : 0,
    colour = inWords(shades(), least),
    most = largestOfAll();
  const step = Math.ceil(Math.max(T, S) / 128),
    weight = (i, j) => at(i, j, head) / most;
  const block = (i, j) => {
    let best = 0;
    for (let y = i; y < Math.min(i + step, T); y++)
      for (let x = j; x < Math.min(j + step, S); x++) {
        if (size(weight(y, x)) > size(best)) best = weight(y, x);
      }
    return best;
  };
  return image(Math.ceil(S / step), Math.ceil(T / step), (x, y) =>
    isShown(y * step, x * step) ? colour(step === 1 ? weight(y, x) : block(y * step, x * step)) : 0,
  );
}

function smallSpace(head) {
  const edge = 96,
    canvas = Object.assign(document.createElement("canvas"), {width: edge, height: edge});
  const brush = canvas.getContext("2d"),
    points = spots(head),
    {x, y} = frame(points, edge, edge, 8);
  brush.fillStyle = colours().back;
  brush.fillRect(0, 0, edge, edge);
  for (const p of points) {
    brush.fillStyle = dotColour(p);
    brush.fillRect(
      ((p.x - x[0]) / (x[1] - x[0])) * edge - 1.5,
      ((y[1] - p.y) / (y[1] - y[0])) * edge - 1.5,
      3,
      3,
    );
  }
  return canvas.toDataURL();
}

function markHead(box) {
  box.querySelectorAll("rect[role=option]").forEach((cell, n) => {
    const chosen = shown[n] === state.head;
    cell.setAttribute("aria-selected", chosen);
    cell.setAttribute("stroke", chosen ? colours().chosen : colours().line);
    cell.setAttribute("stroke-width", chosen ? 3 : 1);
  });
  box.setAttribute("aria-activedescendant", shown.includes(state.head) ? `head${state.head}` : "");
}

function headKeys() {
  // the arrow keys, Home and End -> the head that they choose
  const n = Math.max(0, shown.indexOf(state.head)),
    last = shown.length - 1;
  if (last < 0) return {};
  const go = to => ({head: shown[Math.max(0, Math.min(last, to))]});
  const left = isGrid() && n % across === 0 ? n : n - 1,
    right = isGrid() && n % across === across - 1 ? n : n + 1;
  return {
    ArrowRight: go(right),
    ArrowLeft: go(left),
    Home: go(0),
    End: go(last),
    ArrowDown: go(n + across > last ? n : n + across),
    ArrowUp: go(n < across ? n : n - across),
  };
}

export {headKeys, heads, markHead};
