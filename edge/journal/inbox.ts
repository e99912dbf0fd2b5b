import { z } from 'zod'
import type { Batch, ReceiverPosition } from '../../protocol/mqtt/session.ts'
import { judgeBatch, judgeEpoch, type Verdict } from '../../protocol/stream/receiver.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { StorageError } from './storage-error.ts'
import { isMachineFault, type Store } from './store.ts'
import { DiskTable } from './rows.ts'
import { deadLetters, type DeadLetter } from './tables.ts'

/**
 * Why an entry of the cloud's stream can never be applied. Such an entry becomes a dead letter, and the
 * cursor moves on (I8). An entry that violates a table's rule or triggers a defect of the hub is treated the
 * same: a retry would fail the same way. Only a machine fault (`isMachineFault`) rolls back the whole batch.
 */
export class ApplyError extends Error {
  override name = 'ApplyError'
  readonly code: 'invalid' | 'unknown_product'
  constructor(code: ApplyError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** Stores a part of an entry that cannot be applied as a dead letter of its own, so that the rest is applied. */
export type LeaveOut = (body: unknown, error: unknown) => void

export type Inbox = ReturnType<typeof createInbox>

interface InboxOptions {
  /** Name and version of the service: another version may be able to apply a dead letter. */
  software?: string
  /** Estimated cloud time in milliseconds; defaults to the board's clock. */
  now?: () => number
  /** Called after the commit that stored a dead letter. */
  onDeadLetter?: () => void
}

type ApplyEntry = (body: unknown, leaveOut: LeaveOut) => void

/** The store of the hub's stream receiver, on tables `inbox_position`, `inbox_left_epochs` and `dead_letters`. */
export function createInbox(
  store: Store,
  runtime: Runtime,
  log: Log,
  { software = '', now = () => runtime.clock.now(), onDeadLetter = () => {} }: InboxOptions = {},
) {
  const { db } = store
  const deadLetters = new DeadLetters(store)
  const read = db.prepare<[], ReceiverPosition>('SELECT epoch, cursor, tag FROM inbox_position')
  const move = db.prepare<[epoch: string | null, cursor: number, tag: number]>(
    'UPDATE inbox_position SET epoch = ?, cursor = ?, tag = ?',
  )
  const leave = db.prepare<[epoch: string]>('INSERT INTO inbox_left_epochs (epoch) VALUES (?)')
  const hasLeft = db.prepare<[epoch: string]>('SELECT 1 FROM inbox_left_epochs WHERE epoch = ?')
  const position = (): ReceiverPosition => read.get()!

  function apply(seq: number, epoch: string, body: unknown, applyEntry: ApplyEntry): void {
    const leaveOut: LeaveOut = (part, error) => {
      if (isMachineFault(error)) throw error
      const { message } = error as Error
      const isForeseen = error instanceof ApplyError || error instanceof z.ZodError
      log.error(
        { epoch, seq, error: isForeseen ? message : (error as Error).stack },
        'an entry from the cloud cannot be applied',
      )
      const at = now()
      deadLetters.add({ epoch, seq, body: JSON.stringify(part) ?? 'null', error: message, at, software })
      store.afterCommit(onDeadLetter)
    }
    try {
      store.savepoint(() => applyEntry(body, leaveOut))
    } catch (error) {
      leaveOut(body, error)
    }
  }

  /** Forgets the received stream, so that the cloud starts again with a snapshot. */
  function reset(): void {
    store.transact(() => {
      const { epoch } = position()
      if (epoch !== null) leave.run(epoch)
      move.run(null, 0, 0)
    })
  }

  return {
    position,
    /**
     * Applies the new entries of a batch and moves the cursor, in one transaction. If `applyEntry` throws,
     * the entry becomes a dead letter and the cursor moves on (I8). A machine fault rolls back the batch and
     * is rethrown.
     */
    receive(batch: Batch, applyEntry: ApplyEntry): Verdict['kind'] {
      return store.transact(() => {
        const head = { ...batch, tags: batch.entries.map((entry) => entry.tag) }
        const verdict = judgeBatch(position(), head, { lossy: false })
        if (verdict.kind !== 'apply') return verdict.kind
        for (const [index, entry] of batch.entries.entries())
          if (index >= verdict.skip) apply(batch.first + index, batch.epoch, entry.body, applyEntry)
        move.run(batch.epoch, verdict.next.cursor, verdict.next.tag)
        return verdict.kind
      })
    },
    /** Follows the epoch that the cloud announces, from its start, unless the inbox has left that epoch before. */
    takeUp(epoch: string): 'same' | 'new' | 'left' {
      return store.transact(() => {
        const current = position().epoch
        const judged = judgeEpoch(current, epoch, (left) => hasLeft.get(left) !== undefined)
        if (judged !== 'new') return judged
        if (current !== null) leave.run(current)
        move.run(epoch, 0, 0)
        return judged
      })
    },
    reset,
    /**
     * Requests a snapshot if another version of the service stored dead letters. If the storage fails, this
     * happens after the next start, because the letters are unchanged.
     */
    takeOverLetters(): void {
      try {
        store.transact(() => {
          if (deadLetters.takeOver(software)) reset()
        })
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
        log.warn({}, 'what could not be applied is not asked for again: the storage fails')
      }
    },
    /** The newest first. */
    deadLetters: (limit: number) => deadLetters.list(limit),
  }
}

/** Cloud entries that the hub could not apply. */
export class DeadLetters extends DiskTable<typeof deadLetters> {
  constructor(store: Store) {
    super(store, deadLetters)
  }

  /** The newest first. */
  list(limit: number): DeadLetter[] {
    return this.select('ORDER BY number DESC LIMIT ?', limit)
  }

  find(number: number): DeadLetter | undefined {
    return this.select('WHERE number = ?', number)[0]
  }

  count(): number {
    return this.value('count(*)', '') ?? 0
  }

  /** Assigns all dead letters to this version. Returns whether another version of the service stored any of them. */
  takeOver(software: string): boolean {
    if (this.value('1', 'WHERE software <> ? LIMIT 1', software) === null) return false
    this.update('software = ?', '', software)
    return true
  }

  /** Deletes all but the newest. */
  prune(kept: number): void {
    this.remove(
      'WHERE number <= (SELECT number FROM dead_letters ORDER BY number DESC LIMIT 1 OFFSET ?)',
      kept,
    )
  }
}
