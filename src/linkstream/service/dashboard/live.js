/**
 * Live: the current state of the stream, and how it came to it. The service sends digests (figures
 * every second, at most 200 decisions a second) and the page draws four times a second, so it keeps
 * up with any stream. The charts show counts over real time, which outlive a restart.
 */

import { button, counted, el, figure, number, short } from "./elements.js";
import { addLine, card, chip, empty, marginBar, payloadLine, percent, unknown } from "./parts.js";
import { isTyping, offerKeys } from "./help.js";
import { timelineChart } from "./timeline.js";
import { clockOf, timeElement, when } from "./times.js";
import { evidence, showWhy } from "./decision.js";

const ROWS = 60; // decisions shown
const BINS = 60; // of the charts
const FEW = 6; // most new rows that are highlighted at once
const BEAT = 250; // milliseconds between two drawings
const STILL = 2_000; // milliseconds without statistics after which the rate is shown as 0
const NAMES_EVERY = 2_500; // milliseconds between two requests for names
const TILES = {
  vectors: "Vectors",
  clusters: "Clusters",
  subclusters: "Subclusters",
  rate: "Vectors a second",
};
const KINDS = {
  joined: ["good", "Joined a subcluster of the cluster"],
  linked: ["accent", "A new subcluster, linked to the cluster"],
  new: ["warn", "No similar cluster: a new cluster"],
  held: ["bad", "Not sure enough: it waits for a decision"],
};
/** Ranges of the charts: their words, seconds, and milliseconds between two requests. */
const RANGES = {
  minutes: ["5 minutes", 300, 2_000],
  hour: ["Hour", 3_600, 10_000],
  day: ["Day", 86_400, 60_000],
  all: ["All", null, 60_000],
};
/** @type {import("./help.js").KeyRows} */
const KEYS = [
  [["P"], "Pause the list of decisions, or go on"],
  [["1", "4"], "Range of the charts: 5 minutes to all"],
  [["Enter"], "Why: on a decision"],
];

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new Live(context);
  root.append(...view.parts);
  context.stream("live", view.handlers, (state) => view.connection(state));
  const beat = setInterval(() => view.draw(), BEAT);
  document.addEventListener("keydown", (event) => view.key(event), { signal: context.signal });
  return () => clearInterval(beat);
}

const rounded = (value) => number(Math.round(value * 10) / 10);
const rate = (value) => (value >= 10 ? rounded(value) : figure(value, value < 1 ? 2 : 1));

