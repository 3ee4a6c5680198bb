/**
 * Live: the current state of the stream. The service sends digests (figures every second, at most
 * 200 decisions a second) and the page draws four times a second, so it keeps up with any stream.
 */

import { button, el, figure, number, short } from "./elements.js";
import { timeChart } from "./charts.js";
import { addLine, card, chip, empty, marginBar, payloadLine, percent, unknown } from "./parts.js";

const ROWS = 60; // decisions shown
const POINTS = 600; // of the charts
const FEW = 6; // most new rows that are highlighted at once
const BEAT = 250; // milliseconds between two drawings
const STILL = 2_000; // milliseconds without statistics after which the rate is shown as 0
const NAMES_EVERY = 2_500; // milliseconds between two requests for names
const TILES = {
  vectors: "Vectors",
  clusters: "Clusters",
  subclusters: "Subclusters",
  rate: "Vectors/s",
};
const KINDS = {
  joined: ["good", "Joined a subcluster of the cluster"],
  linked: ["accent", "A new subcluster, linked to the cluster"],
  new: ["warn", "No similar cluster: a new cluster"],
};

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new Live(context);
  root.append(...view.parts);
  context.stream("live", view.handlers, (state) => view.connection(state));
  const beat = setInterval(() => view.draw(), BEAT);
  const keys = (event) => {
    if (event.key === "p" && !event.target.closest("input, select, textarea")) view.pause.click();
  };
  document.addEventListener("keydown", keys);
  return () => {
    clearInterval(beat);
    document.removeEventListener("keydown", keys);
  };
}

const rounded = (value) => number(Math.round(value * 10) / 10);

class Live {
  constructor(context) {
    this.context = context;
    this.points = [];
    this.fresh = []; // decisions not drawn yet, oldest first
    this.left = 0; // decisions that are not shown
    this.names = new Map();
    this.sure = { why: "", identities: null }; // what is known of probabilities
    this.stats = null;
    this.dirty = false;
    this.paused = false;
    this.looked = -NAMES_EVERY;
    this.handlers = {
      stats: (stats) => this.takeStats(stats),
      history: ({ points }) => this.begin(points),
      decisions: (digest) => this.takeDecisions(digest),
      changed: () => {
        this.looked = -NAMES_EVERY;
        this.sizesAt = -1;
      },
    };
    this.build();
  }

  build() {
    const names = Object.keys(TILES);
    this.figures = Object.fromEntries(names.map((name) => [name, el("dd", {}, "–")]));
    const tiles = Object.entries(this.figures).map(([name, value]) =>
      el("div", { class: "tile" }, el("dt", {}, TILES[name]), value)
    );
    this.state = el("span", { class: "state" }, "connecting");
    this.charts = [
      timeChart("Clusters over time", rounded, { step: true, colour: "c2" }),
      timeChart("Vectors a second", rounded),
    ];
    this.biggest = el("ol", { class: "sizes" });
    const label = "Newest decisions, the newest first";
    this.rows = el("ol", { class: "decisions", tabindex: "0", "aria-label": label });
    this.more = el("span", { class: "quiet small-text figures left-out", hidden: true });
    const off = { class: "small", "aria-pressed": "false" };
    this.pause = button("Pause", () => this.toggle(), off);
    this.nothing = el("div", { class: "live-empty", hidden: true });
    const all = el(
      "a",
      { href: this.context.link("cluster"), class: "small-text" },
      "All clusters",
    );
    const sure = el(
      "a",
      { href: this.context.link("confidence"), class: "small-text" },
      "How sure?",
    );
    const tools = el("span", { class: "buttons middle" }, this.more, sure, this.pause);
    this.parts = [
      el("div", { class: "live-head" }, el("h1", {}, "Live"), this.state),
      el("dl", { class: "tiles" }, ...tiles),
      this.nothing,
      this.body = el(
        "div",
        { class: "live-body" },
        el(
          "div",
          { class: "live-left" },
          card("Clusters over time", {}, this.charts[0].root),
          card("Vectors a second", {}, this.charts[1].root),
          card("Biggest clusters", { more: all }, this.biggest),
        ),
        card("Newest decisions", { class: "live-right", more: tools }, this.rows),
      ),
    ];
  }

  connection(state) {
    this.state.textContent = state === "open" ? "connected" : "reconnecting…";
    this.state.classList.toggle("open", state === "open");
  }

  /** Start over: a new connection sends the last decisions again. */
  begin(points) {
    this.points = points.slice(-POINTS);
    this.fresh = [];
    this.anew = true;
  }

  takeStats(stats) {
    this.stats = stats;
    this.statsAt = performance.now();
    this.points.push([stats.time, stats.vectors, stats.clusters, stats.rate]);
    if (this.points.length > POINTS) this.points.shift();
    this.dirty = true;
  }

  takeDecisions({ decisions, more }) {
    this.fresh.push(...decisions);
    if (!this.anew) this.left += more;
    const over = Math.max(this.fresh.length - ROWS, 0);
    this.left += this.fresh.splice(0, over).length;
  }

