import { alarmKinds } from '../../protocol/model/alarms.ts'
import { acknowledgeAlarm, viewAlarm } from '../events/alarms/alarms.ts'
import { timestampOrNull } from '../platform/calendar/days.ts'
import type { Queries } from '../platform/store/database.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { COMMAND_LINE, recordAct, type CommandLine } from './command-line.ts'
import { findOwner, hubOf, numberOf } from './options.ts'

/** The kinds that an acknowledgement ends. */
const endedByPeople = Object.entries(alarmKinds)
  .filter(([, { ends }]) => ends === 'when_acknowledged' || ends === 'at_once_or_acknowledged')
  .map(([kind]) => kind)

const usage = `Usage:
  larder alarms list [--owner NAME] [--hub ID] [--state open|cleared|all] [--limit N]
  larder alarms acknowledge ID

Problems that need a person. \`list\` prints the newest first, at most 100 open ones. \`acknowledge\` records that a person has
seen the alarm. It also ends an alarm of these kinds: ${endedByPeople.join(', ')}.
Every other alarm stays open until the problem is resolved.
Each alarm has the name of its hub, the hub's last contact (\`last_contact\`) and the remedy (\`remedy\`). Prints JSON.`

/** Names and last contacts of hubs. */
const hubsById = (q: Queries, ids: readonly number[]) =>
  q
    .selectFrom('hubs')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
    .select(['hubs.id', 'hubs.name', 'hub_sessions.last_heard_at'])
    .where('hubs.id', 'in', ids.length > 0 ? ids : [0])
    .execute()

/** Alarms, for operators. */
export const alarmCommands: CommandLine = {
  usage,
  subcommands: {
    list: {
      options: ['owner', 'hub', 'state', 'limit'],
      async run({ options, q }) {
        const state = options['state'] ?? 'open'
        if (!['open', 'cleared', 'all'].includes(state))
          throw new UsageError(`--state must be open, cleared or all: ${state}`)
        let query = q
          .selectFrom('alarms')
          .selectAll()
          .orderBy('seq', 'desc')
          .limit(numberOf(options, 'limit', 1, 10_000) ?? 100)
        if (options['owner'] !== undefined)
          query = query.where('owner_id', '=', (await findOwner(q, options['owner'])).id)
        if (options['hub'] !== undefined) query = query.where('hub_id', '=', await hubOf({ q, options }))
        if (state !== 'all') query = query.where('cleared_at', state === 'open' ? 'is' : 'is not', null)
        const rows = await query.execute()
        const hubs = new Map(
          (await hubsById(q, [...new Set(rows.flatMap(({ hub_id: id }) => id ?? []))])).map((hub) => [
            hub.id,
            hub,
          ]),
        )
        return rows.map((row) => {
          const hub = hubs.get(row.hub_id ?? 0)
          return {
            owner_id: row.owner_id,
            hub: hub?.name ?? null,
            last_contact: timestampOrNull(hub?.last_heard_at ?? null),
            ...viewAlarm(row),
          }
        })
      },
    },
    acknowledge: {
      options: [],
      positionals: ['id'],
      run: ({ db, options, context, runtime }) =>
        db.transact(async (tx) => {
          const id = options['id'] ?? ''
          const row = await acknowledgeAlarm(tx, context, id, COMMAND_LINE)
          if (!row) throw new Error(`no such alarm: ${id}`)
          const { hub_id: hubId, kind, subject } = row
          const detail = { kind, subject }
          await recordAct(tx.q, runtime, { action: 'alarms.acknowledge', hubId, object: id, detail })
          return viewAlarm(row)
        }),
    },
  },
}
