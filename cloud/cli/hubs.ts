import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { readNamed } from '../platform/settings/config.ts'
import type { CommandLine, Invocation, Options } from './command-line.ts'
import {
  conformOptions,
  findOwner,
  hubOf,
  idOf,
  numberOf,
  readJsonFile,
  required,
  nameOf,
} from './options.ts'
import { renewClaimCode } from '../enrolment/claim-codes.ts'
import { diagnosisCommands } from './hub-diagnosis.ts'
import { claimPicture, codeCommands } from './hub-code.ts'
import { boardCommands, lifeCommands, sendCommands } from './hub-life.ts'
import {
  changeHub,
  changeOptions,
  hubOptions,
  HubChanges,
  listHubs,
  lockInService,
  showHub,
} from './hub-record.ts'
import { managementCommands, record, say, DEFAULT_PORT } from './hub-management.ts'
import { createOwner } from './owners.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { storeDesired, type DesiredChange } from '../operations/hubs/desired.ts'
import { createHub, NewHub, renewPassword } from '../operations/hubs/create-hub.ts'
import { builtOf, type Built } from '../commerce/catalogue/layout.ts'
import type { Tx } from '../platform/store/database.ts'
import { timestamp, timestampOrNull } from '../platform/calendar/days.ts'
import { certificateOf } from '../gateway/hub-certificates.ts'
import { mosquittoLine, tryLogin, type LoginTrial } from '../gateway/try-login.ts'
import { desiredSettingProblem } from '../../protocol/settings/hub.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'

