import type { Runtime } from '../../protocol/model/runtime.ts'
import { acknowledgeAlarm, viewAlarm } from '../events/alarms/alarms.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { contextOf, findOwner, hubOf, numberOf, recordAct, type CommandLine } from './command-line.ts'

const usage = `Usage:
  npm run alarms -- list [--owner NAME] [--hub ID] [--state open|cleared|all] [--limit N]
  npm run alarms -- acknowledge ID

What people have to look at, newest first; \`list\` shows those that are open, 100 of them. \`acknowledge\` says that somebody
has taken note: the alarm stays open until its fact is over. Prints JSON.`

/** Alarms, for operators. */
export const alarmCommands = (runtime: Runtime): CommandLine => ({
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
        return (await query.execute()).map((row) => ({ owner_id: row.owner_id, ...viewAlarm(row) }))
      },
    },
    acknowledge: {
      options: [],
      positionals: ['id'],
      run: ({ db, options, settings }) =>
        db.transact(async (tx) => {
          const id = options['id'] ?? ''
          const row = await acknowledgeAlarm(tx, contextOf({ db, settings }, runtime), id, 'command line')
          if (!row) throw new UsageError(`no such alarm: ${id}`)
          const { hub_id: hubId, kind, subject } = row
          const detail = { kind, subject }
          await recordAct(tx.q, runtime, { action: 'alarms.acknowledge', hubId, object: id, detail })
          return viewAlarm(row)
        }),
    },
  },
})
