import { eraseOrder } from '../gateway/moves.ts'
import { renewClaimCode } from '../enrolment/claim-codes.ts'
import { revokeHub } from '../enrolment/enrol.ts'
import { moveHub, retireHub } from '../operations/ownership/hand-over.ts'
import { shownMove } from '../operations/ownership/next-cell.ts'
import { timestamp } from '../platform/calendar/timestamps.ts'
import { COMMAND_LINE, recordAct, type CommandLine } from './command-line.ts'
import { claimPicture } from './hub-code.ts'
import { findOwner, idOf, required, nameOf } from './options.ts'
import { exportHub, writeExport } from './hub-export.ts'
import { record, say } from './hub-management.ts'
import { changeHub, lockInService, showHub } from './hub-record.ts'

/** Renames, moves, retires and exports hubs. */
export const lifeCommands: CommandLine['subcommands'] = {
  rename: {
    options: ['hub', 'name'],
    positionals: ['hub'],
    run({ db, options, context, runtime }) {
      const hubId = idOf(options, 'hub', "a hub's")
      const name = nameOf(options, 'name')
      return db.transact(async (tx) => {
        const before = await lockInService(tx, hubId)
        await changeHub(tx, context, hubId, { changes: { name } })
        await record(tx.q, runtime, 'hubs.rename', hubId, { from: before.name, to: name })
        return showHub(tx.q, context, hubId)
      })
    },
  },
  move: {
    options: ['hub', 'owner'],
    positionals: ['hub'],
    async run({ db, options, context, runtime }) {
      const hubId = idOf(options, 'hub', "a hub's")
      const given = required(options, 'owner')
      const { roles, ...moved } = await db.transact(async (tx) => {
        const { owner: from, name } = await showHub(tx.q, context, hubId)
        const to = await findOwner(tx.q, given)
        const { fromOwner, movedAt, roles: taken } = await moveHub(tx, context, { hubId, newOwner: to.id })
        const detail = { from_owner: from, to_owner: to.name, roles: taken }
        await record(tx.q, runtime, 'hubs.move', hubId, detail)
        // The new owner has the record above. The former owner must see that the hub has left.
        const left = {
          action: 'hubs.move',
          object: `owner-${fromOwner}`,
          detail: { hub_id: hubId, name, to_owner: to.name },
        }
        await recordAct(tx.q, runtime, left)
        const moved_at = timestamp(movedAt)
        return { hub_id: hubId, from_owner: from, to_owner: to.name, moved_at, roles: taken }
      })
      if (roles.length > 0)
        say(`These identities had a role at hub ${hubId} and lost it: ${roles.join(', ')}`)
      return moved
    },
  },
  retire: {
    options: ['hub'],
    flags: ['force'],
    positionals: ['hub'],
    run({ db, options, context, runtime }) {
      const hubId = idOf(options, 'hub', "a hub's")
      const force = options['force'] !== undefined
      return db.transact(async (tx) => {
        const before = await tx.q
          .selectFrom('hubs')
          .select('retired_at')
          .where('id', '=', hubId)
          .executeTakeFirst()
        const { retiredAt, orders } = await retireHub(tx, context, { hubId, force, actor: COMMAND_LINE })
        if (before?.retired_at === null)
          await record(tx.q, runtime, 'hubs.retire', hubId, orders.length > 0 ? { orders } : undefined)
        const secrets_erased = (await eraseOrder(tx.q, hubId)) === undefined
        return { hub_id: hubId, retired_at: timestamp(retiredAt), secrets_erased }
      })
    },
  },
  export: {
    options: ['hub', 'to'],
    positionals: ['hub'],
    async run({ q, settings, options }) {
      const hubId = idOf(options, 'hub', "a hub's")
      const exported = await exportHub(q, settings, hubId)
      const folder = options['to']
      return folder === undefined ? exported : writeExport(exported, required(options, 'to'))
    },
  },
}

/** Decides which board may be a hub. */
export const boardCommands: CommandLine['subcommands'] = {
  'claim-code': {
    options: ['hub'],
    positionals: ['hub'],
    picture: claimPicture,
    run({ db, options, context, runtime }) {
      const hubId = idOf(options, 'hub', "a hub's")
      return db.transact(async (tx) => {
        await lockInService(tx, hubId)
        const { code, expiresAt } = await renewClaimCode(tx, context, hubId)
        await record(tx.q, runtime, 'hubs.claim_code', hubId)
        return { hub_id: hubId, claim_code: code, claim_expires_at: timestamp(expiresAt) }
      })
    },
  },
  revoke: {
    options: ['hub'],
    positionals: ['hub'],
    async run({ db, options, settings, runtime }) {
      const hubId = idOf(options, 'hub', "a hub's")
      const ended = await db.transact(async (tx) => {
        const revoked = await revokeHub(tx, runtime, hubId)
        await record(tx.q, runtime, 'hubs.revoke', hubId, { revoked })
        return { hub_id: hubId, revoked }
      })
      const move = await shownMove(db.kysely, hubId)
      if (move)
        say(
          `Hub ${hubId} was ordered to move. If its board is enrolled as hub ${move.hub_id} at ${move.address}, revoke it there, too.`,
        )
      if (settings.MQTT_URL) say('The broker must read GET /pki/crl.pem again, or the board returns.')
      return ended
    },
  },
}
