// What the views share: a plot in the page's style, hover text, a legend inside a figure.

function plot(options) {
  return Plot.plot({
    style: {
      background: "transparent",
      color: colours().text,
      fontSize: "11px",
      overflow: "visible",
    },
    color: {type: "identity"},
    opacity: {type: "identity"},
    ...options,
  });
}

// pixels from the upper left, without axes
const pixels = (width, height) => ({
  width,
  height,
  margin: 0,
  x: {domain: [0, width], axis: null},
  y: {domain: [height, 0], axis: null},
});

const tip = title => ({
  title,
  fill: colours().back,
  stroke: colours().line,
  fontSize: 12,
  lineHeight: 1.3,
});
function keepTipInside(box) {
  // a hover text that would be cut off at an edge of what is seen of a view is moved
  const move = () => {
    for (const path of box.querySelectorAll("[aria-label=tip] path")) {
      const {style} = path.closest("[aria-label=tip]");
      style.translate = "none";
      const tip = path.getBoundingClientRect(),
        seen = box.getBoundingClientRect();
      if (!tip.width) continue;
      const by = (least, most, start, end) => Math.max(start - least, Math.min(0, end - most));
      style.translate = `${by(tip.left, tip.right, seen.left, seen.left + box.clientWidth)}px ${by(
        tip.top,
        tip.bottom,
        seen.top,
        seen.top + box.clientHeight,
      )}px`;
    }
  };
  // a finger that taps does not move
  for (const event of ["pointermove", "click"]) box.addEventListener(event, () => later(move));
}

function borders({x, y, ...more}) {
  // lines before the second text's first key, and first query, of a pair
  const stroke = {stroke: colours().soft, strokeDasharray: "4,3", className: "border", ...more};
  return [
    x >= 0 ? Plot.ruleX([x - 0.5], stroke) : null,
    y >= 0 ? Plot.ruleY([y - 0.5], stroke) : null,
  ];
}

const thickness = d => 0.6 + 4 * Math.min(1, size(d.w));
const opacity = d =>
  state.token === null ? 0.2 + 0.6 * Math.min(1, size(d.w)) : 0.45 + 0.55 * Math.min(1, size(d.w));

function ink(d) {
  // the colour of a line: in a difference, whether the second run has more or less
  if (isDifference()) return d.w > 0 ? colours().more : colours().less;
  return state.token === null ? colours().soft : colours().chosen;
}

function keyed(entries, frameAnchor, dy) {
  // a legend inside a figure: words side by side behind coloured signs, or coloured words
  const step = frameAnchor.endsWith("right") ? -1 : 1;
  let dx = 0;
  return entries.flatMap(([text, fill]) => {
    const where = {frameAnchor, dx, dy, textAnchor: step < 0 ? "end" : "start", fontWeight: 600};
    // letters of Japanese are twice as wide
    dx += step * (6.6 * (text.length + (text.match(/[\u3000-\u9fff]/g)?.length ?? 0)) + 14);
    if (step < 0) return Plot.text([text], {...where, fill});
    return [
      Plot.text([text], {...where, fill: colours().text}),
      Plot.text([text[0]], {...where, fill}),
    ];
  });
}

const sides = dy =>
  keyed(
    [
      [say("◆ key"), colours().key],
      [say("● query"), colours().query],
    ],
    "top-right",
    dy,
  );

function pair(draw) {
  // of two runs the same picture of both, one below the other, each under its name
  if (!isPair()) return [draw()].flat();
  return page.runs.flatMap((run, n) =>
    [make("p", {className: "run", textContent: say(run.name)}), within(n, draw)].flat(),
  );
}

// scrolling reads sizes, which lays the page out: once, after all is drawn
const later = scroll => requestAnimationFrame(scroll);

function rowNames(rows, text) {
  // left of a picture of so many rows, in sight however far it is scrolled
  const {card: stroke, text: fill} = colours(),
    where = {x: -0.5, y: d => d, dx: -6, textAnchor: "end"};
  return Plot.text(d3.range(rows), {
    ...where,
    text,
    fill,
    stroke,
    strokeWidth: 6,
    className: "rows",
  });
}

const tellScrolled = ({target}) =>
  target.style?.setProperty("--scrolled", `${target.scrollLeft}px`);
document.addEventListener("scroll", tellScrolled, true); // of any box

function showColumn(box) {
  // the column of the chosen token, scrolled into sight
  const drawn = box.lastChild?.scale ? box.lastChild : null,
    n = chosenColumn();
  if (!drawn || n < 0) return;
  const x = drawn.scale("x").apply(n);
  later(() => {
    if (x < box.scrollLeft || x > box.scrollLeft + box.clientWidth)
      box.scrollLeft = x - box.clientWidth / 2;
  });
}

const chosenColumn = () => made.labels.findIndex((_, n) => isChosenToken(n));

function showRow(box) {
  // the selected row of a table, else that of the guess which is shown
  const row = box.querySelector("tr[aria-selected=true]") ?? box.querySelector("tr.shown");
  if (!row) return;
  later(() => {
    const y = row.offsetTop;
    if (y < box.scrollTop || y + 3 * row.offsetHeight > box.scrollTop + box.clientHeight)
      box.scrollTop = y - box.clientHeight / 2;
  });
}

// what a view cannot show at once
const tooMany = says =>
  make("p", {
    className: "fact beyond",
    textContent: say`${says}: scroll, or choose the larger view.`,
  });

// black or white, whichever is read better on a colour: 4.5 to 1 at the least
const onto = colour => (d3.lab(colour).l > 49.5 ? "#000000" : "#ffffff");

function legend(width, label, color, ticks, tickFormat) {
  // which shade is how much
  return Plot.legend({
    width: Math.min(width, 250),
    marginLeft: 22,
    marginRight: 22,
    height: 44,
    label,
    tickFormat,
    ticks,
    color,
    style: {color: colours().text, fontSize: "11px"},
  });
}

function image(width, height, colour) {
  // a picture of so many pixels as a data URL; colour(x, y) -> a colour, or null
  const canvas = Object.assign(document.createElement("canvas"), {width, height}),
    brush = canvas.getContext("2d");
  const pixels = brush.createImageData(width, height),
    words = new Uint32Array(pixels.data.buffer);
  for (let y = 0, n = 0; y < height; y++)
    for (let x = 0; x < width; x++, n++) words[n] = colour(x, y);
  brush.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

function inWords(shade, least = 0) {
  // least ... 1 -> the colour as one number, red in the lowest byte
  const table = d3.range(512).map(n => {
    const c = d3.rgb(shade(least + ((1 - least) * n) / 511));
    return ((255 << 24) | (Math.round(c.b) << 16) | (Math.round(c.g) << 8) | Math.round(c.r)) >>> 0;
  });
  return x => table[Math.max(0, Math.min(511, Math.round(((x - least) / (1 - least)) * 511)))];
}

export {
  borders,
  image,
  ink,
  inWords,
  keepTipInside,
  keyed,
  later,
  legend,
  onto,
  opacity,
  pair,
  pixels,
  plot,
  rowNames,
  showColumn,
  showRow,
  sides,
  thickness,
  tip,
  tooMany,
};
