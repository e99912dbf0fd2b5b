/** How often, and how long each time, a reader of the log that is behind is waited for. */
const TRIES = 200
const PAUSE_MS = 5

export interface LogOutput {
  /** `line`: with its line feed. */
  write(line: string): void
}

/**
 * The target of a log that `put` writes to: the standard output. A line that cannot be written is lost and ends no service. The log may be redirected
 * into a file on a full or failing disk, and its reader may have gone. The next line that can be written is preceded by one
 * that counts the lost ones.
 * `put` returns how many bytes it has written.
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
