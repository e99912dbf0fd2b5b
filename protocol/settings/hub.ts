import { z } from 'zod'
import { parseGpioAddress, type GpioAddress } from '../gpio/socket.ts'
import { serverBounds } from '../model/bound-server.ts'
import { allowInsecure } from '../model/exposure.ts'
import { metricsSettings } from '../model/metrics-settings.ts'
import {
  duration,
  hostText,
  inGroup,
  limits,
  named,
  oneOf,
  optionalText,
  port,
  prefixed,
  settingsIn,
  text,
  wholeNumber,
  type SettingsTable,
} from '../model/program-settings.ts'
import { shutdownTimeout } from '../model/stopping.ts'
import { BrokerUrls } from '../mqtt/brokers.ts'
import { CACHE_KB, hubSettings, MAX_MB } from './hub-limits.ts'

/** The access to GPIO lines: sysfs through onoff, a socket, or none. */
export type GpioMount = { kind: 'onoff' | 'none' } | { kind: 'socket'; address: GpioAddress }

const gpio = z
  .string()
  .transform((value): GpioMount | undefined => {
    if (value === 'none' || value === 'onoff') return { kind: value }
    const address = parseGpioAddress(value)
    return address && { kind: 'socket', address }
  })
  .refine((mount) => mount !== undefined, 'must be onoff, none, unix:PATH or tcp:HOST:PORT')

