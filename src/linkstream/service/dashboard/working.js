/**
 * Reads that take long: after a second the page says so, with the seconds and a button to cancel.
 *
 * Cancelling aborts the request; the service ends the work when nobody waits for it any more.
 */

import { Problem } from "./api.js";
import { button, el } from "./elements.js";

const PATIENCE = 1_000; // milliseconds until a read is shown as slow
const SECOND = 1_000;

/** @typedef {{start: number, cancelled: boolean, cancel: () => void}} Job */

/** @type {Set<Job>} */
const jobs = new Set();
const seconds = el("span", { class: "figures", "aria-hidden": "true" });
let beat = 0;

/**
 * Send a read that the user can cancel.
 * @template Answer
 * @param {(signal: AbortSignal) => Promise<Answer>} send
 * @param {AbortSignal} signal  aborts when the view is left
 */
export async function watched(send, signal) {
  const own = new AbortController();
  const job = {
    start: performance.now(),
    cancelled: false,
    cancel: () => {
      job.cancelled = true;
      own.abort();
    },
  };
  const timer = setTimeout(() => begin(job), PATIENCE);
  try {
    return await send(AbortSignal.any([signal, own.signal]));
  } catch (error) {
    if (job.cancelled) throw cancelled();
    throw error;
  } finally {
    clearTimeout(timer);
    end(job);
  }
}

function cancelled() {
  return new Problem({
    kind: "cancelled",
    seen: "You cancelled this request.",
    remedy: "Try again when you need the answer.",
  });
}

const place = () => document.getElementById("working");

function begin(job) {
  jobs.add(job);
  tell();
  if (beat) return;
  beat = setInterval(tell, SECOND);
  place().replaceChildren(
    el("span", { class: "spinner", "aria-hidden": "true" }),
    el("span", {}, "Computing…"),
    seconds,
    button("Cancel", () => [...jobs].forEach((each) => each.cancel()), { class: "small" }),
  );
  place().hidden = false;
}

function end(job) {
  if (!jobs.delete(job) || jobs.size) return;
  clearInterval(beat);
  beat = 0;
  place().hidden = true;
  place().replaceChildren();
}

function tell() {
  const first = Math.min(...[...jobs].map((job) => job.start));
  seconds.textContent = `${Math.round((performance.now() - first) / SECOND)} s`;
}
