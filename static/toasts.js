// What was deleted is told beside the message box; while the panel lies over that, in the panel.

import { find } from "./dom.js";

/** Has the words go along to where they are seen, with what brings a thing back. */
export function placeToasts() {
  const toasts = find(".toasts");
  const panel = document.getElementById("setup");
  if (!toasts || !panel) return;
  const home = toasts.parentElement;
  panel.addEventListener("toggle", ({ newState }) => {
    if (newState === "open") panel.append(toasts);
    else home.prepend(toasts);
  });
}
