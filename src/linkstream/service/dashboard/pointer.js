/** Mouse, touch and keyboard input of the map, translated to calls of the view (map.js). */

const CLICK = 5; // most pixels that a click may move
const STEP = 70; // pixels that an arrow key moves the map

/**
 * @typedef {object} PointerView
 * @property {import("./mapcanvas.js").MapCanvas} picture
 * @property {() => void} fit  show everything
 * @property {() => void} taken  the user starts to move the map
 * @property {(right: number, down: number, slack?: number) => number} point
 *   point at a position; return the subcluster there, or −1
 * @property {() => void} leave  stop pointing
 * @property {(place: number) => void} open  open the cluster of a subcluster
 */

/**
 * Listen to the input of a canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {PointerView} view
 */
export function followPointer(canvas, view) {
  const fingers = new Map();
  let slipped = 0;
  /** @type {(event: MouseEvent) => [number, number]} */
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    view.taken();
    view.picture.zoom(
      Math.exp(-Math.max(-120, Math.min(120, event.deltaY * lines)) * 0.0022),
      ...at(event),
    );
  }, { passive: false });

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    if (fingers.size === 1) slipped = 0;
  });

  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    const now = at(event);
    if (!before) {
      if (event.pointerType !== "touch") view.point(...now);
      return;
    }
    slipped += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (slipped > CLICK) {
      view.taken();
      canvas.classList.add("dragging");
      if (fingers.size === 2) pinch(view, fingers, event.pointerId, now);
      else view.picture.pan(now[0] - before[0], now[1] - before[1]);
    }
    fingers.set(event.pointerId, now);
  });

  const lift = (event) => {
    const known = fingers.delete(event.pointerId);
    canvas.classList.remove("dragging");
    if (!known || event.type !== "pointerup" || slipped > CLICK || fingers.size) return;
    // A finger cannot hover: a tap shows the tip, and the tip has a link.
    const place = view.point(...at(event), event.pointerType === "touch" ? 14 : 5);
    if (place >= 0 && event.pointerType !== "touch") view.open(place);
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch") view.leave();
  });
  canvas.addEventListener("dblclick", (event) => event.preventDefault());
  canvas.addEventListener("keydown", (event) => keys(event, view));
}

/** Zoom and move with two fingers; the point between them stays between them. */
function pinch(view, fingers, moving, now) {
  const before = fingers.get(moving);
  const [, other] = [...fingers].find(([id]) => id !== moving);
  const middle = (one) => [(one[0] + other[0]) / 2, (one[1] + other[1]) / 2];
  const wide = (one) => Math.max(Math.hypot(one[0] - other[0], one[1] - other[1]), 8);
  const [from, to] = [middle(before), middle(now)];
  view.picture.pan(to[0] - from[0], to[1] - from[1]);
  view.picture.zoom(wide(now) / wide(before), ...to);
}

function keys(event, view) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { picture } = view;
  const moves = {
    ArrowLeft: [STEP, 0],
    ArrowRight: [-STEP, 0],
    ArrowUp: [0, STEP],
    ArrowDown: [0, -STEP],
  };
  const zooms = { "+": 1.35, "=": 1.35, "-": 1 / 1.35, "−": 1 / 1.35, _: 1 / 1.35 };
  if (event.key in moves) {
    view.taken();
    picture.pan(...moves[event.key]);
  } else if (event.key in zooms) {
    view.taken();
    picture.zoom(zooms[event.key]);
  } else if (event.key === "0" || event.key === "Home") view.fit();
  else if (event.key === "Escape") view.leave();
  else if (event.key === "Enter" && picture.lit >= 0) view.open(picture.lit);
  else return;
  event.preventDefault();
}
