/**
 * Activity: all that people have changed, and the joins and cuts of the stream, newest first, with
 * real times. Each change can be taken back where that is possible; where it is not, the row says why.
 */

import { button, called, counted, el, svg } from "./elements.js";
import { card, chip, confirmed, empty, payload } from "./parts.js";
import { ICONS, KINDS, plainSentence, sentence } from "./changewords.js";
import { clockOf, dayOf, timeElement, vectorTime } from "./times.js";
import { isTyping, offerKeys } from "./help.js";

const PAGE = 30; // changes fetched at a time
const MOST = 100; // changes that are fetched again after a change
const QUIET = 700; // milliseconds without news before the list is read again
const CLUSTERS = 3; // clusters shown in the details of a change
const EXEMPLARS = 4; // items shown of a cluster
const SOURCES = { "": "All", people: "People", stream: "The stream" };
/** @type {import("./help.js").KeyRows} */
const KEYS = [
  [["J", "K"], "Go to the next or the previous change"],
  [["Enter"], "Show or hide the details"],
  [["T"], "Take back the change, and nothing else"],
  [["U"], "Undo the change and everything after it"],
];

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new Activity(context);
  root.append(...view.parts);
  document.addEventListener("keydown", (event) => view.key(event), { signal: context.signal });
  await view.load();
  context.stream("live", view.news);
  return () => clearTimeout(view.waiting);
}

class Activity {
  constructor(context) {
    this.context = context;
    this.may = context.may("write");
    const [by, kind] = [context.query.get("by"), context.query.get("kind")];
    this.by = Object.hasOwn(SOURCES, by) ? by : "";
    this.kind = Object.hasOwn(KINDS, kind) ? kind : "";
    this.changes = [];
    this.next = null;
    this.open = new Set(); // events of changes with their details
    this.busy = false;
    this.asked = 0; // the newest request; older answers are dropped
    this.events = null;
    this.news = { changed: () => this.soon(), stats: ({ events }) => this.moved(events) };
    this.build();
  }

  build() {
    this.sources = el(
      "div",
      { class: "choice-bar", role: "group", "aria-label": "Whose changes" },
      ...Object.entries(SOURCES).map(([by, words]) =>
        button(words, () => this.choose({ by }), { data: { by }, class: "small" })
      ),
    );
    this.kinds = el(
      "select",
      { id: "change-kind", "aria-label": "Kind of change", class: "small-select" },
      el("option", { value: "" }, "All kinds"),
      ...Object.entries(KINDS).map(([kind, words]) => el("option", { value: kind }, words)),
    );
    this.kinds.value = this.kind;
    this.kinds.addEventListener("change", () => this.choose({ kind: this.kinds.value }));
    this.list = el("div", { class: "changes" });
    this.more = button("Older changes", () => this.older(), { hidden: true });
    this.spoken = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.parts = [
      el(
        "div",
        { class: "work-head" },
        el("h1", {}, "Activity"),
        el("div", { class: "buttons" }, offerKeys(this.context, "Activity", KEYS)),
      ),
      !this.may && el(
        "p",
        { class: "notice" },
        "Your token allows reading only: you see what happened, and cannot take anything back.",
      ),
      el("div", { class: "work-tools" }, this.sources, this.kinds),
      card("Changes", { class: "activity-card" }, this.list, this.more),
      this.spoken,
    ].filter(Boolean);
    this.mark();
  }

  mark() {
    for (const each of /** @type {Iterable<HTMLElement>} */ (this.sources.children)) {
      each.setAttribute("aria-pressed", String(each.dataset.by === this.by));
    }
  }

  /** Choose a filter and keep it in the address. */
  choose({ by = this.by, kind = this.kind }) {
    this.by = by;
    this.kind = kind;
    this.context.keep({ by, kind });
    this.mark();
    this.changes = [];
    this.load().catch(this.context.report);
  }

