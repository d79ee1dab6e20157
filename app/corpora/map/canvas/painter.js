// Paints points and contours of a map into a canvas: few points as discs, many as pixels with the
// mean colour of their points. Lit points stand out: the others are dimmed.

const DISCS = 4000; // up to this many points are drawn as discs; more are drawn as shared pixels
const DIMMED = 0.22;
const VEIL = 0.5; // opacity of the difference of two layers where it is largest
const NOTHING = new Uint32Array(0);

class Painter {
  constructor(data, hidden) {
    this.data = data;
    this.hidden = hidden; // indices of hidden categories
    this.colours = data.categories.map((each) => rgb(each.colour));
    this.lit = NOTHING; // rows, ascending
    this.veil = data.difference && veilOf(data);
  }

  // Paint the points in `view`; `ratio` is device pixels per CSS pixel.
  picture(view, width, height, ratio) {
    const canvas = this.pointsOf(this.inside(view, width, height), view, width, height, ratio);
    if (!this.veil && !this.lit.length) {
      this.drawLines(canvas.getContext("2d"), view, width, height, ratio);
      return canvas;
    }
    const whole = make("canvas");
    [whole.width, whole.height] = [canvas.width, canvas.height];
    const context = whole.getContext("2d");
    if (this.veil) this.drawVeil(context, view, width, height, ratio);
    context.globalAlpha = this.lit.length ? DIMMED : 1;
    context.drawImage(canvas, 0, 0);
    context.globalAlpha = 1;
    if (this.lit.length) {
      const lit = this.litInside(view, width, height);
      context.drawImage(this.pointsOf(lit, view, width, height, ratio, 1), 0, 0);
    }
    this.drawLines(context, view, width, height, ratio);
    return whole;
  }

  // A canvas with these rows.
  pointsOf(rows, view, width, height, ratio, opacity = 0.75) {
    const canvas = make("canvas");
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.globalAlpha = opacity;
    if (rows.length <= DISCS) this.drawDiscs(context, rows, view, width, height, ratio);
    else this.drawPixels(context, rows, view, width, height, ratio);
    return canvas;
  }

  drawVeil(context, view, width, height, ratio) {
    const { x, y } = this.data.difference;
    const [left, top] = this.onScreen([x[0], y[1]], view, width, height);
    const [right, bottom] = this.onScreen([x[1], y[0]], view, width, height);
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    const [wide, high] = [right - left, bottom - top];
    context.drawImage(this.veil, left * ratio, top * ratio, wide * ratio, high * ratio);
  }

  // The lit rows in view whose category is shown.
  litInside(view, width, height) {
    const { x, y, category } = this.data;
    const [dx, dy] = [width / 2 / view.scale, height / 2 / view.scale];
    return this.lit.filter(
      (row) =>
        !this.hidden.has(category[row]) &&
        Math.abs(x[row] - view.x) <= dx &&
        Math.abs(y[row] - view.y) <= dy,
    );
  }

  // The rows in view, in a buffer that the next call overwrites.
  inside(view, width, height) {
    const { x, y, category, points } = this.data;
    const [dx, dy] = [width / 2 / view.scale, height / 2 / view.scale];
    const [x0, x1, y0, y1] = [view.x - dx, view.x + dx, view.y - dy, view.y + dy];
    const shown = this.data.categories.map((_, each) => !this.hidden.has(each));
    if (!this.found || this.found.length < points) this.found = new Uint32Array(points);
    let count = 0;
    for (let row = 0; row < points; row += 1) {
      if (x[row] >= x0 && x[row] <= x1 && y[row] >= y0 && y[row] <= y1 && shown[category[row]]) {
        this.found[count] = row;
        count += 1;
      }
    }
    return this.found.subarray(0, count);
  }

  // Draw in strides coprime to the count, so that no category covers all others.
  *interleaved(rows) {
    const step = 7919;
    const count = rows.length;
    for (let turn = 0; turn < count; turn += 1) yield rows[(turn * step) % count];
  }

  radius(count) {
    return count > 1000 ? 2.2 : count > 200 ? 3 : 4.5;
  }

