import type { Selectable } from 'kysely'
import type { Contact } from '../../../protocol/contract/owner-contacts.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp, timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { lockOwners, requireHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import {
  answerQuestion,
  hubsOfOwner,
  prepareQuestion,
  recordContact,
  type MailParts,
} from './contact-question.ts'
import { readReach, type Reach } from './staff.ts'

type Row = Selectable<Tables['alarm_contacts']>
type Wanted = Pick<Row, 'owner_id' | 'email' | 'name' | 'severity' | 'morning_mail'> &
  Partial<Pick<Row, 'confirmed_at'>>

/** The mails go to any address, so the number is limited. */
const CONTACTS_PER_OWNER = 50

/** Adds a contact of an owner, or changes the contact with the same address. Throws `contact_limit_reached`. */
export async function setContact(tx: Tx, { clock }: Runtime, wanted: Wanted): Promise<Row> {
  const { owner_id, email: _, ...changes } = wanted
  await lockOwners(tx, [owner_id])
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
    throw limitReached(`An owner has at most ${CONTACTS_PER_OWNER} contacts.`, CONTACTS_PER_OWNER)
  return row
}

const limitReached = (why: string, limit: number): ApiError =>
  new ApiError('contact_limit_reached', why, { limit })

export const viewContact = (row: Row): Omit<Contact, 'hub_ids'> => ({
  id: row.id,
  email: row.email,
  name: row.name,
  severity: row.severity,
  morning_mail: row.morning_mail === 1,
  created_at: timestamp(row.created_at),
  confirmed: row.confirmed_at !== null,
  confirmation_mailed_at: timestampOrNull(row.confirm_mailed_at),
})

type ContactRoute =
  | 'owner.contacts.list'
  | 'owner.contacts.add'
  | 'owner.contacts.remove'
  | 'owner.contacts.ask'
  | 'owner.contacts.answer'

/**
 * Recipients of an owner's mails. The holder of an address agrees before the first mail about hubs goes there
 * (`contact-question.ts`). Each change has an audit record for each hub of the owner.
 */
export function contactHandlers(context: CloudContext, parts: MailParts): Handlers<ContactRoute> {
  const { db, runtime } = context
  const { sendMail, baseUrl } = parts
  const visible = async (q: Queries, { wholeOwners }: Reach): Promise<Row[]> =>
    q
      .selectFrom('alarm_contacts')
      .selectAll()
      .where('owner_id', 'in', [0, ...wholeOwners])
      .orderBy('id')
      .execute()
  async function requireContact(q: Queries, credential: OwnerCredential, id: number): Promise<Row> {
    const found = (await visible(q, await readReach(q, credential))).find((row) => row.id === id)
    if (!found) throw new ApiError('not_found')
    return found
  }
  const shown = async (q: Queries, row: Row): Promise<Contact> => ({
    ...viewContact(row),
    hub_ids: (await hubsOfOwner(q, row.owner_id)).map(({ id }) => id),
  })
  return {
    async 'owner.contacts.list'({ credential }) {
      const q = db.kysely
      const reach = await readReach(q, credential)
      const rows = await visible(q, reach)
      const owners = await readOwners(q, reach)
      return {
        data: rows.map((row) => ({
          ...viewContact(row),
          hub_ids: owners.get(row.owner_id)?.hub_ids ?? [],
        })),
        owners: [...owners.values()],
        sends_mail: sendMail !== undefined,
      }
    },
    async 'owner.contacts.add'({ body: { hub_id, morning_mail, ...contact }, credential }) {
      const { row, question } = await db.transact(async (tx) => {
        const { owner_id } = await requireHub(tx.q, credential, hub_id)
        if (!(await readReach(tx.q, credential)).wholeOwners.includes(owner_id))
          throw new ApiError(
            'hub_access_denied',
            'A contact gets mails about all hubs of the owner, and the credential does not reach all of them.',
          )
        const wanted = { owner_id, ...contact, morning_mail: morning_mail ? 1 : 0 } as const
        const set = await setContact(tx, runtime, wanted)
        await recordContact(tx.q, runtime, { actor: credential.actor, action: 'contacts.add' }, set)
        const isAsked = set.confirmed_at !== null || set.confirm_mailed_at !== null
        if (isAsked || !sendMail) return { row: set, question: undefined }
        return { row: set, question: await prepareQuestion(tx, context, { sendMail, baseUrl }, set) }
      })
      const isSent = question && 'send' in question && (await question.send())
      return shown(db.kysely, isSent ? question.row : row)
    },
    'owner.contacts.ask': async ({ params, credential }) =>
      shown(
        db.kysely,
        await askAgain(context, parts, (q) => requireContact(q, credential, params.contact_id), credential),
      ),
    'owner.contacts.answer': ({ body }) => db.transact((tx) => answerQuestion(tx, context, body)),
    'owner.contacts.remove': ({ params, credential }) =>
      db.transact(async (tx) => {
        const row = await requireContact(tx.q, credential, params.contact_id)
        await tx.q.deleteFrom('alarm_contacts').where('id', '=', row.id).execute()
        await recordContact(tx.q, runtime, { actor: credential.actor, action: 'contacts.remove' }, row)
        return undefined
      }),
  }
}

/** The owners of the hubs that a credential reaches, by id. A credential for all hubs of an owner gets those in use. */
async function readOwners(q: Queries, { hubs, wholeOwners }: Reach) {
  const names = await q
    .selectFrom('owners')
    .select(['id', 'name'])
    .where('id', 'in', [0, ...new Set(hubs.map(({ owner_id }) => owner_id))])
    .orderBy('id')
    .execute()
  return new Map(
    names.map(({ id: owner, name }) => {
      const reaches_all = wholeOwners.includes(owner)
      const shown = hubs.filter(
        ({ owner_id, retired_at }) => owner_id === owner && (!reaches_all || retired_at === null),
      )
      return [owner, { name, hub_ids: shown.map(({ id }) => id), reaches_all }]
    }),
  )
}

/** Sends the question of a contact again, if its holder has not agreed yet. Returns the row of the contact. */
async function askAgain(
  context: CloudContext,
  { sendMail, baseUrl }: MailParts,
  find: (q: Queries) => Promise<Row>,
  { actor }: OwnerCredential,
): Promise<Row> {
  if (!sendMail) throw new ApiError('service_unavailable', 'The service has no mail server.')
  const { row, question } = await context.db.transact(async (tx) => {
    const { owner_id } = await find(tx.q)
    await lockOwners(tx, [owner_id])
    const found = await find(tx.q)
    if (found.confirmed_at !== null) return { row: found, question: undefined }
    const prepared = await prepareQuestion(tx, context, { sendMail, baseUrl }, found)
    if ('why' in prepared) throw limitReached(prepared.why, prepared.limit)
    await recordContact(tx.q, context.runtime, { actor, action: 'contacts.ask' }, found)
    return { row: found, question: prepared }
  })
  if (!question) return row
  if (!(await question.send()))
    throw new ApiError('service_unavailable', 'The mail server has not taken the mail. Try again later.')
  return question.row
}
