import { bareHost } from '../../protocol/model/address.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { managementKeyOf, readNamed } from '../platform/settings/config.ts'
import {
  conform,
  contextOf,
  findOwner,
  hubOf,
  numberOf,
  readJsonFile,
  recordAct,
  required,
  type CommandLine,
  type Invocation,
  type Options,
} from './command-line.ts'
import { changeHub, changeOptions, HubChanges, showHub } from './hub-record.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { createHub, NewHub, renewPassword } from '../operations/hubs/create-hub.ts'
import { builtOf, writeLayout, type Built } from '../commerce/catalogue/layout.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { clearAddress, parseHostKey, writeAddress } from '../operations/ssh/addresses.ts'
import { timestampOrNull } from '../platform/calendar/timestamps.ts'
import { mosquittoLine } from '../gateway/mosquitto-password.ts'
import { tryLogin } from '../gateway/try-login.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { endRotation, keptClientKey, rotateClientKey } from '../operations/ssh/remote.ts'

const DEFAULT_PORT = '8083'

const usage = `Usage:
  npm run hubs -- list
  npm run hubs -- create --owner NAME | --new-owner NAME --name NAME --street TEXT [--street-2 TEXT] --city TEXT
      --state TEXT --postal-code TEXT --latitude DEGREES --longitude DEGREES --timezone ZONE [--tax PERCENT] [--hardware FILE]
  npm run hubs -- show HUB
  npm run hubs -- set HUB [--external-payments off|customers|everyone] [--maintenance on|off] [--tax PERCENT]
      [--street TEXT] [--street-2 TEXT] [--city TEXT] [--state TEXT] [--postal-code TEXT] [--latitude DEGREES]
      [--longitude DEGREES] [--timezone ZONE] [--hardware FILE]
  npm run hubs -- set-layout HUB --hardware FILE
  npm run hubs -- renew-password HUB [--overlap HOURS] [--old-password-file FILE [--broker URL]]
  npm run hubs -- set-management HUB --host HOST [--port ${DEFAULT_PORT}] --host-key KEY
  npm run hubs -- clear-management HUB
  npm run hubs -- key | rotate-key | end-key-rotation

create registers a hub, and its owner where that is a new one, and prints its MQTT user and password: the password is stored
nowhere and never shown again (renew-password makes another). --hardware takes the hub's hardware description (JSON), from which
its shelves and fridges are known; set-layout reads it anew. The file names the hub by its number, "hubId"; that of a new hub is
known once create has printed it, which says so where the file has another one. --tax is the sales tax in percent, with at most
three decimals (8.875; default 0).

show prints a hub with its settings. set changes the settings that are given and prints the hub as show does; if a value is
invalid, nothing changes. --external-payments says who may claim an order that an integrator is paid for (guide "Your own
payments"): nobody (off, the default), users with an account (customers), or anonymous users too (everyone).

renew-password prints a new MQTT password. The embedded broker ends the session of the former one within 5 seconds; --overlap keeps
the former password valid for so many hours (up to 168), so that the hub stays online until its configuration has the new one. An
external broker (MQTT_URL) accepts the former password until its own password file changes: the command prints the line for that
file. --old-password-file contains the former password: the command tries it at the broker and reports the result. --broker is
the address at which hubs reach the broker (default MQTT_URL). Such a trial ends the hub's own connection for a moment.

Where the hubs' management services are (SSH), and by which host key each is known. --host-key takes the public key, or its
fingerprint (SHA256:…), as \`npm run management -- --host-key\` prints them on the hub: a hub that shows another key is
refused. key prints the cloud's own public key, for the file AUTHORIZED_KEYS of each hub; it is made where there is none. rotate-key makes a
new key and keeps the former one beside it: hubs that have either key let the cloud in. Add the new key at each hub, remove the former
one, then end-key-rotation.`

