import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { createPostgresDatabase } from '../process/chaos/postgres.ts'
import { freePorts } from '../support/ports.ts'
import { MOSQUITTO_PASSWORD, startMosquitto } from '../support/mosquitto.ts'
import { dismiss, launch } from './children.ts'
import { quantile, type Figure, type Section } from './figures.ts'
import { seedFleet, tell, type FleetBench } from './fleet.ts'
import { processorMs } from './process-figures.ts'
import { serveCloud, type ServedCloud } from './served-cloud.ts'

/**
 * Each key sends three commands a second: a fifth of a key's limit, because each process counts alone at
 * first.
 */
const KEYS = 8
const PAUSE_MS = 50
const LIMIT_MS = 60_000
const PROCESSES = 3

/** Commands that were answered during a period. */
interface Stretch {
  tookMs: number[]
  failed: string[]
}

/**
 * Three processes share a fleet on PostgreSQL and Mosquitto. Figures: the share of each process, the time
 * until the shares are even again after a process was added, stopped and killed, and the results of commands
 * through any process during that time.
 */
export async function benchShares({ runtime, folder, hubs, idleSeconds }: FleetBench): Promise<Section> {
  const { clock } = runtime
  const title = `${hubs} hubs shared by ${PROCESSES} processes`
  const figures: Figure[] = []
  const notes: string[] = []
  const url = process.env['TEST_POSTGRES_URL']
  if (url === undefined) return { title, figures, notes: ['needs TEST_POSTGRES_URL'] }
  const figure = (name: string, values: readonly number[], unit: string, aim?: string): void =>
    void (values.length > 0 && figures.push({ name, values, unit, ...(aim && { aim }) }))
  const postgres = await createPostgresDatabase(url, runtime)
  const keys = await seedFleet(runtime, postgres.url, hubs, MOSQUITTO_PASSWORD, {
    count: KEYS,
    scopes: ['controls:write'],
  })
  const mosquitto = await startMosquitto(Array.from({ length: hubs }, (_, index) => `hub-${index + 1}`))
  const ports = await freePorts(PROCESSES + 1)
  const start = (index: number): Promise<ServedCloud> =>
    serveCloud({
      clock,
      folder: join(folder, `shares-${index}`),
      database: '',
      environment: {
        PORT: `${ports[index]}`,
        DATABASE_URL: postgres.url,
        MQTT_URL: mosquitto.cloudUrl,
      },
    })
  const clouds = new Map<number, ServedCloud>()
  const db = openDatabase({ url: postgres.url })
  let child: ChildProcess | undefined
  const cpu = (): number => [...clouds.values()].reduce((sum, { pid }) => sum + processorMs(pid), 0)

  /** Sends commands until it is stopped: each to another hub, by each process in turn. */
  function command(): () => Promise<Stretch> {
    const stretch: Stretch = { tookMs: [], failed: [] }
    const ends = new AbortController()
    const calls = (async () => {
      for (let n = 0; !ends.signal.aborted; n += 1) {
        const serving = [...clouds.values()]
        const began = clock.monotonic()
        const hub = ((n * 37) % hubs) + 1
        const to = `http://127.0.0.1:${serving[n % serving.length]!.port}/api/v1/owners/controls/open_bin?bin=1&hub=${hub}`
        const outcome = await fetch(to, { method: 'POST', headers: { 'X-API-Key': keys[n % KEYS]! } }).then(
          async (answer) => (answer.ok ? 'executed' : `${answer.status} ${await answer.text()}`),
          (error: Error) => `${error.message} (${String(error.cause)})`,
        )
        if (outcome === 'executed') stretch.tookMs.push(clock.monotonic() - began)
        else stretch.failed.push(outcome)
        await sleep(clock, PAUSE_MS)
      }
    })()
    return async () => {
      ends.abort()
      await calls
      return stretch
    }
  }

  /** Waits until all hubs are held by `processes` processes, evenly; returns their shares. */
  async function shared(what: string, processes: number, from: number, aim: string): Promise<void> {
    let shares: number[] = []
    const isEven = (): boolean =>
      shares.length === processes &&
      shares.reduce((sum, share) => sum + share, 0) === hubs &&
      shares.every((share) => Math.abs(share - hubs / processes) < hubs / processes / 3)
    do {
      await sleep(clock, 100)
      shares = await sharesOf(db, runtime.clock.now())
    } while (!isEven() && clock.monotonic() - from < LIMIT_MS)
    figure(
      `${what}: until each has its share`,
      [isEven() ? (clock.monotonic() - from) / 1000 : Infinity],
      's',
      aim,
    )
    figure(`${what}: hubs of a process`, shares, 'hubs', `${Math.round(hubs / processes)}`)
  }

  /** Runs work while commands are sent, and for ten seconds after. */
  async function during(
    what: string,
    processes: number,
    aim: string,
    act: () => Promise<void>,
  ): Promise<void> {
    const stop = command()
    await sleep(clock, 2000)
    const from = clock.monotonic()
    await act()
    await shared(what, processes, from, aim)
    await sleep(clock, 10_000)
    const { tookMs, failed } = await stop()
    const state = await tell(child!, { type: 'state' })
    figure(`${what}: commands executed meanwhile`, [tookMs.length], 'commands')
    figure(
      `${what}: commands that failed`,
      [failed.length],
      'commands',
      '0, but for calls to a process that has gone',
    )
    figure(`${what}: a command, p50`, [quantile(tookMs, 0.5)], 'ms')
    figure(`${what}: a command, p99`, [quantile(tookMs, 0.99)], 'ms')
    figure(`${what}: hubs that are welcomed`, [state.welcomed], 'hubs', `${hubs}`)
    figure(`${what}: entries that wait`, [state.pending], 'entries', '0')
    for (const reason of new Set(failed)) notes.push(`${what}: ${reason}`)
  }

  try {
    for (const index of [0, 1]) clouds.set(index, await start(index))
    child = launch('fleet-hubs', [`${hubs}`, `mqtt://127.0.0.1:${mosquitto.hubPort}`, MOSQUITTO_PASSWORD])
    await tell(child, { type: 'start' })
    while ((await tell(child, { type: 'state' })).welcomed < hubs) await sleep(clock, 100)
    await shared('two processes', 2, clock.monotonic(), '')
    let startMs = 0
    await during('one added', 3, 'below 30, its start included', async () => {
      const from = clock.monotonic()
      clouds.set(2, await start(2))
      startMs = clock.monotonic() - from
    })
    figure('one added: its start alone', [startMs / 1000], 's')
    await tell(child, { type: 'report', entries: 1 })
    const [before, at] = [cpu(), clock.monotonic()]
    await sleep(clock, idleSeconds * 1000)
    const beats = (hubs * (clock.monotonic() - at)) / 15_000
    figure(
      'three processes: processor time for each heartbeat',
      [(cpu() - before) / beats],
      'ms',
      'at most 0.1',
    )
    await during('one stopped', 2, 'below 5, its own end included', () => leave(0, 'stop'))
    clouds.set(0, await start(0))
    await shared('and started again', 3, clock.monotonic(), 'below 30')
    await during('one killed', 2, 'below 5', () => leave(1, 'kill'))
  } finally {
    if (child) await dismiss(child)
    for (const cloud of clouds.values()) await cloud.stop()
    await db.close()
    await mosquitto.remove()
    await postgres.remove()
  }
  return { title, figures, notes }

  /** Sends no more commands to the leaving process. */
  async function leave(index: number, how: 'stop' | 'kill'): Promise<void> {
    const cloud = clouds.get(index)!
    clouds.delete(index)
    await cloud[how]()
  }
}

async function sharesOf({ kysely }: CloudDatabase, now: number): Promise<number[]> {
  const rows = await kysely
    .selectFrom('hub_sessions')
    .select((eb) => eb.fn.countAll<string>().as('hubs'))
    .where('lease_until', '>', now)
    .groupBy('process_id')
    .execute()
  return rows.map((row) => Number(row.hubs))
}
