// The review card: a group's three triplets side by side, what differs marked; approve, reject with
// a reason, edit, by key or mouse. How a decision reaches the server is in outbox_card.js, which
// comes before this file in the same module.
//
// What would surprise: a decision names the review that was current when the group was shown
// (`seen`), or, after Undo, our own event (`after`): the server refuses a word on a text that
// somebody changed in between. An edit that is refused keeps its texts here until it is dismissed.

const MOST_LATER = 200;
const KEYS = [
  ["A", "approve the group"],
  ["R", "reject: type a reason, then Enter"],
  ["E", "edit the generated texts: Ctrl+Enter saves, Esc cancels"],
  ["L", "postpone: the group returns at the end"],
  ["Z", "undo: go back and decide again; repeat for earlier groups"],
  ["D", "mark differences from the positive triplet"],
  ["?", "show this list"],
];

export default function (component) {
  return receiveIn(ReviewCard, component);
}

const keyOf = (group) => `${group.id}/${group.seen}`;

class ReviewCard extends OutboxCard {
  constructor(parent) {
    super(parent, { mirror: "inf-review", sentAtOnce: 100 });
    this.marks = true;
    this.lastReason = "";
  }

  forget() {
    super.forget();
    this.later = [];
    this.queue = [];
    this.past = null;
  }

  receive(component) {
    const before = this.data;
    this.takeAnswers(component);
    const isOtherQueue = !before || before.queue !== this.data.queue;
    this.queue = this.data.groups.filter((group) => !this.decided.has(keyOf(group)));
    const stillOurs = this.current && this.queue.some((g) => keyOf(g) === keyOf(this.current));
    const isFree = !this.past && !this.boxes; // nobody's edit is drawn over
    if (isOtherQueue || (isFree && !stillOurs)) this.show(this.next());
    else this.drawAround();
    if (this.outbox.size) this.send();
  }

  wasDecided(entry) {
    this.decided.add(`${entry.group}/${entry.seen}`);
  }

  alongside() {
    return { later: this.later };
  }

  next() {
    const isLater = (group) => this.later.includes(group.id);
    return this.queue.find((group) => !isLater(group)) || this.queue[0] || null;
  }

  // ---- deciding

  decide(kind, more) {
    const group = this.current;
    if (!group) return;
    if (this.isTooSoon()) {
      this.say("Too fast: read the group first.");
      return;
    }
    const event = newEventId();
    const entry = {
      event,
      kind,
      run: this.data.run,
      group: group.id,
      seen: group.seen,
      after: this.past ? this.past.event : "",
      decided: new Date().toISOString(),
      ...more,
    };
    this.post(event, entry);
    this.decided.add(keyOf(group));
    this.remember({ group, entry }, (past) => past.group.id === group.id);
    this.queue = this.queue.filter((other) => other.id !== group.id);
    this.show(this.next());
    this.say(`Group ${group.id}: ${this.inWords(entry)}.`);
    afterPaint(() => this.send()); // what sending costs must not delay the next group
  }

  inWords(entry) {
    return { approve: "approved", reject: `rejected (${entry.reason})`, edit: "edited" }[entry.kind];
  }

  approve() {
    this.decide("approve", {});
  }

  openReason() {
    if (!this.current) return;
    this.closeEdit();
    this.reasonRow.hidden = false;
    this.reasonBox.value = this.reasonBox.value || this.lastReason;
    this.reasonBox.focus();
    this.reasonBox.select();
  }

  reject() {
    const reason = this.reasonBox.value.trim();
    if (!reason) {
      this.say("A rejection needs a reason.");
      this.reasonBox.focus();
      return;
    }
    this.lastReason = reason;
    this.decide("reject", { reason });
  }

  openEdit(texts) {
    if (!this.current || !this.current.columns.length) {
      this.say("This group has no generated texts to edit.");
      return;
    }
    this.reasonRow.hidden = true;
    this.boxes = new Map();
    for (const [field, place] of this.places) {
      const box = make("textarea", "edit");
      box.dir = "auto";
      box.value = texts?.[field] ?? place.part.text;
      box.rows = Math.min(14, Math.max(2, Math.ceil(box.value.length / 38)));
      box.setAttribute("aria-label", place.part.label);
      place.body.replaceChildren(box);
      this.boxes.set(field, box);
    }
    this.saveRow.hidden = false;
    this.boxes.values().next().value.focus();
  }

