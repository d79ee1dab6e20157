// The map of a coverage analysis: every point is drawn; a pixel with several points has their mean
// colour. The pointer, the keyboard, what is lit and the text at the pointer. Texts reach the page
// through textContent only.

const REACH = 7; // hover radius in pixels
const STILL = 4; // pixels that a click may move

export default function (component) {
  return receiveIn(MapCard, component);
}

class MapCard extends MapView {
  constructor(parent) {
    super(parent);
    this.hidden = new Set();
    this.requests = 0;
    this.shape = null;
    this.isNamed = true;
    this.tooltip = make("div", "tooltip");
    this.tooltip.hidden = true;
    this.tools = new MapTools(this);
    this.root.append(this.tooltip);
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
    this.onLit = (event) => this.light(event.detail);
    document.addEventListener("inf-map-hover", this.onHover);
    document.addEventListener("inf-map-lit", this.onLit);
  }

  leaveIfGone() {
    if (this.parent.isConnected && this.root.isConnected) return;
    document.removeEventListener("inf-map-hover", this.onHover);
    document.removeEventListener("inf-map-lit", this.onLit);
    clearTimeout(this.pending);
    this.drop();
    CARDS.delete(this.parent);
  }

  receive(component) {
    this.send = component.setStateValue;
    this.trigger = component.setTriggerValue;
    this.resize(); // what stands above may have changed its height
    const data = unpacked(component.data);
    if (this.data && this.data.version === data.version && this.data.colour === data.colour) return;
    const moved = !this.data || this.data.points !== data.points;
    if (this.data && this.data.colour !== data.colour) this.hidden.clear();
    this.data = data;
    this.painter = new Painter(data, this.hidden);
    this.grid = new Grid(data.x, data.y);
    this.tools.drawLegend(data, this.hidden);
    this.hideTooltip();
    if (window.infMapLit) this.light(window.infMapLit);
    if (moved) this.reset();
    else this.redraw();
  }

  // ---- what is lit ---------------------------------------------------------------------------

  find(text) {
    this.send("search", text.trim());
  }

  // rows: the lit ones; cleared: how often the page has cleared the selection.
  light({ points, rows, isSearch, cleared }) {
    if (!this.data || points !== this.data.points) return; // of another map
    if (this.cleared !== undefined && this.cleared !== cleared) this.shape = this.selected = null;
    this.cleared = cleared;
    this.painter.lit = rows ? rowsOfBits(rows) : NOTHING;
    this.tools.showCount(this.painter.lit.length, isSearch);
    this.redraw();
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

  up(event) {
    const held = this.held;
    this.held = null;
    if (!held) return;
    if (this.mode !== "move") {
      this.select(this.shape);
      return;
    }
    const [x, y] = this.place(event);
    if (Math.hypot(x - held.at[0], y - held.at[1]) > STILL) return;
    const name = this.nameAt([x, y]);
    if (name !== undefined) this.select({ kind: "cluster", name });
  }

  nameAt([x, y]) {
    const holds = (box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
    return this.named?.find((each) => !each.panel && holds(each))?.name;
  }

  stop() {
    this.held = null;
  }

  // Select what a shape holds: a box or lasso on the map, or a cluster, a search, thin regions.
  select(shape) {
    this.shape = shape?.path || shape?.x ? shape : null;
    const names = [...this.hidden].map((each) => this.data.categories[each].name);
    this.selected = shape && { ...shape, colour: this.data.colour, hidden: names };
    if (this.selected) this.canvas.dataset.shape = JSON.stringify(this.selected);
    this.send("shape", this.selected && { ...this.selected, at: Date.now() });
    this.show();
  }

  // Panels reach into the corner of the legend; a cloud alone leaves corners free.
  inset() {
    const { legend } = this.tools;
    return legend.open && this.data.lines.length ? legend.offsetLeft + legend.offsetWidth : 0;
  }

  legendChanged() {
    if (this.selected) this.select(this.selected);
    this.redraw();
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
      ArrowUp: [0, step * this.height],
      ArrowDown: [0, -step * this.height],
    };
    if (moves[event.key]) {
      this.view.x += moves[event.key][0];
      this.view.y += moves[event.key][1];
      this.show();
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25, this.middle());
    else if (event.key === "-") this.zoom(0.8, this.middle());
    else if (event.key === "0") this.reset();
    else if (event.key === "Escape") this.select(null);
    else return;
    event.preventDefault();
    this.hideTooltip();
  }

  // ---- tooltip -------------------------------------------------------------------------------

  point(at) {
    this.canvas.classList.toggle("naming", this.mode === "move" && this.nameAt(at) !== undefined);
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
    const [left, top] = this.toScreen([this.data.x[this.hovered], this.data.y[this.hovered]]);
    const { offsetWidth: wide, offsetHeight: high } = this.tooltip;
    const placed = left + 14 + wide > this.width ? left - 14 - wide : left + 14;
    this.tooltip.style.left = `${Math.max(0, placed)}px`;
    this.tooltip.style.top = `${Math.max(0, Math.min(top + 14, this.height - high))}px`;
  }

  save(how) {
    const labels = this.isNamed ? this.data.labels : [];
    how(this.painter, labels, this.view, this.width, this.height, this.inks());
  }
}
