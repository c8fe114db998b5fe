// One head's points, large: where they stand on the screen, and pan, turn, zoom, lasso, hover and
// choice by mouse, touch and keys. Drawing is in atlas-draw.js. x and y of the points are -1 to 1;
// u and v are x and y after the turn.

const NEAR = 14; // pixels within which a point is meant
const ZOOM = [0.5, 60];
const turned = (p, i, m) => [
  m[0] * p[i] + m[1] * p[i + 1] + m[2] * p[i + 2],
  m[3] * p[i] + m[4] * p[i + 1] + m[5] * p[i + 2],
];
const FLAT = [1, 0, 0, 0, 1, 0];

function turn({a, e}) {
  // by a about the upright axis, then by e towards the eye: rows of u and of v
  const [ca, sa, ce, se] = [Math.cos(a), Math.sin(a), Math.cos(e), Math.sin(e)];
  return [ca, 0, sa, sa * se, ce, -ca * se];
}

function inside({corners, turn: angles}, places, n, isDeep, [from, to]) {
  // [n] 1 for the points that a lasso encloses
  const lit = new Uint8Array(n),
    matrix = isDeep ? turn(angles) : FLAT;
  const [[left, right], [low, high]] = [0, 1].map(axis =>
    d3.extent(corners, corner => corner[axis]),
  );
  for (let i = from; i < to; i++) {
    const [u, v] = turned(places, 3 * i, matrix);
    if (u >= left && u <= right && v >= low && v <= high && d3.polygonContains(corners, [u, v]))
      lit[i] = 1;
  }
  return lit;
}

