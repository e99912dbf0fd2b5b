/**
 * Named GPIO lines (`hardware.ts` lists the names), as the hub sees them. Levels are logical: 1 is active (unlocked,
 * open) whatever the line's polarity. Implementations: `onoff` over sysfs, a socket, memory.
 */
export type Level = 0 | 1

export interface GpioLines {
  /** The level now; `undefined` where the line cannot be read. */
  read(name: string): Level | undefined
  /** Drives an output. False where that was not possible. */
  write(name: string, level: Level): boolean
  /** Calls `listener` after any edge of an input, without the level: edges merge, so the level is read again. */
  watch(name: string, listener: () => void): void
  /** Releases the lines without changing any level. */
  close(): void
}
