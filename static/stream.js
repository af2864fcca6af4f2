// Keeps the page true. First half: how a frame is applied to the page. Second half: where frames
// come from, one event stream for all tabs of a browser. One file, since each costs a request.

const now = () => Date.now();

/** A random id; `randomUUID` is missing over plain http beyond loopback. */
export const randomId = () =>
  crypto.randomUUID?.() ??
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

// ---- Applying frames -------------------------------------------------------------------------

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

function partById(id) {
  const element = document.getElementById(id);
  return element?.hasAttribute("data-part") ? element : null;
}

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

// Where a person opened or closed a `<details>` its state is theirs; else it follows the server.
const servedOpen = new WeakMap();

function rememberOpen(root) {
  const all = [...root.querySelectorAll("details")];
  if (root.localName === "details") all.push(root);
  for (const details of all) servedOpen.set(details, details.open);
}

/** Makes `shown` like `next`, and leaves alone what a person did to it. */
function morph(shown, next, fresh) {
  if (shown.nodeType !== Node.ELEMENT_NODE) return changeText(shown, next.data);
  const settle = fieldState(shown, next);
  morphAttributes(shown, next, fresh);
  const holdsParts = shown.hasAttribute("data-slot");
  // htmx puts a form's error there; it stays until the next answer.
  const holdsError = shown.hasAttribute("data-error") && !next.firstElementChild;
  if (shown.localName === "textarea") {
    if (shown.defaultValue !== next.defaultValue) shown.defaultValue = next.defaultValue;
  } else if (!holdsParts && !holdsError) {
    morphChildren(shown, next, fresh);
  }
  settle?.();
}

/** Notes what a person put into a field; the result is called when the field was changed. */
function fieldState(shown, next) {
  switch (shown.localName) {
    case "details": {
      const untouched = servedOpen.get(shown) === shown.open;
      servedOpen.set(shown, next.open);
      if (untouched && shown.open !== next.open) shown.open = next.open;
      return null;
    }
    case "input":
      if (shown.type === "checkbox" || shown.type === "radio") {
        const { checked } = shown.checked === shown.defaultChecked ? next : shown;
        return () => (shown.checked = checked);
      }
      if (shown.type === "file") return null;
    // falls through
    case "textarea": {
      const { value } = shown.value === shown.defaultValue ? next : shown;
      const caret = [shown.selectionStart, shown.selectionEnd];
      return () => {
        if (shown.value === value) return;
        shown.value = value;
        if (caret[0] !== null && shown === document.activeElement) shown.setSelectionRange(...caret);
      };
    }
    case "select": {
      const picked = [...shown.options].some((option) => option.selected !== option.defaultSelected);
      const { value } = picked ? shown : next;
      return () => {
        if (shown.value !== value && [...shown.options].some((each) => each.value === value)) {
          shown.value = value;
        }
      };
    }
  }
  return null;
}

// Set by the browser or by the scripts on this page, never by a frame.
const OURS = new Set(["open", "style", "aria-current"]);

function morphAttributes(shown, next, fresh) {
  for (const { name } of [...shown.attributes]) {
    if (!next.hasAttribute(name) && name !== "class" && !OURS.has(name)) shown.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name === "class" || OURS.has(name) || shown.getAttribute(name) === value) continue;
    shown.setAttribute(name, value);
    if (name.startsWith("hx-")) fresh.push(shown);
  }
  const busy = [...shown.classList].filter((each) => each.startsWith("htmx-"));
  const classes = [...next.classList, ...busy].join(" ");
  if ([...shown.classList].join(" ") !== classes) shown.className = classes;
}

const NEAR = 24; // siblings to look through for a match

function morphChildren(shown, next, fresh) {
  let at = shown.firstChild;
  for (const wanted of [...next.childNodes]) {
    const match = findMatch(at, wanted);
    if (!match) {
      shown.insertBefore(wanted, at);
      if (wanted.nodeType === Node.ELEMENT_NODE) {
        rememberOpen(wanted);
        fresh.push(wanted);
      }
      continue;
    }
    while (at !== match) at = dropNode(at);
    at = match.nextSibling;
    morph(match, wanted, fresh);
  }
  while (at) at = dropNode(at);
}

