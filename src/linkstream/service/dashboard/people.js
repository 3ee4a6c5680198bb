/**
 * People: the clusters of a namespace as cards or as a table, with a search, filters and an order.
 *
 * The address keeps what is shown: `as`, `order`, `filter`, `since`, `q`.
 */

import { button, counted, el, number } from "./elements.js";
import { addLine, empty } from "./parts.js";
import { personCard, tableRow } from "./peoplecards.js";
import { fillTimes } from "./times.js";
import { Selection } from "./selection.js";
import { selectionBar } from "./peoplebar.js";

const ORDERS = [
  ["size", "Biggest first"],
  ["recent", "Newest first"],
  ["name", "By name"],
  ["id", "By ID"],
];
const FILTERS = [
  ["", "All"],
  ["unnamed", "Without a name"],
  ["named", "With a name"],
  ["single", "Only one vector"],
  ["ignored", "Ignored"],
];
const DAY = 86_400_000; // milliseconds
const SINCE = [["", "At any time"], ["1", "Last day"], ["7", "Last week"], ["30", "Last month"]];
const NEWEST = [["100", "Newest 100 vectors"], ["1000", "Newest 1,000 vectors"]];
const PAGE = 48;
const SHOWN = 4; // vectors to look at of each cluster
const TYPING = 200; // milliseconds from the last keystroke to the search

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function showList(root, context) {
  const list = new People(context);
  root.append(...list.parts);
  await list.load();
  return () => list.end();
}

const stay = (event) => event.preventDefault();
const options = (pairs) => pairs.map(([value, title]) => el("option", { value }, title));

