import { open, readdir, realpath, stat } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import type { LogEntry } from '../../../protocol/contract/diag.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../../platform/api-error.ts'
import { unavailable } from '../../platform/unavailable.ts'
import { timestamp } from '../../platform/calendar/days.ts'

/** The maximum that is read of a file. */
const LIMIT_BYTES = 1024 * 1024
const LIST_LIMIT = 1000

interface ListOptions {
  path: string
  order: 'date' | 'name' | 'size'
  reverse: boolean
}

/**
 * A folder of log files. A path is checked by its real target, with links resolved. A target outside the
 * folder is not found.
 */
export interface LogFolder {
  list(options: ListOptions): Promise<LogEntry[]>
  /** The last `lines` of a file, or all for 0, up to 1 MiB of it. */
  view(
    file: string | undefined,
    lines: number,
  ): Promise<{ file: string; lines: string[]; truncated: boolean }>
  /** The real path of a file (by default the one written last), and its name here. */
  find(file: string | undefined): Promise<{ path: string; file: string }>
}

/** Names the folder in errors of the system; callers get 503. */
export function openLogFolder(folder: string): LogFolder {
  const logs = readLogFolder(folder)
  const named = (error: unknown): never => {
    throw error instanceof ApiError ? error : unavailable('the folder of log files (LOG_DIR)', error)
  }
  return {
    list: (options) => logs.list(options).catch(named),
    view: (file, lines) => logs.view(file, lines).catch(named),
    find: (file) => logs.find(file).catch(named),
  }
}

function readLogFolder(folder: string): LogFolder {
  async function inside(path: string): Promise<string> {
    try {
      const root = await realpath(folder)
      const real = await realpath(resolve(root, `.${sep}${path}`))
      if (real === root || real.startsWith(root + sep)) return real
    } catch (error) {
      if (!isAbsence(error)) throw error
    }
    throw new ApiError('not_found', 'No such log file.')
  }

  async function list({ path, order, reverse }: ListOptions): Promise<LogEntry[]> {
    const real = await inside(path)
    if (!(await stat(real)).isDirectory()) throw new ApiError('not_found', 'No such log folder.')
    const root = await realpath(folder)
    const entries: LogEntry[] = []
    // Links are omitted: their target is listed in its own place.
    for (const entry of (await readdir(real, { withFileTypes: true })).slice(0, LIST_LIMIT)) {
      if (!entry.isFile() && !entry.isDirectory()) continue
      const found = await stat(join(real, entry.name)).catch(ifAbsent)
      if (!found) continue
      entries.push({
        name: entry.name,
        path: relative(root, join(real, entry.name)),
        is_dir: entry.isDirectory(),
        size: entry.isDirectory() ? 0 : found.size,
        modified_at: timestamp(found.mtimeMs),
      })
    }
    const sign = reverse ? -1 : 1
    return entries.sort((a, b) => sign * (comparisons[order](a, b) || compare(a.name, b.name)))
  }

  async function find(file: string | undefined): Promise<{ path: string; file: string }> {
    const newest = async (): Promise<string | undefined> =>
      (await list({ path: '.', order: 'date', reverse: true })).find(({ is_dir }) => !is_dir)?.path
    const name = file ?? (await newest())
    if (name === undefined) throw new ApiError('not_found', 'There is no log file.')
    const path = await inside(name)
    if (!(await stat(path)).isFile()) throw new ApiError('not_found', 'No such log file.')
    return { path, file: relative(await realpath(folder), path) }
  }

  return {
    list,
    find,
    async view(wanted, count) {
      const { path, file } = await find(wanted)
      const handle = await open(path)
      try {
        const { size } = await handle.stat()
        const from = Math.max(0, size - LIMIT_BYTES)
        const buffer = Buffer.alloc(size - from)
        const { bytesRead } = await handle.read(buffer, 0, buffer.length, from)
        const all = buffer.toString('utf8', 0, bytesRead).split('\n')
        if (all.at(-1) === '') all.pop()
        // The first line is incomplete.
        if (from > 0) all.shift()
        const lines = count === 0 ? all : all.slice(-count)
        return { file, lines, truncated: from > 0 || lines.length < all.length }
      } finally {
        await handle.close()
      }
    },
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))
const comparisons: Record<ListOptions['order'], (a: LogEntry, b: LogEntry) => number> = {
  date: (a, b) => compare(a.modified_at, b.modified_at),
  name: (a, b) => compare(a.name, b.name),
  size: (a, b) => a.size - b.size,
}

