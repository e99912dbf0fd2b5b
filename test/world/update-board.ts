import { COPY, IDLE, type UpdateState } from '../../edge/update/files.ts'
import type { UpdaterWorld } from '../../edge/update/updater.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { Clock } from '../../protocol/model/runtime.ts'

export const OLD = '2026.3.1+0000001'
export const NEW = '2026.4.1+0000002'
export const updaterSettings = { confirmMs: 300_000, checkMs: 1000, steadyMs: 10_000 }
export const rollouts = [
  '019a0000-0000-7000-8000-000000000001',
  '019a0000-0000-7000-8000-000000000002',
] as const

export const releaseOf = (version: string, rollout: string = rollouts[0]) => ({
  version,
  url: 'https://larder.example/releases',
  rollout,
})

/** A power failure before an effect. */
export class PowerCut extends Error {}

export type Health = 'healthy' | 'crashes' | 'never becomes ready' | 'loses a controller'

interface Disk {
  desired: ReturnType<typeof releaseOf> | null
  link: string | null
  installed: Set<string>
  state: UpdateState
  /** The version of the journal's tables, and of the tables of its copy. */
  journal: number
  copy: number | undefined
  orders: number
  /** Reports that only the journal of the new version contains. */
  lost: number
}

interface BoardOptions {
  /** Default: a clock on which every sleep ends at once. */
  clock?: Clock
  newVersion?: Health
  changesJournal?: boolean
  /** The power fails before this effect, until `boot`. */
  cutAt?: number
}

/** A board: its disk survives power failures, its processes do not. */
export function updateBoard({
  newVersion = 'healthy',
  changesJournal = false,
  cutAt = Infinity,
  clock: given,
}: BoardOptions = {}) {
  const disk: Disk = {
    desired: releaseOf(NEW),
    link: null,
    installed: new Set<string>(),
    state: IDLE,
    journal: 1,
    copy: undefined,
    orders: 0,
    lost: 0,
  }
  let effects = 0
  let runs = true
  let time = 0
  const ran: string[] = []
  const clock: Clock = given ?? {
    now: () => time,
    monotonic: () => time,
    after(delayMs, task) {
      time += delayMs
      queueMicrotask(task)
      return () => {}
    },
  }
  const linked = (): string => disk.link ?? OLD
  const effect = (work: () => void): void => {
    effects += 1
    if (effects >= cutAt) throw new PowerCut()
    work()
  }
  let running: string = OLD
  /** The service of the linked version, as systemd starts it after a boot, too. A service that runs stays. */
  function start(): void {
    if (runs) return
    const version = linked()
    running = version
    runs = version === OLD ? disk.journal === 1 : true
    if (runs && version === NEW && changesJournal) disk.journal = 2
    ran.push(version)
  }
  const world: UpdaterWorld = {
    clock,
    log: silentLog,
    desired: () => disk.desired,
    running: linked,
    state: {
      read: () => structuredClone(disk.state),
      write: (state) => effect(() => (disk.state = structuredClone(state))),
    },
    install: async ({ version }) => effect(() => void disk.installed.add(version)),
    linked: () => disk.link,
    link: (version) => effect(() => (disk.link = version)),
    service: {
      stop: async () => effect(() => (runs = false)),
      start: async () => effect(start),
    },
    isBusy: () => disk.orders > 0 && (disk.orders -= 1) > 0,
    backUp: () => effect(() => (disk.copy = disk.journal)),
    hasOtherJournal: () => disk.copy !== undefined && disk.copy !== disk.journal,
    restore: () => {
      effect(() => {
        disk.journal = disk.copy ?? disk.journal
        disk.copy = undefined
      })
      return disk.lost
    },
    health: async () => {
      const version = running
      if (!runs) return undefined
      if (version === OLD || newVersion === 'healthy') return { version, problem: undefined, silent: ['old'] }
      if (newVersion === 'loses a controller')
        return { version, problem: undefined, silent: ['old', 'front'] }
      return newVersion === 'crashes' ? undefined : { version, problem: newVersion, silent: [] }
    },
    tidy: (kept) =>
      effect(() => {
        for (const version of disk.installed) if (!kept.includes(version)) disk.installed.delete(version)
        if (!kept.includes(COPY)) disk.copy = undefined
      }),
    makeRoom: () => effect(() => {}),
  }
  return {
    disk,
    world,
    ran,
    elapsedMs: () => time,
    effects: () => effects,
    serves: () => runs,
    linked,
    /** The power fails before the effect of this number from now on. */
    cutAt: (number: number) => (cutAt = effects + number),
    /** The power has failed: nothing runs. */
    cut: () => (runs = false),
    /** The power returns: systemd starts the service and the updater. */
    boot() {
      cutAt = Infinity
      runs = false
      start()
    },
  }
}