/** Pinned host keys. */
export const hubCommands = (runtime: Runtime): CommandLine => ({
  usage,
  subcommands: {
    list: {
      options: [],
      run: ({ q }) =>
        q
          .selectFrom('hubs')
          .leftJoin('hub_management', 'hub_management.hub_id', 'hubs.id')
          .select(['hubs.id as hub_id', 'name', 'hub_status', 'host', 'port', 'host_key'])
          .orderBy('hubs.id')
          .execute(),
    },
    create: {
      options: [...Object.values(hubOptions).map(({ option }) => option), 'owner', 'new-owner', 'hardware'],
      async run({ options, db, settings }) {
        const given = Object.entries(hubOptions).flatMap(([field, { option, isOptional }]) => {
          const value = isOptional ? options[option] : required(options, option)
          return value === undefined ? [] : [[field, value]]
        })
        const hub = conform(NewHub, Object.fromEntries(given), '')
        const hardware = hardwareIn(options)
        const layout = hardware && builtOf(hardware)
        return db.transact(async (tx) => {
          const owner = await ownerOf(tx, options)
          const { hubId, mqttPassword } = await createHub(tx, runtime, owner.id, hub)
          if (layout) await writeLayout(tx, hubId, layout)
          await record(tx.q, runtime, 'hubs.create', hubId, { owner_id: owner.id, name: hub.name })
          return {
            hub_id: hubId,
            name: hub.name,
            owner_id: owner.id,
            owner: owner.name,
            mqtt_user: `hub-${hubId}`,
            mqtt_password: mqttPassword,
            ...(settings.MQTT_URL && {
              password_file_line: mosquittoLine(`hub-${hubId}`, mqttPassword, runtime.random),
            }),
            shelves: layout?.shelves.length ?? 0,
            // Its number is known only now.
            ...(hardware &&
              hardware.hubId !== hubId && {
                to_do: `${options['hardware']} says "hubId": ${hardware.hubId}; the hub needs it with "hubId": ${hubId}`,
              }),
          }
        })
      },
    },
    show: {
      options: ['hub'],
      positionals: ['hub'],
      run: ({ db, settings, options }) => showHub(contextOf({ db, settings }, runtime), hubIdOf(options)),
    },
    set: {
      options: ['hub', 'hardware', ...Object.values(changeOptions)],
      positionals: ['hub'],
      async run({ db, settings, options }) {
        const hubId = hubIdOf(options)
        const context = contextOf({ db, settings }, runtime)
        const changes = readChanges(options)
        const hardware = asValue(() => hardwareIn(options))
        if (Object.keys(changes).length === 0 && !hardware)
          throw new UsageError('set needs an option that changes something; --help lists them')
        if (hardware && hardware.hubId !== hubId)
          throw new Error(`${options['hardware']} describes hub ${hardware.hubId}, not hub ${hubId}`)
        await showHub(context, hubId)
        await db.transact(async (tx) => {
          if (hardware) await requireRoom(tx, hubId, builtOf(hardware))
          await changeHub(tx, context, hubId, { changes, hardware })
          const detail = { ...changes, ...(hardware && { hardware: options['hardware'] }) }
          await record(tx.q, runtime, 'hubs.set', hubId, detail)
        })
        return showHub(context, hubId)
      },
    },
    'set-layout': {
      options: ['hub', 'hardware'],
      positionals: ['hub'],
      async run({ q, options, db }) {
        const hubId = await hubOf({ q, options })
        required(options, 'hardware')
        const hardware = hardwareIn(options)!
        if (hardware.hubId !== hubId)
          throw new UsageError(`${options['hardware']} describes hub ${hardware.hubId}, not hub ${hubId}`)
        const layout = builtOf(hardware)
        await db.transact(async (tx) => {
          await requireRoom(tx, hubId, layout)
          await writeLayout(tx, hubId, layout)
          await record(tx.q, runtime, 'hubs.set_layout', hubId)
        })
        return { hub_id: hubId, shelves: layout.shelves.length, fridges: layout.fridges.length }
      },
    },
    'renew-password': {
      options: ['hub', 'overlap', 'old-password-file', 'broker'],
      positionals: ['hub'],
      run: (invocation) => renew(invocation, runtime),
    },
    'set-management': {
      options: ['hub', 'host', 'port', 'host-key'],
      positionals: ['hub'],
      async run({ q, db, options, settings }) {
        const hubId = await hubOf({ q, options })
        const host = bareHost(required(options, 'host'))
        const port = portOf(options['port'] ?? DEFAULT_PORT)
        const hostKey = parseHostKey(required(options, 'host-key'))
        if (hostKey === undefined)
          throw new UsageError('--host-key is neither a public key nor a fingerprint (SHA256:…)')
        const detail = { host, port, host_key: hostKey }
        await db.transact(async (tx) => {
          await writeAddress(tx.q, hubId, { host, port, hostKey })
          await record(tx.q, runtime, 'hubs.set_management', hubId, detail)
        })
        const { publicKey } = keptClientKey(managementKeyOf(settings), say)
        return { hub_id: hubId, ...detail, cloud_key: publicKey }
      },
    },
    'clear-management': {
      options: ['hub'],
      positionals: ['hub'],
      async run({ q, db, options }) {
        const hubId = await hubOf({ q, options })
        await db.transact(async (tx) => {
          if (!(await clearAddress(tx.q, hubId)))
            throw new UsageError(`hub ${hubId} has no management service`)
          await record(tx.q, runtime, 'hubs.clear_management', hubId)
        })
        return { hub_id: hubId, cleared: true }
      },
    },
    ...managementKeyCommands(runtime),
  },
})

