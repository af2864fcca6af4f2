// Applies frames to the page: parts by id, only upward in version, each at its place.

import { partById } from "./dom.js";
import { morph, rememberOpen } from "./morph.js";

/** The parts on the page, at one cursor. `process` is called with each element that is new. */
export class Page {
  constructor(epoch, version, process = () => {}) {
    this.epoch = epoch;
    this.version = version;
    this.process = process;
    this.pastEpochs = new Set();
    this.removed = new Map(); // id -> version of its tombstone, where that is above the cursor
    rememberOpen(document);
  }

  get cursor() {
    return `${this.epoch}:${this.version}`;
  }

  /**
   * Applies a frame: only what is newer than what is shown. `advance` says that nothing before the
   * frame is missing, so that the cursor may go up to its version.
   */
  apply(frame, advance = true) {
    if (this.pastEpochs.has(frame.epoch)) return;
    if (frame.epoch !== this.epoch) this.restart(frame.epoch);
    // A server that was started again takes no other forms.
    for (const field of frame.token ? document.querySelectorAll("input[name=token]") : []) field.value = frame.token;
    this.fresh = [];
    for (const channel of frame.channels) {
      if (channel.full) this.keepOnly(channel, frame.version);
      for (const part of channel.parts) {
        if (part.gone) this.remove(part.id, part.version);
        else this.put(channel.name, part);
      }
    }
    for (const element of this.fresh) {
      if (element.isConnected) this.process(element);
    }
    if (advance && frame.version > this.version) {
      this.version = frame.version;
      this.removed.forEach((version, id) => version <= this.version && this.removed.delete(id));
    }
  }

  restart(epoch) {
    this.pastEpochs.add(this.epoch);
    this.epoch = epoch;
    this.version = -1;
    this.removed.clear();
    for (const element of document.querySelectorAll("[data-part]")) element.dataset.version = "-1";
  }

  keepOnly({ name, parts }, version) {
    const named = new Set(parts.map((part) => part.id));
    const shown = document.querySelectorAll(`[data-channel="${CSS.escape(name)}"] [data-part]`);
    for (const element of shown) {
      if (!named.has(element.id)) this.remove(element.id, version);
    }
  }

  remove(id, version) {
    const element = partById(id);
    if (element && versionOf(element) >= version) return;
    this.removed.set(id, Math.max(version, this.removed.get(id) ?? -1));
    element?.remove();
  }

  put(channel, { id, slot, after, version, html }) {
    const shown = partById(id);
    // What is not shown and not above the cursor is gone: the cursor says that we have seen it all.
    const seen = shown ? versionOf(shown) : Math.max(this.version, this.removed.get(id) ?? -1);
    if (version <= seen) return;
    const home = region(channel, slot) ?? slotOf(partById(slot));
    if (!home) return;
    const next = parse(html);
    next.dataset.version = version;
    if (shown) {
      place(this.update(shown, next), home, after);
    } else {
      rememberOpen(next);
      place(next, home, after);
      this.fresh.push(next);
    }
  }

  /** Gives a part on the page its new form; what lies in its slot stays. Returns its element. */
  update(shown, next) {
    const slot = slotOf(shown);
    const same = shown.localName === next.localName;
    if (same) {
      morph(shown, next, this.fresh);
    } else {
      shown.after(next);
      this.fresh.push(next);
    }
    const element = same ? shown : next;
    const home = slotOf(element);
    if (slot && home && home !== slot) {
      for (const child of [...slot.childNodes]) move(home, child, null);
    }
    if (!same) shown.remove();
    return element;
  }
}

const versionOf = (element) => Number(element.dataset.version);

const region = (channel, slot) =>
  document.querySelector(`[data-channel="${CSS.escape(channel)}"][data-slot="${CSS.escape(slot)}"]`);

function slotOf(part) {
  if (!part) return null;
  return part.dataset.slot === part.id
    ? part
    : part.querySelector(`[data-slot="${CSS.escape(part.id)}"]`);
}

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return document.importNode(template.content, true).firstElementChild;
}

/** Moves a node; where the browser can, with its focus, scroll position and open state. */
function move(parent, node, before) {
  if (parent.moveBefore && parent.isConnected && node.isConnected) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function place(element, home, after) {
  let previous = element.previousElementSibling;
  while (previous && !previous.hasAttribute("data-part")) previous = previous.previousElementSibling;
  if (element.parentNode === home && (previous?.id ?? null) === after) return;
  const before = after === null ? null : partById(after);
  if (before?.parentNode === home) move(home, element, before.nextSibling);
  else if (after === null) move(home, element, home.querySelector(":scope > [data-part]"));
  else if (element.parentNode !== home) move(home, element, null);
}
