/**
 * The shell of the page: shows one view of one namespace.
 *
 * The address names both: `#/cluster?in=voices`, `#/cluster/17`, `#/review`, `#/live`, `#/activity`,
 * `#/map`, `#/turns/monday`, `#/thresholds`, `#/begin`, `#/rebuild`, `#/confidence`. Without `in` the
 * page shows the last namespace, or the first one, and writes it into the address. Without any
 * namespace it shows `#/begin`.
 *
 * A view is a module that exports
 *
 *     export async function show(root, context) { …; return cleanup }
 *
 * `root` is an empty element of the main landmark. The shell calls `cleanup` (optional) when it
 * leaves the view. Until the view has content, the shell shows a skeleton of its `shape`. If a view
 * throws a Problem (api.js), the shell shows it with its remedy, and tries again by itself where
 * that may help. A read that takes longer than a second is shown with a button to cancel it.
 *
 * @typedef {object} Context
 * @property {string} namespace
 * @property {string[]} parts  parts of the address after the view: ["17"]
 * @property {URLSearchParams} query
 * @property {AbortSignal} signal  aborts when the view is left
 * @property {Api} api  for routes outside of a namespace
 * @property {(route: string, query?: object, how?: {quiet?: boolean}) => Promise<any>} get
 *   GET of a route of the namespace: get("clusters", {limit: 10}); quiet: one that nobody waits for
 * @property {(route: string, body?: object) => Promise<any>} post  POST with an Idempotency-Key
 * @property {(route: string) => Promise<any>} remove  DELETE of a route of the namespace
 * @property {(path: string) => Promise<string>} picture
 *   blob URL of an image of the namespace; released when the view is left
 * @property {(route: string, handlers: import("./api.js").Handlers,
 *   state?: (state: "open"|"waiting") => void) => Promise<void>} stream
 *   server-sent events until the view is left
 * @property {(scope: "read"|"write"|"admin") => boolean} may  whether the token allows a scope
 * @property {(view: string, ...parts: any[]) => string} link  address of a view, for href
 * @property {(view: string, ...parts: any[]) => void} navigate
 * @property {(values: Object<string, any>) => void} keep
 *   write values into the query of the address, so that the same address shows the same; empty
 *   ones are removed. The view is not shown again.
 * @property {() => void} refresh  show this view again
 * @property {typeof say} say  show a note for some seconds
 * @property {(error: any) => void} report  show a note with an error and its remedy
 */

import { Api, isAbort, Problem } from "./api.js";
import { el, number, short, svg } from "./elements.js";
import { fillMenu } from "./menu.js";
import { countdown, problemPanel, say, skeleton, tokenForm } from "./parts.js";
import { watched } from "./working.js";

const ring = (x, y) => `M${x} ${y}a2 2 0 1 0 4 0 2 2 0 1 0-4 0`;
const MAP_ICON = `M6 18 12 6l6 9${ring(4, 18)}${ring(10, 6)}${ring(16, 15)}`;
const PEOPLE_ICON = "M4 20c0-4 3-6 6-6s6 2 6 6M10 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 1 0 0 7" +
  "M16 14.5c2.5 .2 4 2 4 5.5M15.5 4.5a3.5 3.5 0 0 1 0 6.2";
const ACTIVITY_ICON = "M12 7v5l4 2M3.5 12a8.5 8.5 0 1 0 2-5.5M3 3v4h4";
// One line each, in the order of the tabs; the first is the default. `under`: no tab of its own.
const VIEWS = [
  { path: "cluster", title: "People", icon: PEOPLE_ICON, shape: "cards" },
  { path: "review", title: "Review", icon: "M4 12.5 9 17.5 20 6.5", shape: "page" },
  { path: "live", title: "Live", icon: "M3 12h4l3-8 4 16 3-8h4", shape: "page" },
  { path: "activity", title: "Activity", icon: ACTIVITY_ICON, shape: "rows" },
  { path: "map", title: "Map", icon: MAP_ICON, shape: "canvas" },
  { path: "turns", title: "Turns", icon: "M3 6h8M15 6h3M3 12h3M10 12h11M3 18h13", shape: "rows" },
  { path: "thresholds", title: "Thresholds", icon: "M3 19h18M6 19v-5M10 19V9M14 19V6M18 19v-8" },
  { path: "begin", title: "Begin", icon: "M12 16V4M7 9l5-5 5 5M4 16v4h16v-4", shape: "page" },
  { path: "rebuild", title: "Rebuild", under: "cluster" },
  { path: "held", title: "Held vectors", under: "review" },
  { path: "confidence", title: "How sure", under: "review" },
];
const STALE = 60_000; // milliseconds until the sizes of the namespaces are asked for again
const BLANK = 120; // milliseconds that a view may take before its skeleton is shown
const WAITS = [3, 5, 10, 15, 30]; // seconds until the page tries again by itself
const LAST = "linkstream-namespace";
const NEW = "\n"; // the entry "New namespace…" of the picker; no name of a namespace
const RANKS = ["read", "write", "admin"];

