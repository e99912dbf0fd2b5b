import { gunzipSync } from 'node:zlib'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { Diagnosis, MAX_LOG_BYTES } from '../../../protocol/mqtt/diagnosis.ts'
import type { Diagnoses } from '../../gateway/diagnoses.ts'
import { hubState } from '../../gateway/hub-state.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'

/** Each hub has a kind of its own, so that a slow line does not delay other hubs. */
export const DIAGNOSIS_WORK = 'diagnosis'

/** Interval at which a running reading shows that it advances. */
const HEARD_MS = 5000

/** Requests log records or a diagnostic archive of a hub. A process of the service fetches them. Returns the id. */
export async function requestDiagnosis(
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
      const set = (changes: { heard_at: number } | Ended) =>
        db.kysely.updateTable('diagnoses').set(changes).where('id', '=', id).execute()
      const { connected } = await hubState(db.kysely, hubId, clock.now(), settings.onlineWithinMs)
      let heardAt = -Infinity
      const answer = connected
        ? await diagnoses.read({
            hubId,
            request: id,
            wanted: Diagnosis.parse(JSON.parse(row.wanted)),
            async onPart() {
              if (clock.now() - heardAt < HEARD_MS) return
              heardAt = clock.now()
              await set({ heard_at: heardAt })
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

/** The lines of log records that a hub has sent. */
export const linesOf = (content: string): string[] => {
  // A hub may not make the cloud unpack more than it may send.
  const text = gunzipSync(Buffer.from(content, 'base64'), { maxOutputLength: 2 * MAX_LOG_BYTES }).toString()
  return text === '' ? [] : text.split('\n')
}
