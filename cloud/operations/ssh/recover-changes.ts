import type { Selectable } from 'kysely'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { readAddress } from './addresses.ts'
import { settle, type BinChange, type ManagementServices } from './bin-changes.ts'

type ChangeRow = Selectable<Tables['management_changes']>

/** A hub that cannot be asked is asked again after this. */
const ASK_AGAIN_MS = 60_000
/** After so long nobody will know any more; what the cloud wants of the hub holds. */
const GIVE_UP_MS = 24 * 3_600_000

/**
 * Settles a change whose outcome was never learned, because this service died or the connection did: the hub is asked what
 * it has stored, and the cloud's desired state follows.
 */
export const changeWork = (services: ManagementServices): WorkKinds => ({
  'ssh.change': {
    async look({ subject }) {
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
  if (await isSuperseded(context, row)) return close(context, row, 'superseded')
  const address = await readAddress(db.kysely, row.hub_id)
  const outcome = address && (await remote(address, { name: 'status' }))
  if (outcome?.kind === 'answered' && outcome.answer.ok && outcome.answer.disabled_bins) {
    const isStored = outcome.answer.disabled_bins.includes(change.bin) !== change.enabled
    await settle(context, row.id, change, isStored ? 'stored' : 'not-stored', { recovered: true })
    return done
  }
  const now = runtime.clock.now()
  return now - row.created_at > GIVE_UP_MS ? close(context, row, 'unknown') : { next: now + ASK_AGAIN_MS }
}

/** Somebody has said since what that bin is to be: then that holds. */
async function isSuperseded({ db }: CloudContext, row: ChangeRow): Promise<boolean> {
  const later = await db.kysely
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

async function close(
  { db }: CloudContext,
  { id }: ChangeRow,
  state: 'superseded' | 'unknown',
): Promise<Outcome> {
  await db.kysely
    .updateTable('management_changes')
    .set({ state })
    .where('id', '=', id)
    .where('state', '=', 'pending')
    .execute()
  return done
}
