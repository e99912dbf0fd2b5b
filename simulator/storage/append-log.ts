import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

/** Entries that are only added. One append is one write, so a killed process leaves only whole entries. */
export interface AppendLog<Entry> {
  /** All entries, oldest first. */
  read(): Entry[]
  /** Throws if it could not be written. */
  append(entry: Entry): void
  /** Replaces the whole log at one instant. */
  replace(entries: readonly Entry[]): void
}

/** The storage that survives a loss of power: the controllers' memories and the world's log. */
export interface SimulatorStorage {
  /** `name`: letters, digits and dashes. The same name returns the same log again. */
  open<Entry>(name: string): AppendLog<Entry>
  close(): void
}

/** One JSON line for each entry, in `<folder>/<name>.jsonl`. */
export function folderStorage(folder: string): SimulatorStorage {
  const opened = new Map<string, FileLog<unknown>>()
  return {
    open<Entry>(name: string) {
      const log = opened.get(name) ?? fileAppendLog<unknown>(join(folder, `${name}.jsonl`))
      opened.set(name, log)
      return log as AppendLog<Entry>
    },
    close() {
      for (const log of opened.values()) log.close()
      opened.clear()
    },
  }
}

interface FileLog<Entry> extends AppendLog<Entry> {
  close(): void
}

function fileAppendLog<Entry>(path: string): FileLog<Entry> {
  mkdirSync(dirname(path), { recursive: true })
  let opened: number | undefined = openSync(path, 'a+')
  const descriptor = (): number => {
    if (opened === undefined) throw new Error(`${path} is closed`)
    return opened
  }
  return {
    read() {
      const text = readFileSync(path, 'utf8')
      const whole = text.slice(0, text.lastIndexOf('\n') + 1)
      // A half-written entry does not count. It is cut off, because the next entry would otherwise join it.
      if (whole.length < text.length) truncateSync(path, Buffer.byteLength(whole))
      return whole
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Entry)
    },
    append(entry) {
      writeSync(descriptor(), `${JSON.stringify(entry)}\n`)
    },
    replace(entries) {
      const former = descriptor()
      const fresh = `${path}.new`
      rmSync(fresh, { force: true })
      const target = openSync(fresh, 'a+')
      try {
        writeSync(target, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
        fsyncSync(target)
        renameSync(fresh, path)
      } catch (error) {
        closeSync(target)
        throw error
      }
      opened = target
      closeSync(former)
    },
    close() {
      if (opened !== undefined) closeSync(opened)
      opened = undefined
    },
  }
}
