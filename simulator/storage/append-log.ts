import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
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
  close(): void
}

/** The storage that survives a loss of power: the controllers' memories and the world's log. */
export interface SimulatorStorage {
  /** `name`: letters, digits and dashes. The same name returns the same log again. */
  open<Entry>(name: string): AppendLog<Entry>
  close(): void
}

/** One JSON line for each entry, in `<folder>/<name>.jsonl`. */
export function folderStorage(folder: string): SimulatorStorage {
  const opened = new Map<string, AppendLog<unknown>>()
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

function fileAppendLog<Entry>(path: string): AppendLog<Entry> {
  mkdirSync(dirname(path), { recursive: true })
  let descriptor = openSync(path, 'a+')
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
      writeSync(descriptor, `${JSON.stringify(entry)}\n`)
    },
    replace(entries) {
      const fresh = `${path}.new`
      const target = openSync(fresh, 'w')
      writeSync(target, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
      fsyncSync(target)
      closeSync(target)
      renameSync(fresh, path)
      closeSync(descriptor)
      descriptor = openSync(path, 'a+')
    },
    close() {
      closeSync(descriptor)
    },
  }
}
