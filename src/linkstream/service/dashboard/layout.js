/** Positions of the nodes of a tree: around its middle, each branch as wide as its leaves need. */

/**
 * @typedef {{x: number, y: number}} Point
 * @typedef {{subclusters: [number, number]}} Edge
 */

/**
 * Return the layout of a forest in a box 1 wide and `height` tall.
 * @param {{subcluster: number, count: number}[]} nodes
 * @param {Edge[]} edges at most one path between any two nodes
 * @returns {{places: Map<number, Point>, height: number, sides: (edge: Edge) => number[]}}
 *   `sides` returns the number of vectors on either side of an edge
 */
export function arranged(nodes, edges) {
  const near = new Map(nodes.map((node) => [node.subcluster, []]));
  for (const { subclusters: [a, b] } of edges) {
    near.get(a)?.push(b);
    near.get(b)?.push(a);
  }
  const counts = new Map(nodes.map((node) => [node.subcluster, node.count]));
  const places = new Map();
  const total = nodes.reduce((sum, node) => sum + node.count, 0);
  const walks = trees(nodes, near);
  walks.forEach((walk) => place(walk, near, places));
  const height = fit(places);
  const below = weights(walks, counts);
  const sides = ({ subclusters: [a, b] }) => {
    const child = walks.some((walk) => walk.parent.get(a) === b) ? a : b;
    const under = below.get(child) ?? 0;
    return child === a ? [under, total - under] : [total - under, under];
  };
  return { places, height, sides };
}

/** Return each tree as a walk from its middle outwards: the order of visits and the parents. */
function trees(nodes, near) {
  const seen = new Set();
  const walks = [];
  for (const { subcluster } of nodes) {
    if (seen.has(subcluster)) continue;
    const far = walked(walked(subcluster, near).order.at(-1), near);
    const path = [far.order.at(-1)];
    while (far.parent.has(path.at(-1))) path.push(far.parent.get(path.at(-1)));
    const walk = walked(path[Math.floor(path.length / 2)], near);
    walk.order.forEach((node) => seen.add(node));
    walks.push(walk);
  }
  return walks;
}

function walked(start, near) {
  const order = [start];
  const parent = new Map();
  const depth = new Map([[start, 0]]);
  for (let at = 0; at < order.length; at += 1) {
    for (const next of near.get(order[at]) ?? []) {
      if (depth.has(next) || !near.has(next)) continue;
      parent.set(next, order[at]);
      depth.set(next, depth.get(order[at]) + 1);
      order.push(next);
    }
  }
  return { order, parent, depth };
}

function place({ order, parent, depth }, near, places) {
  const leaves = new Map(order.map((node) => [node, 0]));
  for (const node of [...order].reverse()) {
    const own = Math.max(leaves.get(node), 1);
    leaves.set(node, own);
    if (parent.has(node)) leaves.set(parent.get(node), leaves.get(parent.get(node)) + own);
  }
  const turn = new Map([[order[0], [0, 2 * Math.PI]]]);
  for (const node of order) {
    const [from, to] = turn.get(node);
    const angle = (from + to) / 2 - Math.PI / 2;
    const far = depth.get(node);
    places.set(node, { x: far * Math.cos(angle), y: far * Math.sin(angle) });
    let at = from;
    for (const child of near.get(node) ?? []) {
      if (parent.get(child) !== node) continue;
      const width = ((to - from) * leaves.get(child)) / leaves.get(node);
      turn.set(child, [at, at + width]);
      at += width;
    }
  }
}

/** Scale the places into a box 1 wide and at most 1 tall; return its height. */
function fit(places) {
  const all = [...places.values()];
  const least = (axis) => Math.min(...all.map((at) => at[axis]));
  const span = (axis) => Math.max(...all.map((at) => at[axis])) - least(axis);
  if (span("y") > span("x")) {
    all.forEach((at) => {
      [at.x, at.y] = [at.y, -at.x];
    });
  }
  const [left, top] = [least("x"), least("y")];
  const [wide, tall] = [span("x") || 1, span("y")];
  all.forEach((at) => {
    at.x = (at.x - left) / wide;
    at.y = (at.y - top) / wide;
  });
  return tall / wide;
}

function weights(walks, counts) {
  const below = new Map(counts);
  for (const { order, parent } of walks) {
    for (const node of [...order].reverse()) {
      const up = parent.get(node);
      if (up !== undefined) below.set(up, below.get(up) + below.get(node));
    }
  }
  return below;
}