/** Every setting of the hub's service. */
export const edgeSettings = {
  ...inGroup('Hub', {
    hardware: optionalText(
      "File (JSON) that describes the hub's hardware and names the hub, until the cloud sends another description. Default, or if it does not exist: hardware.json beside STORE, which an enrolment creates.",
    ),
    store: text(
      'Journal of the hub, one SQLite file. The hub creates its folder. Relative ports of HARDWARE are below that folder.',
      'data/hub.sqlite',
    ),
    gpio: {
      schema: gpio,
      standard: 'onoff',
      describe:
        "Locks and door sensors: onoff (sysfs), unix:PATH or tcp:HOST:PORT (a simulator's socket), or none.",
    },
    logLevel: oneOf(['debug', 'info', 'warn', 'error'], 'info', 'debug, info, warn or error.'),
  }),
  ...limits('Journal', {
    storeCacheKb: wholeNumber([64, 100_000], CACHE_KB, 'Memory of SQLite for the journal in KiB.'),
    storeMaxMb: wholeNumber(
      [8, 1_000_000],
      MAX_MB,
      'Size of the journal at which the hub stops selling, in MB. The hub warns from 80 % of it on.',
    ),
  }),
  mqtt: inGroup(
    'Connection to the cloud',
    prefixed('MQTT', {
      url: {
        schema: BrokerUrls.optional(),
        describe:
          'Broker of the cloud, or several of one cluster, separated by commas. Default: the broker of the enrolment, else mqtt://127.0.0.1:18830.',
      },
      password: {
        ...optionalText(
          'Password of the hub at the broker. The user name is hub-<hubId>. Default: the certificate of the enrolment (larder enroll).',
        ),
        secret: true,
      },
      ca: optionalText(
        'PEM file of the authorities to trust with mqtts://. A renewed file is used within a minute. Default: the public authorities that Node contains.',
      ),
    }),
  ),
  local: {
    ...inGroup('Local API and page', {
      host: hostText('Address that the local API listens on; 0.0.0.0 opens it to the LAN.', '127.0.0.1'),
      port: port(8081, "Port of the local API and of the technician's page; 0 takes any."),
      allowedHosts: optionalText(
        "Names, separated by commas, under which the local API answers, in addition to addresses, localhost and this machine's own name.",
      ),
      ...prefixed('LOCAL', {
        cert: optionalText(
          'PEM file with the certificate of the local API and its chain. The local API then uses https only. A renewed file is used within a minute.',
        ),
        key: optionalText('PEM file with the key of LOCAL_CERT.'),
        token: {
          ...optionalText(
            'Shared token of the local API. For the first set-up: `larder people` of the cloud gives people a name and a PIN. Default: a random one in the file <STORE>.token.',
            z.string().min(16, 'must have at least 16 characters'),
          ),
          secret: true,
        },
      }),
    }),
    bounds: serverBounds('LOCAL', {
      maxConnections: 100,
      connectionsPerNetwork: 40,
      requestTimeoutMs: 20_000,
    }),
    ...limits('Local API and page', {
      ...prefixed('LOCAL', {
        liveMs: duration(200, 'Time between two updates of an open page.'),
        sessionMs: duration(12 * 3_600_000, "Lifetime of a login at the hub's page: a technician's shift."),
        sessions: wholeNumber(
          [1, 10_000],
          200,
          'Number of logins at the page; a further login ends the oldest one.',
        ),
      }),
      recentKept: named(
        'LOCAL_RECENT',
        wholeNumber(
          [1, 100_000],
          2000,
          'Number of lines of the log, and of the serial lines, that the page can show.',
        ),
      ),
      guesses: prefixed('LOCAL_GUESS', {
        free: wholeNumber(
          [1, 1000],
          20,
          'Number of wrong tokens from one network that are answered without a delay.',
        ),
        firstMs: duration(1000, 'Delay after the next wrong token; it doubles with each further one.'),
        maxMs: duration(60_000, 'Maximum delay after wrong tokens.'),
        forgetMs: duration(60_000, 'One wrong token of a network is forgotten after this time.'),
        networks: wholeNumber(
          [1, 1_000_000],
          1000,
          'Number of networks, and of names, with stored counts of failures; the oldest is deleted first.',
        ),
      }),
    }),
  },
  ...inGroup('Connection to the cloud', {
    allowInsecure: allowInsecure(
      ['plain-http', 'plain-mqtt'],
      "Exceptions for connections in plain text, separated by commas: plain-http (the local API's token at a HOST that others reach, without LOCAL_CERT), plain-mqtt (the hub's password at a broker elsewhere, by mqtt:). Without an exception the service refuses to start with them.",
    ),
  }),
  ...limits('Connection to the cloud', {
    applyConfirmMs: duration(
      120_000,
      'Time within which the hub must work with settings or a hardware description of the cloud. Otherwise it returns to the former ones.',
      3_600_000,
    ),
    certificateAgainMs: duration(
      3_600_000,
      'Time between two attempts to renew the certificate of the enrolment.',
    ),
  }),
  update: limits(
    'Updates',
    prefixed('UPDATE', {
      root: optionalText(
        'File with the trusted root of the releases (root.json of `larder releases keygen`). Default: update-root.json beside STORE, which an enrolment creates.',
      ),
      confirmMs: duration(
        300_000,
        'Time within which a new release must be ready, welcomed by the cloud and connected to its controllers. Otherwise the updater returns to the former one.',
        3_600_000,
      ),
      steadyMs: duration(10_000, 'Time for which a new release must be healthy before it is confirmed.'),
      checkMs: duration(2000, 'Time between two checks of the updater.'),
      againMs: duration(60_000, 'Time after which a failed download is continued.'),
    }),
  ),
  shutdownTimeoutMs: shutdownTimeout,
  metrics: metricsSettings,
  hub: hubSettings,
} satisfies SettingsTable

/** Settings that name a file or a listening address of the machine, or are secrets: only the machine has them. */
const ofMachine =
  /^(HARDWARE|STORE|UPDATE_ROOT|MQTT_CA|LOCAL_(CERT|KEY)|(METRICS_)?(HOST|PORT)|MQTT_PASSWORD|LOCAL_TOKEN)$/

const declared = settingsIn(edgeSettings)

/** Why the cloud cannot store a setting for a hub, as a sentence; undefined if it can. An absent value removes the setting. */
export function desiredSettingProblem(name: string, value: string | undefined): string | undefined {
  const setting = declared.get(name)
  if (!setting) return 'a hub has no such setting; `larder edge --help --all` lists them'
  if (ofMachine.test(name))
    return 'the cloud stores no secrets, paths or listening addresses for a hub: set it at the board'
  const { error } = setting.schema.safeParse(value)
  return value === undefined ? undefined : error?.issues.map(({ message }) => message).join('; ')
}