function dropNode(node) {
  const following = node.nextSibling;
  node.remove();
  return following;
}

/** The node, from `at` on, that becomes `wanted`; those before it have no place any more. */
function findMatch(at, wanted) {
  if (wanted.nodeType !== Node.ELEMENT_NODE) return at?.nodeType === wanted.nodeType ? at : null;
  for (let count = 0; at && count < NEAR; at = at.nextSibling, count += 1) {
    if (alike(at, wanted)) return at;
    if (at.contains(document.activeElement)) return null;
  }
  return null;
}

const NAMES = ["id", "name", "action", "type", "data-keep", "data-slot"];

function alike(node, wanted) {
  if (node.localName !== wanted.localName || node.nodeType !== wanted.nodeType) return false;
  return NAMES.every((name) => node.getAttribute(name) === wanted.getAttribute(name));
}

/** Changes only what differs at the end, so that a selection in the text before it stays. */
function changeText(node, text) {
  const shown = node.data;
  if (shown === text) return;
  let same = 0;
  while (same < shown.length && shown[same] === text[same]) same += 1;
  if (same === shown.length) node.appendData(text.slice(same));
  else node.replaceData(same, shown.length - same, text.slice(same));
}

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

// ---- Where frames come from ------------------------------------------------------------------

/** All waits in milliseconds, as multiples of the server's beat (5 s unless a test says less). */
export function timesFor(beatSeconds = 5) {
  const beat = beatSeconds * 1000;
  return {
    beat,
    grace: 0.3 * beat, // a lost connection is not worth a word before this
    buffered: 1.2 * beat, // open, and not one beat: something holds the stream back
    silence: 2.4 * beat,
    poll: 0.4 * beat,
    retry: [0.1 * beat, 2 * beat],
  };
}

const addressOf = (path, channels, cursor) =>
  `${path}?channels=${channels.map(encodeURIComponent).join(",")}&after=${encodeURIComponent(cursor)}`;

async function fetchChanges(channels, cursor, timeout) {
  const answer = await fetch(addressOf("/changes", channels, cursor), {
    signal: AbortSignal.timeout(timeout),
    headers: { Accept: "application/json" },
  });
  if (!answer.ok) throw new Error(`/changes answered ${answer.status}`);
  return answer.json();
}

/**
 * Frames of some channels: from an event stream and, while that is silent, by asking again and
 * again. `tell` has frame(frame or its text), beat(), state("live" | "stalled" | "offline").
 */
class Feed {
  constructor(times, page, tell, streams) {
    Object.assign(this, { times, page, tell, streams });
    this.channels = [];
  }

  start(channels) {
    this.stop();
    this.channels = channels;
    if (!channels.length) return;
    this.failures = 0;
    this.lost = 0;
    this.polling = !this.streams;
    if (this.streams) this.connect();
    this.timer = setInterval(() => this.watch(), this.times.poll / 4);
  }

