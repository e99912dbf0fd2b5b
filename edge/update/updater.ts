import type { Log } from '../../protocol/model/log.ts'
import { RunningTime } from '../../protocol/model/running-time.ts'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import type { DesiredRelease } from '../../protocol/mqtt/cloud-entries.ts'
import { COPY, MAX_STARTS, type Step, type UpdateState } from './files.ts'
import { Progress } from './progress.ts'

/** The machine, as the updater sees it. A version of null is the version of the Debian package. */
export interface UpdaterWorld {
  clock: Clock
  log: Log
  desired(): DesiredRelease | null
  /** The installed version of the service. */
  running(): string
  /** Durable. */
  state: { read(): UpdateState; write(state: UpdateState): void }
  /** Downloads, verifies and unpacks a release. Throws `RefusedRelease`, or another error if it can work later. */
  install(release: DesiredRelease): Promise<void>
  /** The version of the link; null without a link. */
  linked(): string | null
  link(version: string | null): void
  service: { stop(): Promise<void>; start(): Promise<void> }
  /** Whether the service must not stop: an order, a motion, a controller's firmware or a trial is in progress. */
  isBusy(): boolean | Promise<boolean>
  /** Copies the journal of the stopped service. Throws `RefusedRelease` if that is impossible. */
  backUp(): void
  /** Whether there is a copy of the journal, and the present journal has another schema. */
  hasOtherJournal(): boolean
  /**
   * Puts the copy of the journal back, if the present journal has another schema. Needs no space. Returns the number of reports
   * that the cloud had not confirmed, and that only the present journal contained.
   */
  restore(): number
  /** The health of the service; undefined if it does not answer. */
  health(): Promise<ServiceHealth | undefined>
  /** Removes all versions, their downloads, and the copy of the journal (`COPY`), except these. */
  tidy(kept: readonly (string | null)[]): void
  /** Releases the space that is reserved for a full disk. */
  makeRoom(): void
}

export interface ServiceHealth {
  version: string
  /** Why the service is not ready, or not welcomed by the cloud. */
  problem: string | undefined
  /** Ids of the controllers that do not answer. */
  silent: readonly string[]
}

export interface UpdaterSettings {
  /** Time in which a new version must become healthy, in milliseconds. */
  confirmMs: number
  /** Time between two checks. */
  checkMs: number
  /** A new version must be healthy for this time. */
  steadyMs: number
}

/**
 * The release has a wrong signature, is expired, older or damaged. A repetition does not help. Faults of this machine are other
 * errors: its clock, its disk, an earlier part of the download.
 */
export class RefusedRelease extends Error {}

const MAX_ERROR = 300

/**
 * Continues an interrupted update, then brings the hub to its desired release. Returns when nothing remains to do. Throws if
 * the release cannot be downloaded now.
 */
export async function update(
  world: UpdaterWorld,
  settings: UpdaterSettings,
  progress = new Progress(world),
): Promise<void> {
  progress.catchUp()
  await recover(world, settings, progress)
  const { log } = world
  const to = world.desired()
  const { last } = progress.read()
  if (to === null || to.rollout === last?.release.rollout) return
  if (to.version === world.running()) return end(progress, to, null)
  world.tidy([world.linked(), to.version])
  progress.begin({ now: { step: 'downloading', to }, last })
  try {
    await world.install(to)
  } catch (error) {
    const { message } = error as Error
    if (error instanceof RefusedRelease)
      conclude(world, progress, { to, from: world.linked(), error: message })
    else progress.note({ now: { step: 'downloading', to, problem: message.slice(0, MAX_ERROR) }, last })
    throw error
  }
  progress.begin({ now: { step: 'waiting', to }, last })
  log.info(
    { version: to.version },
    'the release is installed; the updater waits until no order is in progress',
  )
  const absent = await stopWhenIdle(world, settings, to)
  if (!absent) return abandon(world, progress)
  const from = world.linked()
  // Before the link: a board that boots with the new link runs the new version at once.
  const confirming: Step & { step: 'confirming' } = {
    step: 'confirming',
    to,
    from,
    starts: 0,
    absent: [...absent],
  }
  try {
    progress.begin({ now: { step: 'switching', to, from }, last })
    world.backUp()
    progress.begin({ now: confirming, last })
    world.link(to.version)
  } catch (error) {
    return stay(world, progress, { to, from, error: (error as Error).message })
  }
  await world.service.start()
  await confirm(world, settings, progress, confirming)
}

/** Ends an attempt without a verdict about its release: the link is unchanged. */
function abandon(world: UpdaterWorld, progress: Progress): void {
  progress.note({ now: { step: 'idle' }, last: progress.read().last })
  world.tidy([world.linked(), world.desired()?.version ?? null])
}

interface Failure {
  to: DesiredRelease
  from: string | null
  error: string
}

/** Ends an update before its new version has run. The journal is unchanged. */
async function stay(world: UpdaterWorld, progress: Progress, failure: Failure): Promise<void> {
  const { to, from, error } = failure
  world.log.error({ version: to.version, error }, 'the switch failed, and the former version continues')
  try {
    if (world.linked() !== from) world.link(from)
  } finally {
    await world.service.start()
  }
  conclude(world, progress, failure)
}

