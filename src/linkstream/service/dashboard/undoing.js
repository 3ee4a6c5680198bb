/**
 * Corrections and their undo.
 *
 * Undo takes back the last thing that was done. While vectors come, that may be a vector; so the
 * page says after which event it means to undo, and the service refuses where more has come. Then
 * the reader is told what else would go, and decides.
 */

import { confirmed } from "/page/parts.js";
import { counted } from "/page/elements.js";

/**
 * Do something that can be undone.
 * @returns {Promise<{event: number, before: number, words: string}>}
 */
export async function correct(context, route, body, words) {
  const done = await context.post(route, body);
  return { ...done, words };
}

/**
 * Take a correction back; null where the reader would rather not.
 * @param {{event: number, before: number, words: string}} done what `correct` gave
 * @returns {Promise<{event: number}|null>}
 */
export async function takeBack(context, done) {
  try {
    return await context.post("undo", { to: null, after: done.event });
  } catch (error) {
    if (error.kind !== "undo") throw error;
    return takeBackMore(context, done);
  }
}

async function takeBackMore(context, done) {
  const { events } = await context.api.get(
    `/v1/namespaces/${encodeURIComponent(context.namespace)}/stats`,
  );
  const more = events - done.event;
  const goes = await confirmed("More has come since",
    `${counted(more, "event")} came after this: vectors, or what others corrected. Undoing takes ` +
    "all that back, too, and vectors have to be sent again then. Or leave it, and correct the " +
    "clusters by hand.",
    "Take it all back", "Leave it");
  return goes ? context.post("undo", { to: done.before }) : null;
}

/** Say what was done, with a way back. `after` runs when it was taken back. */
export function offerUndo(context, done, after) {
  context.say(done.words, { action: { label: "Undo", run: async () => {
    try {
      if (!(await takeBack(context, done))) return;
      context.say(`Taken back: ${done.words}`);
      after();
    } catch (error) {
      context.report(error);
    }
  } } });
}
