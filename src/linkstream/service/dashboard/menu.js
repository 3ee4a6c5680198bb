/** The menu of the shell: theme, the HTTP interface, sign out. */

import { button, el } from "./elements.js";

const KEY = "linkstream-theme";
const THEMES = [["system", "System"], ["light", "Light"], ["dark", "Dark"]];

/**
 * Fill the menu.
 * @param {HTMLElement} menu
 * @param {{signedIn: () => boolean, signOut: () => void}} shell
 */
export function fillMenu(menu, { signedIn, signOut }) {
  const leave = button("Sign out", () => {
    menu.hidePopover();
    signOut();
  });
  const about = el(
    "p",
    { class: "quiet small-text" },
    "Removes the token from this tab. It works until it is revoked.",
  );
  const session = el("div", { class: "menu-part" }, leave, about);
  menu.append(
    themes(),
    el(
      "p",
      { class: "menu-part" },
      el("a", { href: "/docs", target: "_blank", rel: "noopener" }, "HTTP interface"),
    ),
    session,
  );
  menu.addEventListener("beforetoggle", () => {
    session.hidden = !signedIn();
  });
}

function themes() {
  const current = stored();
  return el(
    "fieldset",
    { class: "segments" },
    el("legend", {}, "Theme"),
    ...THEMES.map(([value, title]) =>
      el(
        "label",
        {},
        el("input", {
          type: "radio",
          name: "theme",
          value,
          checked: value === current,
          on: { change: () => choose(value) },
        }),
        el("span", {}, title),
      )
    ),
  );
}

function stored() {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system";
  }
}

function choose(theme) {
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch { /* Without storage the theme stays that of the system. */ }
  document.dispatchEvent(new Event("theme-chosen"));
}
