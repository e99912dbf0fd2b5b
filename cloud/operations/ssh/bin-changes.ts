import type { Selectable } from 'kysely'
import { sshFailure } from '../../../protocol/contract/owner-controls.ts'
import type { ManagementAnswer, ManagementCommand } from '../../../protocol/management/command.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { holdsWithin } from '../../../protocol/model/runtime.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { setDesired, withNumber } from '../controls/configuration.ts'
import { readAddress } from './addresses.ts'
import type { Remote, RemoteOutcome } from './remote.ts'

/** O §4.6: bins over SSH; status 200 in both outcomes. */
export function managementHandlers(
  services: ManagementServices,
): Handlers<'owner.controls.enable_bin_ssh' | 'owner.controls.disable_bin_ssh'> {
  async function change(
    enabled: boolean,
    { query, credential }: { query: { bin: number; hub: number }; credential: OwnerCredential },
  ) {
    const { bin, hub } = query
    const changed = await changeBin(services, { hubId: hub, bin, enabled, actor: credential.actor })
    const place = { hub_id: hub, bin_number: bin }
    if (!changed.ok) return sshFailure(changed.failure, changed.error, place)
    const { disabled_bins, stop_result, start_result } = changed.answer
    return {
      status: 'ok' as const,
      result: {
        success: true as const,
        ...place,
        enabled_bin: bin,
        disabled_bins: disabled_bins ?? [],
        stop_result,
        start_result,
      },
    }
  }
  return {
    'owner.controls.enable_bin_ssh': (request) => change(true, request),
    'owner.controls.disable_bin_ssh': (request) => change(false, request),
  }
}

interface ManagementServices {
  context: CloudContext
  remote: Remote
}

export interface BinChange {
  hubId: number
  bin: number
  enabled: boolean
  /** For the audit log. */
  actor: string
}

type BinChanged =
  | { ok: true; answer: Extract<ManagementAnswer, { ok: true }> }
  | { ok: false; failure: Failure; error: string }
type Failure = Extract<RemoteOutcome, { kind: 'failed' }>['failure'] | 'validation_error'

/**
 * After this time a command with a lost answer has ended, at the hub too. It was started, or was dropped when
 * the hub found its connection dead, and it has its own time limits.
 */
export const SETTLED_MS = 180_000

/**
 * The wait for an online hub's report after its restart, in milliseconds: the next reader then sees the
 * change.
 */
const REPORT_MS = 5000

/**
 * Enables or disables a bin over SSH. The change is recorded first; then the hub is asked. If the hub
 * confirms, one transaction updates the desired state, appends the entry to the hub and writes the audit
 * record. After a crash in between, the service later asks the hub for its stored state (`changeWork`), and
 * both agree again.
 */
export async function changeBin(
  { context, remote }: ManagementServices,
  change: BinChange,
): Promise<BinChanged> {
  const { db, runtime, settings, checkpoint } = context
  const { hubId, bin, enabled } = change
  const state = await hubState(db.kysely, hubId, runtime.clock.now(), settings.onlineWithinMs)
  if (state.health && !state.health.bins.some(({ bin_number }) => bin_number === bin))
    return refuse('validation_error', `hub ${hubId} has no bin ${bin}`)
  const address = await readAddress(db.kysely, hubId)
  if (!address) return refuse('connection_error', `no management service is known for hub ${hubId}`)

  const id = await intend(context, change)
  checkpoint('management.intended')
  const outcome = await remote(address, commandOf(change))
  checkpoint('management.answered')
  const result = readOutcome(outcome)
  await settle(context, id, change, verdictOf(outcome), {
    ...(result.ok ? resultsOf(result.answer) : { error_type: result.failure, error: result.error }),
  })
  checkpoint('management.settled')
  if (result.ok && state.connected)
    await holdsWithin(runtime.clock, REPORT_MS, async () => {
      const { health, healthAt } = await hubState(
        db.kysely,
        hubId,
        runtime.clock.now(),
        settings.onlineWithinMs,
      )
      const shown = health?.bins.find(({ bin_number }) => bin_number === bin)
      return shown?.enabled === enabled && healthAt !== state.healthAt
    })
  return result

  async function refuse(failure: Failure, error: string): Promise<BinChanged> {
    await appendAudit(db.kysely, runtime, auditOf(change, 'failed', { error_type: failure, error }))
    return { ok: false, failure, error }
  }
}

const commandOf = ({ bin, enabled }: BinChange): ManagementCommand => ({
  name: enabled ? 'enable-bin' : 'disable-bin',
  bin,
})

async function intend({ db, runtime, settings }: CloudContext, change: BinChange): Promise<string> {
  const id = uuidv7(runtime)
  const now = runtime.clock.now()
  const settledAt = now + settings.managementConnectMs + settings.managementCommandMs + SETTLED_MS
  await db.transact(async (tx) => {
    await tx.q
      .insertInto('management_changes')
      .values({
        id,
        hub_id: change.hubId,
        bin_number: change.bin,
        enabled: change.enabled ? 1 : 0,
        actor: change.actor,
        state: 'pending',
        created_at: now,
      })
      .execute()
    await schedule(tx, 'ssh.change', id, settledAt)
  })
  return id
}

/** The outcome of a change: the hub has stored it, never will, or the outcome is unknown so far. */
type Verdict = 'stored' | 'not-stored' | 'unknown'

