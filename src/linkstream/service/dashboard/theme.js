/**
 * The theme: light, dark, or that of the system.
 *
 * This is a classic script in the head, not a module: it runs before anything is drawn, so that no
 * wrong colours flash. The choice is kept in localStorage under "linkstream-theme". The shell sends
 * `theme-chosen` after a choice; `theme-changed` tells canvases to read their colours again.
 */
{
  const dark = globalThis.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("linkstream-theme");
    } catch {
      return null; // storage is switched off in this browser
    }
  };
  const apply = () => {
    const system = dark.matches ? "dark" : "light";
    const theme = ["light", "dark"].includes(chosen()) ? chosen() : system;
    if (document.documentElement.dataset.theme === theme) return;
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new Event("theme-changed"));
  };
  dark.addEventListener("change", apply);
  globalThis.addEventListener("storage", apply); // chosen in another tab
  document.addEventListener("theme-chosen", apply);
  apply();
}
