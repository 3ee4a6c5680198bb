/**
 * Server-sent events read by fetch, since EventSource cannot send a token.
 *
 * Reads until its signal ends it. When the connection breaks it waits (half a second, twice as
 * long each time, at most fifteen) and goes on after the last event it saw (Last-Event-ID).
 */

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;

/**
 * @param {(headers: Object<string, string>, signal: AbortSignal) => Promise<Response>} open
 * @param {Object<string, (data: any) => void>} handlers by kind of event
 * @param {{signal: AbortSignal, state?: (words: "open"|"waiting") => void}} options
 */
export async function readStream(open, handlers, { signal, state = () => {} }) {
  const place = { id: "", wait: FIRST_WAIT };
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream" };
      if (place.id) headers["Last-Event-ID"] = place.id;
      const answer = await open(headers, signal);
      state("open");
      await readAll(answer.body, handlers, place);
    } catch (error) {
      if (signal.aborted) return;
      if (error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    if (signal.aborted) return;
    state("waiting");
    await pause(place.wait * (0.75 + Math.random() / 2), signal);
    place.wait = Math.min(place.wait * 2, LONGEST_WAIT);
  }
}

async function readAll(body, handlers, place) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (left + value).replaceAll("\r\n", "\n").split("\n\n");
    left = blocks.pop();
    for (const block of blocks) {
      const { id, kind, data } = parsed(block);
      if (id !== null) place.id = id;
      if (data === null) continue;
      place.wait = FIRST_WAIT;
      handlers[kind]?.(JSON.parse(data));
    }
  }
}

/** One event's lines; those that begin with a colon only keep the connection open. */
export function parsed(block) {
  const event = { id: null, kind: "message", data: null };
  for (const line of block.split("\n")) {
    const cut = line.indexOf(":");
    if (cut < 1) continue;
    const field = line.slice(0, cut);
    const value = line.slice(cut + 1).replace(/^ /, "");
    if (field === "id") event.id = value;
    else if (field === "event") event.kind = value;
    else if (field === "data") event.data = event.data === null ? value : `${event.data}\n${value}`;
  }
  return event;
}

/** Wait so many milliseconds, or less where `signal` ends it. */
export function pause(milliseconds, signal = undefined) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}
