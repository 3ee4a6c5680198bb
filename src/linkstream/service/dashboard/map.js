/**
 * Map: the subclusters in the plane, at the positions that the service assigned to them.
 *
 * Zoom by wheel or pinch, move by dragging, point at a subcluster to see it, click to open its
 * cluster. The keyboard has arrows, +, − and 0, and a list beside the map with the same clusters. A
 * search flies to the largest cluster that it finds. The address keeps the search (`find`) and
 * whether clusters of a single vector are drawn (`singles`).
 */

import { Atlas, singlesOf } from "./atlas.js";
import { counted, el, foreign, number, slot } from "./elements.js";
import { MapCanvas } from "./mapcanvas.js";
import { Faces } from "./mapfaces.js";
import { followPointer } from "./pointer.js";
import { MapTip } from "./maptip.js";
import { addLine, card, empty } from "./parts.js";

const EVERY = 1_000; // milliseconds between two requests of the map, at least
const SHARE = 8; // and at least this many times the duration of the last request
const LISTED = 40; // clusters in the list
const FACES = 20_000; // milliseconds between two requests of exemplars, at least
const DUST = 5_000; // more single vectors than this are left out at first
const TYPING = 250; // milliseconds from the last keystroke to the flight
const AROUND = 4; // cells shown around a cluster that was searched

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new MapView(context);
  await view.load();
  root.append(...view.parts);
  view.start();
  view.find(true);
  context.stream("live", { stats: (stats) => view.hear(stats), changed: () => view.due() });
  return () => view.stop();
}

