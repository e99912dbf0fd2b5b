import type { Selectable } from 'kysely'
import { z } from 'zod'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { roleNames, roleScopes, type RoleName } from '../../../protocol/model/scopes.ts'
import type { Invitation } from '../../../protocol/contract/owner-people.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import type { SendMail } from '../../operations/alarms/mail.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudits } from '../../platform/audit/audit.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import {
  lockOwners,
  reachesHub,
  refuseRetired,
  requireHub,
  type OwnedHub,
} from '../../platform/credentials/hub-access.ts'
import { recordsOfGrant } from '../../platform/credentials/roles.ts'
import { base62, digestOf } from '../../platform/credentials/secrets.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import type { MailParts } from './contact-question.ts'
import { readReach, requireRoleRoom, requireScopes } from './staff.ts'
import { countUnasked, sendUnasked, type UnaskedLimit } from './unasked-mails.ts'

type Row = Selectable<Tables['invitations']>

const hubsOf = ({ hubs }: Pick<Row, 'hubs'>): number[] => z.array(z.int()).parse(JSON.parse(hubs))
const grantOf = (row: Pick<Row, 'role' | 'hubs'>) => ({
  role: z.enum(roleNames).parse(row.role),
  hubs: hubsOf(row),
})

/** The detail of an audit record. */
export const detailOf = ({ name, email, role, hubs }: Omit<OpenInvitation, 'id'>) => ({
  name,
  ...(email !== null && { email }),
  role,
  hubs,
})

const view = (row: Row): Invitation => ({
  id: row.id,
  name: row.name,
  email: row.email,
  ...grantOf(row),
  created_at: timestamp(row.created_at),
  expires_at: timestamp(row.expires_at),
})

const openInvitations = (q: Queries, { clock }: Runtime) =>
  q.selectFrom('invitations').selectAll().where('expires_at', '>', clock.now()).orderBy('id')

const hubRows = (q: Queries, ids: readonly number[]) =>
  q
    .selectFrom('hubs')
    .select(['id', 'owner_id', 'owned_since', 'retired_at'])
    .where('id', 'in', ids)
    .orderBy('id')

export interface OpenInvitation {
  id: number
  name: string
  email: string | null
  role: RoleName
  /** At least one. */
  hubs: number[]
}

/**
 * The invitation of a link that is open: neither accepted, nor withdrawn, nor expired. Hubs that have another owner since,
 * and retired ones, are left out; an invitation without a hub is none. With `tx` its hubs are not moved before the
 * transaction ends.
 */
export async function findInvitation(
  q: Queries,
  runtime: Runtime,
  digest: string,
  tx?: Tx,
): Promise<OpenInvitation | undefined> {
  const row = await openInvitations(q, runtime).where('digest', '=', digest).executeTakeFirst()
  if (!row) return undefined
  const { id, name, email, created_at } = row
  const { role, hubs: named } = grantOf(row)
  const query = hubRows(q, named)
  const hubs = (await (tx ? tx.forUpdate(query) : query).execute())
    .filter(({ owned_since, retired_at }) => owned_since <= created_at && retired_at === null)
    .map((hub) => hub.id)
  return hubs.length > 0 ? { id, name, email, role, hubs } : undefined
}

/**
 * The number is limited because the service mails each invitation to any address. Throws `invitation_limit_reached`.
 */
async function requireRoom(
  tx: Tx,
  { runtime, settings }: CloudContext,
  hubs: readonly OwnedHub[],
): Promise<void> {
  const owners = [...new Set(hubs.map(({ owner_id }) => owner_id))]
  await lockOwners(tx, owners)
  const owned = await tx.q
    .selectFrom('hubs')
    .select(['id', 'owner_id'])
    .where('owner_id', 'in', owners)
    .execute()
  const ownerOf = new Map(owned.map(({ id, owner_id }) => [id, owner_id]))
  const open = (await openInvitations(tx.q, runtime).execute()).map(
    (row) => new Set(hubsOf(row).map((id) => ownerOf.get(id))),
  )
  const limit = settings.invitationsPerOwner
  if (owners.some((owner) => open.filter((invited) => invited.has(owner)).length >= limit))
    throw new ApiError('invitation_limit_reached', `An owner has at most ${limit} open invitations.`, {
      limit,
    })
}

