/**
 * Exemplars on the map: the most central picture or text of the largest clusters.
 *
 * They come from the list of clusters. Pictures are fetched when their cluster is large enough on
 * the screen to show them, a few at a time.
 */

import { colourOf, short } from "./elements.js";

const MOST = 80; // largest clusters that have one
const LEAST = 13; // smallest radius of a picture, in pixels
const WIDEST = 38; // largest
const ROOM = 0.75; // radius around a subcluster that is free if its cluster has no other, in cells
const FETCHED = 4; // pictures fetched at a time
const WORDS = 26; // characters of a text

export class Faces {
  /**
   * @param {import("./app.js").Context} context
   * @param {() => void} changed  a picture has come
   */
  constructor(context, changed) {
    this.context = context;
    this.changed = changed;
    this.paths = new Map(); // paths of pictures by cluster
    this.texts = new Map();
    this.pictures = new Map(); // HTMLImageElement by path; null while it is fetched or missing
    this.waiting = [];
    this.fetching = 0;
  }

  /** Ask for the exemplars of the largest clusters. */
  async load() {
    const wanted = { order: "size", limit: MOST, exemplars: 1 };
    const { clusters } = await this.context.get("clusters", wanted, { quiet: true });
    this.paths.clear();
    this.texts.clear();
    for (const { id, exemplars } of clusters) {
      const payload = exemplars?.[0]?.payload;
      if (typeof payload === "string") this.texts.set(id, short(payload, WORDS));
      else if (typeof payload?.image === "string") this.paths.set(id, payload.image);
      else if (typeof payload?.text === "string") this.texts.set(id, short(payload.text, WORDS));
    }
    this.changed();
  }

  /**
   * Draw the pictures that have room; return what they cover.
   * @param {import("./mapcanvas.js").MapCanvas} map
   */
  draw(map) {
    const covered = new Map();
    for (const cluster of map.atlas.ranked.slice(0, MOST)) {
      const path = this.paths.get(cluster.id);
      const radius = path === undefined ? 0 : radiusOf(map, cluster);
      if (radius < LEAST) continue;
      const [right, down] = map.screen(map.atlas.x[cluster.chief], map.atlas.y[cluster.chief]);
      if (right < -WIDEST || down < -WIDEST) continue;
      if (right > map.width + WIDEST || down > map.height + WIDEST) continue;
      const picture = this.picture(path);
      if (!picture) continue;
      paint(map.ink, picture, { right, down, radius }, colourOf(cluster.id), map.paper);
      covered.set(cluster.id, radius + 3);
    }
    return covered;
  }

  picture(path) {
    if (!this.pictures.has(path)) {
      this.pictures.set(path, null);
      this.waiting.push(path);
      this.fetch();
    }
    return this.pictures.get(path);
  }

  async fetch() {
    if (this.fetching >= FETCHED || !this.waiting.length) return;
    const path = this.waiting.pop();
    this.fetching += 1;
    try {
      const image = new Image();
      image.src = await this.context.picture(
        `images/${path.split("/").map(encodeURIComponent).join("/")}`,
      );
      await image.decode();
      this.pictures.set(path, image);
      this.changed();
    } catch { /* The map shows the disc of a cluster whose picture is missing. */ }
    this.fetching -= 1;
    this.fetch();
  }
}

function radiusOf({ atlas, camera }, cluster) {
  const disc = atlas.radius[cluster.chief];
  const island = cluster.nodes > 1 ? 0.45 * Math.sqrt(cluster.nodes) : ROOM;
  return Math.min(Math.max(disc, island) * camera.scale, WIDEST);
}

/** Draw a picture in a disc with a ring in the colour of the cluster. */
function paint(ink, image, { right, down, radius }, colour, paper) {
  const side = Math.min(image.naturalWidth, image.naturalHeight);
  const [left, top] = [(image.naturalWidth - side) / 2, (image.naturalHeight - side) / 2];
  const disc = (beyond, style) => {
    ink.fillStyle = style;
    ink.beginPath();
    ink.arc(right, down, radius + beyond, 0, 2 * Math.PI);
    ink.fill();
  };
  disc(3.5, colour);
  disc(1.5, paper);
  ink.save();
  ink.beginPath();
  ink.arc(right, down, radius, 0, 2 * Math.PI);
  ink.clip();
  const box = [right - radius, down - radius, 2 * radius, 2 * radius];
  ink.drawImage(image, left, top, side, side, ...box);
  ink.restore();
}
