import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { z } from 'zod'
import type { HubLogRecord } from '../../../protocol/contract/owner-hubs.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { sleep } from '../../../protocol/model/runtime.ts'
import { Diagnosis, MAX_LOG_BYTES } from '../../../protocol/mqtt/diagnosis.ts'
import { parseMessage } from '../../../protocol/mqtt/parse-message.ts'
import type { Diagnoses } from '../../gateway/diagnoses.ts'
import { hubState } from '../../gateway/hub-state.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'

/** Each hub has a kind of its own, so that a slow line does not delay other hubs. */
export const DIAGNOSIS_WORK = 'diagnosis'

/** Interval at which a running reading shows that it advances. */
const HEARD_MS = 5000

/** The service itself gives a silent hub 30 s; a service that does not run is noticed a little later. */
const SILENT_MS = 40_000
const POLL_MS = 250

/** Why there is no answer. */
export type NoDiagnosis = 'hub_offline' | 'timeout'

/**
 * Log records or a diagnostic archive of a hub. A process of the service fetches them; this function waits for it. `record`
 * writes the audit record of the request, also of a hub that is offline. `withinMs`: time limit of the whole answer.
 */
export async function readDiagnosis(
  context: Pick<CloudContext, 'db' | 'runtime' | 'settings'>,
  hubId: number,
  wanted: Diagnosis,
  record?: (q: Queries) => Promise<void>,
  withinMs = context.settings.hubDiagnosisMs,
): Promise<{ content: string; cursor: string | null } | NoDiagnosis> {
  const { db, settings, runtime } = context
  const { clock } = runtime
  const q = db.kysely
  const endMs = clock.monotonic() + withinMs
  const { connected } = await hubState(q, hubId, clock.now(), settings.onlineWithinMs)
  const id = await db.transact(async (tx) => {
    await record?.(tx.q)
    return connected ? requestDiagnosis(tx, context, hubId, wanted) : undefined
  })
  if (id === undefined) return 'hub_offline'
  try {
    for (;;) {
      const row = await q.selectFrom('diagnoses').selectAll().where('id', '=', id).executeTakeFirst()
      if (row?.state === 'done') return { content: row.content!, cursor: row.cursor }
      if (row?.error === 'hub_offline') return 'hub_offline'
      if (row?.state !== 'pending' || clock.now() - row.heard_at > SILENT_MS) return 'timeout'
      if (clock.monotonic() >= endMs) return 'timeout'
      await sleep(clock, POLL_MS)
    }
  } finally {
    await q.deleteFrom('diagnoses').where('id', '=', id).execute()
  }
}

/** Requests log records or a diagnostic archive of a hub. Returns the id. */
async function requestDiagnosis(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  hubId: number,
  wanted: Diagnosis,
): Promise<string> {
  const id = uuidv7(runtime)
  const now = runtime.clock.now()
  const row = { id, hub_id: hubId, wanted: JSON.stringify(wanted), state: 'pending', asked_at: now } as const
  await tx.q
    .insertInto('diagnoses')
    .values({ ...row, heard_at: now, error: null, cursor: null, content: null })
    .execute()
  await schedule(tx, `${DIAGNOSIS_WORK}/${hubId}`, id, now)
  return id
}

export const diagnosisWork = (context: CloudContext, diagnoses: Diagnoses): WorkKinds => ({
  [DIAGNOSIS_WORK]: {
    atOnce: 1,
    async run({ subject: id }) {
      const { db, runtime, settings } = context
      const { clock } = runtime
      const row = await db.kysely.selectFrom('diagnoses').selectAll().where('id', '=', id).executeTakeFirst()
      if (row?.state !== 'pending') return done
      const { hub_id: hubId } = row
      /** False if the caller has gone: it deletes the row. */
      const set = async (changes: { heard_at: number } | Ended): Promise<boolean> => {
        const update = db.kysely.updateTable('diagnoses').set(changes).where('id', '=', id)
        return (await update.executeTakeFirst()).numUpdatedRows > 0n
      }
      const { connected } = await hubState(db.kysely, hubId, clock.now(), settings.onlineWithinMs)
      let heardAt = -Infinity
      const answer = connected
        ? await diagnoses.read({
            hubId,
            request: id,
            wanted: Diagnosis.parse(JSON.parse(row.wanted)),
            withinMs: settings.hubDiagnosisMs,
            onPart() {
              if (clock.now() - heardAt < HEARD_MS) return Promise.resolve(true)
              heardAt = clock.now()
              return set({ heard_at: heardAt })
            },
          })
        : undefined
      const error = connected ? 'timeout' : 'hub_offline'
      await set(
        answer
          ? { state: 'done', content: answer.content.toString('base64'), cursor: answer.cursor }
          : { state: 'failed', error },
      )
      return done
    },
  },
})

type Ended = { state: 'done'; content: string; cursor: string | null } | { state: 'failed'; error: string }

const unpacked = promisify(gunzip)

/** The newest `limit` lines of the log that a hub has sent. Undefined if the answer cannot be unpacked. */
export async function linesOf(content: string, limit: number): Promise<string[] | undefined> {
  try {
    // A hub may not make the cloud unpack more than it may send.
    const text = await unpacked(Buffer.from(content, 'base64'), { maxOutputLength: MAX_LOG_BYTES })
    const lines = text.toString().split('\n')
    return lines.filter((line) => line !== '').slice(-limit)
  } catch {
    return undefined
  }
}

const Line = z.looseObject({
  at: z.iso.datetime(),
  level: z.enum(['info', 'warn', 'error']),
  message: z.string(),
})

/** A removed secret can break a few lines. An answer with more such lines is no log. */
const MAX_BROKEN_LINES = 100

/** The newest `limit` records of the log that a hub has sent. Undefined if the answer is no log. */
export async function recordsOf(content: string, limit: number): Promise<HubLogRecord[] | undefined> {
  const lines = await linesOf(content, limit)
  if (!lines) return undefined
  const records: HubLogRecord[] = []
  let broken = 0
  for (const line of lines) {
    const { data } = Line.safeParse(parseMessage(line))
    if (data) {
      const { at, level, message, ...fields } = data
      records.push({ at, level, message, fields })
    } else if (++broken > MAX_BROKEN_LINES) return undefined
  }
  return records
}