  closeEdit() {
    if (!this.boxes) return;
    this.boxes = null;
    this.saveRow.hidden = true;
    this.fillTexts();
  }

  saveEdit() {
    if (!this.boxes) return;
    const texts = {};
    for (const [field, box] of this.boxes) {
      if (box.value !== this.places.get(field).part.text) texts[field] = box.value;
    }
    if (!Object.keys(texts).length) {
      this.say("Nothing was changed.");
      return;
    }
    this.decide("edit", { texts });
  }

  putOff() {
    const group = this.current;
    if (!group || this.past) return;
    this.later = [...this.later.filter((id) => id !== group.id), group.id].slice(-MOST_LATER);
    this.queue = [...this.queue.filter((other) => other !== group), group];
    this.show(this.next());
    this.say(`Group ${group.id} is postponed.`);
    afterPaint(() => this.send());
  }

  undo() {
    const at = this.past
      ? this.history.findIndex((past) => past.group.id === this.current.id) - 1
      : this.history.length - 1;
    if (at < 0) {
      this.say("No earlier group.");
      return;
    }
    this.show(this.history[at].group, this.history[at].entry);
  }

  goOn() {
    if (this.past) this.show(this.next());
  }

  key(event) {
    if (!this.root.isConnected || event.repeat || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    const isOurs = target instanceof Node && this.root.contains(target);
    const isTyping = target instanceof Element && target.closest("input, textarea, select");
    if (isTyping && isOurs) return this.keyWhileTyping(event, target);
    if (isTyping || event.ctrlKey || (target instanceof Element && target.isContentEditable)) return;
    if (document.querySelector('[role="dialog"]')) return;
    const act = {
      a: () => this.approve(),
      r: () => this.openReason(),
      e: () => this.openEdit(),
      l: () => this.putOff(),
      z: () => this.undo(),
      d: () => this.toggleMarks(),
      "?": () => (this.help.hidden = !this.help.hidden),
      Escape: this.past ? () => this.goOn() : null,
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    this.take(event);
    act();
  }

  keyWhileTyping(event, target) {
    if (event.key === "Escape") {
      this.take(event);
      this.reasonRow.hidden = true;
      this.closeEdit();
      target.blur();
    } else if (event.key === "Enter" && target === this.reasonBox) {
      this.take(event);
      this.reject();
    } else if (event.key === "Enter" && event.ctrlKey && this.boxes) {
      this.take(event);
      this.saveEdit();
    }
  }

  take(event) {
    event.preventDefault();
    event.stopPropagation();
  }

  toggleMarks() {
    this.marks = !this.marks;
    this.marksButton?.setAttribute("aria-pressed", String(this.marks));
    if (!this.boxes) this.fillTexts();
  }

  // ---- drawing

  show(group, past) {
    const hadFocus = this.hasFocus();
    this.current = group;
    this.past = past || null;
    this.boxes = null;
    this.clear();
    this.root.dataset.group = group ? String(group.id) : "";
    this.drawHead();
    if (group) this.drawGroup(group);
    else this.root.appendChild(make("div", "nothing"));
    this.drawTools();
    this.drawAround();
    if (hadFocus) this.root.querySelector(".triplets, .nothing")?.focus?.({ preventScroll: true });
    if (group) this.startDwell(group);
  }

  drawGroup(group) {
    if (this.past) {
      const banner = make("div", "banner", `Your review: ${this.inWords(this.past)}. Decide again, or `);
      banner.appendChild(this.button("continue (Esc)", "link", () => this.goOn()));
      this.root.appendChild(banner);
    }
    const title = make("div", "title");
    title.append(make("strong", "", `Group ${group.id}`), make("span", "quiet", group.name));
    for (const label of group.labels) title.appendChild(make("span", `label-badge ${label}`, label));
    if (group.link) {
      const link = make("a", "quiet", "all details");
      link.href = group.link;
      link.target = "_blank";
      title.appendChild(link);
    }
    this.root.appendChild(title);
    for (const note of group.notes) this.root.appendChild(make("p", "words", note));
    this.places = new Map();
    this.bodies = [];
    const columns = make("div", "triplets");
    columns.tabIndex = -1;
    columns.setAttribute("aria-label", "Triplets");
    for (const column of group.columns) {
      const section = make("section", "triplet");
      section.append(make("h3", "role", column.title), make("p", "scenario", column.scenario));
      if (column.says) section.appendChild(make("p", `says ${column.state}`, column.says));
      for (const part of column.parts) {
        section.appendChild(make("h4", "label", part.label));
        const body = make("div", "text");
        body.dir = "auto";
        section.appendChild(body);
        this.bodies.push({ body, part });
        if (part.field) this.places.set(part.field, { body, part });
      }
      columns.appendChild(section);
    }
    this.root.appendChild(columns);
    this.fillTexts();
    for (const old of group.before) {
      const details = make("details", "before");
      details.append(make("summary", "", `${old.label} before the edit`), make("div", "text", old.text));
      this.root.appendChild(details);
    }
  }

  fillTexts() {
    for (const { body, part } of this.bodies) {
      const pieces = part.pieces.map(([text, isNew]) =>
        isNew && this.marks ? make("mark", "", text) : document.createTextNode(text),
      );
      body.replaceChildren(...pieces);
    }
  }

  drawTools() {
    const tools = make("div", "tools");
    this.help = listOfKeys(KEYS);
    if (this.current) {
      this.marksButton = this.button("Differences", "tool", () => this.toggleMarks(), "D");
      this.marksButton.setAttribute("aria-pressed", String(this.marks));
      tools.append(
        this.button("Approve", "main", () => this.approve(), "A"),
        this.button("Reject", "tool", () => this.openReason(), "R"),
        this.button("Edit", "tool", () => this.openEdit(), "E"),
        this.button("Later", "tool", () => this.putOff(), "L"),
      );
    }
    if (this.history.length) tools.append(this.button("Undo", "tool", () => this.undo(), "Z"));
    if (this.current) {
      const help = this.button("Help", "tool", () => (this.help.hidden = !this.help.hidden), "?");
      tools.append(this.marksButton, help);
    }
    this.reasonRow = make("div", "reason");
    this.reasonBox = make("input");
    this.reasonBox.type = "text";
    this.reasonBox.maxLength = 2000;
    this.reasonBox.placeholder = "what is wrong with the group";
    this.reasonBox.setAttribute("aria-label", "Reason for the rejection");
    this.reasonRow.append(this.reasonBox, this.button("Reject", "main", () => this.reject(), "↵"));
    this.reasonRow.hidden = true;
    this.saveRow = make("div", "reason");
    this.saveRow.append(
      this.button("Save edit", "main", () => this.saveEdit(), "Ctrl ↵"),
      this.button("Cancel", "tool", () => this.closeEdit(), "Esc"),
    );
    this.saveRow.hidden = true;
    this.root.append(this.reasonRow, this.saveRow, tools, this.help);
  }

  drawAround() {
    const unsent = [...this.outbox.values()].filter((entry) => !entry.after).length;
    this.progress.textContent = `${Math.max(0, this.data.total - unsent)} in this queue`;
    this.drawProblems();
    const nothing = this.root.querySelector(".nothing");
    if (nothing) {
      nothing.textContent =
        this.data.total > unsent ? "Loading the next group …" : "This queue is empty.";
    }
    this.drawBadge();
  }

  problem(event, entry) {
    const line = make("div", "problem", `Group ${entry.group}: ${entry.why} `);
    const past = this.history.find((one) => one.group.id === entry.group);
    if (entry.kind === "edit" && past) {
      line.append(
        this.button("edit again", "link", () => {
          this.show(past.group);
          this.openEdit(entry.texts);
          this.decided.delete(keyOf(past.group));
        }),
        " ",
      );
    } else if (entry.kind === "edit") {
      const details = make("details");
      details.append(make("summary", "", "your text"));
      for (const text of Object.values(entry.texts)) details.append(make("div", "text", text));
      line.append(details);
    }
    return line;
  }
}