/** A name that mail programs show as plain text, because nothing in it looks like a link. */
export const unlinked = (name: string): string =>
  name
    .replaceAll(/[^\p{L}\p{M}\p{N} .'’-]/gu, ' ')
    .replaceAll(/\.(?=\S)/g, '. ')
    .replaceAll(/ +/g, ' ')
    .trim()

/** Whether the mail server has taken the mail. */
async function mailed(
  context: CloudContext,
  sendMail: SendMail | undefined,
  { row: { name: given, email, role }, counted }: { row: Row; counted: number | UnaskedLimit | undefined },
  url: string,
): Promise<boolean> {
  const { runtime, settings, log } = context
  if (email === null || !sendMail || typeof counted !== 'number') return false
  const name = unlinked(given)
  const days = Math.round(settings.invitationMs / 86_400_000)
  const text = `Hello ${name},\n\nyou are invited to Larder as ${role}. Open this link within ${days} days and create a passkey:\n\n${url}\n\nThe link works once.\n`
  try {
    const mail = {
      id: uuidv7(runtime),
      to: { name, address: email },
      subject: '[Larder] You are invited',
      text,
    }
    await sendUnasked(context, sendMail, { id: counted, mail })
    return true
  } catch (error) {
    log.warn({ err: error }, 'the mail server has not taken an invitation: its link is shown instead')
    return false
  }
}

/** Invitations of staff: a link that gives one person a role and a passkey. The database has only its digest. */
export function invitationHandlers(
  context: CloudContext,
  { sendMail, baseUrl }: MailParts,
): Handlers<'owner.invitations.list' | 'owner.invitations.create' | 'owner.invitations.revoke'> {
  const { db, runtime, settings } = context
  const open = async (credential: OwnerCredential): Promise<Row[]> => {
    const reach = await readReach(db.kysely, credential)
    const rows = await openInvitations(db.kysely, runtime).execute()
    return rows.filter((row) => reach.selection(hubsOf(row)))
  }
  const record = (q: Queries, { actor }: OwnerCredential, action: string, row: Row) =>
    appendAudits(
      q,
      runtime,
      recordsOfGrant(
        { actor, action, object: `invitation-${row.id}` },
        detailOf({ ...row, ...grantOf(row) }),
      ),
    )

  return {
    async 'owner.invitations.list'({ credential }) {
      return { data: (await open(credential)).map(view) }
    },
    async 'owner.invitations.create'({ body: { name, email = null, role, hub_ids }, credential }) {
      requireScopes(credential, roleScopes[role])
      for (const id of hub_ids) await requireHub(db.kysely, credential, id)
      const secret = base62(runtime.random.bytes(32))
      const now = runtime.clock.now()
      const ids = [...new Set(hub_ids)].toSorted((one, other) => one - other)
      const made = await db.transact(async (tx) => {
        const hubs = await tx.forUpdate(hubRows(tx.q, ids)).execute()
        // A hub may have moved since the check above.
        if (!hubs.every((hub) => reachesHub(credential, hub))) throw new ApiError('hub_not_found')
        // The acceptance leaves retired hubs out.
        if (hubs.every(({ retired_at }) => retired_at !== null)) refuseRetired(hubs[0]!)
        await requireRoom(tx, context, hubs)
        await requireRoleRoom(tx, context, hubs)
        const row = await tx.q
          .insertInto('invitations')
          .values({
            digest: digestOf(secret),
            name,
            email,
            role,
            hubs: JSON.stringify(ids),
            created_at: now,
            expires_at: now + settings.invitationMs,
          })
          .returningAll()
          .executeTakeFirstOrThrow()
        await record(tx.q, credential, 'invitations.create', row)
        const ownerId = hubs[0]!.owner_id
        const counted =
          sendMail && email !== null ? await countUnasked(tx, context, { ownerId, email }) : undefined
        return { row, counted }
      })
      // Browsers send no fragment, so the secret is in no log of a proxy.
      const url = `${baseUrl}/console/invitation#${secret}`
      return { ...view(made.row), url: (await mailed(context, sendMail, made, url)) ? null : url }
    },
    async 'owner.invitations.revoke'({ params: { invitation_id: id }, credential }) {
      if (!(await open(credential)).some((row) => row.id === id)) throw new ApiError('not_found')
      await db.transact(async (tx) => {
        // The person may have accepted it since.
        const row = await tx.q
          .deleteFrom('invitations')
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirst()
        if (!row) throw new ApiError('not_found')
        await record(tx.q, credential, 'invitations.revoke', row)
      })
      return undefined
    },
  }
}
