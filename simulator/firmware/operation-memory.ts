import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import type { FrameBody, Owner } from '../../protocol/serial/frames.ts'
import type { AppendLog } from '../storage/append-log.ts'

/** An operation as the controller remembers it: the fields of OPS. */
export type StoredOperation = FrameBody<'OPS'>
export type OperationResult = Pick<StoredOperation, 'state' | 'why' | 'moved' | 'drops' | 'ms'>

/** What stands in non-volatile memory; the log may hold several records of one operation, of which the last counts. */
export type MemoryEntry =
  { format: string } | { owner: Owner } | { record: StoredOperation } | { overwritten: string }

/** The last operations with their results (SPEC §8). */
export interface OperationMemory {
  /** Changes when the contents were lost. */
  readonly id: string
  readonly count: number
  /** Whose the controller is; forgotten with the contents. */
  readonly owner: Owner | undefined
  get(op: string): StoredOperation | undefined
  newest(count: number): StoredOperation[]
  /** Writes the record of an operation that is about to begin. */
  begin(record: StoredOperation): void
  update(op: string, change: Partial<OperationResult>): void
  /** Writes down whose the controller is; `wipe`: in a memory that is formatted anew. */
  own(owner: Owner, wipe: boolean): void
  /** What QRY answers. */
  result(op: string): FrameBody<'RES'>
}

export const MEMORY_CAPACITY = 256
/** Superfluous entries that the log may hold before it is written anew. */
const SLACK = 2048

/** Reads the memory, formats it where it is blank, and turns what ran when the power failed into `interrupted`. */
export function openOperationMemory(log: AppendLog<MemoryEntry>, random: Random): OperationMemory {
  const records = new Map<string, StoredOperation>()
  let id = ''
  let owner: Owner | undefined
  let overwritten = ''
  let entries = 0

  function take(entry: MemoryEntry): void {
    entries++
    if ('format' in entry) id = entry.format
    else if ('owner' in entry) owner = entry.owner
    else if ('overwritten' in entry) overwritten = entry.overwritten
    else {
      records.set(entry.record.op, entry.record)
      if (records.size > MEMORY_CAPACITY) overwriteOldest()
    }
  }

  function overwriteOldest(): void {
    for (const [op, { state }] of records)
      if (state !== 'running') {
        records.delete(op)
        if (op > overwritten) overwritten = op
        return
      }
  }

  function write(entry: MemoryEntry): void {
    log.append(entry)
    take(entry)
    if (entries > SLACK) compact()
  }

  function compact(): void {
    const whole: MemoryEntry[] = [{ format: id }]
    if (owner) whole.push({ owner })
    if (overwritten) whole.push({ overwritten })
    for (const record of records.values()) whole.push({ record })
    log.replace(whole)
    entries = whole.length
  }

  function format(): void {
    log.replace([])
    records.clear()
    owner = undefined
    overwritten = ''
    entries = 0
    write({ format: randomHex(random, 4) })
  }

  for (const entry of log.read()) take(entry)
  if (!id) format()
  for (const record of records.values())
    if (record.state === 'running') write({ record: { ...record, state: 'interrupted' } })

  return {
    get id() {
      return id
    },
    get count() {
      return records.size
    },
    get owner() {
      return owner
    },
    get: (op) => records.get(op),
    newest: (count) => [...records.values()].slice(-count || records.size),
    begin: (record) => write({ record }),
    update(op, change) {
      const record = records.get(op)
      if (record) write({ record: { ...record, ...change } })
    },
    own(next, wipe) {
      if (wipe) format()
      write({ owner: next })
    },
    result(op) {
      const record = records.get(op)
      if (record) {
        const { state, why, moved, drops, ms } = record
        return { op, state, why, moved, drops, ms }
      }
      const forgotten = op <= overwritten
      return {
        op,
        state: forgotten ? 'forgotten' : 'none',
        why: undefined,
        moved: forgotten,
        drops: 0,
        ms: 0,
      }
    },
  }
}
