import type { Log } from '../../protocol/model/log.ts'
import { RunningTime } from '../../protocol/model/running-time.ts'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import type { DesiredRelease } from '../../protocol/mqtt/cloud-entries.ts'
import type { Step, UpdateState } from './files.ts'

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
  /** Whether an order is in progress. */
  isBusy(): boolean
  /** Copies the journal of the stopped service. Throws `RefusedRelease` if that is impossible. */
  backUp(): void
  /** Puts the copy of the journal back, if the present journal has another schema. */
  restore(): void
  /** The health of the service; undefined if it does not answer. */
  health(): Promise<ServiceHealth | undefined>
  /** Removes versions and copies that no step needs. */
  tidy(kept: readonly (string | null)[]): void
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
 * The release has a wrong signature, is expired, older or damaged, or the disk lacks the space for it. A repetition does not
 * help.
 */
export class RefusedRelease extends Error {}

/** The updater gives up a version that was not confirmed after this many starts of the board. */
const MAX_STARTS = 3
const MAX_ERROR = 300

/**
 * Continues an interrupted update, then brings the hub to its desired release. Returns when nothing remains to do. Throws if
 * the release cannot be downloaded now.
 */
export async function update(world: UpdaterWorld, settings: UpdaterSettings): Promise<void> {
  await recover(world, settings)
  const { state, log } = world
  const to = world.desired()
  const { last } = state.read()
  if (to === null || to.rollout === last?.release.rollout) return
  if (to.version === world.running()) return end(world, to, null)
  state.write({ now: { step: 'downloading', to }, last })
  try {
    await world.install(to)
  } catch (error) {
    if (error instanceof RefusedRelease) end(world, to, error.message)
    throw error
  }
  state.write({ now: { step: 'waiting', to }, last })
  log.info(
    { version: to.version },
    'the release is installed; the updater waits until no order is in progress',
  )
  const absent = await stopWhenIdle(world, settings, to)
  if (!absent) return state.write({ now: { step: 'idle' }, last })
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
    state.write({ now: { step: 'switching', to, from }, last })
    world.backUp()
    state.write({ now: confirming, last })
    world.link(to.version)
  } catch (error) {
    return stay(world, { to, from, error: (error as Error).message })
  }
  await world.service.start()
  await confirm(world, settings, confirming)
}

interface Failure {
  to: DesiredRelease
  from: string | null
  error: string
}

/** Ends an update before its new version has run. The journal is unchanged. */
async function stay(world: UpdaterWorld, { to, from, error }: Failure): Promise<void> {
  world.log.error({ version: to.version, error }, 'the switch failed, and the former version continues')
  try {
    if (world.linked() !== from) world.link(from)
  } finally {
    await world.service.start()
  }
  end(world, to, error)
  world.tidy([from])
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
    if (!world.isBusy()) {
      const before = await world.health()
      await world.service.stop()
      if (!world.isBusy()) return before?.silent ?? []
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
    if (problem !== undefined && at >= until) return giveUp(world, { to, from, error: problem })
    await sleep(clock, checkMs)
  }
  end(world, to, null)
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

async function giveUp(world: UpdaterWorld, { to, from, error }: Failure): Promise<void> {
  const { state, service, log } = world
  log.error({ version: to.version, error }, 'the new version is given up, and the former one returns')
  try {
    state.write({ now: { step: 'returning', to, from, error }, last: state.read().last })
    await service.stop()
    // The link is first: a board that boots here must not change the restored journal with the new version.
    world.link(from)
    world.restore()
  } finally {
    await service.start()
  }
  end(world, to, error)
  world.tidy([from])
}

const end = ({ state }: UpdaterWorld, release: DesiredRelease, error: string | null): void =>
  state.write({ now: { step: 'idle' }, last: { release, error: error?.slice(0, MAX_ERROR) ?? null } })

/**
 * Continues or undoes the step that a power failure, a stop or an error interrupted. Starts the service first, because the hub
 * must serve even if the state cannot be written.
 */
async function recover(world: UpdaterWorld, settings: UpdaterSettings): Promise<void> {
  const { state, service } = world
  const { now, last } = state.read()
  if (now.step === 'idle') return
  if (now.step === 'returning') return giveUp(world, now)
  if (now.step !== 'confirming' || world.linked() !== now.to.version) {
    // The link is unchanged: the former version runs, and the update begins again.
    await service.start()
    return state.write({ now: { step: 'idle' }, last })
  }
  const starts = now.starts + 1
  if (starts >= MAX_STARTS) return giveUp(world, { ...now, error: 'the board restarted repeatedly' })
  await service.start()
  state.write({ now: { ...now, starts }, last })
  return confirm(world, settings, now)
}
