/**
 * Labels of clusters on the map, the largest first.
 *
 * A label is in its disc, or above, below or beside it: the first of these where it collides with
 * no other label and no picture. If there is none, it is left out. The more one zooms in, the more
 * clusters without a name have room for a label.
 */

import { called } from "./elements.js";
import { SMALLEST } from "./mapcanvas.js";

const ALWAYS = 14; // largest clusters without a name that are labelled by ID at any zoom
const ROOMY = 7; // radius in pixels from which other clusters are labelled
const MOST = 120; // most labels
const PAD = 4; // pixels around a label

/**
 * @param {import("./mapcanvas.js").MapCanvas} map
 * @param {Map<number, number>} faces  radius of the picture of each cluster that has one
 * @param {Map<number, string>} texts  texts of clusters, shown below their names
 */
export function drawLabels(map, faces, texts) {
  const { atlas } = map;
  const taken = [];
  for (const [id, radius] of faces) {
    const [x, y] = place(map, atlas.clusters.get(id));
    taken.push({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius });
  }
  let labels = 0;
  for (const named of [true, false]) {
    for (let rank = 0; rank < atlas.ranked.length && labels < MOST; rank += 1) {
      const cluster = atlas.ranked[rank];
      if ((cluster.name !== null) !== named) continue;
      if (!named && cluster.vectors === 1) break;
      const [x, y] = place(map, cluster);
      if (x < -40 || y < -20 || x > map.width + 40 || y > map.height + 20) continue;
      const disc = Math.max(atlas.radius[cluster.chief] * map.camera.scale, SMALLEST);
      if (!named && rank >= ALWAYS && disc < ROOMY) continue;
      const face = faces.get(cluster.id) ?? 0;
      labels += Number(drawLabel(map, cluster, { x, y, disc, face }, texts, taken));
    }
  }
}

const place = (map, { chief }) => map.screen(map.atlas.x[chief], map.atlas.y[chief]);

function drawLabel(map, cluster, { x, y, disc, face }, texts, taken) {
  const { ink } = map;
  const plain = cluster.name === null;
  const size = plain ? 11.5 : 13;
  const words = plain ? String(cluster.id) : called(cluster.id, cluster.name);
  ink.font = `${plain ? 500 : 650} ${size}px ${map.font}`;
  const wide = ink.measureText(words).width;
  const inside = !face && wide + 8 < 1.8 * disc && disc > 11;
  const radius = Math.max(face, disc);
  const high = 1.5 * size;
  /** @type {[number, number][]} */
  const spots = inside ? [[x, y]] : [
    [x, y - radius - high / 2],
    [x, y + radius + high / 2],
    [x + radius + wide / 2 + PAD, y],
    [x - radius - wide / 2 - PAD, y],
  ];
  const spot = spots.find(([right, down]) => free(box(right, down, wide, high), taken, map));
  if (!spot) return false;
  taken.push(box(...spot, wide, high));
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  const colour = inside ? onColour(map.colours[cluster.colour]) : map.text;
  write(map, words, spot, colour, !inside);
  const text = texts.get(cluster.id);
  if (text && disc >= ROOMY) quote(map, text, [spot[0], spot[1] + (inside ? disc : 0)], taken);
  return true;
}

/** Write a text below a label if there is room. */
function quote(map, text, [x, y], taken) {
  map.ink.font = `400 11.5px ${map.font}`;
  const words = `“${text}”`;
  const [wide, down] = [map.ink.measureText(words).width, y + 16];
  if (!free(box(x, down, wide, 15), taken, map)) return;
  taken.push(box(x, down, wide, 15));
  write(map, words, [x, down], map.quiet, true);
}

function write({ ink, paper }, words, [x, y], colour, outlined) {
  if (outlined) {
    ink.lineWidth = 3.5;
    ink.lineJoin = "round";
    ink.strokeStyle = paper;
    ink.strokeText(words, x, y);
  }
  ink.fillStyle = colour;
  ink.fillText(words, x, y);
}

const box = (x, y, wide, high) => ({
  left: x - wide / 2 - PAD,
  right: x + wide / 2 + PAD,
  top: y - high / 2,
  bottom: y + high / 2,
});

const free = (one, taken, { width, height }) =>
  one.left > -20 && one.right < width + 20 && one.top > -4 && one.bottom < height + 4 &&
  !taken.some((other) => overlap(one, other));

/** Return black or white, whichever is readable on a colour of the form #rrggbb. */
function onColour(colour) {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = parts.map((
    part,
  ) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.28 ? "#14181f" : "#ffffff";
}

const overlap = (a, b) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
