import { X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DesiredStates } from '../../edge/desired/desired-states.ts'
import { enrolmentFiles } from '../../edge/enrolment/enrolment.ts'
import { makeKey } from '../../edge/enrolment/enrol.ts'
import { Renewal } from '../../edge/enrolment/renewal.ts'
import { replaceText } from '../../edge/replace-text.ts'
import { COPY, IDLE, reportOf, type UpdateState } from '../../edge/update/files.ts'
import { RefusedRelease, update, type ServiceHealth, type UpdaterWorld } from '../../edge/update/updater.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import type { DesiredRelease } from '../../protocol/mqtt/cloud-entries.ts'
import { endOf } from '../../protocol/mqtt/certificates.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import type { OpenLinePort } from '../../protocol/serial/line-port.ts'
import type { Health } from '../world/update-board.ts'
import type { Coverage } from './coverage.ts'
import type { CrashPoints } from './crash-points.ts'
import type { HubNode } from './hub-node.ts'
import { Crash, type Life, type Scheduler } from './scheduler.ts'

/** The version of the package that every board has at first. */
export const PACKAGED = '2026.1.1+0000000'

export interface BoardParts {
  scheduler: Scheduler
  coverage: Coverage
  /** The instants at which the updater, or the power, fails. */
  crashPoints: CrashPoints
  /** How each release behaves. */
  releases: ReadonlyMap<string, Health>
  /** Whether the board reaches the cloud over HTTPS. */
  isConnected: () => boolean
  /** The power of the room fails for a while. */
  cutPower: () => void
  /** Time between two attempts to renew the certificate. */
  renewAgainMs: number
}

const SETTINGS = { confirmMs: 300_000, checkMs: 1000, steadyMs: 10_000 }
const AGAIN_MS = 60_000
const DOWNLOAD_MS = 20_000
/** The updater polls the file of the desired release; here it waits for the change. */
const IDLE_MS = 6 * 3_600_000

/**
 * The parts of a board that live beside its hub's service: its certificate, the link to its release, and the updater. The
 * updater's steps, the renewal and the reports are the hub's own code.
 */
export class Board {
  readonly #parts: BoardParts
  readonly #folder = mkdtempSync(join(tmpdir(), 'larder-board-'))
  #node!: HubNode
  #renewal: Renewal | undefined
  #updater: Life | undefined
  #wake: () => void = () => {}
  #wanted: DesiredRelease | null = null
  #link: string | null = null
  #update: UpdateState = IDLE
  /** The journal from before the switch, if the new release has other tables. */
  #copy: Buffer | undefined
  #stoppedAt: number | undefined
  #isHeld = false
  #known = { pem: '', endsAt: 0 }
  /** Versions of the service that ran here, with the first one. */
  readonly ran = [PACKAGED]
  /** The longest time from the stop of a version until its successor worked, in milliseconds. */
  longestStopMs = 0
  renewals = 0

  constructor(parts: BoardParts) {
    this.#parts = parts
  }

  attach(node: HubNode): void {
    this.#node = node
  }

  /** Whether the updater has stopped the service. */
  get isStopped(): boolean {
    return this.#isHeld
  }

  get version(): string {
    return this.#link ?? PACKAGED
  }

  get health(): Health {
    return this.#parts.releases.get(this.version) ?? 'healthy'
  }

  /** Whether the former journal may still return. */
  readonly trial = { isOn: () => this.#isOnTrial(), check: () => this.#isOnTrial() }

  #isOnTrial(): boolean {
    return this.#copy !== undefined && /confirming|returning/.test(this.#update.now.step)
  }

  get state(): UpdateState {
    return this.#update
  }

