import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { goesInClear, isLoopback, refusedExposures } from '../protocol/model/exposure.ts'
import { HardwareDescription } from '../protocol/model/hardware.ts'
import {
  helpText,
  readSettings,
  shownSettings,
  type SettingsOf,
  type SettingsTable,
  type Shown,
} from '../protocol/model/program-settings.ts'
import { problemText, schemaProblems } from '../protocol/model/schema-problems.ts'
import { desiredSettingProblem, edgeSettings } from '../protocol/settings/hub.ts'
import { DesiredStates, type Overrides } from './desired/desired-states.ts'
import { hardwareFile, readEnrolment, type Enrolment, type HubPlace } from './enrolment/enrolment.ts'
import { fileProblem } from '../protocol/model/system-error.ts'

/** The settings, with file contents in place of the paths of these files. */
export interface EdgeConfig extends Omit<SettingsOf<typeof edgeSettings>, 'hardware' | 'mqtt'> {
  /** With absolute ports. */
  hardware: HardwareDescription
  /** The same as it was read. */
  description: HardwareDescription
  /** The number of this hub in the cell from which it moved. */
  formerHubId: number | undefined
  /** It can move to another cell: nothing at the board names its broker or password. */
  canMove: boolean
  mqtt: {
    url: readonly string[]
    /** Absent: the hub signs in with its certificate. */
    password: string | undefined
    ca: string | undefined
    /** The certificate and the key of an enrolled board, and the authorities of its cloud. */
    client?: { cert: string; key: string; ca: string }
  }
  /** Paths of the certificate files, which may be renewed while the service runs. */
  pemPaths: Readonly<Record<'MQTT_CA' | 'LOCAL_CERT' | 'LOCAL_KEY', string | undefined>>
  shown: Shown
}

export type Refusal = { kind: 'help'; text: string } | { kind: 'problems'; problems: string[] }
/** A board that is neither enrolled nor has a password serves only its page. */
export type Unenrolled = { kind: 'unenrolled'; settings: SettingsOf<typeof edgeSettings> }
export type ConfigResult = { kind: 'config'; config: EdgeConfig } | Unenrolled | Refusal

const USAGE = 'Usage: npm run edge -- [--config FILE] [--help [--all]]'

/**
 * Reads the configuration from the program's arguments and environment. The environment precedes the desired state of the
 * cloud, and that precedes the configuration file.
 */
export function readConfig(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  overridesOf = ({ store }: HubPlace): Overrides => new DesiredStates(store).overrides(),
): ConfigResult {
  const own = readProgram(edgeSettings, USAGE, args, environment)
  if (own.kind !== 'settings') return own
  const overrides = overridesOf(own.settings)
  const problems = Object.entries(overrides.settings).flatMap(([name, value]) => {
    const problem = desiredSettingProblem(name, value)
    return problem === undefined ? [] : [`${name} (desired state): ${problem}`]
  })
  if (problems.length > 0) return { kind: 'problems', problems }
  const read = readProgram(edgeSettings, USAGE, args, environment, overrides.settings)
  if (read.kind !== 'settings') return read
  const { settings, shown } = read
  const enrolment = settings.mqtt.password === undefined ? enrolmentIn(settings.store, problems) : undefined
  if (problems.length > 0) return { kind: 'problems', problems }
  const isUnenrolled = settings.mqtt.password === undefined && enrolment === undefined
  const hardware = isUnenrolled ? undefined : hardwareOf(overrides, settings, problems)
  if (hardware && enrolment && hardware.hubId !== enrolment.hubId)
    problems.push(
      `HARDWARE: it describes hub ${hardware.hubId}, and the board is enrolled as hub ${enrolment.hubId}`,
    )
  const pem = (setting: string, path: string | undefined) =>
    path === undefined ? undefined : readText(setting, path, problems)
  const { mqtt, local } = settings
  const ca = pem('MQTT_CA', mqtt.ca)
  const [cert, key] = [pem('LOCAL_CERT', local.cert), pem('LOCAL_KEY', local.key)]
  if ((local.cert === undefined) !== (local.key === undefined))
    problems.push('LOCAL_CERT: it and LOCAL_KEY must be set together')
  const url = mqtt.url ?? (enrolment ? [enrolment.mqttUrl] : ['mqtt://127.0.0.1:18830'])
  problems.push(...refusedExposures(exposuresOf(local, url), settings.allowInsecure))
  if (isUnenrolled && problems.length === 0)
    return { kind: 'unenrolled', settings: { ...settings, local: { ...local, cert, key } } }
  if (!hardware || problems.length > 0) return { kind: 'problems', problems }
  return {
    kind: 'config',
    config: {
      ...settings,
      description: hardware,
      hardware: withPortsBelow(dirname(settings.store), hardware),
      formerHubId: enrolment?.formerHubId,
      canMove: enrolment !== undefined && own.settings.mqtt.url === undefined,
      pemPaths: { MQTT_CA: mqtt.ca, LOCAL_CERT: local.cert, LOCAL_KEY: local.key },
      mqtt: {
        url,
        password: mqtt.password,
        ca,
        ...(enrolment && { client: { cert: enrolment.cert, key: enrolment.key, ca: enrolment.ca } }),
      },
      local: { ...local, cert, key },
      shown,
    },
  }
}

