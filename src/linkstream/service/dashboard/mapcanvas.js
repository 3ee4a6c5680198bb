/**
 * The map on a canvas: a camera, and an off-screen sheet that is redrawn only when needed.
 *
 * If drawing is slow, dragging and zooming move and stretch the last sheet, and the sheet is redrawn
 * when the movement ends. So movement is smooth with any number of subclusters.
 */

import { GREY } from "./atlas.js";
import { colourOf, styleOf } from "./elements.js";
import { drawLabels } from "./maplabels.js";

const CLOSEST = 90; // most pixels between two cells
const FITTED = 56; // the same where all subclusters are shown at once
const MARGIN = 44; // pixels around the subclusters
const TOOLS = 44; // pixels at the right that the buttons take
export const SMALLEST = 1.15; // radius in pixels
const FINEST = 0.75; // the same in a large cluster, where edges must stay visible
const CROWD = 12; // a cluster of more subclusters is large
const SLOW = 14; // a sheet that takes more milliseconds to draw is not redrawn during movement
const REST = 110; // milliseconds without movement until the sheet is redrawn
const OUTLINED = 400; // most subclusters of a highlighted cluster that each get a ring

export class MapCanvas {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import("./atlas.js").Atlas} atlas
   * @param {import("./mapfaces.js").Faces} faces
   */
  constructor(canvas, atlas, faces) {
    this.canvas = canvas;
    this.atlas = atlas;
    this.faces = faces;
    this.pen = canvas.getContext("2d");
    this.sheet = document.createElement("canvas");
    this.ink = this.sheet.getContext("2d");
    this.camera = { x: 0, y: 0, scale: 10 };
    this.width = 0;
    this.height = 0;
    this.dots = 1; // device pixels of a CSS pixel
    this.drawn = null; // the camera of the sheet
    this.took = 0;
    this.lit = -1; // the subcluster under the pointer
    this.chosen = null; // the cluster selected in the list
    this.moved = -Infinity;
    this.waiting = 0;
    this.recolour();
  }

  /** Read the colours of the current scheme (light or dark). */
  recolour() {
    this.colours = Array.from({ length: 12 }, (_, slot) => colourOf(slot));
    this.colours[GREY] = styleOf("--cluster-rest");
    this.paper = styleOf("--card");
    this.text = styleOf("--ink");
    this.quiet = styleOf("--quiet");
    this.font = getComputedStyle(document.body).fontFamily;
    this.drawn = null;
    this.ask();
  }

  /** Follow the size of the element. */
  resize(width, height) {
    const dots = Math.min(globalThis.devicePixelRatio || 1, 2);
    Object.assign(this, { width, height, dots });
    for (const each of [this.canvas, this.sheet]) {
      each.width = Math.round(width * dots);
      each.height = Math.round(height * dots);
    }
    this.drawn = null;
    this.ask();
  }

  /** Redraw after a change of the atlas. */
  renew() {
    this.drawn = null;
    this.ask();
  }

  // The camera

  /**
   * Return the position on the screen of a point of the map.
   * @returns {[number, number]}
   */
  screen(x, y) {
    const { camera } = this;
    return [
      (x - camera.x) * camera.scale + this.width / 2,
      (y - camera.y) * camera.scale + this.height / 2,
    ];
  }

  /**
   * Return the point of the map at a position of the screen.
   * @returns {[number, number]}
   */
  world(right, down) {
    const { camera } = this;
    return [
      (right - this.width / 2) / camera.scale + camera.x,
      (down - this.height / 2) / camera.scale + camera.y,
    ];
  }

  /** Return the camera that shows the given bounds. */
  view(bounds, closest = FITTED) {
    const wide = bounds.right - bounds.left + 2;
    const high = bounds.bottom - bounds.top + 2;
    const margin = Math.min(MARGIN, 0.06 * this.width);
    const scale = Math.min(
      (this.width - 2 * margin - TOOLS) / wide,
      (this.height - 2 * margin) / high,
      closest,
    );
    const fitting = Math.max(scale, 0.05);
    return {
      x: (bounds.left + bounds.right) / 2 + TOOLS / 2 / fitting,
      y: (bounds.top + bounds.bottom) / 2,
      scale: fitting,
    };
  }

  /** Return whether the given bounds are visible. */
  holds(bounds) {
    const [left, top] = this.screen(bounds.left, bounds.top);
    const [right, bottom] = this.screen(bounds.right, bounds.bottom);
    return left >= 0 && top >= 0 && right <= this.width && bottom <= this.height;
  }

  pan(right, down) {
    this.glide = null;
    this.camera = {
      ...this.camera,
      x: this.camera.x - right / this.camera.scale,
      y: this.camera.y - down / this.camera.scale,
    };
    this.touch();
  }

  /** Zoom by a factor and keep one position of the screen fixed. */
  zoom(factor, right = this.width / 2, down = this.height / 2) {
    this.glide = null;
    const [x, y] = this.world(right, down);
    const least = 0.5 * this.view(this.atlas.bounds).scale;
    const scale = Math.min(Math.max(this.camera.scale * factor, least), CLOSEST);
    this.camera = {
      x: x - (right - this.width / 2) / scale,
      y: y - (down - this.height / 2) / scale,
      scale,
    };
    this.touch();
  }

  /** Move to a camera, smoothly unless the user prefers reduced motion. */
  go(camera, milliseconds = 420) {
    const still = globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still || milliseconds === 0) {
      this.glide = null;
      this.camera = camera;
    } else this.glide = { from: this.camera, to: camera, start: performance.now(), milliseconds };
    this.touch();
  }

  touch() {
    this.moved = performance.now();
    this.ask();
  }

  // Frames

  ask() {
    if (!this.waiting) this.waiting = requestAnimationFrame((now) => this.frame(now));
  }

  stop() {
    cancelAnimationFrame(this.waiting);
    clearTimeout(this.later);
    this.ended = true;
  }

  frame(now) {
    this.waiting = 0;
    if (this.ended || !this.width) return;
    this.step(now);
    const changing = this.atlas.changing(now);
    if (this.changed && !changing) this.drawn = null; // draw the new subclusters on the sheet
    this.changed = changing;
    const moving = this.drawn && (this.glide || now - this.moved < REST);
    if (!(moving && this.took > SLOW) && !this.isDrawn()) this.draw(now);
    this.blit();
    this.mark(now);
    this.say(changing);
    if (this.glide || changing) this.ask();
    else if (!this.isDrawn()) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.ask(), REST);
    }
  }

  /** Write the state to the data attributes of the canvas, for tests. */
  say(changing) {
    const { x, y, scale } = this.camera;
    const settled = this.isDrawn() && !this.glide && !changing;
    Object.assign(this.canvas.dataset, {
      x: x.toFixed(4),
      y: y.toFixed(4),
      scale: scale.toFixed(4),
      settled: String(settled),
    });
  }

  step(now) {
    if (!this.glide) return;
    const { from, to, start, milliseconds } = this.glide;
    const part = Math.min(1, (now - start) / milliseconds);
    const eased = 1 - (1 - part) ** 3;
    const scale = from.scale * (to.scale / from.scale) ** eased;
    this.camera = {
      x: from.x + (to.x - from.x) * eased,
      y: from.y + (to.y - from.y) * eased,
      scale,
    };
    if (part === 1) [this.glide, this.camera] = [null, to];
  }

  isDrawn() {
    const { drawn, camera } = this;
    return drawn !== null && drawn.x === camera.x && drawn.y === camera.y &&
      drawn.scale === camera.scale;
  }

  /** Copy the sheet to the screen, moved and stretched to the current camera. */
  blit() {
    const { pen, drawn, camera, dots } = this;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (!drawn) return;
    const factor = camera.scale / drawn.scale;
    const right = this.width / 2 - ((camera.x - drawn.x) * drawn.scale + this.width / 2) * factor;
    const down = this.height / 2 - ((camera.y - drawn.y) * drawn.scale + this.height / 2) * factor;
    pen.setTransform(factor, 0, 0, factor, right * dots, down * dots);
    pen.drawImage(this.sheet, 0, 0);
    pen.setTransform(dots, 0, 0, dots, 0, 0);
  }

  // Drawing

  draw(now) {
    const start = performance.now();
    const { ink, dots } = this;
    ink.setTransform(1, 0, 0, 1, 0, 0);
    ink.clearRect(0, 0, this.sheet.width, this.sheet.height);
    ink.setTransform(dots, 0, 0, dots, 0, 0);
    const seen = this.visible(now);
    this.edges(now);
    this.nodes(seen);
    drawLabels(this, this.faces.draw(this), this.faces.texts);
    this.drawn = { ...this.camera };
    this.took = performance.now() - start;
    Object.assign(this.canvas.dataset, { drawn: String(seen.count), took: this.took.toFixed(1) });
  }

  /** Return the visible subclusters by colour; `mark` draws those that still appear. */
  visible(now) {
    const { atlas } = this;
    const [left, top] = this.world(-60, -60);
    const [right, bottom] = this.world(this.width + 60, this.height + 60);
    const found = { count: 0, groups: this.colours.map(() => []) };
    for (let i = 0; i < atlas.size; i += 1) {
      if (atlas.x[i] < left || atlas.x[i] > right || atlas.y[i] < top || atlas.y[i] > bottom) {
        continue;
      }
      if (atlas.shown(i, now) < 1) continue;
      found.groups[atlas.colour[i]].push(i);
      found.count += 1;
    }
    return found;
  }

  edges(now) {
    const { atlas, ink, camera } = this;
    const groups = this.colours.map(() => []);
    const [left, top] = this.world(0, 0);
    const [right, bottom] = this.world(this.width, this.height);
    for (let e = 0; e < atlas.a.length; e += 1) {
      const [a, b] = [atlas.a[e], atlas.b[e]];
      if (Math.max(atlas.x[a], atlas.x[b]) < left || Math.min(atlas.x[a], atlas.x[b]) > right) {
        continue;
      }
      if (Math.max(atlas.y[a], atlas.y[b]) < top || Math.min(atlas.y[a], atlas.y[b]) > bottom) {
        continue;
      }
      if (atlas.shown(a, now) < 1 || atlas.shown(b, now) < 1) continue;
      groups[atlas.colour[a]].push(a, b);
    }
    ink.lineWidth = Math.min(Math.max(camera.scale * 0.07, 0.4), 2.5);
    ink.globalAlpha = 0.55;
    groups.forEach((ends, colour) => this.lines(ink, ends, this.colours[colour]));
    ink.globalAlpha = 1;
  }

  lines(ink, ends, colour) {
    if (!ends.length) return;
    ink.strokeStyle = colour;
    ink.beginPath();
    for (let k = 0; k < ends.length; k += 2) {
      ink.moveTo(...this.screen(this.atlas.x[ends[k]], this.atlas.y[ends[k]]));
      ink.lineTo(...this.screen(this.atlas.x[ends[k + 1]], this.atlas.y[ends[k + 1]]));
    }
    ink.stroke();
  }

  /** Draw the discs, one path for each colour. */
  nodes(seen) {
    const { ink, atlas, camera } = this;
    const [halfWide, halfHigh] = [this.width / 2, this.height / 2];
    const great = (i) => atlas.clusters.get(atlas.cluster[i]).nodes > CROWD;
    seen.groups.forEach((places, colour) => {
      if (!places.length) return;
      ink.fillStyle = this.colours[colour];
      ink.beginPath();
      for (const i of places) {
        const right = (atlas.x[i] - camera.x) * camera.scale + halfWide;
        const down = (atlas.y[i] - camera.y) * camera.scale + halfHigh;
        let radius = atlas.radius[i] * camera.scale;
        if (radius < SMALLEST) radius = great(i) ? Math.max(radius, FINEST) : SMALLEST;
        if (radius < 1.7) {
          ink.rect(right - radius * 0.89, down - radius * 0.89, radius * 1.78, radius * 1.78);
        } else {
          ink.moveTo(right + radius, down);
          ink.arc(right, down, radius, 0, 2 * Math.PI);
        }
      }
      ink.fill();
    });
  }

  /** Draw on top of the sheet: new subclusters, and the highlighted cluster and subcluster. */
  mark(now) {
    const { atlas, pen } = this;
    if (atlas.changing(now)) this.appearing(now);
    const id = this.lit >= 0 ? atlas.cluster[this.lit] : this.chosen;
    if (id !== null && atlas.clusters.has(id)) this.outline(id);
    if (this.lit >= 0) this.ring(this.lit, 3, 2.5, this.text);
    pen.globalAlpha = 1;
  }

  appearing(now) {
    const { atlas, pen } = this;
    for (let i = 0; i < atlas.size; i += 1) {
      const shown = atlas.shown(i, now);
      if (shown >= 1) continue;
      const [right, down] = this.screen(atlas.x[i], atlas.y[i]);
      const radius = Math.max(atlas.radius[i] * this.camera.scale, SMALLEST);
      pen.globalAlpha = shown;
      pen.fillStyle = this.colours[atlas.colour[i]];
      disc(pen, right, down, radius);
      pen.globalAlpha = 0.7 * (1 - shown);
      pen.lineWidth = 2;
      pen.strokeStyle = this.colours[atlas.colour[i]];
      pen.beginPath();
      pen.arc(right, down, radius + 14 * shown, 0, 2 * Math.PI);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  /** Highlight a cluster; of a large cluster only the neighbours of the highlighted subcluster. */
  outline(id) {
    const { atlas, pen, camera, lit } = this;
    const great = atlas.clusters.get(id).nodes > OUTLINED;
    const ends = [];
    for (let e = 0; e < atlas.a.length; e += 1) {
      const [a, b] = [atlas.a[e], atlas.b[e]];
      if (great ? a === lit || b === lit : atlas.cluster[a] === id) ends.push(a, b);
    }
    pen.lineWidth = Math.min(Math.max(camera.scale * 0.08, 1), 2.5);
    this.lines(pen, ends, this.text);
    pen.fillStyle = this.colours[atlas.clusters.get(id).colour];
    const around = great ? new Set(ends) : atlas.members(id);
    for (const i of around) {
      disc(
        pen,
        ...this.screen(atlas.x[i], atlas.y[i]),
        Math.max(atlas.radius[i] * camera.scale, SMALLEST + 0.5),
      );
      if (around.size <= OUTLINED) this.ring(i, 0.5, 1.25, this.text);
    }
  }

  ring(i, beyond, width, colour) {
    const { atlas, pen } = this;
    const radius = Math.max(atlas.radius[i] * this.camera.scale, SMALLEST) + beyond;
    pen.lineWidth = width;
    pen.strokeStyle = colour;
    pen.beginPath();
    pen.arc(...this.screen(atlas.x[i], atlas.y[i]), radius, 0, 2 * Math.PI);
    pen.stroke();
  }
}

function disc(pen, right, down, radius) {
  pen.beginPath();
  pen.arc(right, down, radius, 0, 2 * Math.PI);
  pen.fill();
}
