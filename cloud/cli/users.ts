import { writeFileSync } from 'node:fs'
import { eraseByOperator } from '../people/users/delete-user.ts'
import { exportUser } from '../people/users/export-user.ts'
import { timestamp } from '../platform/calendar/days.ts'
import { using } from '../platform/settings/config.ts'
import { recordAct, type CommandLine } from './command-line.ts'
import { idOf } from './options.ts'

const usage = `Usage:
  larder users export USER [--to FILE]
  larder users erase USER

Customers, by their number (user_id).

export prints everything that is stored about a customer as JSON: the account, devices, orders, payments, ledger, deals, messages and
acts. Secrets and digests are left out. --to writes it into a file that only its user can read.

erase removes contact, identity, profile, devices, saved payment methods, stored answers and messages. Orders, payments and ledger stay
under the number. The service removes the customer at the card processor. erase fails while an order is being paid, prepared or
collected, and while the wallet is not empty or a refund is owed. A repetition prints the time of the first erasure.`

/** Customers' data, for operators who answer a customer's request. */
export const userCommands: CommandLine = {
  usage,
  subcommands: {
    export: {
      options: ['user', 'to'],
      positionals: ['user'],
      async run({ q, options, runtime }) {
        const userId = idOf(options, 'user', "a user's")
        const exported = { exported_at: timestamp(runtime.clock.now()), ...(await exportUser(q, userId)) }
        await recordAct(q, runtime, { action: 'users.export', object: `user-${userId}`, detail: {} })
        const file = options['to']
        if (file === undefined) return exported
        const text = `${JSON.stringify(exported, null, 2)}\n`
        using('--to', file, 'used', () => writeFileSync(file, text, { mode: 0o600 }))
        return { user_id: userId, file, size_bytes: Buffer.byteLength(text) }
      },
    },
    erase: {
      options: ['user'],
      positionals: ['user'],
      run({ db, options, context, runtime }) {
        const userId = idOf(options, 'user', "a user's")
        return db.transact(async (tx) => {
          const { erasedAt, isNew } = await eraseByOperator(tx, context, userId)
          if (isNew)
            await recordAct(tx.q, runtime, { action: 'users.erase', object: `user-${userId}`, detail: {} })
          return { user_id: userId, erased_at: timestamp(erasedAt) }
        })
      },
    },
  },
}
