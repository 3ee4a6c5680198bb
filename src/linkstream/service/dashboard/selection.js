/** A selection of items by number: click, shift-click for a range, keyboard. */

export class Selection {
  /** @param {() => void} changed called after each change */
  constructor(changed) {
    this.changed = changed;
    this.order = []; // all items that can be selected, as they are shown
    this.chosen = new Set();
    this.last = null; // the item that was selected last, where a range begins
  }

  get size() {
    return this.chosen.size;
  }

  /** Return the selected items in the order in which they are shown. */
  get items() {
    return this.order.filter((item) => this.chosen.has(item));
  }

  has(item) {
    return this.chosen.has(item);
  }

  /** Set which items are shown; others are not selected any more. */
  among(order) {
    this.order = order;
    const there = new Set(order);
    this.chosen = new Set([...this.chosen].filter((item) => there.has(item)));
    if (!there.has(this.last)) this.last = null;
    this.changed();
  }

  /** Select an item or not; `range`: all between it and the one before it likewise. */
  set(item, on, range = false) {
    const [from, to] = [this.order.indexOf(this.last), this.order.indexOf(item)];
    const some = range && from >= 0
      ? this.order.slice(Math.min(from, to), Math.max(from, to) + 1)
      : [item];
    for (const each of some) on ? this.chosen.add(each) : this.chosen.delete(each);
    this.last = item;
    this.changed();
  }

  all() {
    this.chosen = new Set(this.order);
    this.changed();
  }

  clear() {
    this.chosen.clear();
    this.changed();
  }
}

/** Call `run` with whether a checkbox is on, and whether Shift was held, when it is changed. */
export function onPick(box, run) {
  box.addEventListener("click", (event) => run(box.checked, event.shiftKey));
}