const main = document.getElementById("main");
const picker = /** @type {HTMLSelectElement} */ (document.getElementById("namespace"));
const tabs = document.getElementById("tabs");
const api = new Api(askForToken);
let shown = { end: () => {} };
let scopes = { "*": "admin" };
let turn = 0;
let asking = false; // whether the token form is shown
let failures = 0; // in a row

/** Parse the address. */
function route(hash = location.hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").filter(Boolean).map(unescaped);
  const found = VIEWS.find((known) => known.path === view) ?? VIEWS[0];
  const rest = found.path === view ? parts : [];
  return { view: found, parts: rest, query: new URLSearchParams(query) };
}

function unescaped(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function link(view, ...parts) {
  const path = [view, ...parts].map((part) => encodeURIComponent(part)).join("/");
  return `#/${path}?${new URLSearchParams({ in: picker.value })}`;
}

async function render() {
  if (asking) return;
  tabs.hidden = false;
  const mine = ++turn;
  shown.end();
  const { view, parts, query } = route();
  try {
    if (!(await loadNamespaces(query.get("in")))) {
      const begin = VIEWS.find((known) => known.path === "begin");
      if (view !== begin) history.replaceState(null, "", link(begin.path));
      markTab(begin);
      const module = await import("./begin.js");
      if (mine === turn) await open(module, begin, parts, query);
      return;
    }
    if (mine !== turn) return;
    markTab(view);
    const module = await import(`./${view.path}.js`);
    if (mine !== turn) return;
    if (query.get("in") !== picker.value || !location.hash.startsWith(`#/${view.path}`)) {
      query.set("in", picker.value);
      const path = [view.path, ...parts].map(encodeURIComponent).join("/");
      history.replaceState(null, "", `#/${path}?${query}`);
    }
    await open(module, view, parts, query);
  } catch (error) {
    if (mine === turn && !isAbort(error) && error.status !== 401) fail(error);
  }
}

async function open(module, view, parts, query) {
  const leaving = new AbortController();
  const root = el("div", { class: `view view-${view.path}` });
  let cleanup;
  shown = {
    end: () => {
      leaving.abort();
      cleanup?.();
      cleanup = undefined;
    },
  };
  const again = main.querySelector(".view") !== null;
  main.style.minHeight = `${main.offsetHeight}px`; // keeps the page from jumping while the view loads
  main.replaceChildren(root);
  const filled = placeholder(root, view, leaving.signal);
  document.title = `${view.title} · ${short(picker.value, 30)} · linkstream`;
  try {
    cleanup = await module.show(root, contextOf(parts, query, leaving.signal));
    failures = 0;
    renew();
  } catch (error) {
    if (leaving.signal.aborted || isAbort(error)) return;
    throw error;
  } finally {
    filled();
    main.style.minHeight = "";
  }
  if (leaving.signal.aborted) {
    cleanup?.();
    cleanup = undefined;
  } else if (again && document.activeElement === document.body) main.focus({ preventScroll: true });
}

/** Show a skeleton until the view has content; return a function that removes it. */
function placeholder(root, view, signal) {
  const node = el(
    "div",
    {},
    el("p", { class: "unseen", role: "status" }, `Loading ${view.title}…`),
    skeleton(view.shape),
  );
  const timer = setTimeout(() => root.childElementCount || root.before(node), BLANK);
  const changes = new MutationObserver(() => done());
  const done = () => {
    clearTimeout(timer);
    changes.disconnect();
    node.remove();
  };
  changes.observe(root, { childList: true });
  signal.addEventListener("abort", done, { once: true });
  return done;
}

/** Show an error; try again by itself where that may help. */
function fail(error) {
  const problem = Problem.of(error);
  shown.end();
  if (!problem.passes) {
    main.replaceChildren(problemPanel(problem, render));
    return;
  }
  const wait = Math.max(problem.after, WAITS[Math.min(failures, WAITS.length - 1)]);
  failures += 1;
  const { node, stop } = countdown(wait, render);
  shown = { end: stop };
  main.replaceChildren(problemPanel(problem, render, node));
}

/** @returns {Context} */
function contextOf(parts, query, signal) {
  const namespace = picker.value;
  const base = `/v1/namespaces/${encodeURIComponent(namespace)}/`;
  const report = (error) => {
    if (isAbort(error) || error.status === 401) return;
    const problem = Problem.of(error);
    say(problem.seen, { tone: "bad", detail: problem.remedy });
  };
  return {
    namespace,
    parts,
    query,
    signal,
    api,
    link,
    say,
    report,
    get: (path, wanted, { quiet = false } = {}) => {
      const send = (until) => api.get(base + path, wanted, until);
      return quiet || wanted?.wait ? send(signal) : watched(send, signal);
    },
    post: (path, body) => api.post(base + path, body),
    remove: (path) => api.remove(base + path),
    picture: (path) => lent(api.picture(base + path, signal), signal),
    stream: (path, handlers, state) =>
      api.stream(base + path, handlers, { signal, state }).catch((error) => {
        if (!signal.aborted && error.status !== 401) fail(error);
      }),
    may: (scope) => allowed(scope, namespace),
    navigate: (view, ...to) => go(link(view, ...to)),
    keep: (values) => keep(values, signal),
    refresh: render,
  };
}

function go(hash) {
  if (location.hash === hash) render();
  else location.hash = hash;
}

/** Write values into the query of the address; the view stays as it is. */
function keep(values, signal) {
  if (signal.aborted) return;
  const [path, old] = location.hash.split("?");
  const query = new URLSearchParams(old);
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(null, "", `${path}?${query}`);
}

/** Return a blob URL that is released when the view is left. */
async function lent(making, signal) {
  const url = await making;
  signal.addEventListener("abort", () => URL.revokeObjectURL(url), { once: true });
  return url;
}

function allowed(scope, namespace) {
  const rank = Math.max(RANKS.indexOf(scopes["*"]), RANKS.indexOf(scopes[namespace]));
  return rank >= RANKS.indexOf(scope);
}

/** Fill the namespace picker; return false if there is no namespace. */
async function loadNamespaces(wanted) {
  const both = [api.get("/v1/namespaces"), api.get("/v1/whoami")];
  const [{ namespaces }, who] = await Promise.all(both);
  scopes = who.scopes ?? scopes;
  const names = namespaces.map((namespace) => namespace.name);
  const liked = [wanted, picker.value, sessionStorage.getItem(LAST)];
  const chosen = liked.find((name) => names.includes(name));
  listNamespaces(namespaces, chosen ?? names[0]);
  if (!names.length) return false;
  if (wanted && wanted !== picker.value) {
    say(`There is no namespace ${short(wanted)} that your token may read.`, { tone: "bad" });
  }
  sessionStorage.setItem(LAST, picker.value);
  return true;
}

/** List the namespaces with their sizes, and the way to a new one. */
function listNamespaces(namespaces, chosen) {
  picker.replaceChildren(
    ...namespaces.map(({ name, vectors }) =>
      el("option", { value: name }, vectors === null ? name : `${name} · ${number(vectors)}`)
    ),
    ...(namespaces.length ? [el("hr"), el("option", { value: NEW }, "New namespace…")] : []),
  );
  /** @type {HTMLElement} */ (picker.closest(".picker")).hidden = !namespaces.length;
  picker.disabled = !namespaces.length;
  if (chosen) picker.value = chosen;
  picker.title = chosen ? `Namespace ${chosen}, with its number of vectors` : "Namespace";
  const known = namespaces.find(({ name }) => name === chosen)?.vectors !== null;
  listed = known ? performance.now() : -Infinity; // a namespace has counts once it is in use
}

let listed = -Infinity;

/** Ask for the sizes of the namespaces again, unless they are new or the list is open. */
async function renew() {
  const fresh = performance.now() - listed < STALE;
  if (fresh || document.hidden || asking || document.activeElement === picker) return;
  listed = performance.now();
  try {
    const { namespaces } = await api.get("/v1/namespaces");
    if (namespaces.some(({ name }) => name === picker.value)) {
      listNamespaces(namespaces, picker.value);
    }
  } catch { /* The next request of the view says what is wrong. */ }
}

/** Show the token form. Ignore refusals of a token that was replaced meanwhile. */
function askForToken(problem, sent) {
  if (asking || sent !== api.token) return;
  asking = true;
  shown.end();
  api.token = null;
  turn += 1;
  tabs.hidden = true;
  picker.replaceChildren();
  picker.disabled = true;
  document.title = "linkstream";
  main.replaceChildren(tokenForm(sent ? problem : null, (token) => {
    asking = false;
    api.token = token;
    render();
  }));
}

function markTab(current) {
  if (!tabs.childElementCount) {
    tabs.append(
      ...VIEWS.filter(({ under }) => !under).map(({ path, title, icon }) =>
        el(
          "a",
          { data: { view: path } },
          svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: icon })),
          el("span", {}, title),
        )
      ),
    );
  }
  for (const tab of /** @type {Iterable<HTMLAnchorElement>} */ (tabs.children)) {
    tab.href = link(tab.dataset.view);
    if (tab.dataset.view === (current.under ?? current.path)) {
      tab.setAttribute("aria-current", "page");
      const [left, right] = [tab.offsetLeft, tab.offsetLeft + tab.offsetWidth];
      if (left < tabs.scrollLeft || right > tabs.scrollLeft + tabs.clientWidth) {
        tabs.scrollLeft = (left + right - tabs.clientWidth) / 2; // a phone shows some of the tabs
      }
    } else tab.removeAttribute("aria-current");
  }
}

function choose() {
  const { view } = route();
  if (picker.value !== NEW) {
    location.hash = link(view.path);
    return;
  }
  picker.value = sessionStorage.getItem(LAST);
  location.hash = link("begin");
}

function start() {
  picker.addEventListener("change", choose);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  fillMenu(document.getElementById("menu"), {
    signedIn: () => api.token !== null,
    signOut: () => {
      sessionStorage.removeItem(LAST);
      askForToken(null, api.token);
    },
  });
  globalThis.addEventListener("hashchange", render);
  document.addEventListener("visibilitychange", renew);
  for (const moment of ["focus", "online"]) globalThis.addEventListener(moment, renew);
  setInterval(renew, STALE);
  render();
}

start();
