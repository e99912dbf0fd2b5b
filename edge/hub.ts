import { every, type Cancel } from '../protocol/model/runtime.ts'
import type { BoardVitals } from '../protocol/model/vitals.ts'
import { HUB_CERTIFICATE } from '../protocol/mqtt/certificates.ts'
import type { OpenTransport } from '../protocol/mqtt/transport.ts'
import type { OpenLinePort } from '../protocol/serial/line-port.ts'
import type { CertificateEnd, CoreOptions } from './core/context.ts'
import { createCore } from './core/core.ts'
import type { HubCore } from './core/hub-core.ts'
import type { CoreDesired, DesiredStates } from './desired/desired-states.ts'
import { createControllers, type Controllers } from './hardware/controllers.ts'
import { createInbox } from './journal/inbox.ts'
import { JournalOutbox, type Outbox } from './journal/outbox.ts'
import { coreOf, type HubSettings } from '../protocol/settings/hub-limits.ts'
import { Sync } from './sync/sync.ts'
import { TRIAL_CHECK_MS, type UpdateTrial } from './update/trial.ts'

/** The options of the core, and what the hub's other parts need. */
export interface HubOptions extends Omit<
  CoreOptions,
  | 'outbox'
  | 'resetInbox'
  | 'openControllers'
  | 'isStalled'
  | 'isOnTrial'
  | 'desired'
  | 'settings'
  | 'software'
> {
  openPort: OpenLinePort
  openTransport: OpenTransport
  settings: HubSettings
  desired?: (CoreDesired & Pick<DesiredStates, 'report' | 'onReport'>) | undefined
  /** Absent: no updater tries this version. */
  trial?: Pick<UpdateTrial, 'isOn' | 'check'> | undefined
  /** It can move to another cell. */
  canMove?: boolean
  /** Name and version for the hello. */
  software?: string
  /** Figures of the board, for the heartbeats. */
  board?: (() => BoardVitals) | undefined
}

export interface Hub {
  start(): void
  stop(): void
  readonly core: HubCore
  readonly sync: Sync
  readonly controllers: Pick<Controllers, 'links' | 'losses'> & Partial<Pick<Controllers, 'errors'>>
  readonly outbox: Pick<Outbox, 'position'>
  /** See `CoreOptions`. */
  certificates(): readonly CertificateEnd[]
}

/** A hub's service, composed of its parts; all external access is a parameter. */
export function createHub(options: HubOptions): Hub {
  const { openPort, openTransport, settings, canMove, board, trial, ...forCore } = options
  const { runtime, log, store, hardware, checkpoint, software = 'larder-edge' } = options
  const outbox = new JournalOutbox(store, runtime, settings.outbox)
  const inbox = createInbox(store, runtime, log, {
    software,
    now: () => core.cloudNow(),
    onDeadLetter: () => core.noteDeadLetters(),
  })
  const isOnTrial = trial && (() => trial.isOn())
  let stopChecks: Cancel = () => {}
  let opened: Hub['controllers'] = { links: () => [], losses: () => new Map() }
  const core: HubCore = createCore({
    ...forCore,
    software,
    settings: coreOf(settings),
    outbox,
    resetInbox() {
      inbox.reset()
      store.afterCommit(() => sync.sendHello())
    },
    openControllers(events) {
      const parts = { hardware, openPort, runtime, log, settings: settings.links }
      return (opened = createControllers(parts, events))
    },
    isStalled: () => sync.isStalled(),
    isOnTrial,
  })
  const sync: Sync = new Sync({
    runtime,
    log,
    hubId: hardware.hubId,
    openTransport,
    outbox,
    inbox,
    core,
    software,
    desired: () => options.desired?.report(),
    canMove,
    loginCertificate: () => loginCertificate(options),
    isOnTrial,
    provenTime: () => Math.max(core.certainNow() ?? 0, signedAt(loginCertificate(options))),
    checkpoint,
    settings: settings.sync,
    vitals: () => board && { ...board(), ...serviceVitals(options, { core, outbox, controllers: opened }) },
  })
  return {
    core,
    sync,
    controllers: {
      links: () => opened.links(),
      losses: () => opened.losses(),
      errors: () => opened.errors?.() ?? 0,
    },
    outbox,
    certificates: () => options.certificates?.() ?? [],
    start() {
      // The hello follows the commit of the entry that brought the version.
      if (options.desired)
        options.desired.onReport = () => void runtime.clock.after(0, () => report(core, sync))
      inbox.takeOverLetters()
      core.start()
      sync.start()
      if (trial?.isOn()) stopChecks = watchTrial(options, trial, () => report(core, sync))
    },
    stop() {
      stopChecks()
      sync.stop()
      core.stop()
      outbox.flush()
    },
  }
}

const loginCertificate = ({ certificates }: HubOptions) =>
  certificates?.().find(({ name }) => name === HUB_CERTIFICATE)

/** The cloud had this date when it signed the certificate. */
const signedAt = ({ endsAt = 0, lifetimeMs = Infinity } = {}): number => endsAt - lifetimeMs

/** Waits for the verdict of the updater. Then the streams and the steps of the core begin. */
function watchTrial(
  { runtime, log }: HubOptions,
  trial: Pick<UpdateTrial, 'check'>,
  onEnd: () => void,
): Cancel {
  log.info({}, 'this version is on trial: nothing is sold until the updater has confirmed it')
  const cancel = every(runtime.clock, TRIAL_CHECK_MS, () => {
    if (trial.check()) return
    cancel()
    log.info({}, 'the trial of this version has ended')
    onEnd()
  })
  return cancel
}

/** A version or a release of the cloud was confirmed or left, or a trial has ended. */
function report(core: HubCore, sync: Sync): void {
  core.noteDesired()
  sync.sendHello()
}

/** The figures of the service. */
function serviceVitals(
  { runtime, store }: HubOptions,
  { core, outbox, controllers }: Pick<Hub, 'core' | 'outbox' | 'controllers'>,
) {
  const { restarts, last } = core.life()
  const ledger = outbox.position('ledger')
  const isTimed = core.certainNow() !== undefined
  return {
    journal_bytes: store.bytes(),
    link_errors: controllers.errors?.() ?? 0,
    queue: ledger.last - ledger.base,
    restarts,
    clock_offset_ms: isTimed ? Math.round(runtime.clock.now() - core.cloudNow()) : null,
    last_crash: last,
  }
}
