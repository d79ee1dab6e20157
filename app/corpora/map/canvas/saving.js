// Saves the current view of a map with its legend as PNG or SVG.

const LEGEND_ROW = 22;

// Legend entries of a saved map: visible categories, contours, the difference of two layers.
function legendOf(painter) {
  const { categories, lines, difference } = painter.data;
  const shown = categories.filter((_, each) => !painter.hidden.has(each));
  return [
    ...shown.map(({ name, colour }) => ({ name, colour, tall: 10 })),
    ...lines.map(({ name, colour }) => ({ name, colour, tall: 2 })),
    ...denserIn(difference).map(({ name, colour }) => ({ name, colour, tall: 10 })),
  ];
}

// What the colours of a difference mean that are on the map; a kept share has both.
function denserIn(difference) {
  if (!difference) return [];
  const { layers, colours, clear, shares } = difference;
  return layers
    .map((name, each) => ({ name, colour: colours[each] }))
    .filter((_, each) => clear[each] || shares);
}

function savePng(painter, labels, view, width, height, [ground, ink]) {
  const ratio = 2;
  const names = legendOf(painter);
  const canvas = make("canvas");
  canvas.width = width * ratio;
  canvas.height = (height + LEGEND_ROW * names.length + 10) * ratio;
  const context = canvas.getContext("2d");
  context.fillStyle = ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(painter.picture(view, width, height, ratio), 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawNames(context, labels, view, width, height, [ground, ink]);
  [context.textAlign, context.textBaseline] = ["start", "alphabetic"];
  context.font = "13px sans-serif";
  names.forEach(({ name, colour, tall }, place) => {
    const y = height + 20 + LEGEND_ROW * place;
    context.fillStyle = colour;
    context.fillRect(12, y - 4 - tall / 2, 14, tall);
    context.fillStyle = ink;
    context.fillText(name, 34, y);
  });
  canvas.toBlob((blob) => saveAs(blob, "png"), "image/png");
}

function saveSvg(painter, labels, view, width, height, [ground, ink]) {
  const names = legendOf(painter);
  const tallest = height + LEGEND_ROW * names.length + 10;
  const escape = (text) => text.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
  const at = (point) =>
    painter.onScreen(point, view, width, height).map((side) => side.toFixed(2));
  const path = (pieces) =>
    pieces.map(([from, to]) => `M${at(from).join(" ")}L${at(to).join(" ")}`).join("");
  const lines = painter.lines().map(
    ([{ colour }, pieces]) =>
      `<path d="${path(pieces)}" stroke="${colour}" fill="none" stroke-width="1.4"/>`,
  );
  const legend = names.map(({ name, colour, tall }, place) => {
    const y = height + 20 + LEGEND_ROW * place;
    return (
      `<rect x="12" y="${y - 4 - tall / 2}" width="14" height="${tall}" fill="${colour}"/>` +
      `<text x="34" y="${y}" font-family="sans-serif" font-size="13" fill="${escape(ink)}">` +
      `${escape(name)}</text>`
    );
  });
  const whole =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${tallest}">` +
    `<rect width="100%" height="100%" fill="${escape(ground)}"/>` +
    `<svg x="0" y="0" width="${width}" height="${height}">` +
    `${svgPoints(painter, view, width, height, at)}${lines.join("")}` +
    `${svgNames(labels, view, width, height, [ground, ink], escape)}</svg>` +
    `${legend.join("")}</svg>`;
  saveAs(new Blob([whole], { type: "image/svg+xml" }), "svg");
}

function svgNames(labels, view, width, height, inks, escape) {
  const context = make("canvas").getContext("2d");
  const written = drawNames(context, labels, view, width, height, inks);
  const texts = written.map(
    ({ name, left, right, top, bottom }) =>
      `<text x="${(left + right) / 2}" y="${(top + bottom) / 2}">${escape(name)}</text>`,
  );
  return (
    `<g font-family="sans-serif" font-weight="600" font-size="12.5" text-anchor="middle" ` +
    `dominant-baseline="central" fill="${escape(inks[1])}" stroke="${escape(inks[0])}" ` +
    `stroke-width="5" paint-order="stroke">${texts.join("")}</g>`
  );
}

// Few points as vector discs, many (or lit ones, or layers) as an embedded raster image.
function svgPoints(painter, view, width, height, at) {
  const rows = Array.from(painter.inside(view, width, height));
  if (rows.length > DISCS || painter.veil || painter.lit.length) {
    const pixels = painter.picture(view, width, height, 2).toDataURL();
    return `<image width="${width}" height="${height}" href="${pixels}"/>`;
  }
  const { x, y, category, categories } = painter.data;
  const discs = rows.map((row) => {
    const [cx, cy] = at([x[row], y[row]]);
    const colour = categories[category[row]].colour;
    return `<circle cx="${cx}" cy="${cy}" r="${painter.radius(rows.length)}" fill="${colour}"/>`;
  });
  return `<g fill-opacity="0.75">${discs.join("")}</g>`;
}

function saveAs(blob, kind) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = `coverage-map.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

