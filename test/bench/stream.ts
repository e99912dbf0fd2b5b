import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defaultSyncSettings } from '../../edge/limits.ts'
import { answer, ended, launch } from './children.ts'
import { appendEach, moveBare } from './stream-baseline.ts'

export interface StreamBench {
  entries: number
  /** Entries per second from the hub's connection to its deletion of the last entry. */
  perSecond: number
  /** The same entries in the same batches, between two files by prepared statements. */
  barePerSecond: number
  /** `barePerSecond / perSecond`. */
  ratio: number
  /** Durable commits per second of single entries into the hub's ledger. */
  appendsPerSecond: number
  hubCpuMs: number
  cloudCpuMs: number
}

export interface StreamBenchOptions {
  entries?: number
  /** A folder on the measured disk; default: the system's temporary folder. */
  folder?: string
  /**
   * `mqtt://user:password@host:port` of an external broker on which hub 1 has `password`; default: the
   * embedded broker.
   */
  broker?: { url: string; password: string }
}

/**
 * Measures entries through the reliable stream end to end, with durable commits on both sides. The hub's real
 * sync sends a journal that was filled offline; the cloud's real gateway uses a SQLite file. Each is a
 * separate process.
 */
export async function benchStream(options: StreamBenchOptions = {}): Promise<StreamBench> {
  const { entries = 100_000, broker } = options
  const folder = mkdtempSync(join(options.folder ?? tmpdir(), 'larder-stream-'))
  const password = broker?.password ?? 'bench'
  try {
    const cloudArgs = [`sqlite:${join(folder, 'cloud.sqlite')}`, password, ...(broker ? [broker.url] : [])]
    const hub = launch('stream-hub', [join(folder, 'hub.sqlite'), `${entries}`, '500'])
    await answer(hub)
    const cloud = launch('stream-cloud', cloudArgs)
    const { url } = (await answer(cloud)) as { url: string }
    const address = new URL(url)
    hub.send({ url: `${address.protocol}//${address.host}`, password })
    const drained = (await answer(hub)) as { drainedMs: number; cpuMs: number }
    cloud.send('count')
    const counted = (await answer(cloud)) as { rows: number; dead: number; cpuMs: number }
    if (counted.rows < entries || counted.dead > 0)
      throw new Error(`${counted.rows} of ${entries} entries arrived, ${counted.dead} of them dead`)
    await Promise.all([hub, cloud].map(ended))
    const bareMs = moveBare(folder, entries, defaultSyncSettings.ledger.batchEntries)
    const appends = 2000
    const perSecond = (entries * 1000) / drained.drainedMs
    const barePerSecond = (entries * 1000) / bareMs
    return {
      entries,
      perSecond,
      barePerSecond,
      ratio: barePerSecond / perSecond,
      appendsPerSecond: (appends * 1000) / appendEach(folder, appends),
      hubCpuMs: drained.cpuMs,
      cloudCpuMs: counted.cpuMs,
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
