/**
 * For a test of what is promised in seconds. The bound stays as it is promised; a busy machine may miss it now and then,
 * code that is too slow misses it every time.
 */
export const timed = { retry: 4 } as const
