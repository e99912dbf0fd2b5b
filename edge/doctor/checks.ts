import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import * as files from 'node:fs'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { z } from 'zod'
import { BUILD, PRODUCT_VERSION } from '../../protocol/build.ts'
import { addressOf, bareHost } from '../../protocol/model/address.ts'
import { counted } from '../../protocol/model/counted.ts'
import {
  certificateEnd,
  certificateFinding,
  CONNECT_TIMEOUT_MS,
  diskChecks,
  fail,
  isUsable,
  ok,
  unreadable,
  versionFinding,
  warn,
  worst,
  writable,
  type Checks,
} from '../../protocol/model/doctor.ts'
import { BROKER_PORTS } from '../../protocol/mqtt/broker-socket.ts'
import { callService } from '../call-service.ts'
import type { EdgeConfig } from '../config.ts'
import { findChipBase } from '../hardware/gpio/onoff-lines.ts'
import { judgeJournal } from '../journal/journal-schema.ts'
import { migrations } from '../journal/migrations.ts'
import { Sqlite } from '../journal/sqlite-driver.ts'
import { StorageError } from '../journal/storage-error.ts'
import { parseAuthorizedKeys } from '../management/authorized-keys.ts'

/** The checks that need no valid configuration. */
export const buildChecks = (problems: readonly string[]): Checks => ({
  configuration: () =>
    problems.length === 0
      ? ok('every setting and the hardware description are valid')
      : fail(problems.join('; '), 'Correct hub.json, hardware.json or the environment.'),
  version: () => versionFinding(PRODUCT_VERSION, BUILD !== undefined),
  node: () => ok(`Node ${process.versions.node}`),
})

/** The checks of a valid configuration. `configPath`: the file of `--config`. `now`: milliseconds since the Unix epoch. */
export const hubChecks = (config: EdgeConfig, configPath: string | undefined, now: number): Checks => ({
  ...fileChecks(config, configPath),
  ...journalChecks(config, now),
  ...hardwareChecks(config),
  ...networkChecks(config, now),
  ...machineChecks,
})

const fileChecks = ({ store, pemPaths }: EdgeConfig, configPath: string | undefined): Checks => {
  const folder = dirname(store)
  const besides =
    configPath === undefined
      ? []
      : ['management.json', 'authorized_keys'].map((name) => join(dirname(configPath), name))
  const authorized = besides[1]
  const key = pemPaths.LOCAL_KEY
  return {
    'data folder': () => writable(files, 'STORE', folder),
    permissions: () =>
      unreadable(
        files,
        [
          configPath,
          store,
          `${store}.token`,
          ...['hub.key', 'hub.previous.json'].map((name) => join(folder, name)),
          besides[0],
          key,
        ].filter((path) => path !== undefined),
      ),
    ...diskChecks(files, 'STORE', existsSync(folder) ? folder : '.'),
    'last error'() {
      const path = `${store}.last-error`
      return existsSync(path)
        ? warn(
            `the last run ended with an error: ${readFileSync(path, 'utf8').slice(0, 200)}`,
            'Read the log: journalctl -u larder-edge',
          )
        : ok('the last run ended in order')
    },
    'authorized keys'() {
      if (authorized === undefined || !existsSync(authorized)) return undefined
      const { keys } = parseAuthorizedKeys(readFileSync(authorized, 'utf8'))
      return keys.length > 0
        ? ok(`${counted(keys.length, 'key')} may sign in at the management service`)
        : warn(
            'no key may sign in at the management service',
            `Put the cloud's key into ${authorized}: larder hubs key prints it.`,
          )
    },
  }
}

