// What was typed and not sent, kept in this browser.

import { SPACE } from "./dom.js";

const DRAFTS = 40; // kept in this browser
export const LONGEST = 200_000; // characters of one; the server may keep longer ones
const draftKey = (id) => `${SPACE}:draft:${id || "new"}`;

export function readDraft(id) {
  try {
    return JSON.parse(localStorage.getItem(draftKey(id)));
  } catch {
    return null;
  }
}

/** `saved` is what the server has in its place. */
export function writeDraft(id, text, saved) {
  try {
    // An older, shorter one would be taken for what was typed last.
    if (text === null || text.length > LONGEST) return localStorage.removeItem(draftKey(id));
    localStorage.setItem(draftKey(id), JSON.stringify({ text, saved, at: Date.now() }));
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(draftKey("x").slice(0, -1)));
    if (keys.length <= DRAFTS) return;
    const age = (key) => JSON.parse(localStorage.getItem(key)).at ?? 0;
    keys.sort((a, b) => age(a) - age(b));
    localStorage.removeItem(keys[0]);
  } catch {
    // Storage is full or switched off; the server has a copy.
  }
}
