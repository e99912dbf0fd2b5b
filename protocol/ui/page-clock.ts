/**
 * The browser's clock in milliseconds since the Unix epoch, to the second. Pages read the clock only here. Unlike
 * `performance.now()` it continues while a telephone sleeps.
 */
export const epochMs = (): number => Date.parse(Date())