  /** Read the list again once the news pause. */
  soon() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.load().catch(() => {}), QUIET);
  }

  moved(events) {
    if (this.events !== null && events !== this.events && this.by !== "people") this.soon();
    this.events = events;
  }

  ask(query) {
    return this.context.get("activity", { by: this.by, kind: this.kind, ...query });
  }

  async load() {
    const mine = ++this.asked;
    const limit = Math.min(Math.max(this.changes.length, PAGE), MOST);
    const page = await this.ask({ limit });
    if (mine !== this.asked) return;
    this.take(page.changes, page);
    if (!page.complete) this.soon();
  }

  async older() {
    const mine = ++this.asked;
    try {
      const page = await this.ask({ limit: PAGE, before: this.next });
      if (mine === this.asked) this.take([...this.changes, ...page.changes], page);
    } catch (error) {
      this.context.report(error);
    }
  }

  take(changes, { next, complete }) {
    this.changes = changes;
    this.next = next;
    this.complete = complete;
    this.draw();
  }

  draw() {
    const at = /** @type {HTMLElement} */ (document.activeElement);
    this.newest = this.changes[0];
    const focused = /** @type {HTMLElement} */ (at?.closest?.(".change"))?.dataset.event;
    const action = at?.dataset?.action;
    this.list.replaceChildren(...(this.changes.length ? this.days() : [this.nothing()]));
    if (!this.complete) {
      this.list.prepend(el("p", { class: "quiet" }, "Still reading the history of this store…"));
    }
    this.more.hidden = this.next === null;
    if (focused === undefined) return;
    const row = this.list.querySelector(`.change[data-event="${focused}"]`);
    const again = action ? row?.querySelector(`[data-action="${action}"]`) : row;
    /** @type {HTMLElement} */ (again ?? row)?.focus({ preventScroll: true });
  }

  days() {
    const sections = [];
    let [heading, rows] = [null, null];
    for (const change of this.changes) {
      const at = change.time ?? change.after ?? Date.now() / 1000;
      const day = change.time !== null && change.after === null
        ? "Before this service kept times"
        : dayOf(at);
      if (day !== heading) {
        heading = day;
        rows = el("ol", { class: "change-rows" });
        sections.push(el("h2", { class: "day" }, day), rows);
      }
      rows.append(this.row(change));
    }
    return sections;
  }

  row(change) {
    const { event, undone } = change;
    const open = this.open.has(event);
    const toggle = button(open ? "Hide" : "Details", () => this.toggle(event), {
      class: "small quiet-button",
      data: { action: "details" },
      "aria-expanded": String(open),
    });
    const row = el(
      "li",
      {
        class: `change ${undone || ended(change) ? "undone" : ""}`,
        tabindex: "-1",
        data: { event: String(event), verb: change.verb },
      },
      el("span", { class: "change-time quiet figures" }, timeElement(change, clockOf(change))),
      el("span", { class: `change-icon ${change.automatic ? "auto" : ""}` }, icon(change.kind)),
      el(
        "div",
        { class: "change-words" },
        el(
          "p",
          {},
          ...this.sentence(change),
          (undone || ended(change)) && el("span", { class: "tag" }, "taken back"),
        ),
        this.whyNot(change),
      ),
      el("span", { class: "buttons change-buttons" }, ...this.actions(change), toggle),
    );
    if (open) row.append(this.details(change));
    return row;
  }

  /** Return a change in words; of a retraction also what it took back, if that is in the list. */
  sentence(change) {
    const event = change.verb === "retract" ? change.said.correction : null;
    const other = event !== null && this.changes.find((each) => each.event === event);
    const taken = other ? sentence(this.context, other) : null;
    return sentence(this.context, { ...change, taken });
  }

  actions(change) {
    if (!this.may) return [];
    const make = (action, words, title) =>
      button(words, () => this.run(action, change), {
        class: "small",
        data: { action },
        title,
        "aria-label": `${words}: ${plainSentence(this.context, change)}`,
      });
    return [
      change.retract.possible && make("retract", "Take back", "This correction alone"),
      change.undo.possible &&
      make(
        "undo",
        change === this.newest && !change.vectors_since ? "Undo" : "Undo from here",
        "This change and everything after it",
      ),
      change.redo && make("redo", "Redo", "What this undo took"),
    ].filter(Boolean);
  }

  /** Return why a change of a person cannot be taken back, where nothing else is possible. */
  whyNot(change) {
    const { undo, retract, redo, undone, automatic } = change;
    if (undo.possible || retract.possible || redo || undone || automatic) return null;
    return el("p", { class: "quiet small-text" }, undo.why || retract.why);
  }

  toggle(event) {
    if (!this.open.delete(event)) this.open.add(event);
    this.draw();
  }

  details(change) {
    const { undo, retract } = change;
    const reasons = [...new Set([retract.why, undo.why].filter(Boolean))];
    const box = el("div", { class: "change-details" });
    for (const { id, name } of change.clusters.slice(0, CLUSTERS)) {
      box.append(this.exemplars(id, name));
    }
    box.append(
      el(
        "p",
        { class: "quiet small-text" },
        timeElement(change),
        change.command ? `, by the command ${change.command}` : "",
        ". ",
        undo.possible && change.vectors_since
          ? `${counted(change.vectors_since, "vector")} came since. `
          : "",
        reasons.join(" "),
      ),
    );
    return box;
  }

  /** Return a row of items of a cluster; it fills when they have arrived. */
  exemplars(id, name) {
    const items = el("ul", { class: "strip" });
    this.context.get(`clusters/${id}/vectors`, { limit: EXEMPLARS }).then(
      ({ vectors }) =>
        items.append(
          ...vectors.map((each) =>
            el("li", {}, payload(this.context, each.payload), vectorTime(each.time))
          ),
        ),
      () => items.append(el("li", { class: "quiet" }, "not there any more")),
    );
    const label = `Vectors of ${called(id, name)}`;
    const link = chip(this.context, id, name);
    return el("section", { class: "strip-of", "aria-label": label }, link, items);
  }

  async run(action, change) {
    if (this.busy) return;
    this.busy = true;
    try {
      const words = plainSentence(this.context, change);
      if (action === "retract") await this.context.post("retract", { correction: change.event });
      else if (action === "redo") await this.context.post("redo", {});
      else if (!(await this.undo(change))) return;
      this.context.say(action === "redo" ? "Brought back" : `Taken back: ${words}`);
      await this.load();
      this.spoken.textContent = `Taken back: ${words}`;
    } catch (error) {
      this.context.report(error);
      await this.load().catch(this.context.report);
    } finally {
      this.busy = false;
    }
  }

  /** Undo a change and all after it; ask first if there is something after it. */
  async undo(change) {
    const { event, until, vectors_since: later } = change;
    try {
      await this.context.post("undo", { to: event, after: until });
      return true;
    } catch (error) {
      if (error.kind !== "undo") throw error;
    }
    const items = later
      ? `${counted(later, "vector")} came after this change: they would be gone `
      : "";
    const goes = await confirmed(
      "Undo everything since?",
      `Undo goes back to the moment before this change. ${items}` +
        (items ? "and have to be sent again. " : "") +
        "All later changes are taken back, too. Redo brings them back, until something else changes.",
      "Undo all",
      "Leave it",
    );
    if (goes) await this.context.post("undo", { to: event });
    return goes;
  }

  key(event) {
    if (isTyping(event) || document.querySelector("dialog[open]")) return;
    const rows = /** @type {HTMLElement[]} */ ([...this.list.querySelectorAll(".change")]);
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const step = { j: 1, k: -1 }[event.key];
    if (step && rows.length) {
      event.preventDefault();
      rows[Math.min(Math.max(at + step, 0), rows.length - 1)].focus();
      return;
    }
    const wanted = { t: "retract", u: "undo" }[event.key];
    if (wanted) rows[at]?.querySelector(/** @type {any} */ (`[data-action="${wanted}"]`))?.click();
    if (event.key === "Enter" && document.activeElement === rows[at]) {
      this.toggle(Number(rows[at].dataset.event));
    }
  }

  nothing() {
    if (this.by || this.kind) {
      const all = button("Show all changes", () => {
        this.kinds.value = "";
        this.choose({ by: "", kind: "" });
      }, { class: "main" });
      return empty("No such changes", all);
    }
    return empty(
      "Nothing has changed yet",
      el(
        "p",
        {},
        "Names, joins, cuts and moves appear here, with what the stream joins by itself.",
      ),
    );
  }
}

const CORRECTIONS = ["same", "different", "move"];

/** Return whether a correction does not hold any more, although no undo took it. */
const ended = ({ verb, automatic, retract }) =>
  !automatic && CORRECTIONS.includes(verb) && !retract.possible;

const icon = (kind) =>
  svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[kind] }));
