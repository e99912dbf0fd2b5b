import { readFileSync } from 'node:fs'
import { goesInClear } from '../../protocol/model/exposure.ts'
import { NextCell } from '../../protocol/mqtt/session.ts'
import { Digest } from '../operations/ownership/hub-entry.ts'
import { orderMove, withdrawMove, type MoveOrder } from '../operations/ownership/next-cell.ts'
import { storeSecretsOf } from '../operations/backup/place.ts'
import { existingSealer } from '../platform/store/sealer.ts'
import { using } from '../platform/settings/config.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { CommandLine, Options } from './command-line.ts'
import { record } from './hub-management.ts'
import { showHub } from './hub-record.ts'
import { conform, hubOf, idOf, required } from './options.ts'

const help = `Usage:
  larder hubs send ID --to URL --as ID --export DIGEST --code-file FILE
  larder hubs send ID --withdraw

Moves a hub in maintenance to another cell. larder owners export and import come first: a hub that has changed since then does
not move. The import prints this command: --to is the address of the cell, --as the number of the hub there, --export the digest
of the imported export, which must be the hub's last one. --code-file contains its claim code there; "-" is the standard input.
When the hub is online, it enrols there within seconds. Only then the cloud retires it here. Prints the hub as show does:
next_cell has the state (ordered, failed or moved) and the reason of a failure. A failed move changes nothing: end its cause, and
repeat the command with the same code. A hub that is offline for a day does not move.

--withdraw withdraws an order that the hub has not answered. The command needs the STORE_SECRET of the service.`

/** Sends hubs to other cells. */
export const sendCommands: CommandLine['subcommands'] = {
  send: {
    options: ['hub', 'to', 'as', 'export', 'code-file'],
    flags: ['withdraw'],
    positionals: ['hub'],
    help: () => help,
    async run(invocation) {
      const { q, db, settings, options, context, runtime } = invocation
      const hubId = await hubOf(invocation)
      const next = options['withdraw'] === undefined ? moveOf(options) : undefined
      const sealer = next && (await existingSealer(q, storeSecretsOf(settings), runtime.random))
      return db.transact(async (tx) => {
        if (next && sealer) {
          await orderMove(tx, { ...context, sealer }, hubId, next)
          await record(tx.q, runtime, 'hubs.send', hubId, { to: next.cloud, as: next.hub_id })
        } else {
          if (!(await withdrawMove(tx, hubId))) throw new Error(`hub ${hubId} has no order to withdraw`)
          await record(tx.q, runtime, 'hubs.send', hubId, { withdrawn: true })
        }
        return showHub(tx.q, context, hubId)
      })
    },
  },
}

function moveOf(options: Options): MoveOrder {
  const cloud = required(options, 'to').replace(/\/+$/, '')
  if (!NextCell.shape.cloud.safeParse(cloud).success || goesInClear(cloud))
    throw new UsageError('--to must be the https address of a cell')
  const hub_id = conform(NextCell.shape.hub_id, idOf(options, 'as', "a hub's"), '--as')
  const digest = conform(Digest, required(options, 'export'), '--export')
  const path = required(options, 'code-file')
  const text = using('--code-file', path, 'read', () => readFileSync(path === '-' ? 0 : path, 'utf8'))
  return { cloud, hub_id, digest, code: conform(NextCell.shape.code, text.trim(), '--code-file') }
}
