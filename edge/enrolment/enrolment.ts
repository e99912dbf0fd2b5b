import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'

/** The files of an enrolled board, beside its journal. */
export const enrolmentFiles = (store: string) => {
  const at = (name: string): string => join(dirname(store), name)
  return {
    key: at('hub.key'),
    certificate: at('hub.crt'),
    ca: at('ca.crt'),
    enrolment: at('enrolment.json'),
    /** Used if the setting HARDWARE is absent. */
    hardware: at('hardware.json'),
  }
}

export const EnrolmentFile = z.object({ hub_id: z.int().min(1), mqtt_url: z.string() })

/** A board's certificate of the cloud and its key (PEM), and the broker that accepts it. */
export interface Enrolment {
  hubId: number
  mqttUrl: string
  cert: string
  key: string
  /** PEM of the cloud's authority. */
  ca: string
}

/** Reads the enrolment of a board; undefined if it is not enrolled. Throws if a file is missing or damaged. */
export function readEnrolment(store: string): Enrolment | undefined {
  const paths = enrolmentFiles(store)
  let text: string
  try {
    text = readFileSync(paths.enrolment, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const { hub_id: hubId, mqtt_url: mqttUrl } = EnrolmentFile.parse(JSON.parse(text))
  const [cert, key, ca] = [paths.certificate, paths.key, paths.ca].map((path) => readFileSync(path, 'utf8'))
  return { hubId, mqttUrl, cert: cert!, key: key!, ca: ca! }
}
