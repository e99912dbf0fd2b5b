import { counted } from '../../../protocol/model/counted.ts'
import { isAsBadAs } from '../../../protocol/model/alarms.ts'
import { moneyText } from '../../../protocol/model/money.ts'
import { readDay } from '../../commerce/analytics/sales-report.ts'
import { areIncomplete } from '../../commerce/analytics/totals.ts'
import { viewAlarm } from '../../events/alarms/alarms.ts'
import { addDays, weekdayOf, weekdays, type Day } from '../../platform/calendar/days.ts'
import { instantOf, localDay } from '../../platform/calendar/zone.ts'
import type { CloudContext } from '../../platform/context.ts'
import { hubsWithContact, type HubWithContact } from '../../platform/credentials/hub-access.ts'
import type { Queries } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, recurring, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { handOver, type Mail, type SendMail } from '../alarms/mail.ts'
import { readRestock } from './restock.ts'

/** Plans the mails of the hubs whose morning has begun. */
const PLAN = 'morning.plan'
/** Sends one mail: `HUB DAY CONTACT`. */
const SEND = 'morning.mail'
const CHECK_MS = 60_000
/** Full days of the average of sales in the list of rows to refill. */
const AVERAGE_DAYS = 14
/** The most lines of a list in the mail; the console shows the rest. */
const MOST = 100

/**
 * The mail of each morning: yesterday's sales, problems, rows to refill. It goes once a day and hub to each contact that
 * wants it. The day is stored in the transaction that queues the mails, so neither a restart nor a second process repeats
 * them. After a failure the same mail is sent again, with the same `Message-ID`.
 */
export const morningWork = (context: CloudContext, send: SendMail | undefined): WorkKinds => ({
  [PLAN]: recurring(context, CHECK_MS, () => planMornings(context)),
  [SEND]: { run: ({ subject }) => sendMorning(context, send, subject) },
})

async function planMornings({ db, runtime, settings }: CloudContext): Promise<void> {
  const now = runtime.clock.now()
  const hubs = await db.kysely
    .selectFrom('hubs')
    .select(['id', 'owner_id', 'timezone', 'morning_mail_on'])
    .where('retired_at', 'is', null)
    .execute()
  for (const { id, owner_id, timezone, morning_mail_on: last } of hubs) {
    const today = localDay(timezone, now)
    if ((last ?? '') >= today || now < instantOf(timezone, today, settings.morningMailAt)) continue
    await db.transact(async (tx) => {
      const { numUpdatedRows } = await tx.q
        .updateTable('hubs')
        .set({ morning_mail_on: today })
        .where('id', '=', id)
        .where((eb) => eb.or([eb('morning_mail_on', 'is', null), eb('morning_mail_on', '<', today)]))
        .executeTakeFirst()
      if (numUpdatedRows === 0n) return
      const readers = await morningReaders(tx.q, owner_id)
      await schedule(
        tx,
        SEND,
        readers.map((reader) => `${id} ${today} ${reader.id}`),
        now,
      )
    })
  }
}

/** The contacts of an owner that want the mail. */
export const morningReaders = (q: Queries, ownerId: number) =>
  q
    .selectFrom('alarm_contacts')
    .select(['id', 'email', 'name'])
    .where('owner_id', '=', ownerId)
    .where('morning_mail', '=', 1)
    .where('confirmed_at', 'is not', null)
    .orderBy('id')
    .execute()

async function sendMorning(
  { db, runtime, settings, log }: CloudContext,
  send: SendMail | undefined,
  subject: string,
): Promise<Outcome> {
  const [hubId, day = '', contactId] = subject.split(' ')
  const q = db.kysely
  const hub = await hubsWithContact(q).where('hubs.id', '=', Number(hubId)).executeTakeFirst()
  const readers = hub === undefined ? [] : await morningReaders(q, hub.owner_id)
  const reader = readers.find(({ id }) => id === Number(contactId))
  if (!hub || !reader) return done
  if (!send) {
    log.warn({ hubId, contactId }, 'no SMTP_URL: the morning mail is not sent; the console shows its figures')
    return done
  }
  const { subject: title, text } = await composeMorning(q, hub, {
    day,
    now: runtime.clock.now(),
    currency: settings.currency,
  })
  const to = { name: reader.name ?? '', address: reader.email }
  await handOver(send, { id: `morning-${hub.id}-${day}-${reader.id}`, to, subject: title, text })
  return done
}

/** The mail of a morning: `day` is the day on which it is read, at the hub. */
export async function composeMorning(
  q: Queries,
  hub: HubWithContact,
  { day, now, currency }: { day: Day; now: number; currency: string },
): Promise<Pick<Mail, 'subject' | 'text'>> {
  const yesterday = addDays(day, -1)
  const book = { hubId: hub.id, ownerId: hub.owner_id }
  const { gross_revenue, total_orders, units_sold } = await readDay(q, book, yesterday)
  const alarms = (
    await q
      .selectFrom('alarms')
      .selectAll()
      .where('hub_id', '=', hub.id)
      .where('owner_id', '=', hub.owner_id)
      .where('cleared_at', 'is', null)
      .orderBy('seq', 'desc')
      .execute()
  )
    .map(viewAlarm)
    .filter(({ severity }) => isAsBadAs(severity, 'warning'))
  const { data: rows } = await readRestock(q, { hubs: [hub], days: AVERAGE_DAYS, now, limit: 10_000 })
  const isIncomplete = await areIncomplete(q, [book.hubId])
  const refill = rows.filter((row) => row.refill > 0)
  const money = moneyText(gross_revenue, currency)
  const sales = isIncomplete
    ? 'the sales are not known yet, because the summaries of this hub are being rebuilt. The console shows them later'
    : `${money}, ${counted(total_orders, 'order')}, ${counted(units_sold, 'unit')}`
  const problems = listed(
    alarms.map(({ severity, message, remedy }) => `${severity}: ${message} What to do: ${remedy}`),
  )
  const toFill = listed(
    refill.map(
      ({ cabinet, shelf, row, name, quantity, capacity, refill: add, empty_by }) =>
        `${cabinet}/${shelf}/${row} ${name}: ${quantity} of ${capacity}, add ${add}${empty_by === null || isIncomplete ? '' : `, empty by ${empty_by}`}`,
    ),
  )
  return {
    subject: `[Larder] ${hub.name}: ${isIncomplete ? 'sales not known yet' : `${money} yesterday`}, ${counted(alarms.length, 'problem')}, ${counted(refill.length, 'row')} to refill`,
    text: [
      `${hub.name}, ${weekdays[weekdayOf(day)]} ${day}`,
      `Yesterday (${yesterday}): ${sales}.`,
      alarms.length === 0 ? 'Nothing is broken.' : `Broken:\n${problems}`,
      refill.length === 0 ? 'Every row is full.' : `Refill:\n${toFill}`,
      '',
    ].join('\n\n'),
  }
}

function listed(lines: readonly string[]): string {
  const shown = lines.slice(0, MOST).map((line) => `- ${line}`)
  return [...shown, ...(lines.length > MOST ? [`- and ${lines.length - MOST} more`] : [])].join('\n')
}
