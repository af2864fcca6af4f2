// A snapshot, or the zip of a whole chat, that is dropped on the page becomes a chat of its own, and a run's file is opened; any other file is attached.

import { find } from "./dom.js";

const HEAD_CHARS = 400; // characters by which a snapshot is known
const OWN_MARK = /^\uFEFF?\s*\{\s*"format"\s*:\s*"harness-web (snapshot|run)"/;
const HARNESSX_MARK = /^\uFEFF?\s*\{\s*"session_id"\s*:\s*"[^"]*",\s*"messages"\s*:/; // of harnessx

// The zip of a whole chat begins with its snapshot.
const ZIP_MARK = /^PK\x03\x04[^]{0,60}\.harness\/record\/snapshot\.json/;

export async function isSnapshot(file) {
  if (file.name.toLowerCase().endsWith(".zip")) {
    return ZIP_MARK.test(await file.slice(0, HEAD_CHARS).text().catch(() => ""));
  }
  if (!file.name.toLowerCase().endsWith(".json")) return false;
  const head = await file.slice(0, HEAD_CHARS).text().catch(() => "");
  return OWN_MARK.test(head) || HARNESSX_MARK.test(head);
}

/** Puts the file into the form that loads snapshots and sends it; false where there is no form. */
export function loadSnapshot(file) {
  const form = find("[data-snapshot-form]");
  if (!form) return false;
  const chosen = new DataTransfer();
  chosen.items.add(file);
  find("input[type=file]", form).files = chosen.files;
  // What comes of it is shown there.
  form.closest("details")?.setAttribute("open", "");
  const panel = form.closest("[popover]");
  if (panel && !form.checkVisibility()) panel.showPopover();
  form.requestSubmit();
  form.scrollIntoView({ block: "center" });
  return true;
}
