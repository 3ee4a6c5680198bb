/** Where the rows of a file go: the namespace that is shown, or a new one. */

import { el, foreign } from "./elements.js";

/** Return the names of the namespaces, as the picker has them. */
export function namespaces() {
  const options = document.querySelectorAll("#namespace option");
  return [...options].map((option) => /** @type {HTMLOptionElement} */ (option).value);
}

/**
 * Return the choice of the namespace: the present one, or a new one with a name.
 *
 * `value` returns the name that is chosen, and `fresh` that of a new one; null if it is not usable.
 */
export function targetForm(context) {
  const here = context.namespace;
  const mayMake = context.may("admin");
  const name = el("input", {
    id: "begin-name",
    name: "name",
    autocomplete: "off",
    spellcheck: "false",
    maxlength: "63",
    pattern: "[a-z0-9][a-z0-9_\\-]*",
    placeholder: "people",
    "aria-describedby": "begin-name-help",
  });
  const radio = (value, checked, text, disabled = false) =>
    el(
      "label",
      { class: "begin-choice" },
      el("input", { type: "radio", name: "target", value, checked, disabled }),
      text,
    );
  const into = here && context.may("write");
  const choices = el(
    "div",
    { class: "begin-choices", role: "radiogroup", "aria-label": "Where the rows go" },
    into && radio("here", true, el("span", {}, "Add to ", foreign(here, 40))),
    radio("new", !into, "Make a new namespace", !mayMake),
  );
  const naming = el(
    "div",
    { class: "stack", hidden: Boolean(into) },
    el("label", { for: "begin-name" }, "Its name"),
    name,
    el(
      "p",
      { class: "quiet small-text", id: "begin-name-help" },
      mayMake
        ? "Small letters, digits, - and _. Each set of people, voices or topics has a namespace of its own."
        : "Making one needs a token with the scope admin.",
    ),
  );
  const wanted = () =>
    /** @type {HTMLInputElement} */ (choices.querySelector("input:checked"))?.value ?? "new";
  choices.addEventListener("change", () => {
    naming.hidden = wanted() === "here";
    if (!naming.hidden) name.focus();
  });
  const fresh = () => {
    const other = /** @type {HTMLInputElement} */ (choices.querySelector("[value=new]"));
    if (naming.hidden) other.click();
    const given = name.value.trim();
    const taken = namespaces().includes(given);
    name.setCustomValidity(
      !/^[a-z0-9][a-z0-9_-]{0,62}$/.test(given)
        ? "Write a name of small letters, digits, - and _."
        : taken
        ? "There is a namespace of this name; choose it at the top of the page, or another name."
        : "",
    );
    name.reportValidity();
    return name.validity.valid ? given : null;
  };
  name.addEventListener("input", () => name.setCustomValidity(""));
  const value = () => (wanted() === "here" ? here : fresh());
  return { root: el("div", { class: "stack" }, choices, naming), value, fresh };
}
