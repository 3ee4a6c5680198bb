/** The tip of the map: the subcluster under the pointer, with some of its vectors. */

import { called, counted, el, foreign, number, short, slot } from "./elements.js";
import { payload } from "./parts.js";

const HOVER = 90; // milliseconds of pointing before a request
const SHOWN = 3; // vectors shown of a subcluster
const KEPT = 500; // answers that are kept

export class MapTip {
  /**
   * @param {{context: import("./app.js").Context, atlas: import("./atlas.js").Atlas,
   *   picture: import("./mapcanvas.js").MapCanvas}} view
   */
  constructor(view) {
    this.view = view;
    this.told = new Map(); // answers of the service by subcluster
    this.root = el("div", { class: "map-tip", hidden: true, role: "status" });
  }

  hide() {
    clearTimeout(this.asking);
    this.root.hidden = true;
  }

  describe(place) {
    const subcluster = this.view.atlas.subcluster[place];
    clearTimeout(this.asking);
    const known = this.told.get(subcluster);
    this.show(place, known);
    this.asking = setTimeout(async () => {
      try {
        const answer = await this.view.context.get(`subclusters/${subcluster}`);
        this.told.set(subcluster, answer);
        if (this.told.size > KEPT) this.told.delete(this.told.keys().next().value);
        const now = this.view.atlas.index.get(subcluster);
        if (now !== undefined && now === this.view.picture.lit) this.show(now, answer);
      } catch (error) {
        if (error.status !== 404 && error.status !== 410) this.view.context.report(error);
      }
    }, HOVER);
  }

  show(place, answer) {
    const { atlas } = this.view;
    const id = atlas.cluster[place];
    const cluster = atlas.clusters.get(id);
    const vectors = (answer?.vectors ?? []).slice(0, SHOWN);
    this.root.replaceChildren(
      el(
        "p",
        { class: `map-tip-head ${cluster.colour < 12 ? slot(id) : "rest"}` },
        el("span", { class: "dot", "aria-hidden": "true" }),
        el(
          "a",
          { href: this.view.context.link("cluster", id), tabindex: "-1" },
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
        el("div", { class: "map-tip-row" }, payload(this.view.context, each.payload))
      ),
    );
    this.root.dataset.subcluster = short(atlas.subcluster[place]);
    this.root.hidden = false;
    const [right, down] = this.view.picture.screen(atlas.x[place], atlas.y[place]);
    const beside = right > this.view.picture.width / 2;
    this.root.classList.toggle("to-left", beside);
    this.root.style.setProperty("--right", `${Math.round(right)}px`);
    this.root.style.setProperty(
      "--down",
      `${Math.round(Math.min(Math.max(down, 70), this.view.picture.height - 70))}px`,
    );
    this.root.style.setProperty(
      "--off",
      `${Math.round(Math.max(atlas.radius[place] * this.view.picture.camera.scale, 2) + 12)}px`,
    );
  }
}
