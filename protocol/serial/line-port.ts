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

/**
 * Cuts a stream of text into lines. A line of more than `maxLength` characters comes at once, cut to one character more
 * than that, so that its reader refuses it; the rest of it is dropped. No more than one line is ever kept.
 */
export function createLineSplitter(
  maxLength: number,
  onLine: (line: string) => void,
): (chunk: string) => void {
  let pending = ''
  let isDropping = false
  return (chunk) => {
    const pieces = chunk.split('\n')
    for (const [index, piece] of pieces.entries()) {
      if (!isDropping) pending += piece.slice(0, maxLength + 1 - pending.length)
      const hasEnded = index < pieces.length - 1
      if (!isDropping && (hasEnded || pending.length > maxLength)) onLine(pending)
      isDropping = !hasEnded && pending.length > maxLength
      if (hasEnded) pending = ''
    }
  }
}