class Cloud {
  constructor(run) {
    Object.assign(this, {
      run,
      points: null,
      hovered: null,
      isLassoing: false,
      path: null,
      pointers: new Map(),
    });
    this.box = make("div", {className: "cloud", tabIndex: 0}, {role: "application"});
    this.marks = make("canvas", {}, {"aria-hidden": "true"});
    this.tip = make("div", {className: "tip", hidden: true}, {"aria-hidden": "true"});
    this.box.append(this.marks, this.tip);
    this.drawer = null;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  get view() {
    return state.views[this.run];
  }
  get matrix() {
    return this.points?.isDeep ? turn(this.view) : FLAT;
  }
  get size() {
    return [this.box.clientWidth, this.box.clientHeight];
  }
  get scale() {
    return (this.points?.isDeep ? 0.38 : 0.47) * Math.min(...this.size) * this.view.k;
  }

  show(points) {
    // {places: [3 n], n, split: number of queries, isDeep, order, split of order, codes, colours,
    // lit}
    this.points = points;
    this.isNew = true;
    this.draw();
  }

  draw() {
    // soon, and once for many changes
    if (this.waits) return;
    this.waits = requestAnimationFrame(() => {
      this.waits = 0;
      if (this.points && this.box.clientWidth) this.drawNow();
    });
  }

  drawNow() {
    this.drawer ??= drawerFor(this.box, this.marks);
    this.drawer.draw(this, this.isNew);
    this.isNew = false;
    drawMarks(this);
    this.frames = (this.frames ?? 0) + 1;
  }

  screen(i) {
    // a point -> pixels
    const [u, v] = turned(this.points.places, 3 * i, this.matrix);
    return this.pixels([u, v]);
  }

  pixels([u, v]) {
    const [width, height] = this.size,
      {x, y} = this.view;
    return [width / 2 + (u - x) * this.scale, height / 2 - (v - y) * this.scale];
  }

  plane([left, top]) {
    // pixels -> u, v
    const [width, height] = this.size,
      {x, y} = this.view;
    return [x + (left - width / 2) / this.scale, y - (top - height / 2) / this.scale];
  }

  nearest(pixel) {
    // the point that is meant, a lit one before others; null where there is none
    if (!this.points) return null;
    const {places, order, lit} = this.points,
      m = this.matrix,
      [u, v] = this.plane(pixel);
    let best = null,
      least = (NEAR / this.scale) ** 2;
    for (const i of order) {
      const [x, y] = turned(places, 3 * i, m),
        far = ((x - u) ** 2 + (y - v) ** 2) * (lit && !lit[i] ? 9 : 1);
      if (far < least) [best, least] = [i, far];
    }
    return best;
  }

  // mouse, touch and keys

  listen() {
    const {box} = this,
      at = event => {
        const {left, top} = box.getBoundingClientRect();
        return [event.clientX - left - box.clientLeft, event.clientY - top - box.clientTop];
      };
    box.addEventListener("pointerdown", event => this.down(event, at(event)));
    box.addEventListener("pointermove", event => this.move(event, at(event)));
    for (const name of ["pointerup", "pointercancel"])
      box.addEventListener(name, event => this.up(event, at(event)));
    box.addEventListener("pointerleave", () => this.hover(null));
    box.addEventListener("dblclick", () => this.home());
    box.addEventListener(
      "wheel",
      event => {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), at(event));
      },
      {passive: false},
    );
    box.addEventListener("keydown", event => this.key(event));
  }

  down(event, pixel) {
    if (event.button > 0) return;
    this.box.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, pixel);
    this.start = pixel;
    this.moved = this.pointers.size > 1;
    if ((this.isLassoing || event.shiftKey) && this.pointers.size === 1)
      this.path = [this.plane(pixel)];
    this.hover(null);
  }

  move(event, pixel) {
    if (!this.pointers.has(event.pointerId))
      return this.hover(event.pointerType === "touch" ? null : this.nearest(pixel));
    const before = this.pointers.get(event.pointerId);
    if (Math.hypot(pixel[0] - this.start[0], pixel[1] - this.start[1]) > 4) this.moved = true;
    this.pointers.set(event.pointerId, pixel);
    if (this.pointers.size === 2) return this.pinch(event.pointerId, before, pixel);
    if (!this.moved) return;
    if (this.path) {
      this.path.push(this.plane(pixel));
      return this.draw();
    }
    this.box.classList.add("dragging");
    const [dx, dy] = [pixel[0] - before[0], pixel[1] - before[1]];
    if (this.points?.isDeep) this.turnBy(dx / 160, dy / 160);
    else this.pan(-dx / this.scale, dy / this.scale);
  }

  pinch(id, before, after) {
    const [other] = [...this.pointers].filter(([own]) => own !== id).map(([, pixel]) => pixel);
    const far = ([x, y]) => Math.hypot(x - other[0], y - other[1]);
    this.zoom(far(after) / Math.max(far(before), 1), other);
  }

  up(event, pixel) {
    if (!this.pointers.delete(event.pointerId)) return;
    this.box.classList.remove("dragging");
    const path = this.path;
    this.path = null;
    if (event.type === "pointercancel") return this.draw();
    if (path && this.moved) return this.close(path);
    if (this.moved) return;
    const i = this.nearest(pixel);
    set({point: i === null ? null : {run: this.run, i}});
  }

  close(path) {
    // the lasso, with corners enough to see its shape, and few enough for an address
    const step = Math.max(1, Math.ceil(path.length / 40)),
      corners = path.filter((_, n) => n % step === 0);
    const {a, e} = this.view;
    set({
      lasso:
        corners.length > 2
          ? {
              run: this.run,
              head: state.heads[this.run],
              projection: projectionOf(this.run),
              corners,
              turn: {a, e},
            }
          : null,
      search: "",
    });
  }

  zoom(by, pixel = this.size.map(x => x / 2)) {
    // what is at a pixel stays there
    const {view} = this,
      [u, v] = this.plane(pixel);
    view.k = Math.max(ZOOM[0], Math.min(ZOOM[1], view.k * by));
    const [u2, v2] = this.plane(pixel);
    this.pan(u - u2, v - v2);
  }

  pan(du, dv) {
    this.view.x = Math.max(-3, Math.min(3, this.view.x + du));
    this.view.y = Math.max(-3, Math.min(3, this.view.y + dv));
    this.changed();
  }

  turnBy(da, de) {
    this.view.a = (this.view.a + da) % (2 * Math.PI);
    this.view.e = Math.max(-1.57, Math.min(1.57, this.view.e + de));
    this.changed();
  }

  home() {
    Object.assign(this.view, HOME);
    this.changed();
  }

  changed() {
    this.draw();
    keepAddress();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 40 / this.scale,
      isDeep = this.points?.isDeep;
    const go = (x, y) => () =>
      isDeep ? this.turnBy(x * 0.12, -y * 0.12) : this.pan(x * step, y * step);
    const does = {
      ArrowLeft: go(-1, 0),
      ArrowRight: go(1, 0),
      ArrowUp: go(0, 1),
      ArrowDown: go(0, -1),
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      0: () => this.home(),
      Escape: () => set({point: null, lasso: null}),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  hover(i) {
    if (this.hovered === i) return;
    this.hovered = i;
    this.tip.hidden = i === null;
    if (i !== null) this.placeTip(i);
    drawMarks(this);
  }

  placeTip(i) {
    const [x, y] = this.screen(i),
      [width, height] = this.size,
      {tip} = this;
    tip.replaceChildren(
      aboutPoint(this.run, i),
      ...(spaceOf(this.run).pictures ? [thumbOf(this.run, i)] : []),
    );
    tip.style.left = `${Math.max(2, Math.min(x + 12, width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(2, y + 14 + tip.offsetHeight > height ? y - tip.offsetHeight - 10 : y + 14)}px`;
  }
}

const TIP = 84; // pixels of a picture in a hover text

function thumbOf(run, i) {
  // the picture of a patch, the patch outlined
  const space = spaceOf(run),
    {rows, columns, width, height} = space.pictures,
    by = TIP / Math.max(width, height);
  const canvas = make("canvas", {className: "shown"}),
    [w, h] = [width * by, height * by];
  Object.assign(canvas.style, {width: `${w}px`, height: `${h}px`});
  const brush = fitted(canvas, w, h),
    {row, column} = placeOf(space, positionOf(space, i));
  pixelsOf(run, sentenceOf(space, i)).then(picture => {
    brush.imageSmoothingEnabled = false;
    brush.drawImage(picture, 0, 0, w, h);
    for (const [strokeStyle, lineWidth] of [
      ["#000", 4],
      ["#fff", 2],
    ]) {
      Object.assign(brush, {strokeStyle, lineWidth});
      brush.strokeRect((column * w) / columns, (row * h) / rows, w / columns, h / rows);
    }
  });
  return canvas;
}

const TITLE = 90; // letters of a sentence in a hover text
function aboutPoint(run, i) {
  // token, side, place, and the sentence
  const space = spaceOf(run),
    table = tableOf(space, i),
    row = rowOf(space, i),
    sentence = table.sentence[row];
  const title = page.runs[run].titles[sentence] ?? "",
    short = title.length > TITLE ? `${title.slice(0, TITLE - 1)}…` : title;
  const side = isQuery(space, i) ? say("query") : say("key"),
    position = table.position[row],
    place = placeOf(space, position);
  if (place)
    return say`${side} of the patch in row ${place.row}, column ${place.column}\npicture ${sentence}: ${short}`;
  return say`“${labelOf(space, i)}” ${side}, position ${position} of ${table.length[row]}, ${
    table.types[table.type[row]]
  }\nsentence ${sentence}: ${short}`;
}

export {Cloud, inside};