const hubUsage = `Usage:
  larder hubs list
  larder hubs show ID

Hubs and their owners:
  larder hubs create --owner NAME | --new-owner NAME --name NAME --street TEXT [--street-2 TEXT] --city TEXT --state TEXT
      --postal-code TEXT --latitude DEGREES --longitude DEGREES --timezone ZONE [--tax PERCENT] [--hardware FILE]
  larder hubs set ID [--external-payments off|customers|everyone] [--maintenance on|off] [--tax PERCENT] [--street TEXT]
      [--street-2 TEXT | --no-street-2] [--city TEXT] [--state TEXT] [--postal-code TEXT] [--latitude DEGREES] [--longitude DEGREES]
      [--timezone ZONE] [--hardware FILE] [--setting NAME=VALUE …]
  larder hubs rename ID --name NAME
  larder hubs move ID --owner NAME
  larder hubs retire ID [--force]
  larder hubs send ID --to URL --as ID --export DIGEST --code-file FILE (to another cell: larder hubs send --help)
  larder hubs export ID [--to DIR]
  larder hubs set-layout ID --hardware FILE

Boards:
  larder hubs claim-code ID
  larder hubs revoke ID
  larder hubs logs ID --since 10m [--limit N] [--follow]
  larder hubs bundle ID [--to FILE]

The customers' page:
  larder hubs qr ID [--to FILE.svg]

Passwords:
  larder hubs renew-password ID [--overlap HOURS] [--old-password-file FILE [--broker URL] [--wait MINUTES]]

Management by SSH:
  larder hubs set-management ID --host HOST [--port ${DEFAULT_PORT}] --host-key KEY
  larder hubs clear-management ID
  larder hubs key | rotate-key | end-key-rotation

Each option has a value and is given once. Write a negative number with "=": --longitude=-89.65.

create registers a hub, and its owner with --new-owner. It prints the hub's MQTT user and password. The password is stored
nowhere and never shown again; renew-password makes another. --hardware takes the hub's hardware description (JSON). The
file contains the hub's number as "hubId"; if the number differs, create prints the correction. --tax is the sales tax in
percent, with at most three decimals (default 0).

show prints a hub with its settings. set changes the given settings and prints the hub as show does. If a value is invalid,
nothing changes. --no-street-2 removes the second line of the address. --external-payments permits orders that an integrator
is paid for (guide "Your own payments"): off (the default), customers (users with an account), or everyone (anonymous users
too).

--setting changes a setting of the hub's service, such as HEARTBEAT_MS=5000. It may be given several times; an empty value
removes the setting. The list of settings: larder edge --help --all. Secrets, files and listening addresses are set at the
board. The hub's environment precedes these settings, and they precede its configuration file.

Settings and hardware description have one version (desired_version). The hub restarts with a new version when no order is
in progress. It must be ready, connected to the cloud and to all its controllers within APPLY_CONFIRM_MS (2 minutes). Otherwise
it returns to the former version and raises the alarm update_failed. The fields of show: applied_version (the
version that the hub uses), apply_state (applied, pending or rolled_back) and apply_error. A hub with a hardware description
of its own reports it if the cloud has none. set-layout replaces the description only.

move gives a hub to another owner. Past orders, payments, events, temperatures, reports and figures stay with the former
owner, who still reads and refunds them. The new owner reads nothing of that time. Products, prices, deals and stock move
with the hub. Roles that name the hub lose it. Move fails while an order is being paid, prepared or collected.

retire takes a hub out of service for good. A retired hub has no sales, no login and no alarms. Its records no longer change,
and its books stay readable. Retire fails while an order is unfinished; --force ends such orders and refunds their money. It also
fails while the hub has an order to move to another cell (larder hubs send ID --withdraw ends it). The
hub keeps its login until it has received the cancellations and reported its last drops, at most HUB_DRAIN_MS (7 days): show
prints draining_until, or null after that. If another person may have the hub, call renew-password before retire. The login
then ends at once; an offline hub may still dispense the orders that it has.

A retired or revoked board erases its secrets: certificate and key, tokens, settings of the cloud. It does so when the cloud
receives its next message: at the embedded broker a connected board, at other brokers any board that the broker still accepts.
After the board has confirmed it, secrets_erased is true. A password in the board's configuration stays, and is worth nothing.
Erase the card of a board that is off.

create and claim-code print a claim code of 8 characters. A technician types it at the board (larder enroll, or the hub's
page). A terminal also shows a QR code with the command larder enroll. The code can be used once, for 24 hours, and replaces the
former code. The board then has a certificate for 90 days,
and the hub's former certificate is revoked. revoke shuts out a stolen board. Its certificate is revoked, and its session
ends within 5 seconds. The cloud ignores the hub until it is enrolled again or has a new password. A thief can
compute the PINs of people from the digests on the board's card: renew these PINs at all hubs (larder people).

logs prints the newest records of a hub's log, oldest first, one JSON object a line. --since is a number of seconds, minutes,
hours or days (30s, 10m, 2h, 1d). The log has at most 10,000 records and 1 MiB, in the hub's memory. A hub that is killed
begins a new log. --follow prints new records until the command is stopped. bundle writes a diagnostic archive without secrets (.tar.gz,
at most 5 MiB): doctor, versions, last crash, settings, wire, journal and log. --to names its file (default: a file in
the current folder). The service fetches both over MQTT, also if the hub's management port cannot be reached. It leaves half of
a slow line to orders. The errors are hub_offline, and timeout if the hub does not answer for 30 seconds.

export prints the stored hardware description, the settings and the broker's address, without secrets. --to writes hub.json
and hardware.json into a folder, for a new card. Add the password of renew-password.

qr prints the address of the hub's shop and its QR code as SVG, for the hub's door. PUBLIC_URL is the beginning of the
address. --to also writes the SVG into a file.

renew-password prints a new MQTT password. The embedded broker ends the session of the former password within 5 seconds.
--overlap keeps the former password valid for up to 168 hours, in which you configure the hub. An external broker (MQTT_URL)
accepts the former password until its own password file changes. The command prints the line for that file.
--old-password-file contains the former password: the command tries it at the broker. It fails unless the broker refuses the
password. With --wait it prints the line first, and tries again until the broker refuses the password. A trial with a password
that the broker accepts interrupts the hub's own connection. --broker is the broker's address for hubs (default MQTT_URL).

--host-key takes the public key of a hub's management service, or its fingerprint (SHA256:…). The command
\`larder management --host-key\` prints both on the hub. The cloud refuses a hub with another key. key prints the cloud's own
public key, for the file AUTHORIZED_KEYS of each hub. The first call makes the key. rotate-key makes a new key and keeps the
former: hubs may have either key. Add the new key at each hub, remove the former one, then call end-key-rotation.`

/** Hubs, for operators. */
export const hubCommands: CommandLine = {
  usage: hubUsage,
  subcommands: {
    list: {
      options: [],
      run: ({ context }) => listHubs(context),
    },
    create: {
      store: 'creates',
      options: [...Object.values(hubOptions), 'owner', 'new-owner', 'hardware'],
      picture: claimPicture,
      run: create,
    },
    show: {
      options: ['hub'],
      positionals: ['hub'],
      run: ({ db, options, context }) => showHub(db.kysely, context, idOf(options, 'hub', "a hub's")),
    },
    set: {
      options: ['hub', 'hardware', 'setting', ...Object.values(changeOptions)],
      repeated: ['setting'],
      flags: ['no-street-2'],
      positionals: ['hub'],
      run: setRecord,
    },
    ...lifeCommands,
    ...boardCommands,
    ...diagnosisCommands,
    ...sendCommands,
    'set-layout': {
      options: ['hub', 'hardware'],
      positionals: ['hub'],
      run: setLayout,
    },
    'renew-password': {
      options: ['hub', 'overlap', 'old-password-file', 'broker', 'wait'],
      positionals: ['hub'],
      run: renew,
      isFailure: (output) => !['refused', undefined].includes((output as Renewed).old_password),
    },
    ...codeCommands,
    ...managementCommands,
  },
}

