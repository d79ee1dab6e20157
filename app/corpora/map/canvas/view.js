// The picture of a map: size, view (centre and pixels per unit), rendering. While the view moves,
// the existing picture is moved; it is redrawn when the view rests or leaves the picture.

const MIN_HEIGHT = 420;
const BELOW = 12; // pixels left free under the map
const MARGIN = 0.25; // drawn beyond each edge, as a share of the width and height
const REST_MS = 140;
const QUICK_MS = 8; // a picture that takes at most this long is redrawn in every frame

class MapView {
  constructor(parent) {
    this.parent = parent;
    this.root = make("div", "map");
    this.canvas = make("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.root.append(this.canvas);
    parent.appendChild(this.root);
    this.onWindow = () => this.resize();
    window.addEventListener("resize", this.onWindow);
    this.sized = new ResizeObserver(() => this.resize());
    this.sized.observe(this.root);
    // what stands above may get its height after the map has: the page then grows, the map does not
    const page = document.querySelector('[data-testid="stMainBlockContainer"]');
    if (page) this.sized.observe(page);
  }

  drop() {
    window.removeEventListener("resize", this.onWindow);
    this.sized.disconnect();
    clearTimeout(this.rest);
  }

  // What is left of the window below the map's upper edge, when the page is scrolled to its top.
  freeHeight() {
    const scroller = document.querySelector('[data-testid="stMain"]');
    const top = this.root.getBoundingClientRect().top + (scroller ? scroller.scrollTop : 0);
    return Math.max(MIN_HEIGHT, Math.round(window.innerHeight - top - BELOW));
  }

  resize() {
    const width = Math.round(this.root.clientWidth);
    if (!width) return;
    const height = this.freeHeight();
    if (width === this.width && height === this.height) return;
    [this.width, this.height] = [width, height];
    this.root.style.height = `${height}px`;
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    if (!this.view || this.view.scale === this.whole) this.reset();
    else this.redraw();
  }

  // ---- the view ------------------------------------------------------------------------------

  reset() {
    if (!this.width || !this.data) return;
    const [low, high] = withLines(this.grid, this.data.pieces);
    const [wide, tall] = [high[0] - low[0] || 1, high[1] - low[1] || 1];
    this.whole = Math.min(this.width / (1.12 * wide), this.height / (1.16 * tall));
    // beside what lies over the lower left corner, where that leaves the map most of its size
    let inset = this.inset();
    const beside = Math.min((this.width - inset) / (1.06 * wide), this.height / (1.16 * tall));
    if (beside < 0.8 * this.whole) inset = 0;
    else this.whole = Math.min(this.whole, beside);
    const x = (low[0] + high[0]) / 2 - inset / 2 / this.whole;
    this.view = { x, y: (low[1] + high[1]) / 2, scale: this.whole };
    this.redraw();
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  toMap([px, py]) {
    const { x, y, scale } = this.view;
    return [x + (px - this.width / 2) / scale, y - (py - this.height / 2) / scale];
  }

  toScreen(point) {
    return this.painter.onScreen(point, this.view, this.width, this.height);
  }

  zoom(factor, at) {
    const before = this.toMap(at);
    const scale = this.view.scale * factor;
    this.view.scale = Math.max(this.whole / 4, Math.min(this.whole * 1e5, scale));
    const after = this.toMap(at);
    this.view.x += before[0] - after[0];
    this.view.y += before[1] - after[1];
    this.show();
  }

  middle() {
    return [this.width / 2, this.height / 2];
  }

  // ---- rendering -----------------------------------------------------------------------------

  redraw() {
    this.drawn = null;
    this.show();
  }

  render() {
    const began = performance.now();
    const [width, height] = [(1 + 2 * MARGIN) * this.width, (1 + 2 * MARGIN) * this.height];
    const view = { ...this.view };
    const canvas = this.painter.picture(view, width, height, this.ratio);
    this.drawn = { view, width, height, canvas };
    this.took = performance.now() - began;
  }

  show() {
    if (this.waiting || !this.width || !this.data) return;
    this.waiting = true;
    delete this.canvas.dataset.rested;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (!this.drawn || this.took < QUICK_MS || this.hasLeft()) this.render();
      this.paint();
      clearTimeout(this.rest);
      this.rest = setTimeout(() => this.settle(), REST_MS);
    });
  }

