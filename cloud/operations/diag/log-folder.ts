import { open, readdir, realpath, stat } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import type { LogEntry } from '../../../protocol/contract/diag.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'

/** How much of a file is read at the most. */
const LIMIT_BYTES = 1024 * 1024
const LIST_LIMIT = 1000

export interface ListOptions {
  path: string
  order: 'date' | 'name' | 'size'
  reverse: boolean
}

/**
 * A folder of log files, and nothing beside it: a path is judged by where it really leads, links included. What leads out
 * is not found.
 */
export interface LogFolder {
  list(options: ListOptions): Promise<LogEntry[]>
  /** The last `lines` of a file, or all for 0, up to 1 MiB of it. */
  view(
    file: string | undefined,
    lines: number,
  ): Promise<{ file: string; lines: string[]; truncated: boolean }>
  /** The real path of a file, by default the one written last, and its name here. */
  find(file: string | undefined): Promise<{ path: string; file: string }>
}

export function openLogFolder(folder: string): LogFolder {
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
    // Links are left out: the real thing is listed where it is.
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
        // The first of them is half a line.
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

/** Also of paths that no file system takes. */
export function isAbsence(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'ERR_INVALID_ARG_VALUE'].includes(
    String(code),
  )
}

function ifAbsent(error: unknown): undefined {
  if (!isAbsence(error)) throw error
}
