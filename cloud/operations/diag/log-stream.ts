import { open, stat, type FileHandle } from 'node:fs/promises'
import { sleep, type Clock } from '../../../protocol/model/runtime.ts'
import { isAbsence } from './log-folder.ts'

const LOOK_MS = 250
const KEEP_ALIVE_MS = 15_000
/** How much is read at once; a reader who is slow keeps no more than this waiting. */
const CHUNK_BYTES = 64 * 1024
/** A line that is longer is sent in pieces. */
const MAX_LINE = CHUNK_BYTES

/**
 * What is being written to a file, as server-sent events, a line each. It reads on only when its reader has taken what came
 * before, from where it was: however slow, a reader loses nothing of the file and holds nothing up. After a rotation it goes
 * on with the new file.
 */
export function streamLines(path: string, clock: Clock): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let handle: FileHandle | undefined
  let inode = 0
  let offset = 0
  let rest = ''
  let decoder = new TextDecoder()
  const reader = { isGone: false, isServed: false }
  let lastSent = clock.monotonic()

  async function reopen(atEnd: boolean): Promise<void> {
    await handle?.close()
    handle = await open(path)
    const found = await handle.stat()
    inode = found.ino
    offset = atEnd ? found.size : 0
    rest = ''
    decoder = new TextDecoder()
  }

  /** What has been written since; empty where nothing has. */
  async function more(): Promise<string> {
    const buffer = Buffer.alloc(CHUNK_BYTES)
    const { bytesRead } = await handle!.read(buffer, 0, CHUNK_BYTES, offset)
    offset += bytesRead
    if (bytesRead > 0) return decoder.decode(buffer.subarray(0, bytesRead), { stream: true })
    const found = await stat(path).catch((error: unknown) => {
      if (isAbsence(error)) return undefined
      throw error
    })
    if (found && (found.ino !== inode || found.size < offset)) await reopen(false)
    return ''
  }

  /** The next lines, as events; waits for them. Undefined where the reader has gone meanwhile. */
  async function next(): Promise<string | undefined> {
    while (!reader.isGone) {
      const lines = (rest + (await more())).split('\n')
      rest = lines.pop()!
      if (rest.length > MAX_LINE) {
        lines.push(rest)
        rest = ''
      }
      const now = clock.monotonic()
      const events = lines.map((line) => `data: ${line.replaceAll('\r', '')}\n\n`).join('')
      const text = events === '' && now - lastSent >= KEEP_ALIVE_MS ? ': still here\n\n' : events
      if (text !== '') {
        lastSent = now
        return text
      }
      if (!reader.isGone) await sleep(clock, LOOK_MS)
    }
    return undefined
  }

  async function close(): Promise<void> {
    const open = handle
    handle = undefined
    await open?.close()
  }

  return new ReadableStream<Uint8Array>(
    {
      // From the first event on, nothing that is written is missed.
      async start(controller) {
        await reopen(true)
        controller.enqueue(encoder.encode(': ok\n\n'))
      },
      async pull(controller) {
        reader.isServed = true
        try {
          const text = await next()
          if (text !== undefined && !reader.isGone) controller.enqueue(encoder.encode(text))
        } finally {
          reader.isServed = false
          if (reader.isGone) await close()
        }
      },
      async cancel() {
        reader.isGone = true
        // What is being read just now is closed when it has been.
        if (!reader.isServed) await close()
      },
    },
    { highWaterMark: 1 },
  )
}
