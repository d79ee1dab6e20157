// The review card: a group's three triplets side by side, what differs marked; approve, reject with
// a reason, edit, by key or mouse. Decisions travel as those of the judging card do (see there):
// an outbox mirrored in localStorage, sent whole as component state until each event is answered.
//
// What would surprise: a decision names the review that was current when the group was shown
// (`seen`), or, after Undo, our own event (`after`): the server refuses a word on a text that
// somebody changed in between. An edit that is refused keeps its texts here until it is dismissed.

const CARDS = new WeakMap();
const RESEND_MS = 2500;
const SENT_AT_ONCE = 100;
const HISTORY = 30;
const MOST_LATER = 200;

export default function (component) {
  const parent = component.parentElement;
  let card = CARDS.get(parent);
  if (!card) {
    card = new ReviewCard(parent);
    CARDS.set(parent, card);
  }
  card.receive(component);
  return () => setTimeout(() => card.leaveIfGone(), 0);
}

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function newEventId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function afterPaint(act) {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = act;
    channel.port2.postMessage(null);
  });
}

const keyOf = (group) => `${group.id}/${group.seen}`;

class ReviewCard {
  constructor(parent) {
    this.parent = parent;
    this.scope = null;
    this.sentAt = -Infinity;
    this.counter = 0;
    this.unanswered = 0;
    this.waiting = false;
    this.marks = true;
    this.lastReason = "";
    this.root = make("div", "card");
    parent.appendChild(this.root);
    this.onKey = (event) => this.key(event);
    this.onLeave = (event) => this.outbox.size && event.preventDefault();
    document.addEventListener("keydown", this.onKey, true);
    window.addEventListener("beforeunload", this.onLeave);
    this.timer = setInterval(() => this.resend(), 500);
    this.forget();
  }

  forget() {
    this.outbox = new Map();
    this.refused = new Map();
    this.decided = new Set();
    this.later = [];
    this.history = [];
    this.queue = [];
    this.current = null;
    this.past = null;
  }

  leaveIfGone() {
    if ((this.parent.host || this.parent).isConnected) return;
    document.removeEventListener("keydown", this.onKey, true);
    window.removeEventListener("beforeunload", this.onLeave);
    clearInterval(this.timer);
    CARDS.delete(this.parent);
  }

  // ---- what comes from the server

  receive(component) {
    this.component = component;
    const before = this.data;
    this.data = component.data;
    if (!this.root.isConnected) this.parent.appendChild(this.root);
    if (this.scope !== this.data.scope) {
      this.forget();
      this.scope = this.data.scope;
      this.load();
    }
    for (const [event, answer] of Object.entries(this.data.acknowledged)) {
      const entry = this.outbox.get(event);
      if (!entry) continue;
      this.outbox.delete(event);
      if (answer) this.refuse(event, { ...entry, why: answer });
      this.erase("out", event);
    }
    this.waiting = false;
    this.unanswered = 0;
    const isOtherQueue = !before || before.queue !== this.data.queue;
    this.queue = this.data.groups.filter((group) => !this.decided.has(keyOf(group)));
    const stillOurs = this.current && this.queue.some((g) => keyOf(g) === keyOf(this.current));
    const isFree = !this.past && !this.boxes; // nobody's edit is drawn over
    if (isOtherQueue || (isFree && !stillOurs)) this.show(this.next());
    else this.drawAround();
    if (this.outbox.size) this.send();
  }

  next() {
    const isLater = (group) => this.later.includes(group.id);
    return this.queue.find((group) => !isLater(group)) || this.queue[0] || null;
  }

  refuse(event, entry) {
    this.refused.set(event, entry);
    this.keep("refused", event, entry);
  }

  // ---- the outbox and its mirror

  slot(part, event) {
    return `inf-review/${this.scope}/${part}/${event}`;
  }

  keep(part, event, value) {
    try {
      localStorage.setItem(this.slot(part, event), JSON.stringify(value));
    } catch {
      this.unmirrored = true; // a full or forbidden localStorage: the outbox still lives here
    }
  }

  erase(part, event) {
    try {
      localStorage.removeItem(this.slot(part, event));
    } catch {
      this.unmirrored = true;
    }
  }

  load() {
    const read = (part, into) => {
      const start = this.slot(part, "");
      const found = Object.keys(localStorage).filter((name) => name.startsWith(start));
      const entries = found.map((name) => [name, JSON.parse(localStorage.getItem(name))]);
      entries.sort((one, other) => String(one[1].decided).localeCompare(String(other[1].decided)));
      for (const [name, value] of entries) into.set(name.slice(start.length), value);
    };
    try {
      read("out", this.outbox);
      read("refused", this.refused);
    } catch {
      this.unmirrored = true;
    }
    for (const entry of this.outbox.values()) this.decided.add(`${entry.group}/${entry.seen}`);
  }

  send() {
    if (this.waiting) return;
    this.waiting = true;
    this.sentAt = performance.now();
    this.counter += 1;
    const events = [...this.outbox.values()].slice(0, SENT_AT_ONCE);
    this.component.setStateValue("outbox", { sent: this.counter, events, later: this.later });
  }

  // Every other time the whole page is asked for: see judging_card.py on servers started again.
  resend() {
    this.leaveIfGone();
    if (this.outbox.size && performance.now() - this.sentAt > RESEND_MS) {
      this.unanswered += 1;
      this.waiting = false;
      if (this.unanswered % 2) this.send();
      else {
        this.sentAt = performance.now();
        document.dispatchEvent(new CustomEvent("inf-card-unanswered"));
      }
    }
    this.drawBadge();
  }

  // ---- deciding

