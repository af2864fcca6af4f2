// Frames of some channels, from an event stream or by asking again and again.

import { person } from "./dom.js";

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
  `${path}?channels=${channels.map(encodeURIComponent).join(",")}&after=${encodeURIComponent(cursor)}` +
  (person && `&person=${person}`);

/** Whether an error says that somebody else, or nobody, is signed in by now. */
export const isStranger = (error) => error.status === 401;

export async function fetchChanges(channels, cursor, timeout) {
  const answer = await fetch(addressOf("/changes", channels, cursor), {
    signal: AbortSignal.timeout(timeout),
    headers: { Accept: "application/json" },
  });
  if (!answer.ok) throw Object.assign(new Error(`/changes answered ${answer.status}`), { status: answer.status });
  return answer.json();
}

/**
 * Frames of some channels: from an event stream and, while that is silent, by asking again and
 * again. `tell` has frame(frame or its text), beat(), state("live" | "stalled" | "offline" |
 * "stranger").
 */
export class Feed {
  constructor(times, page, tell, streams) {
    Object.assign(this, { times, page, tell, streams });
    this.channels = [];
    this.away = false; // nothing was answered, the last time
    this.back = 0; // when something was, after that
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
    this.began = Date.now();
    this.opened = this.heard = 0;
    source.onopen = () => (this.opened = Date.now());
    source.onerror = () => {
      this.lost ||= Date.now();
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
    this.heard = Date.now();
    this.lost = this.failures = 0;
    this.polling = this.away = false;
    this.tell.state("live");
  }

  /** Whether the stream spoke lately. */
  get lively() {
    return this.heard > Date.now() - 1.5 * this.times.beat && this.source?.readyState === EventSource.OPEN;
  }

  /** Something changed outside (network, visibility, a person's click): look at once. */
  check() {
    if (!this.channels.length || this.lively) return;
    if (this.streams) this.connect();
    this.poll();
  }

  watch() {
    if (this.streams) {
      const silent = Date.now() - Math.max(this.heard, this.began);
      const buffered = this.opened && !this.heard && Date.now() - this.opened > this.times.buffered;
      const lost = this.lost && Date.now() - this.lost > this.times.grace;
      if (buffered || lost || silent > this.times.silence) this.polling = true;
      // A stream that a proxy holds back may be let through later, so it is tried again and again.
      if (silent > this.times.silence && this.source.readyState !== EventSource.CLOSED) this.connect();
    }
    if (this.polling && Date.now() - (this.polled ?? 0) >= this.times.poll) this.poll();
  }

  /** The server answers again; its stream may follow a little later. */
  comeBack() {
    this.away = false;
    this.back = Date.now();
    if (this.source?.readyState === EventSource.CLOSED) this.connect();
  }

  async poll() {
    // Without a shared stream each tab asks for itself, and one that nobody sees can wait.
    if (this.asking || (!this.streams && document.hidden)) return;
    this.asking = true;
    this.polled = Date.now();
    const source = this.source;
    try {
      // Shorter than `silence`, so that the other tabs hear of a failure before they take over.
      const frame = await fetchChanges(this.channels, this.page.cursor, 2 * this.times.beat);
      this.tell.frame(frame);
      if (this.away) this.comeBack();
      const stalled = this.polling && this.streams && Date.now() - this.back > this.times.buffered;
      this.tell.state(stalled ? "stalled" : "live");
    } catch (error) {
      if (isStranger(error)) this.tell.state("stranger");
      else if (this.polling && source === this.source) {
        this.away = true;
        this.tell.state("offline");
      }
    }
    this.asking = false;
  }
}
