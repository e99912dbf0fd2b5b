/** How often, and how long each time, a slow reader of the log gets time to catch up. */
const TRIES = 200
const PAUSE_MS = 5

export interface LogOutput {
  /** `line`: with its line feed. */
  write(line: string): void
}

/**
 * Writes log lines with `put`, which returns the number of bytes that it wrote. A line that cannot be written is lost,
 * and the service continues: the disk may be full, or the reader gone. The next written line follows a line with the
 * number of lost ones.
 */
export function logOutput(put: (bytes: Buffer) => number): LogOutput {
  let lost = 0
  let reason = ''

  function putAll(text: string): void {
    let rest = Buffer.from(text)
    for (let tries = 0; rest.length > 0;)
      try {
        rest = rest.subarray(put(rest))
      } catch (error) {
        // The reader of a non-blocking pipe is behind.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || ++tries > TRIES) throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
      }
  }

  return {
    write(line) {
      try {
        if (lost > 0) {
          putAll(`${JSON.stringify({ level: 40, lost, reason, msg: 'the log lacks lines' })}\n`)
          lost = 0
        }
        putAll(line)
      } catch (error) {
        lost += 1
        reason = (error as NodeJS.ErrnoException).code ?? String(error)
      }
    },
  }
}
