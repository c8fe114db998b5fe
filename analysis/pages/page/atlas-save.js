// The large picture as a file: an SVG of what is seen, under the name of the head and above what
// colours mean; as PNG the same, drawn twice as fine.

const HEAD = 30,
  FOOT = 24; // pixels above and below the points

function asSVG(cloud, title, legend) {
  // discs and diamonds of one colour are one path; marks are those of the page
  const [width, height] = cloud.size,
    palette = colours(),
    write = (text, attributes) => `<text ${attributes}>${text}</text>`;
  const dots = grouped(cloud.points).map(({style, isLit, own}) => {
    const radius = sizeOf(cloud, isLit) / 2,
      shapes = own.map(i => dot(cloud.screen(i), radius, i >= cloud.points.split));
    return `<path fill="${style}" d="${shapes.join("")}"/>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + HEAD + FOOT}" font-family="system-ui, sans-serif" font-size="13">`,
    `<rect width="100%" height="100%" fill="${palette.card}"/>`,
    write(quotedIn(title), `x="6" y="20" font-weight="600" fill="${palette.text}"`),
    `<svg y="${HEAD}" width="${width}" height="${height}">`,
    `<rect width="100%" height="100%" fill="${palette.back}"/>`,
    ...dots,
    `<image width="${width}" height="${height}" href="${cloud.marks.toDataURL()}"/></svg>`,
    write(inColours(legend), `x="6" y="${height + HEAD + 17}" fill="${palette.soft}"`),
    "</svg>",
  ].join("\n");
}

function inColours(legend) {
  // a square of each colour, or of nine of a scale, beside the words
  const squares = ({style}) => style.background.match(/rgb\([^)]*\)/g),
    parts = [...legend.querySelectorAll("i, span:not(:has(*))")].map(part =>
      part.matches("span")
        ? quotedIn(part.textContent)
        : squares(part)
            .map(colour => `<tspan fill="${colour}">■</tspan>`)
            .join(""),
    );
  return parts.join(" ");
}

const quotedIn = text => text.replace(/[&<>"]/g, sign => `&#${sign.charCodeAt(0)};`);

function dot([x, y], r, isKey) {
  const at = `M${(x - r).toFixed(1)} ${y.toFixed(1)}`,
    [one, two] = [r.toFixed(1), (2 * r).toFixed(1)];
  return isKey
    ? `${at}l${one}-${one} ${one} ${one}-${one} ${one}z`
    : `${at}a${one} ${one} 0 1 0 ${two} 0a${one} ${one} 0 1 0-${two} 0`;
}

async function saveAs(kind, cloud, name, title, legend) {
  const text = asSVG(cloud, title, legend);
  let blob = new Blob([text], {type: "image/svg+xml"});
  if (kind === "png") {
    const picture = new Image();
    picture.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await picture.decode();
    const canvas = make("canvas", {width: 2 * picture.width, height: 2 * picture.height});
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    blob = await new Promise(done => canvas.toBlob(done));
  }
  const href = URL.createObjectURL(blob);
  make("a", {href, download: `${name}.${kind}`}).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

export {saveAs};
