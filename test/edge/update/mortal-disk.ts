import type * as Files from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Chance } from '../../simulation/chance.ts'
import { PowerCut } from '../../world/update-board.ts'

/**
 * A folder with a power supply that can fail. A power failure undoes changes that were not synced: the last changes of names,
 * in their order, and the end of the data of each file.
 */
export interface Disk {
  folder: string
  /** The power fails before this call from now on. */
  cutAfter: number
  /** Calls that changed or synced something, since the start. */
  calls: number
  /** Changes that power failures have undone. */
  undone: number
  /** Changes of names that are not on the disk yet, the latest last. */
  names: { folder: string; undo: () => void }[]
  /** Files with data that is not on the disk yet. */
  data: Set<string>
}

let files: typeof Files
let disk: Disk | undefined
let trash = 0
const opened = new Map<number, string>()

/** An empty disk with releases that are installed durably. */
export function startDisk(folder: string, releases: readonly string[]): Disk {
  for (const release of releases) files.mkdirSync(release, { recursive: true })
  disk = { folder, cutAfter: Infinity, calls: 0, undone: 0, names: [], data: new Set() }
  return disk
}

/** The power fails. */
export function cutPower(cut: Disk, chance: Chance): void {
  cut.cutAfter = Infinity
  const lost = chance.between(0, cut.names.length)
  for (const { undo } of cut.names.splice(cut.names.length - lost).toReversed()) undo()
  cut.undone += lost
  for (const path of cut.data)
    if (files.existsSync(path)) {
      cut.undone += 1
      files.truncateSync(path, chance.between(0, files.statSync(path).size))
    }
  cut.names = []
  cut.data.clear()
}

/** A call that concerns a path of the disk: the power fails before it, or it happens. */
export function call<T>(path: string, work: (on: Disk) => T): T | undefined {
  if (!disk || !path.startsWith(disk.folder)) return undefined
  disk.calls += 1
  disk.cutAfter -= 1
  if (disk.cutAfter <= 0) throw new PowerCut()
  return work(disk)
}

const isThere = (path: string): boolean => files.lstatSync(path, { throwIfNoEntry: false }) !== undefined

/** Takes a name away, so that it can return. */
function away(path: string): () => void {
  if (!isThere(path)) return () => {}
  const hidden = join(dirname(disk!.folder), `.${basename(disk!.folder)}-${(trash += 1)}`)
  files.renameSync(path, hidden)
  return () => files.renameSync(hidden, path)
}

function change(path: string, work: () => void): void {
  call(path, ({ names }) => {
    const putBack = away(path)
    work()
    const undo = (): void => {
      if (isThere(path)) files.rmSync(path, { recursive: true })
      putBack()
    }
    names.push({ folder: dirname(path), undo })
  })
}

/** The calls of `node:fs` that change or sync files; all others are the machine's own. */
export function mortal(machine: typeof Files): typeof Files {
  files = machine
  const mine = (path: unknown): path is string => disk !== undefined && String(path).startsWith(disk.folder)
  const changed = {
    openSync(path: string, flags: string, mode?: number) {
      if (mine(path) && flags === 'w') {
        if (!isThere(path)) change(path, () => machine.writeFileSync(path, '', { mode: mode ?? 0o666 }))
        disk!.data.add(path)
      }
      const file = machine.openSync(path, flags, mode)
      if (mine(path)) opened.set(file, path)
      return file
    },
    fsyncSync(file: number) {
      const path = opened.get(file)
      if (path === undefined) return machine.fsyncSync(file)
      call(path, (on) => {
        on.data.delete(path)
        on.names = on.names.filter(({ folder }) => folder !== path)
      })
    },
    closeSync(file: number) {
      opened.delete(file)
      machine.closeSync(file)
    },
    copyFileSync(from: string, to: string) {
      if (!mine(to)) return machine.copyFileSync(from, to)
      change(to, () => machine.copyFileSync(from, to))
      disk!.data.add(to)
    },
    renameSync(from: string, to: string) {
      if (!mine(to)) return machine.renameSync(from, to)
      call(to, ({ names, data }) => {
        const putBack = away(to)
        machine.renameSync(from, to)
        if (data.delete(from)) data.add(to)
        const undo = (): void => {
          machine.renameSync(to, from)
          putBack()
        }
        names.push({ folder: dirname(to), undo })
      })
    },
    symlinkSync(target: string, path: string) {
      if (!mine(path)) return machine.symlinkSync(target, path)
      change(path, () => machine.symlinkSync(target, path))
    },
    rmSync(path: string, options?: Files.RmOptions) {
      if (!mine(path)) return machine.rmSync(path, options)
      if (isThere(path)) change(path, () => {})
    },
  }
  return { ...machine, ...changed, default: { ...machine, ...changed } } as unknown as typeof Files
}