/** A hub's id as typed. Whether there is such a hub, the command finds out. */
function hubIdOf(options: Options): number {
  const text = required(options, 'hub')
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new UsageError(`not a hub's id: ${text}`)
}

/** Throws a sentence that names the options with an invalid value. */
function readChanges(options: Options): HubChanges {
  const given = Object.entries(changeOptions).flatMap(([field, option]) =>
    options[option] === undefined ? [] : [[field, options[option]]],
  )
  const { data, error } = HubChanges.safeParse(Object.fromEntries(given))
  if (data) return data
  const problems = error.issues.map(
    ({ path, message }) => `--${changeOptions[path[0] as keyof HubChanges]}: ${message}`,
  )
  throw new Error(problems.join('; '))
}

/** A wrong value is no wrong usage: the command exits with 1. */
function asValue<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof UsageError ? new Error(error.message, { cause: error }) : error
  }
}

/** The cloud's key for management services. */
const managementKeyCommands = (runtime: Runtime): CommandLine['subcommands'] => ({
  key: {
    options: [],
    run: ({ settings }) =>
      Promise.resolve({ cloud_key: keptClientKey(managementKeyOf(settings), say).publicKey }),
  },
  'rotate-key': {
    options: [],
    async run({ q, settings }) {
      const { key, former } = rotateClientKey(managementKeyOf(settings), say)
      await recordAct(q, runtime, { action: 'hubs.rotate_key', object: 'management-key' })
      return { cloud_key: key.publicKey, former_key: former.publicKey }
    },
  },
  'end-key-rotation': {
    options: [],
    async run({ q, settings }) {
      const path = managementKeyOf(settings)
      if (!endRotation(path)) throw new UsageError('there is no rotation to end')
      await recordAct(q, runtime, { action: 'hubs.end_key_rotation', object: 'management-key' })
      return { cloud_key: keptClientKey(path, say).publicKey }
    },
  },
})

