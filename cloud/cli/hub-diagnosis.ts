import { writeFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { sleep } from '../../protocol/model/runtime.ts'
import { filesOfTar } from '../../protocol/model/tar.ts'
import { MAX_BUNDLE_BYTES, MAX_RECORDS, type Diagnosis } from '../../protocol/mqtt/diagnosis.ts'
import { linesOf, readDiagnosis } from '../operations/hubs/diagnoses.ts'
import { using } from '../platform/settings/config.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import type { CommandLine, Invocation, Options } from './command-line.ts'
import { record } from './hub-management.ts'
import { hubOf, numberOf, required } from './options.ts'

/** Pause between two readings of a followed log. */
const FOLLOW_MS = 1000
/** A hub may be hostile: a packed megabyte can unpack to a gigabyte. Logs have a tenth of their size. */
const MAX_UNPACKED_BYTES = 16 * MAX_BUNDLE_BYTES
const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Reads logs and diagnostic archives of hubs. The service fetches them over MQTT. */
export const diagnosisCommands: CommandLine['subcommands'] = {
  logs: {
    options: ['hub', 'since', 'limit'],
    flags: ['follow'],
    positionals: ['hub'],
    run: printLogs,
  },
  bundle: {
    options: ['hub', 'to'],
    positionals: ['hub'],
    run: storeBundle,
  },
}

async function printLogs(invocation: Invocation): Promise<undefined> {
  const { options, terminal, runtime } = invocation
  const since_ms = sinceOf(options)
  const limit = numberOf(options, 'limit', 1, MAX_RECORDS) ?? MAX_RECORDS
  const isFollowed = options['follow'] !== undefined
  const hubId = await hubOf(invocation)
  const detail = { since: options['since'], limit, follow: isFollowed }
  const read = readerOf(invocation, hubId)
  let after: string | undefined
  for (let isFirst = true; isFirst || !terminal.signal.aborted; isFirst = false) {
    const wanted = { kind: 'logs', since_ms, limit, ...(after !== undefined && { after }) } as const
    const { content, cursor } = await read(wanted, isFirst ? detail : undefined)
    const lines = await linesOf(content, limit)
    if (!lines) throw new Error(`fault: the answer of hub ${hubId} cannot be read`)
    for (const line of lines) terminal.print(`${line}\n`)
    after = cursor ?? after
    if (!isFollowed) return undefined
    await sleep(runtime.clock, FOLLOW_MS)
  }
  return undefined
}

async function storeBundle(invocation: Invocation): Promise<object> {
  const hubId = await hubOf(invocation)
  const day = new Date(invocation.runtime.clock.now()).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')
  const file = invocation.options['to'] ?? `hub-${hubId}-${day}Z.tar.gz`
  const { content } = await readerOf(invocation, hubId)({ kind: 'bundle' }, { file })
  const archive = Buffer.from(content, 'base64')
  const contents = contentsOf(archive)
  if (!contents) throw new Error(`fault: the archive of hub ${hubId} cannot be read`)
  using('--to', file, 'used', () => writeFileSync(file, archive, { mode: 0o600 }))
  return { hub_id: hubId, file, size_bytes: archive.length, contents }
}

/** The names of the files of an archive. Undefined if it is no archive, or would take too much memory. */
function contentsOf(archive: Buffer): string[] | undefined {
  try {
    return [...filesOfTar(gunzipSync(archive, { maxOutputLength: MAX_UNPACKED_BYTES })).keys()]
  } catch {
    return undefined
  }
}

/** `10m` in milliseconds. */
function sinceOf(options: Options): number {
  const text = required(options, 'since')
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (unit === undefined) throw new UsageError(`--since is a number with s, m, h or d, as in 10m: ${text}`)
  return Number(count) * UNITS[unit as keyof typeof UNITS]
}

/** Requests a diagnosis of a hub and waits for it. `detail`: for the audit log, if the act is to be recorded. */
function readerOf({ context, runtime }: Invocation, hubId: number) {
  return async (wanted: Diagnosis, detail: object | undefined) => {
    const act = detail && ((q: Queries) => record(q, runtime, `hubs.${wanted.kind}`, hubId, { ...detail }))
    const answer = await readDiagnosis(context, hubId, wanted, act)
    if (answer === 'hub_offline') throw new Error(`hub_offline: hub ${hubId} is not connected`)
    if (answer === 'timeout') throw new Error(`timeout: hub ${hubId} is connected and does not answer`)
    return answer
  }
}
