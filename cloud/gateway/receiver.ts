import type { Ack, Batch } from '../../protocol/mqtt/entries.ts'
import { TelemetryEntry } from '../../protocol/mqtt/hub-entries.ts'
import { judgeBatch, type ReceiverState, type Verdict } from '../../protocol/stream/receiver.ts'
import type { Tx } from '../platform/store/database.ts'
import { applyHubEntries, type Application, type RawEntry } from './apply-entries.ts'
import { buryEntry } from './dead-letters.ts'

export type UpStream = 'ledger' | 'telemetry'

export type Receiving = Omit<Application, 'epoch'>

/**
 * Receives one batch of a hub's stream: judged and applied in one transaction, with the cursor's row locked (SPEC §5).
 * Returns the acknowledgement, to be sent now that it is committed, or `foreign` where the epoch is not the agreed one.
 */
export async function receiveBatch(
  receiving: Receiving,
  stream: UpStream,
  batch: Batch,
  careful: boolean,
): Promise<Ack | 'foreign'> {
  const { context, hubId } = receiving
  return context.db.transact(async (tx) => {
    const state = await lockCursor(tx, hubId, stream)
    const tags = batch.entries.map((entry) => entry.tag)
    const verdict = judgeBatch(state, { ...batch, tags }, { lossy: stream === 'telemetry' })
    if (verdict.kind === 'foreign') return verdict.kind
    if (verdict.kind === 'apply') {
      const entries = batch.entries
        .map(({ body }, index): RawEntry => ({ seq: batch.first + index, body }))
        .slice(verdict.skip)
      if (stream === 'ledger')
        await applyHubEntries(tx, { ...receiving, epoch: batch.epoch }, entries, careful)
      else await applyTelemetry(tx, receiving, batch.epoch, entries)
      await moveCursor(tx, hubId, stream, verdict.next)
    }
    return acknowledgement(stream, state, verdict)
  })
}

function acknowledgement(
  stream: UpStream,
  state: ReceiverState,
  verdict: Exclude<Verdict, { kind: 'foreign' }>,
): Ack {
  const { epoch, cursor, tag } = verdict.kind === 'apply' ? verdict.next : state
  return { stream, epoch: epoch!, cursor, tag, resend: verdict.kind === 'gap', fork: verdict.kind === 'fork' }
}

async function lockCursor(tx: Tx, hubId: number, stream: UpStream): Promise<ReceiverState> {
  const row = await tx
    .forUpdate(
      tx.q
        .selectFrom('hub_streams')
        .select(['epoch', 'cursor', 'tag'])
        .where('hub_id', '=', hubId)
        .where('stream', '=', stream)
        .where('is_current', '=', 1),
    )
    .executeTakeFirst()
  return row ?? { epoch: null, cursor: 0, tag: 0 }
}

async function moveCursor(tx: Tx, hubId: number, stream: UpStream, next: ReceiverState): Promise<void> {
  await tx.q
    .updateTable('hub_streams')
    .set({ cursor: next.cursor, tag: next.tag })
    .where('hub_id', '=', hubId)
    .where('stream', '=', stream)
    .where('epoch', '=', next.epoch!)
    .execute()
}

async function applyTelemetry(
  tx: Tx,
  { context, hubId }: Receiving,
  epoch: string,
  entries: readonly RawEntry[],
): Promise<void> {
  const rows = []
  for (const { seq, body } of entries) {
    const result = TelemetryEntry.safeParse(body)
    if (result.success) {
      const { fridge_number, celsius, at } = result.data
      rows.push({ hub_id: hubId, epoch, seq, fridge_number, celsius, at: Math.round(at) })
    } else {
      const letter = { hubId, stream: 'telemetry', epoch, seq, body, error: result.error } as const
      await buryEntry(tx.q, letter, context.runtime.clock.now())
    }
  }
  // A cursor that was set back to the sender's base (SPEC §4) may meet rows that are here already.
  if (rows.length > 0)
    await tx.q
      .insertInto('telemetry')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
}
