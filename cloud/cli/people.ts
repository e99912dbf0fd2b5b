import { readFileSync } from 'node:fs'
import { PersonName, Pin, isSameName, pinDigestOf } from '../../protocol/model/pin.ts'
import { addHubPerson, removeHubPeople } from '../operations/controls/hub-people.ts'
import { timestamp } from '../platform/calendar/days.ts'
import { using } from '../platform/settings/config.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import { recordAct, type CommandLine, type Options } from './command-line.ts'
import { lockInService } from './hub-record.ts'
import { conform, hubsOf, required, requireHubs } from './options.ts'

const usage = `Usage:
  larder people add --name NAME --pin-file FILE|--pin PIN --hubs 1,2|*
  larder people list [--hubs 1,2|*]
  larder people remove --name NAME [--hubs 1,2|*]

People who may use the page of a hub, each with a name and a PIN of 4 to 12 digits. The hub receives names and digests of PINs.
The audit log names the person of each action (person:NAME). --hubs "*" means every hub of now. remove without --hubs removes the
person from every hub. The person's sessions at a connected hub end within 5 seconds.

A thief of a hub's card can try PINs on other computers: 4 digits take minutes, 8 digits take months. Prefer 8 digits.

--pin-file reads the PIN from a file; "-" is the standard input. Other users of the machine can read a PIN of --pin in the list of
processes.`

export const peopleCommands: CommandLine = {
  usage,
  subcommands: {
    add: {
      options: ['name', 'pin', 'pin-file', 'hubs'],
      async run({ q, db, options, terminal, context, runtime }) {
        const name = nameIn(options)
        const pin = pinIn(options)
        if (pin.length < 6) terminal.warn?.('a PIN of 8 digits protects better against a thief of the card\n')
        const hubs = await hubIdsOf(q, options)
        const person = { name, pin_digest: await pinDigestOf(pin, runtime.random) }
        await db.transact(async (tx) => {
          for (const hubId of hubs) {
            await lockInService(tx, hubId)
            await addHubPerson(tx, context, hubId, person)
            await recordAct(tx.q, runtime, { action: 'people.add', object: `person:${name}`, hubId })
          }
        })
        return { name, hubs }
      },
    },
    list: {
      options: ['hubs'],
      run: async ({ q, options }) => listPeople(q, await hubIdsOf(q, { hubs: '*', ...options })),
    },
    remove: {
      options: ['name', 'hubs'],
      async run({ q, db, options, context, runtime }) {
        const name = nameIn(options)
        const hubs = await hubIdsOf(q, { hubs: '*', ...options })
        return db.transact(async (tx) => {
          const left: number[] = []
          for (const hubId of hubs)
            if (await removeHubPeople(tx, context, hubId, name)) {
              left.push(hubId)
              await recordAct(tx.q, runtime, { action: 'people.remove', object: `person:${name}`, hubId })
            }
          if (left.length === 0) throw new Error(`no such person: ${name}`)
          return { name, hubs: left, removed: true }
        })
      },
    },
  },
}

const nameIn = (options: Options): string => conform(PersonName, required(options, 'name'), '--name')

function pinIn(options: Options): string {
  const path = options['pin-file']
  if (path === undefined) return conform(Pin, required(options, 'pin'), '--pin')
  if (options['pin'] !== undefined) throw new UsageError('--pin and --pin-file exclude each other')
  const text = using('--pin-file', path, 'read', () => readFileSync(path === '-' ? 0 : path, 'utf8'))
  return conform(Pin, text.trim(), '--pin-file')
}

/** The hubs of an option, in the order of their ids: transactions lock them in this order. */
async function hubIdsOf(q: Queries, options: Options): Promise<number[]> {
  const hubs = hubsOf(options)
  await requireHubs(q, hubs)
  if (hubs !== '*') return hubs.toSorted((one, other) => one - other)
  const rows = await q.selectFrom('hubs').select('id').where('retired_at', 'is', null).orderBy('id').execute()
  return rows.map(({ id }) => id)
}

/** People by name, each with the hubs. */
async function listPeople(q: Queries, hubs: readonly number[]) {
  const rows = await q
    .selectFrom('hub_people')
    .select(['name', 'hub_id', 'created_at'])
    .where('hub_id', 'in', hubs)
    .orderBy('hub_id')
    .execute()
  const people: { name: string; hubs: number[]; created_at: string }[] = []
  for (const { name, hub_id: hubId, created_at } of rows) {
    const known = people.find((person) => isSameName(person.name, name))
    if (known) known.hubs.push(hubId)
    else people.push({ name, hubs: [hubId], created_at: timestamp(created_at) })
  }
  return people
}
