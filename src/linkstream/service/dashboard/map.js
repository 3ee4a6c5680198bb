/**
 * Map: the subclusters in the plane, at the positions that the service assigned to them.
 *
 * Zoom by wheel or pinch, move by dragging, point at a subcluster to see it, click to open its
 * cluster. The keyboard has arrows, +, − and 0, and a list beside the map with the same clusters.
 */

import { Atlas } from "./atlas.js";
import { called, counted, el, foreign, number, short, slot } from "./elements.js";
import { MapCanvas } from "./mapcanvas.js";
import { followPointer } from "./pointer.js";
import { addLine, card, empty, payload } from "./parts.js";

const EVERY = 1_000; // milliseconds between two requests of the map, at least
const SHARE = 8; // and at least this many times the duration of the last request
const LISTED = 40; // clusters in the list
const HOVER = 90; // milliseconds of pointing before a request
const SHOWN = 3; // vectors shown of a subcluster

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new MapView(context);
  await view.load();
  root.append(...view.parts);
  view.start();
  context.stream("live", { stats: (stats) => view.hear(stats), changed: () => view.due() });
  return () => view.stop();
}

class MapView {
  constructor(context) {
    this.context = context;
    this.atlas = new Atlas();
    this.cost = 0;
    this.told = new Map(); // answers of the service by subcluster
    this.build();
  }

  build() {
    this.summary = el("p", { class: "quiet figures map-summary" });
    this.canvas = el("canvas", {
      class: "map-canvas",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map",
      "aria-label": "Map of the subclusters",
      "aria-describedby": "map-help",
    });
    this.tip = el("div", { class: "map-tip", hidden: true, role: "status" });
    const tool = (label, title, run) =>
      el("button", { type: "button", title, "aria-label": title, on: { click: run } }, label);
    this.tools = el(
      "div",
      { class: "map-tools" },
      tool("+", "Zoom in", () => this.picture.zoom(1.5)),
      tool("−", "Zoom out", () => this.picture.zoom(1 / 1.5)),
      tool("⤢", "Show all", () => this.fit()),
    );
    this.frame = el("div", { class: "map-frame" }, this.canvas, this.tools, this.tip);
    this.list = el("ol", { class: "map-list", "aria-label": "The biggest clusters on the map" });
    this.more = el("p", { class: "quiet small-text" });
    this.nothing = el("section", { class: "card", hidden: true });
    this.body = el(
      "div",
      { class: "map-body" },
      el(
        "section",
        { class: "card map-card", "aria-label": "Map" },
        this.frame,
        el(
          "p",
          { class: "quiet small-text map-help", id: "map-help" },
          "Each disc is a subcluster, sized by its vectors. Lines are edges, islands are clusters. ",
          el("span", { class: "map-touch" }, "Drag to move, pinch to zoom, tap to see more."),
          el(
            "span",
            { class: "map-keys" },
            el("kbd", {}, "+"),
            " ",
            el("kbd", {}, "−"),
            " zoom, arrows move, ",
            el("kbd", {}, "0"),
            " shows all, ",
            el("kbd", {}, "Tab"),
            " leads to the list.",
          ),
        ),
      ),
      card(
        "Clusters",
        {
          class: "map-side",
          more: el("a", { href: this.context.link("cluster"), class: "small-text" }, "All"),
        },
        this.list,
        this.more,
      ),
    );
    this.parts = [
      el("div", { class: "map-head" }, el("h1", {}, "Map"), this.summary),
      this.nothing,
      this.body,
    ];
    this.picture = new MapCanvas(this.canvas, this.atlas);
  }

