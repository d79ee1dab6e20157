// The workbench: a list of groups beside one in full; approve, reject with a reason, edit, validate
// again, undo, by key or mouse. How a decision reaches the server is in outbox_card.js, which comes
// before this file in the same module.
//
// What would surprise: a decision names the review that was current when the group was shown
// (`seen`) or, if ours on the same text may still be on its way, our own event (`after`): the server
// refuses a decision on a text that somebody changed in between. The list keeps what was decided
// until the filter changes: rows that move under the pointer are clicked by mistake.

const AHEAD = 3;
const MAX_REASON = 2000;
const KEYS = [
  ["J", "next group (K: previous)"],
  ["A", "approve the group"],
  ["R", "reject: type a reason, then Enter"],
  ["E", "edit or complete the texts: Ctrl+Enter saves, Esc cancels"],
  ["V", "have the validator judge the edited texts"],
  ["U", "undo your last decision; repeat for earlier ones"],
  ["X", "select the group for a decision on several"],
  ["D", "mark differences from the positive triplet"],
  ["M", "show model calls: prompts and raw answers"],
  ["?", "show this list"],
];
const DONE = { approve: "approved", reject: "rejected", edit: "edited", undo: "undone" };

class Workbench extends OutboxCard {
  constructor(parent) {
    super(parent, { mirror: "inf-review", sentAtOnce: 100 });
    this.marks = true;
    this.lastReason = "";
    this.list = make("nav", "list");
    this.list.setAttribute("aria-label", "Groups");
    this.frame.insertBefore(this.list, this.root);
    this.frame.classList.add("bench");
  }

  forget() {
    super.forget();
    this.rows = [];
    this.details = new Map();
    this.gone = new Set();
    this.pending = new Map();
    this.bulk = null; // the box for them
    this.selected = new Map(); // rows by group, those of other pages of the list, too
    this.calls = new Map();
    this.callsOf = null;
    this.at = null;
    this.offset = 0;
    this.isTurned = false;
    this.isAtEnd = false;
    this.queue = null;
  }

  receive(component) {
    this.takeAnswers(component);
    const data = this.data;
    const isTurned = this.isTurned && data.offset === this.offset;
    const isOther = this.queue !== data.queue || isTurned;
    if (isOther) {
      if (this.queue !== data.queue) this.selected.clear();
      this.queue = data.queue;
      this.isTurned = false;
      this.details.clear();
      this.gone.clear();
      this.pending.clear();
      this.rows = data.rows;
      this.offset = data.offset;
    } else if (!this.isTurned) this.rows = this.merged(data.rows);
    for (const group of data.groups) this.takeDetail(group);
    for (const id of data.gone) this.gone.add(id);
    if (data.calls) this.calls.set(data.calls.group, data.calls.list);
    if (isOther) this.show((isTurned ? null : data.at) ?? this.rows[0]?.id ?? null);
    else this.refresh();
    if (this.isAtEnd && !this.outbox.size) this.continueQueue();
    this.drawList();
    this.drawAround();
    if (this.outbox.size || this.needs().length || this.isTurned) this.send();
  }

  takeDetail({ group: row, ...drawn }) {
    const group = {
      ...drawn,
      shown: row,
      id: row.id,
      review: row.review?.action ?? null,
      seen: row.review?.id ?? null,
    };
    // what is shown is newer than what the server knew: a decision, or one that is undone
    const isNews = (entry) => entry.group === group.id && entry.kind !== "validate";
    if ([...this.outbox.values()].some(isNews)) return;
    this.pending.delete(group.id);
    this.details.set(group.id, group);
    const listed = this.row(group.id);
    if (listed) Object.assign(listed, { review: group.review, review_id: group.seen });
  }

  merged(rows) {
    const fresh = new Map(rows.map((row) => [row.id, row]));
    const kept = this.rows.filter((row) => fresh.has(row.id) || this.decided.has(row.id));
    const merged = kept.map((row) => (this.isUnsent(row.id) ? row : (fresh.get(row.id) ?? row)));
    const known = new Set(kept.map((row) => row.id));
    return [...merged, ...rows.filter((row) => !known.has(row.id))].sort((a, b) => a.id - b.id);
  }

