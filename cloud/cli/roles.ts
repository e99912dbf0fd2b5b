import { Identity } from '../../protocol/contract/fields.ts'
import { roleNames } from '../../protocol/model/scopes.ts'
import { timestamp } from '../platform/calendar/days.ts'
import { appendAudits } from '../platform/audit/audit.ts'
import { lockHubs } from '../platform/credentials/hub-access.ts'
import { grantRole, listRoles, recordsOfGrant, revokeRole, type Role } from '../platform/credentials/roles.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { COMMAND_LINE, type CommandLine } from './command-line.ts'
import { conform, hubsOf, required, requireHubs } from './options.ts'

const usage = `Usage:
  larder roles grant --identity SUB --role ${roleNames.join('|')} --hubs 1,2|*
  larder roles list [--identity SUB]
  larder roles revoke ID

Roles of identity tokens on the owner's interface. --identity is the token's subject. --hubs "*" means every hub.
owner: every scope; technician: hubs, controls, maintenance; analyst: everything to read.`

export const roleCommands: CommandLine = {
  usage,
  subcommands: {
    grant: {
      store: 'creates',
      options: ['identity', 'role', 'hubs'],
      async run({ q, db, options, runtime }) {
        const identity = conform(Identity, required(options, 'identity'), '--identity')
        const given = required(options, 'role')
        const role = roleNames.find((name) => name === given)
        if (!role) throw new UsageError(`no role ${given}; there are: ${roleNames.join(', ')}`)
        const hubs = hubsOf(options)
        const id = await db.transact(async (tx) => {
          if (hubs !== '*') await lockHubs(tx, hubs)
          await requireHubs(tx.q, hubs)
          const granted = await grantRole(tx.q, runtime, { identity, role, hubs })
          const act = { actor: COMMAND_LINE, action: 'roles.grant', object: `role-${granted}` }
          await appendAudits(tx.q, runtime, recordsOfGrant(act, { identity, role, hubs }))
          return granted
        })
        return (await listRoles(q, identity)).filter((known) => known.id === id).map(view)[0]
      },
    },
    list: {
      options: ['identity'],
      run: async ({ q, options }) => (await listRoles(q, options['identity'])).map(view),
    },
    revoke: {
      options: ['id'],
      positionals: ['id'],
      async run({ db, options, runtime }) {
        const given = required(options, 'id')
        await db.transact(async (tx) => {
          const revoked = /^\d+$/.test(given) ? await revokeRole(tx, Number(given)) : undefined
          if (!revoked) throw new Error(`no role has the id ${given}`)
          const act = { actor: COMMAND_LINE, action: 'roles.revoke', object: `role-${given}` }
          await appendAudits(tx.q, runtime, recordsOfGrant(act, revoked))
        })
        return { id: Number(given), revoked: true }
      },
    },
  },
}

const view = (role: Role) => ({
  id: role.id,
  identity: role.identity,
  role: role.role,
  hubs: role.hubs,
  created_at: timestamp(role.createdAt),
})
