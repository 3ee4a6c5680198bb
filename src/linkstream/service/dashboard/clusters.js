/** The list of clusters, with a search by name or ID. */

import { button, counted, el, number } from "./elements.js";
import { addLine, chip, empty } from "./parts.js";

const ORDERS = [["size", "Biggest first"], ["recent", "Newest first"], ["id", "By ID"]];
const PAGE = 50;
const TYPING = 200; // milliseconds from the last keystroke to the search

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function showList(root, context) {
  const list = new List(context);
  root.append(...list.parts);
  await list.load();
  return () => clearTimeout(list.timer);
}

const stay = (event) => event.preventDefault();

class List {
  constructor(context) {
    this.context = context;
    this.shown = 0;
    this.asked = 0;
    this.search = el("input", {
      id: "search",
      type: "search",
      placeholder: "Name or ID",
      autocomplete: "off",
      maxlength: 200,
      on: { input: () => this.typed() },
    });
    this.order = el(
      "select",
      { id: "order", on: { change: () => this.load() } },
      ...ORDERS.map(([value, title]) => el("option", { value }, title)),
    );
    this.total = el("p", { class: "quiet", role: "status" });
    this.rows = el("ul", { class: "clusters" });
    this.more = button("Show more", () => this.load(this.shown), { hidden: true });
    this.parts = [
      el(
        "div",
        { class: "list-head" },
        el("h1", {}, "Clusters"),
        this.total,
        el("a", { href: context.link("rebuild") }, "Rebuild…"),
        el(
          "form",
          { class: "filters", role: "search", on: { submit: stay } },
          el("label", { class: "unseen", for: "search" }, "Search by name or ID"),
          this.search,
          el("label", { class: "unseen", for: "order" }, "Order"),
          this.order,
        ),
      ),
      el("section", { class: "card flush", "aria-label": "Clusters" }, this.rows),
      el("div", { class: "buttons centred" }, this.more),
    ];
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), TYPING);
  }

  async load(offset = 0) {
    const mine = ++this.asked;
    const q = this.search.value.trim();
    try {
      const wanted = { order: this.order.value, limit: PAGE, offset, q };
      const answer = await this.context.get("clusters", wanted);
      if (mine === this.asked) this.draw(answer, offset, q);
    } catch (error) {
      if (!offset && !q) throw error;
      this.context.report(error);
    }
  }

  draw({ total, clusters }, offset, q) {
    if (!offset) this.most = Math.max(...clusters.map((cluster) => cluster.size), 1);
    const rows = clusters.map((cluster) => this.row(cluster));
    if (offset) this.rows.append(...rows);
    else this.rows.replaceChildren(...rows);
    this.shown = offset + clusters.length;
    this.more.hidden = this.shown >= total;
    this.total.textContent = counted(total, "cluster");
    if (!total) this.rows.replaceChildren(el("li", { class: "nothing" }, this.nothing(q)));
  }

  row(cluster) {
    const link = chip(this.context, cluster.id, cluster.name);
    const share = `${Math.max(1, 100 * cluster.size / this.most).toFixed(1)}%`;
    return el(
      "li",
      { class: `cluster-row ${link.classList[1]}` },
      el(
        "span",
        { class: "who" },
        link,
        cluster.name !== null && el("span", { class: "quiet small-text" }, `ID ${cluster.id}`),
        cluster.pending && el("span", { class: "tag warn" }, "pending"),
        cluster.ignored && el("span", { class: "tag" }, "ignored"),
      ),
      el("span", { class: "size-bar", "aria-hidden": "true", vars: { "--share": share } }),
      el("span", { class: "figures" }, counted(cluster.size, "vector")),
      el("span", { class: "quiet figures" }, counted(cluster.subclusters, "subcluster")),
      el("span", { class: "quiet figures" }, `newest ${number(cluster.last_seen)}`),
    );
  }

  nothing(q) {
    const words = q
      ? "No cluster has this ID, or this text in its name."
      : "The first vector creates the first cluster. Add one:";
    return empty(
      q ? "Nothing found" : "No clusters yet",
      el("p", {}, words),
      !q && addLine(this.context),
    );
  }
}