const journalChecks = ({ store, storeMaxMb, hardware }: EdgeConfig, now: number): Checks => {
  const read = <T>(work: (db: InstanceType<typeof Sqlite>) => T): T | undefined => {
    if (!existsSync(store)) return undefined
    const db = new Sqlite(store, { readonly: true })
    try {
      return work(db)
    } finally {
      db.close()
    }
  }
  return {
    journal() {
      if (existsSync(store) && !isUsable(files, store))
        return fail(
          `${store} cannot be opened by this user`,
          `Give it to the service: chown larder: ${store}*`,
        )
      const problem = read((db) => {
        try {
          judgeJournal(db, migrations, hardware.hubId)
        } catch (error) {
          if (error instanceof StorageError && error.reason === 'foreign_journal') return error
          throw error
        }
        return String(db.pragma('quick_check(1)', { simple: true }))
      })
      if (problem instanceof StorageError)
        return fail(
          problem.message,
          `Correct hubId in the hardware description. If this board is hub ${hardware.hubId} now, stop larder-edge and move the journal away.`,
        )
      if (problem === undefined)
        return warn(`${store} does not exist yet`, 'The service creates it at its first start.')
      if (problem === 'ok') return ok(`${store} is whole and belongs to hub ${hardware.hubId}`)
      return fail(
        `${store} is damaged: ${problem}`,
        'Stop the service and move the journal away: the cloud and the controllers know what happened.',
      )
    },
    'journal size'() {
      if (!existsSync(store)) return undefined
      const part = statSync(store).size / 1e6 / storeMaxMb
      const message = `the journal uses ${Math.round(part * 100)} % of STORE_MAX_MB`
      const advice = 'Restore the connection to the cloud: the hub deletes what the cloud has confirmed.'
      if (part >= 1) return fail(message, advice)
      return part > 0.8 ? warn(message, advice) : ok(message)
    },
    clock() {
      const built = BUILD?.committedAt ?? 0
      const written = existsSync(store) ? statSync(store).mtimeMs : 0
      const behindMs = Math.max(built, written) - now
      return behindMs > 60_000
        ? fail(
            `the clock is at least ${Math.round(behindMs / 60_000)} minutes behind`,
            'Let a time service set the clock: timedatectl set-ntp true',
          )
        : ok('the clock is later than this build and the journal')
    },
  }
}

const hardwareChecks = ({ hardware, gpio }: EdgeConfig): Checks => {
  const { controllers } = hardware
  return {
    'serial ports': () =>
      worst(
        controllers.flatMap(({ id, port }) => {
          if (!existsSync(port))
            return fail(
              `controller ${id}: ${port} does not exist`,
              'Check the cable, and the path in hardware.json: ls /dev/serial/by-id',
            )
          return isUsable(files, port)
            ? []
            : fail(`controller ${id}: ${port} cannot be opened`, 'Add the user larder to the group dialout.')
        }),
        ok(`the ports of ${counted(controllers.length, 'controller')} can be opened`),
      ),
    'serial paths'() {
      const unstable = controllers.filter(({ port }) => port.startsWith('/dev/tty'))
      return unstable.length === 0
        ? ok('the paths of the controllers are stable')
        : warn(
            `${unstable.map(({ port }) => port).join(', ')} may change at a restart`,
            'Name the ports by /dev/serial/by-id in hardware.json.',
          )
    },
    gpio() {
      if (gpio.kind !== 'onoff') return ok(`GPIO is ${gpio.kind}`)
      const { chipLabel: label, lines } = hardware.gpio
      if (lines.length === 0) return ok('the hub has no GPIO lines')
      const base = label === undefined ? 0 : findChipBase(label)
      if (base === undefined)
        return fail(
          `no GPIO chip has the label ${label}`,
          'Correct chipLabel in hardware.json: cat /sys/class/gpio/gpiochip*/label',
        )
      return isUsable(files, '/sys/class/gpio/export')
        ? ok(`the GPIO chip ${label ?? ''} is there`)
        : fail('/sys/class/gpio/export is not writable', 'Add the user larder to the group gpio.')
    },
  }
}

const ENROL_AGAIN =
  'The hub renews it while it reaches the cloud. Else enrol the board again, with a code of larder hubs claim-code.'

