/**
 * The service, as the page calls it: fetch with the token of this tab, and one shape of error.
 *
 * The token lives in sessionStorage (this tab, until it is closed) and is sent as
 * `Authorization: Bearer`; there are no cookies, so another site cannot use it.
 */

import { pause, readStream } from "/page/stream.js";

const KEY = "linkstream-token";
const TRIES = 3; // of a write that did not get through; all with one Idempotency-Key

/** What went wrong, in the service's words. */
export class Problem extends Error {
  /** @param {{kind: string, seen: string, expected?: string, remedy?: string}} error */
  constructor(error, status = 0) {
    super(error.seen);
    this.name = "Problem";
    this.status = status;
    this.kind = error.kind;
    this.seen = error.seen;
    this.expected = error.expected ?? "";
    this.remedy = error.remedy ?? "";
    this.chain = error.chain ?? null;
  }

  /** Any thrown thing as a Problem. */
  static of(error) {
    if (error instanceof Problem) return error;
    const seen = error instanceof Error ? error.message : String(error);
    return new Problem({ kind: "page", seen, expected: "", remedy: "Load the page again." });
  }
}

/** Whether it is only the end of a request that nobody waits for any more. */
export const isAbort = (error) => error?.name === "AbortError";

export class Api {
  /** @param {(problem: Problem, sent: string|null) => void} refused another token is wanted */
  constructor(refused) {
    this.refused = refused;
  }

  get token() { return sessionStorage.getItem(KEY); }

  set token(value) {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  }

  /** @param {string} path @param {Object<string, any>} [query] @param {AbortSignal} [signal] */
  async get(path, query = {}, signal = undefined) {
    const answer = await this.send(path + asQuery(query), { signal });
    return answer.json();
  }

  /** A write; sent again, with one key, where it is not known whether it got through. */
  async post(path, body = {}, signal = undefined) {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": newKey() };
    const request = { method: "POST", headers, body: JSON.stringify(body), signal };
    for (let tried = 1; ; tried += 1) {
      try {
        return await (await this.send(path, request)).json();
      } catch (error) {
        const again = ["network", "busy", "too-many"].includes(error.kind);
        if (!again || tried === TRIES) throw error;
        await pause(400 * 2 ** tried, signal);
      }
    }
  }

  /** A picture as a URL of this page's own; give it back with URL.revokeObjectURL. */
  async picture(path, signal = undefined) {
    const answer = await this.send(path, { signal });
    return URL.createObjectURL(await answer.blob());
  }

  /**
   * Server-sent events until `signal` ends them; see stream.js.
   * @param {string} path @param {Object<string, (data: any) => void>} handlers by kind of event
   * @param {{signal: AbortSignal, state?: (words: "open"|"waiting") => void}} options
   */
  stream(path, handlers, options) {
    return readStream((headers, signal) => this.send(path, { headers, signal }), handlers, options);
  }

  /** One request; anything but success is thrown as a Problem. */
  async send(path, { headers = {}, ...request } = {}) {
    const sent = this.token;
    const all = sent ? { Authorization: `Bearer ${sent}`, ...headers } : headers;
    let answer;
    try {
      const ways = { headers: all, credentials: "omit", cache: "no-store" };
      answer = await fetch(path, { ...request, ...ways });
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new Problem({
        kind: "network", seen: "The service does not answer.", expected: "a running service",
        remedy: "See whether linkstream serve still runs; this page tries again by itself.",
      });
    }
    if (answer.ok) return answer;
    const problem = await problemOf(answer);
    if (answer.status === 401) this.refused(problem, sent);
    throw problem;
  }
}

async function problemOf(answer) {
  try {
    return new Problem((await answer.json()).error, answer.status);
  } catch {
    const seen = `The service answered ${answer.status} without saying why.`;
    const remedy = "Look at the service's log.";
    return new Problem({ kind: "answer", seen, remedy }, answer.status);
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