class MapView {
  constructor(context) {
    this.context = context;
    this.atlas = new Atlas();
    this.cost = 0;
    this.turned = null; // whether the axes are exchanged; null before the first map
    this.found = null; // the cluster that the search has found
    this.facesAt = -FACES; // when the exemplars were asked for
    this.singles = { shown: true, hidden: false }[context.query.get("singles")] ?? null;
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
    this.tip = new MapTip(this);
    const tool = (label, title, run) =>
      el("button", { type: "button", title, "aria-label": title, on: { click: run } }, label);
    this.tools = el(
      "div",
      { class: "map-tools" },
      tool("+", "Zoom in", () => this.picture.zoom(1.5)),
      tool("−", "Zoom out", () => this.picture.zoom(1 / 1.5)),
      tool("⤢", "Show all", () => this.fit()),
    );
    this.frame = el("div", { class: "map-frame" }, this.canvas, this.tools, this.tip.root);
    this.list = el("ol", { class: "map-list", "aria-label": "The biggest clusters on the map" });
    this.more = el("p", { class: "quiet small-text", role: "status" });
    this.search = el("input", {
      id: "map-search",
      type: "search",
      placeholder: "Name or ID",
      autocomplete: "off",
      maxlength: 200,
      value: this.context.query.get("find") ?? "",
      on: { input: () => this.typed() },
    });
    const searched = (event) => {
      event.preventDefault();
      this.find(true);
    };
    this.finder = el(
      "form",
      { class: "map-finder", role: "search", on: { submit: searched } },
      el("label", { class: "unseen", for: "map-search" }, "Fly to a cluster, by name or ID"),
      this.search,
    );
    this.switch = el("input", {
      type: "checkbox",
      on: { change: () => this.chooseSingles(this.switch.checked) },
    });
    this.switchText = el("span", {});
    this.switched = el("label", { class: "switch" }, this.switch, this.switchText);
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
        this.finder,
        this.list,
        this.more,
      ),
    );
    this.parts = [
      el("div", { class: "map-head" }, el("h1", {}, "Map"), this.summary, this.switched),
      this.nothing,
      this.body,
    ];
    this.faces = new Faces(this.context, () => this.picture.renew());
    this.picture = new MapCanvas(this.canvas, this.atlas, this.faces);
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
    this.tip.hide();
    clearTimeout(this.typing);
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
    if (!first && this.high !== height > width) {
      this.turned = null; // a phone that was turned
      if (this.answer) this.draw(this.answer);
    }
    this.high = height > width;
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
    const answer = await this.context.get("map", {}, { quiet: this.atlas.size > 0 });
    if (this.ended) return;
    const had = this.atlas.size;
    this.draw(answer);
    this.cost = performance.now() - start;
    if (this.atlas.size && this.picture.width) this.keepInSight(had);
    if (performance.now() - this.facesAt < FACES) return;
    this.facesAt = performance.now();
    this.faces.load().catch(() => {}); // the map is complete without them
  }

  /** Take an answer of the service into the atlas and show it. */
  draw(answer) {
    this.answer = answer;
    answer.singles = singlesOf(answer.nodes);
    this.singles ??= answer.singles.size <= DUST;
    const lit = this.picture.lit >= 0 ? this.atlas.subcluster[this.picture.lit] : null;
    this.turned ??= this.turn(answer.nodes);
    const wanted = { singles: this.singles, turned: this.turned };
    this.atlas.take(answer, performance.now(), wanted);
    this.picture.lit = lit === null ? -1 : this.atlas.index.get(lit) ?? -1;
    this.tell();
    this.picture.renew();
  }

  /** Return whether the map fills the canvas better if its axes are exchanged. */
  turn({ x, y }) {
    const span = (values) => {
      const [least, most] = values.reduce(
        ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
        [Infinity, -Infinity],
      );
      return most - least + 3;
    };
    const width = this.frame.clientWidth || globalThis.innerWidth; // not shown before the first map
    const height = this.frame.clientHeight || 0.7 * globalThis.innerHeight;
    const [wide, tall] = [span(x), span(y)];
    const scale = Math.min(width / wide, height / tall);
    return x.length > 0 && Math.min(width / tall, height / wide) > 1.05 * scale;
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
    const bare = atlas.size === 0 && !atlas.singles;
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
    this.switch.checked = this.singles;
    this.switched.hidden = bare || !atlas.singles;
    this.switchText.textContent = counted(atlas.singles, "single vector");
    this.summary.textContent = bare
      ? ""
      : `${counted(atlas.size, "subcluster")} in ${counted(atlas.clusters.size, "cluster")}${left}`;
    this.canvas.setAttribute("aria-label", `Map of ${this.summary.textContent || "nothing yet"}`);
    Object.assign(this.canvas.dataset, {
      nodes: String(atlas.size),
      edges: String(atlas.a.length),
      turned: String(this.turned),
      clusters: String(atlas.clusters.size),
      version: String(atlas.version),
    });
    this.fillList();
  }

  fillList() {
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    const held = this.list.contains(focused) ? focused.dataset.id : null;
    const found = this.atlas.search(this.search.value);
    this.list.replaceChildren(
      ...found.slice(0, LISTED).map((cluster) => this.listed(cluster)),
    );
    if (held) {
      const row = this.list.querySelector(`[data-id="${Number(held)}"]`);
      /** @type {HTMLElement|null} */ (row)?.focus();
    }
    const rest = found.length - LISTED;
    if (!found.length && this.search.value) {
      this.more.textContent = "No cluster on the map has this ID, or this text in its name.";
    } else this.more.textContent = rest > 0 ? `and ${counted(rest, "smaller cluster")}` : "";
  }

  typed() {
    clearTimeout(this.typing);
    this.fillList();
    this.typing = setTimeout(() => this.find(), TYPING);
  }

  /** Fly to the largest cluster that the search finds; `again` also if it is the same as before. */
  find(again = false) {
    clearTimeout(this.typing);
    const words = this.search.value.trim();
    this.context.keep({ find: words });
    const found = words ? this.atlas.search(words)[0]?.id ?? null : null;
    if (found === this.found && !again) return;
    const before = this.found;
    this.found = this.picture.chosen = found;
    if (found !== null) {
      this.own = true;
      this.picture.go(this.picture.view(this.atlas.extent(found, AROUND)));
    } else if (before !== null) this.fit();
    this.picture.ask();
  }

  chooseSingles(shown) {
    this.singles = shown;
    this.context.keep({ singles: shown ? "shown" : "hidden" });
    this.draw(this.answer);
    if (this.atlas.size) this.fit();
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
    this.picture.chosen = id ?? this.found;
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
      if (place < 0) this.tip.hide();
      else this.tip.describe(place);
    }
    return place;
  }

  leave() {
    this.picture.lit = -1;
    this.tip.hide();
    this.picture.ask();
  }

  open(place) {
    this.context.navigate("cluster", this.atlas.cluster[place]);
  }
}
