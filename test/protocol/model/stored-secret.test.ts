import { expect, test } from 'vitest'
import { storeSecret, readSecret, type SecretFiles } from '../../../protocol/model/stored-secret.ts'

class PowerCut extends Error {}

interface Inode {
  text: string
  /** The part of `text` that is on the disk. */
  durable: string
}

/**
 * A file system that loses power before step `cutAt`. The disk then contains all synced data. `torn` decides
 * what it contains of other data: names without contents, the beginning of a text, or everything.
 */
class Disk {
  #names = new Map<string, Inode>()
  #durableNames = new Map<string, Inode>()
  #open = new Map<number, Inode | 'folder'>()
  #steps = 0
  #next = 3
  cutAt = Infinity

  get steps(): number {
    return this.#steps
  }

  readonly files: SecretFiles = {
    mkdirSync: () => this.#step(),
    openSync: (path, flags) => {
      this.#step()
      if (flags === 'r') this.#open.set(this.#next, 'folder')
      else {
        const inode = { text: '', durable: '' }
        this.#names.set(path, inode)
        this.#open.set(this.#next, inode)
      }
      return this.#next++
    },
    writeFileSync: (file, text) => {
      // One byte per step, so that the power can fail between any two bytes.
      for (const byte of text) {
        this.#step()
        this.#inode(file).text += byte
      }
    },
    fsyncSync: (file) => {
      this.#step()
      const opened = this.#open.get(file)
      if (opened === 'folder') this.#durableNames = new Map(this.#names)
      else this.#inode(file).durable = this.#inode(file).text
    },
    closeSync: () => {},
    linkSync: (from, to) => {
      this.#step()
      if (this.#names.has(to)) throw Object.assign(new Error('exists'), { code: 'EEXIST' })
      this.#names.set(to, this.#names.get(from)!)
    },
    rmSync: (path) => {
      this.#step()
      this.#names.delete(path)
    },
    readFileSync: (path) => {
      const inode = this.#names.get(path)
      if (!inode) throw Object.assign(new Error('none'), { code: 'ENOENT' })
      return inode.text
    },
  }

  /** Restores the power. `storedNames`: whether names that were not synced reached the disk. */
  wake(storedNames: boolean, torn: (inode: Inode) => string): void {
    const names = storedNames ? this.#names : this.#durableNames
    for (const inode of new Set(names.values())) inode.text = inode.durable = torn(inode)
    this.#names = new Map(names)
    this.#durableNames = new Map(names)
    this.#steps = 0
    this.cutAt = Infinity
  }

  #step(): void {
    if (this.#steps++ >= this.cutAt) throw new PowerCut()
  }

  #inode(file: number): Inode {
    return this.#open.get(file) as Inode
  }
}

const PATH = 'data/hub.token'
const tears: Record<string, (inode: Inode) => string> = {
  'nothing that was not synced': ({ durable }) => durable,
  everything: ({ text }) => text,
  'the beginning': ({ text, durable }) => (durable === text ? text : text.slice(0, text.length / 2)),
}

/** Stores a secret on a disk that fails at a step, and once more after the power returns. */
function life(cutAt: number, storedNames: boolean, torn: (inode: Inode) => string, before?: string) {
  const disk = new Disk()
  if (before !== undefined) {
    const file = disk.files.openSync(PATH, 'w')
    disk.files.writeFileSync(file, before)
    disk.files.fsyncSync(file)
    disk.wake(true, ({ text }) => text)
  }
  disk.cutAt = cutAt
  let told: string | undefined
  try {
    told = storeSecret(disk.files, PATH, 'the first secret', () => {})
  } catch (error) {
    if (!(error instanceof PowerCut)) throw error
  }
  const { steps } = disk
  disk.wake(storedNames, torn)
  return { told, steps, disk }
}

const cases = Object.keys(tears).flatMap((tear) =>
  [true, false].flatMap((storedNames) => [undefined, ''].map((before) => ({ tear, storedNames, before }))),
)

test.each(cases)(
  'a secret survives a power cut at any byte of the first start ($tear written, names $storedNames, before: $before)',
  ({ tear, storedNames, before }) => {
    const { steps } = life(Infinity, storedNames, tears[tear]!, before)
    expect(steps).toBeGreaterThan('the first secret'.length)
    for (let cutAt = 0; cutAt <= steps; cutAt++) {
      const { told, disk } = life(cutAt, storedNames, tears[tear]!, before)
      const found = readSecret(disk.files, PATH)
      // The file has the whole secret or nothing, and a secret that was returned stays.
      expect(['the first secret', undefined], `cut at ${cutAt}`).toContain(found)
      if (told !== undefined) expect(found, `cut at ${cutAt}`).toBe(told)
      const second = storeSecret(disk.files, PATH, 'the second one', () => {})
      expect(second, `cut at ${cutAt}`).toBe(found ?? 'the second one')
      expect(readSecret(disk.files, PATH)).toBe(second)
    }
  },
)
