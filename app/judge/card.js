// The judging card: shows items leased in advance and takes decisions by key or mouse. Delivery to
// the server is in outbox_card.js, which precedes this file in the same module, and so do the texts
// in every language (CATALOGUE, DIRECTIONS: app/text/languages). Adjudication is a card that extends
// this one (studies/adjudication.js).
//
// Marks depend on the texts of an item alone, never on what the server knows of them.

const STOP_WORDS = new Set(
  ("about after again all also and any are because been before being below between both but can " +
    "did does down each else for from had has have her here his how into its just more most not " +
    "now off once only other our out over own passage passages relevant same she should some such " +
    "text than that the their them then there these they this those through too under until very " +
    "was were what when where which while who whom why will with would you your").split(" "),
);
const WORD = /([\p{L}\p{N}]+)/u;

// Actions whose key can be changed, with their first keys. C and R are Streamlit's.
const KEYS = {
  several: "v",
  ambiguous: "a",
  skip: "s",
  flag: "f",
  note: "n",
  message: "m",
  undo: "z",
  reveal: "w",
  shared: "h",
  differences: "d",
  help: "?",
};
const RESERVED = ["c", "r"];
const REASONS = ["unclear", "no_right_passage", "several_right", "bad_text", "other"];
const NOT_FOR_EXAMPLES = ["skip", "flag", "note", "message", "undo"];
const FIRST_ITEMS = 3; // that say what is asked
const STEPS = ["0", "0.25", "0.5", "0.75", "1"]; // of a score, by the keys 0 to 4
const SAME_CARD_MS = 120; // between answers on one card, whose texts are there already
const HEADER_PX = 58; // 3.75rem of 15 px, and a little
const KEY_SLOT = "inf-card-keys";

// An item of the same card as the one before comes without its texts.
function unfolded(items) {
  let last = null;
  return items.map((item) => {
    const { instruction, query, candidates, langs } = item.same ? last : item;
    last = withCard({ ...item, instruction, query, candidates, langs });
    return last;
  });
}

// Items with the same texts in the same order are one card, also where some were answered before.
function withCard(item) {
  const card = item.question ? JSON.stringify([item.instruction, item.query, item.candidates]) : item.token;
  return { ...item, card };
}

function wordsOf(text) {
  const found = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  return new Set(found.filter((word) => word.length > 2 && !STOP_WORDS.has(word)));
}

function allWords(text) {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || []);
}

// For each passage, the words of the other one that shares most with it (Jaccard).
function wordsOfNearest(candidates) {
  const sets = candidates.map(allWords);
  return sets.map((mine, place) => {
    let best = new Set();
    let most = -1;
    sets.forEach((theirs, other) => {
      if (other === place) return;
      const shared = [...mine].filter((word) => theirs.has(word)).length;
      const share = shared / (mine.size + theirs.size - shared || 1);
      if (share > most) [best, most] = [theirs, share];
    });
    return best;
  });
}

class JudgingCard extends OutboxCard {
  constructor(parent) {
    super(parent, { mirror: "inf-card", sentAtOnce: 200 });
    this.marks = null; // "shared" or "differences"
    this.capturing = null; // the action whose new key is awaited
    this.loadKeys();
  }

  forget() {
    super.forget();
    this.queue = [];
    this.changing = false;
    this.awaiting = null; // the event of an example whose feedback has not arrived
    this.feedback = null; // the correct answer, until the judge continues
    this.asking = null; // "skip" or "flag" while its reason is chosen
    this.wanted = null; // the token before which earlier answers were requested
  }

  // ---- texts

