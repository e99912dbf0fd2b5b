import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { isThere } from '../is-there.ts'

/** The files of an enrolled board, beside its journal. */
export const enrolmentFiles = (store: string) => {
  const at = (name: string): string => join(dirname(store), name)
  return {
    key: at('hub.key'),
    certificate: at('hub.crt'),
    /** The certificate before the last renewal, with its key. */
    previous: at('hub.previous.json'),
    ca: at('ca.crt'),
    enrolment: at('enrolment.json'),
    /** An exchange of a claim code. It is kept until its answer is installed, or the cloud has refused it. */
    attempt: at('enrolment.attempt.json'),
    /** The enrolment in another cell (`move.ts`), and a second copy when the board must leave (`leave.ts`). */
    next: at('enrolment.next.json'),
    moving: at('enrolment.moving.json'),
    /** The enrolment in the former cell, until that cell refuses it or a day has passed (`farewell.ts`). */
    former: at('enrolment.former.json'),
    /** Used if the setting HARDWARE is absent. */
    hardware: at('hardware.json'),
  }
}

/** Whether a certificate belongs to a private key; both PEM. */
export const isOfKey = (cert: string, key: string): boolean =>
  new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))

const EnrolmentFile = z.object({
  hub_id: z.int().min(1),
  mqtt_url: z.string(),
  former_hub_id: z.int().min(1).optional(),
})

/** A board's certificate of the cloud and its key (PEM), and the broker that accepts it. */
export interface Enrolment {
  hubId: number
  /** The number of this hub in the cell from which it moved; its controllers name it as their owner. */
  formerHubId: number | undefined
  mqttUrl: string
  cert: string
  key: string
  /** PEM of the cloud's authority. */
  ca: string
}

/** The key of a certificate that is not stored yet. */
export const nextKey = (key: string): string => `${key}.next`

/**
 * Reads the enrolment of a board; undefined if it is not enrolled. Throws if a file is missing or damaged. A power failure
 * during a renewal may leave the new certificate beside the former key: then the new key is taken.
 */
export function readEnrolment(store: string): Enrolment | undefined {
  const paths = enrolmentFiles(store)
  let text: string
  try {
    text = readFileSync(paths.enrolment, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const {
    hub_id: hubId,
    mqtt_url: mqttUrl,
    former_hub_id: formerHubId,
  } = EnrolmentFile.parse(JSON.parse(text))
  const [cert, ca] = [readFileSync(paths.certificate, 'utf8'), readFileSync(paths.ca, 'utf8')]
  if (!isOfKey(cert, readFileSync(paths.key, 'utf8')) && isThere(nextKey(paths.key)))
    renameSync(nextKey(paths.key), paths.key)
  const key = readFileSync(paths.key, 'utf8')
  if (!isOfKey(cert, key)) throw new Error(`${paths.certificate} is no certificate of ${paths.key}`)
  return { hubId, formerHubId, mqttUrl, cert, key, ca }
}

/** A certificate and its key, PEM. */
const Pair = z.object({ cert: z.string(), key: z.string() })
export type Pair = z.infer<typeof Pair>

/** The pair before the last renewal; undefined without one. A damaged file counts as absent. */
export function readPrevious(store: string): Pair | undefined {
  try {
    const pair = Pair.parse(JSON.parse(readFileSync(enrolmentFiles(store).previous, 'utf8')))
    return isOfKey(pair.cert, pair.key) ? pair : undefined
  } catch {
    return undefined
  }
}

/** Where a hub keeps its files. */
export interface HubPlace {
  /** Path of the journal. The files of the enrolment are beside it. */
  store: string
  /** The setting HARDWARE. */
  hardware: string | undefined
}

/** The hub's own hardware description: HARDWARE, or the file that an enrolment has stored beside the journal. */
export function hardwareFile({ hardware, store }: HubPlace): string {
  const stored = enrolmentFiles(store).hardware
  return hardware !== undefined && (existsSync(hardware) || !existsSync(stored)) ? hardware : stored
}
