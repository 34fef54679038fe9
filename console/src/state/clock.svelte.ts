/** The present time, to half a minute: all times of a page are relative to the same moment. */
export const clock = $state({ now: Date.now() });

setInterval(() => (clock.now = Date.now()), 30_000);