/** Includes paths that no file system accepts. */
function isAbsence(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'ERR_INVALID_ARG_VALUE'].includes(
    String(code),
  )
}

function ifAbsent(error: unknown): undefined {
  if (!isAbsence(error)) throw error
}

const POLL_MS = 250
const KEEP_ALIVE_MS = 15_000
/** The size of one read; at most this much waits for a slow reader. */
const CHUNK_BYTES = 64 * 1024
/** A line that is longer is sent in pieces. */
const MAX_LINE = CHUNK_BYTES

/**
 * Streams the lines written to a file as server-sent events, one line each. It reads on only after its reader
 * has taken the previous lines. So a slow reader loses nothing of the file and delays nothing else. After a
 * rotation it continues with the new file.
 */
export function streamLines(path: string, clock: Clock): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const gone = new AbortController()
  const events = followedLines(path, clock, gone.signal)
  async function send(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const { value, done } = await events.next()
    if (!done && !gone.signal.aborted) controller.enqueue(encoder.encode(value))
  }
  return new ReadableStream<Uint8Array>(
    {
      // From the first event on, no written line is missed.
      start: send,
      pull: send,
      async cancel() {
        gone.abort()
        // Closes the file, after a read in progress.
        await events.return(undefined)
      },
    },
    { highWaterMark: 1 },
  )
}

/** An event when the file is open, then the events of the lines written since. Ends when `gone` is aborted. */
async function* followedLines(
  path: string,
  clock: Clock,
  gone: AbortSignal,
): AsyncGenerator<string, undefined> {
  let handle = await open(path)
  try {
    let { ino: inode, size: offset } = await handle.stat()
    let rest = ''
    let decoder = new TextDecoder()

    /** The text written since the last read; empty if there is none. */
    async function more(): Promise<string> {
      const buffer = Buffer.alloc(CHUNK_BYTES)
      const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, offset)
      offset += bytesRead
      if (bytesRead > 0) return decoder.decode(buffer.subarray(0, bytesRead), { stream: true })
      const found = await stat(path).catch(ifAbsent)
      if (found && (found.ino !== inode || found.size < offset)) {
        const next = await open(path)
        await handle.close()
        handle = next
        inode = (await handle.stat()).ino
        offset = 0
        rest = ''
        decoder = new TextDecoder()
      }
      return ''
    }

    let lastSent = clock.monotonic()
    yield ': ok\n\n'
    while (!gone.aborted) {
      const lines = (rest + (await more())).split('\n')
      rest = lines.pop()!
      if (rest.length > MAX_LINE) {
        lines.push(rest)
        rest = ''
      }
      const now = clock.monotonic()
      const events = lines.map((line) => `data: ${line.replaceAll('\r', '')}\n\n`).join('')
      const text = events === '' && now - lastSent >= KEEP_ALIVE_MS ? ': still here\n\n' : events
      if (text === '') await pause(clock, POLL_MS, gone)
      else {
        lastSent = now
        yield text
      }
    }
  } finally {
    await handle.close()
  }
}

/** Resolves after `delayMs`, or as soon as `gone` is aborted. */
function pause(clock: Clock, delayMs: number, gone: AbortSignal): Promise<void> {
  if (gone.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    function end(): void {
      cancel()
      gone.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(delayMs, end)
    gone.addEventListener('abort', end)
  })
}