  stop() {
    clearInterval(this.timer);
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  connect() {
    clearTimeout(this.again);
    this.source?.close();
    const source = new EventSource(addressOf("/stream", this.channels, this.page.cursor));
    this.source = source;
    this.began = now();
    this.opened = this.heard = 0;
    source.onopen = () => (this.opened = now());
    source.onerror = () => {
      this.lost ||= now();
      // Closed for good (an HTTP error, say): the browser does not try again by itself.
      if (source.readyState === EventSource.CLOSED) this.connectLater();
    };
    source.addEventListener("frame", (event) => {
      this.alive();
      this.tell.frame(event.data);
    });
    source.addEventListener("beat", () => {
      this.alive();
      this.tell.beat();
    });
  }

  connectLater() {
    const [least, most] = this.times.retry;
    const wait = Math.min(most, least * 2 ** this.failures) * (0.5 + Math.random() / 2);
    this.failures += 1;
    clearTimeout(this.again);
    this.again = setTimeout(() => this.connect(), Math.max(least, wait));
  }

  alive() {
    this.heard = now();
    this.lost = this.failures = 0;
    this.polling = false;
    this.tell.state("live");
  }

  /** Whether the stream spoke lately. */
  get lively() {
    return this.heard > now() - 1.5 * this.times.beat && this.source?.readyState === EventSource.OPEN;
  }

  /** Something changed outside (network, visibility, a person's click): look at once. */
  check() {
    if (!this.channels.length || this.lively) return;
    if (this.streams) this.connect();
    this.poll();
  }

  watch() {
    if (this.streams) {
      const silent = now() - Math.max(this.heard, this.began);
      const buffered = this.opened && !this.heard && now() - this.opened > this.times.buffered;
      const lost = this.lost && now() - this.lost > this.times.grace;
      if (buffered || lost || silent > this.times.silence) this.polling = true;
      // A stream that a proxy holds back may be let through later, so it is tried again and again.
      if (silent > this.times.silence && this.source.readyState !== EventSource.CLOSED) this.connect();
    }
    if (this.polling && now() - (this.polled ?? 0) >= this.times.poll) this.poll();
  }

  async poll() {
    // Without a shared stream each tab asks for itself, and one that nobody sees can wait.
    if (this.asking || (!this.streams && document.hidden)) return;
    this.asking = true;
    this.polled = now();
    const source = this.source;
    try {
      // Shorter than `silence`, so that the other tabs hear of a failure before they take over.
      const frame = await fetchChanges(this.channels, this.page.cursor, 2 * this.times.beat);
      this.tell.frame(frame);
      this.tell.state(this.polling && this.streams ? "stalled" : "live");
    } catch {
      if (this.polling && source === this.source) this.tell.state("offline");
    }
    this.asking = false;
  }
}

const NAME = "harness-web";

/** Leader by Web Locks: `lead` is called when this tab leads, `lose` when another took the lock. */
function lockElection({ lead, lose, fail }) {
  let joined = false;
  let queue = null;
  let release = () => {};
  async function request(options) {
    let held = false;
    try {
      await navigator.locks.request(NAME, options, () => {
        if (!joined) return null;
        held = true;
        return new Promise((resolve) => {
          release = resolve;
          lead();
        });
      });
    } catch (error) {
      if (error.name !== "AbortError") return fail();
      // Our own wait was called off, or the lock that we held was stolen.
      if (held && joined) {
        lose();
        join();
      }
    }
  }
  function join() {
    joined = true;
    queue = new AbortController();
    request({ signal: queue.signal });
  }
  return {
    join,
    leave() {
      joined = false;
      queue.abort();
      release();
    },
    steal() {
      queue.abort();
      request({ steal: true });
    },
    renew() {},
  };
}

/**
 * Leader without Web Locks: a lease in localStorage. Two tabs that claim it at once both see
 * who wrote last; a leader that finds another's name there steps down.
 */
function leaseElection({ lead, lose }, times, id) {
  let leading = false;
  let timer = 0;
  const holder = () => {
    try {
      return JSON.parse(localStorage.getItem(NAME));
    } catch {
      return null;
    }
  };
  const write = () => localStorage.setItem(NAME, JSON.stringify({ id, until: now() + times.silence }));
  function claim() {
    write();
    setTimeout(() => {
      if (!timer || leading || holder()?.id !== id) return;
      leading = true;
      lead();
    }, times.beat / 25);
  }
  function look() {
    const held = holder();
    const mine = held?.id === id;
    if (leading && !mine) {
      leading = false;
      lose();
    } else if (leading) {
      if (held.until - now() < 0.7 * times.silence) write();
    } else if (!held || held.until < now()) {
      claim();
    }
  }
  const changed = (event) => event.key === NAME && look();
  return {
    join() {
      timer = setInterval(look, times.beat / 2);
      addEventListener("storage", changed);
      look();
    },
    leave() {
      clearInterval(timer);
      timer = 0;
      leading = false;
      removeEventListener("storage", changed);
      if (holder()?.id === id) localStorage.removeItem(NAME);
    },
    steal: claim,
    renew: look, // a beat arrives in hidden tabs too, where timers hardly run
  };
}

function storageWorks() {
  try {
    localStorage.setItem(`${NAME}-probe`, "1");
    localStorage.removeItem(`${NAME}-probe`);
    return true;
  } catch {
    return false;
  }
}

/**
 * Keeps the page true. The tabs of a browser elect a leader; its stream carries the channels of
 * all, and it relays each frame as it came. A tab that joins, wakes or gets a new leader asks once
 * for what changed since its own cursor; until it has the answer, relayed frames do not move the
 * cursor. `tell` has changed(), gone(entry), state(name).
 */
export class Live {
  constructor(page, channels, times, tell) {
    Object.assign(this, { page, times, tell });
    this.channels = channels.filter(Boolean);
    this.id = randomId();
    this.members = new Map(); // tab -> {channels, at}
    this.frames = [];
    this.shares = "BroadcastChannel" in window && ("locks" in navigator || storageWorks());
    const heard = { frame: (f) => this.fed(f), beat: () => this.beaten(), state: (s) => this.setState(s) };
    this.feed = new Feed(times, page, heard, this.shares);
    const roles = { lead: () => this.lead(), lose: () => this.follow(), fail: () => this.alone() };
    if (this.shares) {
      this.election =
        "locks" in navigator ? lockElection(roles) : leaseElection(roles, times, this.id);
    }
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", (event) => event.persisted && this.join());
    addEventListener("online", () => this.wake());
    document.addEventListener("freeze", () => this.leave());
    document.addEventListener("resume", () => this.join());
    document.addEventListener("visibilitychange", () => (document.hidden ? this.flush() : this.wake()));
    this.join();
  }

