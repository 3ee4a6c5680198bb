"""Accessibility checks that run inside the page, for every view."""

# Texts that cannot be read: contrast, as WCAG 2 defines it, to what is painted behind them.
CONTRAST = """
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) =>
    [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      layers.push(rgba(getComputedStyle(at).backgroundColor));
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const poor = [];
  for (const node of document.body.querySelectorAll("*")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.checkVisibility()) continue;
    if (node.closest("svg, :disabled, .unseen, .skip, noscript")) continue;
    const ground = behind(node);
    const ink = over(rgba(getComputedStyle(node).color), ground);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const words = node.textContent.slice(0, 30);
    if (ratio < 4.5) poor.push(`${node.tagName}.${node.className} "${words}" ${ratio}`);
  }
  return poor;
}
"""

# Controls and pictures that a screen reader could only call "button" or "picture".
NAMELESS = """
() => [...document.querySelectorAll("button, a, input, select, [role=img], img, section, nav")]
  .filter((node) => node.checkVisibility())
  .filter((node) => !(node.ariaLabel || node.textContent.trim() || node.labels?.length || node.alt))
  .map((node) => node.outerHTML.slice(0, 100))
"""
