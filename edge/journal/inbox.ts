import { z } from 'zod'
import type { Batch, ReceiverPosition } from '../../protocol/mqtt/session.ts'
import { judgeBatch, judgeEpoch } from '../../protocol/stream/receiver.ts'
import type { Verdict } from '../../protocol/stream/receiver.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { Store } from './store.ts'

/**
 * Why an entry of the cloud's stream cannot be applied, and never will be: it goes to the dead letters and the cursor
 * moves on (I8). Anything else that is thrown while an entry is applied undoes the whole batch.
 */
export class ApplyError extends Error {
  override name = 'ApplyError'
  readonly code: 'invalid' | 'unknown_product'
  constructor(code: ApplyError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** An entry from the cloud that could not be applied (I8). */
export interface DeadLetter {
  epoch: string
  seq: number
  /** As it came, JSON text. */
  body: string
  error: string
  /** The hub's wall clock, milliseconds since the Unix epoch. */
  at: number
}

export interface Inbox {
  position(): ReceiverPosition
  /**
   * Takes one batch: what is new is applied and the cursor moved in one transaction. An entry for which `applyEntry`
   * throws an `ApplyError`, or a schema's error, becomes a dead letter and the cursor moves on (I8); whatever else it
   * throws undoes the batch and is thrown on.
   */
  receive(batch: Batch, applyEntry: (body: unknown) => void): Verdict['kind']
  /** Follows the epoch that the cloud announces, from its beginning; never one that it has left. */
  takeUp(epoch: string): 'same' | 'new' | 'left'
  /** Forgets what was received: the cloud begins again with a snapshot. For a store that turned out to be a copy. */
  reset(): void
  /** The newest first. */
  deadLetters(limit: number): DeadLetter[]
}

/** The hub's receiver's store (design §4), on tables `inbox_position`, `inbox_left_epochs` and `dead_letters`. */
export function createInbox(store: Store, runtime: Runtime, log: Log): Inbox {
  const { db } = store
  const statements = {
    position: db.prepare<[], ReceiverPosition>('SELECT epoch, cursor, tag FROM inbox_position'),
    move: db.prepare<[string | null, number, number]>(
      'UPDATE inbox_position SET epoch = ?, cursor = ?, tag = ?',
    ),
    leave: db.prepare<[string]>('INSERT INTO inbox_left_epochs (epoch) VALUES (?)'),
    hasLeft: db.prepare<[string], number>('SELECT 1 FROM inbox_left_epochs WHERE epoch = ?').pluck(),
    addDeadLetter: db.prepare<[string, number, string, string, number]>(
      'INSERT INTO dead_letters (epoch, seq, body, error, at) VALUES (?, ?, ?, ?, ?)',
    ),
    deadLetters: db.prepare<[number], DeadLetter>(
      'SELECT epoch, seq, body, error, at FROM dead_letters ORDER BY id DESC LIMIT ?',
    ),
  }
  const position = (): ReceiverPosition => statements.position.get()!

  function apply(seq: number, epoch: string, body: unknown, applyEntry: (body: unknown) => void): void {
    try {
      store.savepoint(() => applyEntry(body))
    } catch (error) {
      if (!(error instanceof ApplyError || error instanceof z.ZodError)) throw error
      log.error({ epoch, seq, error: error.message }, 'an entry from the cloud cannot be applied')
      statements.addDeadLetter.run(
        epoch,
        seq,
        JSON.stringify(body) ?? 'null',
        error.message,
        runtime.clock.now(),
      )
    }
  }

  return {
    position,
    receive(batch, applyEntry) {
      return store.transact(() => {
        const head = { ...batch, tags: batch.entries.map((entry) => entry.tag) }
        const verdict = judgeBatch(position(), head, { lossy: false })
        if (verdict.kind !== 'apply') return verdict.kind
        for (const [index, entry] of batch.entries.entries())
          if (index >= verdict.skip) apply(batch.first + index, batch.epoch, entry.body, applyEntry)
        statements.move.run(batch.epoch, verdict.next.cursor, verdict.next.tag)
        return verdict.kind
      })
    },
    takeUp(epoch) {
      return store.transact(() => {
        const current = position().epoch
        const judged = judgeEpoch(current, epoch, (left) => statements.hasLeft.get(left) !== undefined)
        if (judged !== 'new') return judged
        if (current !== null) statements.leave.run(current)
        statements.move.run(epoch, 0, 0)
        return judged
      })
    },
    reset() {
      store.transact(() => {
        const { epoch } = position()
        if (epoch !== null) statements.leave.run(epoch)
        statements.move.run(null, 0, 0)
      })
    },
    deadLetters: (limit) => statements.deadLetters.all(limit),
  }
}
