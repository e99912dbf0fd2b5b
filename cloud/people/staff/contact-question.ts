import type { Selectable } from 'kysely'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { MailUnconfirmed, type SendMail } from '../../operations/alarms/mail.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudits } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import { base62, digestOf } from '../../platform/credentials/secrets.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { countUnasked, sendUnasked, type UnaskedLimit } from './unasked-mails.ts'

export interface MailParts {
  /** Absent: the service sends no mail. */
  sendMail?: SendMail | undefined
  /** The public URL of the service, without a trailing slash. */
  baseUrl: string
}

type Row = Selectable<Tables['alarm_contacts']>

export const hubsOfOwner = (q: Queries, ownerId: number) =>
  q
    .selectFrom('hubs')
    .select('id')
    .where('owner_id', '=', ownerId)
    .where('retired_at', 'is', null)
    .orderBy('id')
    .execute()

/** One audit record for each hub of the contact's owner. */
export async function recordContact(
  q: Queries,
  runtime: Runtime,
  act: { actor: string; action: string },
  row: Row,
): Promise<void> {
  const { id, owner_id, email, name, severity, morning_mail } = row
  const hubs = await q.selectFrom('hubs').select('id').where('owner_id', '=', owner_id).execute()
  const record = {
    ...act,
    object: `contact-${id}`,
    result: 'executed',
    detail: { email, name, severity, morning_mail },
  }
  await appendAudits(
    q,
    runtime,
    hubs.map((hub) => ({ ...record, hubId: hub.id })),
  )
}

/**
 * Prepares the mail that asks the holder of an address. It contains no text that the owner of the hubs can choose, because the
 * holder has not agreed to get any. The caller has locked the owner, and sends the mail after the transaction. Returns
 * the limit if the address or the owner has reached it.
 */
export async function prepareQuestion(
  tx: Tx,
  context: CloudContext,
  { sendMail, baseUrl }: MailParts & { sendMail: SendMail },
  contact: Row,
): Promise<{ row: Row; send: () => Promise<boolean> } | UnaskedLimit> {
  const { runtime, settings, db, log } = context
  const { id, email, owner_id } = contact
  const counted = await countUnasked(tx, context, { ownerId: owner_id, email })
  if (typeof counted !== 'number') return counted
  const secret = base62(runtime.random.bytes(32))
  const confirm_digest = digestOf(secret)
  const row = await tx.q
    .updateTable('alarm_contacts')
    .set({ confirm_digest, confirm_mailed_at: runtime.clock.now() })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  const { name: owner } = await tx.q
    .selectFrom('owners')
    .select('name')
    .where('id', '=', owner_id)
    .executeTakeFirstOrThrow()
  const days = Math.round(settings.invitationMs / 86_400_000)
  // Browsers send no fragment, so the secret is in no log of a proxy. Programs that check links do not press the button.
  const link = `${baseUrl}/console/contact#${secret}`
  const text = `Hello,\n\n${owner} wants to send mails about its vending hubs to this address: alarms, or a report each morning.\n\nYou get them only if you agree. Open this link within ${days} days:\n\n${link}\n\nIf you do not know ${owner}, do nothing, or open the link and decline. Keep this mail: the same link ends the mails later.\n`
  const mail = {
    id: uuidv7(runtime),
    to: { name: '', address: email },
    subject: '[Larder] Do you want these mails?',
    text,
  }
  const send = async (): Promise<boolean> => {
    try {
      await sendUnasked(context, sendMail, { id: counted, mail })
      return true
    } catch (error) {
      log.warn({ err: error, contactId: id }, 'the mail server has not taken a question to a recipient')
      // The holder may have the mail, so its link stays valid.
      if (error instanceof MailUnconfirmed) return false
      await db.kysely
        .updateTable('alarm_contacts')
        // A link of an earlier mail works again.
        .set({ confirm_digest: contact.confirm_digest, confirm_mailed_at: contact.confirm_mailed_at })
        .where('id', '=', id)
        .where('confirm_digest', '=', confirm_digest)
        .execute()
      return false
    }
  }
  return { row, send }
}

/** Stores the answer of the holder. The link of a mail works again, so that the holder can end the mails. Throws `not_found`. */
export async function answerQuestion(
  tx: Tx,
  { runtime, settings }: CloudContext,
  { code, accept }: { code: string; accept: boolean },
): Promise<{ email: string; confirmed: boolean }> {
  const row = await tx
    .forUpdate(tx.q.selectFrom('alarm_contacts').selectAll().where('confirm_digest', '=', digestOf(code)))
    .executeTakeFirst()
  const now = runtime.clock.now()
  const isLate =
    accept && row?.confirmed_at === null && (row.confirm_mailed_at ?? 0) + settings.invitationMs <= now
  if (!row || isLate)
    throw new ApiError(
      'not_found',
      'This link is unknown or has expired. Ask the owner of the hubs for a new one.',
    )
  const act = { actor: `contact-${row.id}`, action: accept ? 'contacts.confirm' : 'contacts.decline' }
  if (!accept) {
    await tx.q.deleteFrom('alarm_contacts').where('id', '=', row.id).execute()
    await recordContact(tx.q, runtime, act, row)
  } else if (row.confirmed_at === null) {
    await tx.q.updateTable('alarm_contacts').set({ confirmed_at: now }).where('id', '=', row.id).execute()
    await recordContact(tx.q, runtime, act, row)
  }
  return { email: row.email, confirmed: accept }
}