  isUnsent(id) {
    const pending = this.pending.get(id);
    return Boolean(pending && this.outbox.has(pending.event));
  }

  wasDecided(entry) {
    this.decided.add(entry.group);
  }

  alongside() {
    const wanted = [this.at, ...this.near()].filter((id) => id !== null && !this.gone.has(id));
    return { queue: this.queue, offset: this.offset, want: wanted, calls: this.callsOf };
  }

  isPending() {
    return (
      this.outbox.size > 0 || this.needs().length > 0 || this.isTurned || this.isValidating()
    );
  }

  needs() {
    return this.at !== null && !this.details.has(this.at) && !this.gone.has(this.at) ? [this.at] : [];
  }

  isValidating() {
    return Boolean(this.current?.columns.some((column) => column.state === "waiting" && column.validating));
  }

  near() {
    const place = this.place();
    return this.rows.slice(Math.max(0, place - 1), place + 1 + AHEAD).map((row) => row.id);
  }

  place() {
    return this.rows.findIndex((row) => row.id === this.at);
  }

  row(id) {
    return this.rows.find((row) => row.id === id);
  }

  // ---- moving

  move(step) {
    if (this.boxes) return;
    const next = this.rows[this.place() + step];
    if (next) {
      this.show(next.id);
      this.drawList();
    } else if (step > 0 && this.hasNextPage()) {
      this.turn(this.offset + this.data.page);
    } else if (step < 0 && this.offset > 0) {
      this.turn(Math.max(0, this.offset - this.data.page));
    } else this.say(step > 0 ? "This is the last group." : "This is the first group.");
    if (this.needs().length) this.send();
    else afterPaint(() => this.prefetch());
  }

  prefetch() {
    if (this.near().some((id) => !this.details.has(id) && !this.gone.has(id))) this.send();
  }

  hasNextPage() {
    return this.offset + this.data.page < this.data.total;
  }

  turn(offset) {
    this.offset = offset;
    this.isTurned = true;
    this.at = null;
    this.send();
  }

  // ---- deciding

  decide(kind, more = {}, ids = [this.at]) {
    if (!this.mayReview()) return;
    for (const id of ids) {
      this.dropRefusedValidations(id);
      const row = this.row(id) ?? this.selected.get(id);
      const seen = this.details.has(id) ? this.details.get(id).seen : row?.review_id ?? null;
      const event = newEventId();
      const entry = {
        event,
        kind,
        run: this.data.run,
        group: id,
        seen,
        after: this.pending.get(id)?.event ?? "",
        decided: new Date().toISOString(),
        ...more,
      };
      this.post(event, entry);
      this.decided.add(id);
      this.history.push({ id, entry, row: row && { ...row }, before: this.pending.get(id) });
      this.pending.set(id, entry);
      if (row) row.review = kind;
      if (this.details.has(id)) this.details.get(id).review = kind;
    }
    this.say(ids.length > 1 ? `${ids.length} groups ${DONE[kind]}.` : `Group ${ids[0]} ${DONE[kind]}.`);
    this.closeReason();
  }

  mayReview() {
    if (this.data.may_review) return true;
    this.say("You have no right to review groups of this dataset.");
    return false;
  }

  isReady() {
    if (!this.current) return false;
    if (!this.isTooSoon()) return true;
    this.say("Too fast: read the group first.");
    return false;
  }

  approve() {
    if (!this.isReady()) return;
    if (this.current.missing.length) {
      this.say(`This group lacks ${this.current.missing.join(", ")}: complete it with E first.`);
      return;
    }
    this.decide("approve");
    this.goOn();
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
    this.goOn();
  }

  goOn() {
    const next = this.rows[this.place() + 1];
    if (next) this.show(next.id);
    else {
      this.refresh(true);
      this.isAtEnd = true;
    }
    this.drawList();
    this.drawAround();
    afterPaint(() => this.send()); // what sending costs must not delay the next group
  }

