// Sets the page up: what is shown comes by live.js, forms are posted by htmx. Everything here also
// works, plainer, without script.

import { Banner } from "./banner.js";
import { Commands } from "./commands.js";
import { offerCompletions } from "./completions.js";
import { Composer } from "./composer.js";
import { chat, find, parsed, person } from "./dom.js";
import { writeDraft } from "./drafts.js";
import { timesFor } from "./feed.js";
import { Live } from "./live.js";
import { Log } from "./log.js";
import { Page } from "./parts.js";
import { retryNow, retryPictures } from "./pictures.js";
import { randomId } from "./random.js";
import { Surroundings } from "./surroundings.js";
import { placeToasts } from "./toasts.js";
import { Uploads } from "./uploads.js";

const { body } = document;

// ---- Setting up ------------------------------------------------------------------------------

const composer = find("[data-composer]") && new Composer(find("[data-composer]"));
const commands = composer && new Commands(composer);
const uploads = composer && find("[data-attach]") && new Uploads(composer, () => live.caughtUp);
const log = find("[data-log]") && new Log(find("[data-log]"));
const banner = new Banner(find("[data-banner]"));
const surroundings = new Surroundings();
const dialog = find("[data-dialog]");

const page = new Page(body.dataset.epoch, Number(body.dataset.version), (element) => {
  if (element.matches("[hx-post]") || find("[hx-post]", element)) window.htmx?.process(element);
  if (element.matches(".proposal")) element.scrollIntoView({ block: "nearest" });
});
let listed = true; // the open chat, in the side bar

/** A deleted chat that stands in the side bar again was brought back. */
function reviveOnceListed() {
  const before = listed;
  listed = document.getElementById(`r-${chat}`) !== null;
  if (listed && !before) location.reload();
}

const live = new Live(page, [chat, "chats"], timesFor(Number(body.dataset.beatSeconds ?? 5)), {
  changed() {
    surroundings.update();
    commands?.refresh();
    if (body.dataset.gone === "deleted") reviveOnceListed();
  },
  gone(entry) {
    if (entry.name !== chat) return;
    banner.gone(entry);
    composer?.keepHere();
    body.dataset.gone = entry.code;
    surroundings.update();
  },
  state(state) {
    banner.connection(state);
    body.dataset.link = state;
    if (state !== "live") return;
    reachable();
    retryNow();
  },
});
retryPictures();

// ---- Forms -----------------------------------------------------------------------------------

const underway = new WeakSet(); // forms whose request has no answer yet

document.addEventListener(
  "submit",
  (event) => {
    const goes = event.target === composer?.form ? messageGoes() : !underway.has(event.target);
    if (!goes) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (event.target === composer?.form) {
      composer.sending();
    }
  },
  true,
);

/** Whether the message that a person wants to send goes now. */
function messageGoes() {
  if ("gone" in body.dataset || composer.tooLong || (!composer.next && uploads?.hold())) return false;
  // What a command brings is waited for: without a word only the files would go.
  if (commands.form && underway.has(commands.form) && !composer.box.value.trim()) return false;
  return composer.mayGo(underway.has(composer.form));
}

document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  const form = detail.elt;
  underway.add(form);
  // On the form itself: a frame may take it off the page before its answer is here.
  form.addEventListener("htmx:afterRequest", function done(event) {
    if (event.target !== form) return;
    form.removeEventListener("htmx:afterRequest", done);
    // A part is shown as it was until what became of it is here: it is not to be asked for twice.
    if (event.detail.successful && form.closest("[data-part]")) {
      live.caughtUp.then(() => underway.delete(form));
    } else {
      underway.delete(form);
    }
    answered(form, event.detail);
  });
});

