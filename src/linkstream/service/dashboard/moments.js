/** Moments in words: times of vectors, or their numbers where they have no times. */

import { number } from "./elements.js";

/** Format the time of the newest vector of a cluster, or its number if vectors have no times. */
export function lastSeen({ time, last_seen: newest }) {
  return time ? `last seen ${day(time)}` : `newest is vector ${number(newest)}`;
}

/** Format the day of a time. */
export function day(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime())
    ? String(time)
    : date.toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** Format a time in the words of the reader's country. */
export function moment(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime())
    ? String(time)
    : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
