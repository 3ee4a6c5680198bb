/**
 * The tree of the subclusters of a cluster: each edge with its similarity and its threshold.
 * Edges are drawn by margin: strong ones thick and green, weak ones thin and orange. The list below has the same edges,
 * the weakest first, so that everything works without a pointer.
 */

import { button, counted, el, figure, number, signed, slot, svg } from "./elements.js";
import { card, marginBar } from "./parts.js";
import { correct, offerUndo } from "./corrections.js";
import { arranged } from "./layout.js";

const SIZE = 400;
const FIRMNESS = ["", "settled: supported by whole clusters", "pinned by a correction"];
const LISTED = 8; // edges listed at first
const LABELLED = 16; // most edges that get a label

/** Return the card with the tree and the list of its edges. */
export function tree(context, found) {
  const { nodes } = found;
  const drawn = new Set(nodes.map((node) => node.subcluster));
  const edges = found.edges.filter(({ subclusters }) => subclusters.every((end) => drawn.has(end)));
  if (!edges.length) {
    return card(
      "Subclusters",
      {},
      el(
        "p",
        { class: "quiet" },
        nodes.length > 1
          ? "Too many to draw."
          : "One subcluster holds all vectors: there is no edge to separate.",
      ),
    );
  }
  const forest = arranged(nodes, edges);
  const list = el("ul", { class: "edges" });
  const chosen = el("div", { class: "chosen", role: "status" });
  const lines = edges.map((edge) => edgeLine(edge, forest, () => choose(edge)));
  const rows = new Map();
  const choose = (edge) => {
    lines.forEach(({ line, of }) => line.classList.toggle("selected", of === edge));
    rows.forEach((row, of) => row.setAttribute("aria-pressed", String(of === edge)));
    chosen.replaceChildren(...evidence(context, edge, forest, found));
  };
  choose(fillList(list, edges, rows, choose));
  return card(
    "Subclusters",
    { more: el("span", { class: "quiet small-text" }, legend(found)) },
    picture(found, forest, lines),
    keys(),
    chosen,
    list,
  );
}

const legend = (
  { nodes, truncated },
) => (truncated
  ? `the first ${number(nodes.length)} are shown`
  : `${counted(nodes.length, "subcluster")}, sized by their vectors`);

function picture({ id, nodes }, forest, lines) {
  const most = Math.max(...nodes.map((node) => node.count));
  const room = Math.min(18, 75 / Math.sqrt(nodes.length)); // radius of the largest node
  const dots = nodes.map((node) => {
    const { x, y } = forest.places.get(node.subcluster);
    const radius = room * (0.3 + 0.7 * Math.sqrt(node.count / most));
    return svg(
      "circle",
      { class: "tree-node", cx: x * SIZE, cy: y * SIZE, r: radius.toFixed(1) },
      svg("title", {}, `subcluster ${node.subcluster}: ${counted(node.count, "vector")}`),
    );
  });
  const shape = {
    class: `tree ${slot(id)} ${nodes.length > 40 ? "many" : ""}`,
    viewBox: `-28 -28 ${SIZE + 56} ${forest.height * SIZE + 56}`,
    role: "img",
    "aria-label": "Tree of subclusters; the list below has the same edges",
  };
  return svg(
    "svg",
    shape,
    ...lines.flatMap(({ line, grip }) => [line, grip]),
    ...dots,
    ...(lines.length <= LABELLED ? lines.map(({ label }) => label) : []),
  );
}

function edgeLine(edge, forest, choose) {
  const [a, b] = edge.subclusters.map((number_) => forest.places.get(number_));
  const ends = { x1: a.x * SIZE, y1: a.y * SIZE, x2: b.x * SIZE, y2: b.y * SIZE };
  const line = svg("line", {
    ...ends,
    class: `tree-edge ${strength(edge)}`,
    vars: { "--edge-width": width(edge.margin) },
  });
  const words = `similarity ${figure(edge.similarity)}, threshold ${figure(edge.threshold)}`;
  const grip = svg(
    "line",
    { ...ends, class: "tree-grip", on: { click: choose } },
    svg("title", {}, words),
  );
  const middle = { x: (ends.x1 + ends.x2) / 2, y: (ends.y1 + ends.y2) / 2 };
  const label = svg("text", { ...middle, class: "tree-label" }, signed(edge.margin));
  return { line, grip, label, of: edge };
}

/** The width of an edge: strong ones are thick. */
const width = (margin) => Math.min(Math.max(2 + 30 * margin, 1.5), 8).toFixed(1);

const KEYS = [
  ["weak", "weak: margin below 0.02"],
  ["fair", "fair: below 0.1"],
  ["strong", "strong"],
  ["firm", "held by a correction, or settled"],
];

/** Return what the colours of the edges mean. */
function keys() {
  return el(
    "ul",
    { class: "tree-keys small-text quiet", "aria-label": "Colours of the edges" },
    ...KEYS.map(([kind, words]) =>
      el(
        "li",
        {},
        svg(
          "svg",
          { viewBox: "0 0 24 10", width: 24, height: 10, "aria-hidden": "true" },
          svg("line", { x1: 1, y1: 5, x2: 23, y2: 5, class: `tree-edge ${kind}` }),
        ),
        words,
      )
    ),
  );
}

function strength({ margin, firm }) {
  if (Number(firm)) return "firm";
  if (margin < 0.02) return "weak";
  return margin < 0.1 ? "fair" : "strong";
}

/** Fill the list with the edges, the weakest first; return the weakest. */
function fillList(list, edges, rows, choose) {
  const sorted = [...edges].sort((one, other) => one.margin - other.margin);
  const add = (some) =>
    list.append(...some.map((edge) => {
      const on = { click: () => choose(edge) };
      const [similarity, threshold] = [figure(edge.similarity), figure(edge.threshold)];
      const row = el(
        "button",
        { type: "button", class: "edge-row", "aria-pressed": "false", on },
        el("span", { class: "figures" }, `${edge.subclusters[0]} – ${edge.subclusters[1]}`),
        el("span", { class: "quiet figures" }, `${similarity} against ${threshold}`),
        marginBar(edge.margin),
      );
      rows.set(edge, row);
      return el("li", {}, row);
    }));
  add(sorted.slice(0, LISTED));
  if (sorted.length > LISTED) {
    const rest = () => {
      more.parentElement.remove();
      add(sorted.slice(LISTED));
    };
    const more = button(`Show all ${number(sorted.length)} edges`, rest, { class: "small" });
    list.append(el("li", {}, more));
  }
  return sorted[0];
}

function evidence(context, edge, forest, found) {
  const [a, b] = edge.subclusters;
  const sizes = forest.sides(edge);
  const firm = FIRMNESS[Number(edge.firm)] ?? "";
  const separate = async () => {
    try {
      const words = `Separated subclusters ${a} and ${b}`;
      const done = await correct(context, "different", { a, b, of: "subclusters" }, words);
      offerUndo(context, done, context.refresh);
      context.refresh();
    } catch (error) {
      context.report(error);
    }
  };
  return [
    el(
      "p",
      {},
      el("strong", {}, `${a} – ${b}: `),
      `similarity ${figure(edge.similarity)}, threshold ${figure(edge.threshold)}`,
      firm && `; ${firm}`,
    ),
    el(
      "p",
      { class: "quiet small-text" },
      found.truncated
        ? "Separating here makes two clusters."
        : `Separating here makes two clusters, of ${sizes.map(number).join(" and ")} vectors.`,
    ),
    button("Separate here", separate, { class: "danger", disabled: !context.may("write") }),
  ];
}