/** Renews a hub's password, and reports what an external broker still accepts. */
async function renew(invocation: Invocation, runtime: Runtime): Promise<unknown> {
  const { q, db, options, settings } = invocation
  const hubId = await hubOf({ q, options })
  const overlapHours = numberOf(options, 'overlap', 0, 168) ?? 0
  const user = hubUser(hubId)
  const path = options['old-password-file']
  const old = path === undefined ? undefined : readNamed('--old-password-file', path).trim()
  const [url = options['broker']] = settings.MQTT_URL ?? []
  if (old !== undefined && url === undefined)
    throw new UsageError('--old-password-file needs the address of an external broker: --broker or MQTT_URL')
  const { password, previousUntil } = await db.transact(async (tx) => {
    await record(tx.q, runtime, 'hubs.renew_password', hubId, { overlap_hours: overlapHours })
    return renewPassword(tx, runtime, hubId, overlapHours * 3_600_000)
  })
  const renewed = {
    hub_id: hubId,
    mqtt_user: user,
    mqtt_password: password,
    previous_password_expires_at: timestampOrNull(previousUntil),
  }
  if (url === undefined) return renewed
  const ca = settings.MQTT_CA === undefined ? undefined : readNamed('MQTT_CA', settings.MQTT_CA)
  const tried =
    old === undefined
      ? undefined
      : await tryLogin({ url: options['broker'] ?? url, ca, user, password: old }, runtime.clock)
  return {
    ...renewed,
    password_file_line: mosquittoLine(user, password, runtime.random),
    to_do:
      'Replace the line of this user in the password file of the broker and reload the broker. Until then the former password still works at the broker and the new one does not.',
    ...(tried && { old_password: tried }),
  }
}

const say = (sentence: string): void => void process.stderr.write(`${sentence}\n`)

const record = (
  q: Queries,
  runtime: Runtime,
  action: string,
  hubId: number,
  detail?: Readonly<Record<string, unknown>>,
): Promise<void> =>
  recordAct(q, runtime, { action, hubId, object: `hub-${hubId}`, ...(detail && { detail }) })

/** The option of each field of a new hub. */
const hubOptions: Record<keyof NewHub, { option: string; isOptional?: true }> = {
  name: { option: 'name' },
  street: { option: 'street' },
  street2: { option: 'street-2', isOptional: true },
  city: { option: 'city' },
  state: { option: 'state' },
  postalCode: { option: 'postal-code' },
  longitude: { option: 'longitude' },
  latitude: { option: 'latitude' },
  timezone: { option: 'timezone' },
  tax: { option: 'tax', isOptional: true },
}

const hardwareIn = ({ hardware }: Options): HardwareDescription | undefined =>
  hardware === undefined ? undefined : readJsonFile(hardware, HardwareDescription)

async function ownerOf(tx: Tx, options: Options): Promise<{ id: number; name: string }> {
  const fresh = options['new-owner']
  if ((fresh === undefined) === (options['owner'] === undefined))
    throw new UsageError('one of --owner and --new-owner is needed')
  if (fresh === undefined) return findOwner(tx.q, required(options, 'owner'))
  const name = required(options, 'new-owner').trim()
  const known = await tx.q.selectFrom('owners').select('id').where('name', '=', name).executeTakeFirst()
  if (known) throw new UsageError(`there is an owner ${JSON.stringify(name)} already: --owner ${known.id}`)
  return tx.q.insertInto('owners').values({ name }).returningAll().executeTakeFirstOrThrow()
}

/** Refuses a layout that lacks a row in which the planogram has a product. */
async function requireRoom(tx: Tx, hubId: number, { shelves }: Built): Promise<void> {
  const facings = await tx.q.selectFrom('facings').selectAll().where('hub_id', '=', hubId).execute()
  const homeless = facings.filter(
    (facing) =>
      !shelves.some(
        ({ cabinet, shelf, total_rows }) =>
          cabinet === facing.cabinet && shelf === facing.shelf && facing.row <= total_rows,
      ),
  )
  if (homeless.length > 0)
    throw new UsageError(
      `products stand where the hardware has no row: ${homeless.map(({ product_id, cabinet, shelf, row }) => `${product_id} at ${cabinet}/${shelf}/${row}`).join(', ')}`,
    )
}

function portOf(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) throw new UsageError(`not a port: ${text}`)
  return port
}
