import type { Selectable } from 'kysely'
import { z } from 'zod'
import { severities, type Severity } from '../../protocol/model/alarms.ts'
import { setContact, viewContact } from '../people/staff/contacts.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Tables } from '../platform/store/schema.ts'
import { recordAct, type CommandLine, type Options } from './command-line.ts'
import { findOwner, numberOf, required, nameOf } from './options.ts'

const usage = `Usage:
  larder contacts add --owner NAME --email ADDRESS [--name NAME] [--severity info|warning|critical] [--morning on|off]
  larder contacts list [--owner NAME]
  larder contacts remove ID

Recipients of an owner's alarms by mail. --severity is the lowest severity that is sent (default: warning). The service sends
one mail when an incident begins and one when it ends. Mails of the same moments are combined. The service needs SMTP_URL.
--morning on: the contact also gets the mail of each morning (default: off; larder mail --help). If the owner already has the
address, \`add\` changes the rest. A contact of this command gets mails at once; an address that an owner adds at the console
must confirm it first. Prints JSON.`

/** Recipients of alarms by mail. */
export const contactCommands: CommandLine = {
  usage,
  subcommands: {
    add: {
      options: ['owner', 'email', 'name', 'severity', 'morning'],
      async run({ options, q, db, runtime }) {
        const owner = await findOwner(q, required(options, 'owner'))
        const email = required(options, 'email')
        if (!z.email().max(254).safeParse(email).success)
          throw new UsageError(`--email is not an address: ${email}`)
        if (/[\r\n]/.test(options['name'] ?? ''))
          throw new UsageError('--name is one line of at most 200 letters')
        const name = options['name'] === undefined ? null : nameOf(options, 'name')
        const severity = severityOf(options)
        const detail = { owner_id: owner.id, email, name, severity, morning_mail: morningOf(options) }
        return db.transact(async (tx) => {
          // The operator answers for the address. The holder of an address that an owner adds is asked by mail.
          const row = await setContact(tx, runtime, { ...detail, confirmed_at: runtime.clock.now() })
          await recordAct(tx.q, runtime, { action: 'contacts.add', object: `contact-${row.id}`, detail })
          return view(row)
        })
      },
    },
    list: {
      options: ['owner'],
      async run({ options, q }) {
        let query = q.selectFrom('alarm_contacts').selectAll().orderBy('id')
        if (options['owner'] !== undefined)
          query = query.where('owner_id', '=', (await findOwner(q, options['owner'])).id)
        return (await query.execute()).map(view)
      },
    },
    remove: {
      options: [],
      positionals: ['id'],
      run: ({ options, db, runtime }) =>
        db.transact(async (tx) => {
          const id = numberOf(options, 'id', 1, Number.MAX_SAFE_INTEGER) ?? 0
          const row = await tx.q
            .deleteFrom('alarm_contacts')
            .where('id', '=', id)
            .returningAll()
            .executeTakeFirst()
          if (!row) throw new Error(`no such contact: ${options['id'] ?? ''}`)
          const detail = { owner_id: row.owner_id, email: row.email }
          await recordAct(tx.q, runtime, { action: 'contacts.remove', object: `contact-${id}`, detail })
          return { ...view(row), removed: true }
        }),
    },
  },
}

function severityOf(options: Options): Severity {
  const given = options['severity'] ?? 'warning'
  const known = severities.find((severity) => severity === given)
  if (known === undefined) throw new UsageError(`--severity must be ${severities.join(', ')}: ${given}`)
  return known
}

function morningOf({ morning = 'off' }: Options): 0 | 1 {
  if (morning !== 'on' && morning !== 'off') throw new UsageError(`--morning must be on or off: ${morning}`)
  return morning === 'on' ? 1 : 0
}

const view = (row: Selectable<Tables['alarm_contacts']>) => ({ ...viewContact(row), owner_id: row.owner_id })
