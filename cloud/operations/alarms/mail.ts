import { counted } from '../../../protocol/model/counted.ts'
import { createTransport } from 'nodemailer'
import type { Alarm } from '../../../protocol/contract/owner-alarms.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { MAIL_WORK } from '../../events/publish.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { done, Unavailable, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'

export interface Mail {
  /** Equal if a mail is sent a second time. */
  id: string
  to: { name: string; address: string }
  subject: string
  text: string
}

/** The connection ended after the whole mail was sent and before the mail server answered. */
export class MailUnconfirmed extends Error {}

/** Sends one mail; rejects if the mail server has not accepted it, with `MailUnconfirmed` if it may have accepted it. */
export type SendMail = (mail: Mail) => Promise<void>

/** Sends a mail as due work: a failure is repeated. Throws `Unavailable`. */
export async function handOver(send: SendMail, mail: Mail): Promise<void> {
  try {
    await send(mail)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Unavailable(`the mail server has not taken a mail: ${why}`, { cause: error })
  }
}

/** The maximum number of alarms in one mail; the next mail contains the rest. */
const MOST = 200

/**
 * Notifies contacts of alarms at least once, even if this process crashes. The content of a mail is fixed
 * before it is sent. So a mail that is sent twice is the same mail with the same `Message-ID`.
 */
export const mailWork = (context: CloudContext, send: SendMail | undefined): WorkKinds => ({
  [MAIL_WORK]: { run: ({ subject }) => mailTo(context, send, Number(subject)) },
})

async function mailTo(
  context: CloudContext,
  send: SendMail | undefined,
  contactId: number,
): Promise<Outcome> {
  const { db, runtime, log } = context
  const batch = await db.transact((tx) => nextMail(tx, context, contactId))
  if (!batch) return done
  const { mail, mailId } = batch
  context.checkpoint('mail.before-send')
  if (send === undefined)
    log.warn({ contactId, subject: mail.subject }, 'no SMTP_URL: an alarm is not mailed')
  else await handOver(send, mail)
  context.checkpoint('mail.after-send')
  return db.transact(async (tx) => {
    await tx.q
      .deleteFrom('alarm_mails')
      .where('contact_id', '=', contactId)
      .where('mail_id', '=', mailId)
      .execute()
    const more = await tx.q
      .selectFrom('alarm_mails')
      .select('event_seq')
      .where('contact_id', '=', contactId)
      .limit(1)
      .executeTakeFirst()
    return more ? { next: runtime.clock.now() + context.settings.mailGatherMs } : done
  })
}

/** The mail that was being sent, or the next one. */
async function nextMail(
  tx: Tx,
  { runtime }: CloudContext,
  contactId: number,
): Promise<{ mail: Mail; mailId: string } | undefined> {
  const contact = await tx
    .forUpdate(
      tx.q
        .selectFrom('alarm_contacts')
        .selectAll()
        .where('id', '=', contactId)
        // During an upgrade a process of the former version plans mails for every contact.
        .where('confirmed_at', 'is not', null),
    )
    .executeTakeFirst()
  if (!contact) return undefined
  const waiting = await tx.q
    .selectFrom('alarm_mails')
    .innerJoin('events', 'events.seq', 'alarm_mails.event_seq')
    .select(['alarm_mails.event_seq', 'alarm_mails.mail_id', 'events.type', 'events.data', 'events.hub_id'])
    .where('alarm_mails.contact_id', '=', contactId)
    .orderBy('alarm_mails.event_seq')
    .limit(MOST)
    .execute()
  if (waiting.length === 0) return undefined
  const unsentId = waiting.find(({ mail_id }) => mail_id !== null)?.mail_id ?? null
  const mailId = unsentId ?? uuidv7(runtime)
  const rows = unsentId === null ? waiting : waiting.filter(({ mail_id }) => mail_id === unsentId)
  if (unsentId === null)
    await tx.q
      .updateTable('alarm_mails')
      .set({ mail_id: mailId })
      .where('contact_id', '=', contactId)
      .where(
        'event_seq',
        'in',
        rows.map(({ event_seq }) => event_seq),
      )
      .execute()
  const hubs = new Map(
    (
      await tx.q.selectFrom('hubs').select(['id', 'name']).where('owner_id', '=', contact.owner_id).execute()
    ).map(({ id, name }) => [id, name]),
  )
  const items = rows.map(({ type, data, hub_id }): Item => ({
    isOver: type === 'alarm.cleared',
    alarm: JSON.parse(data) as Alarm,
    hub: hub_id === null ? undefined : hubs.get(hub_id),
  }))
  const to = { name: contact.name ?? '', address: contact.email }
  return { mail: { id: mailId, to, ...written(items) }, mailId }
}

interface Item {
  alarm: Alarm
  isOver: boolean
  /** The hub's name. */
  hub: string | undefined
}

/** The text that a contact reads. */
export function written(items: readonly Item[]): Pick<Mail, 'subject' | 'text'> {
  const [first] = items
  const raised = items.filter(({ isOver }) => !isOver).length
  const summary = [
    ...(raised > 0 ? [counted(raised, 'alarm')] : []),
    ...(items.length > raised ? [`${items.length - raised} over`] : []),
  ].join(', ')
  const subject = items.length === 1 ? headline(first!) : summary
  return { subject: `[Larder] ${subject}`, text: `${items.map(paragraph).join('\n\n')}\n` }
}

const headline = ({ alarm, isOver, hub }: Item): string =>
  `${isOver ? 'over' : alarm.severity}: ${hub === undefined ? '' : `${hub}: `}${alarm.message}`

const paragraph = (item: Item): string => {
  const { alarm, isOver } = item
  return [
    headline(item),
    ...(isOver ? [`Over since ${alarm.cleared_at}.`] : [`What to do: ${alarm.remedy}`]),
    `Raised ${alarm.raised_at}${alarm.count > 1 ? `, ${alarm.count} times` : ''}. ${alarm.kind}, ${alarm.id}`,
  ].join('\n')
}

const ignore = () => undefined
const unlogged = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore, fatal: ignore }

/** Nodemailer reports the end of a message only to its logger. */
const isWholeMessage = (entry: unknown): boolean =>
  typeof entry === 'object' && entry !== null && 'tnx' in entry && entry.tnx === 'message'

export interface MailServer {
  /** `smtp://…` or `smtps://…` */
  url: string
  from: string
  timeoutMs: number
}

/** Sends by SMTP. */
export function smtpSender({ url, from, timeoutMs }: MailServer): SendMail {
  const options = {
    url,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // The service writes every mail itself: no part of it is read from a file or URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  }
  const domain = /@([^>]+)>?$/.exec(from)?.[1] ?? 'localhost'
  return async ({ id, to, subject, text }) => {
    let isSent = false
    const logger = { ...unlogged, info: (entry: unknown) => void (isSent ||= isWholeMessage(entry)) }
    try {
      const transport = createTransport({ ...options, logger })
      await transport.sendMail({ from, to, subject, text, messageId: `<${id}@${domain}>` })
    } catch (error) {
      const isAnswered = error instanceof Error && 'responseCode' in error
      if (!isSent || isAnswered) throw error
      const why = error instanceof Error ? error.message : String(error)
      throw new MailUnconfirmed(`no answer to a whole mail: ${why}`, { cause: error })
    }
  }
}