  toggle() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Resume" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.paused));
  }

  draw() {
    if (document.hidden) return;
    if (this.stats && (this.dirty || performance.now() - this.drawnAt > STILL)) this.drawFigures();
    if (!this.paused && this.fresh.length) this.drawRows();
    this.lookUp();
  }

  drawFigures() {
    this.dirty = false;
    this.drawnAt = performance.now();
    const { vectors, clusters, subclusters } = this.stats;
    const waited = (this.drawnAt - this.statsAt) / 1000; // an idle stream sends no statistics
    const rate = waited * 1000 > STILL ? 0 : this.stats.rate;
    for (const [name, value] of Object.entries({ vectors, clusters, subclusters })) {
      this.figures[name].textContent = number(value);
    }
    const slow = rate > 0 && rate < 100;
    this.figures.rate.textContent = slow ? figure(rate, 1) : number(Math.round(rate));
    const points = [...this.points, [this.stats.time + waited, vectors, clusters, rate]];
    this.charts[0].draw(points.map(([time, , value]) => [time, value]));
    this.charts[1].draw(withPauses(points.map(([time, , , value]) => [time, value])));
    const bare = vectors === 0;
    if (bare && !this.nothing.childElementCount) {
      this.nothing.append(
        el(
          "section",
          { class: "card" },
          empty(
            "No vectors yet",
            el("p", {}, "This page updates when the first vector arrives. Add one:"),
            addLine(this.context),
          ),
        ),
      );
    }
    this.nothing.hidden = !bare;
    this.body.hidden = bare;
  }

  drawRows() {
    const rows = this.fresh.map((decision) => this.row(decision)).reverse();
    this.fresh = [];
    if (rows.length <= FEW) rows.forEach((row) => row.classList.add("fresh"));
    if (this.anew) this.rows.replaceChildren(...rows);
    else this.rows.prepend(...rows);
    this.anew = false;
    while (this.rows.childElementCount > ROWS) this.rows.lastElementChild.remove();
    this.more.hidden = this.left === 0;
    this.more.textContent = `+${number(this.left)} not shown`;
  }

  row(decision) {
    const [tone, meaning] = KINDS[decision.kind] ?? ["", ""];
    const { cluster, vector, similarity, threshold } = decision;
    const evidence = Number.isFinite(similarity)
      ? `similarity ${figure(similarity)}, threshold ${figure(threshold)}`
      : "nothing similar enough to compare";
    if (decision.kind === "new" && !this.names.has(cluster)) this.names.set(cluster, null);
    return el(
      "li",
      { class: "decision", data: { cluster } },
      el("span", { class: "quiet figures" }, number(vector)),
      el("span", { class: `tag ${tone}`, title: meaning }, decision.kind),
      chip(this.context, cluster, this.names.get(cluster) ?? null),
      el("span", { class: "evidence", title: evidence }, marginBar(decision.margin)),
      this.probability(decision),
      el("span", { class: "quiet line" }, short(payloadLine(decision.payload), 60)),
    );
  }

  /** Return the probability that a decision is right; its title says why it is unknown. */
  probability({ probability }) {
    const known = Number.isFinite(probability);
    const title = known ? "Probability that the decision is right" : unsureTitle(this.sure);
    return el(
      "span",
      { class: `sure figures ${known ? "" : "quiet"}`, title },
      percent(probability),
    );
  }

  /** Request names and sizes from time to time; the stream does not carry them. */
  async lookUp() {
    if (!this.stats || performance.now() - this.looked < NAMES_EVERY) return;
    if (this.sizesAt === this.stats.events) return;
    this.looked = performance.now();
    this.sizesAt = this.stats.events;
    try {
      const [recent, big, sure] = await Promise.all([
        this.context.get("clusters", { order: "recent", limit: 100 }),
        this.context.get("clusters", { order: "size", limit: 6 }),
        this.context.get("confidence", { brief: true }),
      ]);
      this.sure = sure;
      this.rows.classList.toggle("told", sure.identities !== null);
      recent.clusters.concat(big.clusters).forEach(({ id, name }) => this.names.set(id, name));
      this.rename();
      this.drawSizes(big.clusters);
    } catch { /* The stream reports a lost connection; the next call tries again. */ }
  }

  rename() {
    for (const row of /** @type {Iterable<HTMLElement>} */ (this.rows.children)) {
      const id = Number(row.dataset.cluster);
      row.querySelector(".chip").replaceWith(chip(this.context, id, this.names.get(id) ?? null));
      const unsure = /** @type {HTMLElement} */ (row.querySelector(".sure.quiet"));
      if (unsure) unsure.title = unsureTitle(this.sure);
    }
  }

  drawSizes(clusters) {
    const most = clusters[0]?.size ?? 1;
    this.biggest.replaceChildren(...clusters.map((cluster) => {
      const link = chip(this.context, cluster.id, cluster.name);
      const share = `${(100 * cluster.size / most).toFixed(1)}%`;
      return el(
        "li",
        { class: link.classList[1] },
        link,
        el("span", { class: "size-bar", "aria-hidden": "true", vars: { "--share": share } }),
        el("span", { class: "figures" }, number(cluster.size)),
      );
    }));
  }
}

const unsureTitle = (sure) => `Probability ${short(unknown(sure), 300)}`;

/** Insert a rate of 0 for pauses, for which the service sends no points. */
function withPauses(points) {
  return points.flatMap(([time, rate], place) => {
    const before = points[place - 1]?.[0] ?? time;
    const quiet = (time - before) * 1000 > STILL;
    return quiet ? [[before + 1, 0], [time - 1, 0], [time, rate]] : [[time, rate]];
  });
}
