// The film of a training: the snapshot that the slider names, drawn as SVG from the numbers in the
// page.

const data = JSON.parse(document.getElementById("data").textContent);
const steps = data.steps,
  last = steps.length - 1;
const slider = document.getElementById("step"),
  play = document.getElementById("play");
const WIDTH = 340,
  HEIGHT = 190,
  LEFT = 40,
  RIGHT = 18,
  TOP = 18,
  BOTTOM = 30;
const COLOURS = ["blue", "orange", "third"],
  MILLISECONDS = 450;

const at = step => Math.log1p(step) / Math.log1p(steps[last]); // a place of steps, 0 to 1
const x = share => LEFT + share * (WIDTH - LEFT - RIGHT);
const y = share => HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);

function make(name, attributes, text) {
  // an element of an SVG
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function sheet(height = HEIGHT, label = "") {
  // an empty picture
  return make("svg", {viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label});
}

function show(id, svg) {
  // a picture in its figure, in place of the one before
  const figure = document.getElementById(id);
  figure.querySelector("svg")?.remove();
  figure.append(svg);
}

function axes(svg, most, ticks, name, height) {
  // the lower axis with its ticks, the largest value, and the names of both axes
  svg.append(named(`↑ ${height}`));
  svg.append(make("line", {class: "axis", x1: x(0), x2: x(1), y1: y(0), y2: y(0)}));
  svg.append(make("text", {x: LEFT - 4, y: y(1) + 4, "text-anchor": "end"}, most));
  svg.append(make("text", {x: LEFT - 4, y: y(0) + 4, "text-anchor": "end"}, "0"));
  for (const [place, text] of ticks)
    svg.append(make("text", {x: x(place), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle"}, text));
  svg.append(make("text", {x: x(0.5), y: HEIGHT - 3, "text-anchor": "middle"}, name));
}

// what goes upwards, above a picture
const named = name => make("text", {x: LEFT, y: TOP - 2, "font-size": 11}, name);

function line(svg, places, values, most, kind) {
  // a curve
  const points = values.map((value, i) => `${x(places[i])},${y(Math.max(value, 0) / most)}`);
  svg.append(make("polyline", {class: kind, points: points.join(" ")}));
}

function stepTicks() {
  // 0, 1, 10, 100 …
  const ticks = [[0, "0"]];
  for (let step = 1; step <= steps[last]; step *= 10)
    ticks.push([at(step), step.toLocaleString("en")]);
  return ticks;
}

function cursor(svg, i) {
  // where the slider is
  svg.append(
    make("line", {class: "cursor", x1: x(at(steps[i])), x2: x(at(steps[i])), y1: y(0), y2: y(1)}),
  );
}

const nice = value => value.toPrecision(2).replace(/\.0$/, "");
const places = steps.map(at);

function drawLoss(i) {
  const without = data.loss.map((loss, k) => loss + data.gain[k]);
  const most = Math.max(...data.loss, ...without, ...data.loss_null);
  const svg = sheet(
    HEIGHT,
    say`Loss ${nice(data.loss[i])} nats, without positions ${nice(without[i])}`,
  );
  axes(svg, nice(most), stepTicks(), say("steps"), say("nats a token"));
  line(svg, places, data.loss_null, most, "null");
  line(svg, places, without, most, "orange");
  line(svg, places, data.loss, most, "blue");
  cursor(svg, i);
  show("of-loss", svg);
}

function drawHeads(i) {
  // small bars for each head, a row for each layer
  const layers = data.looks[i],
    rows = layers.length,
    heads = layers[0].length;
  const width = WIDTH / heads,
    tall = 74,
    labels = [];
  const svg = sheet(rows * tall + 4);
  layers.forEach((row, layer) =>
    row.forEach((bars, head) => {
      const best = bars.indexOf(Math.max(...bars)),
        step = (width - 10) / bars.length;
      const foot = layer * tall + tall - 14,
        offset = data.offsets[best];
      bars.forEach((value, k) => {
        const height = Math.max(0.5, value * (tall - 32)),
          left = head * width + 5 + k * step;
        svg.append(
          make("rect", {
            class: layer ? "bar other" : "bar",
            x: left,
            y: foot - height,
            width: step * 0.85,
            height,
          }),
        );
      });
      const where = `${offset > 0 ? "+" : ""}${offset}`.replace("-", "−");
      labels.push(`L${layer}H${head} ${where}: ${bars[best].toFixed(2)}`);
      svg.append(
        make(
          "text",
          {x: head * width + 5, y: layer * tall + 12, "font-size": 11},
          `L${layer}H${head}`,
        ),
      );
      svg.append(
        make(
          "text",
          {x: head * width + 5, y: foot + 12, "font-size": 11},
          `${where}: ${bars[best].toFixed(2)}`,
        ),
      );
    }),
  );
  svg.setAttribute("aria-label", say`Offset with most attention: ${labels.join(", ")}`);
  show("of-heads", svg);
}

function drawWaves(i) {
  const rows = data.amplitude[i].slice(1),
    most = Math.max(...data.amplitude.flatMap(row => row.slice(1)));
  const where = rows.map((_, k) => (k + 1) / rows.length),
    tallest = rows.indexOf(Math.max(...rows)) + 1;
  const svg = sheet(HEIGHT, say`Largest amplitude at ${tallest} cycles`);
  axes(
    svg,
    nice(most),
    [
      [where[0], "1"],
      [1, String(rows.length)],
    ],
    say`cycles in ${2 * rows.length} rows`,
    say("amplitude"),
  );
  line(
    svg,
    where,
    rows.map(() => data.swing_null[i]),
    most,
    "null",
  );
  line(svg, where, rows, most, "blue");
  show("of-waves", svg);
}

function drawImage(i) {
  const rows = data.amplitude.map(row => row.slice(1)),
    most = Math.max(...rows.flat());
  const svg = sheet(HEIGHT, say("Amplitude by step and frequency")),
    n = rows[0].length;
  const edges = [0, ...places.slice(1).map((place, k) => (place + places[k]) / 2), 1];
  rows.forEach((row, k) =>
    row.forEach((value, f) =>
      svg.append(
        make("rect", {
          x: x(edges[k]),
          width: Math.max(x(edges[k + 1]) - x(edges[k]), 0.1),
          y: y((f + 1) / n),
          height: y(0) - y(1 / n),
          style: "fill: var(--query); shape-rendering: crispEdges",
          "fill-opacity": (value / most).toFixed(3),
        }),
      ),
    ),
  );
  svg.append(named(say`↑ cycles in ${2 * n} rows`));
  svg.append(make("text", {x: LEFT - 4, y: y(1) + 10, "text-anchor": "end"}, String(n)));
  svg.append(make("text", {x: LEFT - 4, y: y(0), "text-anchor": "end"}, "1"));
  for (const [place, text] of stepTicks())
    svg.append(make("text", {x: x(place), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle"}, text));
  svg.append(make("text", {x: x(0.5), y: HEIGHT - 3, "text-anchor": "middle"}, say("steps")));
  cursor(svg, i);
  show("of-image", svg);
}

function drawStream(i) {
  const layers = data.cca[0].length,
    svg = sheet(HEIGHT, say`Correlation ${data.cca[i].map(nice).join(", ")}`);
  axes(svg, "1", stepTicks(), say("steps"), say("correlation"));
  line(
    svg,
    places,
    data.cca_null.map(row => row[row.length - 1]),
    1,
    "null",
  );
  for (let layer = 0; layer < layers; layer++) {
    const values = data.cca.map(row => row[layer]),
      name = say(layer < layers - 1 ? `before layer ${layer}` : "output");
    const colour = COLOURS[layer % COLOURS.length],
      foot = y(0) - 6 - 14 * (layers - 1 - layer);
    line(svg, places, values, 1, colour);
    svg.append(
      make("line", {class: colour, x1: LEFT + 4, x2: LEFT + 18, y1: foot - 4, y2: foot - 4}),
    );
    svg.append(
      make("text", {x: LEFT + 23, y: foot, "font-size": 11}, `${name}: ${values[i].toFixed(2)}`),
    );
  }
  cursor(svg, i);
  show("of-stream", svg);
}

const hasTable = "amplitude" in data;
for (const id of ["of-waves", "of-image", "of-stream"])
  document.getElementById(id).hidden = !hasTable;

const without = i => (data.loss[i] + data.gain[i]).toFixed(3); // the loss

function draw() {
  const i = Number(slider.value),
    step = steps[i].toLocaleString("en");
  document.getElementById("now").textContent =
    say`after ${step} steps: loss ${data.loss[i].toFixed(3)}, without positions ${without(i)}; sharpest head ${data.sharp[i].toFixed(2)}`;
  slider.setAttribute("aria-valuetext", say`after ${step} steps`);
  drawLoss(i);
  drawHeads(i);
  if (hasTable) [drawWaves, drawImage, drawStream].forEach(paint => paint(i));
}

let timer = null;
function stop() {
  clearInterval(timer);
  timer = null;
  play.textContent = say("Play");
  play.setAttribute("aria-pressed", "false");
}

play.addEventListener("click", () => {
  if (timer !== null) return stop();
  if (Number(slider.value) === last) slider.value = 0;
  play.textContent = say("Stop");
  play.setAttribute("aria-pressed", "true");
  draw();
  timer = setInterval(() => {
    slider.value = Number(slider.value) + 1;
    draw();
    if (Number(slider.value) === last) stop();
  }, MILLISECONDS);
});
slider.max = last;
slider.addEventListener("input", () => {
  stop();
  draw();
  history.replaceState(null, "", `#step=${steps[slider.value]}`);
});

function follow() {
  // the snapshot that the address names, or the last one before it
  const step = /^#step=(\d+)$/.exec(location.hash);
  if (step) slider.value = steps.findLastIndex(each => each <= +step[1]);
  draw();
}

addEventListener("hashchange", follow);
follow();
