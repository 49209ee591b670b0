/**
 * For a test of a promise in seconds. The bound stays as promised: a busy machine may miss it now and then, code that is too
 * slow misses it every time.
 */
export const timed = { retry: 4 } as const
