import { openSync, read, writeSync } from 'node:fs'

/** Larger than any request of the kernel, which requires at least 8 KiB. */
const BUFFER_SIZE = 64 * 1024

export interface FuseDevice {
  /** The descriptor for the process that mounts. */
  readonly descriptor: number
  /** Passes each request to `answer` and writes its result. Calls `onEnd` when the mount is gone. */
  serve(answer: (request: Buffer) => Buffer | undefined, onEnd: (reason: string) => void): void
  /** Writes an unsolicited message; does nothing if the mount is gone. */
  notify(message: Buffer): void
}

/** The server's end of a FUSE mount. Throws if `/dev/fuse` cannot be opened. */
export function openFuseDevice(): FuseDevice {
  const descriptor = openSync('/dev/fuse', 'r+')
  const buffer = Buffer.alloc(BUFFER_SIZE)

  function write(message: Buffer): void {
    try {
      writeSync(descriptor, message)
    } catch (error) {
      // ENOENT: the request was cancelled, or no process waits with that handle. ENODEV: the mount is gone; the read
      // reports it.
      const code = (error as NodeJS.ErrnoException).code
      if (code !== 'ENOENT' && code !== 'ENODEV') throw error
    }
  }

  return {
    descriptor,
    serve(answer, onEnd) {
      const next = () =>
        read(descriptor, buffer, 0, buffer.length, null, (error, length) => {
          // ENOENT: the request was cancelled while it was read.
          if (error && (error.code === 'ENOENT' || error.code === 'EINTR' || error.code === 'EAGAIN'))
            return next()
          if (error) return onEnd(error.code ?? error.message)
          const reply = answer(buffer.subarray(0, length))
          if (reply) write(reply)
          next()
        })
      next()
    },
    notify: write,
  }
}