function answered(form, { xhr }) {
  const address = form.getAttribute("action") ?? ""; // `form.action` may be a field of this name
  if (!xhr.status || xhr.status >= 400) leaveOneError(form);
  if (form === composer?.form && (!xhr.status || xhr.status >= 400)) {
    composer.notSent(xhr.status >= 400 && xhr.status < 500);
  }
  if (!xhr.status) return unreachable(form);
  reachable();
  if (xhr.status >= 400) return;
  // What was asked for may have gone elsewhere; what went wrong before it is over.
  if (xhr.getResponseHeader("HX-Retarget")) find("[data-error]", form)?.replaceChildren();
  // What was typed may be a secret, and is needed no more.
  if ("reset" in form.dataset) form.reset();
  const next = /^\/chats\/([^/?#]+)$/.exec(xhr.getResponseHeader("HX-Redirect") ?? "")?.[1];
  if (form === composer?.form) {
    composer.sent(next);
    commands.sent();
    uploads?.sent();
    log?.follow(true);
  }
  if (dialog?.contains(form)) {
    dialog.close();
    if (address.endsWith(`/chats/${chat}/delete`) && chat && !next) location.assign("/");
  }
  const put = address.endsWith("/take-back") && parsed(xhr.responseText)[0];
  if (put) composer?.put(put.value, true);
  if (!form.isConnected) tellAnyway(xhr.getResponseHeader("HX-Trigger"));
}

/** htmx tells a form that is off the page of the server's events; nobody else hears them. */
function tellAnyway(header) {
  if (!header) return;
  const named = (name) => [name.trim(), null];
  const events = header.startsWith("{") ? Object.entries(JSON.parse(header)) : header.split(",").map(named);
  for (const [name, detail] of events) body.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
}

/** The newest refusal takes the place of earlier ones in other forms. */
function leaveOneError(form) {
  for (const each of document.querySelectorAll("[data-error]")) {
    if (!form.contains(each)) each.replaceChildren();
  }
}

/** The server answers again: what said that it does not is over. */
function reachable() {
  for (const line of document.querySelectorAll("[data-unreachable]")) line.remove();
}

function unreachable(form) {
  const line = document.createElement("p");
  line.className = "error";
  line.setAttribute("role", "alert");
  line.dataset.unreachable = "";
  const hint = document.createElement("small");
  hint.textContent = "Nothing was lost. Try again when the connection is back.";
  line.append("The server can’t be reached. ", hint);
  find("[data-error]", form)?.replaceChildren(line);
}

offerCompletions();
placeToasts();
find("[data-sign-out]")?.addEventListener("submit", () => live.say("left"));
addEventListener("pageshow", async ({ persisted }) => {
  // What one person has seen does not come back for another.
  if (!persisted || !person) return;
  const answer = await fetch(`/changes?channels=&person=${person}`, { headers: { Accept: "application/json" } });
  if (answer.status === 401) location.reload();
});
addEventListener("pageshow", ({ persisted }) => {
  // On a page that is shown again as it was left, what is chosen anew makes another chat.
  const ids = persisted ? document.querySelectorAll("form:not([data-composer]) > [name=request_id]") : [];
  for (const field of ids) field.value = randomId();
});
addEventListener("online", reachable);
document.addEventListener("changed", () => live.catchUp());

// ---- Clicks ----------------------------------------------------------------------------------

async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Plain http beyond loopback has no clipboard: select the text and copy the old way.
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  }
}

async function copyFrom(button) {
  const source = button.closest(".code, [data-code], figure, div")?.querySelector("pre");
  if (!source) return;
  const done = await copy(source.textContent, source);
  const label = (button.dataset.label ??= button.textContent);
  button.textContent = done ? "Copied" : "Press Ctrl+C";
  setTimeout(() => (button.textContent = label), 1500);
}

function askToDelete(link) {
  const form = find("form", dialog);
  form.reset();
  const address = link.getAttribute("href");
  form.action = address;
  form.setAttribute("hx-post", address);
  window.htmx?.process(form);
  find("[data-error]", form)?.replaceChildren();
  find("[data-dialog-title]", dialog).textContent = link.dataset.title;
  dialog.showModal();
}

function chooseTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  document.cookie = `theme=${name}; path=/; max-age=31536000; samesite=lax`;
  for (const each of document.querySelectorAll("[data-theme-choice]")) {
    each.setAttribute("aria-pressed", String(each.dataset.themeChoice === name));
  }
}

document.addEventListener("click", (event) => {
  const on = (selector) => event.target.closest?.(selector);
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  let found;
  if ((found = on("[data-copy]"))) {
    copyFrom(found);
  } else if (plain && dialog && (found = on("a[data-confirm]"))) {
    event.preventDefault();
    askToDelete(found);
  } else if (on("[data-dialog-no]") || event.target === dialog) {
    dialog.close();
  } else if ((found = on("[data-theme-choice]"))) {
    chooseTheme(found.dataset.themeChoice);
  } else if (on("a[data-card]")) {
    // On a small screen the panel lies over what the link leads to.
    document.getElementById("setup")?.hidePopover?.();
  } else if (on("[data-retry]")) {
    live.retry();
  } else if (on("[data-take-draft]") && composer?.box.value) {
    writeDraft("", composer.box.value);
  }
});

// ---- Keys ------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  const { target } = event;
  const typing = target.isContentEditable || target.matches?.("input, textarea, select");
  if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") {
    event.preventDefault();
    location.assign("/");
  } else if (event.key === "/" && !typing && !dialog?.open && composer && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    composer.box.focus();
  }
});

const command = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl+";
for (const link of document.querySelectorAll("a.new")) link.title = `New chat (${command}Shift+O)`;
if (composer) composer.box.title = "Enter sends, Shift+Enter breaks the line; press / to write here";
find("[data-theme-switch]")?.removeAttribute("hidden");
