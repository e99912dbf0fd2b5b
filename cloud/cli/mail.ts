import { ReportDay } from '../../protocol/contract/fields.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import { smtpSender } from '../operations/alarms/mail.ts'
import { composeMorning, morningReaders } from '../operations/reports/morning-mail.ts'
import { localDay } from '../platform/calendar/zone.ts'
import { hubsWithContact, refuseRetired } from '../platform/credentials/hub-access.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { recordAct, type CommandLine } from './command-line.ts'
import { numberOf, required } from './options.ts'

const usage = `Usage:
  larder mail morning --hub ID [--date YYYY-MM-DD]

Sends the mail of a morning now. It lists the sales of the day before, open alarms, and rows to refill. --date is the day of the
morning at the hub (default: today). The mail goes to the contacts of the hub's owner with --morning on (larder contacts). The
service sends it by itself each day at MORNING_MAIL_AT. Without SMTP_URL the command prints the mail and sends nothing. Prints JSON.`

/** Mails to people of an owner. */
export const mailCommands: CommandLine = {
  usage,
  subcommands: {
    morning: {
      options: ['hub', 'date'],
      async run({ options, q, db, settings, terminal, runtime }) {
        const id = numberOf(options, 'hub', 1, Number.MAX_SAFE_INTEGER)
        required(options, 'hub')
        const hub = await hubsWithContact(q)
          .where('hubs.id', '=', id ?? 0)
          .executeTakeFirst()
        if (!hub) throw new Error(`no such hub: ${options['hub'] ?? ''}`)
        refuseRetired(hub)
        const now = runtime.clock.now()
        const day = options['date'] ?? localDay(hub.timezone, now)
        if (!ReportDay.safeParse(day).success)
          throw new UsageError(`--date must be a date, YYYY-MM-DD: ${day}`)
        const { currency } = settings.limits.rules
        const mail = await composeMorning(q, hub, { day, now, currency })
        const readers = await morningReaders(q, hub.owner_id)
        const { SMTP_URL: url, PUBLIC_URL, SMTP_TIMEOUT_MS: timeoutMs } = settings
        if (url === undefined) {
          terminal.warn?.('SMTP_URL is not set: the mail is printed and not sent\n')
          return { hub_id: hub.id, date: day, sent_to: [], ...mail }
        }
        const from = settings.MAIL_FROM ?? `larder@${new URL(PUBLIC_URL ?? 'http://localhost').hostname}`
        const send = smtpSender({ url, from, timeoutMs })
        for (const { email, name } of readers)
          await send({ id: uuidv7(runtime), to: { name: name ?? '', address: email }, ...mail })
        await db.transact((tx) =>
          recordAct(tx.q, runtime, {
            action: 'mail.morning',
            object: `hub-${hub.id}`,
            detail: { date: day },
          }),
        )
        return { hub_id: hub.id, date: day, sent_to: readers.map(({ email }) => email), ...mail }
      },
    },
  },
}
