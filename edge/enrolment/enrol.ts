import * as files from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import * as net from 'node:net'
import { dirname } from 'node:path'
import * as stream from 'node:stream'
import { text } from 'node:stream/consumers'
import * as tls from 'node:tls'
import { z } from 'zod'
import { BUILD } from '../../protocol/build.ts'
import { addressOf } from '../../protocol/model/address.ts'
import { goesInClear } from '../../protocol/model/exposure.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import type { Clock, Random, Runtime } from '../../protocol/model/runtime.ts'
import { openCheckedTls } from '../../protocol/mqtt/broker-socket.ts'
import { certificateTime } from '../../protocol/mqtt/certificates.ts'
import { connectionProblem } from '../../protocol/mqtt/connection-problem.ts'
import { loadX509, P256, privatePem } from '../../protocol/x509.ts'
import { refuseForeignFile } from '../journal/store.ts'
import { replaceText } from '../replace-text.ts'
import { enrolmentFiles, type HubPlace } from './enrolment.ts'
import { Answer, install, readAttempt, type Attempt } from './install.ts'
import type { NewKey } from './renewal.ts'

const Refusal = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

/** An enrolment, as `larder enroll` prints it. */
export interface Enrolled {
  hub_id: number
  name: string
  mqtt_url: string
  expires_at: string
  desired_version: number
}

export interface EnrolOptions extends HubPlace {
  /** Address of the cloud: `https://larder.example`. */
  cloud: string
  code: string
  runtime: Runtime
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
export async function enrol(options: EnrolOptions): Promise<Enrolled> {
  const { key, answer } = await exchange(options)
  // A hub that used the journal of another one would report a foreign history.
  refuseForeignFile(options.store, answer.hub_id)
  install(options, key, answer)
  return enrolledBy(answer)
}

export const enrolledBy = ({ hub_id, name, mqtt_url, expires_at, desired_version }: Answer): Enrolled => ({
  hub_id,
  name,
  mqtt_url,
  expires_at,
  desired_version,
})

/** Exchanges a claim code for a certificate of a new key. Only the attempt is stored. */
export async function exchange({
  cloud,
  code,
  store,
  runtime,
}: Omit<EnrolOptions, 'hardware'>): Promise<{ key: string; answer: Answer }> {
  if (goesInClear(cloud)) throw new Error(`${cloud}: others could read the code: use https`)
  const paths = enrolmentFiles(store)
  makeFolder(files, dirname(store))
  const attempt = await attemptOf(paths.attempt, code, runtime.random)
  const answer = await ask(cloud, attempt, runtime.clock).catch((error: unknown) => {
    if (error instanceof RefusedEnrolment) files.rmSync(paths.attempt, { force: true })
    throw error
  })
  return { key: attempt.key, answer }
}

/**
 * The attempt to use a code. It is stored before the code is used, and is the same again if its answer was lost or could not
 * be used: the cloud then repeats its answer. A folder that cannot be written fails here.
 */
async function attemptOf(path: string, code: string, random: Random): Promise<Attempt> {
  const earlier = readAttempt(path)
  if (earlier?.code === code) return earlier
  const attempt = { code, ...(await makeKey()), id: randomHex(random, 16) }
  replaceText(path, JSON.stringify(attempt))
  return attempt
}

/** The cloud's answer is final: the same request would be refused again. */
class RefusedEnrolment extends Error {}

async function ask(cloud: string, { code, csr, id }: Attempt, clock: Clock): Promise<Answer> {
  // The address may have a path, at which a proxy mounts the cloud.
  const { status, body } = await post(new URL(`${cloud.replace(/\/+$/, '')}/api/v1/enroll`), {
    id,
    body: { claim_code: code, csr },
    clock,
  }).catch((error: unknown) => {
    const reason = connectionProblem(error as Error, { name: 'cloud', setting: 'its address' })
    throw new Error(`the cloud at ${cloud} is not reached: ${reason}`, { cause: error })
  })
  if (status === 200) return Answer.parse(JSON.parse(body))
  const refusal = Refusal.safeParse(jsonOf(body))
  if (!refusal.success) throw new Error(`the cloud at ${cloud} answered ${status}`)
  const { message, code: reason } = refusal.data.error
  const sentence = `the cloud refused the enrolment: ${message} (${reason})`
  throw status < 429 ? new RefusedEnrolment(sentence) : new Error(sentence)
}

/**
 * Posts JSON over http or https. The certificate of the cloud is judged with a clock that may be years late: its end by the
 * latest time that is known, and its beginning not at all, because the build may be older than the certificate.
 */
async function post(
  url: URL,
  { id, body, clock }: { id: string; body: object; clock: Clock },
): Promise<{ status: number; body: string }> {
  const isTls = url.protocol === 'https:'
  const createConnection = () =>
    openCheckedTls(
      addressOf(url.href, { 'https:': 443 }),
      {
        modules: { net, tls, stream },
        ca: authorities,
        caSetting: 'NODE_EXTRA_CA_CERTS',
        time: () => ({ ...certificateTime(clock.now(), BUILD?.committedAt ?? 0), latest: Infinity }),
      },
      "the cloud's certificate",
    )
  const options = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': id },
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(isTls && { createConnection }),
  }
  const request = (isTls ? https : http).request(url, options)
  const answered = new Promise<http.IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', reject)
  })
  request.end(JSON.stringify(body))
  const response = await answered
  return { status: response.statusCode ?? 0, body: await text(response) }
}

/** The public authorities that Node contains, and those that its operator adds to them. */
const authorities = (): string => {
  const { NODE_EXTRA_CA_CERTS: extra } = process.env
  return [...tls.rootCertificates, ...(extra ? [files.readFileSync(extra, 'utf8')] : [])].join('\n')
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