  join() {
    if (this.joined) return;
    this.joined = true;
    this.heard = now();
    this.leader = null;
    this.covered = this.synced = false;
    if (!this.shares) return this.lead();
    this.wire = new BroadcastChannel(NAME);
    this.wire.onmessage = (event) => this.hear(event.data);
    this.say("here", { ask: true });
    this.watcher = setInterval(() => this.watch(), this.times.beat / 5);
    this.election.join();
  }

  /** Gives up lead and stream; a page in the back/forward cache must hold neither. */
  leave() {
    if (!this.joined) return;
    this.joined = this.leading = false;
    this.feed.stop();
    clearInterval(this.watcher);
    if (!this.shares) return;
    this.election.leave();
    this.say("bye");
    this.wire.close();
  }

  lead() {
    this.leading = this.covered = this.synced = true;
    this.leader = this.id;
    this.open();
  }

  /** Without a way to elect a leader a tab asks for itself, and holds no connection. */
  alone() {
    this.shares = this.feed.streams = false;
    this.lead();
  }

  /** Opens the stream for the channels of all tabs, from this tab's own cursor. */
  open() {
    this.flush();
    this.wanted = [...new Set([this.channels, ...[...this.members.values()].map((m) => m.channels)].flat())];
    this.feed.start(this.wanted);
    this.say("lead");
  }

  openSoon() {
    clearTimeout(this.opening);
    this.opening = setTimeout(() => this.leading && this.open(), 20);
  }

  follow() {
    this.leading = this.covered = this.synced = false;
    this.leader = null;
    this.heard = now();
    this.feed.stop();
  }

  say(type, more = {}) {
    if (!this.shares || !this.wire) return;
    const channels = type === "here" ? this.channels : this.wanted;
    this.wire.postMessage({ type, from: this.id, channels, state: this.state, ...more });
  }

  hear(message) {
    const { type, from, channels } = message;
    if (type === "here") {
      this.members.set(from, { channels, at: now() });
      if (!this.leading) return;
      if (!channels.every((name) => this.wanted.includes(name))) this.openSoon();
      else if (message.ask) this.say("lead");
    } else if (type === "bye") {
      this.members.delete(from);
    } else if (type === "check") {
      if (this.leading) this.feed.check();
    } else if (!this.leading) {
      this.heardLeader(message);
    }
  }