const networkChecks = ({ mqtt, local, store }: EdgeConfig, now: number): Checks => {
  const brokers = mqtt.url.map((url) => ({ url, ...addressOf(url, BROKER_PORTS) }))
  const ca = [mqtt.ca ?? [], mqtt.client?.ca ?? []].flat().join('\n') || undefined
  const enrolled = join(dirname(store), 'hub.crt')
  const own = {
    LOCAL_CERT: local.cert,
    MQTT_CA: ca,
    'of this hub': existsSync(enrolled) ? readFileSync(enrolled, 'utf8') : undefined,
  }
  return {
    async 'local port'() {
      if (local.port === 0) return undefined
      if (await isFree(bareHost(local.host), local.port))
        return warn(
          `port ${local.port} is free: the service does not run`,
          'Start the service: systemctl start larder-edge',
        )
      const answer = await callService(local, '/healthz').catch(() => undefined)
      return answer?.status === 200
        ? ok(`the service listens on port ${local.port}`)
        : fail(
            `PORT: another program listens on port ${local.port}`,
            'Find that program with ss -ltnp. Restart it if it is the service, else end it or set PORT to a free port.',
          )
    },
    async broker() {
      const errors = await Promise.all(
        brokers.map(({ host, port, url }) =>
          reach(host, port).then(
            () => undefined,
            (error: Error) => `${new URL(url).host}: ${error.message}`,
          ),
        ),
      )
      if (errors.includes(undefined)) {
        const reason = await reportedProblem(local)
        if (reason === undefined) return ok('the broker of the cloud accepts connections')
        const advice = 'The page “When a hub is silent” of the cloud has the remedy for each reason.'
        return fail(`the service reports: ${reason}`, advice)
      }
      return fail(
        errors.join('; '),
        'Check MQTT_URL, the network and the firewall. The hub sells again when it is online.',
      )
    },
    async 'broker certificate'() {
      const first = brokers.find(({ url }) => url.startsWith('mqtts:'))
      if (!first) return warn('MQTT_URL is not encrypted', 'Use mqtts: if the broker is on another machine.')
      return certificateFinding('of the broker', await certificateEnd(connectTls, first, ca), now)
    },
    certificates: () =>
      worst(
        Object.entries(own).flatMap(([name, pem]) =>
          pem === undefined
            ? []
            : [
                certificateFinding(
                  name,
                  Date.parse(new X509Certificate(pem).validTo),
                  now,
                  pem === own['of this hub'] ? ENROL_AGAIN : undefined,
                ),
              ],
        ),
        ok('no certificate files are set'),
      ),
    'name service': async () => {
      const { lookup } = await import('node:dns/promises')
      for (const { host } of brokers) await lookup(host)
      return ok('the name of the broker is known')
    },
  }
}

const machineChecks: Checks = {
  'time service'() {
    const { status, stdout } = spawnSync('timedatectl', ['show', '--property=NTPSynchronized', '--value'], {
      encoding: 'utf8',
    })
    if (status !== 0) return undefined
    return stdout.trim() === 'yes'
      ? ok('a time service has set the clock')
      : warn('no time service has set the clock', 'timedatectl set-ntp true')
  },
  unit() {
    const { status, stdout } = spawnSync('systemctl', ['is-enabled', 'larder-edge'], { encoding: 'utf8' })
    if (stdout === null || stdout.trim() === '') return undefined
    return status === 0
      ? ok('the service starts with the board')
      : warn('the service does not start with the board', 'systemctl enable larder-edge')
  },
  memory() {
    const text = existsSync('/proc/meminfo') ? readFileSync('/proc/meminfo', 'utf8') : ''
    const kb = Number(/^MemAvailable:\s+(\d+)/m.exec(text)?.[1] ?? NaN)
    if (Number.isNaN(kb)) return undefined
    const message = `${Math.round(kb / 1024)} MB of memory are available`
    return kb < 50 * 1024 ? warn(message, 'End other programs on this board.') : ok(message)
  },
  temperature() {
    const path = '/sys/class/thermal/thermal_zone0/temp'
    if (!existsSync(path)) return undefined
    const degrees = Number(readFileSync(path, 'utf8')) / 1000
    const message = `the processor has ${Math.round(degrees)} °C`
    return degrees > 80 ? warn(message, 'Check the ventilation of the board.') : ok(message)
  },
}

const Health = z.object({ sync: z.object({ reason: z.string() }) })
/** What hinders the running service's work with the cloud. Undefined if nothing does, or if the service does not run. */
async function reportedProblem(local: EdgeConfig['local']): Promise<string | undefined> {
  try {
    const { body } = await callService(local, '/health')
    return Health.safeParse(JSON.parse(body)).data?.sync.reason
  } catch {
    return undefined
  }
}

const isFree = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })

const reach = (host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS }, () => {
      socket.destroy()
      resolve()
    })
    socket.once('timeout', () => socket.destroy(new Error('no answer')))
    socket.once('error', reject)
  })
