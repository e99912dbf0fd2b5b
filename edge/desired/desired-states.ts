import { existsSync, readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { PRODUCT_VERSION } from '../../protocol/build.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { DesiredState } from '../../protocol/mqtt/cloud-entries.ts'
import type { Hello, UpdateReport } from '../../protocol/mqtt/session.ts'
import { desiredSettingProblem } from '../../protocol/settings/hub.ts'
import { StorageError, storageReasonOf } from '../journal/storage-error.ts'
import { replaceText } from '../replace-text.ts'
import { DesiredFile, IDLE, readJson, reportOf, updateFiles, UpdateState } from '../update/files.ts'

/**
 * The versions of the desired state that a hub has (MQTT SPEC §12), in one file beside the journal: a start needs the settings
 * before it can open the journal. Each step replaces the file, so a power failure leaves the state before or after the step.
 */
const Versions = z.object({
  /** The version that the hub confirmed last; null: only its own configuration. A null `hardware` is its own file. */
  applied: DesiredState.nullable(),
  /** Received, and not tried yet: an order is in progress. */
  waiting: DesiredState.optional(),
  /** In use until it is confirmed. One process tries a version: the next start leaves it, except after one orderly end. */
  trial: z
    .object({
      desired: DesiredState,
      isStarted: z.boolean(),
      /** An orderly end of the service has interrupted it once. */
      isRepeated: z.boolean().optional(),
      /** Controllers that did not answer before the trial, which need not answer in it. */
      absent: z.array(z.string()),
    })
    .optional(),
  /** Tried last, and left again. It is not tried again. */
  failed: z.object({ desired: DesiredState, error: z.string() }).optional(),
})
type Versions = z.infer<typeof Versions>

/** The values that replace a hub's own configuration. */
export interface Overrides {
  version: number | null
  settings: Readonly<Record<string, string>>
  /** Null: the hub's own file. */
  hardware: Readonly<Record<string, unknown>> | null
}

/** Whether the controllers of the hub run the newest firmware that the hub has. */
export type FirmwareOutcome = 'pending' | 'done' | { error: string }

/** The part of the desired state that the hub's core uses. */
export type CoreDesired = Pick<
  DesiredStates,
  'offer' | 'failed' | 'failedUpdate' | 'isMissing' | 'rollout' | 'noteFirmware'
>

const MAX_ERROR = 300

export const desiredFile = (store: string): string => `${store}.desired.json`

export class DesiredStates {
  readonly #path: string
  readonly #updates: ReturnType<typeof updateFiles>
  #update: UpdateState = IDLE
  readonly #version: string
  /** The controllers' firmware, and the rollout of the running release. Undefined before the first commit of the service. */
  #firmware: { rollout: string | null; outcome: FirmwareOutcome } | undefined
  /** Called when `report` has changed. */
  onReport: () => void = () => {}
  #versions: Versions | undefined
  /** There is a file. Without versions it is damaged. */
  readonly #hasFile: boolean

  /**
   * Reads the file, and writes nothing. A damaged file does not show what the hub used, so it tries the content that the cloud
   * sends again. `version`: the running version of the service.
   */
  constructor(store: string, version = PRODUCT_VERSION) {
    this.#version = version
    this.#path = desiredFile(store)
    this.#updates = updateFiles(store)
    this.checkUpdate()
    this.#hasFile = existsSync(this.#path)
    this.#versions = this.#hasFile ? read(this.#path) : undefined
  }

  /** The service starts: the version on trial is tried now, or is left if an earlier process tried it. */
  start(): void {
    const trial = this.#versions?.trial
    if (trial?.isStarted) this.fail('the service ended before it could confirm the version')
    else if (trial) this.#attempt({ ...this.#versions!, trial: { ...trial, isStarted: true } })
  }

  /** The service ends in an orderly way, for example because the board restarts: the next start repeats the trial once. */
  interrupt(): void {
    const trial = this.#versions?.trial
    // The file of an erased or enrolled hub stays as it is.
    const isStored = isDeepStrictEqual(read(this.#path), this.#versions)
    if (trial?.isStarted && !trial.isRepeated && isStored)
      this.#attempt({ ...this.#versions!, trial: { ...trial, isStarted: false, isRepeated: true } })
  }

  /** The updater switches to another release, tries it, or returns. */
  isUpdating(): boolean {
    return ['switching', 'confirming', 'returning'].includes(this.#update.now.step)
  }

  /** The cloud's snapshot must bring the desired state. */
  isMissing(): boolean {
    return this.#versions === undefined
  }

  /** The values in use now. */
  overrides(): Overrides {
    if (this.#versions?.trial) return this.#versions.trial.desired
    return usable(this.#versions?.applied ?? NOTHING)
  }

  trial(): Versions['trial'] {
    return this.#versions?.trial
  }

  isWaiting(): boolean {
    return this.#versions?.waiting !== undefined
  }

  failed(): { version: number; error: string } | null {
    const failed = this.#versions?.failed
    return failed ? { version: failed.desired.version, error: failed.error } : null
  }

  /** For the hello. The number of the version in use is reported only if the hub uses all of it and only it has this number. */
  report(): Hello['desired'] {
    if (!this.#versions) return undefined
    const update = this.#withFirmware(reportOf(this.#update))
    const { applied, waiting, trial, failed } = this.#versions
    const others = [waiting, trial?.desired, failed?.desired]
    const isUsed = applied && isDeepStrictEqual(usable(applied), applied)
    return {
      applied: isUsed && others.every((other) => other?.version !== applied.version) ? applied.version : null,
      failed: this.failed(),
      ...(update && { update }),
    }
  }

  /**
   * A release has succeeded when the running service has stored something and the controllers run its firmware. Its hub has
   * failed if it gives that firmware up.
   */
  #withFirmware(report: UpdateReport | null): UpdateReport | null {
    if (report?.state !== 'succeeded' || report.version !== this.#version) return report
    const outcome = this.#firmware?.rollout === report.rollout ? this.#firmware.outcome : 'pending'
    if (outcome === 'done') return report
    if (outcome === 'pending') return { ...report, state: 'confirming' }
    return { ...report, state: 'failed', error: outcome.error.slice(0, MAX_ERROR) }
  }

  /** The id of the rollout that has brought the running version; null without one. */
  rollout(): string | null {
    const report = reportOf(this.#update)
    return report?.version === this.#version ? report.rollout : null
  }

  /** Whether the controllers run the newest firmware of the running version, which `rollout` has brought. */
  noteFirmware(rollout: string | null, outcome: FirmwareOutcome): void {
    this.#change(() => (this.#firmware = { rollout, outcome }))
  }

  /** Reads the progress of the updater. */
  checkUpdate(): void {
    this.#change(() => {
      try {
        this.#update = readJson(this.#updates.state, UpdateState) ?? IDLE
      } catch {
        // The card fails.
      }
    })
  }

  /** The release that the hub did not keep. */
  failedUpdate(): { version: string; error: string } | null {
    const report = reportOf(this.#update)
    return report?.state === 'failed' ? { version: report.version, error: report.error! } : null
  }

  /**
   * The cloud has sent a version. A hub that receives its first one keeps its own hardware description (`own`) until the next,
   * if that is version 1, or describes the same devices. Otherwise, and with a damaged file, the hub tries the cloud's: a new
   * card may have a former description. Throws a `StorageError` if the file cannot be written.
   */
  offer({ software, ...desired }: DesiredState, own?: HardwareDescription): void {
    if (software !== undefined) this.#wantRelease(software)
    const isFirst = !this.#versions && !this.#hasFile
    if (isFirst && (desired.version === 1 || isSameHardware(own, desired.hardware)))
      return this.takeFirst({ ...desired, hardware: null })
    if (!this.#versions) return this.takeFirst(desired)
    const { waiting, ...rest } = this.#versions
    const latest = waiting ?? rest.trial?.desired ?? rest.applied
    if (latest && isSame(latest, desired)) return
    if (rest.failed && isSame(rest.failed.desired, desired)) this.#store(rest)
    else this.#store({ ...rest, waiting: desired })
  }

  /** The first version of an enrolment. A version that changes nothing here is confirmed at once; another one is tried. */
  takeFirst(first: DesiredState): void {
    const isEmpty = first.hardware === null && Object.keys(first.settings).length === 0
    this.#store(isEmpty ? { applied: first } : { applied: null, waiting: first })
  }

  /** The updater reads these files. A hub never replaces a root that it has: only that root can sign the next one. */
  #wantRelease(software: DesiredFile): void {
    const { desired: path, root: rootPath } = this.#updates
    const { root, ...release } = software ?? {}
    if (root !== undefined && !existsSync(rootPath)) this.#write(rootPath, root)
    const had = existsSync(path) ? readFileSync(path, 'utf8') : 'null\n'
    const text = `${JSON.stringify(software && release)}\n`
    if (text !== had) this.#write(path, text)
  }

  /** The next process tries the version that waits. */
  begin(absent: readonly string[]): void {
    const { waiting, ...rest } = this.#versions!
    this.#store({ ...rest, trial: { desired: waiting!, isStarted: false, absent: [...absent] } })
  }

  confirm(): void {
    const { trial, waiting } = this.#versions!
    this.#attempt({ applied: trial!.desired, ...(waiting && { waiting }) })
  }

  /** The hub returns to the former version. */
  fail(error: string): void {
    const { trial, ...rest } = this.#versions!
    this.#attempt({ ...rest, failed: { desired: trial!.desired, error: error.slice(0, MAX_ERROR) } })
  }

  /** A card that cannot be written must not prevent a start: the step then holds for this process alone. */
  #attempt(versions: Versions): void {
    try {
      this.#store(versions)
    } catch {
      this.#take(versions)
    }
  }

  #store(versions: Versions): void {
    this.#write(this.#path, `${JSON.stringify(versions)}\n`)
    this.#take(versions)
  }

  #write(path: string, text: string): void {
    try {
      replaceText(path, text)
    } catch (error) {
      const reason = storageReasonOf(error, path) ?? 'io_error'
      throw new StorageError(reason, (error as Error).message, { cause: error })
    }
  }

  #take(versions: Versions): void {
    this.#change(() => (this.#versions = versions))
  }

  #change(change: () => void): void {
    const before = JSON.stringify(this.report())
    change()
    if (JSON.stringify(this.report()) !== before) this.onReport()
  }
}

/** Whether two descriptions differ in nothing but the paths of their serial ports, which are this board's. */
function isSameHardware(own: HardwareDescription | undefined, sent: DesiredState['hardware']): boolean {
  const known = HardwareDescription.safeParse(sent).data
  const withoutPorts = ({ controllers, ...rest }: HardwareDescription): unknown => ({
    ...rest,
    controllers: controllers.map((controller) => ({ ...controller, port: '' })),
  })
  return own !== undefined && known !== undefined && isDeepStrictEqual(withoutPorts(own), withoutPorts(known))
}

const NOTHING: Overrides = { version: null, settings: {}, hardware: null }

function read(path: string): Versions | undefined {
  try {
    return Versions.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return undefined
  }
}

/** Another version of the service may know other settings: a confirmed version must never prevent a start. */
function usable({ version, settings, hardware }: Overrides): Overrides {
  const known = Object.entries(settings).filter(
    ([name, value]) => desiredSettingProblem(name, value) === undefined,
  )
  const isKnown = hardware === null || HardwareDescription.safeParse(hardware).success
  return { version, settings: Object.fromEntries(known), hardware: isKnown ? hardware : null }
}

/** A hub that keeps its own hardware description has the version, whatever description the cloud stores with it. */
const isSame = (had: DesiredState, sent: DesiredState): boolean =>
  had.version === sent.version &&
  JSON.stringify(had.settings) === JSON.stringify(sent.settings) &&
  (had.hardware === null || JSON.stringify(had.hardware) === JSON.stringify(sent.hardware))