/** Registers a hub, its owner with --new-owner, and its hardware description. */
async function create({ options, db, settings, context, runtime }: Invocation): Promise<unknown> {
  for (const option of neededOptions) required(options, option)
  const hub = conformOptions(NewHub, options, hubOptions)
  const hardware = hardwareIn(options)
  const layout = hardware && builtOf(hardware)
  return db.transact(async (tx) => {
    const owner = await ownerOf(tx, runtime, options)
    const { hubId, mqttPassword } = await createHub(tx, runtime, owner.id, hub)
    if (hardware) await storeDesired(tx, hubId, { hardware })
    const claim = await renewClaimCode(tx, context, hubId)
    await record(tx.q, runtime, 'hubs.create', hubId, { owner_id: owner.id, name: hub.name })
    return {
      hub_id: hubId,
      name: hub.name,
      owner_id: owner.id,
      owner: owner.name,
      mqtt_user: `hub-${hubId}`,
      mqtt_password: mqttPassword,
      claim_code: claim.code,
      claim_expires_at: timestamp(claim.expiresAt),
      ...(settings.MQTT_URL && {
        password_file_line: mosquittoLine(`hub-${hubId}`, mqttPassword, runtime.random),
      }),
      shelves: layout?.shelves.length ?? 0,
      // The hub's number is known only now.
      ...(hardware &&
        hardware.hubId !== hubId && {
          to_do: `${options['hardware']} contains "hubId": ${hardware.hubId}; the hub needs it with "hubId": ${hubId}`,
        }),
    }
  })
}

/** Changes the given settings of a hub; a wrong value changes nothing. */
async function setRecord({ db, options, context, runtime }: Invocation): Promise<unknown> {
  const hubId = idOf(options, 'hub', "a hub's")
  const changes = readChanges(options)
  const hardware = asValue(() => hardwareIn(options))
  const stored = settingsIn(options)
  if (Object.keys(changes).length === 0 && !hardware && !stored)
    throw new UsageError('set needs an option that changes something; --help lists them')
  if (hardware && hardware.hubId !== hubId)
    throw new Error(`${options['hardware']} describes hub ${hardware.hubId}, not hub ${hubId}`)
  return db.transact(async (tx) => {
    await lockInService(tx, hubId)
    if (hardware) await requireRoom(tx, hubId, builtOf(hardware))
    const desired = (hardware ?? stored) && { hardware, ...(stored && { settings: stored }) }
    await changeHub(tx, context, hubId, { changes, desired })
    const detail = {
      ...changes,
      ...(hardware && { hardware: options['hardware'] }),
      ...(stored && { settings: stored }),
    }
    await record(tx.q, runtime, 'hubs.set', hubId, detail)
    return showHub(tx.q, context, hubId)
  })
}

/** Replaces a hub's hardware description. */
async function setLayout({ q, options, db, runtime }: Invocation): Promise<unknown> {
  const hubId = await hubOf({ q, options })
  required(options, 'hardware')
  const hardware = hardwareIn(options)!
  if (hardware.hubId !== hubId)
    throw new UsageError(`${options['hardware']} describes hub ${hardware.hubId}, not hub ${hubId}`)
  const layout = builtOf(hardware)
  await db.transact(async (tx) => {
    await lockInService(tx, hubId)
    await requireRoom(tx, hubId, layout)
    await storeDesired(tx, hubId, { hardware })
    await record(tx.q, runtime, 'hubs.set_layout', hubId)
  })
  return { hub_id: hubId, shelves: layout.shelves.length, fridges: layout.fridges.length }
}

function readChanges(options: Options): HubChanges {
  const changes = asValue(() => conformOptions(HubChanges, options, changeOptions))
  if (options['no-street-2'] === undefined) return changes
  if (changes.street2 !== undefined)
    throw new UsageError('--street-2 and --no-street-2 cannot be given together')
  return { ...changes, street2: null }
}

