import * as files from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'
import { fileProblem } from '../../protocol/model/system-error.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { DesiredStates, desiredFile } from '../desired/desired-states.ts'
import { isThere, textIfThere } from '../is-there.ts'
import { replaceText } from '../replace-text.ts'
import { updateFiles } from '../update/files.ts'
import { enrolmentFiles, hardwareFile, type HubPlace } from './enrolment.ts'

/** The cloud's answer to an enrolment (`POST /api/v1/enroll`). */
export const Answer = z.object({
  hub_id: z.int().min(1),
  name: z.string(),
  certificate: z.string(),
  ca: z.string(),
  mqtt_url: z.string(),
  expires_at: z.string(),
  /** A hardware description as the cloud stores it. */
  hardware: z
    .record(z.string(), z.unknown())
    .refine((hardware) => HardwareDescription.safeParse(hardware).success)
    .nullable(),
  settings: z.record(z.string(), z.string()),
  desired_version: z.int(),
  /** Absent from an older cloud. */
  update_root: z.string().nullable().optional(),
})
export type Answer = z.infer<typeof Answer>

/** An enrolment in another cell (`move.ts`), until a start completes the move. */
export const Next = z.object({
  /** The order of the former cell that this enrolment has answered. */
  order: z.int(),
  code: z.string(),
  key: z.string(),
  /** The number of the hub in its former cell. */
  former_hub_id: z.int().min(1),
  answer: Answer,
})
export type Next = z.infer<typeof Next>

/** A code, and the key for which it is exchanged. */
const Attempt = z.object({ code: z.string(), key: z.string(), csr: z.string(), id: z.string() })
export type Attempt = z.infer<typeof Attempt>

/** A damaged attempt counts as absent. */
export const readAttempt = (path: string): Attempt | undefined =>
  Attempt.safeParse(parseMessage(textIfThere(path) ?? '')).data

/** Stores the files of an enrolment, and the first desired state. */
export function install(
  place: HubPlace,
  key: string,
  { hub_id, mqtt_url, certificate, ca, hardware, settings, desired_version, update_root }: Answer,
  former_hub_id?: number,
): void {
  const { store } = place
  const paths = enrolmentFiles(store)
  const isOwn = hardware === null || isOwnDescription(place, hardware)
  // A board is enrolled while this file exists, so it is removed first and written last.
  files.rmSync(paths.enrolment, { force: true })
  files.rmSync(paths.previous, { force: true })
  replaceText(paths.key, key)
  replaceText(paths.certificate, certificate, 0o644)
  replaceText(paths.ca, ca, 0o644)
  // The service tries the settings, and a description that differs from its own file, when it runs.
  files.rmSync(desiredFile(store), { force: true })
  new DesiredStates(store).takeFirst({
    version: desired_version,
    settings,
    hardware: isOwn ? null : hardware,
  })
  const updates = updateFiles(store)
  // The updater trusts the root of this cloud from now on. Without one it waits for it. It keeps metadata that the same root signed.
  if (update_root !== textIfThere(updates.root)) {
    files.rmSync(updates.metadata, { recursive: true, force: true })
    if (update_root) replaceText(updates.root, update_root)
    else files.rmSync(updates.root, { force: true })
  }
  replaceText(paths.enrolment, `${JSON.stringify({ hub_id, mqtt_url, former_hub_id })}\n`, 0o644)
  files.rmSync(paths.attempt, { force: true })
}

/** A damaged file counts as absent. A file that cannot be read does not: then this throws. */
export const readNext = (path: string): Next | undefined =>
  Next.safeParse(parseMessage(textIfThere(path) ?? '')).data

/**
 * The enrolment in another cell of a board that must leave. Two files have it until the move is complete, because without it the
 * board would belong to no cell. Undefined if both are damaged.
 */
export function readLeaving(store: string, log: Log): Next | undefined {
  const { moving, next } = enrolmentFiles(store)
  const found = readNext(moving)
  if (found) return found
  if (isThere(moving)) log.error({ path: moving }, 'the order to leave for another cell is damaged')
  return readNext(next)
}

/** Throws a sentence if the hub's own hardware description cannot make way for that of another hub. */
export function requireReplaceable(place: HubPlace): void {
  const own = hardwareFile(place)
  try {
    if (isThere(own)) files.accessSync(dirname(own), files.constants.W_OK)
  } catch (error) {
    throw new Error(`${own} describes this hub, and cannot be renamed (${fileProblem(error)})`, {
      cause: error,
    })
  }
}

/**
 * Whether the hub's own file has this hardware description. If there is no file, it is made at the first place that can be
 * written. A file that a person has made for this hub is left as it is. The service could not start with a damaged file, or with
 * one of another hub: such a file gets another name. Throws a sentence if that is not possible.
 */
function isOwnDescription(settings: HubPlace, description: Record<string, unknown>): boolean {
  const wanted = HardwareDescription.parse(description)
  const own = hardwareFile(settings)
  if (isThere(own)) {
    const found = HardwareDescription.safeParse(parseMessage(files.readFileSync(own, 'utf8')))
    if (found.success && found.data.hubId === wanted.hubId)
      return JSON.stringify(found.data) === JSON.stringify(wanted)
    try {
      files.renameSync(own, `${own}.former`)
    } catch (error) {
      const why = `${own} is damaged or describes another hub, and cannot be renamed (${fileProblem(error)})`
      throw new Error(`${why}: remove it, and enrol again with the same code`, { cause: error })
    }
  }
  const text = `${JSON.stringify(wanted, null, 2)}\n`
  const stored = enrolmentFiles(settings.store).hardware
  try {
    replaceText(own, text, 0o644)
  } catch (error) {
    // The service's user may not write into the folder of its configuration.
    if (own === stored) throw error
    replaceText(stored, text, 0o644)
  }
  return true
}
