import type { Selectable } from 'kysely'
import type { Contact } from '../../../protocol/contract/owner-contacts.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudits } from '../../platform/audit/audit.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { requireHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { readReach } from './staff.ts'

type Row = Selectable<Tables['alarm_contacts']>
type Wanted = Pick<Row, 'owner_id' | 'email' | 'name' | 'severity' | 'morning_mail'>

/** The mails go to any address, so the number is limited. */
const CONTACTS_PER_OWNER = 50

/** Adds a contact of an owner, or changes the contact with the same address. Throws `contact_limit_reached`. */
export async function setContact(tx: Tx, { clock }: Runtime, wanted: Wanted): Promise<Row> {
  const { owner_id, email: _, ...changes } = wanted
  // Without the lock two calls could take the last place.
  await tx.forUpdate(tx.q.selectFrom('owners').select('id').where('id', '=', owner_id)).execute()
  const row = await tx.q
    .insertInto('alarm_contacts')
    .values({ ...wanted, created_at: clock.now() })
    .onConflict((conflict) => conflict.columns(['owner_id', 'email']).doUpdateSet(changes))
    .returningAll()
    .executeTakeFirstOrThrow()
  const { count } = await tx.q
    .selectFrom('alarm_contacts')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('owner_id', '=', owner_id)
    .executeTakeFirstOrThrow()
  if (Number(count) > CONTACTS_PER_OWNER)
    throw new ApiError('contact_limit_reached', `An owner has at most ${CONTACTS_PER_OWNER} contacts.`, {
      limit: CONTACTS_PER_OWNER,
    })
  return row
}

export const viewContact = ({ id, email, name, severity, morning_mail, created_at }: Row): Contact => ({
  id,
  email,
  name,
  severity,
  morning_mail: morning_mail === 1,
  created_at: timestamp(created_at),
})

/** Recipients of an owner's mails. Each change has an audit record for each hub of the owner. */
export function contactHandlers({
  db,
  runtime,
}: CloudContext): Handlers<'owner.contacts.list' | 'owner.contacts.add' | 'owner.contacts.remove'> {
  const visible = async (q: Queries, credential: OwnerCredential) =>
    q
      .selectFrom('alarm_contacts')
      .selectAll()
      .where('owner_id', 'in', [0, ...(await readReach(q, credential)).wholeOwners])
      .orderBy('id')
  async function record(q: Queries, actor: string, action: string, row: Row): Promise<void> {
    const { id, owner_id, created_at: _, ...detail } = row
    const hubs = await q.selectFrom('hubs').select('id').where('owner_id', '=', owner_id).execute()
    const act = { actor, action, object: `contact-${id}`, result: 'executed', detail }
    await appendAudits(
      q,
      runtime,
      hubs.map((hub) => ({ ...act, hubId: hub.id })),
    )
  }
  return {
    async 'owner.contacts.list'({ credential }) {
      const rows = await (await visible(db.kysely, credential)).execute()
      return { data: rows.map(viewContact) }
    },
    'owner.contacts.add': ({ body: { hub_id, morning_mail, ...contact }, credential }) =>
      db.transact(async (tx) => {
        const { owner_id } = await requireHub(tx.q, credential, hub_id)
        if (!(await readReach(tx.q, credential)).wholeOwners.includes(owner_id))
          throw new ApiError(
            'hub_access_denied',
            'A contact gets mails about all hubs of the owner, and the credential does not reach all of them.',
          )
        const row = await setContact(tx, runtime, {
          owner_id,
          ...contact,
          morning_mail: morning_mail ? 1 : 0,
        })
        await record(tx.q, credential.actor, 'contacts.add', row)
        return viewContact(row)
      }),
    'owner.contacts.remove': ({ params, credential }) =>
      db.transact(async (tx) => {
        const rows = await (await visible(tx.q, credential)).execute()
        const row = rows.find(({ id }) => id === params.contact_id)
        if (!row) throw new ApiError('not_found')
        await tx.q.deleteFrom('alarm_contacts').where('id', '=', row.id).execute()
        await record(tx.q, credential.actor, 'contacts.remove', row)
        return undefined
      }),
  }
}
