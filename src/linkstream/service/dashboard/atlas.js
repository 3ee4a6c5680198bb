/**
 * The data of the map: positions, sizes and colours. This module does not draw.
 *
 * Positions come from the service; the position of a subcluster never changes. The radius of a disc
 * is proportional to the square root of the count. Where two discs would overlap, both shrink in
 * proportion until they fit.
 */

const LARGEST = 0.85; // radius of the largest subcluster; cells are 1 apart
const SINGLE = 0.27; // largest radius of a single vector, so that edges stay visible
const LEAST = 0.15; // smallest radius
const GAP = 0.92; // share of the distance between two subclusters that their discs may fill
const COARSE = 2; // cell width of the grid that finds neighbours
const SLOTS = 12; // colours
const COLOURED = 60; // largest clusters that get a colour; the others are grey
export const GREY = SLOTS;
const FADE = 900; // milliseconds in which a new subcluster appears
const BURST = 2_000; // more new subclusters than this appear at once, without fading

export class Atlas {
  constructor() {
    this.version = -1;
    this.size = 0;
    this.clusters = new Map();
    this.names = new Map();
    this.newest = 0;
    this.index = new Map(); // subcluster → index in the arrays
    this.born = new Float64Array(0);
  }

  /** Store an answer of the service; new subclusters start to appear at `now`. */
  take(answer, now) {
    const { nodes, edges } = answer;
    const first = this.version < 0;
    const before = { index: this.index, born: this.born };
    this.version = answer.version;
    this.leftOut = answer.left_out ?? 0;
    this.size = nodes.subcluster.length;
    this.subcluster = nodes.subcluster;
    this.cluster = nodes.cluster;
    this.count = nodes.count;
    this.x = Float64Array.from(nodes.x);
    this.y = Float64Array.from(nodes.y, (y) => -y); // the y axis of the screen points down
    this.a = Uint32Array.from(edges.a);
    this.b = Uint32Array.from(edges.b);
    this.names = new Map(Object.entries(answer.names).map(([id, name]) => [Number(id), name]));
    this.index = new Map(nodes.subcluster.map((number, place) => [number, place]));
    this.born = Float64Array.from(nodes.subcluster, (number) => {
      const place = before.index.get(number);
      return place === undefined ? now : before.born[place];
    });
    const fresh = this.born.reduce((sum, born) => sum + Number(born === now), 0);
    if (first || fresh > BURST) this.born.fill(-Infinity);
    else if (fresh) this.newest = now;
    this.measure();
    this.gather();
  }

  /** Return whether a new subcluster is still appearing. */
  changing(now) {
    return now - this.newest < FADE;
  }

  /** Return how far a subcluster has appeared, from 0 to 1. */
  shown(place, now) {
    return Math.min(1, Math.max(0, (now - this.born[place]) / FADE));
  }

  /** Compute the grid, the bounds and the radii. */
  measure() {
    this.grid = new Map();
    this.bounds = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    const bounds = this.bounds;
    let most = 1;
    for (let i = 0; i < this.size; i += 1) {
      const square = key(this.x[i], this.y[i]);
      const there = this.grid.get(square);
      if (there) there.push(i);
      else this.grid.set(square, [i]);
      bounds.left = Math.min(bounds.left, this.x[i]);
      bounds.right = Math.max(bounds.right, this.x[i]);
      bounds.top = Math.min(bounds.top, this.y[i]);
      bounds.bottom = Math.max(bounds.bottom, this.y[i]);
      most = Math.max(most, this.count[i]);
    }
    const unit = Math.min(SINGLE, LARGEST / Math.sqrt(most));
    this.wanted = Float64Array.from(
      this.count,
      (count) => Math.max(unit * Math.sqrt(count), LEAST),
    );
    this.radius = this.wanted.slice();
    for (let i = 0; i < this.size; i += 1) this.makeRoom(i);
  }

  /** Shrink a disc and every smaller disc that would overlap with it. */
  makeRoom(i) {
    const { wanted, radius } = this;
    for (const square of around(this.x[i], this.y[i], (2 * wanted[i]) / GAP)) {
      for (const j of this.grid.get(square) ?? []) {
        if (j === i || wanted[j] > wanted[i]) continue;
        const part = (GAP * Math.hypot(this.x[j] - this.x[i], this.y[j] - this.y[i])) /
          (wanted[i] + wanted[j]);
        if (part >= 1) continue;
        radius[i] = Math.min(radius[i], part * wanted[i]);
        radius[j] = Math.min(radius[j], part * wanted[j]);
      }
    }
  }

  /** Rank the clusters by size; assign colours and the subcluster that carries the name. */
  gather() {
    const clusters = new Map();
    for (let i = 0; i < this.size; i += 1) {
      const id = this.cluster[i];
      let found = clusters.get(id);
      if (!found) {
        clusters.set(
          id,
          found = { id, vectors: 0, nodes: 0, chief: i, name: this.names.get(id) ?? null },
        );
      }
      found.vectors += this.count[i];
      found.nodes += 1;
      if (this.count[i] > this.count[found.chief]) found.chief = i;
    }
    this.ranked = [...clusters.values()].sort((one, other) =>
      other.vectors - one.vectors || one.id - other.id
    );
    this.ranked.forEach((cluster, rank) => {
      cluster.colour = rank < COLOURED || cluster.name !== null
        ? ((cluster.id % SLOTS) + SLOTS) % SLOTS
        : GREY;
    });
    this.clusters = clusters;
    this.colour = Uint8Array.from(this.cluster, (id) => clusters.get(id).colour);
  }

  /** Return the subcluster within `slack` of a point of the map, or −1. */
  at(x, y, slack, least = 0) {
    let [best, found] = [slack, -1];
    for (const square of around(x, y, LARGEST + slack)) {
      for (const i of this.grid.get(square) ?? []) {
        const off = Math.hypot(this.x[i] - x, this.y[i] - y) - Math.max(this.radius[i], least);
        if (off < best) [best, found] = [off, i];
      }
    }
    return found;
  }

  /** Return the indexes of the subclusters of a cluster. */
  members(id) {
    const found = new Set();
    for (let i = 0; i < this.size; i += 1) if (this.cluster[i] === id) found.add(i);
    return found;
  }

  /** Return the bounds of a cluster. */
  extent(id) {
    const places = [...this.members(id)];
    const [xs, ys] = [places.map((i) => this.x[i]), places.map((i) => this.y[i])];
    const least = (values) => values.reduce((best, value) => Math.min(best, value), Infinity);
    const most = (values) => values.reduce((best, value) => Math.max(best, value), -Infinity);
    return { left: least(xs), right: most(xs), top: least(ys), bottom: most(ys) };
  }
}

const key = (x, y) => Math.floor(x / COARSE) * 2 ** 20 + Math.floor(y / COARSE);

/** Yield the grid cells within a distance of a point. */
function* around(x, y, reach) {
  for (
    let column = Math.floor((x - reach) / COARSE);
    column <= Math.floor((x + reach) / COARSE);
    column += 1
  ) {
    for (
      let row = Math.floor((y - reach) / COARSE);
      row <= Math.floor((y + reach) / COARSE);
      row += 1
    ) {
      yield column * 2 ** 20 + row;
    }
  }
}
