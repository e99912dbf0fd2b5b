import { uuidv7 } from '../../../protocol/model/ids.ts'
import { versionSubject } from '../../../protocol/model/subject.ts'
import { changeRelease, readDesired, StoredReport } from '../../gateway/desired-state.ts'
import { clearAlarm, everyOwner, raiseAlarm } from '../../events/alarms/alarms.ts'
import { versionOf } from '../../gateway/hub-state.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'
import { nextStep, planWaves, type RolloutHub, type RolloutState } from './waves.ts'

const WORK = 'rollout'
/** A run changes at most this number of hubs, so that its locks are short. */
const HUBS_AT_ONCE = 50

/** Starts a rollout. Throws if no release has the version, or if another rollout is open. Returns its id. */
export async function startRollout(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  { version, waves, failures }: { version: string; waves: readonly string[]; failures: string },
): Promise<string> {
  // The lock serialises two starts.
  const releases = await tx.forUpdate(tx.q.selectFrom('releases').select('version').orderBy('file')).execute()
  if (!releases.some((release) => release.version === version))
    throw new Error(`no release has the version ${version}; larder releases list prints the versions`)
  const open = await tx.q
    .selectFrom('rollouts')
    .select(['id', 'state'])
    .where('state', 'in', ['running', 'paused'])
    .executeTakeFirst()
  if (open) throw new Error(`rollout ${open.id} is ${open.state}: abort it, or wait for its end`)
  const id = uuidv7(runtime)
  const now = runtime.clock.now()
  await tx.q
    .insertInto('rollouts')
    .values({ id, version, failures, state: 'running', started_at: now, ended_at: null })
    .execute()
  const hubs = await tx.q
    .selectFrom('hubs')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
    .select(['hubs.id', 'hub_sessions.last_heard_at'])
    .where('hubs.retired_at', 'is', null)
    .execute()
  const planned = planWaves(
    hubs.map((hub) => hub.id),
    waves,
  )
  for (const hub of hubs) {
    const wave = planned.get(hub.id)
    if (wave === undefined) continue
    const state =
      hub.last_heard_at === null
        ? ({ state: 'skipped', error: 'never connected' } as const)
        : ({ state: 'pending', error: null } as const)
    const row = { rollout_id: id, hub_id: hub.id, wave, given_at: null, ...state }
    await tx.q.insertInto('rollout_hubs').values(row).execute()
  }
  await schedule(tx, WORK, id, now)
  return id
}

const changes = {
  pause: { from: ['running'], to: 'paused' },
  resume: { from: ['paused'], to: 'running' },
  abort: { from: ['running', 'paused'], to: 'aborted' },
} as const satisfies Record<string, { from: readonly RolloutState[]; to: RolloutState }>
export type RolloutChange = keyof typeof changes

/** Pauses, resumes or aborts a rollout. Throws if its state does not allow that. */
export async function changeRollout(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  id: string,
  change: RolloutChange,
): Promise<void> {
  const now = runtime.clock.now()
  const { from, to } = changes[change]
  const { state } = await tx
    .forUpdate(tx.q.selectFrom('rollouts').select(['id', 'state']).where('id', '=', id))
    .executeTakeFirstOrThrow()
  if (!(from as readonly string[]).includes(state)) throw new Error(`rollout ${id} is ${state}`)
  const ended_at = to === 'aborted' ? now : null
  await tx.q.updateTable('rollouts').set({ state: to, ended_at }).where('id', '=', id).execute()
  await schedule(tx, WORK, id, now)
}

