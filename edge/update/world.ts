import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { PRODUCT_VERSION } from '../../protocol/build.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { SettingsOf } from '../../protocol/model/program-settings.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { edgeSettings } from '../../protocol/settings/hub.ts'
import { callService } from '../call-service.ts'
import { releaseBallast } from '../journal/ballast.ts'
import { replaceText } from '../replace-text.ts'
import { copyDurably, syncFolder } from './durable.ts'
import { COPY, DesiredFile, IDLE, partOf, readJson, updateFiles, UpdateState } from './files.ts'
import { versionOf, withJournal } from './journal-file.ts'
import { RefusedRelease, type ServiceHealth, type UpdaterWorld } from './updater.ts'

type Settings = Pick<SettingsOf<typeof edgeSettings>, 'store' | 'local' | 'update'>

const UNIT = 'larder-edge.service'
const run = promisify(execFile)

/** The real machine: systemd, the folder of the releases, the journal, and the hub's local API. */
export function systemWorld(settings: Settings, { clock }: Runtime, log: Log): UpdaterWorld {
  const { store, update } = settings
  const files = updateFiles(store)
  const link = join(files.releases, 'current')
  const copy = join(files.releases, COPY)
  const linked = (): string | null => {
    try {
      return basename(readlinkSync(link))
    } catch {
      return null
    }
  }
  function forgetDamaged(): void {
    log.error({ path: files.state }, 'the progress of the updater is damaged: no update counts as begun')
    rmSync(files.state, { force: true })
  }
  const hasOtherJournal = (): boolean => existsSync(copy) && versionOf(copy) !== versionOf(store)
  return {
    clock,
    log,
    desired: () => readJson(files.desired, DesiredFile) ?? null,
    // The updater is a part of the Debian package, and has its version.
    running: () => linked() ?? PRODUCT_VERSION,
    state: {
      // The link shows which version runs.
      read: () => readJson(files.state, UpdateState, forgetDamaged) ?? IDLE,
      write: (state) => replaceText(files.state, `${JSON.stringify(state)}\n`),
    },
    async install(release) {
      const { fetchRelease } = await import('./fetch-release.ts')
      mkdirSync(files.releases, { recursive: true, mode: 0o700 })
      const root = update.root ?? files.root
      const health = await readHealth(settings.local)
      const provenNow = health?.cloud_time ?? undefined
      await fetchRelease(release, { releases: files.releases, root, arch: process.arch, provenNow })
    },
    linked,
    link(version) {
      if (version === null) rmSync(link, { force: true })
      else {
        rmSync(`${link}.new`, { force: true })
        symlinkSync(version, `${link}.new`)
        renameSync(`${link}.new`, link)
      }
      syncFolder(files.releases)
    },
    service: {
      stop: async () => void (await run('systemctl', ['stop', UNIT])),
      start: async () => void (await run('systemctl', ['start', '--no-block', UNIT])),
    },
    isBusy: () => isBusy(settings),
    backUp() {
      rmSync(copy, { force: true })
      if (!existsSync(store)) return
      try {
        // The log of SQLite moves into the file. The pragma returns 1 if another program holds the log.
        const isHeld = withJournal(store, (db) => db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }))
        if (isHeld !== 0) throw new Error('another program reads it')
        copyDurably(store, copy)
      } catch (error) {
        throw new RefusedRelease(`the journal cannot be copied: ${(error as Error).message}`)
      }
    },
    hasOtherJournal,
    restore() {
      if (!hasOtherJournal()) return 0
      const lost = lostReports(store, copy)
      for (const part of ['-wal', '-shm']) rmSync(store + part, { force: true })
      renameSync(copy, store)
      syncFolder(dirname(store))
      syncFolder(files.releases)
      return lost
    },
    health: () => healthOf(settings.local),
    tidy(kept) {
      if (!existsSync(files.releases)) return
      const names = [...kept, ...kept.map((version) => version && partOf(version)), 'current', 'metadata']
      for (const name of readdirSync(files.releases))
        if (!names.includes(name)) rmSync(join(files.releases, name), { recursive: true, force: true })
    },
    makeRoom: () => releaseBallast(`${store}.ballast`),
  }
}

/**
 * The reports that only the present journal has; states and alarms are reported again. There are none if the service kept its
 * trial (`trial.ts`). The outbox deletes a report when the cloud has confirmed it. An unreadable journal counts as one without reports.
 */
function lostReports(store: string, copy: string): number {
  const query = `SELECT max(base, coalesce((SELECT max(seq) FROM outbox_ledger), 0))
    FROM stream_positions WHERE stream = 'ledger'`
  try {
    const last = withJournal(copy, (db) => db.prepare<[], number>(query).pluck().get())
    const after = `SELECT count(*) FROM outbox_ledger
      WHERE seq > ? AND body ->> '$.kind' NOT IN ('state', 'alarm')`
    return (
      withJournal(store, (db) =>
        db
          .prepare<[number], number>(after)
          .pluck()
          .get(last ?? 0),
      ) ?? 0
    )
  } catch {
    return 0
  }
}

async function isBusy({ local, store }: Settings): Promise<boolean> {
  const health = await readHealth(local)
  // A silent service, one of an earlier release, and a hub that waits for its journal do not report a reason.
  return typeof health?.reason_to_wait === 'string' || hasOrders(store)
}

/** Whether the journal has an order in progress, or cannot be read. An absent or damaged journal has none. */
function hasOrders(store: string): boolean {
  if (!existsSync(store)) return false
  try {
    const query = 'SELECT 1 FROM orders WHERE ended_at IS NULL LIMIT 1'
    return withJournal(store, (db) => db.prepare(query).get() !== undefined)
  } catch (error) {
    return !/^SQLITE_(CORRUPT|NOTADB)/.test(String((error as { code?: unknown }).code))
  }
}

const Health = z.object({
  failing: z.array(z.string()),
  version: z.string(),
  sync: z.object({ phase: z.string(), reason: z.string().nullish() }),
  silent_controllers: z.array(z.string()),
  reason_to_wait: z.string().nullish(),
  cloud_time: z.number().nullish(),
})
type Health = z.infer<typeof Health>

/** Undefined if the service does not answer. */
async function readHealth(local: Settings['local']): Promise<Health | undefined> {
  try {
    const { body } = await callService(local, '/health')
    return Health.parse(JSON.parse(body))
  } catch {
    return undefined
  }
}

async function healthOf(local: Settings['local']): Promise<ServiceHealth | undefined> {
  const health = await readHealth(local)
  if (!health) return undefined
  const { failing, version, sync, silent_controllers: silent } = health
  const isWelcomed = sync.phase === 'welcomed'
  const problem =
    failing.length > 0
      ? `the service is not ready: ${failing.join(', ')}`
      : isWelcomed
        ? undefined
        : `the cloud does not welcome the hub: ${sync.reason ?? sync.phase}`
  return { version, problem, silent }
}
