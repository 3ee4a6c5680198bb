/**
 * The data of the map: positions, sizes and colours. This module does not draw.
 *
 * Positions come from the service; the position of a subcluster never changes. The radius of a disc
 * is proportional to the square root of the count, and larger where there is room. Where two discs would overlap, both shrink in
 * proportion until they fit.
 */

const LARGEST = 0.85; // radius of the largest subcluster where cells are 1 apart
const WIDEST = 2.2; // and where there is much room
const ROOM = 0.42; // radius of the largest as a share of the mean distance of subclusters
const SINGLE = 0.27; // largest radius of a single vector, so that edges stay visible
const LEAST = 0.15; // smallest radius
const GAP = 0.92; // share of the distance between two subclusters that their discs may fill
const COARSE = 2; // cell width of the grid that finds neighbours
const SLOTS = 12; // colours
const COLOURED = 3_000; // largest clusters that get a colour; the others are grey
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
    this.largest = LARGEST;
    this.singles = 0; // clusters of one vector, drawn or not
    this.index = new Map(); // subcluster → index in the arrays
    this.born = new Float64Array(0);
  }

  /**
   * Store an answer of the service; new subclusters start to appear at `now`.
   * @param {object} answer
   * @param {number} now
   * @param {{singles?: boolean, turned?: boolean}} [wanted]  singles: whether clusters of one vector
   *   are drawn; turned: whether the map is higher than wide, for phones
   */
  take(answer, now, { singles = true, turned = false } = {}) {
    const first = this.version < 0;
    const before = { index: this.index, born: this.born };
    answer.singles ??= singlesOf(answer.nodes);
    const { nodes, edges } = singles ? answer : without(answer, answer.singles);
    this.version = answer.version;
    this.leftOut = answer.left_out ?? 0;
    this.singles = answer.singles.size;
    this.size = nodes.subcluster.length;
    this.subcluster = nodes.subcluster;
    this.cluster = nodes.cluster;
    this.count = nodes.count;
    this.x = Float64Array.from(turned ? nodes.y : nodes.x);
    this.y = Float64Array.from(turned ? nodes.x : nodes.y, (y) => -y); // down on the screen
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
    const area = Math.PI / 4 * (bounds.right - bounds.left + 2) * (bounds.bottom - bounds.top + 2);
    const room = this.size ? ROOM * Math.sqrt(area / this.size) : 0;
    this.largest = Math.min(Math.max(LARGEST, room), WIDEST);
    const wider = this.largest / LARGEST;
    const unit = Math.min(SINGLE * wider, this.largest / Math.sqrt(most));
    this.wanted = Float64Array.from(
      this.count,
      (count) => Math.max(unit * Math.sqrt(count), LEAST * wider),
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
          found = {
            id,
            vectors: 0,
            nodes: 0,
            chief: i,
            name: this.names.get(id) ?? null,
            left: Infinity,
            right: -Infinity,
            top: Infinity,
            bottom: -Infinity,
          },
        );
      }
      found.left = Math.min(found.left, this.x[i]);
      found.right = Math.max(found.right, this.x[i]);
      found.top = Math.min(found.top, this.y[i]);
      found.bottom = Math.max(found.bottom, this.y[i]);
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
    for (const square of around(x, y, this.largest + slack)) {
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

  /** Return the bounds of a cluster, with some cells around it. */
  extent(id, around = 0) {
    const { left, right, top, bottom } = this.clusters.get(id);
    return {
      left: left - around,
      right: right + around,
      top: top - around,
      bottom: bottom + around,
    };
  }

  /** Return the clusters with a text in their name, or with this ID; the largest first. */
  search(words) {
    const text = words.trim().toLowerCase().replace(/^id\s*/, "");
    if (!text) return this.ranked;
    return this.ranked.filter(({ id, name }) =>
      String(id) === text || (name !== null && name.toLowerCase().includes(text))
    );
  }
}

/** Return the clusters that have a single vector. */
export function singlesOf({ cluster, count }) {
  const vectors = new Map();
  cluster.forEach((id, place) => vectors.set(id, (vectors.get(id) ?? 0) + count[place]));
  return new Set([...vectors].filter(([, all]) => all === 1).map(([id]) => id));
}

/** Return the nodes and edges of an answer without some clusters, which have no edges. */
function without({ nodes, edges }, out) {
  const kept = nodes.cluster.map((id) => !out.has(id));
  let next = 0;
  const place = kept.map((keep) => (keep ? next++ : -1));
  const some = (column) => column.filter((_, at) => kept[at]);
  return {
    nodes: Object.fromEntries(Object.entries(nodes).map(([name, all]) => [name, some(all)])),
    edges: { a: edges.a.map((at) => place[at]), b: edges.b.map((at) => place[at]) },
  };
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
