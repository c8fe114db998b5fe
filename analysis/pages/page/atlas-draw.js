// How points come onto the screen: with WebGL (three.js), or on a canvas where there is none or the
// address says drawing=canvas. Both draw what is not lit first, faint; discs are queries, diamonds
// keys. Marks (the chosen point, its strongest keys, the lasso) are drawn on a canvas above.

const LABELLED = 0.02; // weight of a key that is named
const DIM = 0.18,
  FULL = 0.8; // how opaque
const density = () => Math.min(2, devicePixelRatio || 1);

function sizeOf(cloud, isLit) {
  // pixels across
  const {n, lit} = cloud.points,
    base = n > 8000 ? 3.4 : n > 1500 ? 5 : 8;
  return base * Math.min(2.6, Math.max(1, cloud.view.k) ** 0.35) * (lit && isLit ? 1.9 : 1);
}

function drawerFor(box, marks) {
  const canvas = make("canvas", {}, {"aria-hidden": "true"});
  box.insertBefore(canvas, marks);
  const hasWebGL = state.drawing !== "canvas" && make("canvas").getContext("webgl2");
  box.dataset.drawing = hasWebGL ? "WebGL" : "canvas";
  return hasWebGL ? new WebGLDrawer(canvas) : new CanvasDrawer(canvas);
}

const VERTEX = `
attribute vec4 colour; attribute float isKey; attribute float isLit;
uniform vec3 across, up; uniform vec2 middle, scale; uniform float dim, lit;
varying vec4 ink; varying float corner;
void main() {
  gl_Position = vec4((vec2(dot(across, position), dot(up, position)) - middle) * scale, 0.0, 1.0);
  gl_PointSize = isLit > 0.5 ? lit : dim;
  ink = colour; corner = isKey;
}`;
const FRAGMENT = `
varying vec4 ink; varying float corner;
void main() {
  vec2 p = abs(gl_PointCoord - 0.5);
  if (corner > 0.5 ? p.x + p.y > 0.5 : dot(p, p) > 0.25) discard;
  gl_FragColor = ink;
}`;

class WebGLDrawer {
  constructor(canvas) {
    this.canvas = canvas;
    this.renderer = new THREE.WebGLRenderer({
      canvas,
      alpha: true,
      antialias: false,
      premultipliedAlpha: false,
      preserveDrawingBuffer: true, // a print has the picture too
    });
    const uniforms = Object.fromEntries(
      ["across", "up", "middle", "scale", "dim", "lit"].map(name => [name, {value: null}]),
    );
    const shaders = {vertexShader: VERTEX, fragmentShader: FRAGMENT};
    this.material = new THREE.ShaderMaterial({
      ...shaders,
      uniforms,
      transparent: true,
      depthTest: false,
    });
    this.points = new THREE.Points(new THREE.BufferGeometry(), this.material);
    this.points.frustumCulled = false;
    this.scene = new THREE.Scene();
    this.scene.add(this.points);
    this.camera = new THREE.Camera();
  }

  draw(cloud, isNew) {
    const {
        points,
        matrix,
        view,
        scale,
        size: [width, height],
      } = cloud,
      pixels = density(),
      size = [width, height, pixels].join();
    if (size !== this.size) {
      // a new size is a new buffer, also where it is the old one
      this.renderer.setPixelRatio(pixels);
      this.renderer.setSize(width, height, false);
      this.size = size;
    }
    if (isNew) this.fill(points);
    const values = {
      across: matrix.slice(0, 3),
      up: matrix.slice(3),
      middle: [view.x, view.y],
      scale: [(2 * scale) / width, (2 * scale) / height],
      dim: pixels * sizeOf(cloud, false),
      lit: pixels * sizeOf(cloud, true),
    };
    for (const [name, value] of Object.entries(values)) this.material.uniforms[name].value = value;
    this.renderer.render(this.scene, this.camera);
  }

  fill({places, order, split, codes, colours: own, lit}) {
    // buffers in the order of drawing
    const n = order.length,
      buffers = {
        position: new Float32Array(3 * n),
        colour: new Uint8Array(4 * n),
        isKey: new Float32Array(n),
        isLit: new Float32Array(n),
      };
    for (let at = 0; at < n; at++) {
      const i = order[at],
        colour = own[codes[i]];
      for (let axis = 0; axis < 3; axis++) {
        buffers.position[3 * at + axis] = places[3 * i + axis];
        buffers.colour[4 * at + axis] = colour[axis];
      }
      buffers.colour[4 * at + 3] = 255 * (lit && !lit[i] ? DIM : FULL);
      buffers.isKey[at] = i >= split;
      buffers.isLit[at] = lit ? lit[i] : 0;
    }
    this.points.geometry.dispose();
    this.points.geometry = new THREE.BufferGeometry();
    for (const [name, values] of Object.entries(buffers)) {
      const perPoint = {position: 3, colour: 4}[name] ?? 1;
      this.points.geometry.setAttribute(
        name,
        new THREE.BufferAttribute(values, perPoint, name === "colour"),
      );
    }
  }
}

function fitted(canvas, width, height) {
  // a brush whose unit is a pixel of the page
  const pixels = density(),
    brush = canvas.getContext("2d");
  const [wide, high] = [Math.round(width * pixels), Math.round(height * pixels)];
  if (canvas.width !== wide || canvas.height !== high)
    Object.assign(canvas, {width: wide, height: high});
  brush.setTransform(pixels, 0, 0, pixels, 0, 0);
  brush.clearRect(0, 0, width, height);
  return brush;
}