  heardLeader({ type, from, channels, state, frame }) {
    this.heard = now();
    const known = from === this.leader;
    if (!known) {
      this.leader = from;
      this.covered = this.synced = false;
    }
    if (frame) this.receive(frame, this.synced);
    else this.setState(state);
    this.covered = this.channels.every((name) => channels.includes(name));
    if (type === "beat" || !known || (type === "lead" && !this.covered)) this.say("here");
    if (this.covered && !this.synced && !this.fetching) this.catchUp();
  }

  watch() {
    if (this.leading || document.hidden || now() - this.heard < this.times.silence) return;
    this.heard = now();
    this.election.steal();
  }

  wake() {
    if (!this.joined) return;
    this.flush();
    if (this.leading) return this.feed.check();
    // The tab may have slept longer than the leader was silent: let the leader speak first.
    this.heard = Math.max(this.heard, now() - this.times.silence / 2);
    this.say("here", { ask: true });
    this.catchUp();
  }

  /** Looks at once, because a person asked for it. */
  retry() {
    if (this.leading) this.feed.check();
    else this.say("check");
    this.catchUp();
  }

  /** Fetches what changed since this tab's cursor; called again meanwhile, it asks once more. */
  async catchUp() {
    if (!this.channels.length) return;
    this.stale = true;
    if (this.fetching) return;
    this.fetching = true;
    while (this.stale) {
      this.stale = false;
      const { leader, covered } = this;
      this.flush();
      try {
        const frame = await fetchChanges(this.channels, this.page.cursor, this.times.silence);
        this.queue(frame, true);
        // Nothing is missing if the leader's stream had our channels before we asked.
        this.synced ||= covered && leader === this.leader;
        this.stale ||= this.covered && !this.synced;
      } catch {
        break; // the next beat of the leader asks again
      }
    }
    this.fetching = false;
  }

  fed(frame) {
    if (this.members.size && typeof frame === "string") this.say("frame", { frame });
    else if (this.members.size) this.say("frame", { frame: JSON.stringify(frame) });
    this.receive(frame, true);
  }

  beaten() {
    for (const [id, member] of this.members) {
      if (now() - member.at > 3 * this.times.beat) this.members.delete(id);
    }
    this.election.renew();
    this.say("beat");
  }

  setState(state) {
    if (!state || state === this.state) {
      if (this.leading && state && state !== "live") this.say("state");
      return;
    }
    this.state = state;
    if (this.leading) this.say("state");
    this.tell.state(state);
  }

  receive(raw, advance) {
    const frame = typeof raw === "string" ? JSON.parse(raw) : raw;
    if (frame.epoch !== this.page.epoch) this.flush();
    if (frame.epoch !== this.page.epoch && !this.covers(frame)) {
      // The server was started again and this frame does not say all: ask for everything.
      this.synced = this.leading;
      this.catchUp();
      return;
    }
    this.queue(frame, advance);
  }

  covers(frame) {
    const said = [...frame.channels.filter((each) => each.full), ...(frame.gone ?? [])];
    return this.channels.every((name) => said.some((each) => each.name === name));
  }

  /** Frames are applied together, once a screen refresh; at once where nothing is drawn. */
  queue(frame, advance) {
    this.frames.push([frame, advance]);
    if (document.hidden) return this.flush();
    if (this.scheduled) return;
    const flush = () => this.flush();
    this.scheduled = [requestAnimationFrame(flush), setTimeout(flush, 250)];
  }

  flush() {
    if (this.scheduled) {
      cancelAnimationFrame(this.scheduled[0]);
      clearTimeout(this.scheduled[1]);
      this.scheduled = null;
    }
    const frames = this.frames.splice(0);
    if (!frames.length) return;
    holding(() => frames.forEach(([frame, advance]) => this.page.apply(frame, advance)));
    for (const [frame] of frames) frame.gone?.forEach((entry) => this.end(entry));
    this.tell.changed();
  }

  /** A channel is gone: nobody asks for it any more. */
  end(entry) {
    const without = (names) => names.filter((name) => name !== entry.name);
    for (const member of this.members.values()) member.channels = without(member.channels);
    const ours = this.channels.includes(entry.name);
    this.channels = without(this.channels);
    if (this.leading && this.wanted.includes(entry.name)) this.openSoon();
    if (ours) this.tell.gone(entry);
  }
}
