import * as files from 'node:fs'
import { eraseOrder } from '../gateway/moves.ts'
import { renewClaimCode } from '../enrolment/claim-codes.ts'
import { revokeHub } from '../enrolment/enrol.ts'
import { moveHub, retireHub } from '../operations/ownership/hand-over.ts'
import { shownMove, orderMove, withdrawMove, type MoveOrder } from '../operations/ownership/next-cell.ts'
import { timestamp } from '../platform/calendar/days.ts'
import { COMMAND_LINE, recordAct, type CommandLine, type Invocation, type Options } from './command-line.ts'
import { claimPicture } from './hub-code.ts'
import { findOwner, idOf, required, nameOf, conform, hubOf } from './options.ts'
import { record, say } from './hub-management.ts'
import { changeHub, lockInService, showHub } from './hub-record.ts'
import { join } from 'node:path'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import { fileProblem } from '../../protocol/model/system-error.ts'
import { hubBrokerUrl } from '../enrolment/broker-url.ts'
import { readDesired } from '../gateway/desired-state.ts'
import { readNamed, using } from '../platform/settings/config.ts'
import type { Queries } from '../platform/store/database.ts'
import { goesInClear } from '../../protocol/model/exposure.ts'
import { NextCell } from '../../protocol/mqtt/session.ts'
import { Digest } from '../operations/ownership/hub-entry.ts'
import { storeSecretsOf } from '../operations/backup/place.ts'
import { existingSealer } from '../platform/store/sealer.ts'
import { UsageError } from '../platform/settings/usage-error.ts'

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

/** The files of a new card or board of a hub, without secrets. */
interface ExportedHub {
  hub_id: number
  /** The description that the cloud has stored; null if there is none. */
  hardware: Readonly<Record<string, unknown>> | null
  /** Settings of the hub that the cloud stores. */
  settings: Readonly<Record<string, string>>
  desired_version: number
  mqtt_url: string
  /** PEM; null if the system's authorities are used. */
  mqtt_ca: string | null
}

/** Throws if there is no such hub. */
async function exportHub(q: Queries, settings: Invocation['settings'], hubId: number): Promise<ExportedHub> {
  const hub = await q.selectFrom('hubs').select('id').where('id', '=', hubId).executeTakeFirst()
  if (!hub) throw new Error(`no such hub: ${hubId}`)
  const { version, settings: stored, hardware } = await readDesired(q, hubId)
  return {
    hub_id: hubId,
    hardware,
    settings: stored,
    desired_version: version,
    mqtt_url: hubBrokerUrl(settings),
    mqtt_ca: settings.MQTT_CA === undefined ? null : readNamed('MQTT_CA', settings.MQTT_CA),
  }
}

/**
 * Writes `hub.json` and `hardware.json` for `/etc/larder` into a folder, and `mqtt-ca.pem` if there is one. Returns their
 * paths. Throws a sentence if a file cannot be written.
 */
function writeExport(
  { hub_id, hardware, settings, desired_version, mqtt_url, mqtt_ca }: ExportedHub,
  folder: string,
): { hub_id: number; desired_version: number; files: string[] } {
  const written: string[] = []
  const attempt = (path: string, work: () => void): void => {
    try {
      work()
    } catch (error) {
      throw new Error(`--to: ${path} cannot be written: ${fileProblem(error)}`, { cause: error })
    }
  }
  const write = (name: string, text: string): void => {
    const path = join(folder, name)
    attempt(path, () => files.writeFileSync(path, text))
    written.push(path)
  }
  attempt(folder, () => makeFolder(files, folder))
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
  const ca = mqtt_ca === null ? {} : { MQTT_CA: '/etc/larder/mqtt-ca.pem' }
  // The package's places: a service has no working directory.
  const places = { HARDWARE: '/etc/larder/hardware.json', STORE: '/var/lib/larder/hub.sqlite' }
  write('hub.json', json({ MQTT_URL: mqtt_url, ...ca, ...places, ...settings }))
  if (hardware !== null) write('hardware.json', json(hardware))
  if (mqtt_ca !== null) write('mqtt-ca.pem', mqtt_ca)
  return { hub_id, desired_version, files: written }
}

const help = `Usage:
  larder hubs send ID --to URL --as ID --export DIGEST --code-file FILE
  larder hubs send ID --withdraw

Moves a hub in maintenance to another cell. larder owners export and import come first: a hub that has changed since then does
not move. The import prints this command: --to is the address of the cell, --as the number of the hub there, --export the digest
of the imported export, which must be the hub's last one. --code-file contains its claim code there; "-" is the standard input.
When the hub is online, it enrols there within seconds. Only then the cloud retires it here. Prints the hub as show does:
next_cell has the state (ordered, failed, leaving or moved) and the reason of a failure. A failed move changes nothing: end its
cause, and repeat the command with the same code. A hub that is offline for a day does not move. A hub that is retired here and has
not left (leaving) gets another code with the same command, if its certificate there has expired. --as may then be another number.

--withdraw withdraws an order that the hub has not answered. A hub that is retired here leaves nevertheless. The command needs the STORE_SECRET of the service.`

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
      const shown = await db.transact(async (tx) => {
        if (next && sealer) {
          await orderMove(tx, { ...context, sealer }, hubId, next)
          await record(tx.q, runtime, 'hubs.send', hubId, { to: next.cloud, as: next.hub_id })
        } else {
          if (!(await withdrawMove(tx, hubId))) throw new Error(`hub ${hubId} has no order to withdraw`)
          await record(tx.q, runtime, 'hubs.send', hubId, { withdrawn: true })
        }
        return showHub(tx.q, context, hubId)
      })
      const { next_cell: move } = shown
      if (!next && move?.state === 'leaving')
        say(
          `Only the claim code is withdrawn: hub ${hubId} is retired here, and leaves for ${move.address} as soon as it can.`,
        )
      return shown
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
  const text = using('--code-file', path, 'read', () => files.readFileSync(path === '-' ? 0 : path, 'utf8'))
  return { cloud, hub_id, digest, code: conform(NextCell.shape.code, text.trim(), '--code-file') }
}
