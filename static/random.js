// Random ids.

/** A random id; `randomUUID` is missing over plain http beyond loopback. */
export const randomId = () =>
  crypto.randomUUID?.() ??
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
