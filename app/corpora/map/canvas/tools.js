// The bar, search field and legend that lie over a map. They call the card; texts reach the page
// through textContent only.

const TYPED_MS = 350; // after the last key, the search is sent

const NARROW = 600; // pixels: the legend of such a map is folded at first

const MODES = [
  ["move", "Move", "Drag to move, scroll to zoom, double-click to show all"],
  ["box", "Box", "Drag a box to list the texts inside"],
  ["lasso", "Lasso", "Draw around texts to list them"],
];

function button(name, help, act) {
  const found = make("button", "", name);
  found.type = "button";
  found.title = help;
  found.onclick = act;
  return found;
}

function press(element, isPressed) {
  element.setAttribute("aria-pressed", String(isPressed));
}

class MapTools {
  constructor(card) {
    this.card = card;
    this.tools = make("div", "tools");
    this.foot = make("div", "foot");
    this.legend = make("details", "legend");
    card.root.append(this.tools, this.legend, this.foot);
    this.drawModes();
    this.drawSearch();
    this.drawFoot();
    this.choose("move");
  }

  drawModes() {
    const { card } = this;
    for (const [mode, name, help] of MODES) {
      const found = button(name, help, () => this.choose(mode));
      found.dataset.mode = mode;
      this.tools.append(found);
    }
    this.tools.append(
      button("+", "Zoom in", () => card.zoom(1.25, card.middle())),
      button("−", "Zoom out", () => card.zoom(0.8, card.middle())),
      button("Show all", "Show the whole map", () => card.reset()),
    );
    const named = button("Names", "Show or hide the names of clusters", () => {
      card.isNamed = !card.isNamed;
      press(named, card.isNamed);
      card.show();
    });
    press(named, card.isNamed);
    this.tools.append(
      named,
      button("Thin regions", "Select where the fewest texts lie: a tenth of all texts", () =>
        card.select({ kind: "thin" }),
      ),
      button("Clear", "Clear the selection and the search", () => this.clear()),
    );
  }

  drawSearch() {
    const { card } = this;
    const find = make("span", "find");
    this.field = make("input");
    this.field.type = "search";
    this.field.placeholder = "Light up texts with …";
    this.field.setAttribute("aria-label", "Light up texts that contain these words");
    this.field.oninput = () => {
      clearTimeout(this.typed);
      this.typed = setTimeout(() => card.find(this.field.value), TYPED_MS);
    };
    this.field.onkeydown = (event) => {
      if (event.key !== "Enter") return;
      clearTimeout(this.typed);
      card.find(this.field.value);
    };
    this.lit = make("span", "lit");
    this.lit.setAttribute("role", "status");
    this.take = button("Select these", "List the lit texts", () =>
      card.select({ kind: "search", text: this.field.value.trim() }),
    );
    this.take.hidden = true;
    find.append(this.field, this.lit, this.take);
    this.tools.append(find);
  }

  drawFoot() {
    const { card } = this;
    card.status = make("span", "status");
    this.foot.append(
      card.status,
      button("Save as PNG", "Save the current view as PNG", () => card.save(savePng)),
      button("Save as SVG", "Save the current view as SVG", () => card.save(saveSvg)),
    );
  }

  choose(mode) {
    this.card.mode = mode;
    this.card.canvas.classList.toggle("selecting", mode !== "move");
    for (const each of this.tools.querySelectorAll("[data-mode]")) {
      press(each, each.dataset.mode === mode);
    }
  }

  clear() {
    clearTimeout(this.typed);
    this.field.value = "";
    this.card.find("");
    this.card.select(null);
  }

  // How many texts are lit, and why; `isSearch`: because they were searched for.
  showCount(count, isSearch) {
    this.lit.textContent = isSearch ? `${count.toLocaleString("en")} lit` : "";
    this.take.hidden = !isSearch || !count;
  }

  drawLegend(data, hidden) {
    if (!this.legend.childElementCount) this.legend.open = !(this.card.width <= NARROW);
    const head = make("summary", "", `Colour: ${data.colour}`);
    this.legend.replaceChildren(head);
    data.categories.forEach((category, each) => {
      const label = `${category.name} · ${category.points.toLocaleString("en")}`;
      const found = button("", "Hide or show", () => {
        if (!hidden.delete(each)) hidden.add(each);
        press(found, !hidden.has(each));
        this.card.legendChanged();
      });
      press(found, !hidden.has(each));
      found.append(swatch(category.colour), make("span", "", label));
      this.legend.append(found);
    });
    for (const { name, colour } of data.lines) this.line(colour, name, "line");
    const denser = denserIn(data.difference);
    for (const { name, colour } of denser) this.line(colour, name, "veil");
    if (data.difference) this.note(data.difference);
  }

  // What the kept share counts, and what chance could have made.
  note({ shares, clear, places, floor }) {
    const notes = [];
    if (shares) {
      notes.push(
        `Ground: kept of all texts there; ${Math.round(100 * shares[1])} % of the map.`,
        `${places.toLocaleString("en")} cells with ${floor} texts or more around.`,
      );
    }
    if (!clear.some(Boolean)) notes.push("No place differs beyond chance.");
    if (notes.length) this.legend.append(make("span", "note", notes.join(" ")));
  }

  line(colour, text, kind) {
    const entry = make("span", kind);
    entry.append(swatch(colour), make("span", "", text));
    this.legend.append(entry);
  }
}

function swatch(colour) {
  const found = make("span", "swatch");
  found.style.background = colour;
  return found;
}