  // The last group of the list was decided, and the server knows: a filtered queue has moved up, any
  // other goes on with its next page.
  continueQueue() {
    const next = this.rows[this.place() + 1];
    this.isAtEnd = false;
    if (this.boxes || !this.reasonRow.hidden || this.refused.size) return;
    if (next) this.show(next.id);
    else if (this.hasNextPage()) this.turn(this.offset + this.data.page);
  }

  openReason() {
    if (!this.isReady() || !this.mayReview()) return;
    this.closeEdit();
    this.reasonRow.hidden = false;
    this.reasonBox.value = this.lastReason;
    this.reasonBox.focus();
    this.reasonBox.select();
  }

  closeReason() {
    if (this.reasonRow) this.reasonRow.hidden = true;
  }

  undo() {
    const past = this.history.pop();
    if (past) {
      this.postUndo(past.id, { after: past.entry.event, seen: past.entry.seen });
      if (past.before) this.pending.set(past.id, past.before);
      else this.pending.delete(past.id);
      const row = this.row(past.id);
      if (row && past.row) Object.assign(row, past.row);
      const detail = this.details.get(past.id);
      if (detail) Object.assign(detail, { review: past.row?.review ?? null, seen: past.entry.seen });
      this.show(past.id);
    } else if (this.current?.mine) {
      this.postUndo(this.at, { after: "", seen: this.current.seen });
    } else {
      this.say("Nothing of yours to undo.");
      return;
    }
    this.drawList();
    this.drawAround();
    afterPaint(() => this.send());
  }

  postUndo(id, more) {
    const event = newEventId();
    this.post(event, {
      event,
      kind: "undo",
      run: this.data.run,
      group: id,
      decided: new Date().toISOString(),
      ...more,
    });
    this.say(`Group ${id}: your decision is undone.`);
  }

  validate() {
    if (!this.current) return;
    if (!this.data.may_validate) {
      this.say("Only who may curate this dataset can ask the validator.");
      return;
    }
    this.dropRefusedValidations(this.at);
    const event = newEventId();
    this.post(event, {
      event,
      kind: "validate",
      run: this.data.run,
      group: this.at,
      decided: new Date().toISOString(),
    });
    this.say("Asking the validator …");
    afterPaint(() => this.send());
  }

  // A refused validation is of the texts as they were: the next action on the group outdates it.
  dropRefusedValidations(id) {
    for (const [event, entry] of this.refused) {
      if (entry.kind !== "validate" || entry.group !== id) continue;
      this.refused.delete(event);
      this.erase("refused", event);
    }
  }

  // ---- editing

  openEdit(texts) {
    if (!this.current || !this.mayReview()) return;
    this.closeReason();
    this.frame.classList.add("editing");
    this.boxes = new Map();
    for (const [field, place] of this.places) {
      const box = make("textarea", "edit");
      box.dir = "auto";
      box.value = texts?.[field] ?? place.part.text;
      box.rows = Math.min(18, Math.max(2, Math.ceil(box.value.length / 46)));
      box.setAttribute("aria-label", place.part.label);
      box.readOnly = Boolean(place.part.is_fixed);
      box.placeholder = place.part.leaves ? "Taken out of the group" : "";
      const changes = make("div", "text changes");
      changes.dir = "auto";
      const compare = () => changes.replaceChildren(...this.changed(box.value, place.part));
      box.addEventListener("input", compare);
      compare();
      place.body.replaceChildren(box, changes);
      if (place.part.leaves) place.body.append(this.takeOutButton(box, place.part));
      for (const name of ["tabindex", "role", "aria-label"]) place.body.removeAttribute(name);
      this.boxes.set(field, box);
    }
    this.saveRow.hidden = false;
    this.boxes.values().next().value?.focus();
  }