  drawDiscs(context, rows, view, width, height, ratio) {
    const { x, y, category } = this.data;
    const radius = this.radius(rows.length) * ratio;
    const order = rows.length % 7919 ? this.interleaved(rows) : rows;
    for (const row of order) {
      context.fillStyle = this.data.categories[category[row]].colour;
      context.beginPath();
      context.arc(
        ((x[row] - view.x) * view.scale + width / 2) * ratio,
        ((view.y - y[row]) * view.scale + height / 2) * ratio,
        radius,
        0,
        2 * Math.PI,
      );
      context.fill();
    }
  }

  drawPixels(context, rows, view, width, height, ratio) {
    const { x, y, category } = this.data;
    const [wide, high] = [context.canvas.width, context.canvas.height];
    const total = wide * high;
    if (!this.sums || this.sums.length !== 4 * total) this.sums = new Float32Array(4 * total);
    else this.sums.fill(0);
    const sums = this.sums;
    const dot = Math.max(1, Math.round((rows.length > 60000 ? 1 : 2) * ratio));
    const scale = view.scale * ratio;
    const [left, top] = [(width * ratio) / 2, (height * ratio) / 2];
    let most = 1;
    for (const row of rows) {
      const px = Math.floor((x[row] - view.x) * scale + left);
      const py = Math.floor((view.y - y[row]) * scale + top);
      const colour = this.colours[category[row]];
      for (let v = py; v < py + dot; v += 1) {
        if (v < 0 || v >= high) continue;
        for (let u = px; u < px + dot; u += 1) {
          if (u < 0 || u >= wide) continue;
          const at = 4 * (v * wide + u);
          sums[at] += colour[0];
          sums[at + 1] += colour[1];
          sums[at + 2] += colour[2];
          sums[at + 3] += 1;
          if (sums[at + 3] > most) most = sums[at + 3];
        }
      }
    }
    const image = context.createImageData(wide, high);
    const into = image.data;
    const steepness = 0.6 / Math.log1p(most);
    for (let at = 0; at < into.length; at += 4) {
      const count = sums[at + 3];
      if (count === 0) continue;
      into[at] = sums[at] / count;
      into[at + 1] = sums[at + 1] / count;
      into[at + 2] = sums[at + 2] / count;
      into[at + 3] = 255 * Math.min(1, 0.45 + steepness * Math.log1p(count));
    }
    context.putImageData(image, 0, 0);
  }

  // Each contour with its segments.
  lines() {
    const { lines, pieces } = this.data;
    let piece = 0;
    return lines.map((line) => {
      const found = [];
      for (const last = piece + line.pieces; piece < last; piece += 1) {
        const [x0, y0, x1, y1] = pieces.subarray(4 * piece, 4 * piece + 4);
        found.push([[x0, y0], [x1, y1]]);
      }
      return [line, found];
    });
  }

  drawLines(context, view, width, height, ratio) {
    context.lineWidth = 1.4 * ratio;
    const at = (point) => this.onScreen(point, view, width, height).map((side) => side * ratio);
    for (const [line, pieces] of this.lines()) {
      context.strokeStyle = line.colour;
      context.beginPath();
      for (const [from, to] of pieces) {
        context.moveTo(...at(from));
        context.lineTo(...at(to));
      }
      context.stroke();
    }
  }

  // The pixel position of a map point.
  onScreen([x, y], view, width, height) {
    return [(x - view.x) * view.scale + width / 2, (view.y - y) * view.scale + height / 2];
  }
}

function rgb(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

// The difference of two layers, or the kept share as heat from the lowest to the highest, as a
// picture of one pixel per cell, upper row first.
function veilOf({ difference, cells }) {
  const side = difference.cells;
  const colours = difference.colours.map(rgb);
  const canvas = make("canvas");
  [canvas.width, canvas.height] = [side, side];
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  cells.forEach((value, cell) => {
    const [column, row] = [Math.floor(cell / side), side - 1 - (cell % side)];
    const at = 4 * (row * side + column);
    if (Number.isNaN(value)) return;
    const [low, , high] = difference.shares ?? [];
    const part = difference.shares ? (value - low) / (high - low || 1) : Number(value > 0);
    image.data.set(colours[1].map((side, each) => side + part * (colours[0][each] - side)), at);
    image.data[at + 3] = 255 * VEIL * (difference.shares ? 1 : Math.sqrt(Math.abs(value)));
  });
  context.putImageData(image, 0, 0);
  return canvas;
}
