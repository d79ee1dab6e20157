// The map of a coverage analysis: every point is drawn; a pixel with several points has their mean
// colour. While dragging or zooming, the existing picture is moved; it is redrawn when the view
// rests or leaves the picture. Texts reach the page through textContent only.

const HEIGHT = 620;
const MARGIN = 0.25; // drawn beyond each edge, as a share of the width and height
const REST_MS = 140;
const QUICK_MS = 8; // a picture that takes at most this long is redrawn in every frame
const REACH = 7; // hover radius in pixels

export default function (component) {
  return receiveIn(MapCard, component);
}

class MapCard {
  constructor(parent) {
    this.parent = parent;
    this.mode = "move";
    this.hidden = new Set();
    this.requests = 0;
    this.shape = null;
    this.root = make("div", "map");
    this.canvas = make("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.height = HEIGHT;
    this.canvas.style.height = `${HEIGHT}px`;
    this.canvas.setAttribute("role", "img");
    this.tools = make("div", "tools");
    this.legend = make("div", "legend");
    this.tooltip = make("div", "tooltip");
    this.tooltip.hidden = true;
    this.root.append(this.tools, this.canvas, this.legend, this.tooltip);
    parent.appendChild(this.root);
    this.drawTools();
    this.listen();
  }

  listen() {
    const on = (kind, act, options) => this.canvas.addEventListener(kind, act, options);
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", () => this.stop());
    on("pointerleave", () => this.leave());
    on("dblclick", () => this.reset());
    on("keydown", (event) => this.key(event));
    on("wheel", (event) => this.wheel(event), { passive: false });
    this.onHover = (event) => this.showTooltip(event.detail);
    document.addEventListener("inf-map-hover", this.onHover);
    this.sized = new ResizeObserver(() => this.resize());
    this.sized.observe(this.root);
  }

  leaveIfGone() {
    if (this.parent.isConnected && this.root.isConnected) return;
    document.removeEventListener("inf-map-hover", this.onHover);
    this.sized.disconnect();
    clearTimeout(this.rest);
    clearTimeout(this.pending);
    CARDS.delete(this.parent);
  }

  receive(component) {
    this.send = component.setStateValue;
    this.trigger = component.setTriggerValue;
    const data = unpacked(component.data);
    if (this.data && this.data.version === data.version && this.data.colour === data.colour) return;
    const moved = !this.data || this.data.points !== data.points;
    if (this.data && this.data.colour !== data.colour) this.hidden.clear();
    this.data = data;
    this.painter = new Painter(data, this.hidden);
    this.grid = new Grid(data.x, data.y);
    this.drawLegend();
    this.hideTooltip();
    if (moved) this.reset();
    else this.redraw();
  }

  // ---- the view: centre of the picture and pixels per unit -----------------------------------

  reset() {
    if (!this.width || !this.data) return;
    const { low, high } = this.grid;
    const [wide, tall] = [high[0] - low[0] || 1, high[1] - low[1] || 1];
    this.whole = Math.min(this.width / (1.12 * wide), HEIGHT / (1.12 * tall));
    this.view = {
      x: (low[0] + high[0]) / 2,
      y: (low[1] + high[1]) / 2,
      scale: this.whole,
    };
    this.redraw();
  }

  resize() {
    const width = Math.round(this.root.clientWidth);
    if (!width || width === this.width) return;
    this.width = width;
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(HEIGHT * this.ratio);
    if (!this.view || this.view.scale === this.whole) this.reset();
    else this.redraw();
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  toMap([px, py]) {
    const { x, y, scale } = this.view;
    return [x + (px - this.width / 2) / scale, y - (py - HEIGHT / 2) / scale];
  }

  toScreen(point) {
    return this.painter.onScreen(point, this.view, this.width, HEIGHT);
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

  // ---- rendering -----------------------------------------------------------------------------

  redraw() {
    this.drawn = null;
    this.show();
  }

  render() {
    const began = performance.now();
    const [width, height] = [(1 + 2 * MARGIN) * this.width, (1 + 2 * MARGIN) * HEIGHT];
    const view = { ...this.view };
    this.drawn = { view, width, height, canvas: this.painter.picture(view, width, height, this.ratio) };
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
      Math.abs(this.view.y - view.y) > spare(height, HEIGHT)
    );
  }

  settle() {
    const { view } = this.drawn;
    const same = ["x", "y", "scale"].every((each) => view[each] === this.view[each]);
    if (!same) {
      this.render();
      this.paint();
    }
    const count = this.painter.inside(this.view, this.width, HEIGHT).length;
    const all = this.data.points;
    const how = count > DISCS ? ", colours of shared pixels averaged" : "";
    this.status.textContent = `${count.toLocaleString("en")} of ${all.toLocaleString("en")} in view${how}`;
    const [x0, y1] = this.toMap([0, 0]);
    const [x1, y0] = this.toMap([this.width, HEIGHT]);
    this.canvas.dataset.view = JSON.stringify({ x: [x0, x1], y: [y0, y1] });
    this.canvas.dataset.inView = count;
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
    if (this.hovered !== undefined) {
      const at = this.toScreen([this.data.x[this.hovered], this.data.y[this.hovered]]);
      context.strokeStyle = getComputedStyle(this.root).color;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(...at, 6, 0, 2 * Math.PI);
      context.stroke();
    }
    this.canvas.dataset.paints = Number(this.canvas.dataset.paints || 0) + 1;
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

  // ---- pointer and keyboard ------------------------------------------------------------------

  down(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.hideTooltip();
    const at = this.place(event);
    this.held = { at, from: this.toMap(at), path: [this.toMap(at)], last: at };
    if (this.mode !== "move") this.shape = null;
  }

  move(event) {
    const at = this.place(event);
    if (!this.held) {
      this.point(at);
      return;
    }
    if (this.mode === "move") {
      this.view.x -= (at[0] - this.held.last[0]) / this.view.scale;
      this.view.y += (at[1] - this.held.last[1]) / this.view.scale;
      this.held.last = at;
    } else this.draft(at);
    this.show();
  }

  draft(at) {
    const [from, to] = [this.held.from, this.toMap(at)];
    if (this.mode === "box") {
      const side = (each) => [Math.min(from[each], to[each]), Math.max(from[each], to[each])];
      this.shape = { kind: "box", x: side(0), y: side(1) };
      return;
    }
    const far = Math.hypot(at[0] - this.held.last[0], at[1] - this.held.last[1]);
    if (far < 3) return;
    this.held.last = at;
    this.held.path.push(to);
    this.shape = { kind: "lasso", path: this.held.path };
  }

  up() {
    const held = this.held;
    this.held = null;
    if (!held || this.mode === "move") return;
    this.select(this.shape);
  }

  stop() {
    this.held = null;
  }

  select(shape) {
    this.shape = shape;
    const names = [...this.hidden].map((each) => this.data.categories[each].name);
    const selection = shape && { ...shape, colour: this.data.colour, hidden: names };
    if (selection) this.canvas.dataset.shape = JSON.stringify(selection);
    this.send("shape", selection);
    this.show();
  }

  wheel(event) {
    event.preventDefault();
    this.hideTooltip();
    this.zoom(Math.exp(-event.deltaY * 0.002), this.place(event));
  }

  key(event) {
    const step = 0.1 / this.view.scale;
    const moves = {
      ArrowLeft: [-step * this.width, 0],
      ArrowRight: [step * this.width, 0],
      ArrowUp: [0, step * HEIGHT],
      ArrowDown: [0, -step * HEIGHT],
    };
    const middle = [this.width / 2, HEIGHT / 2];
    if (moves[event.key]) {
      this.view.x += moves[event.key][0];
      this.view.y += moves[event.key][1];
      this.show();
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25, middle);
    else if (event.key === "-") this.zoom(0.8, middle);
    else if (event.key === "0") this.reset();
    else if (event.key === "Escape") this.select(null);
    else return;
    event.preventDefault();
    this.hideTooltip();
  }

  // ---- tooltip -------------------------------------------------------------------------------

  point(at) {
    const reach = REACH / this.view.scale;
    const [x, y] = this.toMap(at);
    let [nearest, best, count] = [undefined, reach * reach, 0];
    for (const row of this.grid.near(x, y, reach)) {
      if (this.hidden.has(this.data.category[row])) continue;
      const far = (this.data.x[row] - x) ** 2 + (this.data.y[row] - y) ** 2;
      if (far > reach * reach) continue;
      count += 1;
      if (far <= best) [nearest, best] = [row, far];
    }
    if (nearest === this.hovered) return;
    this.hideTooltip();
    if (nearest === undefined) return;
    this.hovered = nearest;
    this.around = count;
    this.paint();
    this.pending = setTimeout(() => {
      this.requests += 1;
      this.request = this.requests;
      this.trigger("hover", { row: nearest, request: this.request });
    }, REST_MS);
  }

  leave() {
    if (!this.held) this.hideTooltip();
  }

  hideTooltip() {
    clearTimeout(this.pending);
    this.tooltip.hidden = true;
    this.request = null;
    if (this.hovered === undefined) return;
    this.hovered = undefined;
    if (this.drawn) this.paint();
  }

  showTooltip(found) {
    if (!found || !found.request || found.request !== this.request) return;
    this.tooltip.replaceChildren();
    const head = make("div");
    const group = found.group === null ? "" : `, group ${found.group}`;
    head.append(make("b", "", found.sign), make("span", "", `${found.corpus}${group}`));
    this.tooltip.append(head);
    for (const [sign, text] of found.lines) {
      const line = make("div");
      if (sign) line.append(make("b", "", sign));
      line.append(make("span", "", text));
      this.tooltip.append(line);
    }
    const others = this.around - 1;
    const more = `and ${others.toLocaleString("en")} more under the pointer; zoom in to separate them`;
    if (others) this.tooltip.append(make("div", "more", more));
    this.tooltip.hidden = false;
    const at = this.toScreen([this.data.x[this.hovered], this.data.y[this.hovered]]);
    const [left, top] = [at[0] + this.canvas.offsetLeft, at[1] + this.canvas.offsetTop];
    const { offsetWidth: wide, offsetHeight: high } = this.tooltip;
    this.tooltip.style.left = `${Math.max(0, left + 14 + wide > this.width ? left - 14 - wide : left + 14)}px`;
    this.tooltip.style.top = `${Math.max(0, Math.min(top + 14, this.canvas.offsetTop + HEIGHT - high))}px`;
  }

  // ---- tools, legend, saving -----------------------------------------------------------------

  drawTools() {
    const modes = [
      ["move", "Move", "Drag to move, scroll to zoom, double-click to show all"],
      ["box", "Box", "Drag a box to list the texts inside"],
      ["lasso", "Lasso", "Draw around texts to list them"],
    ];
    for (const [mode, name, help] of modes) {
      const button = make("button", "", name);
      button.title = help;
      button.dataset.mode = mode;
      button.onclick = () => this.choose(mode);
      this.tools.append(button);
    }
    const acts = [
      ["Show all", "Show the whole map", () => this.reset()],
      ["Clear", "Clear the selection", () => this.select(null)],
      ["PNG", "Save the current view", () => this.save(savePng)],
      ["SVG", "Save the current view", () => this.save(saveSvg)],
    ];
    for (const [name, help, act] of acts) {
      const button = make("button", "", name);
      button.title = help;
      button.onclick = act;
      this.tools.append(button);
    }
    this.status = make("span", "status");
    this.tools.append(this.status);
    this.choose("move");
  }

  choose(mode) {
    this.mode = mode;
    this.canvas.classList.toggle("selecting", mode !== "move");
    for (const button of this.tools.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    }
  }

  drawLegend() {
    this.legend.replaceChildren();
    this.data.categories.forEach((category, each) => {
      const button = make("button");
      button.title = "Hide or show";
      button.setAttribute("aria-pressed", String(!this.hidden.has(each)));
      const label = `${category.name} · ${category.points.toLocaleString("en")}`;
      button.append(this.swatch(category.colour), make("span", "", label));
      button.onclick = () => {
        if (!this.hidden.delete(each)) this.hidden.add(each);
        button.setAttribute("aria-pressed", String(!this.hidden.has(each)));
        if (this.shape) this.select(this.shape);
        this.redraw();
      };
      this.legend.append(button);
    });
    for (const line of this.data.lines) {
      const entry = make("span", "line");
      entry.append(this.swatch(line.colour), make("span", "", `density of ${line.name}`));
      this.legend.append(entry);
    }
  }

  swatch(colour) {
    const found = make("span", "swatch");
    found.style.background = colour;
    return found;
  }

  save(how) {
    how(this.painter, this.view, this.width, HEIGHT, this.inks());
  }

  // Background and text colour of the page.
  inks() {
    const style = getComputedStyle(this.root);
    const ground = style.getPropertyValue("--st-background-color").trim();
    return [ground || "#ffffff", style.color];
  }
}