  readonly desired: Pick<
    DesiredStates,
    'offer' | 'failed' | 'failedUpdate' | 'isMissing' | 'rollout' | 'noteFirmware' | 'report' | 'onReport'
  > = {
    offer: ({ software }) => {
      if (software === undefined) return
      this.#wanted = software
      this.#wake()
    },
    failed: () => this.#node.failed,
    rollout: () => null,
    noteFirmware() {},
    failedUpdate: () => {
      const report = reportOf(this.#update)
      return report?.state === 'failed' ? { version: report.version, error: report.error! } : null
    },
    isMissing: () => false,
    report: () => {
      const update = reportOf(this.#update)
      return { applied: 1, failed: this.#node.failed, ...(update && { update }) }
    },
    onReport() {},
  }

  get #files() {
    return enrolmentFiles(join(this.#folder, 'hub.sqlite'))
  }

  /** The certificate that the board shows to the broker, PEM. */
  certificate(): string | undefined {
    if (this.#renewal) return this.#renewal.client().cert
    return existsSync(this.#files.certificate) ? readFileSync(this.#files.certificate, 'utf8') : undefined
  }

  /** The board has exchanged a claim code. */
  enrol(key: string, { certificate, ca }: { certificate: string; ca: string }): void {
    replaceText(this.#files.key, key)
    replaceText(this.#files.certificate, certificate)
    replaceText(this.#files.ca, ca)
    this.#renewal = undefined
  }

  /** Another board has taken its place: nothing of the former one remains. */
  renew(): void {
    this.powerOff()
    this.#link = null
    this.#update = IDLE
    this.#wanted = null
    this.#copy = undefined
  }

  certificates(): { name: string; endsAt: number }[] {
    const pem = this.certificate()
    if (pem === undefined) return []
    if (pem !== this.#known.pem) this.#known = { pem, endsAt: endOf(new X509Certificate(pem)) }
    return [{ name: 'hub', endsAt: this.#known.endsAt }]
  }

  /** The connections of one life of the service. */
  over(open: OpenTransport, clock: Clock, now: () => number): OpenTransport {
    const cert = this.certificate()
    if (cert === undefined) return open
    this.#renewal = new Renewal({
      hubId: this.#node.hubId,
      store: join(this.#folder, 'hub.sqlite'),
      client: { cert, key: readFileSync(this.#files.key, 'utf8') },
      ca: readFileSync(this.#files.ca, 'utf8'),
      clock,
      log: silentLog,
      now,
      newKey: makeKey,
      onRenewed: () => {
        this.renewals += 1
        this.#parts.coverage.hit('board certificate renewed')
      },
      againMs: this.#parts.renewAgainMs,
    })
    return this.#renewal.over(open)
  }

  /** The serial ports, as this release opens them. */
  ports(open: OpenLinePort): OpenLinePort {
    if (this.health !== 'loses a controller') return open
    return (options, handlers) =>
      options.path === 'vending' ? { write: () => false, close() {} } : open(options, handlers)
  }

  powerOff(): void {
    if (this.#updater) this.#parts.scheduler.kill(this.#updater, 'power cut')
  }

  /** systemd starts the updater, and the caller starts the service. */
  boot(): void {
    this.#isHeld = false
    const { scheduler, coverage, crashPoints, cutPower } = this.#parts
    if (this.#updater?.alive) return
    const life = scheduler.newLife(`updater of ${this.#node.name}`, (point) => {
      coverage.hit('updater lives ended')
      if (point !== 'power cut') cutPower()
    })
    this.#updater = life
    const clock = scheduler.clock(life, () => 0)
    const world = this.#world(life, clock, crashPoints)
    scheduler.plan(life, 0, () => this.#run(world, clock))
  }

  async #run(world: UpdaterWorld, clock: Clock): Promise<void> {
    for (;;) {
      const isDone = await update(world, SETTINGS).then(
        () => true,
        (error: unknown) => {
          if (error instanceof Crash) throw error
          return false
        },
      )
      const wanted = new Promise<void>((resolve) => (this.#wake = resolve))
      await Promise.race([wanted, sleep(clock, isDone ? IDLE_MS : AGAIN_MS)])
    }
  }

  #world(life: Life, clock: Clock, crashPoints: CrashPoints): UpdaterWorld {
    const checkpoint = crashPoints.forLife(life)
    const { releases, isConnected, scheduler, coverage } = this.#parts
    const effect = <T>(name: string, work: () => T): T => {
      try {
        checkpoint(`update.${name}`)
      } catch (error) {
        // The updater handles errors of its effects, but nothing runs after a power failure.
        if (error instanceof Crash) scheduler.kill(life, error.point)
        throw error
      }
      this.#node.touchFiles()
      return work()
    }
    return {
      clock,
      log: silentLog,
      desired: () => this.#wanted,
      running: () => this.version,
      state: {
        read: () => structuredClone(this.#update),
        write: (state) =>
          effect('state', () => {
            if (state.last && state.last.release.rollout !== this.#update.last?.release.rollout)
              coverage.hit(state.last.error === null ? 'board updated' : 'board returned to its release')
            this.#update = structuredClone(state)
            this.desired.onReport()
          }),
      },
      install: async ({ version }) => {
        await sleep(clock, DOWNLOAD_MS)
        if (!isConnected()) throw new Error('the cloud is not reached')
        if (!releases.has(version)) throw new RefusedRelease('the signed list does not contain it')
        effect('install', () => {})
      },
      linked: () => this.#link,
      link: (version) => effect('link', () => (this.#link = version)),
      service: {
        stop: async () =>
          effect('stop', () => {
            this.#isHeld = true
            this.#stoppedAt = scheduler.time
            this.#node.kill('stopped by the updater')
          }),
        start: async () => {
          if (!life.alive) throw new Crash(life, 'update.start')
          this.#isHeld = false
          // The former version needs no confirmation.
          if (this.#update.now.step !== 'confirming') this.#stoppedAt = undefined
          if (this.ran.at(-1) !== this.version) this.ran.push(this.version)
          this.#node.start()
        },
      },
      isBusy: () => this.#node.isBusy(),
      backUp: () => effect('back up', () => (this.#copy = this.#node.card())),
      hasOtherJournal: () => this.#copy !== undefined,
      restore: () =>
        effect('restore', () => {
          if (this.#copy) this.#node.putBack(this.#copy)
          this.#copy = undefined
          return 0
        }),
      health: () => Promise.resolve(this.#healthNow()),
      tidy: (kept) => effect('tidy', () => void (kept.includes(COPY) || (this.#copy = undefined))),
      makeRoom() {},
    }
  }

  #healthNow(): ServiceHealth | undefined {
    const hub = this.#node.hub
    if (!hub) return undefined
    const { version } = this
    const { phase } = hub.sync.state()
    const problem = phase === 'welcomed' ? undefined : `the cloud does not welcome the hub: ${phase}`
    const silent = hub.controllers.links().flatMap(({ up, controller }) => (up ? [] : [controller]))
    if (problem === undefined && this.#stoppedAt !== undefined) {
      this.longestStopMs = Math.max(this.longestStopMs, this.#parts.scheduler.time - this.#stoppedAt)
      this.#stoppedAt = undefined
    }
    return { version, problem, silent }
  }
}
