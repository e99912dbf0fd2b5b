/**
 * One open serial line as both ends use it: whole lines, without their line feeds. The real one uses `serialport`; a
 * simulated one may be a pair in memory. A port that has failed or closed is never reused, because old writes might
 * reach the new connection.
 */
export interface LinePort {
  /** Queues one line. Returns false if the port is not open: then nothing was queued. */
  write(line: string): boolean
  /** Closes for good. `onClose` is not called. */
  close(): void
}

export interface LinePortHandlers {
  onOpen(): void
  /** A line, cut at the limit if it was longer (the codec then refuses it). */
  onLine(line: string): void
  /** The port failed, or could not be opened. Called at most once, and no handler is called after it. */
  onClose(reason: string): void
}

/** Opens the port at `path`. Calls no handler before it returns. */
export type OpenLinePort = (
  options: { path: string; baudRate: number },
  handlers: LinePortHandlers,
) => LinePort

/**
 * Cuts a stream of text into lines. A line of more than `maxLength` characters is delivered at once, cut to one
 * character more, so that its reader refuses it; the rest is dropped. At most one line is stored.
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
