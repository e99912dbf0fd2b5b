import { timestamp } from '../platform/calendar/days.ts'
import { endSessionsOf } from '../platform/credentials/sessions.ts'
import { recordAct, type CommandLine } from './command-line.ts'
import { required } from './options.ts'

const usage = `Usage:
  larder sessions list --identity SUB
  larder sessions revoke --identity SUB

Sessions of a person in browsers. --identity is the subject at the identity provider. A revoked session and its streams
end within 5 seconds. The person can sign in again: to prevent that, revoke the role, or block the person at the provider.`

export const sessionCommands: CommandLine = {
  usage,
  subcommands: {
    list: {
      options: ['identity'],
      async run({ q, options, runtime }) {
        const rows = await q
          .selectFrom('sessions')
          .select(['id', 'identity', 'created_at', 'expires_at'])
          .where('identity', '=', required(options, 'identity'))
          .where('expires_at', '>', runtime.clock.now())
          .orderBy('id')
          .execute()
        return rows.map((row) => ({
          ...row,
          created_at: timestamp(row.created_at),
          expires_at: timestamp(row.expires_at),
        }))
      },
    },
    revoke: {
      options: ['identity'],
      async run({ db, options, runtime }) {
        const identity = required(options, 'identity')
        return db.transact(async (tx) => {
          const revoked = await endSessionsOf(tx.q, identity)
          if (revoked === 0) throw new Error(`${identity} has no session`)
          await recordAct(tx.q, runtime, { action: 'sessions.revoke', object: `identity:${identity}` })
          return { identity, revoked }
        })
      },
    },
  },
}