class People {
  constructor(context) {
    this.context = context;
    this.shown = 0;
    this.asked = 0;
    this.total = 0;
    this.most = 1;
    this.loading = false;
    this.clusters = new Map();
    const given = context.query;
    this.as = given.get("as") === "table" ? "table" : "cards";
    this.search = el("input", {
      id: "search",
      type: "search",
      placeholder: "Name, ID, key or words",
      autocomplete: "off",
      maxlength: 200,
      value: given.get("q") ?? "",
      on: { input: () => this.typed() },
    });
    this.order = this.select("order", "Order", ORDERS);
    this.filter = this.select("filter", "Show", FILTERS);
    this.since = this.select("since", "Changed", [...SINCE, ...NEWEST]);
    this.selection = new Selection(() => this.marked());
    this.bar = selectionBar(context, this.selection, this.clusters, () => this.load());
    this.list = el("ul", { class: this.as === "table" ? "clusters" : "people" });
    this.told = el("p", { class: "quiet", role: "status" });
    this.more = button("Show more", () => this.load(this.shown), { hidden: true });
    this.watch = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && this.next(),
      { rootMargin: "600px" },
    );
    this.watch.observe(this.more);
    this.frame = el("section", { "aria-label": "Clusters" }, this.list);
    this.parts = [
      this.head(),
      this.frame,
      el("div", { class: "buttons centred" }, this.more),
      this.bar.node,
    ];
    this.dress();
  }

  select(name, label, pairs) {
    const given = this.context.query.get(name) ?? pairs[0][0];
    const box = el(
      "select",
      { id: name, "aria-label": label, on: { change: () => this.changed() } },
      ...options(pairs),
    );
    box.value = pairs.some(([value]) => value === given) ? given : pairs[0][0];
    return box;
  }

  head() {
    const way = (as, title) =>
      button(title, () => this.show(as), {
        class: "small",
        data: { as },
        "aria-pressed": String(this.as === as),
      });
    this.ways = [way("cards", "Cards"), way("table", "Table")];
    const label = { class: "unseen", for: "search" };
    return el(
      "div",
      { class: "people-head" },
      el(
        "div",
        { class: "people-title" },
        el("h1", {}, "People"),
        this.told,
        el("span", { class: "spread" }),
        el("a", { href: this.context.link("rebuild") }, "Rebuild…"),
        el("div", { class: "switch", role: "group", "aria-label": "Layout" }, ...this.ways),
      ),
      el(
        "form",
        { class: "people-filters", role: "search", on: { submit: stay } },
        el("label", label, "Search by name, ID, key or words of payloads"),
        this.search,
        this.filter,
        this.since,
        this.order,
      ),
    );
  }

  end() {
    clearTimeout(this.timer);
    this.watch.disconnect();
    this.bar.end();
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed(), TYPING);
  }

  changed() {
    const values = {
      q: this.search.value.trim(),
      order: this.order.value === "size" ? "" : this.order.value,
      filter: this.filter.value,
      since: this.since.value,
    };
    this.context.keep(values);
    return this.load().catch(this.context.report);
  }

  show(as) {
    if (this.as === as) return;
    this.as = as;
    this.context.keep({ as: as === "cards" ? "" : as });
    for (const each of this.ways) each.setAttribute("aria-pressed", String(each.dataset.as === as));
    this.dress();
    this.load().catch(this.context.report);
  }

  dress() {
    this.list.replaceChildren();
    this.list.className = this.as === "table" ? "clusters" : "people";
    this.frame.className = this.as === "table" ? "card flush" : "";
  }

  /** Return the moment from which vectors count, as the route takes it. */
  async moment() {
    const value = this.since.value;
    if (!value) return "";
    if (NEWEST.every(([newest]) => newest !== value)) {
      const midnight = new Date(new Date().setHours(0, 0, 0, 0) - (Number(value) - 1) * DAY);
      return midnight.toISOString();
    }
    const path = `/v1/namespaces/${encodeURIComponent(this.context.namespace)}`;
    const { vectors } = await this.context.api.get(path, {}, this.context.signal);
    return String(Math.max(0, vectors - Number(value)));
  }

  next() {
    if (this.loading || this.more.hidden) return;
    this.load(this.shown).catch(this.context.report);
  }

  async load(offset = 0) {
    const mine = ++this.asked;
    this.loading = true;
    this.list.setAttribute("aria-busy", "true");
    try {
      const answer = await this.context.get("clusters", {
        order: this.order.value,
        filter: this.filter.value,
        since: await this.moment(),
        q: this.search.value.trim(),
        limit: PAGE,
        offset,
        exemplars: this.as === "table" ? "" : SHOWN,
      });
      if (mine === this.asked) this.draw(answer, offset);
    } finally {
      if (mine === this.asked) {
        this.loading = false;
        this.list.removeAttribute("aria-busy");
        this.again();
      }
    }
  }

  /** Load the next page if the end of the list is still visible: it may be a short page. */
  again() {
    if (this.more.hidden) return;
    this.watch.unobserve(this.more);
    this.watch.observe(this.more);
  }

  draw({ total, clusters, searched }, offset) {
    if (!offset) {
      this.clusters.clear();
      this.most = Math.max(...clusters.map((cluster) => cluster.size), 1);
    }
    clusters.forEach((cluster) => this.clusters.set(cluster.id, cluster));
    const make = this.as === "table" ? tableRow : personCard;
    const nodes = clusters.map((cluster) => make(this.context, cluster, this));
    if (offset) this.list.append(...nodes);
    else this.list.replaceChildren(...nodes);
    fillTimes(this.context, this.list);
    this.shown = offset + clusters.length;
    this.total = total;
    this.more.hidden = this.shown >= total || !clusters.length;
    this.told.textContent = this.words(searched);
    this.selection.among([...this.clusters.keys()]);
    if (!total) this.list.replaceChildren(el("li", { class: "nothing" }, this.nothing()));
  }

  words(searched) {
    const count = counted(this.total, "cluster");
    if (!this.search.value.trim() || searched.includes("payloads")) return count;
    return `${count}; ${searched.join(" and ")} were searched, payloads have no search index`;
  }

  /** Focus the field for the name of a cluster, if it is shown. */
  focusName(cluster) {
    if (cluster === null) return;
    const card = this.list.querySelector(`[data-cluster="${cluster}"]`);
    /** @type {HTMLElement|null} */ (card?.querySelector(".name-field"))?.focus();
  }

  marked() {
    for (const node of this.list.querySelectorAll("[data-cluster]")) {
      const on = this.selection.has(Number(/** @type {HTMLElement} */ (node).dataset.cluster));
      node.classList.toggle("selected", on);
      const box = /** @type {HTMLInputElement|null} */ (node.querySelector(".pick"));
      if (box) box.checked = on;
    }
    this.bar.draw();
  }

  nothing() {
    const wanted = this.search.value.trim() || this.filter.value || this.since.value;
    if (!wanted) {
      const send = el(
        "a",
        { class: "button-link", href: this.context.link("begin") },
        "Send a file",
      );
      const words = el("p", {}, "Send a file of vectors, or add one from a program:");
      return empty("No clusters yet", words, el("p", {}, send), addLine(this.context));
    }
    const clear = () => {
      [this.search.value, this.filter.value, this.since.value] = ["", "", ""];
      this.changed();
    };
    return empty(
      "Nothing found",
      el("p", {}, "No cluster passes this search and these filters."),
      button("Show all clusters", clear),
    );
  }
}
