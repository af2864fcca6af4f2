// Which tab of a browser holds the event stream for all of them.

import { SPACE } from "./dom.js";

export const NAME = SPACE;

/** Leader by Web Locks: `lead` is called when this tab leads, `lose` when another took the lock. */
export function lockElection({ lead, lose, fail }) {
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
export function leaseElection({ lead, lose }, times, id) {
  let leading = false;
  let timer = 0;
  const holder = () => {
    try {
      return JSON.parse(localStorage.getItem(NAME));
    } catch {
      return null;
    }
  };
  const write = () => localStorage.setItem(NAME, JSON.stringify({ id, until: Date.now() + times.silence }));
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
      if (held.until - Date.now() < 0.7 * times.silence) write();
    } else if (!held || held.until < Date.now()) {
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

export function storageWorks() {
  try {
    localStorage.setItem(`${NAME}-probe`, "1");
    localStorage.removeItem(`${NAME}-probe`);
    return true;
  } catch {
    return false;
  }
}