function verdictOf(outcome: RemoteOutcome): Verdict {
  if (outcome.kind === 'failed') return outcome.isSent ? 'unknown' : 'not-stored'
  const { answer } = outcome
  return answer.ok || answer.stored ? 'stored' : 'not-stored'
}

function readOutcome(outcome: RemoteOutcome): BinChanged {
  if (outcome.kind === 'failed') return { ok: false, failure: outcome.failure, error: outcome.error }
  const { answer } = outcome
  if (answer.ok) return { ok: true, answer }
  return { ok: false, failure: answer.error_type, error: answer.error }
}

/**
 * Completes a change, once: of several callers that know the outcome, the first one counts. A change with an
 * unknown outcome stays open. `late`: a change without a known outcome at the time.
 */
async function settle(
  context: CloudContext,
  id: string,
  change: BinChange,
  verdict: Verdict,
  detail: Readonly<Record<string, unknown>>,
  late?: ChangeRow,
): Promise<void> {
  const { db, runtime } = context
  await db.transact(async (tx) => {
    if (late) {
      // A contrary change locks the hub first, and may have come while the hub was asked.
      await tx
        .forUpdate(tx.q.selectFrom('hubs').select('id').where('id', '=', change.hubId))
        .executeTakeFirst()
      if (await isSuperseded(tx.q, late)) return void (await close(tx.q, late, 'superseded'))
    }
    if (verdict !== 'unknown') {
      const taken = await tx.q
        .updateTable('management_changes')
        .set({ state: verdict === 'stored' ? 'done' : 'failed' })
        .where('id', '=', id)
        .where('state', '=', 'pending')
        .returning('id')
        .executeTakeFirst()
      if (!taken) return
      await unschedule(tx, 'ssh.change', id)
    }
    if (verdict === 'stored')
      await setDesired(tx, context, {
        hubId: change.hubId,
        change: (before) => ({
          ...before,
          disabledBins: withNumber(before.disabledBins, change.bin, !change.enabled),
        }),
      })
    await appendAudit(tx.q, runtime, auditOf(change, results[verdict], { change_id: id, ...detail }))
  })
}

const results: Record<Verdict, string> = { stored: 'executed', 'not-stored': 'failed', unknown: 'unknown' }

const resultsOf = ({
  disabled_bins,
  stop_result,
  start_result,
}: Extract<ManagementAnswer, { ok: true }>) => ({
  disabled_bins,
  stop_result,
  start_result,
})

const auditOf = ({ hubId, bin, enabled, actor }: BinChange, result: string, detail: object) => ({
  actor,
  action: enabled ? 'controls.enable_bin_ssh' : 'controls.disable_bin_ssh',
  hubId,
  object: `bin-${bin}`,
  result,
  detail: { ...detail },
})

type ChangeRow = Selectable<Tables['management_changes']>

/** The time until an unreachable hub is asked again, in milliseconds. */
const ASK_AGAIN_MS = 60_000
/** After this time the outcome stays unknown; the cloud's desired state applies. */
const GIVE_UP_MS = 24 * 3_600_000

/**
 * Resolves a change with an unknown outcome, because this service crashed or the connection broke. The
 * service asks the hub for its stored state, and updates the cloud's desired state to match.
 */
export const changeWork = (services: ManagementServices): WorkKinds => ({
  'ssh.change': {
    async run({ subject }) {
      const row = await services.context.db.kysely
        .selectFrom('management_changes')
        .selectAll()
        .where('id', '=', subject)
        .where('state', '=', 'pending')
        .executeTakeFirst()
      return row ? recover(services, row) : done
    },
  },
})

async function recover({ context, remote }: ManagementServices, row: ChangeRow): Promise<Outcome> {
  const { db, runtime } = context
  const change: BinChange = {
    hubId: row.hub_id,
    bin: row.bin_number,
    enabled: row.enabled === 1,
    actor: row.actor,
  }
  if (await isSuperseded(db.kysely, row)) return close(db.kysely, row, 'superseded')
  const address = await readAddress(db.kysely, row.hub_id)
  const outcome = address && (await remote(address, { name: 'status' }))
  if (outcome?.kind === 'answered' && outcome.answer.ok && outcome.answer.disabled_bins) {
    const isStored = outcome.answer.disabled_bins.includes(change.bin) !== change.enabled
    await settle(context, row.id, change, isStored ? 'stored' : 'not-stored', { recovered: true }, row)
    return done
  }
  const now = runtime.clock.now()
  return now - row.created_at > GIVE_UP_MS ? close(db.kysely, row, 'unknown') : { next: now + ASK_AGAIN_MS }
}

/** A person has set that bin since then: the later setting applies. */
async function isSuperseded(q: Queries, row: ChangeRow): Promise<boolean> {
  const later = await q
    .selectFrom('audit_log')
    .select('id')
    .where('hub_id', '=', row.hub_id)
    .where('object', '=', `bin-${row.bin_number}`)
    .where('at', '>', row.created_at)
    .where('action', 'in', [
      'controls.enable_bin',
      'controls.disable_bin',
      'controls.toggle_bin',
      'controls.enable_bin_ssh',
      'controls.disable_bin_ssh',
    ])
    .where('result', 'in', ['accepted', 'executed'])
    .limit(1)
    .executeTakeFirst()
  return later !== undefined
}

async function close(q: Queries, { id }: ChangeRow, state: 'superseded' | 'unknown'): Promise<Outcome> {
  await q
    .updateTable('management_changes')
    .set({ state })
    .where('id', '=', id)
    .where('state', '=', 'pending')
    .execute()
  return done
}