  // A list's text is kept or taken out by itself: an empty one is no text of the group.
  takeOutButton(box, part) {
    const button = this.button("Take out", "tool", () => {
      box.value = box.value ? "" : part.text;
      box.dispatchEvent(new Event("input"));
    });
    button.setAttribute("aria-label", `Take out ${part.label}`);
    box.addEventListener("input", () => {
      button.textContent = box.value ? "Take out" : "Put back";
      button.setAttribute("aria-label", `${button.textContent} ${part.label}`);
    });
    return button;
  }

  // What the text has that its counterpart in the positive triplet has not, word by word.
  changed(text, part) {
    const known = new Set(part.other.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
    const pieces = text.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}]+/gu) ?? [];
    if (!part.other) return [];
    return pieces.map((piece) =>
      /[\p{L}\p{N}]/u.test(piece) && !known.has(piece.toLowerCase())
        ? make("mark", "", piece)
        : document.createTextNode(piece),
    );
  }

  closeEdit() {
    if (!this.boxes) return;
    this.boxes = null;
    this.frame.classList.remove("editing");
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
    this.closeEdit();
    this.refresh(true);
    this.drawList();
    this.drawAround();
    this.say(`Group ${this.at} edited. Approve it when the new text is correct.`);
    afterPaint(() => this.send());
  }

  // ---- several groups

  select(id, isSelected) {
    if (isSelected) this.selected.set(id, this.row(id));
    else this.selected.delete(id);
    this.drawList();
  }

  // The box for the selected groups: the same one, with what was typed and asked there, until the
  // groups or what is known of them change. The list is drawn anew with whatever the server sends.
  bulkBox() {
    if (!this.selected.size) return (this.bulk = null);
    const rows = [...this.selected].map(([id, row]) => this.row(id) ?? row);
    const facts = (row) => [row.id, row.review, row.verdict, row.is_complete];
    const known = JSON.stringify(rows.map(facts));
    if (this.bulk?.known !== known) {
      const typed = this.bulk?.box.querySelector("input").value ?? "";
      this.bulk = { known, box: this.drawBulk(rows, typed) };
    }
    return this.bulk.box;
  }

  drawBulk(rows, typed) {
    const box = make("div", "bulk");
    box.append(make("strong", "", `${rows.length} selected`));
    const reason = make("input");
    reason.type = "text";
    reason.value = typed;
    reason.maxLength = MAX_REASON;
    reason.placeholder = "reason, to reject";
    reason.setAttribute("aria-label", "Reason to reject the selected groups");
    const preview = make("div", "preview");
    preview.setAttribute("role", "status");
    const confirm = (kind) => {
      const able = kind === "approve" ? rows.filter((row) => row.is_complete) : rows;
      const text = reason.value.trim();
      if (kind === "reject" && !text) {
        this.say("A rejection needs a reason.");
        reason.focus();
        return;
      }
      const counts = new Map();
      for (const row of able) {
        const now = DONE[row.review] ?? "not reviewed";
        counts.set(now, (counts.get(now) ?? 0) + 1);
      }
      const verb = kind === "approve" ? "Approve" : "Reject";
      const lines = [...counts].map(([now, count]) => `${count} ${now}`).join(", ");
      const dropped = able.filter((row) => row.verdict === "dropped").length;
      preview.replaceChildren(
        make("p", "", `${verb} ${able.length}: now ${lines || "none"}.`),
        ...(kind === "approve" && dropped ? [make("p", "", `${dropped} of them rescued from being dropped.`)] : []),
        ...(able.length < rows.length
          ? [make("p", "", `${rows.length - able.length} lack texts and are left out.`)]
          : []),
      );
      if (!able.length) return;
      const yes = this.button(`${verb} ${able.length}`, "main", () => {
        this.decide(kind, kind === "reject" ? { reason: text } : {}, able.map((row) => row.id));
        this.selected.clear();
        this.refresh(true);
        this.drawList();
        this.drawAround();
        afterPaint(() => this.send());
      });
      preview.append(yes);
      yes.focus();
    };
    const tools = make("div", "tools-row");
    tools.append(
      this.button("Approve …", "tool", () => confirm("approve")),
      this.button("Reject …", "tool", () => confirm("reject")),
      this.button("Clear", "tool", () => {
        this.selected.clear();
        this.drawList();
      }),
    );
    box.append(reason, tools, preview);
    return box;
  }

  // ---- keys

  key(event) {
    if (!this.root.isConnected || event.repeat || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    const isOurs = target instanceof Node && this.frame.contains(target);
    const isTyping =
      target instanceof Element && target.closest('input:not([type="checkbox"]), textarea, select');
    if (isTyping && isOurs) return this.keyWhileTyping(event, target);
    if (isTyping || event.ctrlKey || (target instanceof Element && target.isContentEditable)) return;
    if (document.querySelector('[role="dialog"]')) return;
    const act = {
      j: () => this.move(1),
      k: () => this.move(-1),
      a: () => this.approve(),
      r: () => this.openReason(),
      e: () => this.openEdit(),
      v: () => this.validate(),
      u: () => this.undo(),
      x: () => this.at !== null && this.select(this.at, !this.selected.has(this.at)),
      d: () => this.toggleMarks(),
      m: () => this.toggleCalls(),
      "?": () => (this.help.hidden = !this.help.hidden),
      Escape: this.boxes ? () => this.closeEdit() : null,
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    this.take(event);
    act();
  }

  keyWhileTyping(event, target) {
    if (event.key === "Escape") {
      this.take(event);
      this.closeReason();
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

  toggleCalls() {
    if (!this.current?.shown.calls.length) {
      this.say("There are no model calls to show.");
      return;
    }
    this.callsOf = this.callsOf === this.at ? null : this.at;
    if (this.callsOf !== null && !this.calls.has(this.at)) this.send();
    this.drawCalls();
  }

  // ---- drawing

  show(id) {
    const hadFocus = this.hasFocus();
    this.at = id;
    this.isAtEnd = false;
    this.callsOf = null;
    this.boxes = null;
    this.frame.classList.remove("editing");
    this.draw();
    if (hadFocus) this.root.querySelector(".triplets, .nothing")?.focus?.({ preventScroll: true });
  }

  // Draw the group anew if the server sent something else; never over an edit or a reason.
  refresh(always = false) {
    const isBusy = this.boxes || (this.reasonRow && !this.reasonRow.hidden);
    if (isBusy && !always) return;
    if (this.at === null) this.at = this.rows[0]?.id ?? null;
    const now = this.at === null ? null : (this.details.get(this.at) ?? null);
    if (always || JSON.stringify(now) !== this.drawn) this.draw();
    else this.drawCalls();
  }

  draw() {
    const group = this.at === null ? null : (this.details.get(this.at) ?? null);
    const isNew = group?.id !== this.current?.id || this.paintedAt === null;
    const painted = [this.paintedAt, this.paintedDate];
    this.current = group;
    this.drawn = JSON.stringify(group);
    this.clear();
    this.root.dataset.group = group ? String(group.id) : "";
    this.drawHead();
    if (group) this.drawGroup(group);
    else this.root.appendChild(make("div", "nothing"));
    this.drawTools();
    this.drawAround();
    if (!group) return;
    if (isNew) this.startDwell(group);
    else {
      [this.paintedAt, this.paintedDate] = painted;
      this.root.dataset.painted = String(this.paintedAt);
    }
  }

  drawList() {
    const scrolled = this.list.querySelector("ul")?.scrollTop ?? 0;
    const focused = (this.parent.activeElement ?? document.activeElement)?.dataset?.row;
    const data = this.data;
    const last = Math.min(data.total, this.offset + this.rows.length);
    const count = data.total === 1 ? "1 group" : `${data.total.toLocaleString("en")} groups`;
    const head = make("div", "list-head");
    head.append(make("strong", "", count));
    if (data.total > data.page) {
      const before = this.button("‹", "tool", () => this.turn(Math.max(0, this.offset - data.page)));
      const after = this.button("›", "tool", () => this.turn(this.offset + data.page));
      before.setAttribute("aria-label", "Previous page of groups");
      after.setAttribute("aria-label", "Next page of groups");
      before.disabled = this.offset <= 0;
      after.disabled = !this.hasNextPage();
      head.append(before, make("span", "quiet", `${this.offset + 1}–${last}`), after);
    }
    const rows = make("ul", "rows");
    for (const row of this.rows) rows.appendChild(this.drawRow(row));
    const bulk = this.bulkBox();
    if (bulk && bulk.parentNode === this.list) {
      this.list.firstElementChild.replaceWith(head); // who types in the box goes on typing
      this.list.lastElementChild.replaceWith(rows);
    } else this.list.replaceChildren(head, ...(bulk ? [bulk] : []), rows);
    rows.scrollTop = scrolled;
    rows.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
    if (focused) rows.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
  }

  drawRow(row) {
    const line = make("li");
    const box = make("input");
    box.type = "checkbox";
    box.checked = this.selected.has(row.id);
    box.setAttribute("aria-label", `Select group ${row.id}`);
    box.dataset.row = `box-${row.id}`;
    box.addEventListener("change", () => this.select(row.id, box.checked));
    const button = this.button("", "row", () => {
      if (this.boxes) return;
      this.show(row.id);
      this.drawList();
      if (this.needs().length) this.send();
      else afterPaint(() => this.prefetch());
    });
    button.dataset.row = `row-${row.id}`;
    button.setAttribute("aria-current", String(row.id === this.at));
    const signs = make("span", "signs");
    if (row.verdict) signs.append(make("span", `label-badge ${row.verdict}`, row.verdict));
    if (row.review) signs.append(make("span", `label-badge ${DONE[row.review]}`, DONE[row.review]));
    const why = this.data.reasons[row.drop_reason];
    if (why) signs.append(make("span", "quiet", why));
    const query = make("span", "query", row.query);
    query.dir = "auto";
    button.append(query, signs);
    line.append(box, button);
    return line;
  }

  drawGroup(group) {
    const title = make("div", "title");
    title.append(make("strong", "", `Group ${group.id}`), make("span", "quiet", group.shown.name));
    const offline = group.shown.offline ? "offline" : null;
    for (const label of [group.shown.verdict, offline, DONE[group.review]]) {
      if (label) title.appendChild(make("span", `label-badge ${label}`, label));
    }
    this.root.appendChild(title);
    if (group.missing.length) {
      const note = make("p", "banner", `Lacks ${group.missing.join(", ")}. `);
      if (this.data.may_review) note.append(this.button("Write the missing texts", "link", () => this.openEdit()));
      this.root.appendChild(note);
    }
    for (const note of group.notes) this.root.appendChild(make("p", "words", note));
    this.places = new Map();
    this.bodies = [];
    const columns = make("div", "triplets");
    columns.tabIndex = -1;
    columns.setAttribute("role", "group");
    columns.setAttribute("aria-label", "Triplets");
    for (const column of group.columns) columns.appendChild(this.drawColumn(column));
    this.root.appendChild(columns);
    this.fillTexts();
    const was = group.shown.review;
    for (const [name, old] of Object.entries(was?.action === "edit" ? was.before : {})) {
      const details = make("details", "before");
      const text = make("div", "text whole", old);
      details.append(make("summary", "", `${name.replaceAll("_", " ")} before the edit`), text);
      this.root.appendChild(details);
    }
    this.callsBox = make("div", "calls");
    this.root.appendChild(this.callsBox);
    this.drawCalls();
  }

  drawColumn(column) {
    const section = make("section", "triplet");
    const pinned = make("div", "pinned");
    pinned.append(make("h2", "role", column.title), make("p", "scenario", column.scenario));
    if (column.says) pinned.append(make("p", `chip ${column.state}`, column.says));
    section.append(pinned);
    for (const part of column.parts) {
      const into = part.is_passage ? section : pinned;
      const label = make("h3", "label", part.label);
      label.title = part.meaning; // of the paper's symbol
      if (part.note) label.append(make("span", "quiet note", ` · ${part.note}`));
      into.appendChild(label);
      const body = make("div", "text");
      body.dir = "auto";
      into.appendChild(body);
      for (const each of part.is_new ? [label, body] : []) each.classList.add("while-editing");
      this.bodies.push({ body, part });
      if (part.field) this.places.set(part.field, { body, part });
    }
    return section;
  }

  fillTexts() {
    for (const { body, part } of this.bodies) {
      body.tabIndex = 0; // a text that scrolls has to be reached by keyboard, too
      body.setAttribute("role", "group");
      body.setAttribute("aria-label", part.label);
      if (!part.text) {
        body.replaceChildren(make("em", "quiet", "not written"));
        continue;
      }
      const pieces = part.pieces.map(([text, isNew]) =>
        isNew && this.marks ? make("mark", "", text) : document.createTextNode(text),
      );
      body.replaceChildren(...pieces);
    }
  }

  drawCalls() {
    if (!this.callsBox) return;
    if (this.callsOf !== this.at) {
      this.callsBox.replaceChildren();
      return;
    }
    const found = this.calls.get(this.at);
    if (!found) {
      this.callsBox.replaceChildren(make("p", "quiet", "Loading the calls …"));
      return;
    }
    const calls = found.map((call) => {
      const details = make("details", "call");
      details.append(make("summary", "", call.title));
      for (const [label, text] of call.parts) {
        details.append(make("h3", "label", label), make("div", "text whole", text));
      }
      return details;
    });
    this.callsBox.replaceChildren(...calls);
  }

  drawTools() {
    const tools = make("div", "tools");
    this.help = listOfKeys(KEYS);
    const group = this.current;
    if (group && this.data.may_review) {
      tools.append(
        this.button("Approve", "main", () => this.approve(), "A"),
        this.button("Reject", "tool", () => this.openReason(), "R"),
        this.button(group.missing.length ? "Complete" : "Edit", "tool", () => this.openEdit(), "E"),
      );
    }
    if (group && this.data.may_validate) tools.append(this.button("Validate", "tool", () => this.validate(), "V"));
    if (this.data.may_review) tools.append(this.button("Undo", "tool", () => this.undo(), "U"));
    if (group) {
      this.marksButton = this.button("Differences", "tool", () => this.toggleMarks(), "D");
      this.marksButton.setAttribute("aria-pressed", String(this.marks));
      tools.append(this.marksButton);
      if (group.shown.calls.length) tools.append(this.button("Calls", "tool", () => this.toggleCalls(), "M"));
    }
    tools.append(this.button("Help", "tool", () => (this.help.hidden = !this.help.hidden), "?"));
    this.reasonRow = make("div", "reason");
    this.reasonBox = make("input");
    this.reasonBox.type = "text";
    this.reasonBox.maxLength = MAX_REASON;
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
    tools.prepend(this.reasonRow, this.saveRow);
    this.root.append(this.help, tools);
  }

  drawAround() {
    if (!this.progress) return;
    const place = this.place();
    this.progress.textContent =
      place < 0 ? "" : `${this.offset + place + 1} of ${Math.max(this.data.total, place + 1)}`;
    this.drawProblems();
    const nothing = this.root.querySelector(".nothing");
    if (nothing) {
      nothing.textContent =
        this.at === null
          ? "No group matches. Choose another view or remove a filter."
          : this.gone.has(this.at)
            ? "This group is not shown to you."
            : "Loading the group …";
    }
    this.drawBadge();
  }

  problem(event, entry) {
    const line = make("div", "problem", `Group ${entry.group}: ${entry.why} `);
    if (entry.kind === "edit") {
      const again = this.button("edit again", "link", () => {
        this.pending.delete(entry.group);
        this.show(entry.group);
        this.drawList();
        this.openEdit(entry.texts);
      });
      if (this.details.has(entry.group)) line.append(again, " ");
      const details = make("details");
      details.append(make("summary", "", "your text"));
      for (const text of Object.values(entry.texts)) details.append(make("div", "text", text));
      line.append(details);
    }
    return line;
  }
}