/** The id of a rollout; by default of the newest one. Throws if there is none. */
export async function findRollout(q: Queries, id: string | undefined): Promise<string> {
  const found = await q
    .selectFrom('rollouts')
    .select('id')
    .$if(id !== undefined, (query) => query.where('id', '=', id!))
    .orderBy('started_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (!found) throw new Error(id === undefined ? 'there is no rollout' : `no such rollout: ${id}`)
  return found.id
}

/** A rollout, as `larder rollouts` prints it. */
export async function showRollout(q: Queries, id: string) {
  const rollout = await q.selectFrom('rollouts').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const hubs = await q
    .selectFrom('rollout_hubs')
    .select(['hub_id', 'wave', 'state', 'error'])
    .where('rollout_id', '=', id)
    .orderBy('hub_id')
    .execute()
  return {
    rollout_id: id,
    version: rollout.version,
    state: rollout.state,
    started_at: timestamp(rollout.started_at),
    ...(rollout.ended_at !== null && { ended_at: timestamp(rollout.ended_at) }),
    hubs: hubs.map(({ error, ...hub }) => ({ ...hub, ...(error !== null && { error }) })),
  }
}

/** Advances open rollouts. `url`: the address of the releases for hubs. */
export const rolloutWork = (context: CloudContext, url: string): WorkKinds => ({
  [WORK]: {
    run: ({ subject: id }) =>
      context.db.transact(async (tx) => {
        const rollout = await tx
          .forUpdate(tx.q.selectFrom('rollouts').selectAll().where('id', '=', id))
          .executeTakeFirst()
        if (!rollout) return done
        const { runtime, settings } = context
        const now = runtime.clock.now()
        const hubs = await readHubs(tx.q, id)
        const step = nextStep(rollout, hubs, { now, offlineMs: settings.rolloutOfflineMs })
        const before = new Map(hubs.map((hub) => [hub.hubId, hub.givenAt]))
        for (const { hubId, wave, state, error, givenAt } of step.changed.slice(0, HUBS_AT_ONCE)) {
          await tx.q
            .updateTable('rollout_hubs')
            .set({ wave, state, error, given_at: givenAt })
            .where('rollout_id', '=', id)
            .where('hub_id', '=', hubId)
            .execute()
          if (givenAt === before.get(hubId)) continue
          // The next rollout may have replaced the release.
          if (givenAt === null && (await readDesired(tx.q, hubId)).software?.rollout !== id) continue
          await changeRelease(
            tx,
            hubId,
            givenAt === null ? null : { version: rollout.version, url, rollout: id },
          )
        }
        await alarmOf(tx, context, rollout, step.state)
        const hasMore = step.changed.length > HUBS_AT_ONCE
        if (step.state !== rollout.state && !(hasMore && step.state === 'completed'))
          await tx.q
            .updateTable('rollouts')
            .set({ state: step.state, ended_at: step.state === 'paused' ? null : now })
            .where('id', '=', id)
            .execute()
        if (hasMore) return { next: now }
        return step.isOpen ? { next: now + settings.rolloutStepMs } : done
      }),
  },
})

/** An alarm for every owner begins when a rollout pauses itself, and ends when the rollout is resumed or aborted. */
async function alarmOf(
  tx: Tx,
  context: CloudContext,
  { id, version, state }: { id: string; version: string; state: RolloutState },
  next: RolloutState,
): Promise<void> {
  const incident = { kind: 'update_failed', incident: `rollout ${id}` } as const
  const subject = versionSubject(version)
  if (next === 'paused') {
    if (state === 'running')
      for (const owner of await everyOwner(tx))
        await raiseAlarm(tx, context, {
          ...owner,
          ...incident,
          subject,
          what: 'was installed by no hub of a wave, so its rollout is paused',
          detail:
            'larder rollouts status shows the hubs; resume tries one more hub, abort withdraws the release',
          details: { rollout_id: id, version },
        })
    return
  }
  const open = await tx.q
    .selectFrom('alarms')
    .select('owner_id')
    .where((eb) => eb.and(incident))
    .where('cleared_at', 'is', null)
    .execute()
  for (const { owner_id: ownerId } of open) await clearAlarm(tx, context, { ownerId, ...incident, subject })
}

async function readHubs(q: Queries, id: string): Promise<RolloutHub[]> {
  const rows = await q
    .selectFrom('rollout_hubs')
    .innerJoin('hubs', 'hubs.id', 'rollout_hubs.hub_id')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'rollout_hubs.hub_id')
    .leftJoin('hub_updates', 'hub_updates.hub_id', 'rollout_hubs.hub_id')
    .select([
      'rollout_hubs.hub_id',
      'wave',
      'rollout_hubs.state',
      'error',
      'given_at',
      'last_heard_at',
      'software',
      'reported',
      'retired_at',
    ])
    .where('rollout_id', '=', id)
    .orderBy('rollout_hubs.hub_id')
    .execute()
  return rows.map((row) => ({
    hubId: row.hub_id,
    wave: row.wave,
    state: row.state,
    error: row.error,
    givenAt: row.given_at,
    lastHeardAt: row.last_heard_at,
    version: versionOf(row.software),
    report: row.reported === null ? null : StoredReport.parse(JSON.parse(row.reported)),
    isRetired: row.retired_at !== null,
  }))
}
