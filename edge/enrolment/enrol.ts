import * as files from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { goesInClear } from '../../protocol/model/exposure.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import { loadX509, P256, privatePem } from '../../protocol/x509.ts'
import { DesiredStates, desiredFile } from '../desired/desired-states.ts'
import { refuseForeignFile } from '../journal/store.ts'
import { replaceText } from '../replace-text.ts'
import { enrolmentFiles, nextKey } from './enrolment.ts'
import type { NewKey } from './renewal.ts'

/** The cloud's answer to an enrolment (`POST /api/v1/enroll`). */
const Answer = z.object({
  hub_id: z.int().min(1),
  name: z.string(),
  certificate: z.string(),
  ca: z.string(),
  mqtt_url: z.string(),
  expires_at: z.string(),
  hardware: HardwareDescription.nullable(),
  settings: z.record(z.string(), z.string()),
  desired_version: z.int(),
})
const Refusal = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

/** An enrolment, as `larder enroll` prints it. */
export interface Enrolled {
  hub_id: number
  name: string
  mqtt_url: string
  expires_at: string
  desired_version: number
}

export interface EnrolOptions {
  /** Address of the cloud: `https://larder.example`. */
  cloud: string
  code: string
  /** Path of the journal. The files of the enrolment are beside it. */
  store: string
  /** The setting HARDWARE. */
  hardware: string | undefined
}

const TIMEOUT_MS = 30_000

/** Makes a key and the request for its certificate. The cloud decides the name. */
export async function makeKey(): Promise<NewKey> {
  const { Pkcs10CertificateRequestGenerator } = await loadX509()
  const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
  const parts = { name: 'CN=hub', keys, signingAlgorithm: P256 }
  const request = await Pkcs10CertificateRequestGenerator.create(parts)
  return { key: await privatePem(keys.privateKey), csr: request.toString('pem') }
}

/**
 * Enrols this board: makes its key, exchanges the claim code for a certificate, and stores both. The key never leaves the
 * board. Throws a sentence if the code is refused, the cloud is not reached, or the journal belongs to another hub. A refused
 * enrolment leaves the files of an earlier one as they were.
 */
export async function enrol({ cloud, code, store, hardware }: EnrolOptions): Promise<Enrolled> {
  if (goesInClear(cloud)) throw new Error(`${cloud}: others could read the code: use https`)
  const { key, csr } = await makeKey()
  const paths = enrolmentFiles(store)
  // A code can be used once, so a folder that cannot be written must fail before.
  makeFolder(files, dirname(store))
  replaceText(nextKey(paths.key), key)
  const answer = await ask(cloud, { claim_code: code, csr })
  const { hub_id, name, mqtt_url, expires_at, settings, desired_version } = answer
  // A hub that used the journal of another one would report a foreign history.
  refuseForeignFile(store, hub_id)
  if (answer.hardware !== null) keepDescription([hardware ?? paths.hardware, paths.hardware], answer.hardware)
  // A board is enrolled while this file exists, so it is removed first and written last.
  files.rmSync(paths.enrolment, { force: true })
  files.renameSync(nextKey(paths.key), paths.key)
  replaceText(paths.certificate, answer.certificate, 0o644)
  replaceText(paths.ca, answer.ca, 0o644)
  // The service tries the settings when it runs.
  files.rmSync(desiredFile(store), { force: true })
  new DesiredStates(store).offer({ version: desired_version, settings, hardware: null })
  replaceText(paths.enrolment, `${JSON.stringify({ hub_id, mqtt_url })}\n`, 0o644)
  return { hub_id, name, mqtt_url, expires_at, desired_version }
}

async function ask(cloud: string, body: object): Promise<z.infer<typeof Answer>> {
  const response = await fetch(new URL('/api/v1/enroll', cloud), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    throw new Error(`the cloud at ${cloud} is not reached: ${reasonOf(error)}`, { cause: error })
  })
  const json: unknown = await response.json().catch(() => undefined)
  if (response.ok) return Answer.parse(json)
  const refusal = Refusal.safeParse(json)
  throw new Error(
    refusal.success
      ? `the cloud refused the enrolment: ${refusal.data.error.message} (${refusal.data.error.code})`
      : `the cloud at ${cloud} answered ${response.status}`,
  )
}

/** Stores the cloud's hardware description at the first place that can be written, unless a description is there. */
function keepDescription(places: readonly string[], hardware: HardwareDescription): void {
  if (places.some((path) => files.existsSync(path))) return
  const text = `${JSON.stringify(hardware, null, 2)}\n`
  for (const [index, path] of places.entries())
    try {
      return replaceText(path, text, 0o644)
    } catch (error) {
      // The service's user may not write into the folder of its configuration.
      if (index === places.length - 1) throw error
    }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error
    ? error.cause instanceof Error
      ? error.cause.message
      : error.message
    : String(error)
