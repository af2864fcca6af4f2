// Keeps focus and selection where a change of the page takes their elements away.

import { partById } from "./dom.js";

/** Runs `change` and puts focus and selection back where a new element took their place. */
export function holding(change) {
  const active = document.activeElement;
  const part = active?.closest("[data-part]");
  const selected = readSelection();
  change();
  if (active !== document.activeElement && active && active !== document.body) {
    const again = active.isConnected ? active : active.id && document.getElementById(active.id);
    // A question that was answered is gone; its call stands there, and the next Tab goes on from it.
    const near = part && partById(part.id)?.querySelector("summary, button, a[href]");
    (again || near || document.querySelector("[data-log]"))?.focus({ preventScroll: true });
  }
  if (selected) putSelection(selected);
}

function readSelection() {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const ends = [
    [selection.anchorNode, selection.anchorOffset],
    [selection.focusNode, selection.focusOffset],
  ].map(([node, offset]) => {
    const part = (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)?.closest("[data-part]");
    if (!part) return null;
    const range = new Range();
    range.selectNodeContents(part);
    range.setEnd(node, offset);
    return { id: part.id, offset: range.toString().length };
  });
  return ends.every(Boolean) ? { ends, text: selection.getRangeAt(0).toString() } : null;
}

function putSelection({ ends, text }) {
  const selection = getSelection();
  if (selection.rangeCount && selection.getRangeAt(0).toString() === text) return;
  let [anchor, focus] = ends.map(({ id, offset }) => ({ part: partById(id), offset }));
  if (!anchor.part || !focus.part) return;
  if (anchor.part === focus.part) {
    // The text may stand elsewhere now: marks of markdown before it have become elements.
    const start = Math.min(anchor.offset, focus.offset);
    const whole = anchor.part.textContent;
    const before = whole.lastIndexOf(text, start);
    const found = before < 0 ? whole.indexOf(text, start) : before;
    if (found < 0) return;
    anchor.offset += found - start;
    focus.offset += found - start;
  }
  [anchor, focus] = [anchor, focus].map(({ part, offset }) => textPosition(part, offset));
  if (anchor && focus) selection.setBaseAndExtent(...anchor, ...focus);
}

function textPosition(part, offset) {
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (offset <= node.length) return [node, offset];
    offset -= node.length;
  }
  return null;
}