  start() {
    this.schemes = document;
    this.recolour = () => this.picture.recolour();
    this.schemes.addEventListener("theme-changed", this.recolour);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.frame);
    followPointer(this.canvas, this);
    this.resize();
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.asking);
    this.sizes?.disconnect();
    this.schemes?.removeEventListener("theme-changed", this.recolour);
    this.picture.stop();
    this.ended = true;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    if (!width || !height) return;
    const first = !this.picture.width;
    this.picture.resize(width, height);
    if (this.atlas.size && (first || !this.own)) {
      this.picture.go(this.picture.view(this.atlas.bounds), 0);
    }
  }

  // Data

  hear(stats) {
    if (stats.events !== this.atlas.version) this.due();
  }

  /** Schedule the next request of the map. */
  due() {
    if (this.timer || this.ended) return;
    this.timer = setTimeout(async () => {
      try {
        if (!document.hidden) await this.load();
      } catch (error) {
        this.context.report(error);
      } finally {
        this.timer = 0;
      }
    }, Math.max(EVERY, SHARE * this.cost));
  }

  async load() {
    const start = performance.now();
    const answer = await this.context.get("map");
    if (this.ended) return;
    const had = this.atlas.size;
    const lit = this.picture.lit >= 0 ? this.atlas.subcluster[this.picture.lit] : null;
    this.atlas.take(answer, performance.now());
    this.cost = performance.now() - start;
    this.picture.lit = lit === null ? -1 : this.atlas.index.get(lit) ?? -1;
    this.tell();
    this.picture.renew();
    if (this.atlas.size && this.picture.width) this.keepInSight(had);
  }

  /** Zoom out if something new is outside of the view, unless the user moved the map. */
  keepInSight(had) {
    if (had && (this.own || this.picture.holds(this.atlas.bounds))) return;
    const camera = this.picture.view(this.atlas.bounds);
    if (had) camera.scale /= 1.3; // leave some space, so that this is rare
    this.picture.go(camera, had ? 420 : 0);
  }

  tell() {
    const { atlas } = this;
    const bare = atlas.size === 0;
    if (bare && !this.nothing.childElementCount) {
      this.nothing.append(
        empty(
          "Nothing on the map yet",
          el("p", {}, "The first vector creates the first subcluster. Add one:"),
          addLine(this.context),
        ),
      );
    }
    this.nothing.hidden = !bare;
    this.body.hidden = bare;
    const left = atlas.leftOut ? `; ${number(atlas.leftOut)} more are not drawn` : "";
    this.summary.textContent = bare
      ? ""
      : `${counted(atlas.size, "subcluster")} in ${counted(atlas.clusters.size, "cluster")}${left}`;
    this.canvas.setAttribute("aria-label", `Map of ${this.summary.textContent || "nothing yet"}`);
    Object.assign(this.canvas.dataset, {
      nodes: String(atlas.size),
      edges: String(atlas.a.length),
      clusters: String(atlas.clusters.size),
      version: String(atlas.version),
    });
    this.fillList();
  }

  fillList() {
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    const held = this.list.contains(focused) ? focused.dataset.id : null;
    this.list.replaceChildren(
      ...this.atlas.ranked.slice(0, LISTED).map((cluster) => this.listed(cluster)),
    );
    if (held) {
      const row = this.list.querySelector(`[data-id="${Number(held)}"]`);
      /** @type {HTMLElement|null} */ (row)?.focus();
    }
    const rest = this.atlas.ranked.length - LISTED;
    this.more.textContent = rest > 0 ? `and ${counted(rest, "smaller cluster")}` : "";
  }

  listed(cluster) {
    const choose = (id) => () => this.choose(id);
    return el(
      "li",
      {},
      el(
        "a",
        {
          href: this.context.link("cluster", cluster.id),
          class: `map-row ${cluster.colour < 12 ? slot(cluster.id) : "rest"}`,
          data: { id: String(cluster.id) },
          on: {
            focus: choose(cluster.id),
            mouseenter: choose(cluster.id),
            blur: choose(null),
            mouseleave: choose(null),
          },
        },
        el("span", { class: "dot", "aria-hidden": "true" }),
        el(
          "span",
          { class: "map-name" },
          cluster.name === null ? `ID ${cluster.id}` : foreign(cluster.name, 40),
        ),
        el("span", { class: "quiet figures" }, counted(cluster.vectors, "vector")),
      ),
    );
  }

  /** Show a cluster of the list on the map. */
  choose(id) {
    this.picture.chosen = id;
    if (id !== null) {
      const bounds = this.atlas.extent(id);
      if (!this.picture.holds(bounds)) {
        this.picture.go({
          ...this.picture.camera,
          x: (bounds.left + bounds.right) / 2,
          y: (bounds.top + bounds.bottom) / 2,
        });
      }
    }
    this.picture.ask();
  }

  // User input (pointer.js)

  fit() {
    this.own = false;
    this.picture.go(this.picture.view(this.atlas.bounds));
  }

  /** Stop following new subclusters: the user moves the map. */
  taken() {
    this.own = true;
    this.leave();
  }

  /** Point at a position of the screen; return the subcluster there, or −1. */
  point(right, down, slack = 5) {
    const { scale } = this.picture.camera;
    const [x, y] = this.picture.world(right, down);
    const place = this.atlas.size ? this.atlas.at(x, y, slack / scale, 1.2 / scale) : -1;
    if (place !== this.picture.lit) {
      this.picture.lit = place;
      this.picture.ask();
      this.canvas.classList.toggle("pointing", place >= 0);
      clearTimeout(this.asking);
      if (place < 0) this.tip.hidden = true;
      else this.describe(place);
    }
    return place;
  }

  leave() {
    clearTimeout(this.asking);
    this.picture.lit = -1;
    this.tip.hidden = true;
    this.picture.ask();
  }

  open(place) {
    this.context.navigate("cluster", this.atlas.cluster[place]);
  }

  describe(place) {
    const subcluster = this.atlas.subcluster[place];
    const known = this.told.get(subcluster);
    this.showTip(place, known);
    this.asking = setTimeout(async () => {
      try {
        const answer = await this.context.get(`subclusters/${subcluster}`);
        this.told.set(subcluster, answer);
        if (this.told.size > 500) this.told.delete(this.told.keys().next().value);
        const now = this.atlas.index.get(subcluster);
        if (now !== undefined && now === this.picture.lit) this.showTip(now, answer);
      } catch (error) {
        if (error.status !== 404 && error.status !== 410) this.context.report(error);
      }
    }, HOVER);
  }

  showTip(place, answer) {
    const { atlas } = this;
    const id = atlas.cluster[place];
    const cluster = atlas.clusters.get(id);
    const vectors = (answer?.vectors ?? []).slice(0, SHOWN);
    this.tip.replaceChildren(
      el(
        "p",
        { class: `map-tip-head ${cluster.colour < 12 ? slot(id) : "rest"}` },
        el("span", { class: "dot", "aria-hidden": "true" }),
        el(
          "a",
          { href: this.context.link("cluster", id), tabindex: "-1" },
          cluster.name === null ? called(id, null) : foreign(cluster.name, 40),
        ),
      ),
      el(
        "p",
        { class: "quiet small-text figures" },
        `subcluster ${number(atlas.subcluster[place])} · ${
          counted(atlas.count[place], "vector")
        } of ${number(cluster.vectors)}`,
      ),
      ...vectors.map((each) =>
        el("div", { class: "map-tip-row" }, payload(this.context, each.payload))
      ),
    );
    this.tip.dataset.subcluster = short(atlas.subcluster[place]);
    this.tip.hidden = false;
    const [right, down] = this.picture.screen(atlas.x[place], atlas.y[place]);
    const beside = right > this.picture.width / 2;
    this.tip.classList.toggle("to-left", beside);
    this.tip.style.setProperty("--right", `${Math.round(right)}px`);
    this.tip.style.setProperty(
      "--down",
      `${Math.round(Math.min(Math.max(down, 70), this.picture.height - 70))}px`,
    );
    this.tip.style.setProperty(
      "--off",
      `${Math.round(Math.max(atlas.radius[place] * this.picture.camera.scale, 2) + 12)}px`,
    );
  }
}
