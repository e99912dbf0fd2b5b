/**
 * The browser's clock, milliseconds since the Unix epoch, to the second. Pages read the clock here and nowhere else. Unlike
 * `performance.now()` it goes on while a telephone sleeps.
 */
export const epochMs = (): number => Date.parse(Date())
