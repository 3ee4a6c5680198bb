/** Labels of clusters on the map, the largest first; a label that would overlap is left out. */

import { called } from "./elements.js";
import { SMALLEST } from "./mapcanvas.js";

const PLAIN = 14; // most clusters without a name that are labelled by ID
const MOST = 120; // most labels

/** @param {import("./mapcanvas.js").MapCanvas} picture */
export function drawLabels(picture) {
  const { ranked } = picture.atlas;
  const named = ranked.filter((cluster) => cluster.name !== null);
  const others = ranked.filter((cluster) => cluster.name === null && cluster.vectors > 1).slice(
    0,
    PLAIN,
  );
  const taken = [];
  for (const cluster of [...named, ...others]) {
    if (taken.length >= MOST) break;
    drawLabel(picture, cluster, taken);
  }
}

function drawLabel(picture, cluster, taken) {
  const { atlas, camera, ink } = picture;
  const [right, down] = picture.screen(atlas.x[cluster.chief], atlas.y[cluster.chief]);
  if (right < -80 || down < -20 || right > picture.width + 80 || down > picture.height + 40) return;
  const radius = Math.max(atlas.radius[cluster.chief] * camera.scale, SMALLEST);
  const plain = cluster.name === null;
  const size = plain ? 11.5 : 13;
  const words = plain ? String(cluster.id) : called(cluster.id, cluster.name);
  ink.font = `${plain ? 500 : 650} ${size}px ${picture.font}`;
  const wide = ink.measureText(words).width;
  const inside = wide + 8 < 1.8 * radius && radius > 11;
  const y = inside ? down : down - radius - size * 0.75;
  const box = {
    left: right - wide / 2 - 4,
    right: right + wide / 2 + 4,
    top: y - size * 0.75,
    bottom: y + size * 0.75,
  };
  if (taken.some((other) => overlap(box, other))) return;
  taken.push(box);
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  if (!inside) {
    ink.lineWidth = 3.5;
    ink.lineJoin = "round";
    ink.strokeStyle = picture.paper;
    ink.strokeText(words, right, y);
  }
  ink.fillStyle = inside ? onColour(picture.colours[cluster.colour]) : picture.text;
  ink.fillText(words, right, y);
}

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
