/**
 * One open serial line, as both ends see it: whole lines, without their line feeds. The real one is `serialport`; a
 * simulated one may be a pair in memory. A port that has failed or closed is never opened again: a new connection is a
 * new port, or what was written to the old one might be delivered to the new one.
 */
export interface LinePort {
  /** Queues one line. False where the port is not open: nothing was queued. */
  write(line: string): boolean
  /** Closes for good. `onClose` is not called for it. */
  close(): void
}

export interface LinePortHandlers {
  onOpen(): void
  /** A line, cut off at the cap where it was longer (the codec then refuses it). */
  onLine(line: string): void
  /** The port failed, or could not be opened. Called at most once, and nothing after it. */
  onClose(reason: string): void
}

/** Opens the port at `path`. Handlers are never called before it returns. */
export type OpenLinePort = (
  options: { path: string; baudRate: number },
  handlers: LinePortHandlers,
) => LinePort