  isTooSoon() {
    return this.paintedAt === null || performance.now() - this.paintedAt < this.data.dwell_ms;
  }

  decide(kind, more) {
    const group = this.current;
    if (!group) return;
    if (this.isTooSoon()) {
      this.say("Too quick: read the group first.");
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
    this.outbox.set(event, entry);
    this.keep("out", event, entry);
    this.decided.add(keyOf(group));
    this.history = this.history.filter((past) => past.group.id !== group.id);
    this.history.push({ group, entry });
    if (this.history.length > HISTORY) this.history.shift();
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
      this.say("A reject needs a reason.");
      this.reasonBox.focus();
      return;
    }
    this.lastReason = reason;
    this.decide("reject", { reason });
  }

  openEdit(texts) {
    if (!this.current || !this.current.columns.length) {
      this.say("Nothing was written for this group: there is nothing to edit.");
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
    this.say(`Group ${group.id} is put off.`);
    afterPaint(() => this.send());
  }

  undo() {
    const at = this.past
      ? this.history.findIndex((past) => past.group.id === this.current.id) - 1
      : this.history.length - 1;
    if (at < 0) {
      this.say("Nothing further back.");
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
    const hadFocus = this.root.contains(this.parent.activeElement ?? document.activeElement);
    this.current = group;
    this.past = past || null;
    this.paintedAt = null;
    this.boxes = null;
    delete this.root.dataset.painted;
    this.root.replaceChildren();
    this.root.dataset.group = group ? String(group.id) : "";
    this.drawHead();
    if (group) this.drawGroup(group);
    else this.root.appendChild(make("div", "nothing"));
    this.drawTools();
    this.drawAround();
    if (hadFocus) this.root.querySelector(".triplets, .nothing")?.focus?.({ preventScroll: true });
    if (!group) return;
    if (this.root.getBoundingClientRect().top < 0) this.root.scrollIntoView({ block: "start" });
    afterPaint(() => {
      if (this.current !== group) return;
      this.paintedAt = performance.now();
      this.root.dataset.painted = String(this.paintedAt);
    });
  }

  drawHead() {
    const head = make("div", "head");
    this.progress = make("div", "progress");
    this.badge = make("span", "badge");
    this.badge.setAttribute("role", "status");
    head.append(this.progress, this.badge);
    this.problems = make("div", "problems");
    this.problems.setAttribute("role", "alert");
    this.root.append(head, this.problems);
  }

  drawGroup(group) {
    if (this.past) {
      const banner = make("div", "banner", `You said: ${this.inWords(this.past)}. Say it anew, or `);
      banner.appendChild(this.button("go on (Esc)", "link", () => this.goOn()));
      this.root.appendChild(banner);
    }
    const title = make("div", "title");
    title.append(make("strong", "", `Group ${group.id}`), make("span", "quiet", group.name));
    for (const label of group.labels) title.appendChild(make("span", `label-badge ${label}`, label));
    if (group.link) {
      const link = make("a", "quiet", "everything about it");
      link.href = group.link;
      link.target = "_blank";
      title.appendChild(link);
    }
    this.root.appendChild(title);
    for (const words of group.words) this.root.appendChild(make("p", "words", words));
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
    this.help = make("div", "help");
    this.help.hidden = true;
    this.voice = make("div", "voice");
    this.voice.setAttribute("aria-live", "polite");
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
      this.button("Save the edit", "main", () => this.saveEdit(), "Ctrl ↵"),
      this.button("Leave it as it was", "tool", () => this.closeEdit(), "Esc"),
    );
    this.saveRow.hidden = true;
    for (const [key, words] of [
      ["A", "approve the group"],
      ["R", "reject it: a reason, then Enter"],
      ["E", "edit the written texts: Ctrl and Enter saves, Esc leaves them"],
      ["L", "later: the group comes again at the end"],
      ["Z", "go back and say something else; again for one further back"],
      ["D", "mark what differs from the positive triplet"],
      ["?", "this list"],
    ]) {
      const row = make("div");
      row.append(make("kbd", "", key), make("span", "", words));
      this.help.appendChild(row);
    }
    this.root.append(this.reasonRow, this.saveRow, tools, this.help, this.voice);
  }

  drawAround() {
    const unsent = [...this.outbox.values()].filter((entry) => !entry.after).length;
    this.progress.textContent = `${Math.max(0, this.data.total - unsent)} in this queue`;
    this.problems.replaceChildren();
    for (const [event, entry] of this.refused) this.problems.appendChild(this.problem(event, entry));
    const nothing = this.root.querySelector(".nothing");
    if (nothing) {
      nothing.textContent =
        this.data.total > unsent ? "The next group is on its way …" : "This queue is empty.";
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
      details.append(make("summary", "", "what you wrote"));
      for (const text of Object.values(entry.texts)) details.append(make("div", "text", text));
      line.append(details);
    }
    line.appendChild(
      this.button("dismiss", "link", () => {
        this.refused.delete(event);
        this.erase("refused", event);
        this.drawAround();
      }),
    );
    return line;
  }

  drawBadge() {
    if (!this.badge) return;
    const words = this.outbox.size ? `${this.outbox.size} unsent` : "saved";
    if (this.badge.textContent !== words) this.badge.textContent = words;
    this.badge.classList.toggle("unsent", this.outbox.size > 0);
  }

  say(words) {
    if (this.voice) this.voice.textContent = words;
  }

  button(words, className, act, key) {
    const button = make("button", className, words);
    button.type = "button";
    if (key) button.appendChild(make("kbd", "", key));
    button.addEventListener("click", (event) => {
      event.preventDefault();
      act();
    });
    return button;
  }
}
