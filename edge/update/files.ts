import { dirname, join } from 'node:path'
import { z } from 'zod'
import { DesiredRelease } from '../../protocol/mqtt/cloud-entries.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import type { UpdateReport } from '../../protocol/mqtt/session.ts'
import { textIfThere } from '../is-there.ts'

/** The files of updates, beside the journal. */
export const updateFiles = (store: string) => {
  const at = (name: string): string => join(dirname(store), name)
  return {
    /** The release that the hub must run. The hub's service writes it. */
    desired: at('software.json'),
    /** The progress of the updater. */
    state: at('update.json'),
    /** The trusted root of the signed list, from the enrolment. */
    root: at('update-root.json'),
    /** Installed versions, each in a folder of its name, and the link `current`. */
    releases: at('releases'),
    /** Firmware of controllers that a person has put here, beside that of the package. */
    firmware: at('firmware'),
    /** The verified root and list of releases. */
    metadata: at('releases/metadata'),
    /** The list alone: another cell has its own, with lower numbers. */
    list: ['timestamp', 'snapshot', 'targets'].map((name) => at(`releases/metadata/${name}.json`)),
  }
}

const processors: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/** The file of a release for a processor (Node's name of it). */
export const tarballOf = (version: string, arch: string = process.arch): string =>
  `larder-hub_${version}_${processors[arch] ?? arch}.tar.gz`

/** The copy of the journal from before a switch, in the folder of the releases. */
export const COPY = 'journal'

/** The updater gives up a version that was not confirmed after this many starts of the board. */
export const MAX_STARTS = 3

/** The unfinished download of a release, in the folder of the releases. */
export const partOf = (version: string, arch?: string): string => `${tarballOf(version, arch)}.part`

/** Null: the cloud wants no update now. */
export const DesiredFile = DesiredRelease.nullable()
export type DesiredFile = z.infer<typeof DesiredFile>

/** The link gets this name. */
const { version: Version } = DesiredRelease.shape

/**
 * The progress of an update. The updater stores each step before its first effect, so its next start continues or undoes the
 * step after a power failure at any instant. `from`: the former version, null for the version of the Debian package.
 */
const Step = z.discriminatedUnion('step', [
  z.object({ step: z.literal('idle') }),
  /** `problem`: why the last attempt did not work. */
  z.object({ step: z.literal('downloading'), to: DesiredRelease, problem: z.string().optional() }),
  z.object({ step: z.literal('waiting'), to: DesiredRelease }),
  /** The service is stopped, and its journal is copied. The link is unchanged. */
  z.object({ step: z.literal('switching'), to: DesiredRelease, from: Version.nullable() }),
  z.object({
    step: z.literal('confirming'),
    to: DesiredRelease,
    from: Version.nullable(),
    /** Number of starts of the updater during this step. */
    starts: z.int(),
    /** Controllers that did not answer before the switch, which need not answer after it. */
    absent: z.array(z.string()),
  }),
  /** The former version gets the link again, and its journal if it cannot read the present one. */
  z.object({
    step: z.literal('returning'),
    to: DesiredRelease,
    from: Version.nullable(),
    error: z.string(),
  }),
])
export type Step = z.infer<typeof Step>

export const UpdateState = z.object({
  now: Step,
  /** The last release that was confirmed (no error) or given up. It is not tried again. */
  last: z.object({ release: DesiredRelease, error: z.string().nullable() }).nullable(),
})
export type UpdateState = z.infer<typeof UpdateState>

export const IDLE: UpdateState = { now: { step: 'idle' }, last: null }

/**
 * The content of a JSON file. A damaged file counts as absent (undefined), because it must not end all updates and moves. Throws
 * if the file cannot be read.
 */
export function readJson<S extends z.ZodType>(
  path: string,
  schema: S,
  onDamage: () => void = () => {},
): z.infer<S> | undefined {
  const text = textIfThere(path)
  if (text === undefined) return undefined
  const { success, data } = schema.safeParse(parseMessage(text))
  if (!success) onDamage()
  return data
}

/** The hub's report about its update. */
export function reportOf({ now, last }: UpdateState): UpdateReport | null {
  if (now.step !== 'idle') {
    const { version, rollout } = now.to
    const isSwitched = now.step === 'confirming' || now.step === 'returning'
    const state = isSwitched ? 'confirming' : now.step === 'switching' ? 'waiting' : now.step
    const error = now.step === 'downloading' ? now.problem : undefined
    return { version, rollout, state, ...(error !== undefined && { error }) }
  }
  if (!last) return null
  const { release, error } = last
  const { version, rollout } = release
  return error === null
    ? { version, rollout, state: 'succeeded' }
    : { version, rollout, state: 'failed', error }
}