// in which all colours are drawn one after the other: none hides the others, and styles change
// seldom
const TURNS = 8;

class CanvasDrawer {
  constructor(canvas) {
    this.canvas = canvas;
  }

  draw(cloud, isNew) {
    const {
        points,
        size: [width, height],
        view,
        matrix: m,
        scale,
      } = cloud,
      {places, split} = points;
    if (isNew) this.groups = grouped(points);
    const brush = fitted(this.canvas, width, height),
      left = width / 2 - view.x * scale,
      top = height / 2 + view.y * scale;
    for (const {style, isLit, own} of this.groups) {
      const radius = sizeOf(cloud, isLit) / 2,
        isSmall = points.n > 4000 && radius < 4;
      brush.fillStyle = style;
      for (const i of own) {
        const x =
          left +
          scale * (m[0] * places[3 * i] + m[1] * places[3 * i + 1] + m[2] * places[3 * i + 2]);
        const y =
          top -
          scale * (m[3] * places[3 * i] + m[4] * places[3 * i + 1] + m[5] * places[3 * i + 2]);
        if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
        if (isSmall) brush.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
        else spot(brush, x, y, radius, i >= split);
      }
    }
  }
}

function grouped({order, codes, colours: own, lit}) {
  // [{style, isLit, own: points}, ...] in the order of drawing
  const groups = [],
    step = Math.ceil(order.length / TURNS) || 1;
  for (let start = 0; start < order.length; start += step) {
    const part = d3.group(
      order.subarray(start, start + step),
      i => 2 * codes[i] + (lit ? lit[i] : 0),
    );
    for (const [key, points] of d3.sort(part, ([key]) => key % 2)) {
      const style = `rgba(${own[key >> 1].join()}, ${lit && key % 2 === 0 ? DIM : FULL})`;
      groups.push({style, isLit: key % 2, own: points});
    }
  }
  return groups;
}

function spot(brush, x, y, radius, isKey) {
  brush.beginPath();
  if (!isKey) brush.arc(x, y, radius, 0, 7);
  else {
    brush.moveTo(x - radius, y);
    for (const [dx, dy] of [
      [0, -radius],
      [radius, 0],
      [0, radius],
    ])
      brush.lineTo(x + dx, y + dy);
  }
  brush.fill();
}

// marks

function drawMarks(cloud) {
  if (!cloud.points || !cloud.box.clientWidth) return;
  const brush = fitted(cloud.marks, ...cloud.size),
    palette = colours(),
    {run, path, hovered} = cloud;
  const chosen = state.point?.run === run && state.point.i < cloud.points.n ? state.point.i : null;
  if (chosen !== null) {
    for (const [i, weight] of cloud.points.linked ?? [])
      line(cloud, brush, chosen, i, weight, palette.chosen);
    ring(cloud, brush, chosen, palette.chosen, 3);
    label(cloud, brush, chosen, palette);
    for (const [i, weight] of cloud.points.linked ?? [])
      if (weight > LABELLED) label(cloud, brush, i, palette);
  }
  if (hovered !== null && hovered !== undefined) ring(cloud, brush, hovered, palette.text, 2);
  const lasso =
    path ?? (state.lasso?.run === run && isSameTurn(cloud) ? state.lasso.corners : null);
  if (lasso) outline(cloud, brush, lasso, palette.chosen, !path);
}

function isSameTurn(cloud) {
  // a lasso stands where it was drawn: in its projection, as long as the picture was not turned
  const {
    head,
    projection,
    turn: {a, e},
  } = state.lasso;
  return (
    head === state.heads[cloud.run] &&
    projection === projectionOf(cloud.run) &&
    (!cloud.points.isDeep || Math.abs(a - cloud.view.a) + Math.abs(e - cloud.view.e) < 1e-3)
  );
}

function line(cloud, brush, from, to, weight, colour) {
  Object.assign(brush, {
    strokeStyle: colour,
    lineWidth: 1 + 4 * weight,
    globalAlpha: 0.35 + 0.6 * Math.sqrt(weight),
  });
  brush.beginPath();
  brush.moveTo(...cloud.screen(from));
  brush.lineTo(...cloud.screen(to));
  brush.stroke();
  brush.globalAlpha = 1;
}

function ring(cloud, brush, i, colour, lineWidth) {
  Object.assign(brush, {strokeStyle: colour, lineWidth});
  brush.beginPath();
  brush.arc(...cloud.screen(i), 7, 0, 7);
  brush.stroke();
}

function label(cloud, brush, i, palette) {
  const [x, y] = cloud.screen(i),
    text = labelOf(spaceOf(cloud.run), i).slice(0, 24);
  Object.assign(brush, {
    font: "600 12px system-ui, sans-serif",
    strokeStyle: palette.back,
    lineWidth: 4,
    lineJoin: "round",
    fillStyle: palette.text,
    textBaseline: "middle",
  });
  const left = Math.max(2, Math.min(x + 10, cloud.size[0] - brush.measureText(text).width - 4));
  brush.strokeText(text, left, y - 10);
  brush.fillText(text, left, y - 10);
}

function outline(cloud, brush, corners, colour, isClosed) {
  Object.assign(brush, {strokeStyle: colour, lineWidth: 1.5});
  brush.setLineDash([5, 4]);
  brush.beginPath();
  corners.forEach((corner, n) => brush[n ? "lineTo" : "moveTo"](...cloud.pixels(corner)));
  if (isClosed) brush.closePath();
  brush.stroke();
  brush.setLineDash([]);
}

export {drawerFor, drawMarks, fitted, grouped, sizeOf};