  hasLeft() {
    const { view, width, height } = this.drawn;
    const grown = this.view.scale / view.scale;
    if (grown > 2 || grown < 0.75) return true;
    const spare = (drawn, shown) => (drawn * grown - shown) / 2 / this.view.scale;
    return (
      Math.abs(this.view.x - view.x) > spare(width, this.width) ||
      Math.abs(this.view.y - view.y) > spare(height, this.height)
    );
  }

  settle() {
    this.resize(); // what stands above may have moved it since
    if (!this.drawn) return; // of another size now: it is drawn and settles again
    const { view } = this.drawn;
    const same = ["x", "y", "scale"].every((each) => view[each] === this.view[each]);
    if (!same) {
      this.render();
      this.paint();
    }
    const count = this.painter.inside(this.view, this.width, this.height).length;
    const all = this.data.points;
    const many = (number) => number.toLocaleString("en");
    this.status.textContent = `${many(count)} of ${many(all)} in view`;
    this.status.title =
      count > DISCS ? "Texts on one pixel share it in their mean colour" : "Every text is a disc";
    const [x0, y1] = this.toMap([0, 0]);
    const [x1, y0] = this.toMap([this.width, this.height]);
    this.canvas.dataset.view = JSON.stringify({ x: [x0, x1], y: [y0, y1] });
    this.canvas.dataset.inView = count;
    this.canvas.dataset.lit = this.painter.lit.length;
    this.canvas.dataset.rested = "yes";
    this.canvas.setAttribute(
      "aria-label",
      `Map of ${all} texts, ${count} in view. Arrow keys move, plus and minus zoom, 0 shows all.`,
    );
  }

  paint() {
    const context = this.canvas.getContext("2d");
    const { view, width, height, canvas } = this.drawn;
    const grown = this.view.scale / view.scale;
    const [x, y] = this.toScreen([view.x, view.y]);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const [wide, high] = [width * grown, height * grown];
    context.imageSmoothingEnabled = grown !== 1;
    context.drawImage(canvas, x - wide / 2, y - high / 2, wide, high);
    if (this.shape) this.paintShape(context);
    if (this.hovered !== undefined) this.paintHovered(context);
    this.named = this.isNamed
      ? drawNames(context, this.data.labels, this.view, this.width, this.height, this.inks())
      : [];
    this.canvas.dataset.named = this.named.length;
    this.canvas.dataset.paints = Number(this.canvas.dataset.paints || 0) + 1;
  }

  paintHovered(context) {
    const at = this.toScreen([this.data.x[this.hovered], this.data.y[this.hovered]]);
    context.strokeStyle = getComputedStyle(this.root).color;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(...at, 6, 0, 2 * Math.PI);
    context.stroke();
  }

  paintShape(context) {
    const { kind, x, y, path } = this.shape;
    const box = kind === "box" && [[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]];
    context.beginPath();
    for (const corner of box || path) context.lineTo(...this.toScreen(corner));
    context.closePath();
    context.strokeStyle = getComputedStyle(this.root).color;
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.stroke();
    context.setLineDash([]);
  }

  // Background and text colour of the page.
  inks() {
    const style = getComputedStyle(this.root);
    const ground = style.getPropertyValue("--st-background-color").trim();
    return [ground || "#ffffff", style.color];
  }
}

// The corners of the points and of what is drawn around them (frames, contours).
function withLines({ low, high }, pieces) {
  const [lowest, highest] = [[...low], [...high]];
  pieces.forEach((value, place) => {
    lowest[place % 2] = Math.min(lowest[place % 2], value);
    highest[place % 2] = Math.max(highest[place % 2], value);
  });
  return [lowest, highest];
}