  t(key, values = {}) {
    return CATALOGUE[this.language || "en"][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
  }

  get words() {
    return {
      dismiss: this.t("card.dismiss"),
      unsent: this.t("card.unsent", { count: "{count}" }),
      saved: this.t("card.saved"),
    };
  }

  // ---- data from the server

  receive(component) {
    this.language = component.data.language;
    this.frame.lang = this.language;
    this.frame.dir = DIRECTIONS[this.language];
    if (component.data.signed_out) return this.drawSignIn(component);
    this.signIn?.remove();
    this.signIn = null;
    const before = this.current;
    this.takeAnswers(component);
    for (const [event, why] of Object.entries(this.data.notices || {})) this.refuse(event, { why, kept: true });
    this.queue = unfolded(this.data.items).filter((item) => !this.decided.has(item.token));
    const arrived = this.data.feedback?.find((one) => one.event === this.awaiting);
    if (this.awaiting && !this.outbox.has(this.awaiting)) this.awaiting = null;
    const stillMine = this.current && this.queue.some((item) => item.token === this.current.token);
    if (arrived) this.showFeedback(arrived);
    else if (this.awaiting || this.feedback || this.changing || stillMine) this.drawAround();
    else {
      this.show(this.queue[0] || null);
      if (before && this.current && !this.decided.has(before.token)) this.say(this.t("card.taken"));
    }
    if (this.wanted !== null && this.data.past_before === this.wanted) this.takePast();
    if (this.isPending()) this.send();
  }

  takePast() {
    this.wanted = null;
    const known = new Set(this.history.map((past) => past.item.token));
    const older = this.data.past
      .filter((past) => !known.has(past.item.token))
      .map(({ item, entry }) => ({ item: withCard(item), entry }));
    if (!older.length) return this.say(this.t("card.no_earlier"));
    this.history.unshift(...older.reverse());
    for (const past of older) this.decided.add(past.item.token);
    this.undo();
  }

  drawSignIn(component) {
    this.component = component;
    this.waiting = false;
    if (!this.frame.isConnected) this.parent.appendChild(this.frame);
    if (this.signIn) return;
    const before = () => {
      this.saveDraft();
      this.leaving = true;
    };
    this.signIn = signInForm(CATALOGUE[this.language], before);
    this.frame.prepend(this.signIn);
    this.signIn.scrollIntoView({ block: "center" });
    this.signIn.querySelector("input").focus({ preventScroll: true });
  }

  wasDecided(entry) {
    const isDecision = !["message", "reveal"].includes(entry.kind);
    if (entry.study === this.data.study && isDecision) this.decided.add(entry.token);
  }

  alongside() {
    return { before: this.wanted };
  }

  isPending() {
    return super.isPending() || this.wanted !== null;
  }

  // ---- a half-written item survives a reload of its tab

  saveDraft() {
    if (!this.current || !this.scope) return;
    const { token } = this.current;
    const { note, flagged, reason } = this;
    const message = this.messageBox ? this.messageBox.value : "";
    try {
      sessionStorage.setItem(this.slot("draft", ""), JSON.stringify({ token, note, flagged, reason, message }));
    } catch {
      this.unmirrored = true;
    }
  }

  draftOf(item) {
    try {
      const draft = JSON.parse(sessionStorage.getItem(this.slot("draft", "")));
      return draft && item && draft.token === item.token ? draft : null;
    } catch {
      return null;
    }
  }

  forgetDraft() {
    try {
      sessionStorage.removeItem(this.slot("draft", ""));
    } catch {
      this.unmirrored = true;
    }
  }

  // ---- deciding

  // The guard counts from when a card was painted; its questions follow each other faster.
  isTooSoon() {
    if (!this.isSameCard) return super.isTooSoon();
    return this.paintedAt === null || performance.now() - this.paintedAt < SAME_CARD_MS;
  }

  // An answer took as long as its card was read.
  shownDate() {
    if (!this.isSameCard || !this.cardDate) this.cardDate = this.paintedDate;
    return this.cardDate;
  }

  entryOf(item, kind, position, reason) {
    return {
      event: newEventId(),
      kind: item.round !== undefined ? "example" : kind,
      round: item.round,
      study: this.data.study,
      token: item.token,
      position,
      shown: this.shownDate().toISOString(),
      decided: new Date().toISOString(),
      note: this.note,
      flagged: this.flagged,
      reason: kind === "skip" ? reason : this.flagged ? this.reason : "",
      change: this.changing,
      guidelines: this.data.guidelines, // what was before the judge: it may have changed since
    };
  }

  // `position`: the place of a passage, null for none of them, or another answer as a text. A skip
  // is of all questions of the card that wait.
  decide(kind, position, reason = "") {
    const item = this.current;
    if (!item || this.data.message || this.awaiting || this.feedback) return;
    if (this.isTooSoon()) {
      this.say(this.t("card.too_fast"));
      return;
    }
    const isExample = item.round !== undefined;
    const waiting = this.queue.filter((one) => one.card === item.card && one !== item);
    const items = kind === "skip" && !this.changing ? [item, ...waiting] : [item];
    const entries = items.map((one) => this.entryOf(one, kind, position, reason));
    const [entry] = entries;
    for (const [place, one] of items.entries()) {
      this.post(entries[place].event, entries[place]);
      this.decided.add(one.token);
    }
    this.forgetDraft();
    this.asking = null;
    if (isExample) {
      this.awaiting = entry.event;
      this.drawBadge();
      this.say(this.t("card.you_chose", { answer: this.answerText(entry) }));
      afterPaint(() => this.outbox.size && this.send());
      return;
    }
    for (const [place, one] of items.entries()) {
      this.remember({ item: one, entry: entries[place] }, (past) => past.item.token === one.token);
    }
    this.changing = false;
    this.queue = this.queue.filter((other) => !items.some((one) => one.token === other.token));
    this.show(this.nextAfter(item));
    const answer = this.answerText(entry);
    const next = this.isSameCard
      ? ` ${this.t("card.next_question", { question: this.questionText(this.current) })}`
      : this.current ? ` ${this.t("card.new_item")}` : "";
    this.say((kind === "skip" ? this.t("card.skipped") : this.t("card.answered", { answer })) + next);
    afterPaint(() => this.outbox.size && this.send()); // sending must not delay showing the next item
  }

  answerText(entry) {
    if (entry.kind === "skip") return this.t("answers.skipped");
    return this.placeText(entry.position);
  }

  // What is left of the card comes first: it may be another's turn in the queue after an undo.
  nextAfter(item) {
    return this.queue.find((one) => one.card === item.card) || this.queue[0] || null;
  }

  placeText(position) {
    if (position === null) return this.t("card.none_low");
    if (typeof position === "string") {
      const name = { several: "card.several_low", ambiguous: "card.ambiguous_low", yes: "card.yes", no: "card.no" }[position];
      return name ? this.t(name) : position;
    }
    return this.t("card.passage_low", { number: position + 1 });
  }

  undo() {
    const at = this.changing
      ? this.history.findIndex((past) => past.item.token === this.current.token) - 1
      : this.history.length - 1;
    if (at < 0) {
      this.wanted = this.history.length ? this.history[0].item.token : "";
      this.say(this.t("card.loading_earlier"));
      this.send();
      return;
    }
    this.changing = true;
    this.show(this.history[at].item, this.history[at].entry);
  }

  advance() {
    if (!this.changing && !this.feedback) return;
    this.changing = false;
    this.feedback = null;
    this.show(this.current ? this.nextAfter(this.current) : this.queue[0] || null);
  }

  // Answer another passage of the card: one that waits, or one that was answered here.
  goTo(position) {
    const { card, question } = this.current;
    const isIt = (one) => one.card === card && one.about === position && one.question.name === question.name;
    const past = this.history.find(({ item }) => isIt(item));
    const waiting = this.queue.find(isIt);
    this.changing = Boolean(past);
    if (past || waiting) this.show(past ? past.item : waiting, past?.entry);
  }

  showFeedback(feedback) {
    this.feedback = feedback;
    this.show(this.current);
    this.root.querySelector(".go")?.focus({ preventScroll: true });
  }

  askReason(kind) {
    if (!this.current || this.feedback) return;
    if (kind === "flag" && this.flagged) return this.setFlag(false, "");
    this.asking = kind;
    const title = make("p", "label", this.t(kind === "skip" ? "card.why_skip" : "card.why_flag"));
    const choices = REASONS.map((reason, number) =>
      this.button(this.t(`reason.${reason}`), "tool", () => this.giveReason(reason), String(number + 1)),
    );
    choices.push(this.button(this.t("card.cancel"), "tool", () => this.closeReasons(), "Esc"));
    this.reasonRow.replaceChildren(title, ...choices);
    this.reasonRow.setAttribute("aria-label", title.textContent);
    this.reasonRow.hidden = false;
    choices[0].focus({ preventScroll: true });
    this.reasonRow.scrollIntoView({ block: "nearest" });
  }

  giveReason(reason) {
    const kind = this.asking;
    this.closeReasons();
    if (kind === "skip") this.decide("skip", null, reason);
    else this.setFlag(true, reason);
  }

  closeReasons() {
    this.asking = null;
    this.reasonRow.hidden = true;
    this.root.querySelector(".question")?.focus({ preventScroll: true });
  }

  setFlag(flagged, reason) {
    this.flagged = flagged;
    this.reason = reason;
    this.flagButton.setAttribute("aria-pressed", String(flagged));
    this.saveDraft();
    const message = flagged ? this.t("card.flagged", { reason: this.t(`reason.${reason}`) }) : null;
    this.say(message || this.t("card.unflagged"));
  }

  // ---- keys

  loadKeys() {
    this.keys = { ...KEYS };
    this.keysOff = false;
    try {
      const stored = JSON.parse(localStorage.getItem(KEY_SLOT)) || {};
      this.keysOff = stored.off === true;
      for (const action of Object.keys(KEYS)) {
        if (typeof stored[action] === "string" && stored[action].length === 1) this.keys[action] = stored[action];
      }
    } catch {
      this.unmirrored = true; // the first keys hold
    }
  }

  saveKeys() {
    try {
      localStorage.setItem(KEY_SLOT, JSON.stringify({ ...this.keys, off: this.keysOff }));
    } catch {
      this.unmirrored = true;
    }
  }

  key(event) {
    if (!this.root.isConnected || event.repeat || event.ctrlKey || event.metaKey || event.altKey)
      return;
    const target = event.composedPath()[0];
    const isTyping = target instanceof Element && target.closest("input, textarea, select");
    const isOurs = target === this.noteBox || target === this.messageBox;
    if (event.key === "Escape" && isOurs) return this.closeNote(event);
    if (isTyping || (target instanceof Element && target.isContentEditable)) return;
    if (document.querySelector('[role="dialog"]')) return;
    const act = this.capturing ? () => this.setKey(event.key) : this.actionOf(event);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  actionOf(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const isExample = this.current && this.current.round !== undefined;
    // digits by their place, too: some keyboards type them only with Shift
    const place = /^Digit\d$/.test(event.code) && !event.shiftKey ? event.code.slice(5) : null;
    const digit = /^\d$/.test(key) ? key : place;
    if (this.asking) {
      if (key === "Escape") return () => this.closeReasons();
      const reason = digit && !this.keysOff ? REASONS[Number(digit) - 1] : undefined;
      return reason ? () => this.giveReason(reason) : null;
    }
    if (key === "Escape") return this.changing || this.feedback ? () => this.advance() : null;
    if (this.keysOff) return null;
    if (key === "Enter") return this.feedback ? () => this.advance() : null;
    if (digit && this.current && !this.isPick()) {
      const found = this.optionsOf(this.current).find((option) => option.key === digit);
      return found ? () => this.decide("pick", found.answer) : null;
    }
    if (digit === "0") return () => this.decide("pick", null);
    if (digit) {
      const position = Number(digit) - 1;
      const exists = this.current && position < this.current.candidates.length;
      return exists ? () => this.decide("pick", position) : null;
    }
    const action = Object.keys(this.keys).find((name) => this.keys[name] === key);
    if (!action || (isExample && NOT_FOR_EXAMPLES.includes(action))) return null;
    return this.acts()[action] || null;
  }

  acts() {
    return {
      several: () => this.isPick() && this.decide("pick", "several"),
      ambiguous: () => this.decide("pick", "ambiguous"),
      skip: () => this.askReason("skip"),
      flag: () => this.askReason("flag"),
      note: () => this.openNote(),
      message: () => this.openThread(),
      undo: () => this.undo(),
      shared: () => this.toggleMarks("shared"),
      differences: () => this.toggleMarks("differences"),
      help: () => this.toggleHelp(),
    };
  }

  setKey(pressed) {
    const action = this.capturing;
    this.capturing = null;
    if (pressed === "Escape") return this.say("");
    const key = pressed.toLowerCase();
    const isTaken = Object.entries(this.keys).some(([name, its]) => name !== action && its === key);
    if (key.length !== 1 || /[\d\s]/.test(key) || RESERVED.includes(key) || isTaken) {
      return this.say(this.t("keys.is_taken"));
    }
    this.changeKeys({ ...this.keys, [action]: key }, this.keysOff);
    this.say(this.t("keys.is_set", { key: key.toUpperCase() }));
  }

  changeKeys(keys, off) {
    [this.keys, this.keysOff] = [keys, off];
    this.saveKeys();
    this.saveDraft();
    const at = this.changing && this.history.find((past) => past.item.token === this.current.token);
    this.show(this.current, at ? at.entry : undefined);
    if (this.current) this.toggleHelp();
  }

  keyOf(action) {
    return this.keysOff ? undefined : this.keys[action].toUpperCase();
  }

  toggleMarks(marks) {
    this.marks = this.marks === marks ? null : marks;
    for (const [name, button] of Object.entries(this.markButtons || {})) {
      button.setAttribute("aria-pressed", String(this.marks === name));
    }
    this.fillPassages();
    const message = { shared: "card.marked_shared", differences: "card.marked_unlike" }[this.marks];
    this.say(this.t(message || "card.unmarked"));
  }

  toggleHelp() {
    if (!this.helpButton) return;
    this.help.hidden = !this.help.hidden;
    this.helpButton.setAttribute("aria-expanded", String(!this.help.hidden));
    if (!this.help.hidden) this.help.scrollIntoView({ block: "nearest" });
  }

  openNote() {
    if (!this.current) return;
    this.noteRow.hidden = false;
    this.noteBox.focus();
  }

  openThread() {
    if (!this.current) return;
    this.threadRow.hidden = false;
    this.messageBox.focus();
  }

  closeNote(event) {
    event.preventDefault();
    event.stopPropagation();
    event.composedPath()[0].blur();
    this.noteRow.hidden = !this.note;
    this.threadRow.hidden = !this.messageBox.value && !this.threadList.childElementCount;
    this.root.querySelector(".question")?.focus({ preventScroll: true });
  }

  sendMessage() {
    const body = this.messageBox.value.trim();
    if (!body) return;
    const event = newEventId();
    const { study } = this.data;
    const decided = new Date().toISOString();
    this.post(event, { event, kind: "message", study, token: this.current.token, body, decided });
    (this.current.thread ||= []).push({ mine: true, body });
    this.fillThread();
    this.messageBox.value = "";
    this.saveDraft();
    this.drawBadge();
    this.say(this.t("card.sent_message"));
    this.send();
  }

  // ---- rendering

  isPick() {
    return (this.current?.question?.kind || "pick") === "pick";
  }

  // The answers of a question that is no pick, with their keys; a grade above 9 has none.
  optionsOf(item) {
    const { kind, labels } = item.question;
    if (kind === "yes_no") {
      return [["yes", "1"], ["no", "0"]].map(([answer, key]) => ({ answer, key, text: this.t(`card.${answer}`) }));
    }
    if (kind === "score") return STEPS.map((step, key) => ({ answer: step, key: String(key), text: step }));
    return labels.map(([answer, text]) => ({ answer, key: answer.length === 1 ? answer : null, text }));
  }

  // What is asked, and about which text: "What does it do? (passage 3)".
  questionText(item) {
    if (!item.question) return this.t("card.new_item");
    const about = typeof item.about === "number" ? "passage" : item.about;
    const where = about ? ` (${this.t(`card.about_${about}`, { number: item.about + 1 })})` : "";
    return `${item.question.text}${where}`;
  }

  show(item, past) {
    const hadFocus = this.hasFocus();
    this.isSameCard = Boolean(item && this.current && item !== this.current && item.card === this.current.card);
    this.current = item;
    this.asking = this.capturing = null;
    const draft = this.draftOf(item);
    this.flagged = draft ? draft.flagged : past ? past.flagged : false;
    this.reason = draft ? draft.reason : past ? past.reason : "";
    this.note = draft ? draft.note : past ? past.note : "";
    this.draftMessage = draft ? draft.message : "";
    this.clear();
    this.messageBox = this.helpButton = null;
    this.root.dataset.item = item ? item.token : "";
    this.bar = make("div", "bar");
    this.bar.setAttribute("aria-hidden", "true"); // the numbers above it tell the same
    this.bar.appendChild(make("span"));
    this.drawHead(this.bar);
    if (item) this.drawItem(item, past);
    else this.drawNothing();
    this.drawAround();
    if (hadFocus) this.root.querySelector(".question, .nothing")?.focus({ preventScroll: true });
    if (item) this.startDwell(item);
  }

  drawItem(item, past) {
    if (past) {
      const text = `${this.t("card.you_answered", { answer: this.answerText(past) })} `;
      const banner = make("div", "banner", text);
      banner.appendChild(this.button(this.t("card.continue_esc"), "link", () => this.advance()));
      this.root.appendChild(banner);
    }
    if (this.feedback) this.drawFeedback();
    this.pin(this.drawQuestion(item));
    const list = make("ol", "passages");
    list.setAttribute("aria-label", this.t("card.passages"));
    list.setAttribute("role", "list"); // Safari takes the role from a list without markers
    this.bodies = item.candidates.map((_, position) => {
      const [row, body] = this.drawPassage(item, position, past);
      list.appendChild(row);
      return body;
    });
    this.root.appendChild(list);
    this.fillPassages();
    if (item.question) this.drawAsk(item, past);
    this.drawBelow(item);
    this.drawTools(past);
  }

  // The question sticks below Streamlit's header (CSS); the class says when it does.
  pin(question) {
    const edge = make("div");
    this.root.append(edge, question);
    this.pinned?.disconnect();
    this.pinned = new IntersectionObserver(
      ([seen]) => question.classList.toggle("stuck", seen.boundingClientRect.top < HEADER_PX),
      { rootMargin: `-${HEADER_PX}px 0px 0px 0px` },
    );
    this.pinned.observe(edge);
  }

  drawQuestion(item) {
    const question = make("section", "question");
    question.tabIndex = -1;
    question.setAttribute("aria-label", this.t("card.item"));
    const parts = [
      ["instruction", item.instruction, item.langs[0]],
      ["query", item.query, item.langs[1]],
    ];
    for (const [name, text, lang] of parts) {
      if (!text && item.question) continue; // of a file; every item of a run has one
      const part = make("div", item.about === name ? "part about" : "part");
      const label = `card.${name}`;
      part.append(make("h2", "label", this.t(label)), this.textNode("p", text, lang));
      question.appendChild(part);
    }
    return question;
  }

  drawPassage(item, position, past) {
    const row = make("li", "passage");
    const number = position + 1;
    const isPick = this.isPick();
    const act = () => (isPick ? this.decide("pick", position) : this.goTo(position));
    const pick = this.button(String(number), "pick", act);
    if (isPick) {
      pick.setAttribute("aria-label", this.t("card.pick", { number }));
      if (!this.keysOff && number < 10) pick.setAttribute("aria-keyshortcuts", String(number));
    }
    const chip = isPick ? this.besideAnswer(item, position) : this.markPassage(item, position, row, pick);
    if (past && past.kind === "pick" && past.position === position) row.classList.add("chosen");
    if (this.feedback && this.feedback.chosen === position) row.classList.add("chosen");
    if (this.feedback && this.feedback.right === position) row.classList.add("right");
    const body = this.textNode("div", "", item.langs[2 + position]);
    body.tabIndex = 0; // long passages scroll: by keyboard, too
    body.setAttribute("role", "group");
    body.setAttribute("aria-label", this.t("card.passage", { number }));
    row.append(pick, body, ...chip);
    return [row, body];
  }

  // What an adjudicator sees of others' answers beside this one: nothing here.
  besideAnswer(item, answer) {
    return [];
  }

  // What stands below the question: nothing here.
  drawBelow(item) {}

  // The tools that a judge has and an example has not.
  ownTools(tool) {
    return [
      tool("skip", "card.skip"),
      this.flagButton,
      tool("note", "card.note"),
      tool("message", "card.message"),
      tool("undo", "card.undo"),
    ];
  }

  // Of a question about passages: which one is asked about, and what was answered about each.
  markPassage(item, position, row, pick) {
    const number = position + 1;
    const { card, question } = item;
    if (item.about === position) {
      row.classList.add("about");
      row.setAttribute("aria-current", "true");
    }
    const given = this.history.find(({ item: one, entry }) =>
      one.card === card && one.about === position && one.question.name === question.name && entry.kind === "pick");
    pick.disabled = typeof item.about !== "number" || item.round !== undefined;
    const answer = given && this.placeText(given.entry.position);
    pick.setAttribute("aria-label", given
      ? this.t("card.go_to_given", { number, answer })
      : this.t(pick.disabled ? "card.passage" : "card.go_to", { number }));
    if (!given) return [];
    const chip = make("span", "given", answer);
    chip.style.setProperty("--share", this.shareOf(item, given.entry.position));
    return [chip];
  }

  // Where an answer stands in its scale, 0 to 1; it colours the button and the mark.
  shareOf(item, answer) {
    const all = this.optionsOf(item).map((option) => option.answer);
    const place = item.question.kind === "yes_no" ? 1 - all.indexOf(answer) : all.indexOf(answer);
    return answer === "ambiguous" || all.length < 2 ? 0.5 : place / (all.length - 1);
  }

  // The question and its answers, at hand below the passages.
  drawAsk(item, past) {
    const ask = make("section", "ask");
    const of = this.cardItems(item);
    const number = of.findIndex((one) => one.token === item.token) + 1;
    const head = make("p", "label", of.length > 1 ? this.t("card.question_of", { number, count: of.length }) : "");
    const text = make("h2", "asked", this.questionText(item));
    text.dir = "auto";
    const answers = make("div", "answers");
    answers.setAttribute("role", "group");
    answers.setAttribute("aria-label", this.questionText(item));
    if (!this.isPick()) {
      for (const option of this.optionsOf(item)) {
        const key = this.keysOff ? undefined : option.key ?? undefined;
        const button = this.button(option.text, "answer", () => this.decide("pick", option.answer), key);
        button.style.setProperty("--share", this.shareOf(item, option.answer));
        if (past && past.kind === "pick" && past.position === option.answer) button.classList.add("chosen");
        if (this.feedback?.chosen === option.answer) button.classList.add("chosen");
        if (this.feedback?.right === option.answer) button.classList.add("right");
        button.append(...this.besideAnswer(item, option.answer));
        answers.appendChild(button);
      }
    }
    ask.append(head, text, answers);
    this.root.appendChild(ask);
  }

  // All questions of a card: those answered in this tab and those that wait, in their order.
  cardItems(item) {
    const past = this.history.map((one) => one.item).filter((one) => one.card === item.card);
    const waiting = this.queue.filter((one) => one.card === item.card);
    const tokens = new Set(past.map((one) => one.token));
    return [...past, ...waiting.filter((one) => !tokens.has(one.token))];
  }

  startDwell(shown) {
    if (!this.isSameCard) return super.startDwell(shown);
    this.root.querySelector(".about")?.scrollIntoView({ block: "nearest" });
    afterPaint(() => this.painted(shown));
  }

  textNode(tag, text, lang) {
    const node = make(tag, "text", text);
    node.dir = "auto";
    if (lang) node.lang = lang;
    return node;
  }

  drawFeedback() {
    const { chosen, right, explanation, then } = this.feedback;
    const isRight = this.feedback.is_right;
    const banner = make("div", `banner ${isRight ? "good" : "bad"}`);
    const answers = { answer: this.placeText(chosen), right: this.placeText(right) };
    const verdict = this.t(isRight ? "card.correct" : "card.incorrect", answers);
    banner.appendChild(make("strong", "", verdict));
    if (explanation) banner.appendChild(make("p", "why", explanation)).dir = "auto";
    if (then) banner.appendChild(make("p", "then", this.t(then)));
    banner.appendChild(this.button(this.t("card.continue"), "go", () => this.advance(), "Enter"));
    this.root.appendChild(banner);
    this.say(`${verdict} ${explanation}`);
  }

  fillPassages() {
    if (!this.current) return;
    const { instruction, query, candidates } = this.current;
    const shared = this.marks === "shared" && wordsOf(`${instruction} ${query}`);
    const nearest = this.marks === "differences" && wordsOfNearest(candidates);
    this.bodies.forEach((body, position) => {
      const text = candidates[position];
      if (!this.marks) {
        body.textContent = text;
        return;
      }
      const pieces = text.split(WORD).map((piece, number) => {
        const word = piece.toLowerCase();
        const isMarked =
          number % 2 === 1 && (shared ? shared.has(word) : !nearest[position].has(word));
        return isMarked ? make("mark", "", piece) : document.createTextNode(piece);
      });
      body.replaceChildren(...pieces);
    });
  }

  drawTools(past) {
    const tools = make("div", "tools");
    const isExample = this.current.round !== undefined;
    const acts = this.acts();
    const tool = (action, label) => {
      const button = this.button(this.t(label), "tool", acts[action], this.keyOf(action));
      button.dataset.action = action;
      return button;
    };
    this.flagButton = tool("flag", "card.flag");
    this.flagButton.setAttribute("aria-pressed", String(this.flagged));
    this.markButtons = {
      shared: tool("shared", "card.shared"),
      differences: tool("differences", "card.differences"),
    };
    for (const [name, button] of Object.entries(this.markButtons)) {
      button.setAttribute("aria-pressed", String(this.marks === name));
    }
    this.helpButton = tool("help", "card.help");
    this.helpButton.setAttribute("aria-expanded", "false");
    const none = this.button(
      this.t("card.none"), "none", () => this.decide("pick", null), this.keysOff ? undefined : "0",
    );
    const other = (name) => {
      const button = this.button(this.t(`card.${name}`), "other", acts[name], this.keyOf(name));
      const was = past ? past.kind === "pick" && past.position : this.feedback?.chosen;
      if (was === name) button.classList.add("chosen");
      button.append(...this.besideAnswer(this.current, name));
      return button;
    };
    const wasNone = past && past.kind === "pick" && past.position === null;
    if (wasNone || this.feedback?.chosen === null) none.classList.add("chosen");
    none.append(...this.besideAnswer(this.current, null));
    tools.append(
      ...(this.isPick() ? [none, other("several")] : []),
      other("ambiguous"),
      ...(isExample ? [] : this.ownTools(tool)),
      ...Object.values(this.markButtons),
      this.helpButton,
    );
    this.reasonRow = make("div", "reasons");
    this.reasonRow.setAttribute("role", "group");
    this.reasonRow.hidden = true;
    this.drawNote();
    this.drawThread();
    this.help = this.drawHelp();
    this.root.append(this.reasonRow, this.noteRow, this.threadRow, this.help, tools);
  }

  drawNote() {
    this.noteRow = make("label", "note", this.t("card.note_label"));
    this.noteBox = make("textarea");
    this.noteBox.rows = 2;
    this.noteBox.maxLength = 2000;
    this.noteBox.dir = "auto";
    this.noteBox.value = this.note;
    this.noteBox.addEventListener("input", () => {
      this.note = this.noteBox.value;
      this.saveDraft();
    });
    this.noteRow.appendChild(this.noteBox);
    this.noteRow.hidden = !this.note;
  }

  drawThread() {
    this.threadRow = make("section", "thread");
    this.threadRow.setAttribute("aria-label", this.t("card.thread"));
    this.threadList = make("ul", "messages");
    const box = make("label", "note", this.t("card.thread_box"));
    this.messageBox = make("textarea");
    this.messageBox.rows = 2;
    this.messageBox.maxLength = 2000;
    this.messageBox.dir = "auto";
    this.messageBox.value = this.draftMessage;
    this.messageBox.addEventListener("input", () => this.saveDraft());
    box.appendChild(this.messageBox);
    const send = this.button(this.t("card.send"), "tool", () => this.sendMessage());
    this.threadRow.append(make("p", "label", this.t("card.thread")), this.threadList, box, send);
    this.fillThread();
    this.threadRow.hidden = !this.draftMessage && !(this.current.thread || []).length;
  }

  fillThread() {
    const rows = (this.current.thread || []).map(({ mine, body }) => {
      const row = make("li");
      const text = make("span", "", body);
      text.dir = "auto";
      row.append(make("strong", "", `${this.t(mine ? "card.you" : "card.curator")}: `), text);
      return row;
    });
    this.threadList.replaceChildren(...rows);
    this.threadList.hidden = !rows.length;
  }

  drawHelp() {
    const help = make("section", "help");
    help.hidden = true;
    help.setAttribute("aria-label", this.t("keys.title"));
    const row = (key, label, ...more) => {
      const one = make("div");
      one.append(make("kbd", "", key), make("span", "", label), ...more);
      help.appendChild(one);
    };
    if (this.isPick()) {
      row("1 – 9", this.t("keys.pick"));
      row("0", this.t("keys.none"));
    } else row("0 – 9", this.t("keys.answer"));
    const acts = this.acts();
    for (const action of Object.keys(KEYS).filter((name) => acts[name])) {
      const what = this.keyText(action);
      const change = this.button(this.t("keys.change"), "link", () => {
        this.capturing = action;
        this.say(this.t("keys.press"));
      });
      change.setAttribute("aria-label", this.t("keys.change_for", { what }));
      row(this.keys[action].toUpperCase(), what, change);
    }
    const off = this.button(this.t(this.keysOff ? "keys.on" : "keys.off"), "tool", () => {
      this.changeKeys(this.keys, !this.keysOff);
      this.say(this.t(this.keysOff ? "keys.are_off" : "keys.are_on"));
    });
    const reset = this.button(this.t("keys.reset"), "tool", () => this.changeKeys({ ...KEYS }, false));
    const both = make("div", "both");
    both.append(off, reset);
    help.appendChild(both);
    return help;
  }

  keyText(action) {
    return this.t(`keys.${action}`);
  }

  drawNothing() {
    const nothing = make("div", "nothing", this.whyNothing());
    nothing.tabIndex = -1;
    this.root.appendChild(nothing);
    const tools = make("div", "tools");
    tools.appendChild(this.button(this.t("card.undo"), "tool", () => this.undo(), this.keyOf("undo")));
    this.help = make("div");
    this.root.append(tools);
    if (this.data) this.say(this.whyNothing(), true);
  }

  whyNothing() {
    if (this.data.message) return this.data.message;
    return this.t(this.data.finished ? "card.finished" : "card.loading");
  }

  drawAround() {
    this.drawProgress();
    this.drawProblems();
    if (this.data.replies) this.problems.prepend(make("div", "reply", this.t("card.replies")));
    const nothing = this.root.querySelector(".nothing");
    if (nothing) nothing.textContent = this.whyNothing();
    this.drawBadge();
  }

  // How many are answered and left, with what is not sent yet.
  counts() {
    const unsent = [...this.outbox.values()].filter(
      (entry) => entry.study === this.data.study && entry.kind === "pick" && !entry.change,
    ).length;
    return { done: this.data.done + unsent, left: Math.max(0, this.data.left - unsent) };
  }

  drawProgress() {
    const { done, left } = this.counts();
    const seconds = Math.round(this.data.pace);
    const pace = this.data.pace === null ? "" : ` · ${this.t("card.pace", { seconds })}`;
    const isNew = done < FIRST_ITEMS && this.current;
    const count = this.current?.candidates.length;
    const task = isNew && !this.current.question ? ` · ${this.t("card.task", { count })}` : "";
    const state = this.data.qualification;
    this.progress.textContent = state
      ? this.t("card.qualification", {
          round: state.round + 1,
          answered: state.answered,
          total: state.total,
          mark: Math.round(100 * state.pass_mark),
        })
      : `${this.t("card.progress", { done, left })}${pace}${task}`;
    const share = state ? state.answered / state.total : done / (done + left || 1);
    this.bar.firstChild.style.width = `${done + left || state ? 100 * share : 100}%`;
  }

  problem(event, entry) {
    const text = entry.kept ? entry.why : this.t("card.problem", { why: entry.why });
    return make("div", "problem", `${text} `);
  }
}