/**
 * Stops the service at an instant without an order. Returns the controllers that did not answer before; undefined if the cloud
 * withdrew the release.
 */
async function stopWhenIdle(
  world: UpdaterWorld,
  { checkMs }: UpdaterSettings,
  to: DesiredRelease,
): Promise<readonly string[] | undefined> {
  for (;;) {
    if (world.desired()?.rollout !== to.rollout) return undefined
    if (!(await world.isBusy())) {
      const before = await world.health()
      await world.service.stop()
      if (!(await world.isBusy())) return before?.silent ?? []
      // An order arrived before the stop.
      await world.service.start()
    }
    await sleep(world.clock, checkMs)
  }
}

/** A check takes less time. A longer one shows a suspension of the machine, which is no fault of the version. */
const SUSPENDED_MS = 30_000

/** Keeps the version if it becomes healthy in time, else returns to the former one. */
async function confirm(
  world: UpdaterWorld,
  { confirmMs, checkMs, steadyMs }: UpdaterSettings,
  progress: Progress,
  now: Step & { step: 'confirming' },
): Promise<void> {
  const { clock, log } = world
  const { to, from } = now
  const running = new RunningTime(clock, checkMs + SUSPENDED_MS)
  const until = running.ms() + confirmMs
  let healthySince: number | undefined
  let { suspensions } = running
  for (;;) {
    const problem = problemOf(await world.health(), now)
    const at = running.ms()
    // The service was suspended, too, and may not know yet what it has lost.
    if (running.suspensions > suspensions) healthySince = undefined
    suspensions = running.suspensions
    healthySince = problem === undefined ? (healthySince ?? at) : undefined
    if (healthySince !== undefined && at - healthySince >= steadyMs) break
    if (problem !== undefined && at >= until) return giveUp(world, progress, { to, from, error: problem })
    await sleep(clock, checkMs)
  }
  // The way back needs the copy of the journal until the end is durable.
  end(progress, to, null)
  world.tidy([to.version, from])
  log.info({ version: to.version }, 'the new version is confirmed')
}

function problemOf(
  health: ServiceHealth | undefined,
  { to, absent }: Step & { step: 'confirming' },
): string | undefined {
  if (!health) return 'the service does not answer'
  if (health.version !== to.version) return `version ${health.version} runs`
  const silent = health.silent.filter((id) => !absent.includes(id))
  return health.problem ?? (silent.length > 0 ? `no answer of controller ${silent.join(', ')}` : undefined)
}

/** The former version gets the link and its journal again, even on a full disk. */
async function giveUp(world: UpdaterWorld, progress: Progress, failure: Failure): Promise<void> {
  const { service, log } = world
  const { to, from, error } = failure
  log.error({ version: to.version, error }, 'the new version is given up, and the former one returns')
  let lost = 0
  try {
    await service.stop()
    world.makeRoom()
    progress.note({ now: { step: 'returning', to, from, error }, last: progress.read().last })
    // The link is first: a board that boots here must not change the restored journal with the new version.
    world.link(from)
    // SQLite needs space to read a journal.
    world.tidy([from, COPY])
    lost = world.restore()
  } finally {
    await service.start()
  }
  if (lost > 0) log.error({ lost }, 'reports of the version that was given up are lost')
  const loss = lost > 0 ? `; ${lost} reports of this version are lost` : ''
  conclude(world, progress, { to, from, error: error.slice(0, MAX_ERROR - loss.length) + loss })
}

/** Ends a failed update. Its files go first: the record of the end may need their space. */
function conclude(world: UpdaterWorld, progress: Progress, { to, from, error }: Failure): void {
  try {
    world.tidy([from])
  } finally {
    end(progress, to, error)
  }
}

const end = (progress: Progress, release: DesiredRelease, error: string | null): void =>
  progress.keep({
    now: { step: 'idle' },
    last: { release, error: error?.slice(0, MAX_ERROR) ?? null },
  })

/**
 * Continues or undoes the step that a power failure, a stop or an error interrupted. Starts the service first, because the hub
 * must serve even if the state cannot be written.
 */
async function recover(world: UpdaterWorld, settings: UpdaterSettings, progress: Progress): Promise<void> {
  const { service } = world
  const { now, last } = progress.read()
  if (now.step === 'idle') return
  if (now.step === 'returning') return giveUp(world, progress, now)
  if (now.step !== 'confirming') return begin()
  if (world.linked() !== now.to.version) {
    world.makeRoom()
    world.tidy([now.from, COPY])
    // The disk was full, and did not store the return.
    if (world.hasOtherJournal())
      return giveUp(world, progress, { ...now, error: 'the new version was given up on a full disk' })
    return begin()
  }
  const starts = now.starts + 1
  if (starts >= MAX_STARTS)
    return giveUp(world, progress, { ...now, error: 'the board restarted repeatedly' })
  await service.start()
  progress.note({ now: { ...now, starts }, last })
  return confirm(world, settings, progress, now)

  /** The link is unchanged: the former version runs, and the update begins again. */
  async function begin(): Promise<void> {
    await service.start()
    abandon(world, progress)
  }
}