/** The part of the configuration that locking the doors needs. */
export type LockConfig = Pick<EdgeConfig, 'store' | 'gpio'> & { hardware: Pick<HardwareDescription, 'gpio'> }

/**
 * Reads only the settings that locking the doors needs, because any other one may be wrong. Undefined if these cannot be read.
 */
export function readLockConfig(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): LockConfig | undefined {
  const { hardware, store, gpio } = edgeSettings
  const read = (desired?: Overrides['settings']) =>
    readProgram({ hardware, store, gpio }, USAGE, args, environment, desired, true)
  const own = read()
  if (own.kind !== 'settings') return undefined
  const overrides = new DesiredStates(own.settings.store).overrides()
  const used = read(overrides.settings)
  if (used.kind !== 'settings') return undefined
  const description = hardwareOf(overrides, used.settings, [])
  return description && { store: used.settings.store, gpio: used.settings.gpio, hardware: description }
}

/** The hardware description of the desired state, or of the hub's own file. */
function hardwareOf(
  { hardware, version }: Overrides,
  place: HubPlace,
  problems: string[],
): HardwareDescription | undefined {
  if (hardware === null) return readHardware(hardwareFile(place), problems)
  return parseHardware(hardware, `version ${version} of the desired state`, problems)
}

/** The enrolment of the board; undefined if it has none. */
function enrolmentIn(store: string, problems: string[]): Enrolment | undefined {
  try {
    return readEnrolment(store)
  } catch (error) {
    problems.push(`STORE: the enrolment beside it cannot be read: ${(error as Error).message}`)
    return undefined
  }
}

/** Connections that would send secrets over a network in plain text. */
const exposuresOf = (local: SettingsOf<typeof edgeSettings>['local'], brokers: readonly string[]) =>
  [
    {
      name: 'plain-http',
      problems: [
        !isLoopback(local.host) &&
          local.cert === undefined &&
          `HOST: others reach ${local.host}, and the token goes there in clear: set LOCAL_CERT and LOCAL_KEY`,
      ],
    },
    {
      name: 'plain-mqtt',
      problems: brokers
        .filter(goesInClear)
        .map((url) => `MQTT_URL: the hub's password goes to ${new URL(url).host} in clear: use mqtts:`),
    },
  ] as const

/** A relative port is below the folder of the data, where the simulator creates it; not below the working directory. */
const withPortsBelow = (folder: string, hardware: HardwareDescription): HardwareDescription => ({
  ...hardware,
  controllers: hardware.controllers.map((controller) => ({
    ...controller,
    port: resolve(folder, controller.port),
  })),
})

/**
 * A program's settings from its arguments (`--config FILE`, `--help`) and its environment. `isPart`: the file may contain settings
 * that are not in `table`.
 */
export function readProgram<T extends SettingsTable>(
  table: T,
  usage: string,
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  desired: Readonly<Record<string, string>> = {},
  isPart = false,
): { kind: 'settings'; settings: SettingsOf<T>; shown: Shown } | Refusal {
  if (args.includes('--help')) return { kind: 'help', text: helpText(usage, table, args.includes('--all')) }
  const [option, path, ...rest] = args
  if (option !== undefined && (option !== '--config' || path === undefined || rest.length > 0))
    return { kind: 'problems', problems: [`not understood: ${args.join(' ')}`, usage.split('\n')[0]!] }
  const problems: string[] = []
  const content = path === undefined ? undefined : readText('--config', path, problems)
  if (problems.length > 0) return { kind: 'problems', problems }
  const file = path === undefined || content === undefined ? undefined : { path, text: content, isPart }
  const read = readSettings(table, environment, file, desired)
  return read.ok
    ? { kind: 'settings', settings: read.settings, shown: shownSettings(table, read.byName) }
    : { kind: 'problems', problems: read.problems }
}

/** Reads the hardware description from the file in `HARDWARE`; errors are added to `problems`. */
export function readHardware(path: string, problems: string[]): HardwareDescription | undefined {
  const content = readText('HARDWARE', path, problems)
  if (content === undefined) return undefined
  let json: unknown
  try {
    json = JSON.parse(content)
  } catch (error) {
    problems.push(`HARDWARE: ${path} is not valid JSON (${String(error)})`)
    return undefined
  }
  return parseHardware(json, path, problems)
}

function parseHardware(json: unknown, source: string, problems: string[]): HardwareDescription | undefined {
  const result = HardwareDescription.safeParse(json)
  if (result.success) return result.data
  for (const problem of schemaProblems(result.error, json))
    problems.push(`HARDWARE: ${source}: ${problemText(problem)}`)
  return undefined
}

/** The text of the file that a setting names. If the file cannot be read, the reason is added to `problems`. */
export function readText(setting: string, path: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    problems.push(`${setting}: ${path} cannot be read: ${fileProblem(error)}`)
    return undefined
  }
}
