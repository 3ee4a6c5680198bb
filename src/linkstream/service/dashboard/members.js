/**
 * The vectors of a cluster as a grid: select one or several, then move them to another cluster, cut
 * them out into a new one, or remove them. Each is one undoable step.
 */

import { button, called, counted, el, foreign, number } from "./elements.js";
import { card, confirmed, payload } from "./parts.js";
import { correct, offerUndo } from "./corrections.js";
import { fillTimes, timeOf } from "./times.js";
import { onPick, Selection } from "./selection.js";
import { targets } from "./targets.js";
import { whyPanel } from "./why.js";

const PAGE = 24; // vectors fetched at a time
const SIZE = 144; // pixels of a picture
const MARKED = 8; // vectors from which on some of a cluster are called central or doubtful
const MARKS = {
  central: ["accent", "among the most central"],
  doubtful: ["warn", "among the most doubtful"],
};

/** Return the card with the vectors of a cluster and their payloads, newest first. */
export async function members(context, found) {
  const grid = new Members(context, found);
  try {
    await grid.load();
  } catch (error) {
    if (error.kind !== "not-tracked") throw error;
    grid.list.replaceWith(
      el("p", { class: "quiet" }, "This namespace does not track vectors, only subclusters."),
    );
    grid.bar.remove();
  }
  return grid.card;
}

class Members {
  constructor(context, { id, cluster, exemplars }) {
    this.context = context;
    this.id = id;
    this.cluster = cluster;
    this.exemplars = exemplars;
    this.before = undefined;
    this.list = el("ul", { class: "members" });
    this.told = el("span", { class: "quiet small-text", role: "status" }, "newest first");
    this.panel = el("div", { class: "action-form", hidden: true });
    this.selection = new Selection(() => this.marked());
    this.more = button("Show older ones", () => this.next(), { hidden: true });
    this.bar = this.makeBar();
    this.card = card(
      "Vectors",
      { more: this.told, class: "members-card" },
      this.bar,
      this.panel,
      this.list,
      el("div", { class: "buttons centred" }, this.more),
    );
    this.marked();
  }

  makeBar() {
    const may = this.context.may("write");
    const make = (title, click, kind = "") =>
      button(title, click, { class: `small ${kind}`, data: { may: String(may) } });
    this.why = make("Why here?", () => this.explain());
    this.acts = [
      make("Move to…", () => this.move(), "main"),
      make("Cut out", () => this.cut()),
      make("Remove…", () => this.remove(), "danger"),
    ];
    this.all = make("Select all shown", () => this.selection.all(), "plain");
    this.none = make("Clear", () => this.selection.clear(), "plain");
    const all = [...this.acts, this.why, this.all, this.none];
    return el("div", { class: "buttons members-bar" }, ...all);
  }

  marked() {
    const { size } = this.selection;
    for (const act of this.acts) act.disabled = !size || !this.context.may("write");
    this.why.disabled = size !== 1;
    this.none.hidden = !size;
    this.told.textContent = size ? `${counted(size, "vector")} selected` : "newest first";
    for (const box of this.list.querySelectorAll(".pick")) {
      const input = /** @type {HTMLInputElement} */ (box);
      input.checked = this.selection.has(Number(input.value));
      input.closest(".member").classList.toggle("selected", input.checked);
    }
    if (!size) this.close();
  }

  close() {
    this.panel.hidden = true;
    this.panel.replaceChildren();
  }

  open(...nodes) {
    this.panel.replaceChildren(...nodes);
    this.panel.hidden = false;
    this.panel.querySelector("input")?.focus();
    this.panel.scrollIntoView({ block: "nearest" });
  }

  next() {
    this.load().catch((error) => {
      this.more.disabled = false;
      this.context.report(error);
    });
  }

  async load() {
    this.more.disabled = true;
    const wanted = { limit: PAGE, before: this.before };
    const { vectors, next } = await this.context.get(`clusters/${this.id}/vectors`, wanted);
    this.list.append(...vectors.map((vector) => this.member(vector)));
    fillTimes(this.context, this.list);
    this.before = next;
    this.more.hidden = next === null;
    this.more.disabled = false;
    this.selection.among([...this.selection.order, ...vectors.map(({ vector }) => vector)]);
  }

  member({ vector, id: key, time, payload: said }) {
    const marks = this.cluster.size < MARKED
      ? []
      : Object.entries(MARKS).filter(([kind]) => this.exemplars?.[kind]?.includes(vector));
    const name = key === null ? `vector ${number(vector)}` : `vector ${number(vector)}, ${key}`;
    const box = el("input", {
      type: "checkbox",
      class: "pick",
      value: vector,
      "aria-label": `Select ${name}`,
    });
    onPick(box, (on, range) => this.selection.set(vector, on, range));
    return el(
      "li",
      { class: "member" },
      el(
        "label",
        { class: "member-look" },
        box,
        payload(this.context, said, { size: SIZE }),
        el(
          "span",
          { class: "member-foot quiet small-text figures" },
          key === null ? `no. ${number(vector)}` : foreign(key, 40),
          timeOf({ vector, time }),
          ...marks.map(([kind, [tone, words]]) =>
            el("span", { class: `tag ${tone}`, title: words }, kind)
          ),
        ),
      ),
    );
  }

  async run(route, body, words) {
    try {
      const done = await correct(this.context, route, body, words);
      offerUndo(this.context, done, () => this.context.navigate("cluster", this.id));
      if (this.selection.size < this.cluster.size) this.context.refresh();
      else this.context.navigate("cluster");
    } catch (error) {
      this.context.report(error);
    }
  }

  move() {
    const vector = this.selection.items;
    const words = counted(vector.length, "vector");
    const choose = (other) =>
      this.run(
        "move",
        { vector, cluster: other.id },
        `Moved ${words} to ${called(other.id, other.name)}`,
      );
    const wanted = {
      label: `Move ${words} to`,
      verb: "Move here",
      nearest: { vectors: vector.slice(0, 500).join(",") },
      without: this.id,
      choose,
      close: () => this.close(),
    };
    this.open(targets(this.context, wanted));
  }

  cut() {
    const vector = this.selection.items;
    const words = `Cut ${counted(vector.length, "vector")} out into a new cluster`;
    return this.run("move", { vector, cluster: -1 }, words);
  }

  async remove() {
    const vector = this.selection.items;
    const words = counted(vector.length, "vector");
    const goes = await confirmed(
      `Remove ${words}?`,
      "They are taken out exactly, as if they had never been added. Undo brings them back until " +
        "the store is compacted.",
      "Remove",
      "Keep",
    );
    if (goes) this.run("remove", { vector }, `Removed ${words}`);
  }

  async explain() {
    const [vector] = this.selection.items;
    try {
      const why = await this.context.get(`vectors/${vector}/why`);
      this.open(whyPanel(this.context, why, () => this.close()));
    } catch (error) {
      this.context.report(error);
    }
  }
}