class Live {
  constructor(context) {
    this.context = context;
    const range = context.query.get("range");
    this.range = Object.hasOwn(RANGES, range) ? range : "minutes";
    this.askedAt = -Infinity; // when the charts were asked for
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
      begin: () => this.begin(),
      decisions: (digest) => this.takeDecisions(digest),
      changed: () => {
        this.looked = -NAMES_EVERY;
        this.sizesAt = -1;
        this.askedAt = -Infinity;
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
      timelineChart("Clusters", rounded, { colour: "c2", unit: " clusters" }),
      timelineChart("Vectors a second", rate, { bars: true, unit: " a second" }),
    ];
    this.known = el("p", { class: "quiet small-text" });
    this.ranges = el(
      "div",
      { class: "choice-bar", role: "group", "aria-label": "Range of the charts" },
      ...Object.entries(RANGES).map(([range, [words]]) =>
        button(words, () => this.choose(range), { class: "small", data: { range } })
      ),
    );
    this.markRange();
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
      el(
        "div",
        { class: "live-head" },
        el("h1", {}, "Live"),
        this.state,
        el("div", { class: "buttons live-keys" }, offerKeys(this.context, "Live", KEYS)),
      ),
      el("dl", { class: "tiles" }, ...tiles),
      this.nothing,
      this.body = el(
        "div",
        { class: "live-body" },
        el(
          "div",
          { class: "live-left" },
          card(
            "Over time",
            { more: this.ranges },
            el("h3", { class: "chart-title" }, "Clusters"),
            this.charts[0].root,
            el("h3", { class: "chart-title" }, "Vectors a second"),
            this.charts[1].root,
            this.known,
          ),
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

  key(event) {
    if (isTyping(event) || document.querySelector("dialog[open]")) return;
    if (event.key === "p") this.pause.click();
    const range = Object.keys(RANGES)[Number(event.key) - 1];
    if (range) this.choose(range);
  }

  /** Choose the range of the charts and keep it in the address. */
  choose(range) {
    this.range = range;
    this.context.keep({ range });
    this.markRange();
    this.askedAt = -Infinity;
    this.lookBack();
  }

  markRange() {
    for (const each of /** @type {Iterable<HTMLElement>} */ (this.ranges.children)) {
      each.setAttribute("aria-pressed", String(each.dataset.range === this.range));
    }
  }

  /** Ask for the counts over time, from time to time. */
  async lookBack() {
    const [, seconds, pause] = RANGES[this.range];
    if (!this.stats || this.asking || performance.now() - this.askedAt < pause) return;
    this.askedAt = performance.now();
    this.asking = true;
    const range = this.range;
    try {
      const line = await this.context.get("timeline", { seconds, bins: BINS });
      if (range === this.range) this.drawCharts(line);
      else this.askedAt = -Infinity;
    } catch { /* The stream reports a lost connection; the next call tries again. */ }
    this.asking = false;
  }

  drawCharts(line) {
    this.charts[0].draw(line, line.clusters);
    this.charts[1].draw(
      line,
      line.added.map((count, bin) => line.vectors[bin] === null ? null : count / line.width),
    );
    const { known, before } = line;
    const since = known !== null && line.start <= known;
    this.known.textContent = since
      ? `Times are known since ${when(known)}.` +
        (before ? ` ${counted(before, "vector")} came before.` : "")
      : "";
  }

  /** Start over: a new connection sends the last decisions again. */
  begin() {
    this.askedAt = -Infinity;
    this.fresh = [];
    this.anew = true;
  }

  takeStats(stats) {
    this.stats = stats;
    this.statsAt = performance.now();
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
    this.lookBack();
  }

  drawFigures() {
    this.dirty = false;
    this.drawnAt = performance.now();
    const { vectors, clusters, subclusters } = this.stats;
    const waited = (this.drawnAt - this.statsAt) / 1000; // an idle stream sends no statistics
    const current = waited * 1000 > STILL ? 0 : this.stats.rate;
    for (const [name, value] of Object.entries({ vectors, clusters, subclusters })) {
      this.figures[name].textContent = number(value);
    }
    const slow = current > 0 && current < 100;
    this.figures.rate.textContent = slow ? figure(current, 1) : number(Math.round(current));
    const bare = vectors === 0;
    if (bare && !this.nothing.childElementCount) {
      this.nothing.append(
        el(
          "section",
          { class: "card" },
          empty(
            "Nothing here yet",
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
    const { cluster, vector } = decision;
    if (decision.kind === "new" && !this.names.has(cluster)) this.names.set(cluster, null);
    const why = () =>
      showWhy(this.context, decision, {
        name: this.names.get(cluster) ?? null,
        sure: this.sure,
      });
    const row = el(
      "li",
      { class: "decision", data: { cluster, vector } },
      el("span", { class: "quiet figures" }, timeElement(decision, clockOf(decision, true))),
      el("span", { class: `tag ${tone}`, title: meaning }, decision.kind),
      cluster < 0
        ? el("a", { class: "chip", href: this.context.link("held") }, "waits")
        : chip(this.context, cluster, this.names.get(cluster) ?? null),
      el("span", { class: "evidence", title: evidence(decision) }, marginBar(decision.margin)),
      this.probability(decision),
      el("span", { class: "quiet line" }, short(payloadLine(decision.payload), 60)),
      button("Why?", why, {
        class: "small quiet-button",
        "aria-label": `Why? Item ${number(vector)}`,
      }),
    );
    row.addEventListener("click", (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (!target.closest("a, button")) why();
    });
    return row;
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
      if (id < 0) continue;
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