/** The settings of `--setting NAME=VALUE`; an empty value removes one. Throws a sentence if a hub takes none of them. */
function settingsIn({ setting }: Options): DesiredChange['settings'] {
  if (setting === undefined) return undefined
  const given = setting.split('\n').map((each) => {
    const [name, ...rest] = each.split('=')
    if (rest.length === 0) throw new UsageError(`--setting takes NAME=VALUE: ${each}`)
    return [name!, rest.join('=') || null] as const
  })
  for (const [name, value] of given) {
    const problem = desiredSettingProblem(name, value ?? undefined)
    if (problem !== undefined) throw new Error(`--setting ${name}: ${problem}`)
  }
  return Object.fromEntries(given)
}

/** A wrong value is no wrong usage: the command exits with 1. */
function asValue<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof UsageError ? new Error(error.message, { cause: error }) : error
  }
}

interface Renewed {
  hub_id: number
  mqtt_user: string
  mqtt_password: string
  previous_password_expires_at: string | null
  /** For an external broker. */
  password_file_line?: string
  to_do?: string
  /** Whether an external broker accepts the former password. */
  old_password?: LoginTrial
}

/** Renews a hub's password, and reports whether an external broker still accepts the old one. */
async function renew(invocation: Invocation): Promise<Renewed> {
  const { q, db, options, settings, terminal, runtime } = invocation
  const hubId = await hubOf({ q, options })
  const waitMs = (numberOf(options, 'wait', 1, 60) ?? 0) * 60_000
  const overlapHours = numberOf(options, 'overlap', 0, 168) ?? 0
  const user = hubUser(hubId)
  const path = options['old-password-file']
  const old = path === undefined ? undefined : readNamed('--old-password-file', path).trim()
  const [url = options['broker']] = settings.MQTT_URL ?? []
  if (old !== undefined && url === undefined)
    throw new UsageError('--old-password-file needs the address of an external broker: --broker or MQTT_URL')
  const { password, previousUntil, hasCertificate } = await db.transact(async (tx) => {
    await lockInService(tx, hubId)
    await record(tx.q, runtime, 'hubs.renew_password', hubId, { overlap_hours: overlapHours })
    return {
      hasCertificate: (await certificateOf(tx.q, hubId, runtime.clock.now())) !== undefined,
      ...(await renewPassword(tx, runtime, hubId, overlapHours * 3_600_000)),
    }
  })
  if (hasCertificate)
    say(
      `Hub ${hubId} has a valid certificate. A board that was enrolled signs in with its certificate until hub.json has an MQTT_PASSWORD.`,
    )
  const renewed = {
    hub_id: hubId,
    mqtt_user: user,
    mqtt_password: password,
    previous_password_expires_at: timestampOrNull(previousUntil),
  }
  if (url === undefined) return renewed
  const line = mosquittoLine(user, password, runtime.random)
  const external = { ...renewed, password_file_line: line, to_do: AT_BROKER }
  if (old === undefined) return external
  if (waitMs > 0) say(`${AT_BROKER}\n${line}\nNew password of the hub: ${password}`)
  const ca = settings.MQTT_CA === undefined ? undefined : readNamed('MQTT_CA', settings.MQTT_CA)
  const login = { url: options['broker'] ?? url, ca, user, password: old }
  const { clock } = runtime
  for (const end = clock.monotonic() + waitMs; ; await sleep(clock, TRIAL_MS)) {
    const old_password = await tryLogin(login, clock)
    if (old_password === 'refused' || clock.monotonic() >= end || terminal.signal.aborted)
      return { ...external, old_password }
  }
}

const AT_BROKER =
  'Replace the line of this user in the password file of the broker and reload the broker. Until then the former password still works at the broker and the new one does not.'
/** Time between two trials of the former password. */
const TRIAL_MS = 5000

const neededOptions = Object.values(hubOptions).filter((option) => !['street-2', 'tax'].includes(option))

const hardwareIn = ({ hardware }: Options): HardwareDescription | undefined =>
  hardware === undefined ? undefined : readJsonFile(hardware, HardwareDescription)

async function ownerOf(tx: Tx, runtime: Runtime, options: Options): Promise<{ id: number; name: string }> {
  const fresh = options['new-owner']
  if ((fresh === undefined) === (options['owner'] === undefined))
    throw new UsageError('one of --owner and --new-owner is needed')
  if (fresh === undefined) return findOwner(tx.q, required(options, 'owner'))
  const name = nameOf(options, 'new-owner')
  const known = await tx.q.selectFrom('owners').select('id').where('name', '=', name).executeTakeFirst()
  if (known)
    throw new UsageError(`there is an owner ${JSON.stringify(name)} already: --owner ${JSON.stringify(name)}`)
  return createOwner(tx.q, runtime, name)
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
