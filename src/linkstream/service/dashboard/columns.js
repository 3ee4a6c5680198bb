/** The second step of an upload: which column is what, with the first rows of the file. */

import { button, el, foreign, number, short } from "./elements.js";
import { card } from "./parts.js";
import { explained } from "./trying.js";

const SHOWN = ["text", "image", "sound"]; // columns that cards show as what they are

export class ColumnsStep {
  /**
   * @param {import("./app.js").Context} context
   * @param {string} path  of the upload
   * @param {boolean} fresh  whether the namespace is to be made
   */
  constructor(context, path, fresh) {
    this.context = context;
    this.path = path;
    this.fresh = fresh;
    this.chosen = null;
  }

  /** Ask the service what the file holds, with the vectors in a column if one was chosen. */
  async load(column = this.chosen?.column) {
    const { api, signal } = this.context;
    this.look = await api.get(`${this.path}/columns`, { column }, signal);
    const { column: vectors, id_column, time_column, others, kind } = this.look;
    this.chosen = {
      column: vectors,
      id_column,
      time_column,
      payload: new Set(
        kind === "npz" ? [] : others.filter((name) => name !== id_column && name !== time_column),
      ),
    };
  }

  /** Return the columns as the routes of an upload take them. */
  body() {
    const { column, id_column, time_column, payload } = this.chosen;
    const own = [id_column, time_column];
    const others = [...payload].filter((name) => name !== column);
    const kept = others.filter((name) => !own.includes(name) || this.look.kind !== "npz");
    return { column, id_column, time_column, payload: kept };
  }

  card(again, next) {
    const { look } = this;
    const named = look.columns.length > 0;
    this.next = button("Continue", next, { class: "main", disabled: look.error !== null });
    this.tried = el("div", { class: "try-answer", "aria-live": "polite" });
    this.holder = card(
      "What is in the file",
      {},
      el("p", {}, this.summary()),
      look.error && el(
        "p",
        { class: "bad-words", role: "alert" },
        foreign(`${look.error.seen}. ${look.error.remedy}`),
      ),
      named && this.choices(() => this.replace(again, next)),
      named && look.rows.length > 0 && this.table(),
      this.tried,
      el("div", { class: "buttons" }, this.next, again),
    );
    return this.holder;
  }

  summary() {
    const { n, dimension } = this.look;
    const rows = n === null ? "" : `${number(n)} vectors, `;
    if (dimension === null) return "No vector could be read yet: choose the column of the vectors.";
    return `${rows}${number(dimension)} numbers in each vector. These are the first rows.`;
  }

  async replace(again, next) {
    try {
      await this.load();
      this.holder.replaceWith(this.card(again, next));
    } catch (error) {
      this.context.report(error);
    }
  }

  /** Return the selects of the three roles, and a box for each other column. */
  choices(reload) {
    const { look, chosen } = this;
    const vectors = look.vectors.length ? look.vectors : [];
    const select = (name, label, help, options, none, changed) => {
      const input = el(
        "select",
        { id: `column-${name}`, name, "aria-describedby": `column-${name}-help` },
        none && el("option", { value: "" }, none),
        ...options.map((option) =>
          el("option", { value: option, selected: chosen[name] === option }, short(option, 40))
        ),
      );
      input.addEventListener("change", () => {
        chosen[name] = input.value || null;
        changed?.();
      });
      return el(
        "div",
        { class: "field-of" },
        el("label", { for: input.id }, label),
        input,
        el("p", { class: "quiet small-text", id: `column-${name}-help` }, help),
      );
    };
    return el(
      "div",
      { class: "columns-of" },
      vectors.length > 0 &&
        select("column", "Vectors", "One vector a row.", vectors, null, reload),
      select(
        "id_column",
        "Key",
        "With a key, a row that comes again is not added twice.",
        look.others,
        "None",
      ),
      select(
        "time_column",
        "Time",
        "With a zone, such as 2026-01-31T12:00:00Z, or seconds since 1970.",
        look.others,
        "None",
      ),
      look.kind !== "npz" && look.others.length > 0 && this.stored(),
    );
  }

  stored() {
    const { look, chosen } = this;
    const box = (name) => {
      const input = el("input", {
        type: "checkbox",
        name: "payload",
        value: name,
        checked: chosen.payload.has(name),
      });
      input.addEventListener("change", () => {
        if (input.checked) chosen.payload.add(name);
        else chosen.payload.delete(name);
      });
      return el("label", { class: "begin-choice" }, input, foreign(name, 40));
    };
    const known = look.others.filter((name) => SHOWN.includes(name));
    return el(
      "fieldset",
      { class: "stored-of" },
      el("legend", {}, "Store with each vector"),
      el("div", { class: "begin-choices" }, ...look.others.map(box)),
      el(
        "p",
        { class: "quiet small-text" },
        known.length
          ? `Cards show ${known.join(", ")} as what it is.`
          : "Cards show a column called text as a text, image as a picture, sound as a player.",
      ),
    );
  }

  /** Return the first rows; each can be tried at a namespace that is there. */
  table() {
    const { look } = this;
    const names = look.others.slice(0, 6);
    const canTry = !this.fresh && look.sample.length === look.rows.length;
    const row = (values, place) =>
      el(
        "tr",
        {},
        ...names.map((name) => el("td", {}, shown(values?.[name]))),
        el("td", { class: "figures quiet" }, numbers(look.sample[place])),
        canTry && el("td", {}, this.tryButton(place)),
      );
    if (!names.length && !canTry) return null;
    return el(
      "div",
      { class: "table-wide", tabindex: "0", role: "region", "aria-label": "The first rows" },
      el(
        "table",
        { class: "first-rows" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ...names.map((name) => el("th", { scope: "col" }, foreign(name, 30))),
            el("th", { scope: "col" }, look.column ? foreign(look.column, 30) : "vector"),
            canTry && el("th", { scope: "col" }, el("span", { class: "unseen" }, "Try")),
          ),
        ),
        el("tbody", {}, ...look.rows.map(row)),
      ),
    );
  }

  tryButton(place) {
    const run = async () => {
      this.tried.replaceChildren(el("p", { class: "quiet" }, "Asking…"));
      try {
        this.tried.replaceChildren(await explained(this.context, this.look.sample[place]));
      } catch (error) {
        this.tried.replaceChildren();
        this.context.report(error);
      }
    };
    return button("Which cluster?", run, {
      class: "small",
      "aria-label": `Which cluster would row ${place + 1} get?`,
    });
  }
}

const shown = (value) =>
  value === null || value === undefined
    ? el("span", { class: "quiet" }, "–")
    : foreign(typeof value === "object" ? JSON.stringify(value) : value, 60);

const numbers = (
  vector,
) => (vector ? vector.slice(0, 3).map((x) => x.toFixed(2)).join(", ") + " …" : "–");
