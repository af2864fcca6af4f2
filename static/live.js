// Keeps the page true: one event stream for all tabs of a browser.

import { NAME, leaseElection, lockElection, storageWorks } from "./elections.js";
import { person } from "./dom.js";
import { Feed, fetchChanges, isStranger } from "./feed.js";
import { randomId } from "./random.js";
import { holding } from "./selection.js";

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
    this.caughtUp = Promise.resolve(); // ends when what was asked for last is shown
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
    this.heard = Date.now();
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
    this.heard = Date.now();
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
      this.members.set(from, { channels, at: Date.now() });
      if (!this.leading) return;
      if (!channels.every((name) => this.wanted.includes(name))) this.openSoon();
      else if (message.ask) this.say("lead");
    } else if (type === "bye") {
      this.members.delete(from);
    } else if (type === "check") {
      if (this.leading) this.feed.check();
    } else if (type === "left") {
      // By then the browser knows that it is signed out.
      setTimeout(() => this.catchUp(), this.times.beat / 5);
    } else if (!this.leading) {
      this.heardLeader(message);
    }
  }

  heardLeader({ type, from, channels, state, frame }) {
    this.heard = Date.now();
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
    if (this.leading || document.hidden || Date.now() - this.heard < this.times.silence) return;
    this.heard = Date.now();
    this.election.steal();
  }

  wake() {
    if (!this.joined) return;
    this.flush();
    if (this.leading) {
      this.feed.check();
      if (person) this.catchUp(); // somebody else may have signed in
      return;
    }
    // The tab may have slept longer than the leader was silent: let the leader speak first.
    this.heard = Math.max(this.heard, Date.now() - this.times.silence / 2);
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
  catchUp() {
    if (!this.channels.length) return;
    this.stale = true;
    if (!this.fetching) this.caughtUp = this.fetchAll();
  }

  /** Ends when all that was asked for is shown, or did not come. */
  async fetchAll() {
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
      } catch (error) {
        if (isStranger(error)) this.setState("stranger");
        break; // the next beat of the leader asks again
      }
    }
    this.fetching = false;
    this.flush();
  }

  fed(frame) {
    if (this.members.size && typeof frame === "string") this.say("frame", { frame });
    else if (this.members.size) this.say("frame", { frame: JSON.stringify(frame) });
    this.receive(frame, true);
  }

  beaten() {
    for (const [id, member] of this.members) {
      if (Date.now() - member.at > 3 * this.times.beat) this.members.delete(id);
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
    if (state === "stranger") this.leave();
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
