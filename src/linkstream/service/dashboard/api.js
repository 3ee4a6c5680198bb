/**
 * Requests to the service: fetch with the token of this tab, errors as Problem, event streams.
 *
 * The token is in sessionStorage (this tab, until the tab closes) and is sent as
 * `Authorization: Bearer`. There are no cookies, so another site cannot use the token.
 */

const KEY = "linkstream-token";
const TRIES = 3; // attempts of a write, all with the same Idempotency-Key
const FIRST_WAIT = 500; // milliseconds before the first reconnection
const LONGEST_WAIT = 15_000;
const PASSING = [429, 503]; // statuses that say: later
const LASTING = new Set(["damaged-store"]); // needs the operator

/**
 * @typedef {{kind: string, seen: string, expected?: string, remedy?: string, chain?: object}}
 *   ErrorBody  the error of an answer
 * @typedef {{signal: AbortSignal, state?: (state: "open"|"waiting") => void}} StreamOptions
 * @typedef {Object<string, (data: any) => void>} Handlers  by kind of event
 */

/** An error of the service: what was seen, what was expected, and the remedy. */
export class Problem extends Error {
  /**
   * @param {ErrorBody} error
   * @param {number} [status] HTTP status, 0 if there was no answer
   * @param {number} [after] seconds of Retry-After, 0 if there was none
   */
  constructor(error, status = 0, after = 0) {
    super(error.seen);
    this.name = "Problem";
    this.status = status;
    this.kind = error.kind;
    this.seen = error.seen;
    this.expected = error.expected ?? "";
    this.remedy = error.remedy ?? "";
    this.chain = error.chain ?? null;
    this.after = after;
  }

  /** Whether the same request may succeed later without anyone doing anything. */
  get passes() {
    return this.kind === "network" || (PASSING.includes(this.status) && !LASTING.has(this.kind));
  }

  /** Return any thrown value as a Problem. */
  static of(error) {
    if (error instanceof Problem) return error;
    const seen = error instanceof Error ? error.message : String(error);
    return new Problem({ kind: "page", seen, expected: "", remedy: "Load the page again." });
  }
}

/** Return whether an error only says that a request was aborted. */
export const isAbort = (error) => error?.name === "AbortError";

export class Api {
  /** @param {(problem: Problem, sent: string|null) => void} refused called if a token is refused */
  constructor(refused) {
    this.refused = refused;
  }

  get token() {
    return sessionStorage.getItem(KEY);
  }

  set token(value) {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  }

  /**
   * Send a GET request and return its JSON.
   * @param {string} path
   * @param {Object<string, any>} [query]
   * @param {AbortSignal} [signal]
   */
  async get(path, query = {}, signal = undefined) {
    const answer = await this.send(path + asQuery(query), { signal });
    return answer.json();
  }

  /** Send a POST request and return its JSON. Retry with the same key if the outcome is unknown. */
  async post(path, body = {}, signal = undefined) {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": newKey() };
    const request = { method: "POST", headers, body: JSON.stringify(body), signal };
    for (let tried = 1;; tried += 1) {
      try {
        return await (await this.send(path, request)).json();
      } catch (error) {
        const again = ["network", "busy", "too-many"].includes(error.kind);
        if (!again || tried === TRIES) throw error;
        await pause(Math.max(400 * 2 ** tried, 1_000 * error.after), signal);
      }
    }
  }

  /** Send a DELETE request and return its JSON. */
  async remove(path) {
    return (await this.send(path, { method: "DELETE" })).json();
  }

  /** Fetch a picture and return its blob URL; release it with URL.revokeObjectURL. */
  async picture(path, signal = undefined) {
    const answer = await this.send(path, { signal });
    return URL.createObjectURL(await answer.blob());
  }

  /**
   * Read server-sent events until the signal aborts.
   * @param {string} path
   * @param {Handlers} handlers
   * @param {StreamOptions} options
   */
  stream(path, handlers, options) {
    return readStream((headers, signal) => this.send(path, { headers, signal }), handlers, options);
  }

  /**
   * Send one request; throw a Problem unless it succeeds.
   * @param {string} path
   * @param {RequestInit} [request]
   */
  async send(path, { headers = {}, ...request } = {}) {
    const sent = this.token;
    const all = sent ? { Authorization: `Bearer ${sent}`, ...headers } : headers;
    let answer;
    try {
      answer = await fetch(path, {
        ...request,
        headers: all,
        credentials: "omit",
        cache: "no-store",
      });
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new Problem({
        kind: "network",
        seen: "The service does not answer.",
        expected: "a running service",
        remedy: "Check that linkstream serve is running and that you are online.",
      });
    }
    if (answer.ok) return answer;
    const problem = await problemOf(answer);
    if (answer.status === 401) this.refused(problem, sent);
    throw problem;
  }
}

async function problemOf(answer) {
  const after = Number(answer.headers.get("Retry-After")) || 0;
  try {
    return new Problem((await answer.json()).error, answer.status, after);
  } catch {
    const seen = `The service answered ${answer.status} without an error message.`;
    const remedy = "Look at the log of the service.";
    return new Problem({ kind: "answer", seen, remedy }, answer.status, after);
  }
}

function asQuery(query) {
  const said = (value) => value !== undefined && value !== null && value !== "";
  const kept = Object.entries(query).filter(([, value]) => said(value));
  return kept.length ? `?${new URLSearchParams(kept)}` : "";
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Read server-sent events by fetch, because EventSource cannot send a token.
 *
 * After a lost connection, wait (0.5 s, then twice as long each time, at most 15 s) and continue
 * after the last event that was read (Last-Event-ID).
 * @param {(headers: Object<string, string>, signal: AbortSignal) => Promise<Response>} open
 * @param {Handlers} handlers
 * @param {StreamOptions} options
 */
async function readStream(open, handlers, { signal, state = () => {} }) {
  const position = { id: "", wait: FIRST_WAIT };
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream" };
      if (position.id) headers["Last-Event-ID"] = position.id;
      const answer = await open(headers, signal);
      state("open");
      await readAll(answer.body, handlers, position);
    } catch (error) {
      if (signal.aborted) return;
      if (error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    if (signal.aborted) return;
    state("waiting");
    await pause(position.wait * (0.75 + Math.random() / 2), signal);
    position.wait = Math.min(position.wait * 2, LONGEST_WAIT);
  }
}

async function readAll(body, handlers, position) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (left + value).replaceAll("\r\n", "\n").split("\n\n");
    left = blocks.pop();
    for (const block of blocks) {
      const { id, kind, data } = parsed(block);
      if (id !== null) position.id = id;
      if (data === null) continue;
      position.wait = FIRST_WAIT;
      handlers[kind]?.(JSON.parse(data));
    }
  }
}

/** Parse the lines of one event; skip lines that start with a colon (they keep it open). */
function parsed(block) {
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

/** Wait, or return early if `signal` aborts. */
function pause(milliseconds, signal = undefined) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    }, { once: true });
  });
}
