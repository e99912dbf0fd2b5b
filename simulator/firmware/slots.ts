import { verify, type KeyObject } from 'node:crypto'
import type { FrameBody, FrameOf, Refusal } from '../../protocol/serial/frames.ts'
import { readImageHeader, SIGNATURE_BYTES } from '../../protocol/serial/image.ts'
import type { AppendLog } from '../storage/append-log.ts'
import { HANGS, SIMULATED_KIND, sumOf } from './image.ts'
import type { AskBoard } from '../board/messages.ts'
import type { MemoryEntry } from './operation-memory.ts'

/** `verified`: the next start runs it on trial. `trial`: a start has run it, and no host has kept it. */
interface Running {
  build: number
  state: 'verified' | 'trial' | 'kept'
  /** The build that returns after a trial. */
  former: number
  /** Its program never answers. */
  hangs: boolean
}

/** An entry of the flash. The last `running` is valid; `image` begins an empty slot. */
export type SlotEntry =
  | { running: Running }
  | { image: FrameBody<'IMG'> }
  /** In base64url. */
  | { block: string }

const FACTORY: Running = { build: 1, state: 'kept', former: 1, hangs: false }
const ROOM_BYTES = 65_536

/** The two slots of a controller's firmware, and its boot loader (SPEC §12). The constructor is a start of the processor. */
export class Slots {
  readonly #log: AppendLog<SlotEntry>
  readonly #key: KeyObject
  #running = FACTORY
  #image: FrameBody<'IMG'> | undefined
  #bytes = Buffer.alloc(0)

  constructor(log: AppendLog<SlotEntry>, key: KeyObject) {
    this.#log = log
    this.#key = key
    for (const entry of log.read()) this.#apply(entry)
    const { state, former } = this.#running
    if (state === 'verified') this.#write({ running: { ...this.#running, state: 'trial' } })
    else if (state === 'trial') this.#write({ running: { ...FACTORY, build: former, former } })
  }

  get build(): number {
    return this.#running.build
  }

  get isOnTrial(): boolean {
    return this.#running.state === 'trial'
  }

  get hangs(): boolean {
    return this.#running.hangs
  }

  /** The answer to FWQ. */
  about(): FrameBody<'FW'> {
    const stored = this.#image && { sum: this.#image.sum, at: this.#bytes.length }
    const { build, isOnTrial: trial } = this
    return { kind: SIMULATED_KIND, build, trial, room: ROOM_BYTES, sum: stored?.sum, at: stored?.at }
  }

  /** Executes a frame of the host, or returns its refusal. */
  take(frame: FrameOf<'IMG'> | FrameOf<'BLK'> | FrameOf<'USE'> | FrameOf<'KEEP'>): Refusal | undefined {
    if (frame.type === 'KEEP') return this.#keep(frame.build)
    // The free slot contains the firmware that returns after a trial.
    if (this.isOnTrial) return 'busy'
    switch (frame.type) {
      case 'IMG':
        return this.#begin(frame)
      case 'BLK':
        return this.#store(frame)
      case 'USE':
        return this.#use(frame.sum)
    }
  }

  #begin({ kind, build, size, sum }: FrameBody<'IMG'>): Refusal | undefined {
    if (kind !== SIMULATED_KIND || build <= this.build || size > ROOM_BYTES) return 'bad_argument'
    if (this.#image?.sum !== sum) this.#replace([{ image: { kind, build, size, sum } }])
    return undefined
  }

  #store({ at, data }: FrameBody<'BLK'>): Refusal | undefined {
    const bytes = Buffer.from(data, 'base64url')
    const end = at + bytes.length
    const stored = this.#bytes.length
    if (!this.#image || end > this.#image.size) return 'bad_argument'
    // A repetition.
    if (end <= stored) return undefined
    if (at !== stored) return 'bad_argument'
    this.#write({ block: data })
    return undefined
  }

  #use(sum: string): Refusal | undefined {
    const [image, bytes] = [this.#image, this.#bytes]
    if (image?.sum !== sum || bytes.length !== image.size) return 'bad_argument'
    const body = bytes.subarray(0, -SIGNATURE_BYTES)
    const header = readImageHeader(bytes)
    const isGenuine =
      header?.kind === image.kind &&
      header.build === image.build &&
      verify(null, body, this.#key, bytes.subarray(-SIGNATURE_BYTES))
    if (sumOf(bytes) !== sum || !isGenuine) {
      this.#replace([])
      return sumOf(bytes) === sum ? 'bad_signature' : 'bad_digest'
    }
    const hangs = body.toString('latin1').endsWith(`\n${HANGS}`)
    this.#running = { build: image.build, state: 'verified', former: this.build, hangs }
    this.#replace([])
    return undefined
  }

  #keep(build: number): Refusal | undefined {
    if (build !== this.build) return 'bad_argument'
    if (this.isOnTrial) this.#write({ running: { ...this.#running, state: 'kept' } })
    return undefined
  }

  #write(entry: SlotEntry): void {
    this.#log.append(entry)
    this.#apply(entry)
  }

  /** Empties the free slot, and fills it with these entries. */
  #replace(entries: readonly SlotEntry[]): void {
    const whole = [{ running: this.#running }, ...entries]
    this.#image = undefined
    this.#bytes = Buffer.alloc(0)
    this.#log.replace(whole)
    for (const entry of whole) this.#apply(entry)
  }

  #apply(entry: SlotEntry): void {
    if ('running' in entry) this.#running = entry.running
    else if ('block' in entry)
      this.#bytes = Buffer.concat([this.#bytes, Buffer.from(entry.block, 'base64url')])
    else {
      this.#image = entry.image
      this.#bytes = Buffer.alloc(0)
    }
  }
}

const isOfSlots = (entry: object): boolean => 'running' in entry || 'image' in entry || 'block' in entry

/** The two parts of a board's flash. The entries of one part survive a replacement of the other. */
export function splitFlash(
  ask: AskBoard,
  entries: readonly object[],
): { memory: AppendLog<MemoryEntry>; slots: AppendLog<SlotEntry> } {
  const parts = { memory: entries.filter((entry) => !isOfSlots(entry)), slots: entries.filter(isOfSlots) }
  const part = (name: 'memory' | 'slots'): AppendLog<object> => ({
    read: () => [...parts[name]],
    append(entry) {
      parts[name].push(entry)
      ask({ do: 'append', entry: { ...(entry as Record<string, unknown>) } })
    },
    replace(whole) {
      parts[name] = [...whole]
      const all = [...parts.slots, ...parts.memory]
      ask({ do: 'replace', entries: all.map((entry) => ({ ...(entry as Record<string, unknown>) })) })
    },
  })
  return {
    memory: part('memory') as AppendLog<MemoryEntry>,
    slots: part('slots') as AppendLog<SlotEntry>,
  }
}
