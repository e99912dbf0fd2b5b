import type { Selectable } from 'kysely'
import { z } from 'zod'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { roleNames, roleScopes } from '../../../protocol/model/scopes.ts'
import type { Invitation } from '../../../protocol/contract/owner-people.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import type { SendMail } from '../../operations/alarms/mail.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { requireHub } from '../../platform/credentials/hub-access.ts'
import { base62, digestOf } from '../../platform/credentials/secrets.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { readReach, requireScopes } from './staff.ts'

export interface InvitationParts {
  /** Absent: the inviting person passes the link on. */
  sendMail?: SendMail | undefined
  /** The public URL of the service, without a trailing slash. */
  baseUrl: string
}

type Row = Selectable<Tables['invitations']>

const hubsOf = ({ hubs }: Pick<Row, 'hubs'>): number[] => z.array(z.int()).parse(JSON.parse(hubs))
/** The role and the hubs of an invitation. */
export const grantOf = (row: Pick<Row, 'role' | 'hubs'>) => ({
  role: z.enum(roleNames).parse(row.role),
  hubs: hubsOf(row),
})

const view = (row: Row): Invitation => ({
  id: row.id,
  name: row.name,
  email: row.email,
  ...grantOf(row),
  created_at: timestamp(row.created_at),
  expires_at: timestamp(row.expires_at),
})

/** The invitation of a link that is open: neither accepted, nor withdrawn, nor expired. */
export const findInvitation = (q: Queries, { clock }: Runtime, digest: string): Promise<Row | undefined> =>
  q
    .selectFrom('invitations')
    .selectAll()
    .where('digest', '=', digest)
    .where('expires_at', '>', clock.now())
    .executeTakeFirst()

/** Invitations of staff: a link that gives one person a role and a passkey. The database has only its digest. */
export function invitationHandlers(
  context: CloudContext,
  { sendMail, baseUrl }: InvitationParts,
): Handlers<'owner.invitations.list' | 'owner.invitations.create' | 'owner.invitations.revoke'> {
  const { db, runtime, settings, log } = context
  const open = async (credential: OwnerCredential): Promise<Row[]> => {
    const reach = await readReach(db.kysely, credential)
    const rows = await db.kysely
      .selectFrom('invitations')
      .selectAll()
      .where('expires_at', '>', runtime.clock.now())
      .orderBy('id')
      .execute()
    return rows.filter((row) => reach.selection(hubsOf(row)))
  }
  const record = (q: Queries, { actor }: OwnerCredential, action: string, id: number) =>
    appendAudit(q, runtime, { actor, action, hubId: null, object: `invitation-${id}`, result: 'executed' })

  /** Whether the mail server has taken the mail. */
  async function mailed({ name, email, role }: Row, url: string): Promise<boolean> {
    if (email === null || !sendMail) return false
    const days = Math.round(settings.invitationMs / 86_400_000)
    const text = `Hello ${name},\n\nyou are invited to Larder as ${role}. Open this link within ${days} days and create a passkey:\n\n${url}\n\nThe link works once.\n`
    try {
      await sendMail({
        id: uuidv7(runtime),
        to: { name, address: email },
        subject: '[Larder] You are invited',
        text,
      })
      return true
    } catch (error) {
      log.warn({ err: error }, 'the mail server has not taken an invitation: its link is shown instead')
      return false
    }
  }

  return {
    async 'owner.invitations.list'({ credential }) {
      return { data: (await open(credential)).map(view) }
    },
    async 'owner.invitations.create'({ body: { name, email = null, role, hub_ids }, credential }) {
      requireScopes(credential, roleScopes[role])
      for (const id of hub_ids) await requireHub(db.kysely, credential, id)
      const secret = base62(runtime.random.bytes(32))
      const now = runtime.clock.now()
      const row = await db.transact(async (tx) => {
        const made = await tx.q
          .insertInto('invitations')
          .values({
            digest: digestOf(secret),
            name,
            email,
            role,
            hubs: JSON.stringify([...new Set(hub_ids)].toSorted((one, other) => one - other)),
            created_at: now,
            expires_at: now + settings.invitationMs,
          })
          .returningAll()
          .executeTakeFirstOrThrow()
        await record(tx.q, credential, 'invitations.create', made.id)
        return made
      })
      // Browsers send no fragment, so the secret is in no log of a proxy.
      const url = `${baseUrl}/console/invitation#${secret}`
      return { ...view(row), url: (await mailed(row, url)) ? null : url }
    },
    async 'owner.invitations.revoke'({ params: { invitation_id: id }, credential }) {
      if (!(await open(credential)).some((row) => row.id === id)) throw new ApiError('not_found')
      await db.transact(async (tx) => {
        await tx.q.deleteFrom('invitations').where('id', '=', id).execute()
        await record(tx.q, credential, 'invitations.revoke', id)
      })
      return undefined
    },
  }
}
