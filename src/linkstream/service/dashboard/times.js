/** Times in words: "today, 14:02", and between which times something happened. */

import { el } from "./elements.js";

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECONDS = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const LONG_DATE = new Intl.DateTimeFormat("en-GB", {
  weekday: "long",
  day: "numeric",
  month: "long",
});
const YEAR = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
});
const FULL = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "medium" });
const DAY = 86_400_000;
const CLOSE = 120; // seconds between two samples that count as one time

/**
 * @typedef {{time: number|null, after: number|null}} Moment  in seconds since 1970: it happened
 *   after `after` and by `time`; null where it is unknown
 */

/** Return how many days ago a date was, by the calendar. */
function daysAgo(date, now = new Date()) {
  const midnight = (day) => new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
  return Math.round((midnight(now) - midnight(date)) / DAY);
}

/** Return the day of a time as a heading: "Today", "Yesterday", "Monday 3 November". */
export function dayOf(seconds) {
  const date = new Date(seconds * 1000);
  const ago = daysAgo(date);
  if (ago === 0) return "Today";
  if (ago === 1) return "Yesterday";
  return date.getFullYear() === new Date().getFullYear()
    ? LONG_DATE.format(date)
    : YEAR.format(date);
}

/** Return a time in words: "today, 14:02", "3 Nov, 14:02". */
export function when(seconds) {
  const date = new Date(seconds * 1000);
  const ago = daysAgo(date);
  const day = ago === 0
    ? "today"
    : ago === 1
    ? "yesterday"
    : date.getFullYear() === new Date().getFullYear()
    ? DATE.format(date)
    : YEAR.format(date);
  return `${day}, ${CLOCK.format(date)}`;
}

/** Return the time of day: "14:02", or with `exact` "14:02:31". */
export const clock = (seconds, exact = false) =>
  (exact ? SECONDS : CLOCK).format(new Date(seconds * 1000));

/** Return the time of day of a change in a list that has headings for days; `exact`: to the second. */
export function clockOf({ time, after }, exact = false) {
  if (time === null) return "just now";
  if (after === null) return `before ${clock(time)}`;
  if (time - after < CLOSE) return clock(time, exact);
  const sameDay = dayOf(time) === dayOf(after);
  return sameDay ? `${clock(after)} to ${clock(time)}` : `by ${clock(time)}`;
}

/** Return in words when something happened. */
export function momentWords({ time, after }) {
  if (time === null) return "just now";
  if (after === null) return `before ${when(time)}`;
  return time - after < CLOSE ? when(time) : `between ${when(after)} and ${when(time)}`;
}

/**
 * Return an element with a time that programs can read as well.
 * @param {Moment} moment
 * @param {string} [words]
 */
export function timeElement(moment, words = momentWords(moment)) {
  const at = moment.time ?? moment.after;
  if (at === null) return el("span", {}, words);
  const date = new Date(at * 1000);
  return el("time", { datetime: date.toISOString(), title: FULL.format(date) }, words);
}

/**
 * Return in words when a vector came: its own time if it has one, else when the service saw it.
 * @param {string|null|undefined} own  ISO 8601
 * @param {Moment} [seen]
 */
export function vectorTime(own, seen = undefined) {
  const parsed = own ? Date.parse(own) : NaN;
  if (Number.isFinite(parsed)) {
    const at = parsed / 1000;
    return timeElement({ time: at, after: at });
  }
  return seen && (seen.time !== null || seen.after !== null) ? timeElement(seen) : null;
}

/**
 * Return an element for the time of a vector; `fillTimes` fills it when the service has told.
 * @param {{vector: number, time?: string|null, id?: string|null}} one
 * @param {string} [words] what is shown until then, or for good if the time is not known
 */
export function timeOf({ vector, time = null, id = null }, words = "") {
  const own = vectorTime(time);
  if (own) own.classList.add("seen-at");
  const number = `vector ${vector}${id === null ? "" : `, ${id}`}`;
  const waiting = { class: "seen-at", data: { vector: String(vector) }, title: number };
  return own ?? el("span", waiting, words);
}

/** Ask once when the vectors came whose elements wait for a time, and fill these. */
export async function fillTimes(context, root) {
  const nodes = /** @type {HTMLElement[]} */ ([...root.querySelectorAll(".seen-at[data-vector]")]);
  if (!nodes.length) return;
  const vectors = nodes.map((node) => node.dataset.vector).join(",");
  nodes.forEach((node) => delete node.dataset.vector); // each is asked for once
  try {
    const found = await context.get("moments", { vectors });
    nodes.forEach((node, place) => {
      const moment = found.vectors[place];
      if (moment.time === null && moment.after === null) return;
      node.replaceChildren(timeElement(moment));
    });
  } catch { /* The times are an addition; the view works without them. */ }
}
